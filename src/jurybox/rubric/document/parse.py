"""Reading a whole document."""

import contextlib
import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

import msgspec

from jurybox.documents.field_reader import Fields
from jurybox.documents.findings import Findings, Lines, Place, TooManyError
from jurybox.documents.plain_yaml import Pairs, read_yaml
from jurybox.errors import RubricError
from jurybox.rubric.checks import Check
from jurybox.rubric.document.blocks import Block, Body, Fence, MarkdownSource, read_source
from jurybox.rubric.document.criteria import CriterionText, Levels, read_criterion, read_levels
from jurybox.rubric.document.front_matter import (
    Head,
    front_fields,
    open_front_matter,
    read_head,
)
from jurybox.rubric.document.outline import (
    CRITERIA,
    JUDGE_PROMPT,
    LEXICONS,
    LEXICONS_INFO,
    DocumentPart,
    Outline,
    below,
    check_ends,
    check_stray,
    criterion_headings,
    read_outline,
    read_sections,
)
from jurybox.rubric.document.overlay import EXTENDS, Base, Find, Overlay, Reading, read_base
from jurybox.rubric.document.render import render_rubric
from jurybox.rubric.document.rule_blocks import (
    RULES_BLOCK,
    build_checks,
    build_lexicons,
    build_rules,
    open_block,
    open_lexicons,
)
from jurybox.rubric.document.thresholds import Thresholds, read_thresholds
from jurybox.rubric.format_names import REPLY_FORMATS
from jurybox.rubric.metrics import run_metrics, sample_metrics
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.rubric.rules import Lexicon, Rules
from jurybox.rubric.scale import Scale
from jurybox.rubric.template import PLACEHOLDERS, Template
from jurybox.text_format import listed, nearest

_DOUBLE = re.compile(r"\{\{([^{}\n]*)\}\}")
_SINGLE = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")


def read_template(text: str, fence: Place, findings: Findings) -> Template:
    """Read the prompt and check its placeholders; ``fence`` is where its block opens."""
    template = Template(text=text)
    lines = Lines(text, Place(fence.line + 1, fence.column))
    if not text.strip():
        findings.add(fence, "bad-template", "the judge prompt is empty", "write it")
        return template
    names = dict(template.placeholders())
    for name, index in template.placeholders():
        if name not in PLACEHOLDERS:
            hint = nearest(name, PLACEHOLDERS, f"known are {listed(PLACEHOLDERS)}")
            problem = f"there is no placeholder `{name}`"
            findings.add(lines.place(index), "unknown-placeholder", problem, hint)
    _check_braces(text, names, lines, findings)
    written = {*names, *(match[1] for match in _SINGLE.finditer(text))}
    if "response" not in {PLACEHOLDERS.get(name) for name in written}:
        form = "{response}" if names and not _DOUBLE.search(text) else "{{response}}"
        hint = f"put `{form}` where it belongs"
        findings.add(fence, "bad-template", "the judge prompt never shows the response", hint)
    return template


def _check_braces(text: str, names: dict[str, int], lines: Lines, findings: Findings) -> None:
    """Braces that look like a placeholder and would be sent as they stand."""
    doubles = list(_DOUBLE.finditer(text))
    for match in doubles:
        if match[1].strip() not in names:
            hint = nearest(match[1].strip(), PLACEHOLDERS, f"known are {listed(PLACEHOLDERS)}")
            problem = f"`{match[0]}` is no placeholder"
            findings.add(lines.place(match.start()), "unknown-placeholder", problem, hint)
    for match in _SINGLE.finditer(text) if doubles else ():
        if match[1] in PLACEHOLDERS:
            problem = f"`{match[0]}` is plain text next to placeholders in double braces"
            hint = f"write `{{{match[0]}}}`"
            findings.add(lines.place(match.start()), "unknown-placeholder", problem, hint)


def check_names(
    criteria: Sequence[CriterionText], head: Head, thresholds: Thresholds, findings: Findings
) -> None:
    """Hold the names that the document gives against those that are taken."""
    components = bool(thresholds.components)
    of_sample = set(sample_metrics((), overall="", components=components))
    if not head.overall_given:
        of_sample.add(head.overall_name)
    of_run = set(run_metrics((), overall="", components=components))
    for name, place, what in _given(criteria, head, thresholds):
        # A heading that gives no name at all is noted where it is read.
        if name and name in of_sample | of_run:
            problem = f"{what} is called `{name}`, which is the name of a metric"
            findings.add(place, "name-taken", problem, "choose another name")
        elif name and f"{name}_mean" in of_run:
            problem = f"the mean of `{name}` would be called `{name}_mean`, which is another metric"
            findings.add(place, "name-taken", problem, "choose another name")
    ids = {criterion.id for criterion in criteria}
    for component, place in zip(thresholds.components, thresholds.component_places, strict=True):
        if component.name in ids | {head.overall_name}:
            problem = f"a component is called like the score `{component.name}`"
            findings.add(place, "name-taken", problem, f"call it `{component.name}_norm`")
    for criterion in criteria:
        reply_format = head.protocol.reply_format
        if criterion.id in REPLY_FORMATS[reply_format].reserved:
            problem = f"a `{reply_format}` reply has a `{criterion.id}` of its own"
            hint = "give the criterion another id in backticks"
            findings.add(criterion.place, "name-taken", problem, hint)


def _given(
    criteria: Sequence[CriterionText], head: Head, thresholds: Thresholds
) -> Iterator[tuple[str, Place, str]]:
    for criterion in criteria:
        yield criterion.id, criterion.place, "a criterion"
    if head.overall_given:
        yield head.overall_name, head.overall_place, "the overall score"
    for component, place in zip(thresholds.components, thresholds.component_places, strict=True):
        yield component.name, place, "a component"


_MOST_CRITERIA = 100


def parse_rubric(document: str | bytes, origin: str = "rubric", find: Find | None = None) -> Rubric:
    """Read a rubric document.

    Args:
        document: the Markdown text, or the bytes of the file.
        origin: what to call the document in an error.
        find: finds the document that it extends, where it extends one.

    Raises:
        RubricError: the document has faults; the error holds all of them.

    """
    reading = check_rubric(document, find)
    if reading.rubric is None:
        raise RubricError(origin, reading.findings)
    return reading.rubric


def check_rubric(document: str | bytes, find: Find | None = None) -> Reading:
    """Read a rubric document and return the rubric, or all that is wrong with it.

    ``find`` finds the document that it extends, where it extends one.
    """
    # A lone surrogate can't be UTF-8; let it through here so that it becomes a finding.
    data = document if isinstance(document, bytes) else document.encode("utf-8", "surrogatepass")
    # A command reads the same document for several purposes; one that extends none is always the
    # same, whether or not its base can be found.
    return _check(data, find, ()) if EXTENDS.encode() in data else _check_alone(data)


@lru_cache(maxsize=16)
def _check_alone(data: bytes) -> Reading:
    return _check(data, None, ())


def _check(data: bytes, find: Find | None, chain: tuple[str, ...]) -> Reading:
    """Read a document; ``chain`` are the keys of those that led to it as their base."""
    findings, warnings = Findings(), Findings()
    rubric = None
    bases: tuple[str, ...] = ()
    with contextlib.suppress(TooManyError):
        source = read_source(data, findings)
        if source is not None:
            rubric, bases = _read(source, find, chain, findings, warnings)
    found = findings.in_order()
    if rubric is not None and bases:
        # The text that counts is the whole one: the hash then covers the base as well.
        text = render_rubric(rubric)
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        rubric = msgspec.structs.replace(rubric, sha256=sha256)
    return Reading(
        rubric=None if found else rubric,
        findings=found,
        bases=bases,
        warnings=() if found else warnings.in_order(),
    )


def _read(
    source: MarkdownSource,
    find: Find | None,
    chain: tuple[str, ...],
    findings: Findings,
    warnings: Findings,
) -> tuple[Rubric | None, tuple[str, ...]]:
    """Read a document, with the names of all those that it extends."""
    front = open_front_matter(source.front_matter, source.first_line, findings)
    fields = None if front is None else front_fields(front, findings)
    if front is None or fields is None or EXTENDS not in fields:
        return _assemble(source, fields, None, findings), ()
    read = partial(_read_base, chain)
    found = read_base(fields, find, chain, read, findings)
    if found is None:
        return None, ()
    base, reading = found
    overlay = Overlay(base, fields.value_place(EXTENDS), findings)
    whole = front_fields(overlay.front(front), findings)
    rubric = _assemble(source, whole, overlay, findings)
    if rubric is not None:
        overlay.warn(rubric, reading.warnings, warnings)
    return rubric, reading.bases


def _read_base(chain: tuple[str, ...], base: Base) -> Reading:
    return _check(base.data, base.find, (*chain, base.key))


def _assemble(
    source: MarkdownSource, fields: Fields | None, overlay: Overlay | None, findings: Findings
) -> Rubric | None:
    body = Body(source.body)
    whole = check_ends(body, findings)
    outline = read_outline(body, findings, whole=whole, needs_criteria=overlay is None)
    own = _read_criteria(body, outline, findings)
    lexicons = _read_lexicons(body, outline, overlay, findings)
    template = _read_template(body, outline, findings)
    check_stray(body, _seen(outline, own), findings)
    if fields is None:
        return None
    texts = own if overlay is None else overlay.criteria(own)
    ids = [text.id for text in texts]
    head = read_head(fields, ids)
    scales = {each: head.scales.get(each, head.scale) for each in ids}
    thresholds = read_thresholds(fields, scales, head.overall_name)
    check_names(texts, head, thresholds, findings)
    building = _Building(body, head, lexicons, overlay, findings)
    criteria = tuple(building.criterion(text) for text in texts)
    base = None if overlay is None else overlay.base
    template = template or (None if base is None else base.template)
    building.check_sources(criteria, texts, template)
    if head.scale is None:
        return None
    sections = read_sections(body, outline.parts)
    return Rubric(
        id=head.id,
        version=head.version,
        title=outline.title,
        description=outline.description or ("" if base is None else base.description),
        scale=head.scale,
        criteria=criteria,
        overall_name=head.overall_name,
        protocol=head.protocol,
        generation=head.generation,
        without_response=head.without_response,
        require_review=head.require_review,
        pass_rules=thresholds.pass_rules,
        components=thresholds.components,
        metrics=thresholds.metrics,
        gates=thresholds.gates,
        bands=thresholds.bands,
        band_decimals=thresholds.band_decimals,
        decisions=thresholds.decisions,
        sample_decisions=thresholds.sample_decisions,
        lexicons=lexicons,
        template=template,
        sections=sections if overlay is None else overlay.sections(sections),
        sha256=source.sha256,
    )


def _read_criteria(body: Body, outline: Outline, findings: Findings) -> list[CriterionText]:
    part = outline.part(CRITERIA)
    if part is None:
        return []
    headings = criterion_headings(part)
    if not headings:
        hint = "add a `###` heading for each criterion"
        findings.add(part.place, "no-criteria", f"`## {CRITERIA}` holds no criterion", hint)
    if len(headings) > _MOST_CRITERIA:
        problem = f"there are more than {_MOST_CRITERIA} criteria"
        findings.add(part.place, "too-large", problem, "split it into several rubrics")
    texts: list[CriterionText] = []
    first_lines: dict[str, int] = {}
    found = below(headings, part.blocks, part.end)
    for heading, blocks, end in itertools.islice(found, _MOST_CRITERIA):
        text = read_criterion(body, heading, blocks, end, findings)
        first = first_lines.setdefault(text.id, text.place.line)
        if first != text.place.line:
            problem = f"the criterion `{text.id}` is defined twice (first on line {first})"
            hint = "rename one, or give it an id of its own in backticks"
            findings.add(text.place, "duplicate-criterion", problem, hint)
        texts.append(text)
    return texts


class _Building:
    """Builds criteria from their texts, and from those of the base where there is one."""

    def __init__(
        self,
        body: Body,
        head: Head,
        shared: Sequence[Lexicon],
        overlay: Overlay | None,
        findings: Findings,
    ) -> None:
        self._body = body
        self._head = head
        self._shared = shared
        self._overlay = overlay
        self._findings = findings

    def criterion(self, text: CriterionText) -> Criterion:
        """Return the criterion, with all that is wrong with it noted."""
        scale = self._head.scales.get(text.id, self._head.scale)
        levels = self._levels(text, scale)
        return Criterion(
            id=text.id,
            name=text.name,
            scale=scale or Scale(low=0, high=1),
            definition=text.definition,
            weight=self._head.weights.get(text.id, 1.0),
            evidence=self._head.evidence.get(text.id, ("levels", text.place))[0],
            levels=levels.rows,
            level_columns=levels.columns,
            level_decimals=levels.decimals,
            indicators=text.indicators,
            rules=self._rules(text, scale),
            checks=self._checks(text),
        )

    def check_sources(
        self,
        criteria: Sequence[Criterion],
        texts: Sequence[CriterionText],
        template: Template | None,
    ) -> None:
        """Note where the document contradicts itself about what scores a criterion (D4)."""
        for each, text in zip(criteria, texts, strict=True):
            if each.rules is not None and each.checks:
                problem = f"`{each.id}` has rules and checks, and one of them has to score it"
                hint = "make two criteria of it"
                self._findings.add(text.place, "ambiguous-source", problem, hint)
            stated, place = self._head.sources.get(each.id, (each.source, None))
            if place is not None and stated != each.source:
                is_judged = each.source == "judge"
                kind, has = (stated, "no") if is_judged else (each.source, "a")
                block = f"has {has} `yaml {kind}` block"
                problem = f"`{each.id}` is said to be scored by `{stated}`, but {block}"
                hint = f"say `{each.id}: {each.source}`, or {'add' if is_judged else 'remove'} it"
                self._findings.add(place, "ambiguous-source", problem, hint)
        if "judge" not in (each.source for each in criteria if each.weight):
            return
        for each, text in zip(criteria, texts, strict=True):
            if each.source != "judge" and template and f'"{each.id}"' in template.text:
                problem = f"the judge prompt asks for `{each.id}`, which its {each.source} score"
                hint = f"leave it out of the prompt, or remove its `yaml {each.source}` block"
                self._findings.add(text.place, "ambiguous-source", problem, hint)
        pairs = list(zip(criteria, texts, strict=True))
        judged = [text for each, text in pairs if each.source == "judge"]
        name = self._head.protocol.reply_format
        # Where judges score all criteria, the one score is of the response as a whole.
        mixed = REPLY_FORMATS[name].one_score and len(judged) < len(pairs)
        for text in judged[1:] if mixed else ():
            problem = f"a `{name}` reply has one score, and judges would score `{text.id}` as well"
            hint = "give it a `yaml rules` block, or use `reply_format: json`"
            self._findings.add(text.place, "ambiguous-source", problem, hint)

    def _levels(self, text: CriterionText, scale: Scale | None) -> Levels:
        if text.table is not None:
            return read_levels(self._body, text.table, scale, self._findings)
        base = None if self._overlay is None else self._overlay.base.criterion(text.id)
        if base is None:
            return Levels()
        return Levels(rows=base.levels, columns=base.level_columns, decimals=base.level_decimals)

    def _rules(self, text: CriterionText, scale: Scale | None) -> Rules | None:
        node = None
        if text.rules is not None:
            indent = self._body.column(text.rules.start) - 1
            node = open_block(text.rules, indent, RULES_BLOCK, self._findings)
        if self._overlay is not None:
            node = self._overlay.rules(text.id, node)
        if node is None:
            return None
        return build_rules(node, scale, self._shared, self._findings)

    def _checks(self, text: CriterionText) -> tuple[Check, ...]:
        if text.checks is None:
            base = None if self._overlay is None else self._overlay.base.criterion(text.id)
            return () if base is None else base.checks
        start = Place(text.checks.start + 2, self._body.column(text.checks.start))
        node = read_yaml(text.checks.content, start, self._findings)
        return () if node is None else build_checks(node, self._findings)


def _only_fence(body: Body, part: DocumentPart, wanted: str, findings: Findings) -> Fence | None:
    fences = [block for block in part.blocks if isinstance(block, Fence)]
    if len(fences) == 1:
        return fences[0]
    place = Place(fences[1].start + 1, body.column(fences[1].start)) if fences else part.place
    problem = f"`## {part.title}` holds {len(fences) or 'no'} fenced blocks"
    findings.add(place, "wrong-blocks", problem, f"give it one {wanted}")
    return None


def _read_lexicons(
    body: Body, outline: Outline, overlay: Overlay | None, findings: Findings
) -> tuple[Lexicon, ...]:
    node = _open_lexicons(body, outline, findings)
    if overlay is not None:
        node = overlay.lexicons(node)
    return () if node is None else build_lexicons(node, findings)


def _open_lexicons(body: Body, outline: Outline, findings: Findings) -> Pairs | None:
    part = outline.part(LEXICONS)
    if part is None:
        return None
    fence = _only_fence(body, part, f"block ```` ```{LEXICONS_INFO} ````", findings)
    if fence is None:
        return None
    if fence.info != LEXICONS_INFO:
        problem = f"the block under `## {LEXICONS}` is called `{fence.info}`"
        findings.add(Place(fence.start + 1), "unread-block", problem, f"call it `{LEXICONS_INFO}`")
        return None
    return open_lexicons(fence, body.column(fence.start) - 1, findings)


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
