"""Scenarios, or demographics, of two runs side by side: what a change of a prompt did where."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.table import Table

from jurybox.cli.output import plain, wide_console
from jurybox.reporting.figures import MISSING

if TYPE_CHECKING:
    from rich.text import Text

    from jurybox.reporting.run_diff import GroupValues, Values

# More columns than that are no table to read on a screen.
_MOST_ACROSS: Final = 8
_SEEN: Final = 0.005


def print_groups(what: str, groups: "Sequence[GroupValues]") -> None:
    """Print a row for each figure and a column for each group, A and B in every cell."""
    if not groups:
        return
    out = wide_console()
    out.print()
    out.print(plain(f"A -> B by {what}", style="bold"))
    if len(groups) > _MOST_ACROSS:
        out.print(_down(what, groups))
    else:
        out.print(_across(groups))


def _across(groups: "Sequence[GroupValues]") -> Table:
    table = _table("figure", *(each.group for each in groups))
    table.add_row(plain("samples", "dim"), *(plain(_samples(each), "dim") for each in groups))
    for row in zip(*(each.figures for each in groups), strict=True):
        table.add_row(plain(row[0].figure), *(_cell(values) for values in row))
    return table


def _down(what: str, groups: "Sequence[GroupValues]") -> Table:
    figures = groups[0].figures[:1]
    table = _table(what, "samples", *(values.figure for values in figures))
    for group in groups:
        cells = (_cell(values) for values in group.figures[:1])
        table.add_row(plain(group.group), plain(_samples(group)), *cells)
    return table


def _samples(group: "GroupValues") -> str:
    a, b = ("0" if count is None else str(count) for count in (group.samples_a, group.samples_b))
    return a if a == b else f"{a} -> {b}"


def _cell(values: "Values") -> "Text":
    a, b = _short(values.a), _short(values.b)
    apart = values.difference
    if apart is None or abs(apart) < _SEEN:
        return plain(f"{a} -> {b}" if a != b else a, "dim" if apart is not None else "")
    return plain(f"{a} -> {b}", "green" if apart > 0 else "red")


def _short(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(plain(heading), overflow="fold", justify="right" if number else "left")
    return table
