"""Computes a run's summary, gates and decision from its samples."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from statistics import fmean, stdev
from typing import Any, Final

import msgspec

from jurybox.judging.evaluation_report import CONFIDENCES, Method
from jurybox.judging.flow import ReportedModel
from jurybox.judging.formats.reply_format import SIDES
from jurybox.judging.model_versions import check_version
from jurybox.rubric.metrics import AGGREGATE_SCORE, LOWEST_SCENARIO, Comparison
from jurybox.rubric.rubric_model import Decision, Rubric
from jurybox.sample import added_usage
from jurybox.scoring.decision import decision_reasons
from jurybox.scoring.evaluate_sample import decide
from jurybox.scoring.sample_result import (
    KINDS,
    ModelUse,
    Noted,
    Role,
    SampleResult,
    cause_of,
    is_verified,
)
from jurybox.scoring.tally import Metrics, MetricSpread, MetricTally

_LATENCY: Final = "latency_e2e_p95_ms"
# A column with a different value in every row isn't a scenario; this bounds memory.
_MOST_GROUPS: Final = 1000
_MOST_CAUSES: Final = 20
_MOST_USES: Final = 1024  # added up at a time
_OTHERS: Final = "other causes"


class GateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One gate, its value, and whether it passes; without a value, it fails."""

    gate: str
    value: float | None
    passed: bool


class RunSpreads(msgspec.Struct, frozen=True, kw_only=True):
    """The spreads of a run's metrics by name, and the confidence of its verdicts."""

    # The criteria, the overall score, ``sample_score``, ``judge_score``, latency and tokens;
    # metrics without a value are left out.
    metrics: dict[str, MetricSpread]
    # How many samples with a valid vote have low, moderate and high confidence.
    confidence: dict[str, int]
    # How many pairs have votes with the same winner in both orders; the others are ``unstable``.
    stable: dict[str, int]
    votes: dict[str, int]  # how many were ``requested``, ``valid``, ``skipped`` and ``lost``


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """The model that a provider reports for a role, and for how many samples.

    ``version_verified`` is None if the model's name has no version to compare with.
    """

    role: Role
    model: str | None
    system_fingerprint: str | None
    samples: int
    version_verified: bool | None

    @property
    def version(self) -> str:
        """The model and its build as one string."""
        return " ".join(filter(None, (self.model, self.system_fingerprint)))


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples were accepted without their required reviews, and when."""

    samples: int
    at: str


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run, computed from its samples.

    ``quality_level`` is the band of the average overall score, if the rubric has bands.
    ``votes_independent`` is None if no judge was asked, and false if all votes on some sample had
    the same parameters. ``versions_changed`` means that one model answered under several versions
    during the run. ``attention`` lists reasons to look at samples, and ``spreads`` shows how values
    vary.
    """

    summary: dict[str, Any]
    gates: tuple[GateOutcome, ...]
    release_ready: bool | None
    decision: str | None
    decision_reasons: tuple[str, ...]
    review: dict[str, Any]
    uses: tuple[ModelUse, ...]
    reported: dict[str, tuple[Reported, ...]]
    versions_changed: bool
    methods: tuple[str, ...]
    votes_independent: bool | None
    quality_level: str | None
    attention: tuple[Noted, ...]
    spreads: RunSpreads

    def noted(self, kind: str) -> int:
        """Return how many samples have a reason to look at them."""
        return sum(each.count for each in self.attention if each.kind == kind)


class _Groups:
    """The samples of a run grouped by scenario or demographic."""

    def __init__(
        self, rubric: Rubric, name: str, label_of: Callable[[SampleResult], str | None]
    ) -> None:
        self._rubric = rubric
        self._name = name
        self._label_of = label_of
        self._tallies: dict[str, MetricTally] = {}
        self._uncounted = 0

    def add(self, result: SampleResult) -> None:
        label = self._label_of(result)
        if label is None:
            return
        if label not in self._tallies:
            if len(self._tallies) == _MOST_GROUPS:
                self._uncounted += 1
                return
            self._tallies[label] = MetricTally(self._rubric)
        self._tallies[label].add(result)

    def metrics(self) -> dict[str, Metrics]:
        """Return the metrics of every group, by its label."""
        return {label: tally.metrics()[0] for label, tally in sorted(self._tallies.items())}

    def lowest(self, whole: Metrics) -> Metrics:
        """Return the lowest mean overall score of a group; the run's own if there are no groups."""
        name = f"{self._rubric.overall_name}_mean"
        means = [each.get(name) for each in self.metrics().values()] or [whole.get(name)]
        known = [mean for mean in means if mean is not None]
        # A group without a mean, or beyond the limit, could be lower than all others.
        complete = len(known) == len(means) and not self._uncounted
        return {LOWEST_SCENARIO: min(known) if complete else None}

    def extras(self) -> dict[str, Any]:
        """Return the groups' part of a summary."""
        extras: dict[str, Any] = {self._name: self.metrics()} if self._tallies else {}
        if self._uncounted:
            extras[f"samples_of_further_{self._name}"] = self._uncounted
        return extras


class _Causes:
    """Counts error texts; those beyond the first thousand distinct ones count as "other"."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, counts: Mapping[str, int]) -> None:
        for cause, count in counts.items():
            known = cause in self._counts or len(self._counts) < _MOST_GROUPS
            self._counts[cause if known else _OTHERS] += count

    def most_frequent(self) -> dict[str, int]:
        ranked = sorted(self._counts.items(), key=lambda each: (-each[1], each[0]))
        rest = sum(count for _, count in ranked[_MOST_CAUSES:])
        return dict(ranked[:_MOST_CAUSES]) | ({_OTHERS: rest} if rest else {})


def _why_failed(result: SampleResult) -> Iterator[str]:
    """Yield the pass rules that a sample fails, or why it has no scores."""
    if result.target_error is not None:
        yield "no response"
    elif result.evaluator_error is not None and not result.by_rules:
        yield "no valid vote"
    else:
        for rule in result.rules:
            if rule.passed is not True:
                yield rule.rule if rule.value is not None else f"{rule.rule} (not measured)"


class RunTally:
    """Accumulates a run's samples: overall, by repeat, by scenario and by demographic."""

    def __init__(self, rubric: Rubric, repeats: int) -> None:
        self._rubric = rubric
        self._whole = MetricTally(rubric, spread=True)
        self._repeats = [MetricTally(rubric) for _ in range(repeats)] if repeats > 1 else []
        self._scenarios = _Groups(rubric, "scenarios", attrgetter("scenario"))
        self._demographics = _Groups(rubric, "demographics", attrgetter("demographic"))
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._lost_causes, self._target_errors = _Causes(), _Causes()
        self._confidence: dict[str, int] = dict.fromkeys(CONFIDENCES, 0)
        self._stable = {"stable": 0, "unstable": 0}
        self._votes = Counter(requested=0, valid=0, skipped=0, lost=0)
        self._judged = self._dependent = 0
        self._methods: set[Method] = set()
        self._noted = dict.fromkeys(KINDS, 0)
        self._uses: defaultdict[tuple[Role, str], list[ModelUse]] = defaultdict(list)
        self._reported: defaultdict[tuple[Role, str], Counter[ReportedModel]]
        self._reported = defaultdict(Counter)
        self.samples = 0
        """The number of samples added so far."""
        self.queued = 0

    def add(self, result: SampleResult, repeat: int) -> None:
        """Add one sample.

        Raises:
            IndexError: the run has no such repeat.

        """
        if self._repeats:
            self._repeats[repeat].add(result)
        self.samples += 1
        self.queued += result.needs_review
        for name, kind in KINDS.items():
            self._noted[name] += kind.concerns(result)
        self._count(result)
        for use in result.uses:
            self._add_use(use)
        self.add_reported(result.uses)
        self._whole.add(result, repeat)
        self._scenarios.add(result)
        self._demographics.add(result)

    def count(self, rate: str) -> int:
        """Return how many samples a rate, such as `unscored_rate`, has counted so far."""
        return self._whole.flags[rate]

    def _count(self, result: SampleResult) -> None:
        counts = self._counts
        if result.needs_review:
            counts["reasons"].update(result.review_reasons)
        if result.evaluator_error is not None:
            counts["evaluator_errors"][result.evaluator_error] += 1
        self._lost_causes.add(result.lost_causes)
        if result.target_error is not None:
            self._target_errors.add({cause_of(result.target_error): 1})
        if result.passed is False:
            counts["failed_samples"].update(_why_failed(result))
        if result.winner is not None:
            counts["winners"][result.winner] += 1
        if result.method is not None:
            self._methods.add(result.method)
        self._judged += result.judged
        self._dependent += not result.votes_independent
        if result.confidence is not None and result.votes_valid:
            self._confidence[result.confidence] += 1
        if result.stable is not None:
            self._stable["stable" if result.stable else "unstable"] += 1
        for name in self._votes:
            self._votes[name] += getattr(result, f"votes_{name}")

    def _add_use(self, use: ModelUse) -> None:
        key = (use.role, use.model)
        uses = self._uses[key]
        uses.append(use)
        if len(uses) == _MOST_USES:
            uses[:] = [_added(uses)]

    def add_reported(self, uses: Iterable[ModelUse]) -> None:
        """Count which models answered for one sample, finished or not."""
        for use in uses:
            self._reported[use.role, use.model].update(use.reported)

    def uses(self) -> tuple[ModelUse, ...]:
        """Return every model's calls and usage so far."""
        for uses in self._uses.values():
            uses[:] = [_added(uses)]
        return tuple(self._uses[key][0] for key in sorted(self._uses))

    def conclude(self) -> Conclusion:
        """Return the summary of the samples so far."""
        metrics, counts = self._whole.metrics()
        metrics |= self._scenarios.lowest(metrics)
        gates = check_gates(self._rubric.gates, metrics)
        decision = decide(self._rubric.decisions, metrics) if self._decidable(metrics) else None
        reported = self._models_reported()
        return Conclusion(
            summary={
                **metrics,
                "n": counts,
                "unscored_votes": self._votes["lost"],
                **self._extras(),
            },
            gates=gates,
            release_ready=all(gate.passed for gate in gates) if gates else None,
            decision=None if decision is None else decision.decide,
            decision_reasons=self._why(decision, metrics),
            review={
                "queued": self.queued,
                "reasons": dict(sorted(self._counts["reasons"].items())),
            },
            uses=self.uses(),
            reported=reported,
            versions_changed=any(len(each) > 1 for each in self._reported.values()),
            methods=tuple(sorted(self._methods)),
            votes_independent=None if not self._judged else not self._dependent,
            quality_level=self._quality_level(metrics),
            attention=tuple(
                Noted(kind=name, count=count) for name, count in self._noted.items() if count
            ),
            spreads=RunSpreads(
                metrics=self._whole.spreads(),
                confidence=dict(self._confidence),
                stable=dict(self._stable),
                votes=dict(self._votes),
            ),
        )

    def _models_reported(self) -> dict[str, tuple[Reported, ...]]:
        found: dict[str, tuple[Reported, ...]] = {}
        for (role, name), counts in sorted(self._reported.items()):
            found[name] = found.get(name, ()) + tuple(
                Reported(
                    role=role,
                    model=each.model or None,
                    system_fingerprint=each.fingerprint or None,
                    samples=count,
                    version_verified=is_verified(name, each),
                )
                for each, count in sorted(counts.items())
                if str(each) or check_version(name, None)
            )
        return {name: reported for name, reported in found.items() if reported}

    def _quality_level(self, metrics: Metrics) -> str | None:
        overall = metrics.get(f"{self._rubric.overall_name}_mean")
        band = None if overall is None else self._rubric.band(overall)
        return None if band is None else band.label

    def _why(self, decision: Decision | None, metrics: Metrics) -> tuple[str, ...]:
        if decision is None:
            return ()
        groups = self._scenarios.metrics()
        reasons = decision_reasons(self._rubric, decision, metrics, groups)
        return tuple(each.sentence for each in reasons)

    def _decidable(self, metrics: Mapping[str, float | None]) -> bool:
        """Return whether there are samples, and all metrics that decisions use are known."""
        decisions = self._rubric.decisions
        rules = (rule for each in decisions for rule in (*each.when_any, *each.when_all))
        return bool(self.samples) and all(metrics.get(rule.name) is not None for rule in rules)

    def _extras(self) -> dict[str, Any]:
        """Return the optional parts of a summary."""
        extras: dict[str, Any] = {}
        if self._votes["skipped"]:
            extras["skipped_votes"] = self._votes["skipped"]
        causes = {
            "unscored_causes": self._lost_causes.most_frequent(),
            "target_errors": self._target_errors.most_frequent(),
            "failed_samples": dict(sorted(self._counts["failed_samples"].items())),
            "evaluator_errors": dict(sorted(self._counts["evaluator_errors"].items())),
        }
        extras |= {name: counts for name, counts in causes.items() if counts}
        if winners := self._counts["winners"]:
            extras["winners"] = {side: winners[side] for side in SIDES}
        if self._repeats:
            extras["repeats"] = self._spreads()
        return extras | self._scenarios.extras() | self._demographics.extras()

    def _spreads(self) -> dict[str, Any]:
        each = [tally.metrics()[0] for tally in self._repeats]
        overall = f"{self._rubric.overall_name}_mean"
        names = dict.fromkeys(
            (AGGREGATE_SCORE, _LATENCY, overall, *(gate.name for gate in self._rubric.gates))
        )
        spreads = {
            name: _spread([metrics[name] for metrics in each]) for name in names if name in each[0]
        }
        return {"n": len(each), **spreads}


def _counts(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for each in filter(None, counts):
        total.update(each)
    return dict(sorted(total.items()))


def _added(uses: Sequence[ModelUse]) -> ModelUse:
    """Add uses of one model in one role."""
    return ModelUse(
        model=uses[0].model,
        role=uses[0].role,
        calls=sum([use.calls for use in uses]),
        cached=sum([use.cached for use in uses]),
        failed=sum([use.failed for use in uses]),
        unknown=sum([use.unknown for use in uses]),
        usage=added_usage([use.usage for use in uses]),
        refused=_counts([use.refused for use in uses]),
        unsent=_counts([use.unsent for use in uses]),
    )


def check_gates(
    gates: Sequence[Comparison], metrics: Mapping[str, float | None]
) -> tuple[GateOutcome, ...]:
    """Check every gate against the run's metrics; a missing metric fails its gate."""
    return tuple(
        GateOutcome(
            gate=str(gate),
            value=metrics.get(gate.name),
            passed=gate.passes(metrics.get(gate.name)),
        )
        for gate in gates
    )


def _spread(values: Sequence[float | None]) -> dict[str, Any]:
    """Return a metric over repeats: its mean and sample standard deviation.

    If a repeat lacks the metric, both are unknown.
    """
    known = [value for value in values if value is not None]
    whole = len(known) == len(values) > 0
    return {
        "mean": fmean(known) if whole else None,
        "sd": stdev(known) if whole and len(known) > 1 else None,
        "values": list(values),
    }
