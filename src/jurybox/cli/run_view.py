"""A run on the terminal: the verdict first, then why, then what to look at."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from jurybox.cli.output import add_row, plain, table, wide_console
from jurybox.documents.numbers import dollars, exact, metric_value, rounding_misleads
from jurybox.errors import IncompleteError, Unreadable
from jurybox.reporting.attention import Concern, SamplePlace, concerns_of
from jurybox.reporting.metric_text import failures_of, key_metric
from jurybox.reporting.stored import rubric_of
from jurybox.reporting.view import RunView
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import SAMPLES, WIN_RATE
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.text_format import counted, cut

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from jurybox.storage.store import Store

_MOST_LINES: Final = 3
"""The most lines of each part, so that a run fits a screen."""
_MOST_MEANS: Final = 6
_MOST_GROUPS: Final = 30
_STYLES: Final = {"judge_fallback": "yellow", "failed": "yellow"}
_COLORS: Final = {"finished": "green", "running": "yellow", "stopped": "red"}


def print_view(view: RunView, store: "Store") -> None:
    """Print a run: the verdict, why, and what to look at."""
    row = store.run(view.run_id)
    if row is None:
        raise IncompleteError(f"run {view.run_id} was removed from the store; start a new one")
    rubric, out = rubric_of(row), wide_console()
    print_verdict(out, view, rubric)
    _print_head(out, view)
    # The reasons that block a release are part of its verdict.
    stated = view.release.held if view.conclusion.release_ready is not None else ()
    notes = [cut(note, 2 * out.width) for note in view.notes if note not in stated]
    _print_some(out, [plain(note, "bold red") for note in notes], _MOST_LINES)
    if view.summary[SAMPLES]:
        print_why(out, view, _MOST_LINES)
        _print_baseline(out, view, store, rubric)
        _print_look_at(out, view, concerns_of(store, row, view.conclusion))
        _print_in_short(out, view, rubric)
    out.print(plain(f"all metrics and settings: jurybox report {view.run_id} -o -"))
    _print_people(out, view, store)


def _print_some(out: "Console", lines: "Sequence[Text]", most: int | None) -> None:
    """Print the first of several lines, and how many more there are."""
    for line in lines[:most]:
        out.print(line)
    left = len(lines) - len(lines[:most])
    if left:
        out.print(plain(f"  and {left} more", style="dim"))


def print_verdict(out: "Console", view: RunView, rubric: Rubric) -> None:
    """Print whether a run is ready for release, the decision, or how many samples passed."""
    conclusion = view.conclusion
    finished = view.status == "finished"
    if conclusion.decision is not None:
        meanings = {each.decide: each.meaning for each in rubric.decisions}
        meaning = meanings.get(conclusion.decision) or ""
        head = "decision" if finished else "decision so far"
        line = plain(f"{head}  {conclusion.decision}", style="bold")
        out.print(line.append_text(plain(f": {meaning}" if meaning else "")))
        for reason in conclusion.decision_reasons:
            out.print(plain(f"  because {reason}"))
    if conclusion.release_ready is not None:
        ready = conclusion.release_ready and finished
        word = "yes" if ready else f"no: {'; '.join(_release_reasons(view))}"
        out.print(plain(f"release ready  {word}", style="bold green" if ready else "bold red"))
    elif conclusion.decision is None:
        out.print(plain(_result(view, rubric), style="bold"))
    overall: float | None = view.summary.get(f"{rubric.overall_name}_mean")
    band = rubric.level(overall, conclusion.decision)
    if band is not None:
        meaning = f": {band.meaning}" if band.meaning else ""
        out.print(plain(f"quality level  {band.label}{meaning}"))


def _release_reasons(view: RunView) -> list[str]:
    """Return why a run isn't ready for release, with its failed gates as a count."""
    failed = sum(not gate.passed for gate in view.gates)
    reasons = [] if view.status == "finished" else ["the run isn't finished"]
    if failed:
        fail = "fails" if failed == 1 else "fail"
        reasons.append(f"{failed} of {len(view.gates)} gates {fail}")
    return [*reasons, *view.release.held]


def _result(view: RunView, rubric: Rubric) -> str:
    """Return how a run went whose rubric decides nothing."""
    held = "".join(f"; {each}" for each in view.release.held)
    passed = view.summary["pass_rate"]
    if passed is None:
        name = key_metric(rubric)
        return f"{name}  {metric_value(name, view.summary.get(name))}{held}"
    samples: int = view.summary[SAMPLES]
    return f"passed  {round(passed * samples)} of {counted(samples, 'sample')}{held}"


def _print_head(out: "Console", view: RunView) -> None:
    head = plain(f"run {view.run_id}", style="bold")
    head.append_text(plain(f"  {view.suite}  "))
    head.append_text(plain(view.status, style=_COLORS.get(view.status, "")))
    head.append_text(plain(f", {view.summary[SAMPLES]} of {counted(view.planned, 'sample')}"))
    labels = [view.metadata.get("name"), *view.metadata.get("tags", ())]
    head.append_text(plain("".join(f"  {label}" for label in labels if label), "cyan"))
    out.print(head)
    rubric: dict[str, Any] = view.metadata.get("rubric") or {}
    parts = [f"{rubric.get('id', '?')} {rubric.get('version', '')}".rstrip(), view.answered]
    if view.metadata.get("evaluator_model_id"):
        parts.append(f"judged by {view.metadata['evaluator_model_id']}")
    out.print(plain(", ".join(parts)))


def _print_baseline(out: "Console", view: RunView, store: "Store", rubric: Rubric) -> None:
    baseline: str | None = view.metadata.get("baseline")
    if baseline is None:
        return
    from jurybox.app.view_run import baseline_diff

    diff = baseline_diff(view, store)
    if diff is None:
        out.print(plain(f"the baseline, run {baseline}, was deleted", "yellow"))
        return
    key = key_metric(rubric)
    a, b = (metric_value(key, each.summary.get(key)) for each in (diff.a, diff.b))
    style = "bold red" if diff.regressions else "bold"
    name = diff.a.metadata.get("name") or baseline
    out.print(plain(f"against {name}  {diff.conclusion()}; {key} {a} -> {b}", style))
    out.print(plain(f"  jurybox diff {baseline} {view.run_id}"), soft_wrap=True)


def print_why(out: "Console", view: RunView, most: int | None = None) -> None:
    """Print the gates with their margins, and which pass rules samples fail, with counts."""
    if view.gates:
        shown_gates = view.gates
        if most is not None and len(view.gates) > 2 * most:
            shown_gates = sorted(view.gates, key=lambda gate: gate.passed)[: 2 * most]
        out.print()
        out.print(_gates(shown_gates))
        if left := len(view.gates) - len(shown_gates):
            out.print(plain(f"  and {left} more", style="dim"))
    winners: dict[str, int] = view.summary.get("winners") or {}
    if winners:
        listed = ", ".join(f"{side} {count}" for side, count in winners.items())
        rate = metric_value(WIN_RATE, view.summary.get(WIN_RATE))
        ends = view.win_interval
        span = "" if ends is None else f" ({100 * ends.low:.1f}% to {100 * ends.high:.1f}%)"
        out.print(plain(f"winners  {listed}; win rate of A {rate}{span}", style="bold"))
    failures = failures_of(view.summary)
    if failures:
        samples: int = view.summary[SAMPLES]
        passed: float | None = view.summary["pass_rate"]
        # Without pass rules a sample has at most one reason: that something is missing.
        failed = (
            sum(n for _, n in failures) if passed is None else samples - round(samples * passed)
        )
        out.print(plain(f"failed  {failed} of {counted(samples, 'sample')}", style="bold"))
        lines = [plain(f"  {n}  {cut(why, 2 * out.width - 10)}") for why, n in failures]
        _print_some(out, lines, most)


def _print_look_at(out: "Console", view: RunView, concerns: Sequence[Concern]) -> None:
    """Print which samples to look at, and the commands that show them."""
    queued: int = view.conclusion.review["queued"]
    commands = [] if view.status == "finished" else [f"resume {view.run_id}"]
    if failures_of(view.summary):
        commands.append(f"show {view.run_id} --failed")
    elif concerns:
        commands.append(f"show {view.run_id} --sample {shlex.quote(concerns[0].samples[0].id)}")
    if queued:
        commands.append("serve")
    if not concerns and not commands:
        return
    out.print()
    out.print(plain("look at", style="bold"))
    lines = [plain(_concern(each, out.width), _STYLES.get(each.kind, "red")) for each in concerns]
    if queued:
        lines.append(plain(f"  {counted(queued, 'sample')} queued for human review", "yellow"))
    _print_some(out, lines, _MOST_LINES)
    for command in commands:
        out.print(plain(f"  jurybox {command}"), soft_wrap=True)


def _concern(concern: Concern, width: int) -> str:
    """Return a concern in one line, with as many of its samples as fit, none of them split."""
    line = f"  {concern.kind}, {counted(concern.count, 'sample')}: {concern.meaning}"
    names: list[str] = []
    for name in map(_name, concern.samples):
        if len(f"{line}: {', '.join([*names, name])} and {concern.count} more") <= width:
            names.append(name)
    more = concern.count - len(names)
    if not names:
        return line
    return f"{line}: {', '.join(names)}" + (f" and {more} more" if more else "")


def _name(place: SamplePlace) -> str:
    return place.id if place.repeat == 0 else f"{place.id} (repeat {place.repeat})"


def _print_in_short(out: "Console", view: RunView, rubric: Rubric) -> None:
    """Print the most informative metrics and the cost, in a line or two."""
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    names = dict.fromkeys((key_metric(rubric), "pass_rate", *means))
    values = {name: view.summary.get(name) for name in names}
    parts = [
        f"{name} {metric_value(name, each)}" for name, each in values.items() if each is not None
    ]
    cost = dollars(view.cost.get("dollars"))
    listed = parts[:_MOST_MEANS] + (["..."] if len(parts) > _MOST_MEANS else [])
    out.print(plain(", ".join([*listed, f"cost {cost}"])))


def _print_people(out: "Console", view: RunView, store: "Store") -> None:
    """Print how far judges and people agree: here, and where that was measured before."""
    from jurybox.app.calibrations import calibration_of_run
    from jurybox.app.view_run import standing_of

    people = standing_of(view, store)
    if people is not None:
        out.print(plain(f"people so far  {people.lines[0]}", style="bold"))
    found = calibration_of_run(view, store)
    if found is not None:
        current = not isinstance(found, str) and not found.stale
        line = found if isinstance(found, str) else found.line
        out.print(plain(line, style="green" if current else "yellow"))


def _gates(gates: Sequence[GateOutcome]) -> "Table":
    made = table("gate", "value", "passes", "margin", right=("value", "margin"))
    for gate in gates:
        passes = plain("yes", "green") if gate.passed else plain("no", "red")
        value, margin = _gate_value(gate)
        add_row(made, gate.gate, value, passes, margin)
    return made


def _gate_value(gate: GateOutcome) -> tuple[str, str]:
    """Return a gate's value and its distance from the threshold, negative where it fails."""
    try:
        wanted = Comparison.parse(gate.gate)
    except Unreadable:
        return exact(gate.value), ""
    apart = wanted.margin(gate.value)
    if gate.value is None or apart is None:
        return exact(gate.value), ""
    if rounding_misleads(gate.value, wanted.number):
        return exact(gate.value), exact(apart)
    margin = f"{'+' if apart > 0 else ''}{metric_value(wanted.name, apart)}"
    return metric_value(wanted.name, gate.value), margin
