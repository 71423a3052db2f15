"""The panels of a run's page: gates, scenarios and demographics, and the jury."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.reporting.html.histograms import (
    LEVEL,
    Axis,
    PlottedMetric,
    RunMetrics,
    above,
    axis_of,
)
from jurybox.reporting.metric_text import (
    exact,
    key_metric,
    metric_value,
    rounding_misleads,
)
from jurybox.reporting.view import RunView
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import SAMPLES
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import wilson

MOST: Final = 100
"""The most groups shown."""

_UNSTABLE: Final = "unstable_rate"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a group, and the ends between which it is drawn."""

    value: float | None
    axis: Axis


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The samples with one label."""

    label: str
    samples: int
    cells: tuple[Cell, ...]


class Grouping(msgspec.Struct, frozen=True, kw_only=True):
    """A run by one of its samples' labels."""

    name: str
    figures: tuple[str, ...]
    groups: tuple[Group, ...]
    left_out: int = 0
    further: int = 0


def groupings(summary: Mapping[str, Any], rubric: Rubric) -> tuple[Grouping, ...]:
    """Return a run by scenario and by demographic, where its samples say them."""
    every = (_grouping(name, summary, rubric) for name in ("scenario", "demographic"))
    return tuple(each for each in every if each.groups)


def _grouping(name: str, summary: Mapping[str, Any], rubric: Rubric) -> Grouping:
    groups: Mapping[str, Mapping[str, Any]] = summary.get(f"{name}s") or {}
    figures = _columns(groups, rubric)
    return Grouping(
        name=name,
        figures=figures,
        groups=tuple(
            Group(
                label=label,
                samples=known.get(SAMPLES, 0),
                cells=tuple(
                    Cell(value=known.get(figure), axis=axis_of(figure, rubric, known.get(figure)))
                    for figure in figures
                ),
            )
            for label, known in list(groups.items())[:MOST]
        ),
        left_out=max(0, len(groups) - MOST),
        further=summary.get(f"samples_of_further_{name}s", 0),
    )


def _columns(groups: Mapping[str, Mapping[str, Any]], rubric: Rubric) -> tuple[str, ...]:
    """Return the figures that any group has, the one that says most first."""
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    overall = f"{rubric.overall_name}_mean"
    wanted = dict.fromkeys((key_metric(rubric), "pass_rate", overall, *means))
    found = [
        name for name in wanted if any(known.get(name) is not None for known in groups.values())
    ]
    # Worth a column only where there is one to be seen.
    if any(known.get(_UNSTABLE) for known in groups.values()):
        found.append(_UNSTABLE)
    return tuple(found)


_CLOSE: Final = 0.3


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """A gate of a run, and what is known of its metric.

    ``upward`` is whether more is better, None where it asks for one number; ``margin`` is how far
    the value is on the good side, below zero on the other.
    """

    gate: str
    value: float | None
    passed: bool
    threshold: float
    upward: bool | None
    margin: float | None
    metric: PlottedMetric

    @property
    def close(self) -> bool:
        """Whether the threshold lies within the interval, so that chance may have decided."""
        interval = self.metric.interval
        return interval is not None and interval.low <= self.threshold <= interval.high

    @property
    def written(self) -> str:
        """The value for people; exact where rounding would mislead."""
        if self.value is None or not rounding_misleads(self.value, self.threshold):
            return metric_value(self.metric.name, self.value)
        return exact(self.value)


def gauge(gate: GateOutcome, rubric: Rubric, metrics: RunMetrics) -> Gauge:
    """Return a gate with all that is known of its metric."""
    rule = Comparison.parse(gate.gate)
    known = metrics.of(rule.name)
    axis = axis_of(rule.name, rubric, gate.value, rule.number)
    drawn = [gate.value, rule.number, None if known.interval is None else known.interval.high]
    return Gauge(
        gate=gate.gate,
        value=gate.value,
        passed=gate.passed,
        threshold=rule.number,
        upward=rule.upward,
        margin=rule.margin(gate.value),
        metric=msgspec.structs.replace(known, axis=_near(axis, drawn)),
    )


def _near(axis: Axis, values: Sequence[float | None]) -> Axis:
    """Look closer where all that is drawn lies at the lower end."""
    most = max((value for value in values if value is not None), default=axis.high)
    if axis.low < 0 or not 0 < most <= _CLOSE * axis.high:
        return axis
    return msgspec.structs.replace(axis, high=above(most), bounded=False)


_SIDES: Final = ("A", "B", "tie")


class CountShare(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a whole: how many of how many; ``kind`` is what it is drawn by."""

    label: str
    kind: str
    count: int
    n: int

    @property
    def share(self) -> float:
        """The part that it is, from 0 to 1."""
        return self.count / self.n if self.n else 0.0


class Jury(msgspec.Struct, frozen=True, kw_only=True):
    """How far the votes on a sample agree."""

    judges: str
    votes_each: int | None
    confidence: tuple[CountShare, ...]
    votes: dict[str, int]
    lost: int


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the order of two responses decides."""

    stable: int | None
    n: int
    interval: Interval | None
    orders: tuple[CountShare, ...]
    winners: tuple[CountShare, ...]
    on_unstable: str


def jury_of(view: RunView) -> Jury | None:
    """Return how far the judges agree; None without judges."""
    judges: str | None = view.metadata.get("evaluator_model_id")
    if not judges:
        return None
    spreads = view.conclusion.spreads
    confidence = spreads.confidence
    n = sum(confidence.values())
    return Jury(
        judges=judges,
        votes_each=view.metadata.get("votes"),
        confidence=tuple(
            CountShare(label=kind, kind=kind, count=confidence.get(kind, 0), n=n)
            for kind in ("high", "moderate", "low")
            if n
        ),
        votes=spreads.votes,
        lost=view.summary["unscored_votes"],
    )


def position_of(view: RunView, rubric: Rubric) -> Position | None:
    """Return whether the order decides; None where no pairs were compared."""
    winners: dict[str, Any] = view.summary.get("winners") or {}
    stable = view.conclusion.spreads.stable
    reported = sum(stable.values())
    if not winners and not reported:
        return None
    n = sum(winners.values())
    repeats: int = view.summary.get("repeats", {}).get("n", 1)
    unstable = stable.get("unstable", 0)
    return Position(
        stable=stable.get("stable", 0) if reported else None,
        n=reported or n,
        interval=wilson(unstable / repeats, reported / repeats, LEVEL) if reported else None,
        orders=tuple(
            CountShare(label=label, kind=kind, count=count, n=reported)
            for label, kind, count in (
                ("same winner in both orders", "high", reported - unstable),
                ("winner changed with the order", "low", unstable),
            )
            if reported
        ),
        winners=tuple(
            CountShare(label=side, kind=f"side-{side.lower()}", count=winners.get(side, 0), n=n)
            for side in _SIDES
            if n
        ),
        on_unstable=rubric.protocol.on_unstable,
    )
