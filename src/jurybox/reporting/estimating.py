"""A judge's figures on a whole run, corrected by what people said of some of its samples."""

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Final

import msgspec

from jurybox.calibration.gold import Gold, gold_scales, read_gold
from jurybox.errors import InputError
from jurybox.reporting.clustering import Clustering
from jurybox.reporting.significance import POINTS, POINTS_OF_B
from jurybox.reporting.stored import damaged, rubric_of
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
        cluster: the field by which samples belong together.
        level: how often the intervals shall cover the true figure.

    """

    gold: Mapping[str, Gold] | None = None
    cluster: str | None = None
    level: float = 0.95


def estimate(store: Store, run: RunRow, question: Question) -> Estimates:
    """Correct every figure of a run that people have labels for.

    Repeats of a sample are one: their mean.

    Raises:
        InputError: there is no label for any sample, a row's label can't be one, or no sample has
            the field to cluster by.
        IncompleteError: what is stored can't be read.

    """
    rubric = rubric_of(run)
    reading = _Reading(rubric, question)
    try:
        for sample in store.samples(run.id):
            reading.add(sample)
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
        samples=len(reading.judge),
        labelled=len(reading.gold),
        strangers=reading.strangers,
        estimates=tuple(reading.estimates()),
    )


class _Reading:
    """What the judge and people say of each sample."""

    def __init__(self, rubric: Rubric, question: Question) -> None:
        self._rubric = rubric
        self._scales = gold_scales(rubric)
        self._question = question
        self.clustering = Clustering(question.cluster)
        self.judge: dict[str, dict[str, list[float]]] = {}
        self.gold: dict[str, Gold] = {}
        self._clusters: dict[str, Hashable] = {}

    def add(self, sample: SampleRow) -> None:
        figures = self.judge.setdefault(sample.sample_id, {})
        for name, value in _values(read_result(sample.result), self._scales):
            figures.setdefault(name, []).append(value)
        if sample.repeat == 0:
            self._clusters[sample.sample_id] = self.clustering.of(sample)
            gold = self._gold_of(sample)
            if gold is not None:
                self.gold[sample.sample_id] = gold

    def _gold_of(self, sample: SampleRow) -> Gold | None:
        if self._question.gold is not None:
            return self._question.gold.get(sample.sample_id)
        try:
            return read_gold(_ROW.decode(sample.inputs).metadata, self._scales)
        except InputError as error:
            raise InputError(error.problem, error.mend, f"sample {sample.sample_id}") from None

    @property
    def strangers(self) -> int:
        return len((self._question.gold or {}).keys() - self.judge.keys())

    def estimates(self) -> Iterator[Estimate]:
        for name in (*self._scales, POINTS_OF_B):
            said = {key: self._said(gold, name) for key, gold in self.gold.items()}
            people = {key: value for key, value in said.items() if value is not None}
            judge = {
                key: math.fsum(given[name]) / len(given[name])
                for key, given in self.judge.items()
                if name in given
            }
            if people and judge:
                yield self._estimate(name, people, judge)

    def _estimate(
        self, name: str, people: Mapping[str, float], judge: Mapping[str, float]
    ) -> Estimate:
        both = [key for key in judge if key in people]
        rest = [key for key in judge if key not in people]
        clustered = self._question.cluster is not None
        data = labels(
            [people[key] for key in both],
            [judge[key] for key in both],
            [judge[key] for key in rest],
            clusters=[self._clusters[key] for key in both] if clustered else None,
            rest_clusters=[self._clusters[key] for key in rest] if clustered else None,
        )
        return Estimate(
            figure=name,
            mean=corrected_mean(data, level=self._question.level),
            rate=self._rate(data),
            unscored=len(people) - len(both),
        )

    def _said(self, gold: Gold, name: str) -> float | None:
        """Return people's figure; the overall one follows where they gave all criteria."""
        if name == POINTS_OF_B:
            return None if gold.winner is None else POINTS[gold.winner]
        given = gold.score(name)
        if given is not None or name != self._rubric.overall_name:
            return given
        scores = {each.id: gold.score(each.id) for each in self._rubric.criteria}
        known = {key: value for key, value in scores.items() if value is not None}
        return overall_score(self._rubric, known)

    def _rate(self, data: Labels) -> CorrectedRate | None:
        if data.clusters is not None or not data.binary:
            return None
        return corrected_rate(data, level=self._question.level)


def _values(result: SampleResult, names: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    for name in names:
        value = result.figures.get(name)
        if value is not None:
            yield name, value
    if result.winner is not None:
        yield POINTS_OF_B, POINTS[result.winner]
