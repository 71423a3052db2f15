"""The table of levels of a criterion."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import NUMBER, decimals_of, read_number, show_number
from jurybox.errors import Unreadable
from jurybox.rubric.document.blocks import Body, Row, Table
from jurybox.rubric.model import Level
from jurybox.rubric.scale import Scale

_RANGE = re.compile(rf"({NUMBER})(?:\s*(?:\.\.|-|\u2013)\s*({NUMBER}))?")
_TWO_COLUMNS, _THREE_COLUMNS = 2, 3
_MOST_ROWS = 100


class Levels(msgspec.Struct, frozen=True, kw_only=True):
    """A table of levels: its column headings, its rows, and the decimals its scores have."""

    columns: tuple[str, ...] = ()
    rows: tuple[Level, ...] = ()
    decimals: int = 0


def read_levels(body: Body, table: Table, scale: Scale | None, findings: Findings) -> Levels:
    """Read a criterion's table of levels and hold it against the scale, where that is known."""
    header = table.rows[0]
    width = len(header.cells)
    if _RANGE.fullmatch(_bare(header.cells[0])):
        problem = f"the first row, `{header.cells[0]}`, is the header of the table and no level"
        mend = "put a row `| Score | Meaning |` above it"
        findings.add(Place(header.line + 1), "bad-levels", problem, mend)
    if width not in (_TWO_COLUMNS, _THREE_COLUMNS):
        problem = f"the table of levels has {width} column{'s' if width > 1 else ''}"
        mend = "use two (score, meaning) or three (score, label, meaning)"
        findings.add(Place(header.line + 1), "bad-levels", problem, mend)
        return Levels()
    if len(table.rows) - 1 > _MOST_ROWS:
        problem = f"the table of levels has more than {_MOST_ROWS} rows"
        findings.add(Place(header.line + 1), "bad-levels", problem, "describe ranges")
        return Levels()
    if len(table.rows) == 1:
        findings.add(
            Place(header.line + 1),
            "bad-levels",
            "the table of levels is empty",
            "add a row per level",
        )
    levels: list[Level] = []
    lines: dict[Level, int] = {}
    for row in table.rows[1:]:
        level = _read_level(body, row, width, scale, findings)
        if level is not None:
            place = Place(row.line + 1, body.column(row.line, row.cells[0]))
            if _check_overlap(level, lines, place, findings):
                continue
            levels.append(level)
            lines[level] = row.line
    decimals = 0
    if scale is not None and scale.continuous:
        written = [_RANGE.fullmatch(_bare(row.cells[0])) for row in table.rows[1:]]
        numbers = [number for match in written if match for number in match.groups() if number]
        decimals = max(map(decimals_of, numbers), default=0)
    if scale is not None and len(levels) == len(table.rows) - 1:
        _check_cover(levels, decimals, scale, Place(header.line + 1), findings)
    return Levels(columns=header.cells, rows=tuple(levels), decimals=decimals)


def _check_overlap(
    level: Level, lines: Mapping[Level, int], place: Place, findings: Findings
) -> bool:
    for other, line in lines.items():
        if level.low <= other.high and other.low <= level.high:
            same = (level.low, level.high) == (other.low, other.high)
            problem = f"the level `{_ends(level)}` is given twice (first on line {line + 1})"
            mend = "keep one"
            if not same:
                problem = f"the level `{_ends(level)}` overlaps `{_ends(other)}` on line {line + 1}"
                mend = "let each score fall into one of them"
            findings.add(place, "bad-levels", problem, mend)
            return True
    return False


def _ends(level: Level) -> str:
    ends = dict.fromkeys([show_number(level.low), show_number(level.high)])
    return "-".join(ends)


def _read_level(
    body: Body, row: Row, width: int, scale: Scale | None, findings: Findings
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
            limits = (show_number(each) for each in (scale.low, scale.high))
            mend = f"use a score from {' to '.join(limits)}, or change the scale"
            if not scale.continuous and scale.low <= end <= scale.high:
                both = f"{float(scale.low)}-{float(scale.high)}"
                mend = f"write the scale as `{both}` to allow fractions"
            problem = f"the level {show_number(end)} is not on the scale {scale}"
            findings.add(place, "level-outside-scale", problem, mend)
            return False
    return True


def _read_range(text: str) -> tuple[float, float]:
    match = _RANGE.fullmatch(_bare(text))
    low = read_number(match[1]) if match else None
    high = read_number(match[2] or match[1]) if match else None
    if low is None or high is None:
        raise Unreadable(
            f"`{text}` is not a score", "begin each row with a score such as `3` or `0.8-0.9`"
        )
    if low > high:
        raise Unreadable(f"the range `{text}` runs downwards", "write the lower end first")
    return low, high


def _bare(cell: str) -> str:
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
