"""How the judges of a run stand with the people who have reviewed it so far."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.app.review_cases import StoredSample
from jurybox.calibration import cases
from jurybox.calibration.agreement_values import Agreement, Ceiling, CriterionAgreement
from jurybox.calibration.gold import Gold
from jurybox.calibration.splits import words_of
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.reporting.corrected_estimate import (
    CorrectedMetric,
    CorrectionRequest,
    estimate,
    within,
)
from jurybox.reporting.metric_text import shown
from jurybox.reporting.stored import damaged, plan_of
from jurybox.review.reviews import Review, by_number, gold_of
from jurybox.review.selection import FEWEST, RandomPart
from jurybox.rubric.model import Rubric
from jurybox.statistics.bootstrap import Resampling
from jurybox.statistics.estimates import Estimate

# Half as many draws as elsewhere: this is computed whenever somebody looks, and the ends of an
# interval hardly move.
_DRAWN: Final = Resampling(resamples=1000)
_DECIMALS: Final = 4


class ReviewEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the desk knows.

    Attributes:
        every: the reviews that stand.
        blind: those that stand of the blind ones.
        part: the samples that were drawn at random.
        stored: returns a sample by its number.

    """

    store: Store
    run: RunRow
    rubric: Rubric
    every: tuple[Review, ...]
    blind: tuple[Review, ...]
    part: RandomPart
    stored: Callable[[int], StoredSample]


class SubsetAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The judges against people on some samples; None where there is nothing to compare."""

    samples: int
    agreement: Agreement | None = None


class ReviewAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The judges against people, people among themselves, and the run's figures corrected.

    All figures are of blind reviews.

    Attributes:
        reviews: how many stand, by so many ``reviewers`` of so many ``samples``.
        open: how many of them count in no figure: made with the judges' verdict in sight.
        random: on the random part, which tells of the whole run.
        flagged: on the samples that need a person; these are the hard ones, and tell of themselves.
        people: how far people agree with each other, by criterion, on whatever several reviewed.
        drawn: how many samples the random part has so far; ``skipped`` of them have no review.
        needed: how many more of them are needed before figures are corrected.
        unsure: of how many of them nobody could tell anything.
        waiting: how many reviewed samples don't count yet, since too many before them in the order,
            ``passed``, have no blind review.
        by_rules: whether no judge was asked, so that it is the rubric's rules that people are held
            against.
        estimates: the run's figures, corrected by the random part.

    """

    reviews: int
    samples: int
    reviewers: tuple[str, ...]
    open: int
    random: SubsetAgreement
    flagged: SubsetAgreement
    people: dict[str, Ceiling]
    drawn: int
    skipped: int
    needed: int
    unsure: int = 0
    waiting: int = 0
    passed: int = 0
    by_rules: bool = False
    estimates: tuple[CorrectedMetric, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """All that in plain lines."""
        return tuple(_lines(self))

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {**data, "lines": list(self.lines)}


def review_agreement(known: ReviewEvidence) -> ReviewAgreement:
    """Return how the judges stand with people.

    Raises:
        IncompleteError: the run can't be read.

    """
    every, blind, part = known.every, known.blind, known.part
    found = _cases(known, by_number(blind))
    flagged = {each.number for each in blind if each.queued}
    random = _part(known, [found[number] for number in found if number in part.reviewed])
    # People can only be held against each other where there are several; and to compare everything
    # takes as long as all the rest.
    whole = random.agreement if len(found) == random.samples else None
    if whole is None and len({each.reviewer for each in blind}) > 1:
        whole = _compared(known, list(found.values()))
    counted = {each.id for each in blind}
    return ReviewAgreement(
        reviews=len(every),
        samples=len({each.number for each in every}),
        reviewers=tuple(sorted({each.reviewer for each in every})),
        open=sum(each.id not in counted for each in every),
        random=random,
        flagged=_part(known, [found[number] for number in found if number in flagged]),
        people={
            each.criterion: each.ceiling
            for each in (() if whole is None else whole.criteria)
            if each.ceiling is not None
        },
        drawn=part.drawn,
        skipped=part.skipped,
        needed=part.needed,
        unsure=part.unsure,
        waiting=len(part.waiting),
        passed=part.passed,
        by_rules=not plan_of(known.run).judges,
        estimates=_estimates(known),
    )


def labels_of(reviews: Sequence[Review], part: RandomPart) -> dict[int, Gold]:
    """Return what people say of the samples of the random part, by their numbers."""
    return {
        number: gold_of(each)
        for number, each in by_number(reviews).items()
        if number in part.labelled
    }


def _estimates(known: ReviewEvidence) -> tuple[CorrectedMetric, ...]:
    labels = labels_of(known.blind, known.part)
    told = any(gold.scores or gold.winners for gold in labels.values())
    if known.part.needed or not told:
        return ()
    drawn = known.part.reviewed | known.part.missed
    return estimate(
        known.store, known.run, CorrectionRequest(reviewed=labels, drawn=drawn)
    ).estimates


def _part(known: ReviewEvidence, found: Sequence[cases.GoldCase]) -> SubsetAgreement:
    return SubsetAgreement(samples=len(found), agreement=_compared(known, found))


def _compared(known: ReviewEvidence, found: Sequence[cases.GoldCase]) -> Agreement | None:
    from jurybox.calibration.judge_comparison import Options, compare

    told = [case for case in found if case.gold.scores or case.gold.winners]
    if not told:
        return None
    made = compare(told, known.rubric, Options(resampling=_DRAWN))
    return msgspec.structs.replace(made, criteria=tuple(_bounded(each) for each in made.criteria))


def _bounded(each: CriterionAgreement) -> CriterionAgreement:
    """Return it with a bias whose interval ends where the scale does."""
    bias, scale = each.bias, each.scale
    if bias is None or scale is None:
        return each
    span = scale[1] - scale[0]
    cut = within(Estimate(value=bias.value, n=each.n, interval=bias.interval), -span, span)
    bias = msgspec.structs.replace(bias, interval=cut.interval)
    return msgspec.structs.replace(each, bias=bias)


def _cases(
    known: ReviewEvidence, reviews: Mapping[int, Sequence[Review]]
) -> dict[int, cases.GoldCase]:
    repeated = plan_of(known.run).repeats > 1
    found: dict[int, cases.GoldCase] = {}
    for number, each in reviews.items():
        stored = known.stored(number)
        changed = [one for one in each if one.record_sha256 != stored.sample.record_sha256]
        if changed:
            raise damaged(known.run, f"review {changed[0].id} is of another record {number}")
        found[number] = _case(stored, each, repeated=repeated)
    return found


def _case(stored: StoredSample, reviews: Sequence[Review], *, repeated: bool) -> cases.GoldCase:
    sample, row, judged = stored.sample, stored.row, stored.judged
    name = f"{sample.sample_id} (repeat {sample.repeat})" if repeated else sample.sample_id
    comments = [f"{each.reviewer}: {each.comment}" for each in reviews if each.comment]
    second = stored.responses.response_b
    return cases.GoldCase(
        id=name,
        gold=gold_of(reviews),
        verdict=cases.JudgeVerdict(
            scores=judged.scores,
            reasoning=judged.reasoning,
            winner=judged.winner,
            stable=judged.stable,
        ),
        task=row.task,
        response=stored.responses.response.text,
        response_b=None if second is None else second.text,
        comments={cases.WHOLE: "\n".join(comments)} if comments else {},
        # Several repeats of a sample are no independent evidence.
        cluster=sample.sample_id if repeated else None,
        words=words_of(row),
    )


def _lines(found: ReviewAgreement) -> Iterator[str]:
    who = "1 person" if len(found.reviewers) == 1 else f"{len(found.reviewers)} people"
    reviews, samples = _counted(found.reviews, "review"), _counted(found.samples, "sample")
    yield f"{reviews} of {samples} by {who}: {', '.join(found.reviewers)}"
    against = "rules against people" if found.by_rules else "judge against people"
    for where, part in (("random part", found.random), ("flagged", found.flagged)):
        for each in () if part.agreement is None else part.agreement.criteria:
            yield f"{against}, {where}, {_agreement(each, by_rules=found.by_rules)}"
    for name, each in found.people.items():
        both = _joined(_same(each.exact), f"alpha {_ranged(each.alpha)}")
        yield f"people among themselves, {name}: {both} {_count(each.n)}"
    for each in found.estimates:
        yield f"{each.figure}: {each.mean.sentence}"
    yield from _doubts(found)


def _doubts(found: ReviewAgreement) -> Iterator[str]:
    if found.waiting:
        yield waiting_line(found.waiting, found.passed)
    elif found.needed:
        yield f"nothing is corrected yet: {found.needed} more from the random queue are needed"
    if found.skipped:
        yield (
            f"{_counted(found.skipped, 'sample')} of the random part skipped: were they skipped for"
            " what they say, the figures are off"
        )
    if found.unsure:
        samples = _counted(found.unsure, "sample")
        yield f"{samples} of the random part of which nobody could tell anything"
    if found.open:
        made = _counted(found.open, "review")
        yield f"{made} made with the judges' verdict in sight, which count in no figure"


def waiting_line(waiting: int, passed: int) -> str:
    """Say why reviews from the random queue don't count yet, and what to do."""
    samples, those = _counted(waiting, "reviewed sample"), "it" if passed == 1 else "them"
    before = f"{_counted(passed, 'sample')} before in the random order"
    have = "has" if passed == 1 else "have"
    wait = "waits" if waiting == 1 else "wait"
    return (
        f"{samples} {wait} to be counted: {before} {have} no blind review; go back to {those} in"
        " the random queue, or have somebody else do it who hasn't seen the verdict"
    )


def _agreement(each: CriterionAgreement, *, by_rules: bool) -> str:
    told = _joined(_same(each.exact.value), f"kappa {_ranged(each.kappa)}")
    if each.bias is not None and each.bias.value is not None:
        bias = Estimate(value=each.bias.value, n=each.n, interval=each.bias.interval)
        minus = "rules minus people" if by_rules else "judge minus people"
        told = f"{told}, {minus} {_ranged(bias, told=True)}"
    return f"{each.criterion}: {told} {_count(each.n)}"


def _same(share: float | None) -> str:
    return "" if share is None else f"the same in {100 * share:.0f}%"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _count(n: int) -> str:
    return f"(n {n}, too few to rely on)" if n < FEWEST else f"(n {n})"


def _ranged(figure: Estimate, *, told: bool = False) -> str:
    """Return a figure with its interval, and how that was made where it isn't as one expects."""
    if figure.value is None:
        return "unknown" if figure.reason is None else f"unknown ({figure.reason})"
    made = figure.interval
    if made is None:
        return _near(figure.value)
    unusual = ("imagined", "clusters", "cut at")
    method = f", {made.method}" if told and any(word in made.method for word in unusual) else ""
    return f"{_near(figure.value)} ({_near(made.low)} to {_near(made.high)}{method})"


def _near(value: float) -> str:
    """Return a number as people read it: what rounding leaves of nothing is nothing."""
    return shown(round(value, _DECIMALS) + 0.0)


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"
