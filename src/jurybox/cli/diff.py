"""``jurybox diff``."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from jurybox.app.gold_sets import labels_for_diff
from jurybox.app.view_run import reviewer_agreement, view_run
from jurybox.cli import options
from jurybox.cli.output import (
    output_file,
    plain,
    print_heading,
    print_line,
    print_result,
    print_table,
    say,
    wants_json,
    yes_or_no,
)
from jurybox.cli.signals import FAILED, FINE
from jurybox.documents.numbers import metric_change, metric_value, shown
from jurybox.reporting.attention import SamplePlace
from jurybox.reporting.compare_runs import CompareOptions, compare_runs
from jurybox.reporting.html.comparison import methods_used
from jurybox.reporting.html.html_render import MOST_COMPARED, comparison_html, side_by_side_html
from jurybox.reporting.metric_text import between, cost_of, gate_value, metric_title, p_value
from jurybox.reporting.run_changes import GroupPair, MetricPair, SampleChange, word
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.run_verdict import CorrectedGate, Verdict, verdict_of
from jurybox.reporting.side_by_side import SideBySide, side_by_side
from jurybox.rubric.metrics import WIN_RATE
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.metric_differences import MetricDifference
from jurybox.text_format import counted
from jurybox.wiring import find_run

_LIMIT: Final = 20
_MOST_LINES: Final = 3


@click.command("diff")
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="RUN_B")
@click.argument("more", metavar="[RUN]...", nargs=-1)
@options.option(
    "-o, --output FILE.html", "Write a page with the comparison and the outputs in columns."
)
@options.option(
    "--limit N",
    f"List at most N changed samples; defaults to {_LIMIT}, or to all with --json.",
    type=click.IntRange(0),
)
@options.option(
    "--fail-on [regression]",
    "Exit with 1 if a metric is significantly worse in B than in A.",
    type=click.Choice(["regression"]),
)
@options.gold_option
@options.cluster_option
@options.level_option
@options.seed_option
@options.store_option
@options.json_option
def command(  # noqa: PLR0917 - click passes them by name
    run_a: str,
    run_b: str,
    more: tuple[str, ...],
    output: str | None,
    limit: int | None,
    fail_on: str | None,
    gold: Path | None,
    **tests: Any,  # noqa: ANN401 - those of `CompareOptions`
) -> int:
    """Compare two runs: their settings, their metrics, and every sample that changed.

    Further runs are also tested against RUN_A. A run is named by its id, its name, a tag,
    or `last`. Samples are matched by id and repeat.
    Each metric that both runs have is tested over the matched samples: the difference with its
    interval, and a p value with Holm's correction over all metrics. B counts as higher or lower
    only if the interval excludes 0 and the p value is significant. Changed samples are listed:
    changed verdicts (passed, winner, scored, flagged) before changed scores, then by size of the
    difference. Latency is shown, but neither counted as a change nor tested. If people have labeled
    the recorded responses, it shows which run's judge is right more often. The exit code is 0 even
    if the runs differ, unless --fail-on is given.

    \b
    Examples:
      jurybox diff 20260301-0914 last
      jurybox diff 20260301-0914 last --fail-on regression
      jurybox diff 20260301-0914 last --cluster conversation --limit 100
      jurybox diff v1 v2 v3 -o side-by-side.html
      jurybox diff 20260301-0914 last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    if gold is not None and more:
        raise click.UsageError("--gold works with two runs only")
    if output is not None and not output.endswith(".html"):
        raise click.UsageError("--output must be an .html file")
    usual = None if wants_json() else _LIMIT if output is None else MOST_COMPARED
    with options.opened() as store:
        rows = [find_run(store, run) for run in (run_a, run_b, *more)]
        chosen = CompareOptions(
            limit=usual if limit is None else limit,
            gold={} if more else labels_for_diff(store, rows[0], rows[1], gold),
            **tests,
        )
        views = [view_run(row, store) for row in rows]
        verdicts = [verdict_of(each, reviewer_agreement(each, store)) for each in views]
        if more:
            most = sys.maxsize if wants_json() else MOST_COMPARED
            compared = side_by_side(store, views, chosen, most if limit is None else limit)
            _put(compared, verdicts, output, lambda: side_by_side_html(compared, verdicts))
            lost = any(each.regressions for each in compared.differences)
            return FAILED if fail_on and lost else FINE
        diff = compare_runs(store, views[0], views[1], chosen)
        if output is not None:
            _write(output, *comparison_html(store, diff, verdicts))
    data = diff.as_data()
    for side, verdict in zip((data["a"], data["b"]), verdicts, strict=True):
        side.update(verdict.as_data())
    print_result(data, lambda: None if output else _print(diff, verdicts))
    return FAILED if fail_on and diff.regressions else FINE


def _put(
    compared: SideBySide,
    verdicts: Sequence[Verdict],
    output: str | None,
    page: Callable[[], str],
) -> None:
    """Write several runs to a page, or print them."""
    if output is not None:
        _write(output, page(), len(compared.samples))
    print_result(
        lambda: compared.as_data() | {"verdicts": [each.as_data() for each in verdicts]},
        lambda: None if output else print_side_by_side(compared, verdicts),
    )


def _write(output: str, page: str, samples: int) -> None:
    with output_file(output) as file:
        file.write(page.encode(errors="replace"))
    say(f"wrote {output}: {counted(samples, 'sample')}")


def print_side_by_side(compared: SideBySide, verdicts: Sequence[Verdict]) -> None:
    """Print the metrics of several runs in columns, and the test of each run against the first."""
    rows = [
        (name, *(metric_value(name, value) for value in values))
        for name, values in compared.metrics.items()
    ]
    rows.append(("cost", *(cost_of(view.cost) for view in compared.runs)))
    print_table(("metric", *compared.names), rows)
    for name, verdict in zip(compared.names, verdicts, strict=True):
        print_line(f"{name}  {verdict.in_full}")
    for title, diff in compared.conclusions():
        style = "bold red" if diff.tone == "fails" else "bold"
        print_line(f"{title}  {diff.conclusion(beside=compared.names[0])}", style=style)
        for each in diff.tested:
            if each.metric in {compared.headline, *diff.regressions}:
                print_line(f"  {diff.name_of(each)}: {diff.explanation(each)}")


def _print(diff: RunDiff, verdicts: Sequence[Verdict]) -> None:
    views = zip(diff.names, (diff.a, diff.b), verdicts, strict=True)
    for name, view, verdict in views:
        count = counted(view.summary["samples"], "sample")
        print_line(f"{name}  {view.run_id}  {view.suite}, {view.status}, {count}", style="bold")
        print_line(f"   {verdict.in_full}")
    print_line(f"records  {diff.records_line()}", style="green" if diff.identical else "")
    for line in diff.cautions():
        print_line(line, style="yellow")
    _print_tested(diff)
    if not (diff.compared or diff.same_rubric):
        return
    for what, groups in (("scenario", diff.scenarios), ("demographic", diff.demographics)):
        if groups:
            headings = (what, "samples", groups[0].metrics[0].metric, "changed most")
            print_line()
            print_table(headings, (_group(diff, each) for each in groups))
    _print_samples(diff)
    print_line()
    a, b = diff.names
    print_table(
        ("metric", a, f"n {a}", b, f"n {b}", "difference"),
        (
            (
                metric_title(each.metric, diff.b.rubric),
                *(metric_value(each.metric, each.a), shown(each.n_a)),
                *(metric_value(each.metric, each.b), shown(each.n_b)),
                metric_change(each.metric, each.difference),
            )
            for each in diff.metrics
            if each.a != each.b
        ),
    )
    if diff.gates:
        one, other = (each.corrected for each in verdicts)
        gates = ((each.gate, *_gate(each.a, one), *_gate(each.b, other)) for each in diff.gates)
        print_table(("gate", a, "passes", b, "passes"), gates)
    _print_verdicts(diff)


def _print_verdicts(diff: RunDiff) -> None:
    """Print the conclusions of both runs, by name."""
    for name in ("release_ready", "decision"):
        values = [view.as_data().get(name) for view in (diff.a, diff.b)]
        if values != [None, None]:
            print_line(f"{name.replace('_', ' ')}  {' | '.join(map(word, values))}")


def _print_tested(diff: RunDiff) -> None:
    """Print which metrics differ significantly, and the values that are tested."""
    print_heading(diff.conclusion())
    if not (diff.compared or diff.same_rubric) or not diff.tested:
        return
    if diff.explained is not None:
        print_line(f"{diff.name_of(diff.explained)}: {diff.explanation(diff.explained)}")
    judges = diff.judges_line()
    if judges is not None:
        print_line(judges, style="bold")
    print_line()
    tested = "tested, by means of votes" if diff.by_votes else "tested"
    a, b = diff.names
    apart, verdict = f"{b} - {a}", f"{b} is"
    headings = (tested, a, b, apart, "interval", "p, corrected", "n", "detectable", verdict)
    print_table(headings, (_tested(diff, each) for each in diff.tested))
    if methods := methods_used(diff):
        print_line(f"methods  {methods}", style="dim")
    for (only_in_a, only_in_b), names in diff.one_sided().items():
        counts = f"{only_in_a} only in {a}, {only_in_b} only in {b}"
        print_line(f"on one side only  {', '.join(names)}: {counts}", style="yellow")
    for name, *used in diff.used:
        print_line(f"{name}  {used[0]} -> {used[1]} ({used[2]})")


def _tested(diff: RunDiff, tested: MetricDifference) -> Iterator[str | Text]:
    made, name = tested.comparison, tested.formatted_as
    if not diff.comparable(tested):
        yield from (diff.name_of(tested), *("-" * 5), str(made.n), "-", diff.outcome(tested))
        return
    means = (metric_value(name, each) for each in (made.mean_a, made.mean_b))
    yield from (diff.name_of(tested), *means)
    yield metric_change(name, made.difference)
    yield "-" if made.interval is None else between(made.interval, name)
    yield from (p_value(made.p_adjusted), str(made.n))
    yield metric_change(name, made.detectable).lstrip("+")
    color = {"bad": "red", "good": "green"}.get(diff.tone_of(tested), "")
    yield plain(diff.outcome(tested), color)


def _group(diff: RunDiff, group: GroupPair) -> Iterator[str | Text]:
    """Yield the cells of a scenario or demographic: its samples, and its metrics from A to B."""
    a, b = shown(group.samples_a), shown(group.samples_b)
    yield from (group.group, a if a == b else f"{a} -> {b}")
    key, *others = group.metrics
    yield _change(diff, key)
    moved = [each for each in others if each.difference]
    most = max(moved, key=lambda each: abs(each.difference or 0), default=None)
    yield "" if most is None else plain(f"{most.metric} ").append_text(_change(diff, most))


def _change(diff: RunDiff, pair: MetricPair) -> Text:
    a, b = metric_value(pair.metric, pair.a), metric_value(pair.metric, pair.b)
    if a == b:
        return plain(a)
    color = "green" if (pair.difference or 0) > 0 else "red"
    compared = diff.same_rubric and pair.difference is not None and pair.metric != WIN_RATE
    return plain(f"{a} -> {b}", color if compared else "")


def _print_samples(diff: RunDiff) -> None:
    """Print how many samples changed, the largest changes, and what only one run has."""
    counts = diff.counts
    headline = WIN_RATE if diff.wins_wanted else diff.headline
    by = "" if headline is None else f" by {headline}"
    by += ", the mean of votes" if by and diff.by_votes else ""
    print_heading(f"samples{by}  {counts.in_words(*diff.names)}")
    left = counts.changes - len(diff.samples)
    if left > 0:
        print_line(f"--limit N lists {counted(left, 'more changed sample')}", style="dim")
    if diff.samples:
        difference = "difference by votes" if diff.by_votes else "difference"
        scores = () if diff.wins_wanted else (diff.headline or "score",)
        headings = ("sample", "repeat", "change", *scores, difference, "what else")
        print_table(headings, (_sample(each, diff) for each in diff.samples))
    only = (counts.only_in_a, diff.only_in_a), (counts.only_in_b, diff.only_in_b)
    for name, (count, listed) in zip(diff.names, only, strict=True):
        if count:
            print_line(f"only in {name}  {_places(count, listed)}")


def _sample(change: SampleChange, diff: RunDiff) -> Iterator[str]:
    yield from (change.id, str(change.repeat), diff.counts.names[change.change])
    whole = change.pair(diff.headline)
    if diff.wins_wanted:
        yield metric_change(WIN_RATE, change.apart)
    else:
        yield "-" if whole is None else str(whole)
        yield metric_change("", None if whole is None else whole.difference)
    lines = [*change.details(diff.headline)]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES - 1 :] = [f"and {len(lines) - _MOST_LINES + 1} more in --json"]
    yield "\n".join(lines)


def _gate(
    gate: GateOutcome | None, corrected: Mapping[str, CorrectedGate]
) -> tuple[str | Text, str | Text]:
    if gate is None:
        return "none", "-"
    people = corrected.get(gate.gate)
    if people is None:
        return gate_value(gate), yes_or_no(gate.passed)
    value, passes = gate_value(people.outcome), yes_or_no(people.outcome.passed)
    both = yes_or_no(gate.passed).append("\ncorrected: ").append_text(passes)
    return f"{gate_value(gate)}\ncorrected {value}", both


def _places(count: int, listed: Sequence[SamplePlace]) -> str:
    """Name samples, and how many more there are."""
    more = [] if count == len(listed) else [f"and {count - len(listed)} more"]
    return f"{count}: {', '.join([*map(str, listed), *more])}"
