"""How two runs side by side are shown."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from jurybox.cli.output import plain, wide_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from jurybox.reporting.attention import Place
    from jurybox.reporting.run_diff import Change, GateValues, RunDiff
    from jurybox.reporting.significance import Difference
    from jurybox.reporting.view import RunView

_LONGEST: Final = 30
_SMALLEST_P: Final = 0.0001
_WORDS: Final = {True: "yes", False: "no", None: "-"}


def print_diff(diff: "RunDiff") -> None:
    """Print what two runs have in common and what not, the most telling first."""
    from jurybox.cli.group_view import print_groups

    out = wide_console()
    _print_head(out, diff)
    for line in _cautions(diff):
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
            out.print(plain(f"only in {name}  {_places(count, listed)}"))
    out.print()
    out.print(_figures(diff))
    if diff.gates:
        out.print(_gates(diff.gates))
    for name, word in _verdicts(diff):
        out.print(plain(f"{name}  {word}"))


def _print_head(out: "Console", diff: "RunDiff") -> None:
    for name, view in (("A", diff.a), ("B", diff.b)):
        samples: int = view.summary["samples"]
        count = "1 sample" if samples == 1 else f"{samples} samples"
        out.print(plain(f"{name}  {view.run_id}  {view.suite}, {view.status}, {count}", "bold"))
    if diff.identical is None:
        out.print(plain("records  can't be compared as a whole: a run isn't finished"))
    elif diff.identical:
        out.print(plain("records  identical, to the hash", style="green"))
    else:
        same = diff.counts.identical_records
        out.print(plain(f"records  not identical: {same} of them are the same in both"))


def _cautions(diff: "RunDiff") -> Iterator[str]:
    """Say what may explain the differences before anybody reads them."""
    if diff.headline is None:
        yield "the rubrics have no score in common, so no sample is higher or lower"
    for each in diff.fields:
        yield f"differs  {each.field}: {_short(each.a)} | {_short(each.b)}"
    for name, view in (("A", diff.a), ("B", diff.b)):
        for note in view.notes:
            yield f"note on {name}  {note}"


def _print_tested(out: "Console", diff: "RunDiff") -> None:
    """Print which figures differ by more than chance, and how sure that is."""
    if not diff.tested:
        return
    headings = ("tested", "A", "B", "B - A", "interval", "p, corrected", "n", "detectable", "B is")
    table = _table(headings, right=headings[1:-1])
    for each in diff.tested:
        colour = "red" if each.regression else "green" if _gained(each) else ""
        table.add_row(*(plain(cell, style=colour) for cell in _tested(each)))
    out.print()
    out.print(table)
    for (only_in_a, only_in_b), names in _one_sided(diff.tested).items():
        counts = f"{only_in_a} only in A, {only_in_b} only in B"
        out.print(plain(f"on one side only  {', '.join(names)}: {counts}", style="yellow"))
    out.print(plain(_conclusion(diff), style="bold"))


def _one_sided(tested: "Sequence[Difference]") -> dict[tuple[int, int], list[str]]:
    """Return the figures that samples have in one run alone, by how many do."""
    found: dict[tuple[int, int], list[str]] = {}
    for each in tested:
        if each.only_in_a or each.only_in_b:
            found.setdefault((each.only_in_a, each.only_in_b), []).append(each.figure)
    return found


def _gained(tested: "Difference") -> bool:
    return tested.wanted != "neither" and tested.comparison.verdict == tested.wanted


def _tested(tested: "Difference") -> Iterator[str]:
    from jurybox.reporting.figures import shown, signed

    made = tested.comparison
    interval = made.interval
    yield tested.figure
    yield from (shown(made.mean_a), shown(made.mean_b), signed(made.difference))
    yield "-" if interval is None else f"{signed(interval.low)} to {signed(interval.high)}"
    p = made.p_adjusted
    yield "-" if p is None else f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}"
    yield str(made.n)
    yield shown(made.detectable)
    yield made.verdict


def _conclusion(diff: "RunDiff") -> str:
    levels = [
        f"{100 * each.comparison.interval.level:g}%"
        for each in diff.tested
        if each.comparison.interval is not None
    ]
    if diff.regressions:
        return f"regression at {levels[0]}: {', '.join(diff.regressions)}"
    gained = [each.figure for each in diff.tested if _gained(each)]
    if gained:
        return f"gained at {levels[0]}: {', '.join(gained)}; no regression"
    return "no figure is higher or lower by more than chance" + (
        f" at {levels[0]}" if levels else ""
    )


def _print_counts(out: "Console", diff: "RunDiff") -> None:
    counts = diff.counts
    parts = [
        f"{counts.higher} higher",
        f"{counts.lower} lower",
        f"{counts.changed} changed otherwise",
        f"{counts.same} the same",
        f"{counts.only_in_a} only in A",
        f"{counts.only_in_b} only in B",
    ]
    by = "" if diff.headline is None else f" by {diff.headline}"
    out.print()
    out.print(plain(f"samples{by}  {', '.join(parts)}", style="bold"))
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
    yield "\n".join(_else(change, headline))


def _else(change: "Change", headline: str | None) -> Iterator[str]:
    """Say what changed beside the score as a whole."""
    from jurybox.reporting.figures import shown, signed

    for name, (a, b) in change.flips().items():
        yield f"{name} {_word(a)} -> {_word(b)}"
    for each in change.figures:
        if each.figure != headline and each.a != each.b:
            apart = "" if each.difference is None else f" ({signed(each.difference)})"
            yield f"{each.figure} {shown(each.a)} -> {shown(each.b)}{apart}"


def _places(count: int, listed: "Sequence[Place]") -> str:
    names = [
        place.id if place.repeat == 0 else f"{place.id} (repeat {place.repeat})" for place in listed
    ]
    more = [] if count == len(listed) else [f"and {count - len(listed)} more"]
    return f"{count}: {', '.join([*names, *more])}"


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


def _verdicts(diff: "RunDiff") -> Iterator[tuple[str, str]]:
    for name in ("release_ready", "decision"):
        a, b = _verdict(diff.a, name), _verdict(diff.b, name)
        if (a, b) != (None, None):
            yield name.replace("_", " "), f"{_word(a)} | {_word(b)}"


def _verdict(view: "RunView", name: str) -> bool | str | None:
    return view.as_data().get(name)


def _word(value: bool | str | None) -> str:
    return _short(value) if isinstance(value, str) else _WORDS[value]


def _short(value: Any) -> str:  # noqa: ANN401 - anything that metadata can hold
    import msgspec

    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _table(headings: Sequence[str], right: Sequence[str]) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(
            plain(heading), overflow="fold", justify="right" if heading in right else "left"
        )
    return table
