"""A judge's figures on a whole run, corrected by what people said of some of its samples."""

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from jurybox.calibration.gold import Gold, gold_scales, read_gold
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, SampleRow, read_result
from jurybox.errors import InputError
from jurybox.judging.verdict import Side
from jurybox.reporting.clusters import Clustering
from jurybox.reporting.difference_tests import POINTS, POINTS_OF_B
from jurybox.reporting.metric_text import shown
from jurybox.reporting.stored import damaged, plan_of, rubric_of
from jurybox.review.selection import too_many_missing
from jurybox.rubric.model import Rubric
from jurybox.rubric.scale import UNIT_SCALE
from jurybox.sample import Row
from jurybox.scoring.rules import overall_score
from jurybox.scoring.sample_result import SampleResult
from jurybox.statistics.corrected import (
    CorrectedMean,
    CorrectedRate,
    LabeledScores,
    corrected_mean,
    corrected_rate,
    correction_sentence,
    labeled_scores,
)
from jurybox.statistics.estimates import Estimate

_ROW: Final = msgspec.json.Decoder(Row)

Key = str | int
"""What tells samples: their ids, or with reviews their numbers."""


class CorrectedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: what the judge says, what people say, and both together.

    ``unscored`` counts labelled samples that the judge gave no figure, ``missing`` those of the
    random part that people gave none. ``rate`` is the other way to correct a figure that is yes or
    no: by how often the judge is right on either.
    """

    figure: str
    mean: CorrectedMean
    rate: CorrectedRate | None = None
    unscored: int = 0
    missing: int = 0


class RunCorrections(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of a run that people have labels for.

    ``strangers`` counts labels whose samples the run doesn't have; ``by_rules`` says that no judge
    was asked, and the figures are those of the rubric's rules.
    """

    run_id: str
    samples: int
    labelled: int
    strangers: int
    estimates: tuple[CorrectedMetric, ...]
    by_rules: bool = False


class CorrectionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is corrected.

    Attributes:
        gold: people's labels by the ids of samples; None takes those that the run's rows carry.
        reviewed: people's labels by the numbers of samples, in place of either.
        drawn: the numbers of all samples that were drawn to be reviewed. A figure that more than
            one in ten of them lack isn't corrected: what people leave out is no random choice.
        hint: what to do where there is no label at all.
        cluster: the field by which samples belong together.
        level: how often the intervals shall cover the true figure.

    """

    gold: Mapping[str, Gold] | None = None
    reviewed: Mapping[int, Gold] | None = None
    drawn: Collection[int] = ()
    hint: str = "give some with --gold"
    cluster: str | None = None
    level: float = 0.95


def estimate(store: Store, run: RunRow, question: CorrectionRequest) -> RunCorrections:
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
        hint = question.hint
        if question.gold is not None:
            hint = "check that the ids are those of the run's samples"
        raise InputError("no sample of the run has a label", hint, run.id)
    plan = plan_of(run)
    planned = plan.dataset.used if question.reviewed is None else plan.samples
    by_rules = not plan.judges
    made = (
        _shown(each, rubric, by_rules=by_rules)
        for each in _estimates(rubric, reading, question, planned)
    )
    return RunCorrections(
        run_id=run.id,
        samples=len(reading.seen),
        labelled=len(reading.gold),
        strangers=reading.strangers,
        estimates=tuple(made),
        by_rules=by_rules,
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

    def __init__(self, rubric: Rubric, question: CorrectionRequest) -> None:
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
            raise InputError(error.problem, error.hint, f"sample {sample.sample_id}") from None

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

    def __init__(self, run: RunRow, question: CorrectionRequest) -> None:
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


def _estimates(
    rubric: Rubric, reading: _Reading, question: CorrectionRequest, planned: int
) -> Iterator[CorrectedMetric]:
    for name in (*gold_scales(rubric), POINTS_OF_B):
        said = {key: _said(rubric, gold, name) for key, gold in reading.gold.items()}
        people = {key: value for key, value in said.items() if value is not None}
        judge: Mapping[Key, float] = reading.judge(name) if people else {}
        if not judge:
            continue
        both = [key for key in judge if key in people]
        rest = [key for key in judge if key not in people]
        asked = [key for key in question.drawn if key in judge]
        missing = sum(key not in people for key in asked)
        data = _data(reading, people, judge, both, rest)
        mean = corrected_mean(data, level=question.level)
        rate = _rate(data, question.level)
        if not rest:
            mean = _all_labelled(mean, reading, people, question, planned)
        elif too_many_missing(missing, len(asked)):
            mean, rate = _refused(mean, missing, len(asked)), None
        yield CorrectedMetric(
            figure=name,
            mean=mean,
            rate=rate,
            unscored=len(people) - len(both),
            missing=missing,
        )


def _data(
    reading: _Reading,
    people: Mapping[Key, float],
    judge: Mapping[Key, float],
    both: Sequence[Key],
    rest: Sequence[Key],
) -> LabeledScores:
    clustered = bool(both or rest) and reading.cluster(next(iter((*both, *rest)))) is not None
    return labeled_scores(
        [people[key] for key in both],
        [judge[key] for key in both],
        [judge[key] for key in rest],
        clusters=[reading.cluster(key) for key in both] if clustered else None,
        rest_clusters=[reading.cluster(key) for key in rest] if clustered else None,
    )


def _all_labelled(
    mean: CorrectedMean,
    reading: _Reading,
    people: Mapping[Key, float],
    question: CorrectionRequest,
    planned: int,
) -> CorrectedMean:
    """Return people's own figure, which is also of the samples that the judge gave none."""
    keys = list(people)
    own = corrected_mean(_data(reading, people, people, keys, []), level=question.level).human
    what = "every sample"
    if any(key not in people for key in reading.seen):
        what = "every sample that the judge has a figure of"
    elif len(reading.seen) < planned:
        what = f"every sample that is there so far ({len(reading.seen):,} of {planned:,})"
    reason = f"{what} has a label: people's own figure needs no correction"
    return msgspec.structs.replace(
        mean,
        human=own,
        corrected=Estimate(value=None, n=mean.corrected.n),
        clusters=None if mean.clusters is None else len({reading.cluster(key) for key in keys}),
        reason=reason,
    )


def _refused(mean: CorrectedMean, missing: int, drawn: int) -> CorrectedMean:
    """Return it uncorrected, for too many labels are missing."""
    reason = (
        f"people gave {missing:,} of the {drawn:,} samples drawn at random no label, more than one"
        " in ten, and what they leave out is no random choice"
    )
    return msgspec.structs.replace(
        mean,
        corrected=Estimate(value=None, n=mean.corrected.n),
        tuning=None,
        effective_labels=None,
        labels_to_halve=None,
        reason=reason,
    )


def _shown(each: CorrectedMetric, rubric: Rubric, *, by_rules: bool) -> CorrectedMetric:
    """Return it with ends that the scale has, and in words."""
    scale = gold_scales(rubric).get(each.figure, UNIT_SCALE)
    mean = each.mean
    mean = msgspec.structs.replace(
        mean,
        judge=within(mean.judge, *scale.ends),
        human=within(mean.human, *scale.ends),
        corrected=within(mean.corrected, *scale.ends),
    )
    said = correction_sentence(mean)
    own = mean.human
    if mean.reason is not None and mean.reason.startswith("every ") and own.value is not None:
        made = own.interval
        ends = "" if made is None else f" ({shown(made.low)} to {shown(made.high)})"
        said = f"{mean.reason}, {shown(own.value)}{ends}; the judge alone says"
        said = f"{said} {shown(mean.judge.value)}"
    if by_rules:
        said = said.replace("the judge", "the rules").replace("the rules has", "the rules have")
        said = said.replace("the rules alone says", "the rules alone say")
    return msgspec.structs.replace(each, mean=msgspec.structs.replace(mean, sentence=said))


def within(figure: Estimate, low: float, high: float) -> Estimate:
    """Return a figure whose interval ends where the scale does: nothing can lie beyond."""
    made = figure.interval
    if made is None or low <= made.low <= made.high <= high:
        return figure
    cut = msgspec.structs.replace(
        made,
        low=min(max(made.low, low), high),
        high=min(max(made.high, low), high),
        method=f"{made.method}, cut at the ends of the scale",
    )
    value = None if figure.value is None else min(max(figure.value, low), high)
    return msgspec.structs.replace(figure, value=value, interval=cut)


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


def _rate(data: LabeledScores, level: float) -> CorrectedRate | None:
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
