"""Reads a criterion: its heading, its definition, its indicators, its levels and its scoring."""

import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from jurybox.documents.field_reader import NAME, NAME_HINT
from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import decimals_of, range_ends, read_number, show_number
from jurybox.errors import ParseError
from jurybox.rubric.document import blocks as md
from jurybox.rubric.document.front_matter import FrontMatter
from jurybox.rubric.document.outline import CHECKS_INFO, RULES_INFO, SCENARIOS, below, read_fence
from jurybox.rubric.document.rule_blocks import build_checks, build_rules
from jurybox.rubric.rubric_model import UNLABELED, Criterion, Indicators, Level, Rubric
from jurybox.rubric.rules import Lexicon
from jurybox.rubric.scale import Scale
from jurybox.text_format import counted

B = TypeVar("B", bound=md.Block)

_BACKTICKED = re.compile(r"(.*?)\s*\(?`([^`]*)`\)?")
_ANY_SCALE: Final = Scale(low=0, high=1)
_NUMBERING = re.compile(r"[0-9]+[.)]\s+")


def snake_case(heading: str) -> str:
    """Return the id of a heading: ``2. Trust & Boundaries`` gives ``trust_boundaries``."""
    plain = unicodedata.normalize("NFKD", _NUMBERING.sub("", heading, count=1).casefold())
    ascii_only = plain.encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "_", ascii_only).strip("_")


def heading_id(text: str) -> tuple[str, str]:
    """Return the name and the id of a heading; the id is in backticks, or derived from the name."""
    if match := _BACKTICKED.fullmatch(text):
        return md.without_closing_hashes(match[1]) or match[2], match[2]
    return text, snake_case(text)


class CriterionReader:
    """Reads the criteria of a document; missing parts come from the base.

    ``places`` maps ids to the places of their headings; ``seen`` are the tables and fenced blocks
    that were read.
    """

    def __init__(
        self,
        body: md.Body,
        front: FrontMatter,
        base: Rubric | None,
        lexicons: Sequence[Lexicon],
        findings: Findings,
    ) -> None:
        self._body = body
        self._front = front
        self._base = base
        self._lexicons = lexicons
        self._findings = findings
        self.places: dict[str, Place] = {}
        self.seen: list[md.Block] = []

    def read(self, heading: md.Heading, blocks: Sequence[md.Block], end: int) -> Criterion:
        """Read the blocks below one ``###`` heading."""
        body, findings = self._body, self._findings
        name, criterion_id = self._read_heading(heading)
        tables = [block for block in blocks if isinstance(block, md.Table)]
        fences = [block for block in blocks if isinstance(block, md.Fence) and self._is_read(block)]
        self.seen += [*tables, *fences]
        table = self._only(tables, "table")
        rules = self._only([each for each in fences if each.info == RULES_INFO], "rules block")
        checks = self._only([each for each in fences if each.info == CHECKS_INFO], "checks block")
        structure = [block for block in (table, rules, checks) if block is not None]
        taken, indicators = read_indicators(body, blocks, end, structure, findings)
        definition = body.text(heading.end, end, taken)
        base = None if self._base is None else self._base.criterion(criterion_id)
        criterion = self.set_up(base or Criterion(id=criterion_id, name=name, scale=_ANY_SCALE))
        scale = self._scale(criterion_id)
        parts: dict[str, Any] = {} if table is None else read_levels(body, table, scale, findings)
        if checks is not None and (node := read_fence(body, checks, findings)) is not None:
            parts["checks"] = build_checks(node, findings)
        if rules is not None:
            node = read_fence(body, rules, findings)
            parts["rules"] = build_rules(node, criterion.rules, scale, self._lexicons, findings)
        return msgspec.structs.replace(
            criterion,
            name=name,
            definition=definition or criterion.definition,
            indicators=_joined(criterion.indicators, indicators),
            **parts,
        )

    def set_up(self, criterion: Criterion) -> Criterion:
        """Return a criterion with its settings from the front matter."""
        return msgspec.structs.replace(
            criterion,
            scale=self._scale(criterion.id) or _ANY_SCALE,
            weight=self._front.weights.get(criterion.id, 1.0),
            evidence=self._front.evidence.get(criterion.id, "levels"),
        )

    def _scale(self, criterion_id: str) -> Scale | None:
        return self._front.scales.get(criterion_id, self._front.scale)

    def _read_heading(self, heading: md.Heading) -> tuple[str, str]:
        """Return the name and the id of a criterion."""
        place, text = self._body.place(heading.start), heading.text
        name, criterion_id = heading_id(text)
        if NAME.fullmatch(criterion_id) is None:
            problem = f"the heading `{text}` gives no usable id"
            problem = problem if text else "a criterion has no name"
            hint = f"put one in backticks after the heading; {NAME_HINT}"
            self._findings.add(place, "bad-criterion-id", problem, hint)
        first = self.places.setdefault(criterion_id, place)
        if first != place:
            problem = (
                f"the criterion `{criterion_id}` is defined twice (first on line {first.line})"
            )
            hint = "rename one, or give it an id of its own in backticks"
            self._findings.add(place, "duplicate-criterion", problem, hint)
        return name, criterion_id

    def _is_read(self, fence: md.Fence) -> bool:
        if fence.info.lower() in {"yaml", "yml"}:
            problem = f"a fenced block `{fence.info}` in a criterion is not read"
            hint = f"call it `{RULES_INFO}` or `{CHECKS_INFO}` if it has the scoring"
            self._findings.add(Place(fence.start + 1), "unread-block", problem, hint)
        return fence.info in {RULES_INFO, CHECKS_INFO} and fence.closed

    def _only(self, found: Sequence[B], what: str) -> B | None:
        for block in found[1:]:
            first = found[0].start + 1
            problem = f"the criterion has a second {what} (the first is on line {first})"
            place = self._body.place(block.start)
            self._findings.add(place, "second-block", problem, "keep one")
        return found[0] if found else None


def read_indicators(
    body: md.Body,
    blocks: Sequence[md.Block],
    end: int,
    structure: Sequence[md.Block],
    findings: Findings,
) -> tuple[list[md.Block], tuple[Indicators, ...]]:
    """Return the blocks of a criterion that aren't its definition, and its lists by label.

    A heading labels the lists, and the text around them, down to the next heading. Lists with
    equal labels are merged.
    """
    items: dict[str, list[str]] = {}
    texts: dict[str, list[str]] = {}
    taken: list[md.Block] = []
    headings = [block for block in blocks if isinstance(block, md.Heading)]
    lead = blocks[: blocks.index(headings[0])] if headings else blocks
    for heading, inside, stop in ((None, lead, end), *below(headings, blocks, end)):
        label = UNLABELED if heading is None else _bare_label(heading.text) or UNLABELED
        lists = [block for block in inside if isinstance(block, md.Listing)]
        without = [block for block in inside if block in structure or isinstance(block, md.Listing)]
        if heading is None or not lists:
            taken += without
        else:
            text = body.text(heading.end, stop, without)
            texts.setdefault(label, []).extend([text] if text else [])
            taken.append(md.Block(start=heading.start, end=stop))
        for listing in lists:
            items.setdefault(label, []).extend(_items(listing, findings))
    return taken, tuple(
        Indicators(label=label, items=tuple(each), text="\n\n".join(texts.get(label, [])))
        for label, each in items.items()
    )


def _bare_label(label: str) -> str:
    """Return a label without its Markdown marks."""
    bare, before = " ".join(label.split()), ""
    while bare != before:
        before, bare = bare, md.without_closing_hashes(bare.strip("*_: "))
    return bare


def _items(listing: md.Listing, findings: Findings) -> list[str]:
    _check_numbers(listing.items, findings)
    for item in listing.items:
        if not item.text:
            hint = "add its text or remove it"
            findings.add(Place(item.line + 1), "empty-indicator", "an indicator is empty", hint)
    return [item.text for item in listing.items if item.text]


def _check_numbers(items: Sequence[md.Item], findings: Findings) -> None:
    """Report list numbers that don't count up: they are probably scores that would be lost."""
    numbers = [item.number for item in items if item.number is not None]
    counted = all(later == earlier + 1 for earlier, later in itertools.pairwise(numbers))
    # Some Markdown authors number every item 1.
    if numbers and not (counted and numbers[0] in (0, 1)) and set(numbers) != {1}:
        problem = "the numbers of this list don't count 1, 2, 3 and would be lost"
        hint = "put scores into a table of levels, or use dashes"
        findings.add(Place(items[0].line + 1), "list-numbers", problem, hint)


_TWO_COLUMNS, _THREE_COLUMNS = 2, 3
_MOST_ROWS = 100


def read_levels(
    body: md.Body, table: md.Table, scale: Scale | None, findings: Findings
) -> dict[str, Any]:
    """Return the levels of a criterion, their columns and decimals; checked against the scale."""
    header, *rows = table.rows
    place, width = Place(header.line + 1), len(header.cells)
    problem = ""
    if range_ends(_bare_cell(header.cells[0])):
        problem = f"the first row, `{header.cells[0]}`, is the header of the table, not a level"
    elif width not in (_TWO_COLUMNS, _THREE_COLUMNS):
        problem = f"the table of levels has {counted(width, 'column')}"
    elif not 1 <= len(rows) <= _MOST_ROWS:
        problem = f"the table of levels has {counted(len(rows), 'row')}"
    if problem:
        hint = f"write 1 to {_MOST_ROWS} rows below a header: score, label (optional), meaning"
        findings.add(place, "bad-levels", problem, hint)
        return {}
    levels: dict[Level, int] = {}
    for row in rows:
        try:
            levels[_read_level(row, width, scale, levels)] = row.line
        except ParseError as error:
            at = body.place(row.line, row.cells[0])
            findings.add(at, "bad-levels", error.problem, error.hint)
    decimals = 0
    if scale is not None and scale.continuous:
        written = [end for row in rows for end in range_ends(_bare_cell(row.cells[0]))]
        decimals = max(map(decimals_of, written), default=0)
    if scale is not None and len(levels) == len(rows):
        _check_cover([*levels], decimals, scale, place, findings)
    return {"levels": (*levels,), "level_columns": header.cells, "level_decimals": decimals}


def _read_level(
    row: md.TableRow, width: int, scale: Scale | None, others: Mapping[Level, int]
) -> Level:
    """Read a row; raise ParseError if it isn't a level, or overlaps another one."""
    if row.written > width:
        problem = f"the row has {row.written} cells and the header {width}"
        raise ParseError(problem, "write a pipe inside a cell as `\\|`")
    low, high = _read_range(row.cells[0])
    for end in (low, high):
        if scale is not None and not scale.accepts(end):
            limits = " to ".join(map(show_number, scale.ends))
            hint = f"use a score from {limits}, or change the scale"
            if scale.contains(end):
                hint = f"write the scale as `{scale.as_continuous}` to allow fractions"
            raise ParseError(f"the level {show_number(end)} is not on the scale {scale}", hint)
    if not row.cells[-1]:
        raise ParseError(f"the level `{row.cells[0]}` has no meaning", "say what it means")
    for other, line in others.items():
        if low <= other.high and other.low <= high:
            problem = f"the level `{row.cells[0]}` overlaps the one on line {line + 1}"
            raise ParseError(problem, "make each score belong to only one of them")
    label = row.cells[1] if width == _THREE_COLUMNS else ""
    return Level(low=low, high=high, label=label, meaning=row.cells[-1])


def _read_range(text: str) -> tuple[float, float]:
    numbers = [read_number(end) for end in range_ends(_bare_cell(text))]
    low, high = (numbers or [None])[0], (numbers or [None])[-1]
    if low is None or high is None:
        hint = "begin each row with a score such as `3` or `0.8-0.9`"
        raise ParseError(f"`{text}` is not a score", hint)
    if low > high:
        raise ParseError(f"the range `{text}` runs downwards", "write the lower end first")
    return low, high


def _bare_cell(cell: str) -> str:
    return cell.strip("*` ")


def _check_cover(
    levels: Sequence[Level], decimals: int, scale: Scale, place: Place, findings: Findings
) -> None:
    """Report scores that no range of a table covers."""
    if all(level.low == level.high for level in levels):
        return
    step = 10.0**-decimals
    ordered = sorted(levels, key=lambda level: level.low)
    ends = [scale.low - step, *(level.high for level in ordered)]
    starts = [*(level.low for level in ordered), scale.high + step]
    for end, start in zip(ends, starts, strict=True):
        if round(start - end - step, 9) > 0:
            first, last = show_number(round(end + step, 9)), show_number(round(start - step, 9))
            gap = first if first == last else f"{first} to {last}"
            problem = f"no level covers {gap}"
            findings.add(
                place, "level-gap", problem, "extend a range so that nothing falls between two"
            )


def _joined(inherited: Sequence[Indicators], own: Sequence[Indicators]) -> tuple[Indicators, ...]:
    """Return the base's lists, extended by lists with the same label, and new lists."""
    mine = {each.label: each for each in own}
    lists = [_longer(each, mine.pop(each.label, None)) for each in inherited]
    return (*lists, *mine.values())


def _longer(inherited: Indicators, own: Indicators | None) -> Indicators:
    if own is None:
        return inherited
    items = tuple(dict.fromkeys((*inherited.items, *own.items)))
    return Indicators(label=inherited.label, items=items, text=own.text or inherited.text)


_SCENARIO: Final = re.compile(r"^### +(.+)$", re.MULTILINE)
_SCENARIO_LABEL: Final = re.compile(r"\**([A-Za-z][\w ]*):")
_SHOWN_PARTS: Final = ("focus", "key criteria")


def scenario_texts(rubric: Rubric) -> dict[str, str]:
    """Return the text that judges and reviewers see for each scenario, by scenario id.

    Below ``## Scenarios`` each ``###`` heading is a scenario, named like a criterion; what follows
    ``Focus:`` and ``Key criteria:`` is shown, and other labels such as ``Examples:`` are not.
    """
    texts: dict[str, str] = {}
    for section in rubric.sections:
        if section.title.casefold() == SCENARIOS.casefold():
            _, *parts = _SCENARIO.split(section.text)
            for heading, text in zip(parts[::2], parts[1::2], strict=True):
                name, scenario = heading_id(heading.strip())
                if lines := _shown_lines(text):
                    texts[scenario] = "\n".join([f"Scenario: {name}", *lines])
    return texts


def _shown_lines(text: str) -> list[str]:
    lines: list[str] = []
    shown = False
    for line in text.splitlines():
        label = _SCENARIO_LABEL.match(line)
        if label is not None:
            shown = label[1].casefold() in _SHOWN_PARTS
        if shown and line.strip():
            lines.append(line.strip())
    return lines
