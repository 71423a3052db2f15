"""The panels of a run's page: gates, scenarios and demographics, the jury and its votes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from jurybox.calibration.bias_metrics import position
from jurybox.calibration.bias_results import BiasMetric
from jurybox.calibration.observations import Observations
from jurybox.engine.records import RunRow
from jurybox.reporting.attention import SampleCard, numbered_card
from jurybox.reporting.html.histograms import LEVEL, Axis, PlottedMetric, RunMetrics, above, axis_of
from jurybox.reporting.judge_votes import stored_votes
from jurybox.reporting.metric_text import key_metric
from jurybox.reporting.stored import SampleRecord, procedure_of, reading
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import UNSTABLE_RATE, WIN_RATE, Comparison
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import wilson
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store


def groupings(summary: Mapping[str, Any], rubric: Rubric) -> dict[str, dict[str, Axis]]:
    """Return the metrics of a run's scenarios and demographics, each with its axis."""
    found: dict[str, dict[str, Axis]] = {}
    for name in ("scenario", "demographic"):
        groups: dict[str, dict[str, Any]] = summary.get(f"{name}s") or {}
        if groups:
            found[name] = {
                metric: axis_of(metric, rubric, *(known.get(metric) for known in groups.values()))
                for metric in _columns(groups, rubric)
            }
    return found


def _columns(groups: Mapping[str, Mapping[str, Any]], rubric: Rubric) -> tuple[str, ...]:
    """Return the metrics that any group has, the most informative first."""
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    overall = f"{rubric.overall_name}_mean"
    wanted = dict.fromkeys((WIN_RATE, key_metric(rubric), "pass_rate", overall, *means))
    found = [
        name for name in wanted if any(known.get(name) is not None for known in groups.values())
    ]
    # The unstable rate gets a column only if it isn't zero in every group.
    if any(known.get(UNSTABLE_RATE) for known in groups.values()):
        found.append(UNSTABLE_RATE)
    return tuple(found)


_CLOSE: Final = 0.3


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """A gate of a run with the statistics of its metric."""

    outcome: GateOutcome
    rule: Comparison
    metric: PlottedMetric

    @property
    def close(self) -> bool:
        """Whether the threshold lies within the interval, so that chance may have decided."""
        interval = self.metric.interval
        return interval is not None and interval.low <= self.rule.number <= interval.high

    @property
    def eventless(self) -> bool:
        """Whether it is a rate without an event: only in large runs does this exclude chance."""
        return self.close and self.rule.name.endswith("_rate") and not self.metric.value

    @property
    def unsure(self) -> bool:
        """Whether chance may have decided; no run is large enough to exclude it at zero."""
        return self.close and not (self.eventless and not self.rule.number)


def gauges(view: RunView, corrected: Mapping[str, Interval | None] = {}) -> Iterator[Gauge]:
    """Yield a run's gates with the statistics of their metrics, perhaps of corrected values."""
    metrics = RunMetrics(view.conclusion, view.rubric)
    for gate in view.gates:
        made = _gauge(gate, view.rubric, metrics)
        if gate.gate in corrected:
            own = msgspec.structs.replace(made.metric, interval=corrected[gate.gate])
            made = msgspec.structs.replace(made, metric=own)
        yield made


def _gauge(gate: GateOutcome, rubric: Rubric, metrics: RunMetrics) -> Gauge:
    rule = Comparison.parse(gate.gate)
    known = metrics.at(rule.name, gate.value)
    axis = axis_of(rule.name, rubric, gate.value, rule.number)
    drawn = [gate.value, rule.number, None if known.interval is None else known.interval.high]
    metric = msgspec.structs.replace(known, axis=_near(axis, drawn))
    return Gauge(outcome=gate, rule=rule, metric=metric)


def _near(axis: Axis, values: Sequence[float | None]) -> Axis:
    """Zoom in if all values lie at the lower end."""
    most = max((value for value in values if value is not None), default=axis.high)
    if axis.low < 0 or not 0 < most <= _CLOSE * axis.high:
        return axis
    return msgspec.structs.replace(axis, high=above(most), bounded=False)


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How the order of two responses affects winners; ``n`` is 0 if each was scored alone."""

    n: int  # how many pairs were judged in both orders
    unstable: int  # how many of them have a vote whose winner changes with the order
    interval: Interval | None
    winners: dict[str, int]


def position_of(view: RunView) -> Position | None:
    """Return the effect of the order; None if no pairs were compared."""
    winners: dict[str, int] = view.summary.get("winners") or {}
    stable = view.conclusion.spreads.stable
    n, unstable = sum(stable.values()), stable.get("unstable", 0)
    if not winners and not n:
        return None
    repeats: int = view.summary.get("repeats", {}).get("n", 1)
    interval = wilson(unstable / repeats, n / repeats, LEVEL) if n else None
    return Position(n=n, unstable=unstable, interval=interval, winners=winners)


def with_lost_votes(store: Store, view: RunView) -> int:
    """Count the samples that have a lost vote."""
    if not view.summary["unscored_votes"]:
        return 0
    return store.find_samples(view.run_id, SampleQuery(limit=0)).flags.get("lost_votes", 0)


MOST_PAIRS: Final = 1000
"""The maximum number of pairs to read; reading a pair's votes takes a millisecond or two."""

_SHOWN: Final = 10


def order_metrics(store: Store, run: RunRow, most: int = MOST_PAIRS) -> tuple[BiasMetric, ...]:
    """Return how the order affects the votes on a run's first pairs; empty without pairs.

    The votes are read again from the replies, since reports have only the votes' outcome.
    """
    procedure = procedure_of(run)
    with reading(run):
        records = map(SampleRecord, islice(store.samples(run.id), most))
        votes = [vote for each in records for vote in stored_votes(procedure, each, store)]
    return tuple(position(Observations(voted=votes))) if votes else ()


def unstable_winners(store: Store, view: RunView) -> dict[str, int]:
    """Count the ties and wins among the unstable pairs; empty without unstable pairs."""
    if not view.conclusion.spreads.stable.get("unstable"):
        return {}
    query = SampleQuery(flags=("unstable",), limit=1)
    sides = (msgspec.structs.replace(query, winner=side) for side in ("tie", "A", "B"))
    return {str(each.winner): store.find_samples(view.run_id, each).total for each in sides}


def unstable_pairs(store: Store, run: RunRow) -> tuple[SampleCard, ...]:
    """Return the first unstable pairs, including reviewed ones."""
    found = store.find_samples(run.id, SampleQuery(flags=("unstable",), limit=_SHOWN)).rows
    return tuple(numbered_card(store, run, row.number) for row in found)
