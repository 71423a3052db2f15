"""Read a criterion: its heading, its definition, its indicators and its levels."""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from jurybox.documents.field_reader import NAME, NAME_HINT
from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import NUMBER, decimals_of, read_number, show_number
from jurybox.errors import Unreadable
from jurybox.rubric.document.blocks import (
    BLANK,
    Block,
    Body,
    Fence,
    Heading,
    Item,
    Listing,
    Table,
    TableRow,
    Text,
    without_closing_hashes,
)
from jurybox.rubric.document.outline import (
    CHECKS_INFO,
    CRITERIA,
    RULES_INFO,
    Outline,
    below,
    check_swallowed,
    criterion_headings,
)
from jurybox.rubric.rubric_model import UNLABELED, Indicators, Level
from jurybox.rubric.scale import Scale
from jurybox.text_format import counted

SEPARATOR = "<!-- list -->"
"""Keeps the canonical text from making a label of a line that only looks like one."""


class ItemGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A label with its lists, their text, and the blocks that they occupy."""

    label: str
    text: str
    items: tuple[str, ...]
    taken: tuple[Block, ...]


def read_indicators(
    body: Body,
    blocks: Sequence[Block],
    end: int,
    structure: Sequence[Block],
    findings: Findings,
) -> list[ItemGroup]:
    """Read the lists of a criterion, each under the label above it.

    A heading is the label of the lists down to the next heading, with the text in between.
    A line of its own just above a list can be the label too.
    """
    headings = [index for index, block in enumerate(blocks) if isinstance(block, Heading)]
    lead = blocks[: headings[0]] if headings else blocks
    groups = _lead_groups(body, lead, findings)
    for first, last in itertools.pairwise([*headings, len(blocks)]):
        stop = blocks[last].start if last < len(blocks) else end
        groups += _heading_groups(body, blocks[first:last], stop, structure, findings)
    return groups


def _lead_groups(body: Body, blocks: Sequence[Block], findings: Findings) -> list[ItemGroup]:
    groups: list[ItemGroup] = []
    for listing, above in _label_lines(body, blocks, below_heading=False):
        label = UNLABELED if above is None else _bare_label(body.lines[above.start])
        groups.append(_own_group(label, listing, above, findings))
    return groups


def _heading_groups(
    body: Body,
    blocks: Sequence[Block],
    stop: int,
    structure: Sequence[Block],
    findings: Findings,
) -> list[ItemGroup]:
    heading, *inside = blocks
    lists = list(_label_lines(body, inside, below_heading=True))
    groups = [
        _own_group(_bare_label(body.lines[above.start]), listing, above, findings)
        for listing, above in lists
        if above is not None
    ]
    mine = [listing for listing, above in lists if above is None]
    if mine and isinstance(heading, Heading):
        others = [block for group in groups for block in group.taken]
        holes = [block for block in inside if block in structure or block in others]
        without = sorted([*holes, *mine], key=lambda block: block.start)
        group = ItemGroup(
            label=_bare_label(heading.text) or UNLABELED,
            text=_without_separator(body.text(heading.end, stop, without)),
            items=tuple(item for listing in mine for item in _items(listing, findings)),
            taken=_around(Block(start=heading.start, end=stop), holes),
        )
        groups.insert(0, group)
    return groups


def _own_group(label: str, listing: Listing, above: Block | None, findings: Findings) -> ItemGroup:
    taken = (listing,) if above is None else (above, listing)
    return ItemGroup(label=label, text="", items=tuple(_items(listing, findings)), taken=taken)


def _without_separator(text: str) -> str:
    lines = text.split("\n")
    while lines and lines[-1].strip(BLANK) in {"", SEPARATOR}:
        lines.pop()
    return "\n".join(lines)


def _around(whole: Block, holes: Sequence[Block]) -> tuple[Block, ...]:
    """Return the lines of a range that no block occupies."""
    pieces: list[Block] = []
    at = whole.start
    for hole in holes:
        pieces.append(Block(start=at, end=hole.start))
        at = hole.end
    pieces.append(Block(start=at, end=whole.end))
    return tuple(piece for piece in pieces if piece.start < piece.end)


def _label_lines(
    body: Body, blocks: Sequence[Block], *, below_heading: bool
) -> Iterator[tuple[Listing, Block | None]]:
    """Yield each list with the line that is its label, where it has one of its own."""
    before: Block | None = None
    label: Block | None = None
    for index, block in enumerate(blocks):
        if isinstance(block, Listing):
            # A list right behind a list goes on with its label: Markdown has split one in two.
            if not isinstance(before, Listing):
                plain = not below_heading and index > 1
                found = before is not None and _is_label(body, before, plain=plain)
                label = before if found else None
            yield block, label
        before = block


def _is_label(body: Body, block: Block, *, plain: bool) -> bool:
    """Tell whether a line is a label; the definition itself never is, ``plain`` or not."""
    if not isinstance(block, Text) or block.end - block.start != 1:
        return False
    return is_label(body.lines[block.start], plain=plain)


def is_label(raw: str, *, plain: bool = False) -> bool:
    """Tell whether a line is a label by its looks: bold, or what it is of with a colon."""
    line = raw.strip()
    bare = _bare_label(line)
    bold = line.startswith(("**", "__")) and line.rstrip(": ").endswith(("**", "__"))
    polar = bare.casefold().startswith(("positive", "negative"))
    ends_in_colon = line.rstrip("*_ ").endswith(":")
    return bool(bare) and (bold or ((polar or plain) and ends_in_colon))


def _bare_label(label: str) -> str:
    """Return a label without its marks; what is left has none."""
    bare, before = " ".join(label.split()), ""
    while bare != before:
        before, bare = bare, without_closing_hashes(bare.strip("*_: "))
    return bare


def _items(listing: Listing, findings: Findings) -> list[str]:
    _check_numbers(listing.items, findings)
    for item in listing.items:
        if not item.text:
            hint = "write it out or remove it"
            findings.add(Place(item.line + 1), "empty-indicator", "an indicator is empty", hint)
    return [item.text for item in listing.items if item.text]


def _check_numbers(items: Sequence[Item], findings: Findings) -> None:
    """Numbers that don't count up are scores, which a list would lose."""
    numbers = [item.number for item in items if item.number is not None]
    counted = all(later == earlier + 1 for earlier, later in itertools.pairwise(numbers))
    # Markdown authors also number every item 1 and leave the counting to the reader.
    if numbers and not (counted and numbers[0] in (0, 1)) and set(numbers) != {1}:
        problem = "the numbers of this list don't count 1, 2, 3 and would be lost"
        hint = "put scores into a table of levels, or use dashes"
        findings.add(Place(items[0].line + 1), "list-numbers", problem, hint)


def merge_groups(groups: Sequence[ItemGroup]) -> tuple[Indicators, ...]:
    """Return the indicators; lists with the same label are one."""
    items: dict[str, list[str]] = {}
    texts: dict[str, list[str]] = {}
    for group in groups:
        items.setdefault(group.label, []).extend(group.items)
        texts.setdefault(group.label, []).extend([group.text] if group.text else [])
    return tuple(
        Indicators(label=label, items=tuple(found), text="\n\n".join(texts[label]))
        for label, found in items.items()
    )


B = TypeVar("B", bound=Block)

_BACKTICKED = re.compile(r"(.*?)\s*\(?`([^`]*)`\)?")
_BLOCKS = (RULES_INFO, CHECKS_INFO)
_NUMBERING = re.compile(r"[0-9]+[.)]\s+")


class CriterionText(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion as the document writes it, before the front matter's scale is known."""

    id: str
    name: str
    place: Place
    definition: str = ""
    indicators: tuple[Indicators, ...] = ()
    table: Table | None = None
    rules: Fence | None = None
    checks: Fence | None = None
    seen: tuple[Block, ...] = ()


def snake_case(heading: str) -> str:
    """Return the id of a heading: ``2. Trust & Boundaries`` is ``trust_boundaries``."""
    plain = unicodedata.normalize("NFKD", _NUMBERING.sub("", heading, count=1).casefold())
    ascii_only = plain.encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "_", ascii_only).strip("_")


def read_criterion(
    body: Body, heading: Heading, blocks: Sequence[Block], end: int, findings: Findings
) -> CriterionText:
    """Read the blocks below one ``###`` heading."""
    place = Place(heading.start + 1, body.column(heading.start))
    name, criterion_id = _read_heading(heading.text, place, findings)
    tables = [block for block in blocks if isinstance(block, Table)]
    fences = [block for block in blocks if isinstance(block, Fence) and _is_read(block, findings)]
    of = {info: [block for block in fences if block.info == info] for info in _BLOCKS}
    table = _only(tables, "table", body, findings)
    rules = _only(of[RULES_INFO], "rules block", body, findings)
    checks = _only(of[CHECKS_INFO], "checks block", body, findings)
    check_swallowed(body, blocks, findings)
    structure = sorted(
        (block for block in (table, rules, checks) if block is not None),
        key=lambda block: block.start,
    )
    groups = read_indicators(body, blocks, end, structure, findings)
    taken = sorted(
        [*structure, *(block for group in groups for block in group.taken)],
        key=lambda block: block.start,
    )
    return CriterionText(
        id=criterion_id,
        name=name,
        place=place,
        definition=body.text(heading.end, end, taken),
        indicators=merge_groups(groups),
        table=table,
        rules=rules,
        checks=checks,
        seen=(*tables, *fences),
    )


def heading_id(text: str) -> tuple[str, str]:
    """Return the name and the id that a heading gives: in backticks behind it, or its own."""
    if match := _BACKTICKED.fullmatch(text):
        return without_closing_hashes(match[1]) or match[2], match[2]
    return text, snake_case(text)


def _read_heading(text: str, place: Place, findings: Findings) -> tuple[str, str]:
    name, criterion_id = heading_id(text)
    if NAME.fullmatch(criterion_id) is None:
        problem = f"the heading `{text}` gives no usable id" if text else "a criterion has no name"
        hint = f"put one in backticks behind the heading; {NAME_HINT}"
        findings.add(place, "bad-criterion-id", problem, hint)
    return name, criterion_id


def _is_read(fence: Fence, findings: Findings) -> bool:
    if fence.info.lower() in {"yaml", "yml"}:
        problem = f"a fenced block `{fence.info}` in a criterion is not read"
        hint = f"call it `{RULES_INFO}` or `{CHECKS_INFO}` if it holds the automated scoring"
        findings.add(Place(fence.start + 1), "unread-block", problem, hint)
    return fence.info in _BLOCKS and fence.closed


def _only(found: Sequence[B], what: str, body: Body, findings: Findings) -> B | None:
    for block in found[1:]:
        place = Place(block.start + 1, body.column(block.start))
        problem = f"the criterion has a second {what} (the first is on line {found[0].start + 1})"
        findings.add(place, "second-block", problem, "keep one")
    return found[0] if found else None


_RANGE = re.compile(rf"({NUMBER})(?:\s*(?:\.\.|-|\u2013)\s*({NUMBER}))?")
_TWO_COLUMNS, _THREE_COLUMNS = 2, 3
_MOST_ROWS = 100


class Levels(msgspec.Struct, frozen=True, kw_only=True):
    """A table of levels: its column headings, its rows, and the decimals its scores have."""

    columns: tuple[str, ...] = ()
    rows: tuple[Level, ...] = ()
    decimals: int = 0


def read_levels(body: Body, table: Table, scale: Scale | None, findings: Findings) -> Levels:
    """Read a criterion's table of levels and check it against the scale, if known."""
    header, *rows = table.rows
    place = Place(header.line + 1)
    problem = ""
    if _RANGE.fullmatch(_bare_cell(header.cells[0])):
        problem = f"the first row, `{header.cells[0]}`, is the header of the table and no level"
    elif len(header.cells) not in (_TWO_COLUMNS, _THREE_COLUMNS):
        problem = f"the table of levels has {counted(len(header.cells), 'column')}"
    elif not 1 <= len(rows) <= _MOST_ROWS:
        problem = f"the table of levels has {counted(len(rows), 'row')}"
    if problem:
        hint = f"put 1 to {_MOST_ROWS} rows of score, label if any, and meaning below a header"
        findings.add(place, "bad-levels", problem, hint)
        return Levels()
    levels: dict[Level, int] = {}
    for row in rows:
        level = _read_level(body, row, len(header.cells), scale, findings)
        if level is not None and not _overlaps(level, levels, body, row, findings):
            levels[level] = row.line
    decimals = 0
    if scale is not None and scale.continuous:
        written = [_RANGE.fullmatch(_bare_cell(row.cells[0])) for row in rows]
        numbers = [number for match in written if match for number in match.groups() if number]
        decimals = max(map(decimals_of, numbers), default=0)
    if scale is not None and len(levels) == len(rows):
        _check_cover([*levels], decimals, scale, place, findings)
    return Levels(columns=header.cells, rows=tuple(levels), decimals=decimals)


def _overlaps(
    level: Level, lines: Mapping[Level, int], body: Body, row: TableRow, findings: Findings
) -> bool:
    for other, line in lines.items():
        if level.low <= other.high and other.low <= level.high:
            problem = f"the level `{row.cells[0]}` overlaps the one on line {line + 1}"
            place = Place(row.line + 1, body.column(row.line, row.cells[0]))
            findings.add(place, "bad-levels", problem, "let each score fall into one of them")
            return True
    return False


def _read_level(
    body: Body, row: TableRow, width: int, scale: Scale | None, findings: Findings
) -> Level | None:
    place = Place(row.line + 1, body.column(row.line, row.cells[0]))
    if row.written > width:
        problem = f"the row has {row.written} cells and the header {width}"
        findings.add(place, "bad-levels", problem, "write a pipe inside a cell as `\\|`")
        return None
    try:
        low, high = _read_range(row.cells[0])
    except Unreadable as error:
        findings.add_unreadable(place, "bad-levels", error)
        return None
    if scale is not None and not _check_scale((low, high), scale, place, findings):
        return None
    meaning = row.cells[-1]
    if not meaning:
        findings.add(
            place, "bad-levels", f"the level `{row.cells[0]}` has no meaning", "say what it means"
        )
        return None
    label = row.cells[1] if width == _THREE_COLUMNS else ""
    return Level(low=low, high=high, label=label, meaning=meaning)


def _check_scale(ends: tuple[float, float], scale: Scale, place: Place, findings: Findings) -> bool:
    for end in ends:
        if not scale.accepts(end):
            limits = map(show_number, scale.ends)
            hint = f"use a score from {' to '.join(limits)}, or change the scale"
            if scale.contains(end):
                hint = f"write the scale as `{scale.as_continuous}` to allow fractions"
            problem = f"the level {show_number(end)} is not on the scale {scale}"
            findings.add(place, "level-outside-scale", problem, hint)
            return False
    return True


def _read_range(text: str) -> tuple[float, float]:
    match = _RANGE.fullmatch(_bare_cell(text))
    low = read_number(match[1]) if match else None
    high = read_number(match[2] or match[1]) if match else None
    if low is None or high is None:
        raise Unreadable(
            f"`{text}` is not a score", "begin each row with a score such as `3` or `0.8-0.9`"
        )
    if low > high:
        raise Unreadable(f"the range `{text}` runs downwards", "write the lower end first")
    return low, high


def _bare_cell(cell: str) -> str:
    return cell.strip("*` ")


def _check_cover(
    levels: Sequence[Level], decimals: int, scale: Scale, place: Place, findings: Findings
) -> None:
    """Where a table has ranges, every score must fall into one of them (C11)."""
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


MOST_CRITERIA: Final = 100


def read_criteria(body: Body, outline: Outline, findings: Findings) -> list[CriterionText]:
    """Read the criteria of a document."""
    part = outline.part(CRITERIA)
    if part is None:
        return []
    headings = criterion_headings(part)
    if not headings:
        hint = "add a `###` heading for each criterion"
        findings.add(part.place, "no-criteria", f"`## {CRITERIA}` holds no criterion", hint)
    if len(headings) > MOST_CRITERIA:
        problem = f"there are more than {MOST_CRITERIA} criteria"
        findings.add(part.place, "too-large", problem, "split it into several rubrics")
    texts: list[CriterionText] = []
    first_lines: dict[str, int] = {}
    found = below(headings, part.blocks, part.end)
    for heading, blocks, end in itertools.islice(found, MOST_CRITERIA):
        text = read_criterion(body, heading, blocks, end, findings)
        first = first_lines.setdefault(text.id, text.place.line)
        if first != text.place.line:
            problem = f"the criterion `{text.id}` is defined twice (first on line {first})"
            hint = "rename one, or give it an id of its own in backticks"
            findings.add(text.place, "duplicate-criterion", problem, hint)
        texts.append(text)
    return texts


def joined_indicators(
    inherited: Sequence[Indicators], own: Sequence[Indicators]
) -> tuple[Indicators, ...]:
    """Return the base's lists with the items that lists of the same label add, and new lists."""
    mine = {each.label: each for each in own}
    lists = [_longer(each, mine.pop(each.label, None)) for each in inherited]
    return (*lists, *mine.values())


def _longer(inherited: Indicators, own: Indicators | None) -> Indicators:
    if own is None:
        return inherited
    items = tuple(dict.fromkeys((*inherited.items, *own.items)))
    return Indicators(label=inherited.label, items=items, text=own.text or inherited.text)
