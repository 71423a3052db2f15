"""A run on the terminal: what needs attention first, then the verdict, then the metrics."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from jurybox.cli.output import add_row, plain, table, wide_console
from jurybox.errors import IncompleteError, Unreadable
from jurybox.reporting.attention import Concern, SamplePlace, concerns_of
from jurybox.reporting.metric_text import causes_of, exact, key_metric, metrics_of, shown, signed
from jurybox.reporting.stored import rubric_of
from jurybox.reporting.view import RunView
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import SAMPLES
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.text_format import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from jurybox.engine.ports import Store
    from jurybox.reporting.review_text import ReviewAgreement

_MOST_GROUPS: Final = 30
_STYLES: Final = {"judge_fallback": "yellow", "failed": "yellow"}
_COLORS: Final = {"finished": "green", "running": "yellow", "stopped": "red"}


def view_as_data(view: RunView, store: "Store") -> dict[str, Any]:
    """Return a run as data for JSON, with its reviews and the calibration of its judges."""
    from jurybox.app.calibrations import calibration_of_run, calibration_status_as_data

    return {
        **view.as_data(),
        "people": people_as_data(view, store),
        "calibration": calibration_status_as_data(calibration_of_run(view, store)),
    }


def people_as_data(view: RunView, store: "Store") -> dict[str, Any] | None:
    """Return how far judges and reviewers agree, as data for JSON; None without reviews."""
    found = _people(view, store)
    return None if found is None else found.as_data()


def _people(view: RunView, store: "Store") -> "ReviewAgreement | None":
    # Most runs have no reviews; then neither the rubric nor numpy need be loaded.
    row = store.run(view.run_id) if store.reviews(view.run_id) else None
    if row is None:
        return None
    from jurybox.app.review_desk import ReviewDesk

    return ReviewDesk(store, row).standing()


def print_view(view: RunView, store: "Store", *, metadata: bool = False) -> None:
    """Print a run, with its metadata if asked for.

    Raises:
        IncompleteError: the stored run can't be read.

    """
    row = store.run(view.run_id)
    if row is None:
        raise IncompleteError(f"run {view.run_id} was removed from the store; start a new one")
    _print_run(view, rubric_of(row), concerns_of(store, row, view.conclusion), metadata=metadata)
    out = wide_console()
    people = _people(view, store)
    if people is not None:
        out.print()
        head, *rest = people.lines
        out.print(plain(f"people so far  {head}", style="bold"))
        for line in rest:
            out.print(plain(f"  {line}"))
    _print_calibration(out, view, store)


def _print_calibration(out: "Console", view: RunView, store: "Store") -> None:
    """Print how far the judges agree with people, where that was measured."""
    from jurybox.app.calibrations import calibration_of_run

    found = calibration_of_run(view, store)
    if found is not None:
        out.print()
        current = not isinstance(found, str) and not found.stale
        line = found if isinstance(found, str) else found.line
        out.print(plain(line, style="green" if current else "yellow"))


def _print_run(
    view: RunView, rubric: Rubric, concerns: Sequence[Concern], *, metadata: bool
) -> None:
    out = wide_console()
    _print_head(out, view)
    if not view.summary[SAMPLES]:
        return
    _print_attention(out, view, concerns)
    print_verdict(out, view, rubric)
    out.print()
    out.print(_metrics(view, rubric))
    if "repeats" in view.summary:
        out.print()
        out.print(_repeats(view.summary["repeats"]))
    for name, heading in (("scenarios", "scenario"), ("demographics", "demographic")):
        if name in view.summary:
            _print_groups(out, heading, view.summary[name], rubric)
    if view.cost:
        _print_cost(out, view.cost)
    if metadata:
        _print_metadata(out, view)


def _print_head(out: "Console", view: RunView) -> None:
    head = plain(f"run {view.run_id}", style="bold")
    head.append_text(plain(f"  {view.suite}  "))
    head.append_text(plain(view.status, style=_COLORS.get(view.status, "")))
    out.print(head)
    known = view.metadata
    rubric: dict[str, Any] = known.get("rubric") or {}
    parts = [f"{rubric.get('id', '?')} {rubric.get('version', '')}".rstrip()]
    recorded = known.get("responses_id")
    parts.append(
        f"responses of {known.get('model_id')}"
        if recorded is None
        else f"recorded responses {recorded}"
    )
    if known.get("evaluator_model_id"):
        parts.append(f"judged by {known['evaluator_model_id']}")
    parts.append(f"{view.summary[SAMPLES]} of {view.planned} samples")
    out.print(plain(", ".join(parts)))


def _print_attention(out: "Console", view: RunView, concerns: Sequence[Concern]) -> None:
    failed = [f"{gate.gate} ({exact(gate.value)})" for gate in view.gates if not gate.passed]
    lines = [(note, "bold red") for note in view.notes]
    if failed:
        count = f"{len(failed)} of {len(view.gates)}"
        lines.append((f"{count} gates fail: {', '.join(failed)}", "bold red"))
    lines += [(_concern(each), _STYLES.get(each.kind, "red")) for each in concerns]
    lines += [(line, "yellow") for line in causes_of(view.summary)]
    queued: int = view.conclusion.review["queued"]
    if queued:
        lines.append((f"{counted(queued, 'sample')} queued for human review", "yellow"))
    out.print()
    if not lines:
        out.print(plain("needs attention  nothing", style="green"))
    for line, style in lines:
        out.print(plain(f"needs attention  {line}", style=style))


def _concern(concern: Concern) -> str:
    names = ", ".join(map(_name, concern.samples))
    more = concern.count - len(concern.samples)
    line = f"{concern.kind}, {counted(concern.count, 'sample')}: {concern.meaning}: {names}"
    return f"{line} and {more} more" if more else line


def _name(place: SamplePlace) -> str:
    return place.id if place.repeat == 0 else f"{place.id} (repeat {place.repeat})"


def print_verdict(out: "Console", view: RunView, rubric: Rubric) -> None:
    """Print the decision and the gates with their margins."""
    conclusion = view.conclusion
    finished = view.status == "finished"
    out.print()
    if conclusion.decision is not None:
        meanings = {each.decide: each.meaning for each in rubric.decisions}
        meaning = meanings.get(conclusion.decision) or ""
        head = "decision" if finished else "decision so far"
        line = plain(f"{head}  {conclusion.decision}", style="bold")
        out.print(line.append_text(plain(f": {meaning}" if meaning else "")))
        for reason in conclusion.decision_reasons:
            out.print(plain(f"  because {reason}"))
    overall: float | None = view.summary.get(f"{rubric.overall_name}_mean")
    band = rubric.level(overall, conclusion.decision)
    if band is not None:
        meaning = f": {band.meaning}" if band.meaning else ""
        out.print(plain(f"quality level  {band.label}{meaning}"))
    if conclusion.release_ready is not None:
        ready = conclusion.release_ready and finished
        word = "yes" if ready else f"no: {'; '.join(view.release_reasons)}"
        out.print(plain(f"release ready  {word}", style="bold green" if ready else "bold red"))
    winners: dict[str, int] = view.summary.get("winners") or {}
    if winners:
        listed = ", ".join(f"{side} {count}" for side, count in winners.items())
        out.print(plain(f"winners  {listed}", style="bold"))
    if view.gates:
        out.print(_gates(view.gates))


def _gates(gates: Sequence[GateOutcome]) -> "Table":
    made = table("gate", "value", "passes", "margin", right=("value", "margin"))
    for gate in gates:
        passes = plain("yes", "green") if gate.passed else plain("no", "red")
        margin = _margin(gate)
        shown_margin = "" if margin is None else signed(margin)
        add_row(made, gate.gate, exact(gate.value), passes, shown_margin)
    return made


def _margin(gate: GateOutcome) -> float | None:
    """Return the distance of a value from its threshold; negative where the gate fails."""
    try:
        comparison = Comparison.parse(gate.gate)
    except Unreadable:
        return None
    if gate.value is None:
        return None
    match comparison.operator:
        case ">=" | ">":
            margin = gate.value - comparison.number
        case "<=" | "<":
            margin = comparison.number - gate.value
        case _:
            return None
    return round(margin, 6)


def _metrics(view: RunView, rubric: Rubric) -> "Table":
    made = table("metric", "value", "n", right=("value", "n"))
    for metric in metrics_of(view.summary, rubric):
        add_row(made, metric.name, shown(metric.value), "" if metric.n is None else str(metric.n))
    return made


def _repeats(repeats: Mapping[str, Any]) -> "Table":
    made = table(f"over {repeats['n']} repeats", "mean", "sd", "each", right=("mean", "sd"))
    for name, spread in repeats.items():
        if name != "n":
            each = " ".join(shown(value) for value in spread["values"])
            add_row(made, name, shown(spread["mean"]), f"\u00b1 {shown(spread['sd'])}", each)
    return made


def _print_groups(
    out: "Console", heading: str, groups: Mapping[str, Mapping[str, Any]], rubric: Rubric
) -> None:
    means = [f"{criterion.id}_mean" for criterion in rubric.criteria]
    names = list(dict.fromkeys((SAMPLES, key_metric(rubric), "pass_rate", *means)))
    out.print()
    made = table(heading, *names, right=names)
    for group, values in list(groups.items())[:_MOST_GROUPS]:
        add_row(made, group, *(shown(values.get(name)) for name in names))
    out.print(made)
    more = len(groups) - _MOST_GROUPS
    if more > 0:
        out.print(plain(f"and {more} more {heading}s, all of them with --json", style="dim"))


def _print_cost(out: "Console", cost: Mapping[str, Any]) -> None:
    columns = ("calls", "cached", "failed", "input_tokens", "output_tokens", "dollars")
    models: list[dict[str, Any]] = cost["models"]
    out.print()
    if models:
        made = table("model", "role", *columns, right=columns)
        for use in models:
            known = ("unknown" if use[name] is None else shown(use[name]) for name in columns)
            role = f"{use['role']}, batched" if use.get("batched") else use["role"]
            add_row(made, use["model"], role, *known)
        out.print(made)
    dollars: float | None = cost["dollars"]
    out.print(plain("cost  unknown" if dollars is None else f"cost  {dollars:.4f} US dollars"))


def _print_metadata(out: "Console", view: RunView) -> None:
    out.print()
    made = table("metadata", "")
    known = {**view.metadata, "finished_utc": view.finished_at, "elapsed_s": view.elapsed_s}
    for name, value in known.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        add_row(made, name, text)
    add_row(made, "digest", view.digest or "not yet: the run isn't finished")
    out.print(made)
