"""The panels of a run's page: gates, scenarios and demographics, the jury and its votes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from jurybox.documents.numbers import exact, metric_value, rounding_misleads
from jurybox.engine.records import RunRow
from jurybox.reporting.attention import Concern, SampleCard, numbered_card
from jurybox.reporting.html.histograms import (
    LEVEL,
    Axis,
    PlottedMetric,
    RunMetrics,
    above,
    axis_of,
)
from jurybox.reporting.metric_text import key_metric
from jurybox.reporting.pair_votes import OrderedVote, stored_votes
from jurybox.reporting.stored import SampleRecord, procedure_of, reading
from jurybox.reporting.view import RunView
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.bias_estimates import (
    BiasMetric,
    first_place_win_rate,
    flip_rate,
    swap_consistency,
)
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import wilson
from jurybox.storage.store import Store

MOST: Final = 100
"""The most groups shown."""

_UNSTABLE: Final = "unstable_rate"


class Grouping(msgspec.Struct, frozen=True, kw_only=True):
    """A run by one of its samples' labels: metrics with their axes, and the groups' values."""

    name: str
    metrics: dict[str, Axis]
    groups: dict[str, dict[str, Any]]
    left_out: int = 0
    further: int = 0


def groupings(summary: Mapping[str, Any], rubric: Rubric) -> tuple[Grouping, ...]:
    """Return a run by scenario and by demographic, if its samples have them."""
    every = (_grouping(name, summary, rubric) for name in ("scenario", "demographic"))
    return tuple(each for each in every if each.groups)


def _grouping(name: str, summary: Mapping[str, Any], rubric: Rubric) -> Grouping:
    groups: dict[str, dict[str, Any]] = summary.get(f"{name}s") or {}
    shown = dict(list(groups.items())[:MOST])
    return Grouping(
        name=name,
        metrics={
            each: axis_of(each, rubric, *(known.get(each) for known in shown.values()))
            for each in _columns(groups, rubric)
        },
        groups=shown,
        left_out=max(0, len(groups) - MOST),
        further=summary.get(f"samples_of_further_{name}s", 0),
    )


def _columns(groups: Mapping[str, Mapping[str, Any]], rubric: Rubric) -> tuple[str, ...]:
    """Return the metrics that any group has, the most informative first."""
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    overall = f"{rubric.overall_name}_mean"
    wanted = dict.fromkeys((key_metric(rubric), "pass_rate", overall, *means))
    found = [
        name for name in wanted if any(known.get(name) is not None for known in groups.values())
    ]
    # Gets a column only if any group has a value.
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
        """The displayed value; exact if rounding would mislead."""
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
    """A count out of a total; ``kind`` selects how it is drawn."""

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


# Rows of one dataset are asked about in the same way.
_LOOKED_AT: Final = 100


class Independence(msgspec.Struct, frozen=True, kw_only=True):
    """Of how many of the samples that were looked at the votes could only be the same (E10)."""

    looked_at: int
    dependent: int


def independence(store: Store, run: RunRow) -> Independence | None:
    """Return whether the votes on a run's first samples could differ; None without several."""
    looked_at = dependent = 0
    with reading(run):
        for sample in islice(store.samples(run.id), _LOOKED_AT):
            report = SampleRecord(sample).report
            if report is not None and report.votes_valid > 1:
                looked_at += 1
                dependent += not report.votes_independent
    return Independence(looked_at=looked_at, dependent=dependent) if looked_at else None


UNSTABLE: Final = "unstable"
MOST_PAIRS: Final = 5000
"""How many pairs are read: reading the votes on one takes a millisecond or two."""

_SHOWN: Final = 10


class OrderMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of what the order of two responses does, over a run's first pairs."""

    label: str
    criterion: str | None  # whose preference flips with the order; None for the winner
    metric: BiasMetric
    most: int = MOST_PAIRS


def order_metrics(store: Store, run: RunRow, most: int = MOST_PAIRS) -> tuple[OrderMetric, ...]:
    """Return the effect of order on the votes on a run's first pairs; empty without pairs."""
    with reading(run):
        votes = list(_votes(store, run, most))
    if not votes:
        return ()
    samples = [sample for sample, _ in votes]
    straight, swapped = [vote.straight for _, vote in votes], [vote.swapped for _, vote in votes]
    found = [
        OrderMetric(
            label="The first place wins, of the calls with a winner",
            criterion=None,
            metric=first_place_win_rate(straight, swapped, samples),
        ),
        OrderMetric(
            label="The winner stays when the responses change places",
            criterion=None,
            metric=swap_consistency(straight, swapped, samples),
        ),
    ]
    for name in dict.fromkeys(name for _, vote in votes for name in vote.kept):
        kept = [(sample, vote.kept[name]) for sample, vote in votes if name in vote.kept]
        flips = flip_rate(name, [each for _, each in kept], [sample for sample, _ in kept])
        label = "The preference flips with the places"
        found.append(OrderMetric(label=label, criterion=name, metric=flips))
    return tuple(found)


def _votes(store: Store, run: RunRow, most: int) -> Iterator[tuple[str, OrderedVote]]:
    """Yield the votes, read again from their replies: reports have only their outcome."""
    procedure = procedure_of(run)
    for row in islice(store.samples(run.id), most):
        record = SampleRecord(row)
        if record.report is not None and record.responses.response_b is not None:
            for vote in stored_votes(procedure, record, store):
                yield row.sample_id, vote


def unstable_pairs(
    store: Store, run: RunRow, concerns: Iterable[Concern]
) -> tuple[SampleCard, ...]:
    """Return the first pairs whose winner changes with the order."""
    places = [each for found in concerns if found.kind == UNSTABLE for each in found.samples]
    numbers = [each.number for each in places if each.number is not None]
    return tuple(numbered_card(store, run, each) for each in numbers[:_SHOWN])
