"""``jurybox diff``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jurybox.cli.options import (
    cluster_option,
    json_option,
    level_option,
    opened,
    seed_option,
    store_option,
)
from jurybox.cli.output import add_row, output_file, plain, print_json, say, table, wide_console
from jurybox.cli.signals import FAILED, FINE
from jurybox.documents.numbers import MISSING, dollars, metric_value, shown, signed
from jurybox.text_format import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from jurybox.reporting.run_diff import GatePair, GroupPair, MetricPair, RunDiff, SampleChange
    from jurybox.reporting.side_by_side import SideBySide
    from jurybox.statistics.metric_differences import MetricDifference

_LIMIT: Final = 20
_MOST_LINES: Final = 3
_MOST_IN_PAGE: Final = 200
# More columns don't fit on a screen.
_MOST_ACROSS: Final = 8
_VISIBLE: Final = 0.005


@click.command("diff")
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="RUN_B")
@click.argument("more", metavar="[RUN]...", nargs=-1)
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    help="Write the outputs of the runs in columns, with the tests, to a page.",
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help=f"List at most N changed samples; defaults to {_LIMIT}, with --json to all.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression"]),
    help="Exit with 1 where a metric of B is worse than A's beyond chance.",
)
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Labels from people, instead of reviews and of those in the rows: which judge is right?",
)
@cluster_option
@level_option
@seed_option
@store_option
@json_option
def command(  # noqa: PLR0917 - click passes them by name
    run_a: str,
    run_b: str,
    more: tuple[str, ...],
    output: str | None,
    limit: int | None,
    fail_on: str | None,
    gold: Path | None,
    store_url: str | None,
    as_json: bool,
    **tests: Any,  # noqa: ANN401 - those of `CompareOptions`
) -> int:
    """Compare two runs: their settings, their metrics, and every sample that changed.

    Of more than two runs, each is tested against RUN_A. A run is named by its id, its name, a tag,
    or `last`. Samples are matched by id and repeat.
    Each metric that both runs have is tested over these pairs: the difference with its interval,
    and a p value with Holm's correction over all of them. B counts as higher or lower only where
    the interval and the p value agree. Changed samples are listed, changed verdicts (passed,
    winner, scored, flagged) before changed scores, larger differences before smaller ones. Latency
    is shown, but neither counts as a change nor is tested. Where people have labeled the recorded
    responses, it says which run's judge is right more often. The exit code is 0 whether or not the
    runs differ, unless --fail-on is given.

    \b
    Examples:
      jurybox diff 20260301-0914 last
      jurybox diff 20260301-0914 last --fail-on regression
      jurybox diff 20260301-0914 last --cluster conversation --limit 100
      jurybox diff v1 v2 v3 -o side-by-side.html
      jurybox diff 20260301-0914 last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.labels import labels_for_diff
    from jurybox.app.view_run import view_run
    from jurybox.reporting.compare_runs import ComparedRun, CompareOptions, compare_runs
    from jurybox.reporting.side_by_side import side_by_side
    from jurybox.wiring import find_run

    if gold is not None and more:
        raise click.UsageError("--gold is for two runs")
    if output is not None and not output.endswith(".html"):
        raise click.UsageError("--output is an .html file")
    usual = None if as_json else _LIMIT
    with opened(store_url) as store:
        rows = [find_run(store, run) for run in (run_a, run_b, *more)]
        options = CompareOptions(
            limit=usual if limit is None else limit,
            gold={} if more else labels_for_diff(store, rows[0], rows[1], gold),
            **tests,
        )
        runs = [ComparedRun(row=row, view=view_run(row, store)) for row in rows]
        if more or output is not None:
            most = sys.maxsize if as_json else _MOST_IN_PAGE
            compared = side_by_side(store, runs, options, most if limit is None else limit)
            _put(compared, output, as_json=as_json)
            lost = any(each.regressions for each in compared.differences)
            return FAILED if fail_on and lost else FINE
        one, other = runs
        diff = compare_runs(store, one, other, options)
    if as_json:
        print_json(diff.as_data())
    else:
        _print(diff)
    return FAILED if fail_on and diff.regressions else FINE


def _put(compared: SideBySide, output: str | None, *, as_json: bool) -> None:
    """Write several runs to a page, or print them."""
    if output is not None:
        from jurybox.reporting.html.html_render import side_by_side_html

        with output_file(output) as file:
            file.write(side_by_side_html(compared).encode(errors="replace"))
        say(f"wrote {output}: {counted(len(compared.samples), 'sample')}")
    if as_json:
        print_json(compared.as_data())
    elif output is None:
        print_side_by_side(compared)


def print_side_by_side(compared: SideBySide) -> None:
    """Print the metrics of several runs in columns, and each against the first."""
    out = wide_console()
    made = table("metric", *compared.names, right=compared.names)
    for name, values in compared.metrics.items():
        add_row(made, name, *(metric_value(name, value) for value in values))
    add_row(made, "passes", *("yes" if view.passed else "no" for view in compared.runs))
    add_row(made, "cost", *(dollars(view.cost.get("dollars")) for view in compared.runs))
    out.print(made)
    for title, diff in compared.conclusions():
        style = "bold red" if diff.regressions else "bold"
        out.print(plain(f"{title}  {diff.conclusion()}", style))
        for each in diff.tested:
            if each.metric in {compared.headline, *diff.regressions}:
                metric, a, b, apart, interval, p, n, *_ = _tested(each)
                line = f"  {metric} {a} -> {b} ({apart}, {interval}; p {p}, n {n})"
                out.print(plain(line))


def _print(diff: RunDiff) -> None:
    from jurybox.reporting.run_diff import places

    out = wide_console()
    _print_head(out, diff)
    for line in diff.cautions():
        out.print(plain(line, style="yellow"))
    _print_tested(out, diff)
    _print_groups(out, "scenario", diff.scenarios)
    _print_groups(out, "demographic", diff.demographics)
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
    out.print(_metrics(diff))
    if diff.gates:
        out.print(_gates(diff.gates))
    for name, word in diff.verdicts():
        out.print(plain(f"{name}  {word}"))


def _print_head(out: Console, diff: RunDiff) -> None:
    for name, view in (("A", diff.a), ("B", diff.b)):
        count = counted(view.summary["samples"], "sample")
        out.print(plain(f"{name}  {view.run_id}  {view.suite}, {view.status}, {count}", "bold"))
    out.print(plain(f"records  {diff.records_line()}", style="green" if diff.identical else ""))


def _print_tested(out: Console, diff: RunDiff) -> None:
    """Print which metrics differ beyond chance."""
    if not diff.tested:
        return
    headings = ("tested", "A", "B", "B - A", "interval", "p, corrected", "n", "detectable", "B is")
    made = table(*headings, right=headings[1:-1])
    for each in diff.tested:
        color = "red" if each.regression else "green" if each.gained else ""
        add_row(made, *_tested(each), style=color)
    out.print()
    out.print(made)
    for (only_in_a, only_in_b), names in diff.one_sided().items():
        counts = f"{only_in_a} only in A, {only_in_b} only in B"
        out.print(plain(f"on one side only  {', '.join(names)}: {counts}", style="yellow"))
    out.print(plain(diff.conclusion(), style="bold"))
    judges = diff.judges_line()
    if judges is not None:
        out.print(plain(judges, style="bold"))


def _tested(tested: MetricDifference) -> Iterator[str]:
    from jurybox.reporting.run_diff import p_value

    made = tested.comparison
    interval = made.interval
    yield tested.metric
    yield from (shown(made.mean_a), shown(made.mean_b), signed(made.difference))
    yield "-" if interval is None else f"{signed(interval.low)} to {signed(interval.high)}"
    yield p_value(made.p_adjusted)
    yield str(made.n)
    yield shown(made.detectable)
    yield made.verdict


def _print_counts(out: Console, diff: RunDiff) -> None:
    counts = diff.counts
    by = "" if diff.headline is None else f" by {diff.headline}"
    out.print()
    out.print(plain(f"samples{by}  {counts}", style="bold"))
    left = counts.higher + counts.lower + counts.changed - len(diff.samples)
    if left > 0:
        more = counted(left, "more changed sample")
        out.print(plain(f"--limit N lists {more}", style="dim"))


def _samples(diff: RunDiff) -> Table:
    headline = diff.headline or "score"
    headings = ("sample", "repeat", "change", f"{headline} A", "B", "difference", "what else")
    made = table(*headings, right=(f"{headline} A", "B", "difference", "repeat"))
    for change in diff.samples:
        add_row(made, *_sample(change, diff.headline))
    return made


def _sample(change: SampleChange, headline: str | None) -> Iterator[str]:
    yield from (change.id, str(change.repeat), change.change)
    whole = next((each for each in change.metrics if each.metric == headline), None)
    if whole is None:
        yield from ("-", "-", "-")
    else:
        yield from (shown(whole.a), shown(whole.b), signed(whole.difference))
    yield "\n".join(_few([*change.details(headline)]))


def _few(lines: Sequence[str]) -> Sequence[str]:
    """Return at most three lines, so that many samples fit on a screen."""
    if len(lines) <= _MOST_LINES:
        return lines
    first = lines[: _MOST_LINES - 1]
    return [*first, f"and {len(lines) - len(first)} more in --json"]


def _metrics(diff: RunDiff) -> Table:
    headings = ("metric", "A", "n A", "B", "n B", "difference")
    made = table(*headings, right=headings[1:])
    for each in diff.metrics:
        cells = (shown(each.a), shown(each.n_a), shown(each.b), shown(each.n_b))
        add_row(made, each.metric, *cells, signed(each.difference))
    return made


def _gates(gates: Sequence[GatePair]) -> Table:
    made = table("gate", "A", "passes", "B", "passes", right=("A", "B"))
    for each in gates:
        cells = [plain(each.gate)]
        for gate in (each.a, each.b):
            if gate is None:
                cells += [plain("none"), plain("-")]
            else:
                passes = plain("yes", "green") if gate.passed else plain("no", "red")
                cells += [plain(shown(gate.value)), passes]
        add_row(made, *cells)
    return made


def _print_groups(out: Console, what: str, groups: Sequence[GroupPair]) -> None:
    """Print a row per metric and a column per group, A and B in every cell.

    More than a few columns don't fit on a screen: then each group is a row, with its first metric.
    """
    if not groups:
        return
    out.print()
    out.print(plain(f"A -> B by {what}", style="bold"))
    lines: list[Sequence[str | Text]] = [("metric", *(each.group for each in groups))]
    lines.append(("samples", *map(_group_samples, groups)))
    metrics = zip(*(each.metrics for each in groups), strict=True)
    lines += [(row[0].metric, *map(_cell, row)) for row in metrics]
    if len(groups) > _MOST_ACROSS:
        lines = list(zip((what, *lines[0][1:]), *lines[1:3], strict=True))
    head = [str(cell) for cell in lines[0]]
    made = table(*head, right=head[1:])
    for line in lines[1:]:
        add_row(made, *line)
    out.print(made)


def _group_samples(group: GroupPair) -> str:
    a, b = ("0" if count is None else str(count) for count in (group.samples_a, group.samples_b))
    return a if a == b else f"{a} -> {b}"


def _cell(values: MetricPair) -> Text:
    a, b = _short(values.a), _short(values.b)
    apart = values.difference
    if apart is None or abs(apart) < _VISIBLE:
        return plain(f"{a} -> {b}" if a != b else a, "dim" if apart is not None else "")
    return plain(f"{a} -> {b}", "green" if apart > 0 else "red")


def _short(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
