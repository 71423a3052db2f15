"""Reading a whole document."""

import contextlib
import itertools
from collections.abc import Sequence

import msgspec

from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.errors import Finding, RubricError
from jurybox.rubric.document.blocks import Block, Body, Fence
from jurybox.rubric.document.criteria import CriterionText, read_criterion
from jurybox.rubric.document.front_matter import Head, open_front_matter, read_head
from jurybox.rubric.document.levels import Levels, read_levels
from jurybox.rubric.document.names import check_names
from jurybox.rubric.document.outline import (
    CRITERIA,
    JUDGE_PROMPT,
    LEXICONS,
    Outline,
    Part,
    below,
    criterion_headings,
    read_outline,
    read_sections,
)
from jurybox.rubric.document.prompt import read_template
from jurybox.rubric.document.rules_block import read_rules, read_shared_lexicons
from jurybox.rubric.document.source import Source, read_source
from jurybox.rubric.document.stray import LEXICONS_INFO, check_ends, check_stray
from jurybox.rubric.document.thresholds import read_thresholds
from jurybox.rubric.model import Criterion, Rubric
from jurybox.rubric.rules import Lexicon
from jurybox.rubric.scale import Scale
from jurybox.rubric.template import Template

_MOST_CRITERIA = 100


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reading a document: a rubric, or else findings."""

    rubric: Rubric | None
    findings: tuple[Finding, ...]


def parse_rubric(document: str | bytes, origin: str = "rubric") -> Rubric:
    """Read a rubric document.

    Args:
        document: the Markdown text, or the bytes of the file.
        origin: what to call the document in an error.

    Raises:
        RubricError: the document has faults; the error holds all of them.

    """
    reading = check_rubric(document)
    if reading.rubric is None:
        raise RubricError(origin, reading.findings)
    return reading.rubric


def check_rubric(document: str | bytes) -> Reading:
    """Read a rubric document and return the rubric, or all that is wrong with it."""
    # A lone surrogate can't be UTF-8; let it through here so that it becomes a finding.
    data = document if isinstance(document, bytes) else document.encode("utf-8", "surrogatepass")
    findings = Findings()
    rubric = None
    with contextlib.suppress(TooManyError):
        source = read_source(data, findings)
        rubric = None if source is None else _read(source, findings)
    found = findings.in_order()
    return Reading(rubric=None if found else rubric, findings=found)


def _read(source: Source, findings: Findings) -> Rubric | None:
    body = Body(source.body)
    whole = check_ends(body, findings)
    outline = read_outline(body, findings, whole=whole)
    texts = _read_criteria(body, outline, findings)
    ids = [text.id for text in texts]
    lexicons = _read_lexicons(body, outline, findings)
    template = _read_template(body, outline, findings)
    check_stray(body, _seen(outline, texts), findings)
    fields = open_front_matter(source.front_matter, source.first_line, findings)
    if fields is None:
        return None
    head = read_head(fields, ids)
    scales = {each: head.scales.get(each, head.scale) for each in ids}
    thresholds = read_thresholds(fields, scales, head.overall_name)
    check_names(texts, head, thresholds, findings)
    criteria = tuple(_build(body, text, head, lexicons, findings) for text in texts)
    if head.scale is None:
        return None
    return Rubric(
        id=head.id,
        version=head.version,
        title=outline.title,
        description=outline.description,
        scale=head.scale,
        criteria=criteria,
        overall_name=head.overall_name,
        protocol=head.protocol,
        generation=head.generation,
        without_response=head.without_response,
        pass_rules=thresholds.pass_rules,
        components=thresholds.components,
        figures=thresholds.figures,
        gates=thresholds.gates,
        bands=thresholds.bands,
        band_decimals=thresholds.band_decimals,
        decisions=thresholds.decisions,
        sample_decisions=thresholds.sample_decisions,
        lexicons=lexicons,
        template=template,
        sections=read_sections(body, outline.parts),
        sha256=source.sha256,
    )


def _read_criteria(body: Body, outline: Outline, findings: Findings) -> list[CriterionText]:
    part = outline.part(CRITERIA)
    if part is None:
        return []
    headings = criterion_headings(part)
    if not headings:
        mend = "add a `###` heading for each criterion"
        findings.add(part.place, "no-criteria", f"`## {CRITERIA}` holds no criterion", mend)
    if len(headings) > _MOST_CRITERIA:
        problem = f"there are more than {_MOST_CRITERIA} criteria"
        findings.add(part.place, "too-large", problem, "nobody can judge by that many")
    texts: list[CriterionText] = []
    first_lines: dict[str, int] = {}
    found = below(headings, part.blocks, part.end)
    for heading, blocks, end in itertools.islice(found, _MOST_CRITERIA):
        text = read_criterion(body, heading, blocks, end, findings)
        first = first_lines.setdefault(text.id, text.place.line)
        if first != text.place.line:
            problem = f"the criterion `{text.id}` is defined twice (first on line {first})"
            mend = "rename one, or give it an id of its own in backticks"
            findings.add(text.place, "duplicate-criterion", problem, mend)
        texts.append(text)
    return texts


def _build(
    body: Body,
    text: CriterionText,
    head: Head,
    shared: Sequence[Lexicon],
    findings: Findings,
) -> Criterion:
    scale = head.scales.get(text.id, head.scale)
    levels, rules = Levels(), None
    if text.table is not None:
        levels = read_levels(body, text.table, scale, findings)
    if text.rules is not None:
        indent = body.column(text.rules.start) - 1
        rules = read_rules(text.rules, indent, scale, shared, findings)
    return Criterion(
        id=text.id,
        name=text.name,
        scale=scale or Scale(low=0, high=1),
        definition=text.definition,
        weight=head.weights.get(text.id, 1.0),
        levels=levels.rows,
        level_columns=levels.columns,
        level_decimals=levels.decimals,
        indicators=text.indicators,
        rules=rules,
    )


def _only_fence(body: Body, part: Part, wanted: str, findings: Findings) -> Fence | None:
    fences = [block for block in part.blocks if isinstance(block, Fence)]
    if len(fences) == 1:
        return fences[0]
    place = Place(fences[1].start + 1, body.column(fences[1].start)) if fences else part.place
    problem = f"`## {part.title}` holds {len(fences) or 'no'} fenced blocks"
    findings.add(place, "wrong-blocks", problem, f"give it one {wanted}")
    return None


def _read_lexicons(body: Body, outline: Outline, findings: Findings) -> tuple[Lexicon, ...]:
    part = outline.part(LEXICONS)
    if part is None:
        return ()
    fence = _only_fence(body, part, f"block ```` ```{LEXICONS_INFO} ````", findings)
    if fence is None:
        return ()
    if fence.info != LEXICONS_INFO:
        problem = f"the block under `## {LEXICONS}` is called `{fence.info}`"
        findings.add(Place(fence.start + 1), "unread-block", problem, f"call it `{LEXICONS_INFO}`")
        return ()
    return read_shared_lexicons(fence, body.column(fence.start) - 1, findings)


def _seen(outline: Outline, texts: Sequence[CriterionText]) -> list[Block]:
    """Return the tables and fenced blocks that were read, or noted where they stand."""
    parts = [part for part in (outline.part(LEXICONS), outline.part(JUDGE_PROMPT)) if part]
    fences = [block for part in parts for block in part.blocks if isinstance(block, Fence)]
    seen = [block for text in texts for block in text.seen]
    part = outline.part(CRITERIA)
    if part is not None and len(criterion_headings(part)) > _MOST_CRITERIA:
        seen += part.blocks
    return [*fences, *seen]


def _read_template(body: Body, outline: Outline, findings: Findings) -> Template | None:
    part = outline.part(JUDGE_PROMPT)
    if part is None:
        return None
    fence = _only_fence(body, part, "block with the prompt's text", findings)
    if fence is None:
        return None
    place = Place(fence.start + 1, body.column(fence.start))
    return read_template(fence.content.removesuffix("\n"), place, findings)
