"""A run on the terminal: the verdict first, then why, then what to look at."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from jurybox.app.view_run import (
    baseline_diff,
    calibration_of_run,
    reviewer_agreement,
)
from jurybox.cli.options import at_store
from jurybox.cli.output import console, plain, print_heading, print_line, print_table, yes_or_no
from jurybox.documents.numbers import metric_value
from jurybox.reporting.attention import Concern, concerns_of, quality_level
from jurybox.reporting.metric_text import cost_of, failures_of, gate_margin, gate_value
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import SAFETY_RATE, SAMPLES, WIN_RATE
from jurybox.storage.store import Store
from jurybox.text_format import counted, cut

if TYPE_CHECKING:
    from jurybox.reporting.review_text import ReviewAgreement
    from jurybox.reporting.run_metrics import Gauge
    from jurybox.reporting.run_verdict import Verdict
    from jurybox.statistics.estimates import Interval

_MOST_LINES: Final = 3
"""The maximum number of lines per part, so that a run fits on a screen."""
_MOST_MEANS: Final = 6
_STYLES: Final = {"judge_fallback": "yellow", "failed": "yellow"}
_TONES: Final = {"passes": "green", "fails": "red", "waits": "yellow"}
_COLORS: Final = {"finished": "green", "running": "yellow", "stopped": "yellow"}


def print_view(view: RunView, store: Store) -> None:
    """Print a run: the verdict, why, and what to look at."""
    people = reviewer_agreement(view, store)
    from jurybox.reporting.run_verdict import verdict_of

    verdict = verdict_of(view, people)
    print_verdict(view, verdict, people)
    _print_head(view)
    notes = map(_fitted, unstated(view.notes, view, verdict))
    _print_some([plain(note, "bold red") for note in notes], _MOST_LINES)
    if view.summary[SAMPLES]:
        print_why(view, _MOST_LINES)
        _print_baseline(view, store)
        _print_look_at(view, concerns_of(store, view))
        _print_in_short(view)
    more = f"jurybox report {view.run_id} -o -{at_store()}"
    print_line(f"all metrics and settings: {more}", wrap=False)
    _print_people(view, store, people)


def _fitted(text: str) -> str:
    """Shorten text to fit on two lines of the terminal."""
    return cut(text, 2 * console().width - 10)


def _print_some(lines: Sequence[str | Text], most: int | None) -> None:
    """Print the first of several lines, and how many more there are."""
    for line in lines[:most]:
        print_line(line)
    if left := len(lines) - len(lines[:most]):
        print_line(f"  and {left} more", style="dim")


def unstated(notes: Iterable[str], view: RunView, verdict: "Verdict") -> Iterator[str]:
    """Yield the notes on a run that its verdict doesn't say already."""
    stated = view.release.blockers if view.status == "finished" else ()
    return (note for note in notes if note not in stated and note not in verdict.sentence)


def print_verdict(
    view: RunView, verdict: "Verdict", people: "ReviewAgreement | None" = None
) -> None:
    """Print the verdict on a run, its decision, or how many samples passed."""
    print_line(verdict.in_full, style=f"bold {_TONES.get(verdict.tone, '')}")
    decision = view.conclusion.decision
    if decision is not None:
        meanings = {each.decide: each.meaning for each in view.rubric.decisions}
        head = "decision" if view.status == "finished" else "decision so far"
        meaning = meanings.get(decision)
        print_line(plain(f"{head}  {decision}", "bold"), f": {meaning}" if meaning else "")
    elif not view.gates:
        print_line(_result(view), style="bold")
    level = quality_level(view, people)
    if level is not None:
        print_line(f"quality level  {level.name}", f": {level.meaning}" if level.meaning else "")


def _result(view: RunView) -> str:
    """Return the result of a run whose rubric has neither gates nor decisions."""
    passed = view.summary["pass_rate"]
    if passed is None:
        name = view.key_metric
        return f"{name}  {metric_value(name, view.summary.get(name))}"
    samples: int = view.summary[SAMPLES]
    return f"passed  {round(passed * samples)} of {counted(samples, 'sample')}"


def _print_head(view: RunView) -> None:
    labels = [view.metadata.get("name"), *view.metadata.get("tags", ())]
    print_line(
        plain(f"run {view.run_id}", "bold"),
        f"  {view.suite}  ",
        plain(view.status, _COLORS.get(view.status, "")),
        f", {view.summary[SAMPLES]} of {counted(view.planned, 'sample')}",
        plain("".join(f"  {label}" for label in labels if label), "cyan"),
    )
    rubric: dict[str, Any] = view.metadata.get("rubric") or {}
    parts = [f"{rubric.get('id', '?')} {rubric.get('version', '')}".rstrip(), view.answered]
    if view.metadata.get("evaluator_model_id"):
        parts.append(f"judged by {view.metadata['evaluator_model_id']}")
    print_line(", ".join(parts))


def _print_baseline(view: RunView, store: Store) -> None:
    baseline = view.before
    if baseline is None:
        return

    diff = baseline_diff(view, store)
    if diff is None:
        what = "source" if view.derived_from else "baseline"
        print_line(f"the {what}, run {baseline}, was deleted", style="yellow")
        return
    key = view.key_metric
    a, b = (metric_value(key, each.summary.get(key)) for each in (diff.a, diff.b))
    name = diff.a.metadata.get("name") or baseline
    style = "bold red" if diff.tone == "fails" else "bold"
    print_line(f"against {name}  {diff.conclusion(beside=name)}; {key} {a} -> {b}", style=style)
    print_line(f"  jurybox diff {baseline} {view.run_id}{at_store()}", wrap=False)


def print_why(
    view: RunView,
    most: int | None = None,
    *,
    corrected: Mapping[str, "Interval | None"] = {},
    uncorrected: Collection[str] = (),
) -> None:
    """Print the gates with intervals and margins, and which pass rules samples fail, with counts.

    The intervals of ``corrected`` values are given; the metrics in ``uncorrected`` are marked.
    """
    if view.gates:
        _print_gates(view, most, corrected, uncorrected)
    winners: dict[str, int] = view.summary.get("winners") or {}
    if winners:
        listed = ", ".join(f"{side} {count}" for side, count in winners.items())
        rate = metric_value(WIN_RATE, view.summary.get(WIN_RATE))
        ends = view.estimates.of(WIN_RATE).interval
        span = "" if ends is None else f" ({100 * ends.low:.1f}% to {100 * ends.high:.1f}%)"
        print_line(f"winners  {listed}; win rate of A {rate}{span}", style="bold")
    failures = failures_of(view.summary)
    if failures:
        print_line(f"not passed  {', '.join(view.not_passed)}", style="bold")
        _print_some([f"  {n}  {_fitted(why)}" for why, n in failures], most)


def _print_gates(
    view: RunView,
    most: int | None,
    corrected: "Mapping[str, Interval | None]",
    uncorrected: Collection[str],
) -> None:
    shown = [*view.estimates.gauges(corrected)]
    if most is not None and len(shown) > 2 * most:
        shown = sorted(shown, key=lambda each: each.outcome.passed)[: 2 * most]
    print_line()
    passes = "passes" if view.status == "finished" else "passes so far"
    headings = ("gate", "value", "95% interval", passes, "margin")
    print_table(headings, (_gate(each, uncorrected) for each in shown))
    if left := len(view.gates) - len(shown):
        print_line(f"  and {left} more", style="dim")
    if view.release.on_flags and any(each.rule.name == SAFETY_RATE for each in shown):
        print_line(f"{SAFETY_RATE}  {view.release.on_flags}", style="bold")


def _gate(gauge: "Gauge", uncorrected: Collection[str]) -> Iterator[str | Text]:
    """Yield a gate's cells; its margin is negative if it fails."""
    gate, name, made = gauge.outcome, gauge.rule.name, gauge.metric.interval
    yield gate.gate
    yield gate_value(gate) + (", not corrected" if name in uncorrected else "")
    yield f"{metric_value(name, made.low)} to {metric_value(name, made.high)}" if made else "-"
    yield yes_or_no(gate.passed).append(", not certain" if gauge.unsure else "", "yellow")
    yield gate_margin(gate)


def _print_look_at(view: RunView, concerns: Sequence[Concern]) -> None:
    """Print which samples to look at, and the commands that show them."""
    queued = view.queued
    commands = [] if view.status == "finished" else [f"resume {view.run_id}"]
    if failures_of(view.summary):
        commands.append(f"show {view.run_id} --failed")
    elif concerns:
        commands.append(f"show {view.run_id} --sample {shlex.quote(concerns[0].samples[0].id)}")
    if queued:
        commands.append("serve")
    if not concerns and not commands:
        return
    print_heading("look at")
    lines = [plain(_concern(each), _STYLES.get(each.kind, "red")) for each in concerns]
    if queued:
        lines.append(plain(f"  {counted(queued, 'sample')} queued for human review", "yellow"))
        if view.release.unscorable:
            lines[-1].append(f", {view.release.unscorable:,} of them for a repaired judge")
    _print_some(lines, _MOST_LINES)
    for command in commands:
        print_line(f"  jurybox {command}{at_store()}", wrap=False)


def _concern(concern: Concern) -> str:
    """Return a concern on one line, with as many of its samples as fit."""
    line = f"  {concern.kind}, {concern.in_words}"
    names: list[str] = []
    for name in map(str, concern.samples):
        if len(f"{line}: {', '.join([*names, name])} and {concern.count} more") <= console().width:
            names.append(name)
    more = concern.count - len(names)
    if not names:
        return line
    return f"{line}: {', '.join(names)}" + (f" and {more} more" if more else "")


def _print_in_short(view: RunView) -> None:
    """Print the most informative metrics and the cost, in a line or two."""
    rubric = view.rubric
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    names = dict.fromkeys((view.key_metric, "pass_rate", *means))
    values = {name: view.summary.get(name) for name in names}
    parts = [
        f"{name} {metric_value(name, each)}" for name, each in values.items() if each is not None
    ]
    more = ["..."] if len(parts) > _MOST_MEANS else []
    cost = f"cost {cost_of(view.cost)}"
    print_line(", ".join([*parts[:_MOST_MEANS], *more, cost]))


def _print_people(view: RunView, store: Store, people: "ReviewAgreement | None") -> None:
    """Print how well judges and people agree, in this run and in the calibration."""
    if people is not None:
        print_line(f"people so far  {people.lines[0]}", style="bold")
        if people.warns:
            print_line(f"  {people.conclusion[0]}", style="bold red")
    found = calibration_of_run(view, store)
    if found is not None:
        current = not isinstance(found, str) and not found.stale
        line = found if isinstance(found, str) else found.line
        print_line(line, style="green" if current else "yellow")
