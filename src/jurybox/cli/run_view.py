"""A run on the terminal: what needs a person first, then the verdict, then the figures."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.table import Table

from jurybox.cli.output import plain, wide_console
from jurybox.errors import Unreadable
from jurybox.reporting.attention import Concern, Place
from jurybox.reporting.metric_text import exact, figures_of, key_figure, shown, signed
from jurybox.reporting.view import RunView
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import SAMPLES
from jurybox.rubric.model import Rubric
from jurybox.scoring.summary import GateOutcome

if TYPE_CHECKING:
    from rich.console import Console

_MOST_GROUPS: Final = 30
_STYLES: Final = {"judge_fallback": "yellow", "failed": "yellow"}
_COLOURS: Final = {"finished": "green", "running": "yellow", "stopped": "red"}


def print_run(
    view: RunView, rubric: Rubric, concerns: Sequence[Concern], *, metadata: bool = False
) -> None:
    """Print a run; its metadata only where somebody asks for all of it."""
    out = wide_console()
    _print_head(out, view)
    if not view.summary[SAMPLES]:
        # Nothing was finished, so there is nothing to judge by.
        return
    _print_attention(out, view, concerns)
    print_verdict(out, view, rubric)
    out.print()
    out.print(_figures(view, rubric))
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


def _table(*headings: str, right: Iterable[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    numbers = set(right)
    for heading in headings:
        table.add_column(
            heading, overflow="fold", justify="right" if heading in numbers else "left"
        )
    return table


def _print_head(out: "Console", view: RunView) -> None:
    head = plain(f"run {view.run_id}", style="bold")
    head.append_text(plain(f"  {view.suite}  "))
    head.append_text(plain(view.status, style=_COLOURS.get(view.status, "")))
    out.print(head)
    said = view.metadata
    rubric: dict[str, Any] = said.get("rubric") or {}
    parts = [f"{rubric.get('id', '?')} {rubric.get('version', '')}".rstrip()]
    recorded = said.get("responses_id")
    parts.append(
        f"responses of {said.get('model_id')}"
        if recorded is None
        else f"recorded responses {recorded}"
    )
    if said.get("evaluator_model_id"):
        parts.append(f"judged by {said['evaluator_model_id']}")
    parts.append(f"{view.summary[SAMPLES]} of {view.planned} samples")
    out.print(plain(", ".join(parts)))


def _print_attention(out: "Console", view: RunView, concerns: Sequence[Concern]) -> None:
    failed = [f"{gate.gate} ({exact(gate.value)})" for gate in view.gates if not gate.passed]
    lines = [(note, "bold red") for note in view.notes]
    if failed:
        count = f"{len(failed)} of {len(view.gates)}"
        lines.append((f"{count} gates fail: {', '.join(failed)}", "bold red"))
    lines += [(_concern(each), _STYLES.get(each.kind, "red")) for each in concerns]
    errors: dict[str, int] = view.summary.get("evaluator_errors") or {}
    if errors:
        listed = ", ".join(f"{count} {name}" for name, count in errors.items())
        lines.append((f"why judges gave no scores: {listed}", "yellow"))
    queued: int = view.conclusion.review["queued"]
    if queued:
        lines.append((f"{_counted(queued)} queued for review by a person", "yellow"))
    out.print()
    if not lines:
        out.print(plain("needs attention  nothing", style="green"))
    for line, style in lines:
        out.print(plain(f"needs attention  {line}", style=style))


def _counted(count: int) -> str:
    return "1 sample" if count == 1 else f"{count} samples"


def _concern(concern: Concern) -> str:
    names = ", ".join(map(_name, concern.samples))
    more = concern.count - len(concern.samples)
    line = f"{concern.kind}, {_counted(concern.count)}: {concern.meaning}: {names}"
    return f"{line} and {more} more" if more else line


def _name(place: Place) -> str:
    return place.id if place.repeat == 0 else f"{place.id} (repeat {place.repeat})"


def print_verdict(out: "Console", view: RunView, rubric: Rubric) -> None:
    """Print what is to be done with what was judged, and the gates with their margins."""
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
            out.print(plain(f"  since {reason}"))
    overall: float | None = view.summary.get(f"{rubric.overall_name}_mean")
    band = None if overall is None else rubric.band(overall)
    if band is not None:
        meaning = f": {band.meaning}" if band.meaning else ""
        out.print(plain(f"quality level  {band.label}{meaning}"))
    if conclusion.release_ready is not None:
        ready = conclusion.release_ready and finished
        word = "yes" if ready else "no" if finished else "no: the run isn't finished"
        out.print(plain(f"release ready  {word}", style="bold green" if ready else "bold red"))
    winners: dict[str, int] = view.summary.get("winners") or {}
    if winners:
        listed = ", ".join(f"{side} {count}" for side, count in winners.items())
        out.print(plain(f"winners  {listed}", style="bold"))
    if view.gates:
        out.print(_gates(view.gates))


def _gates(gates: Sequence[GateOutcome]) -> Table:
    table = _table("gate", "value", "passes", "margin", right=("value", "margin"))
    for gate in gates:
        word, colour = ("yes", "green") if gate.passed else ("no", "red")
        margin = margin_of(gate)
        table.add_row(
            plain(gate.gate),
            plain(exact(gate.value)),
            plain(word, style=colour),
            plain("" if margin is None else signed(margin)),
        )
    return table


def margin_of(gate: GateOutcome) -> float | None:
    """Return how far a value is from where its gate fails; below zero, it fails."""
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


def _figures(view: RunView, rubric: Rubric) -> Table:
    table = _table("figure", "value", "n", right=("value", "n"))
    for figure in figures_of(view.summary, rubric):
        count = "" if figure.n is None else str(figure.n)
        table.add_row(plain(figure.name), plain(shown(figure.value)), plain(count))
    return table


def _repeats(repeats: Mapping[str, Any]) -> Table:
    table = _table(f"over {repeats['n']} repeats", "mean", "sd", "each", right=("mean", "sd"))
    for name, spread in repeats.items():
        if name != "n":
            each = " ".join(shown(value) for value in spread["values"])
            cells = (name, shown(spread["mean"]), f"\u00b1 {shown(spread['sd'])}", each)
            table.add_row(*(plain(cell) for cell in cells))
    return table


def _print_groups(
    out: "Console", heading: str, groups: Mapping[str, Mapping[str, Any]], rubric: Rubric
) -> None:
    means = [f"{criterion.id}_mean" for criterion in rubric.criteria]
    names = list(dict.fromkeys((SAMPLES, key_figure(rubric), "pass_rate", *means)))
    out.print()
    table = _table(heading, *names, right=names)
    for group, figures in list(groups.items())[:_MOST_GROUPS]:
        values = (shown(figures.get(name)) for name in names)
        table.add_row(*(plain(cell) for cell in (group, *values)))
    out.print(table)
    more = len(groups) - _MOST_GROUPS
    if more > 0:
        out.print(plain(f"and {more} more {heading}s, all of them with --json", style="dim"))


def _print_cost(out: "Console", cost: Mapping[str, Any]) -> None:
    columns = ("calls", "cached", "failed", "input_tokens", "output_tokens", "dollars")
    models: list[dict[str, Any]] = cost["models"]
    out.print()
    if models:
        table = _table("model", "role", *columns, right=columns)
        for use in models:
            values = [_known(use[name]) for name in columns]
            role = f"{use['role']}, batched" if use.get("batched") else use["role"]
            table.add_row(*(plain(cell) for cell in (use["model"], role, *values)))
        out.print(table)
    out.print(plain(f"cost  {_dollars(cost['dollars'])}"))


def _known(value: float | None) -> str:
    return "unknown" if value is None else shown(value)


def _dollars(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"{dollars:.4f} US dollars"


def _print_metadata(out: "Console", view: RunView) -> None:
    out.print()
    table = _table("metadata", "")
    told = {**view.metadata, "finished_utc": view.finished_at, "elapsed_s": view.elapsed_s}
    for name, value in told.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        table.add_row(plain(name), plain(text))
    table.add_row(plain("digest"), plain(view.digest or "not yet: the run isn't finished"))
    out.print(table)
