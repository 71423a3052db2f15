"""Tests whether two runs differ by more than chance, metric by metric.

For each metric, every sample measured in both runs gives one pair of values. All metrics of a
comparison are tested together, with Holm's correction, so that the rate of false alarms doesn't
grow with the number of criteria.
"""

from array import array
from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Literal

import msgspec

from jurybox.documents.numbers import metric_change
from jurybox.errors import InputError
from jurybox.rubric.metrics import SAMPLE_SCORE, WIN_RATE
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Row
from jurybox.scoring.sample_result import JUDGE_SCORE, POINTS_OF_B, SampleResult
from jurybox.statistics.paired_comparison import PairedComparison, adjusted, compare_paired
from jurybox.text_format import counted

Wanted = Literal["higher", "lower", "neither"]
"""Which direction of a metric is better."""

_PASSED: Final = "passed"
UNSCORED: Final = "unscored"
"""Whether the judges gave a sample no score."""
_RATES: Final[Mapping[str, str]] = {
    _PASSED: "pass_rate",
    "safety_flag": "safety_rate",
    UNSCORED: "unscored_rate",
    "target_error": "target_error_rate",
}
"""The metric of a run for each yes or no of its samples."""
_WANTED: Final[Mapping[str, Wanted]] = {name: "lower" for name in _RATES if name != _PASSED}
RIGHT: Final = "right"
"""The share of a sample's human labels that the judge agrees with."""


def comparable_scores(one: Rubric, other: Rubric) -> tuple[str, ...]:
    """Return the scores that mean the same in two rubrics.

    A score with the same name but a different scale is a different metric. With a single criterion,
    the overall score is left out, because it would test the same values twice.
    """
    scales = {each.id: each.scale for each in other.criteria}
    names = [each.id for each in one.criteria if scales.get(each.id) == each.scale]
    if one.overall_name == other.overall_name and max(len(one.criteria), len(scales)) > 1:
        names.append(one.overall_name)
    if one.components and other.components:
        names.append(SAMPLE_SCORE)
    return (*names, JUDGE_SCORE)


def rescaled(one: Rubric, other: Rubric) -> tuple[str, ...]:
    """Return the criteria that two rubrics have on different scales."""
    scales = {each.id: each.scale for each in other.criteria}
    return tuple(each.id for each in one.criteria if scales.get(each.id, each.scale) != each.scale)


def score_of(result: SampleResult, name: str) -> float | None:
    """Return a score of a sample by its name: the mean of several votes, not the majority."""
    return result.vote_means.get(name, recorded_score(result, name))


def recorded_score(result: SampleResult, name: str) -> float | None:
    """Return a score of a sample by its name, as pass rules and pages use it."""
    return result.judge_opinion if name == JUDGE_SCORE else result.metrics.get(name)


def passed_of(result: SampleResult) -> bool | None:
    """Return whether a sample passed; None if its judges failed, so that it isn't known."""
    return None if result.evaluator_error is not None else result.passed


def win_of(result: SampleResult) -> float | None:
    """Return how far response A of a pair wins, from 0 to 1."""
    points_of_b = result.vote_means.get(POINTS_OF_B)
    return result.win if result.win is None or points_of_b is None else 1 - points_of_b


_ROW: Final = msgspec.json.Decoder(Row)


class SampleClusters:
    """Finds the clusters of samples by a field, or by their ids by default.

    The repeats of a sample form one cluster. A sample without the field is its own cluster.
    """

    def __init__(self, field: str | None = None) -> None:
        """Set the name of the field: ``scenario``, or a key of the row's metadata."""
        self._field = field
        self._found = False
        self._repeated = False

    def of(self, sample_id: str, repeat: int, inputs: str) -> Hashable:
        """Return the cluster of a sample; ``inputs`` is its row of the dataset, as JSON."""
        self._repeated = self._repeated or repeat > 0
        if self._field is None:
            return sample_id
        row = _ROW.decode(inputs)
        value = row.scenario if self._field == "scenario" else row.metadata.get(self._field)
        if value is None:
            return ("", sample_id)
        self._found = True
        if isinstance(value, str):
            return value
        return msgspec.json.encode(value, order="deterministic").decode()

    @property
    def needed(self) -> bool:
        """Whether any two samples so far may share a cluster."""
        return self._field is not None or self._repeated

    def check(self, where: str) -> None:
        """Refuse a field that no sample has."""
        if self._field is not None and not self._found:
            problem = f"no sample has a field `{self._field}` to cluster by"
            hint = "name `scenario` or another column of the dataset"
            raise InputError(problem, hint, where)


class MetricDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A tested metric of two runs; ``only_in_a`` counts the samples that have it only in A.

    ``shares`` are the rates in A and B over all samples in both runs, as metrics of runs count
    them: a sample without a verdict doesn't pass. It is None unless the metric is yes or no.
    """

    metric: str
    wanted: Wanted
    only_in_a: int
    only_in_b: int
    shares: tuple[float, float] | None = None
    comparison: PairedComparison

    @property
    def is_share(self) -> bool:
        """Whether its mean is a share of samples, or of labels."""
        return self.metric in {*_RATES, RIGHT}

    @property
    def name(self) -> str:
        """The metric of a run if it is yes or no, else the score or what else is tested."""
        return _RATES.get(self.metric, self.metric)

    @property
    def formatted_as(self) -> str:
        """The name by which its values are formatted; a criterion's name may look like a rate."""
        if self.is_share or self.metric == WIN_RATE:
            return "share_rate"
        return "" if self.metric.endswith("_rate") else self.metric

    def unlike(self, shown: float | None) -> str:
        """Return the tested difference after a colon if another one is shown; else ``""``."""
        both = self.comparison.difference, shown
        said, other = (metric_change(self.formatted_as, each) for each in both)
        return "" if said == other else f": {said}"

    @property
    def outcome(self) -> str:
        """The verdict in words for readers."""
        made = self.comparison
        if not made.differing:
            return f"equal on {counted(made.n, 'sample')}"
        return "not clearly different" if made.verdict == "undecided" else made.verdict

    @property
    def regression(self) -> bool:
        """Whether it got significantly worse."""
        worse = {"higher": "lower", "lower": "higher", "neither": None}[self.wanted]
        return worse is not None and self.comparison.verdict == worse

    @property
    def gained(self) -> bool:
        """Whether it got significantly better; fewer failures of judges don't count as a gain."""
        counts = self.wanted != "neither" and self.metric != UNSCORED
        return counts and self.comparison.verdict == self.wanted

    def without_chance(self) -> "MetricDifference":
        """Return it without a test, for runs with the same replies, whose difference is exact."""
        made = self.comparison
        exact = PairedComparison(
            n=made.n,
            differing=made.differing,
            mean_a=made.mean_a,
            mean_b=made.mean_b,
            difference=made.difference,
            reason="not tested: both runs have the same replies, so the difference is exact",
        )
        return msgspec.structs.replace(self, comparison=exact)

    @property
    def of_failures(self) -> bool:
        """Whether it counts failed judges or targets, so that every sample has a value."""
        return self.metric in {UNSCORED, "target_error"}

    @property
    def of_responses(self) -> bool:
        """Whether it is about responses (a score, verdict or winner) and has a pair of values."""
        return bool(self.comparison.n) and (self.metric == _PASSED or not self.is_share)


class _Pairs:
    """The values of one metric in both runs, in arrays, since there may be very many."""

    def __init__(self) -> None:
        self.a = array("d")
        self.b = array("d")
        self.places = array("q")
        self.only_in_a = 0
        self.only_in_b = 0
        self.sums = [0.0, 0.0]

    def add(self, place: int, a: float | None, b: float | None) -> None:
        self.sums = [self.sums[0] + (a or 0.0), self.sums[1] + (b or 0.0)]
        if a is None or b is None:
            self.only_in_a += a is not None
            self.only_in_b += b is not None
            return
        self.a.append(a)
        self.b.append(b)
        self.places.append(place)


class DifferenceTests:
    """Collects the pairs of two runs, and tests them."""

    def __init__(self, scores: Iterable[str], wins: Wanted = "neither") -> None:
        """Set the names of the scores to test, of which higher is better, and so of the wins."""
        self._scores = tuple(scores)
        self._wins: Wanted = wins
        self._pairs: dict[str, _Pairs] = {}
        self._clusters: list[Hashable] = []

    def add(
        self,
        one: SampleResult,
        other: SampleResult,
        cluster: Hashable,
        right: tuple[float | None, float | None] = (None, None),
    ) -> None:
        """Add a sample's results in both runs, and each judge's agreement with its labels."""
        place = len(self._clusters)
        self._clusters.append(cluster)
        a, b = self._values(one) | {RIGHT: right[0]}, self._values(other) | {RIGHT: right[1]}
        for name in a:
            if a[name] is not None or b[name] is not None:
                self._pairs.setdefault(name, _Pairs()).add(place, a[name], b[name])

    def _values(self, result: SampleResult) -> dict[str, float | None]:
        return {
            **{name: score_of(result, name) for name in self._scores},
            _PASSED: None if (passed := passed_of(result)) is None else float(passed),
            "safety_flag": float(result.safety_flag) if result.safety_known else None,
            UNSCORED: float(result.evaluator_error is not None),
            "target_error": float(result.target_error is not None),
            WIN_RATE: win_of(result),
        }

    def tested(
        self, *, clustered: bool, level: float = 0.95, seed: int = 0
    ) -> tuple[MetricDifference, ...]:
        """Test every metric that both runs have, with Holm's correction.

        Agreement with labels is tested separately, so that a new review doesn't change the tests of
        the responses.
        """
        every = (*self._scores, *_RATES, WIN_RATE, RIGHT)
        names = [name for name in every if name in self._pairs and self._is_tested(name)]
        made = [self._compare(name, clustered=clustered, level=level, seed=seed) for name in names]
        own = names.index(RIGHT) if RIGHT in names else len(names)
        compared = (*adjusted(made[:own]), *adjusted(made[own:]))
        return tuple(
            MetricDifference(
                metric=name,
                wanted=self._wins if name == WIN_RATE else _WANTED.get(name, "higher"),
                only_in_a=self._pairs[name].only_in_a,
                only_in_b=self._pairs[name].only_in_b,
                shares=self._shares(name) if name in _RATES else None,
                comparison=comparison,
            )
            for name, comparison in zip(names, compared, strict=True)
        )

    def _is_tested(self, name: str) -> bool:
        """Return whether to test a metric; flags that are never set would weaken other tests."""
        pairs = self._pairs[name]
        return name not in _RATES or name == _PASSED or any(pairs.a) or any(pairs.b)

    def _shares(self, name: str) -> tuple[float, float]:
        a, b = self._pairs[name].sums
        return a / len(self._clusters), b / len(self._clusters)

    def _compare(self, name: str, *, clustered: bool, level: float, seed: int) -> PairedComparison:
        pairs = self._pairs[name]
        clusters = [self._clusters[place] for place in pairs.places] if clustered else None
        return compare_paired(
            list(pairs.a),
            list(pairs.b),
            binary=name in _RATES,
            clusters=clusters,
            level=level,
            seed=seed,
        )
