"""A judge's figures on a whole run, corrected by what people said of some of its samples."""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final, Protocol

import msgspec

from jurybox.calibration.gold import Gold, gold_scales, read_gold
from jurybox.errors import InputError
from jurybox.judging.verdict import Side
from jurybox.reporting.clustering import Clustering
from jurybox.reporting.significance import POINTS, POINTS_OF_B
from jurybox.reporting.stored import damaged, plan_of, rubric_of
from jurybox.rubric.model import Rubric
from jurybox.running.outcomes import read_result
from jurybox.running.records import RunRow, SampleRow
from jurybox.running.storing import Store
from jurybox.sample import Row
from jurybox.scoring.automated import overall_score
from jurybox.scoring.result import SampleResult
from jurybox.statistics.corrected.mean import Labels, corrected_mean, labels
from jurybox.statistics.corrected.rate import corrected_rate
from jurybox.statistics.corrected.result import CorrectedMean, CorrectedRate

_ROW: Final = msgspec.json.Decoder(Row)

Key = str | int
"""What tells samples: their ids, or with reviews their numbers."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: what the judge says, what people say, and both together.

    ``unscored`` counts labelled samples that the judge gave no figure. ``rate`` is the other way to
    correct a figure that is yes or no: by how often the judge is right on either.
    """

    figure: str
    mean: CorrectedMean
    rate: CorrectedRate | None = None
    unscored: int = 0


class Estimates(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a run that people have labels for.

    ``strangers`` counts labels whose samples the run doesn't have.
    """

    run_id: str
    samples: int
    labelled: int
    strangers: int
    estimates: tuple[Estimate, ...]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is corrected.

    Attributes:
        gold: people's labels by the ids of samples; None takes those that the run's rows carry.
        reviewed: people's labels by the numbers of samples, in place of either.
        cluster: the field by which samples belong together.
        level: how often the intervals shall cover the true figure.

    """

    gold: Mapping[str, Gold] | None = None
    reviewed: Mapping[int, Gold] | None = None
    cluster: str | None = None
    level: float = 0.95


def estimate(store: Store, run: RunRow, question: Question) -> Estimates:
    """Correct every figure of a run that people have labels for.

    Repeats of a sample are one: their mean. Reviews are of a response, though, so that with these
    every repeat stands for itself, and those of a sample are clustered.

    Raises:
        InputError: there is no label for any sample, a row's label can't be one, or no sample has
            the field to cluster by.
        IncompleteError: what is stored can't be read.

    """
    rubric = rubric_of(run)
    reading = _ById(rubric, question) if question.reviewed is None else _ByNumber(run, question)
    try:
        reading.read(store, run)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    reading.clustering.check(run.id)
    if not reading.gold:
        mend = "give some with --gold"
        if question.gold is not None:
            mend = "check that the ids are those of the run's samples"
        raise InputError("no sample of the run has a label", mend, run.id)
    return Estimates(
        run_id=run.id,
        samples=len(reading.seen),
        labelled=len(reading.gold),
        strangers=reading.strangers,
        estimates=tuple(_estimates(rubric, reading, question)),
    )


class _Reading(Protocol):
    """What the judge and people say of each sample."""

    clustering: Clustering
    seen: set[Key]
    gold: dict[Key, Gold]

    def read(self, store: Store, run: RunRow) -> None:
        """Read all samples."""
        ...

    @property
    def strangers(self) -> int:
        """How many labels are of samples that aren't there."""
        ...

    def judge(self, name: str) -> Mapping[Key, float]:
        """Return a figure of the judge, by sample."""
        ...

    def cluster(self, key: Key) -> Hashable | None:
        """Return what a sample belongs to; None where all stand for themselves."""
        ...


class _ById:
    """Samples by their ids, their repeats as one."""

    def __init__(self, rubric: Rubric, question: Question) -> None:
        self._scales = gold_scales(rubric)
        self._question = question
        self.clustering = Clustering(question.cluster)
        self.seen: set[Key] = set()
        self.gold: dict[Key, Gold] = {}
        self._figures: dict[str, dict[Key, list[float]]] = {}
        self._clusters: dict[Key, Hashable] = {}

    def read(self, store: Store, run: RunRow) -> None:
        for sample in store.samples(run.id):
            self._add(sample)

    def _add(self, sample: SampleRow) -> None:
        key = sample.sample_id
        self.seen.add(key)
        for name, value in _values(read_result(sample.result), self._scales):
            self._figures.setdefault(name, {}).setdefault(key, []).append(value)
        if sample.repeat == 0:
            self._clusters[key] = self.clustering.of(sample)
            gold = self._gold_of(sample)
            if gold is not None:
                self.gold[key] = gold

    def _gold_of(self, sample: SampleRow) -> Gold | None:
        if self._question.gold is not None:
            return self._question.gold.get(sample.sample_id)
        try:
            return read_gold(_ROW.decode(sample.inputs).metadata, self._scales)
        except InputError as error:
            raise InputError(error.problem, error.mend, f"sample {sample.sample_id}") from None

    @property
    def strangers(self) -> int:
        return sum(key not in self.seen for key in self._question.gold or ())

    def judge(self, name: str) -> Mapping[Key, float]:
        given = self._figures.get(name, {})
        return {key: math.fsum(values) / len(values) for key, values in given.items()}

    def cluster(self, key: Key) -> Hashable | None:
        return None if self._question.cluster is None else self._clusters[key]


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a result as is needed here: reading the rest of 100,000 takes long."""

    figures: dict[str, float | None]
    winner: Side | None = None


_TOLD: Final = msgspec.json.Decoder(_Told)


class _ByNumber:
    """Samples by their numbers: reviews are of one response, so every repeat is for itself."""

    def __init__(self, run: RunRow, question: Question) -> None:
        self._plan = plan_of(run)
        self._names = tuple(gold_scales(rubric_of(run)))
        self._labels = question.reviewed or {}
        self._field = question.cluster
        self.clustering = Clustering(question.cluster)
        self.seen: set[Key] = set()
        self.gold: dict[Key, Gold] = {}
        self._figures: dict[str, dict[Key, float]] = {}
        self._clusters: dict[Key, Hashable] = {}

    def read(self, store: Store, run: RunRow) -> None:
        if self._field is not None:
            for sample in store.samples(run.id):
                self._clusters[sample.number] = self.clustering.of(sample)
        for number, _, _, result in store.results(run.id):
            self.seen.add(number)
            for name, value in _values(_TOLD.decode(result), self._names):
                self._figures.setdefault(name, {})[number] = value
        self.gold |= {key: gold for key, gold in self._labels.items() if key in self.seen}

    @property
    def strangers(self) -> int:
        return len(self._labels) - len(self.gold)

    def judge(self, name: str) -> Mapping[Key, float]:
        return self._figures.get(name, {})

    def cluster(self, key: Key) -> Hashable | None:
        if self._field is not None:
            return self._clusters[key]
        # A sample has the same place in every repeat.
        return None if self._plan.repeats == 1 else int(key) % self._plan.dataset.used


def _estimates(rubric: Rubric, reading: _Reading, question: Question) -> Iterator[Estimate]:
    for name in (*gold_scales(rubric), POINTS_OF_B):
        said = {key: _said(rubric, gold, name) for key, gold in reading.gold.items()}
        people = {key: value for key, value in said.items() if value is not None}
        judge: Mapping[Key, float] = reading.judge(name) if people else {}
        if not judge:
            continue
        both = [key for key in judge if key in people]
        rest = [key for key in judge if key not in people]
        clustered = reading.cluster(next(iter(judge))) is not None
        data = labels(
            [people[key] for key in both],
            [judge[key] for key in both],
            [judge[key] for key in rest],
            clusters=[reading.cluster(key) for key in both] if clustered else None,
            rest_clusters=[reading.cluster(key) for key in rest] if clustered else None,
        )
        yield Estimate(
            figure=name,
            mean=corrected_mean(data, level=question.level),
            rate=_rate(data, question.level),
            unscored=len(people) - len(both),
        )


def _said(rubric: Rubric, gold: Gold, name: str) -> float | None:
    """Return people's figure; the overall one follows where they gave all criteria."""
    if name == POINTS_OF_B:
        return None if gold.winner is None else POINTS[gold.winner]
    given = gold.score(name)
    if given is not None or name != rubric.overall_name:
        return given
    scores = {each.id: gold.score(each.id) for each in rubric.criteria}
    known = {key: value for key, value in scores.items() if value is not None}
    return overall_score(rubric, known)


def _rate(data: Labels, level: float) -> CorrectedRate | None:
    if data.clusters is not None or not data.binary:
        return None
    return corrected_rate(data, level=level)


def _values(result: SampleResult | _Told, names: Iterable[str]) -> Iterator[tuple[str, float]]:
    for name in names:
        value = result.figures.get(name)
        if value is not None:
            yield name, value
    if result.winner is not None:
        yield POINTS_OF_B, POINTS[result.winner]
