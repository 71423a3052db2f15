"""``jurybox diff``."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from jurybox.cli.output import json_option, plain, print_json, wide_console
from jurybox.cli.stores import opened, store_option

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from jurybox.reporting.attention import Place
    from jurybox.reporting.run_diff import Change, GateValues, RunDiff
    from jurybox.reporting.view import RunView

_LIMIT: Final = 20
_LONGEST: Final = 30
_WORDS: Final = {True: "yes", False: "no", None: "-"}


@click.command("diff")
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="RUN_B")
@click.option("--all", "everything", is_flag=True, help="List all samples, also those that agree.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help=f"List at most N changed samples; {_LIMIT} where nothing is said, with --json all.",
)
@store_option
@json_option
def command(
    run_a: str,
    run_b: str,
    everything: bool,
    limit: int | None,
    store_url: str | None,
    as_json: bool,
) -> None:
    """Compare two runs: what they were made of, their figures, and every sample that changed.

    A run is named by its id, the beginning of one, or `last`. Samples are matched by id and repeat.
    Those that changed are listed, another verdict (passed, winner, scored, flagged) before another
    score, larger differences before smaller ones. Latency is shown and doesn't count as a change.
    Higher and lower are no more than that: whether a difference could be chance is not tested here.
    The exit code is 0 whether or not the runs differ.

    \b
    Examples:
      jurybox diff 20260301-0914 last
      jurybox diff 20260301-0914 last --limit 100
      jurybox diff 20260301-0914 last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.reporting.comparing import Side, compare
    from jurybox.wiring.runs import view_run
    from jurybox.wiring.stores import find_run

    if everything and limit is not None:
        raise click.UsageError("--all and --limit exclude each other")
    unbounded = everything or (as_json and limit is None)
    with opened(store_url) as store:
        rows = [find_run(store, run) for run in (run_a, run_b)]
        one, other = [Side(row=row, view=view_run(row, store)) for row in rows]
        most = None if unbounded else _LIMIT if limit is None else limit
        diff = compare(store, one, other, limit=most, same=everything)
    if as_json:
        print_json(diff.as_data())
    else:
        _print(diff)


def _print(diff: "RunDiff") -> None:
    from jurybox.cli.group_view import print_groups

    out = wide_console()
    _print_head(out, diff)
    for line in _cautions(diff):
        out.print(plain(line, style="yellow"))
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
