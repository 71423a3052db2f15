"""How two runs side by side are shown."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from jurybox.cli.output import plain, wide_console
from jurybox.reporting.diff_words import (
    cautions,
    changes_beside,
    conclusion,
    count_line,
    gained,
    one_sided,
    p_value,
    places,
    records_line,
    verdicts,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from jurybox.reporting.run_diff import Change, GateValues, RunDiff
    from jurybox.reporting.significance import Difference

_WORDS: Final = {True: "yes", False: "no", None: "-"}


def print_diff(diff: "RunDiff") -> None:
    """Print what two runs have in common and what not, the most telling first."""
    from jurybox.cli.group_view import print_groups

    out = wide_console()
    _print_head(out, diff)
    for line in cautions(diff):
        out.print(plain(line, style="yellow"))
    _print_tested(out, diff)
    print_groups("scenario", diff.scenarios)
    print_groups("demographic", diff.demographics)
    _print_counts(out, diff)
    if diff.samples:
        out.print(_samples(diff))
    for name, count, listed in (
        ("A", diff.counts.only_in_a, diff.only_in_a),
        ("B", diff.counts.only_in_b, diff.only_in_b),
    ):
        if count:
            out.print(plain(f"only in {name}  {places(count, listed)}"))
    out.print()
    out.print(_figures(diff))
    if diff.gates:
        out.print(_gates(diff.gates))
    for name, word in verdicts(diff):
        out.print(plain(f"{name}  {word}"))


def _print_head(out: "Console", diff: "RunDiff") -> None:
    for name, view in (("A", diff.a), ("B", diff.b)):
        samples: int = view.summary["samples"]
        count = "1 sample" if samples == 1 else f"{samples} samples"
        out.print(plain(f"{name}  {view.run_id}  {view.suite}, {view.status}, {count}", "bold"))
    out.print(plain(f"records  {records_line(diff)}", style="green" if diff.identical else ""))


def _print_tested(out: "Console", diff: "RunDiff") -> None:
    """Print which figures differ by more than chance, and how sure that is."""
    if not diff.tested:
        return
    headings = ("tested", "A", "B", "B - A", "interval", "p, corrected", "n", "detectable", "B is")
    table = _table(headings, right=headings[1:-1])
    for each in diff.tested:
        colour = "red" if each.regression else "green" if gained(each) else ""
        table.add_row(*(plain(cell, style=colour) for cell in _tested(each)))
    out.print()
    out.print(table)
    for (only_in_a, only_in_b), names in one_sided(diff.tested).items():
        counts = f"{only_in_a} only in A, {only_in_b} only in B"
        out.print(plain(f"on one side only  {', '.join(names)}: {counts}", style="yellow"))
    out.print(plain(conclusion(diff), style="bold"))


def _tested(tested: "Difference") -> Iterator[str]:
    from jurybox.reporting.figures import shown, signed

    made = tested.comparison
    interval = made.interval
    yield tested.figure
    yield from (shown(made.mean_a), shown(made.mean_b), signed(made.difference))
    yield "-" if interval is None else f"{signed(interval.low)} to {signed(interval.high)}"
    yield p_value(made.p_adjusted)
    yield str(made.n)
    yield shown(made.detectable)
    yield made.verdict


def _print_counts(out: "Console", diff: "RunDiff") -> None:
    counts = diff.counts
    by = "" if diff.headline is None else f" by {diff.headline}"
    out.print()
    out.print(plain(f"samples{by}  {count_line(diff)}", style="bold"))
    left = counts.higher + counts.lower + counts.changed - len(diff.samples)
    if left > 0:
        more = "1 more changed sample is" if left == 1 else f"{left} more changed samples are"
        out.print(plain(f"{more} shown with --all", style="dim"))


def _samples(diff: "RunDiff") -> "Table":
    headline = diff.headline or "score"
    headings = ("sample", "repeat", "change", f"{headline} A", "B", "difference", "what else")
    table = _table(headings, right=(f"{headline} A", "B", "difference", "repeat"))
    for change in diff.samples:
        table.add_row(*(plain(cell) for cell in _sample(change, diff.headline)))
    return table


def _sample(change: "Change", headline: str | None) -> Iterator[str]:
    from jurybox.reporting.figures import shown, signed

    yield from (change.id, str(change.repeat), change.change)
    whole = next((each for each in change.figures if each.figure == headline), None)
    if whole is None:
        yield from ("-", "-", "-")
    else:
        yield from (shown(whole.a), shown(whole.b), signed(whole.difference))
    yield "\n".join(changes_beside(change, headline))


def _figures(diff: "RunDiff") -> "Table":
    from jurybox.reporting.figures import shown, signed

    headings = ("figure", "A", "n A", "B", "n B", "difference")
    table = _table(headings, right=headings[1:])
    for each in diff.figures:
        cells = (shown(each.a), shown(each.n_a), shown(each.b), shown(each.n_b))
        row = (each.figure, *cells, signed(each.difference))
        table.add_row(*(plain(cell) for cell in row))
    return table


def _gates(gates: "Sequence[GateValues]") -> "Table":
    from jurybox.reporting.figures import shown

    table = _table(("gate", "A", "holds", "B", "holds"), right=("A", "B"))
    for each in gates:
        cells = [plain(each.gate)]
        for gate in (each.a, each.b):
            value = "none" if gate is None else shown(gate.value)
            cells.append(plain(value))
            colour = "" if gate is None else "green" if gate.passed else "red"
            cells.append(plain("-" if gate is None else _WORDS[gate.passed], style=colour))
        table.add_row(*cells)
    return table


def _table(headings: Sequence[str], right: Sequence[str]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(
            plain(heading), overflow="fold", justify="right" if heading in right else "left"
        )
    return table
