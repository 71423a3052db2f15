"""Compares a run with human labels: corrects its metrics, and measures its judges' agreement."""

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from jurybox.app.review_desk import ReviewDesk, StoredSample
from jurybox.calibration.gold import (
    WHOLE,
    Gold,
    GoldCase,
    gold_scales,
    words_of,
)
from jurybox.documents.numbers import metric_value
from jurybox.engine.plan import Plan
from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.judging.formats.reply_format import Side
from jurybox.reporting.review_text import (
    ReviewAgreement,
    ReviewedSample,
    SubsetAgreement,
    UnclearCase,
)
from jurybox.reporting.stored import damaged, plan_of, reading, rubric_of
from jurybox.review.reviews import Review, by_number, gold_of
from jurybox.review.selection import RandomSubset, too_many_missing
from jurybox.rubric.metrics import PASSING_RATE, WIN_RATE
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import UNIT_SCALE
from jurybox.scoring.evaluate_sample import passes_with
from jurybox.statistics import corrected
from jurybox.statistics.estimates import Estimate
from jurybox.statistics.metric_differences import SampleClusters
from jurybox.storage.store import Store

Key = str | int
"""The key of a sample: its id, or its number if the labels are reviews."""
_WINS: Final = {None: None, "A": 1.0, "tie": 0.5, "B": 0.0}  # of response A
_BIASED: Final = (
    "if more than one in ten is missing, a correction could mislead, because people don't skip"
    " samples at random"
)


class RunCorrections(msgspec.Struct, frozen=True, kw_only=True):
    """The corrections of all metrics of a run that have human labels.

    ``strangers`` counts labels of samples that the run doesn't have; ``by_rules`` means that
    the values come from the rubric's rules, not from a judge.
    """

    run_id: str
    samples: int
    labeled: int
    strangers: int
    estimates: tuple[corrected.CorrectedMetric, ...]
    by_rules: bool = False


class RunLabels(msgspec.Struct, frozen=True, kw_only=True):
    """The human labels of a run's samples."""

    gold: Mapping[str, Gold] = {}  # by sample id
    reviewed: Mapping[int, Gold] | None = None  # by sample number; if given, only reviews count
    # The numbers of all samples drawn for review. A metric isn't corrected if more than one in ten
    # of them lack a label, since people don't skip samples at random.
    drawn: Collection[int] = ()
    hint: str = "give some with --gold"  # the hint for a run without labels
    notes: tuple[str, ...] = ()  # where the labels come from, and which are left out


def estimate(
    store: Store,
    run: RunRow,
    labels: RunLabels,
    *,
    cluster: str | None = None,
    level: float = 0.95,
) -> RunCorrections:
    """Correct every metric of a run that has human labels.

    Rows with the same value of the field ``cluster`` are dependent. The repeats of a sample count
    as one value, their mean.
    A review is of one repeat's response, so with reviews each repeat counts as a value of its own,
    and the values are clustered by sample.
    """
    rubric, plan = rubric_of(run), plan_of(run)
    values = _SampleValues(rubric, plan, labels, cluster)
    with reading(run):
        values.read(store, run)
    if not values.gold:
        hint = labels.hint
        if labels.gold:
            hint = "check that the ids are those of the run's samples"
        raise InputError("no sample of the run has a label", hint, run.id)
    by_rules = values.by_rules or not plan.judges
    return RunCorrections(
        run_id=run.id,
        samples=len(values.seen),
        labeled=len(values.gold),
        strangers=len((labels.gold or labels.reviewed or {}).keys() - values.seen),
        estimates=tuple(
            _described(each, by_rules=by_rules)
            for each in _corrections(rubric, values, labels.drawn, level)
        ),
        by_rules=by_rules,
    )


class _Judged(msgspec.Struct, frozen=True):
    """The part of a sample's result that labels are compared with."""

    metrics: dict[str, float | None]
    passed: bool | None = None
    target_error: str | None = None
    by_rules: bool = False
    winner: Side | None = None


# The whole result takes twice as long, and all samples of a run are read.
_JUDGED: Final = msgspec.json.Decoder(_Judged)


class _SampleValues:
    """The judge's and the human values of each sample."""

    def __init__(self, rubric: Rubric, plan: Plan, labels: RunLabels, cluster: str | None) -> None:
        self._rubric = rubric
        self._scales = gold_scales(rubric)
        self._plan = plan
        self._drawn = labels.drawn
        reviewed = labels.reviewed
        self._given: dict[Key, Gold] = {**labels.gold} if reviewed is None else {**reviewed}
        self._cluster = cluster
        # By metric, with a value or None for each of the keys.
        self._judge: dict[str, list[float | None]] = {
            name: [] for name in (*self._scales, WIN_RATE, PASSING_RATE)
        }
        self._keys: list[Key] = []
        self._passes: list[tuple[Key, float]] = []
        self._unlabeled: set[Key] = set()  # the samples with a repeat that no one's scores cover
        self.by_number = labels.reviewed is not None
        self.planned = plan.samples if self.by_number else plan.dataset.used
        self.by_rules = False
        self.seen: set[Key] = set()
        self.gold: dict[Key, Gold] = {}
        self.never_labeled: set[Key] = set()  # the samples without a response or a label
        self.clusters: dict[Key, Hashable] | None = None
        if cluster is not None or (self.by_number and plan.repeats > 1):
            self.clusters = {}

    def read(self, store: Store, run: RunRow) -> None:
        if self.by_number and self._cluster is None:
            for number, _, _, result in store.results(run.id):
                # A sample has the same position in every repeat.
                self._add(number, result, number % self._plan.dataset.used)
        else:
            clusters = SampleClusters(self._cluster)
            for row in store.samples(run.id):
                key = row.number if self.by_number else row.sample_id
                cluster = clusters.of(row.sample_id, row.repeat, row.inputs)
                self._add(key, row.result, cluster)
            clusters.check(run.id)
        self.gold = {key: gold for key, gold in self._given.items() if key in self.seen}

    def _add(self, key: Key, text: str, cluster: Hashable) -> None:
        result = _JUDGED.decode(text)
        self.by_rules |= result.by_rules
        self.seen.add(key)
        if self.clusters is not None:
            self.clusters.setdefault(key, cluster)
        own = {WIN_RATE: _WINS[result.winner], PASSING_RATE: None}
        if self._rubric.pass_rules and result.passed is not None:
            own[PASSING_RATE] = float(result.passed)
            passed = self._passed(key, result)
            if passed is None:
                self._unlabeled.add(key)
            else:
                self._passes.append((key, passed))
        self._keys.append(key)
        values = result.metrics | own
        for name, known in self._judge.items():
            known.append(values.get(name))

    def _passed(self, key: Key, result: _Judged) -> float | None:
        """Return the share of people whose scores let a response pass; None if it isn't known.

        A person whose scores don't cover every rule isn't counted.
        """
        given = self._given.get(key)
        if result.target_error is not None:
            if given is not None or key in self._drawn:
                return 0.0  # without a response, it fails by anyone's scores
            self.never_labeled.add(key)
            return None
        if given is None:
            return None
        outcomes = [
            passes_with(
                self._rubric,
                {name: by[who] for name, by in given.scores.items() if who in by},
                result.metrics,
            )
            for who in {who for by in given.scores.values() for who in by}
        ]
        known = [passed for passed in outcomes if passed is not None]
        return sum(known) / len(known) if known else None

    def judge(self, name: str) -> dict[Key, float]:
        """Return the judge's values of a metric, by sample."""
        given = zip(self._keys, self._judge[name], strict=True)
        return _means([(key, value) for key, value in given if value is not None])

    def people(self, name: str) -> dict[Key, float]:
        """Return people's values of a metric, by sample."""
        if name == PASSING_RATE:
            # The repeats of a sample count as one, so it has a label only if each has.
            return _means(self._passes, without=self._unlabeled)
        given = {key: human_value(self._rubric, gold, name) for key, gold in self.gold.items()}
        return {key: value for key, value in given.items() if value is not None}

    def data(
        self,
        name: str,
        people: Mapping[Key, float],
        judge: Mapping[Key, float],
        rest: Sequence[Key],
    ) -> corrected.LabeledScores:
        both = [key for key in judge if key in people]
        clusters = self.clusters
        return corrected.LabeledScores(
            [people[key] for key in both],
            [judge[key] for key in both],
            [judge[key] for key in rest],
            ends=self._scales.get(name, UNIT_SCALE).ends,
            clusters=None if clusters is None else [clusters[key] for key in both],
            rest_clusters=None if clusters is None else [clusters[key] for key in rest],
        )


def _corrections(
    rubric: Rubric, values: _SampleValues, sought: Collection[int], level: float
) -> Iterator[corrected.CorrectedMetric]:
    for name in (*gold_scales(rubric), WIN_RATE, PASSING_RATE):
        people = values.people(name)
        judge = values.judge(name) if people else {}
        if not judge:
            continue
        rest = [key for key in judge if key not in people]
        drawn = [key for key in sought if key in judge]
        missing = sum(key not in people for key in drawn)
        data = values.data(name, people, judge, rest)
        mean = corrected.corrected_mean(data, level=level)
        rate = None
        if data.clusters is None and data.binary:
            rate = corrected.corrected_rate(data, level=level)
        reason = ""
        if too_many_missing(missing, len(drawn)):
            lack = "no label" + " for every pass rule" * (name == PASSING_RATE)
            those = f"{missing:,} of the {len(drawn):,} samples drawn at random"
            reason = f"{those} have {lack}; {_BIASED}"
        elif name == PASSING_RATE and not sought and values.never_labeled:
            reason = "the pass rate counts samples without a response, and they have no label"
        if not rest:
            mean = _all_labeled(name, mean, values, people, level)
        elif reason:
            mean, rate = _refused(mean, reason), None
        yield corrected.CorrectedMetric(
            metric=name,
            mean=mean,
            rate=rate,
            unscored=sum(key not in judge for key in people),
            missing=missing,
        )


def _means(values: Sequence[tuple[Key, float]], without: Collection[Key] = ()) -> dict[Key, float]:
    """Return the mean of each sample's values."""
    found = dict(values)
    if len(found) < len(values):  # there are repeats
        several: defaultdict[Key, list[float]] = defaultdict(list)
        for key, value in values:
            several[key].append(value)
        found = {key: math.fsum(each) / len(each) for key, each in several.items()}
    return {key: value for key, value in found.items() if key not in without} if without else found


def _all_labeled(
    name: str,
    mean: corrected.CorrectedMean,
    values: _SampleValues,
    people: Mapping[Key, float],
    level: float,
) -> corrected.CorrectedMean:
    """Return people's own mean over all labeled samples, which needs no correction."""
    own = corrected.corrected_mean(values.data(name, people, people, []), level=level)
    what = "every sample"
    if any(key not in people for key in values.seen):
        what = "every sample that the judge scored"
    elif len(values.seen) < values.planned:
        what = f"every sample stored so far ({len(values.seen):,} of {values.planned:,})"
    return msgspec.structs.replace(
        mean,
        human=own.human,
        corrected=Estimate(value=None, n=mean.corrected.n),
        clusters=own.clusters,
        reason=f"{what} has a label: people's own value needs no correction",
    )


def _refused(mean: corrected.CorrectedMean, reason: str) -> corrected.CorrectedMean:
    """Return the mean uncorrected, because labels are missing."""
    return msgspec.structs.replace(
        mean,
        corrected=Estimate(value=None, n=mean.corrected.n),
        tuning=None,
        effective_labels=None,
        labels_to_halve=None,
        reason=reason,
    )


def _described(each: corrected.CorrectedMetric, *, by_rules: bool) -> corrected.CorrectedMetric:
    """Add the sentence that describes the correction."""
    mean = each.mean
    text = corrected.correction_sentence(mean, each.formatted_as)
    own = mean.human
    if mean.reason is not None and mean.reason.startswith("every ") and own.value is not None:
        said = partial(metric_value, each.formatted_as)
        around = f" ({said(ends.low)} to {said(ends.high)})" if (ends := own.interval) else ""
        text = f"{mean.reason}, {said(own.value)}{around}; the judge alone says "
        text += said(mean.judge.value)
    if by_rules:
        text = text.replace("the judge alone says", "the rules alone say")
        text = text.replace("the judge", "the rules")
    return msgspec.structs.replace(each, mean=msgspec.structs.replace(mean, sentence=text))


def human_value(rubric: Rubric, gold: Gold, name: str) -> float | None:
    """Return people's value of a metric; a missing overall score is computed from the criteria."""
    if name == WIN_RATE:
        return _WINS[gold.winner]
    given = gold.score(name)
    if given is not None or name != rubric.overall_name:
        return given
    scores = {each.id: gold.score(each.id) for each in rubric.criteria}
    known = {key: value for key, value in scores.items() if value is not None}
    return rubric.overall(known)


def review_agreement(desk: ReviewDesk) -> ReviewAgreement | None:
    """Return how well the judges agree with the reviewers; None without active reviews.

    Reads every result of the run: about a second for 1,000 reviewed samples and 6 criteria.
    """
    reviews = desk.active_reviews()
    if not reviews.every:
        return None
    every, blind, part = reviews.every, reviews.blind, desk.subset_of(reviews)
    # Rules and checks score one response at a time.
    ruled = "judge" not in desk.rubric.sources and not every[0].verdict.is_pair
    found = _cases(desk, by_number(blind))
    flagged = {each.number for each in blind if each.queued}
    random = _part(desk, [found[number] for number in found if number in part.reviewed])
    queued = _part(desk, [found[number] for number in found if number in flagged])
    counted = {each.id for each in blind}
    agreed = ReviewAgreement(
        reviews=len(every),
        samples=len({each.number for each in every}),
        reviewers=tuple(sorted({each.reviewer for each in every})),
        open=sum(each.id not in counted for each in every),
        random=random,
        flagged=queued,
        people=random.ceilings or queued.ceilings,
        skipped=part.skipped,
        unsure=part.unsure,
        **part.counts(),
        repair=desk.repair,
        changed_gates={},  # known below
        by_rules=ruled or not plan_of(desk.run).judges,
        estimates=_estimates(desk, blind, part),
        unclear=tuple(_unclear(desk, every)),
        reviewed=tuple(_reviewed(desk, found, {"random": part.reviewed, "flagged": flagged})),
    )
    return msgspec.structs.replace(agreed, changed_gates=dict(_changed_gates(desk, agreed)))


def _reviewed(
    desk: ReviewDesk, found: Mapping[int, GoldCase], parts: Mapping[str, Collection[int]]
) -> Iterator[ReviewedSample]:
    from jurybox.calibration.judge_comparison import labels_on

    for number, case in found.items():
        people, judge = labels_on(case, desk.rubric)
        inside = tuple(name for name, numbers in parts.items() if number in numbers)
        turned = case.verdict.stable is False
        yield ReviewedSample(
            number=number, parts=inside, people=people, judge=judge, unstable=turned
        )


def _changed_gates(desk: ReviewDesk, found: ReviewAgreement) -> Iterator[tuple[str, bool]]:
    """Yield the gates whose outcome changes once reviews correct their metric."""
    made = found.by_gated_metric(desk.rubric, plan_of(desk.run).samples)
    for rule in desk.rubric.gates:
        each = made.get(rule.name)
        value = None if each is None else each.mean.corrected.value
        if each and value is not None and rule.passes(value) != rule.passes(each.mean.judge.value):
            yield str(rule), rule.passes(value)


def _unclear(desk: ReviewDesk, reviews: Sequence[Review]) -> Iterator[UnclearCase]:
    for each in reviews:
        given = {"winner": each.verdict.winner} if each.verdict.is_pair else each.verdict.scores
        given = given | {"safety_concern": each.verdict.safety_concern}
        criteria = tuple(name for name, value in given.items() if value is None)
        stored = desk.stored(each.number) if criteria else None
        # Without a response there is nothing to score, and nothing unclear.
        if stored and (each.verdict.is_pair or stored.responses.response.answered):
            yield UnclearCase(
                number=each.number,
                sample_id=stored.id,
                reviewer=each.reviewer,
                criteria=criteria,
                comment=each.comment,
            )


def labels_of(reviews: Sequence[Review], part: RandomSubset) -> dict[int, Gold]:
    """Return the labels of the random subset, by sample number."""
    return {
        number: gold_of(each)
        for number, each in by_number(reviews).items()
        if number in part.labeled | part.unscored
    }


def _estimates(
    desk: ReviewDesk, blind: Sequence[Review], part: RandomSubset
) -> tuple[corrected.CorrectedMetric, ...]:
    labels = labels_of(blind, part)
    labeled = any(gold.scores or gold.winners for gold in labels.values())
    if part.needed or not labeled:
        return ()
    given = RunLabels(reviewed=labels, drawn=part.reviewed | part.missed)
    return estimate(desk.store, desk.run, given).estimates


def _part(desk: ReviewDesk, found: Sequence[GoldCase]) -> SubsetAgreement:
    from jurybox.calibration.judge_comparison import Options, compare

    labeled = [case for case in found if case.gold.scores or case.gold.winners]
    every = Options(worst=len(labeled))  # a page lists every difference
    agreement = compare(labeled, desk.rubric, every) if labeled else None
    if agreement is not None and not any(each.n for each in agreement.criteria):
        agreement = None  # the judge has scores for none of them
    return SubsetAgreement(samples=len(found), agreement=agreement)


def _cases(desk: ReviewDesk, reviews: Mapping[int, Sequence[Review]]) -> dict[int, GoldCase]:
    repeated = plan_of(desk.run).repeats > 1
    found: dict[int, GoldCase] = {}
    for number, each in reviews.items():
        stored = desk.stored(number)
        changed = [one for one in each if one.record_sha256 != stored.row.record_sha256]
        if changed:
            raise damaged(
                desk.run, f"review {changed[0].id} belongs to an earlier record of sample {number}"
            )
        found[number] = _case(stored, each, repeated=repeated)
    return found


def _case(stored: StoredSample, reviews: Sequence[Review], *, repeated: bool) -> GoldCase:
    row = stored.answered
    name = f"{stored.id} (repeat {stored.repeat})" if repeated else stored.id
    comments = [f"{each.reviewer}: {each.comment}" for each in reviews if each.comment]
    second = stored.responses.response_b
    return GoldCase(
        id=name,
        gold=gold_of(reviews),
        verdict=stored.judged,
        task=row.task,
        response=stored.response,
        response_b=None if second is None else second.text,
        number=stored.row.number,
        comments={WHOLE: "\n".join(comments)} if comments else {},
        # Repeats of a sample aren't independent evidence.
        cluster=stored.id if repeated else None,
        words=words_of(row),
    )
