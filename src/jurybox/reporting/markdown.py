"""A run as a Markdown report: what needs a person first, then the decision, then the rest."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from jurybox.reporting.attention import Attention, Concern, SampleCard
from jurybox.reporting.metric_text import MISSING, causes_of, exact, key_metric, metrics_of, shown
from jurybox.reporting.view import RunView
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import SAMPLES
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.text_format import visible

_SPACES = re.compile(r"\s+")
_MARKS = re.compile(r"[\\`*_\[\]{}|~#!$^]")
# Many pages make a link of everything that looks like an address.
_ADDRESS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def plain(text: str) -> str:
    """Return text for one line or one cell: it shows as it is, and does nothing."""
    line = visible(_SPACES.sub(" ", text)).strip()
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ADDRESS.sub(r"\\\g<0>", _MARKS.sub(r"\\\g<0>", line))


def code(name: str) -> str:
    """Return a name of the program's own as code; whatever could end the code is text instead."""
    return f"`{name}`" if re.fullmatch(r"[\w .:<>=!/%+-]+", name, re.ASCII) else plain(name)


def item(text: str) -> str:
    """Return one item of a list; the text is Markdown already."""
    return f"- {text}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table as lines; its cells are Markdown already."""
    lines = [_row(headings), _row(["---"] * len(headings))]
    lines += [_row(row) for row in rows]
    return lines


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_YES: Final = {True: "yes", False: "**no**"}

Lines = Iterator[str]


def markdown_report(
    view: RunView, attention: Attention, rubric: Rubric, people: Sequence[str] = ()
) -> str:
    """Return the report on a run; ``people`` is how the judges stand with them, in lines."""
    sections = (
        _head(view),
        _attention(view, attention.concerns),
        _decision(view),
        _gates(view),
        _figures(view, rubric),
        _people(people),
        _repeats(view),
        _groups(view, rubric, "scenarios"),
        _groups(view, rubric, "demographics"),
        _cost(view),
        _extremes("Worst samples", attention.worst),
        _extremes("Slowest samples", attention.slowest),
        _metadata(view),
    )
    written = ("\n".join(section) for section in sections)
    return "\n\n".join(section for section in written if section) + "\n"


def _head(view: RunView) -> Lines:
    yield f"# {plain(view.suite)}"
    yield ""
    rubric = view.metadata.get("rubric", {})
    named = f"{rubric.get('id', '?')} {rubric.get('version', '')}".strip()
    have = view.summary[SAMPLES]
    yield (
        f"Run {code(view.run_id)}, {view.status}: {have} of {view.planned} samples,"
        f" rubric {code(named)}, begun {plain(view.created_at)}."
    )


def _attention(view: RunView, concerns: Sequence[Concern]) -> Lines:
    yield "## Needs attention"
    yield ""
    points = [item(plain(note)) for note in view.notes]
    points += [
        item(f"gate {code(gate.gate)} fails: the value is {exact(gate.value)}")
        for gate in view.gates
        if not gate.passed
    ]
    points += [item(_concern(concern)) for concern in concerns]
    points += [item(plain(line)) for line in causes_of(view.summary)]
    yield from points or ["Nothing does."]


def _concern(concern: Concern) -> str:
    many = "1 sample" if concern.count == 1 else f"{concern.count} samples"
    repeats = len({place.repeat for place in concern.samples}) > 1
    names = ", ".join(
        plain(place.id) + (f" (repeat {place.repeat})" if repeats else "")
        for place in concern.samples
    )
    left = concern.count - len(concern.samples)
    more = f" and {left} more" if left else ""
    return f"**{code(concern.kind)}**, {many}: {concern.meaning}: {names}{more}"


def _decision(view: RunView) -> Lines:
    data = view.as_data()
    if data.keys().isdisjoint({"release_ready", "decision", "quality_level"}):
        return
    yield "## Decision"
    yield ""
    if "release_ready" in data:
        why = "; ".join(plain(reason) for reason in data["release_reasons"])
        yield item(f"{code('release_ready')}: {_YES[data['release_ready']]}{why and f', {why}'}")
    if "decision" in data:
        reasons = "; ".join(plain(reason) for reason in data["decision_reasons"])
        because = f", because {reasons}" if reasons else ""
        early = "" if view.status == "finished" else ", of the samples so far"
        yield item(f"decision: {code(data['decision'])}{because}{early}")
    if "quality_level" in data:
        yield item(f"quality level: {plain(data['quality_level'])}")


def _gates(view: RunView) -> Lines:
    if not view.gates:
        return
    yield "## Gates"
    yield ""
    counts = view.summary.get("n", {})
    yield from table(
        ("gate", "value", "margin", "n", "passes"),
        (_gate(gate, counts) for gate in view.gates),
    )


def _gate(gate: GateOutcome, counts: dict[str, int]) -> Sequence[str]:
    rule = Comparison.parse(gate.gate)
    margin = rule.margin(gate.value)
    signed = f"+{exact(margin)}" if margin is not None and margin > 0 else exact(margin)
    cells = (code(gate.gate), exact(gate.value), signed, shown(counts.get(rule.name)))
    return (*cells, _YES[gate.passed])


def _figures(view: RunView, rubric: Rubric) -> Lines:
    yield "## Figures"
    yield ""
    yield from table(
        ("figure", "value", "n"),
        (
            (code(figure.name), shown(figure.value), shown(figure.n))
            for figure in metrics_of(view.summary, rubric)
        ),
    )
    winners = view.summary.get("winners")
    if winners:
        listed = ", ".join(f"{plain(side)} {count}" for side, count in winners.items())
        yield ""
        yield f"{code('winners')}: {listed}"


def _people(lines: Sequence[str]) -> Lines:
    if not lines:
        return
    yield "## People so far"
    yield ""
    yield from (item(plain(line)) for line in lines)


def _repeats(view: RunView) -> Lines:
    repeats = view.summary.get("repeats")
    if not repeats:
        return
    yield "## Repeats"
    yield ""
    yield f"Mean and sample standard deviation over n = {repeats['n']} repeats."
    yield ""
    yield from table(
        ("figure", "mean", "sd", "each"),
        (
            (
                code(name),
                shown(spread["mean"]),
                shown(spread["sd"]),
                ", ".join(map(shown, spread["values"])),
            )
            for name, spread in repeats.items()
            if name != "n"
        ),
    )


def _groups(view: RunView, rubric: Rubric, what: str) -> Lines:
    """Yield the figures of each scenario, or of each demographic."""
    groups = view.summary.get(what)
    if not groups:
        return
    yield f"## {what.capitalize()}"
    yield ""
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    passing = ("pass_rate",) if rubric.pass_rules else ()
    names = (SAMPLES, key_metric(rubric), *passing, *means)
    yield from table(
        (what.removesuffix("s"), *map(code, names)),
        (
            (plain(group), *(shown(figures.get(name)) for name in names))
            for group, figures in groups.items()
        ),
    )
    rest = view.summary.get(f"samples_of_further_{what}")
    if rest:
        one = what.removesuffix("s")
        yield ""
        yield f"{rest} samples are of further {what}, which are not counted by {one}."


def _cost(view: RunView) -> Lines:
    models: Sequence[dict[str, Any]] = view.cost.get("models", ())
    if not models:
        return
    yield "## Cost"
    yield ""
    yield f"In US dollars: {_dollars(view.cost.get('dollars'))}."
    yield ""
    counts = ("calls", "cached", "failed", "input_tokens", "output_tokens")
    yield from table(
        ("model", "role", *counts, "dollars"),
        (
            (
                plain(model["model"]),
                plain(model["role"]),
                *(shown(model.get(name)) for name in counts),
                _dollars(model.get("dollars")),
            )
            for model in models
        ),
    )


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


def _extremes(title: str, extremes: Sequence[SampleCard]) -> Lines:
    if not extremes:
        return
    rows = [each.as_data() for each in extremes]
    yield f"## {title}"
    yield ""
    yield from table(
        ("sample", "repeat", code(extremes[0].figure), "task", "why"),
        (
            (
                plain(each["id"]),
                str(each["repeat"]),
                shown(each["value"]),
                plain(each["task"]),
                plain(each["reasoning"]) or MISSING,
            )
            for each in rows
        ),
    )


def _metadata(view: RunView) -> Lines:
    yield "## Metadata"
    yield ""
    known: dict[str, Any] = {
        **view.metadata,
        "digest": view.digest,
        "finished_at": view.finished_at,
        "elapsed_s": view.elapsed_s,
    }
    yield from table(
        ("field", "value"), ((code(name), _value(value)) for name, value in known.items())
    )


def _value(value: object) -> str:
    if value is None:
        return MISSING
    return plain(value if isinstance(value, str) else msgspec.json.encode(value).decode())
