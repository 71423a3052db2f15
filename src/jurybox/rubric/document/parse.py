"""Reads a whole document; parts that it omits come from the document it extends."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec

from jurybox.documents.field_reader import FieldReader, node_at
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.documents.plain_yaml import Node, Pairs
from jurybox.errors import Finding, InputError, RubricError
from jurybox.rubric.document import front_matter, outline
from jurybox.rubric.document.blocks import Block, Body, MarkdownSource, read_source
from jurybox.rubric.document.criteria import CriterionReader
from jurybox.rubric.document.render import render_rubric
from jurybox.rubric.document.rule_blocks import read_lexicons
from jurybox.rubric.metrics import run_metrics, sample_metrics
from jurybox.rubric.rubric_model import REPLY_FORMATS, Criterion, Rubric, Section, settings_of
from jurybox.rubric.template import Template
from jurybox.text_format import closest

MOST_CRITERIA: Final = 100
MOST_BASES: Final = 5
"""The longest chain of bases."""
_WORD: Final = re.compile(r"[^\W_]+")


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A document that another one extends, and how its own base is found.

    ``key`` identifies the document, no matter by which name it was found.
    """

    origin: str
    key: str
    data: bytes
    find: Find


Find = Callable[[str], Base]
"""Finds a document by the value of ``extends``, or raises an `InputError`."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The result of reading a document: a rubric, or the findings if there is none.

    ``bases`` are the names of the documents that it extends, the nearest first.
    """

    rubric: Rubric | None
    findings: tuple[Finding, ...]
    bases: tuple[str, ...] = ()


def parse_rubric(document: str | bytes, origin: str = "rubric", find: Find | None = None) -> Rubric:
    """Read a rubric document.

    Args:
        document: the Markdown text, or the bytes of the file.
        origin: what to call the document in an error.
        find: finds the document that it extends, if any.

    Raises:
        RubricError: the document has faults; the error lists all of them.

    """
    reading = check_rubric(document, find)
    if reading.rubric is None:
        raise RubricError(origin, reading.findings)
    return reading.rubric


def check_rubric(document: str | bytes, find: Find | None = None) -> Reading:
    """Read a rubric document and return the rubric, or its findings.

    ``find`` finds the document that it extends, if any.
    """
    # A lone surrogate isn't valid UTF-8; it is passed on here and becomes a finding.
    data = document if isinstance(document, bytes) else document.encode("utf-8", "surrogatepass")
    return _read(data, find, ())


def _read(data: bytes, find: Find | None, chain: tuple[str, ...]) -> Reading:
    # A command reads the same document several times. The result for one without a base is cached,
    # since it doesn't depend on ``find``.
    extends = front_matter.EXTENDS.encode() in data
    return _check(data, find, chain) if extends else _check_alone(data)


@lru_cache(maxsize=16)
def _check_alone(data: bytes) -> Reading:
    return _check(data, None, ())


def _check(data: bytes, find: Find | None, chain: tuple[str, ...]) -> Reading:
    """Read a document; ``chain`` has the keys of the documents that extend it."""
    findings = Findings()
    rubric = base = None
    with contextlib.suppress(TooManyError):
        source = read_source(data, findings)
        front = None
        if source is not None:
            front = front_matter.open_front_matter(source.front_matter, source.first_line, findings)
        extends = node_at(front, front_matter.EXTENDS)
        if extends is not None:
            base = _read_base(extends, find, chain, findings)
        if source is not None and (extends is None or base is not None):
            rubric = _Document(source, front, base, findings).read()
    found = findings.in_order()
    if rubric is not None and base is not None:
        # Hash the combined text, so that the hash covers the base as well.
        sha256 = hashlib.sha256(render_rubric(rubric).encode()).hexdigest()
        rubric = msgspec.structs.replace(rubric, sha256=sha256)
    return Reading(
        rubric=None if found else rubric,
        findings=found,
        bases=() if base is None else base.bases,
    )


def _read_base(
    node: Node, find: Find | None, chain: tuple[str, ...], findings: Findings
) -> Reading | None:
    """Read the base that ``node`` names; return it with the names of all bases, or None."""
    name = FieldReader(findings).value(str, node, f"`{front_matter.EXTENDS}`")
    if name is msgspec.UNSET:
        return None
    try:
        base = _find_base(name, find, chain)
    except InputError as error:
        problem = f"the base `{name}` can't be used: {error.problem}"
        findings.add(node.place, "unknown-base", problem, error.hint)
        return None
    reading = _read(base.data, base.find, (*chain, base.key))
    if reading.rubric is None:
        where = f"{base.origin}:{reading.findings[0]}"
        problem = f"the base rubric `{name}` has errors; the first one is {where}"
        findings.add(node.place, "bad-base", problem, "correct the base")
        return None
    return msgspec.structs.replace(reading, bases=(name, *reading.bases))


def _find_base(name: str, find: Find | None, chain: tuple[str, ...]) -> Base:
    if find is None:
        raise InputError(
            "this text has no name or path, so it can't extend another",
            "load it by its name or path",
        )
    base = find(name)
    if base.key in chain:
        raise InputError(
            "the documents extend each other in a circle", f"remove an `{front_matter.EXTENDS}`"
        )
    if len(chain) >= MOST_BASES:
        problem = f"more than {MOST_BASES} documents extend one another"
        raise InputError(problem, "extend one of the earlier bases")
    return base


class _Document:
    """Reads the parts of a document and merges them with the parts of its base."""

    def __init__(
        self,
        source: MarkdownSource,
        node: Pairs | None,
        base: Reading | None,
        findings: Findings,
    ) -> None:
        self._source = source
        self._node = node or Pairs(pairs=(), place=Place(1))
        self._is_headed = node is not None
        self._findings = findings
        self._base = None if base is None else base.rubric
        extends = node_at(node, front_matter.EXTENDS)
        self._at = Place(1) if extends is None else extends.place
        self._body = Body(source.body)
        self._places: dict[str, Place] = {}
        self._new: tuple[Criterion, ...] = ()

    def read(self) -> Rubric | None:
        """Return the rubric if all required parts are valid."""
        body, base, findings, node = self._body, self._base, self._findings, self._node
        parts = outline.read_outline(body, findings, needs_criteria=base is None)
        reader = FieldReader(findings)
        front = front_matter.FrontMatter()
        if self._is_headed:
            front = front_matter.read_front_matter(
                node, None if base is None else front_matter.front_matter_of(base), reader
            )
        written = self._open_lexicons(parts)
        lexicons = read_lexicons(written, () if base is None else base.lexicons, findings)
        criteria = self._criteria(parts, CriterionReader(body, front, base, lexicons, findings))
        template = outline.read_judge_prompt(body, parts, findings)
        template = template or (None if base is None else base.template)
        if not self._is_headed:
            return None
        self._check_fixed(node)
        at = None if base is None else self._at
        front_matter.FrontMatterCheck(
            node, front, [each.id for each in criteria], reader, at
        ).check()
        self._check_names(node, criteria, front)
        self._check_sources(criteria, front, template)
        self._check_prompt(front, template)
        if front.scale is None:
            return None
        sections = outline.read_sections(body, parts.parts)
        decimals = front_matter.decimals_of_bands(node)
        settings: dict[str, Any] = settings_of(front) | {
            "without_response": _points(front, criteria),
            "require_review": tuple(
                x for x in front_matter.REVIEW_REASONS if x in front.require_review
            ),
            "bands": tuple(sorted(front.bands, key=lambda band: -band.low)),
        }
        return Rubric(
            **settings,
            title=parts.title,
            description=parts.description or ("" if base is None else base.description),
            scale=front.scale,
            criteria=criteria,
            band_decimals=decimals or (0 if base is None else base.band_decimals),
            lexicons=lexicons,
            template=template,
            sections=sections if base is None else _joined_sections(base.sections, sections),
            sha256=self._source.sha256,
        )

    def _check_prompt(self, front: front_matter.FrontMatter, template: Template | None) -> None:
        """Report criteria that the document adds, but the base's judge prompt doesn't mention."""
        base = self._base
        if base is None or template is None or template != base.template:
            return
        words = _words(template.text)
        one_score = REPLY_FORMATS[front.reply_format].one_score
        for each in self._new if not one_score else ():
            mentioned = _words(each.id) in words or _words(each.name) in words
            if each.source == "judge" and not mentioned:
                problem = f"the judge prompt of the base `{base.id}` doesn't mention `{each.id}`"
                hint = f"give this document a `## {outline.JUDGE_PROMPT}` that does"
                self._findings.add(self._place(each), "unjudged-criterion", problem, hint)

    def _place(self, criterion: Criterion) -> Place:
        return self._places.get(criterion.id, self._at)

    def _criteria(self, parts: outline.Outline, reader: CriterionReader) -> tuple[Criterion, ...]:
        """Return the base's criteria as changed by the document, and the new ones."""
        part, own = parts.part(outline.CRITERIA), list[Criterion]()
        lines = range(0)
        read: list[Block] = [*parts.fences(outline.LEXICONS), *parts.fences(outline.JUDGE_PROMPT)]
        if part is not None:
            lines = range(part.heading.start, part.end)
            own = self._read_criteria(part, reader)
            is_large = len(outline.criterion_headings(part)) > MOST_CRITERIA
            read += part.blocks if is_large else reader.seen
        outline.check_unread(self._body, read, lines, self._findings)
        self._places = reader.places
        if self._base is None:
            return tuple(own)
        mine = {each.id: each for each in own}
        known = {each.id: each.name for each in self._base.criteria}
        inherited = [mine.pop(each.id, None) or reader.set_up(each) for each in self._base.criteria]
        for each in mine.values():
            # A name close to one of the base's is probably a typo, which would add a criterion.
            meant = closest(each.id, known)
            if meant is not None:
                problem = f"the base `{self._base.id}` has no criterion `{each.id}`"
                hint = f"write `### {known[meant]}` to change that criterion, or use another name"
                self._findings.add(self._place(each), "unknown-criterion", problem, hint)
        self._new = tuple(mine.values())
        return (*inherited, *self._new)

    def _read_criteria(
        self, part: outline.DocumentPart, reader: CriterionReader
    ) -> list[Criterion]:
        headings = outline.criterion_headings(part)
        if not headings:
            hint = "add a `###` heading for each criterion"
            problem = f"`## {outline.CRITERIA}` has no criterion"
            self._findings.add(part.place, "no-criteria", problem, hint)
        if len(headings) > MOST_CRITERIA:
            problem = f"there are more than {MOST_CRITERIA} criteria"
            self._findings.add(part.place, "too-large", problem, "split it into several rubrics")
        found = islice(outline.below(headings, part.blocks, part.end), MOST_CRITERIA)
        return [reader.read(heading, blocks, end) for heading, blocks, end in found]

    def _open_lexicons(self, parts: outline.Outline) -> Pairs | None:
        part = parts.part(outline.LEXICONS)
        wanted = f"block ```` ```{outline.LEXICONS_INFO} ````"
        fence = (
            None if part is None else outline.only_fence(self._body, part, wanted, self._findings)
        )
        if fence is None:
            return None
        if fence.info != outline.LEXICONS_INFO:
            problem, place = f"the block is called `{fence.info}`", Place(fence.start + 1)
            self._findings.add(place, "unread-block", problem, f"call it `{outline.LEXICONS_INFO}`")
            return None
        node = outline.read_fence(self._body, fence, self._findings)
        hint = "list phrases, such as `greetings: [hello, hi]`"
        block = FieldReader(self._findings).open(Pairs, node, "the lexicons block", hint)
        if block is not None and not block.pairs:
            place = Place(fence.start + 1)
            self._findings.add(place, "bad-lexicon", "the lexicons block is empty", hint)
        return block

    def _check_fixed(self, node: Pairs) -> None:
        """Refuse a changed scale, since the base's levels and rules depend on it."""
        if self._base is None:
            return
        scales = node_at(node, "scales")
        own = [key for key, _ in node.pairs if key.text == "scale"]
        if isinstance(scales, Pairs):
            own += [key for key, _ in scales.pairs if self._base.criterion(key.text) is not None]
        for key in own:
            problem = f"the scale is fixed by the base `{self._base.id}`"
            hint = "leave it out; a new criterion may have a scale of its own under `scales`"
            self._findings.add(key.place, "fixed-by-base", problem, hint)

    def _check_names(
        self, node: Pairs, criteria: Sequence[Criterion], front: front_matter.FrontMatter
    ) -> None:
        """Report names that are used twice."""
        components, overall = bool(front.components), front.overall_name
        taken = {
            *sample_metrics((), overall="", components=components),
            *run_metrics((), overall="", components=components),
        }
        taken |= {name.removesuffix("_mean") for name in taken}
        reserved = {*REPLY_FORMATS[front.reply_format].reserved, overall}
        ids = {each.id for each in criteria if each.id}
        given = [(each.id, self._place(each), taken | reserved) for each in criteria if each.id]
        if (named := node_at(node, "overall_name")) is not None:
            given.append((overall, named.place, taken))
        parts = node_at(node, "components")
        if isinstance(parts, Pairs):
            given += [(key.text, key.place, taken | ids | {overall}) for key, _ in parts.pairs]
        for name, place, others in given:
            if name in others:
                problem = f"the name `{name}` is taken by a metric, a score or a part of replies"
                self._findings.add(place, "name-taken", problem, "choose another name")

    def _check_sources(
        self,
        criteria: Sequence[Criterion],
        front: front_matter.FrontMatter,
        template: Template | None,
    ) -> None:
        """Report contradictions about what scores a criterion."""
        judged = [each for each in criteria if each.source == "judge"]
        asked = template if any(each.weight for each in judged) else None
        for each in criteria:
            if each.rules is not None and each.checks:
                problem = f"`{each.id}` has both rules and checks, but only one can score it"
                self._note_source(each, problem, "make two criteria of it")
            stated = front.sources.get(each.id, each.source)
            written = node_at(self._node, "sources", each.id)
            if written is not None and stated != each.source:
                is_judged = each.source == "judge"
                kind, has = (stated, "no") if is_judged else (each.source, "a")
                problem = f"`sources` says that `{stated}` scores `{each.id}`, but it has {has}"
                hint = f"say `{each.id}: {each.source}`, or {'add' if is_judged else 'remove'} it"
                self._note_source(each, f"{problem} `yaml {kind}` block", hint, written.place)
            if each.source != "judge" and asked and f'"{each.id}"' in asked.text:
                problem = f"the judge prompt asks for `{each.id}`, which its {each.source} score"
                hint = f"leave it out of the prompt, or remove its `yaml {each.source}` block"
                self._note_source(each, problem, hint)
        name = front.reply_format
        # If judges score all criteria, the single score is for the response as a whole.
        mixed = REPLY_FORMATS[name].one_score and len(judged) < len(criteria)
        for each in judged[1:] if mixed and any(each.weight for each in judged) else ():
            problem = f"a `{name}` reply has one score, and judges would score `{each.id}` as well"
            hint = "give it a `yaml rules` block, or use `reply_format: json`"
            self._note_source(each, problem, hint)

    def _note_source(
        self, criterion: Criterion, problem: str, hint: str, place: Place | None = None
    ) -> None:
        self._findings.add(place or self._place(criterion), "ambiguous-source", problem, hint)


def _points(front: front_matter.FrontMatter, criteria: Sequence[Criterion]) -> dict[str, float]:
    """Return the scores of a sample without a response, as points on their scales."""
    scores = front.without_response
    return {each.id: each.scale.nearest(scores[each.id]) for each in criteria if each.id in scores}


def _joined_sections(base: Sequence[Section], own: Sequence[Section]) -> tuple[Section, ...]:
    """Return the base's sections, those with the same title replaced, and the new ones."""
    mine = {section.title: section for section in own}
    inherited = [mine.pop(each.title, each) for each in base]
    return (*inherited, *mine.values())


def _words(text: str) -> str:
    """Return the words of a text, each with a space on both sides."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
