"""Measure how far a run's judges agree with its reviewers."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from jurybox.app.estimate_run import CorrectionRequest, estimate
from jurybox.app.review_cases import StoredSample
from jurybox.calibration.calibration_record import Agreement
from jurybox.calibration.gold import WHOLE, Gold, GoldCase
from jurybox.calibration.splits import words_of
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.reporting.review_text import ReviewAgreement, SubsetAgreement, UnclearCase
from jurybox.reporting.stored import damaged, plan_of
from jurybox.review.reviews import Review, by_number, gold_of
from jurybox.review.selection import RandomPart
from jurybox.rubric.rubric_model import Rubric
from jurybox.statistics.corrected import CorrectedMetric

# Half as many draws as elsewhere: this is computed on request, and intervals hardly change.


class ReviewEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The reviews of a run and its samples.

    Attributes:
        every: the active reviews.
        blind: the active blind reviews.
        part: the samples drawn at random.
        stored: returns a sample by its number.

    """

    store: Store
    run: RunRow
    rubric: Rubric
    every: tuple[Review, ...]
    blind: tuple[Review, ...]
    part: RandomPart
    stored: Callable[[int], StoredSample]


def review_agreement(known: ReviewEvidence) -> ReviewAgreement:
    """Return how far the judges agree with the reviewers."""
    every, blind, part = known.every, known.blind, known.part
    found = _cases(known, by_number(blind))
    flagged = {each.number for each in blind if each.queued}
    random = _part(known, [found[number] for number in found if number in part.reviewed])
    # Reviewers are compared with each other only where there are several; and comparing everything
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
        unclear=tuple(_unclear(known)),
    )


def _unclear(known: ReviewEvidence) -> Iterator[UnclearCase]:
    for each in known.every:
        given = {"winner": each.verdict.winner} if each.verdict.is_pair else each.verdict.scores
        criteria = tuple(name for name, value in given.items() if value is None)
        if criteria:
            yield UnclearCase(
                number=each.number,
                sample_id=known.stored(each.number).sample.sample_id,
                reviewer=each.reviewer,
                criteria=criteria,
                comment=each.comment,
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
    labeled = any(gold.scores or gold.winners for gold in labels.values())
    if known.part.needed or not labeled:
        return ()
    drawn = known.part.reviewed | known.part.missed
    return estimate(
        known.store, known.run, CorrectionRequest(reviewed=labels, drawn=drawn)
    ).estimates


def _part(known: ReviewEvidence, found: Sequence[GoldCase]) -> SubsetAgreement:
    return SubsetAgreement(samples=len(found), agreement=_compared(known, found))


def _compared(known: ReviewEvidence, found: Sequence[GoldCase]) -> Agreement | None:
    from jurybox.calibration.judge_comparison import compare

    labeled = [case for case in found if case.gold.scores or case.gold.winners]
    if not labeled:
        return None
    return compare(labeled, known.rubric)


def _cases(known: ReviewEvidence, reviews: Mapping[int, Sequence[Review]]) -> dict[int, GoldCase]:
    repeated = plan_of(known.run).repeats > 1
    found: dict[int, GoldCase] = {}
    for number, each in reviews.items():
        stored = known.stored(number)
        changed = [one for one in each if one.record_sha256 != stored.sample.record_sha256]
        if changed:
            raise damaged(known.run, f"review {changed[0].id} is of another record {number}")
        found[number] = _case(stored, each, repeated=repeated)
    return found


def _case(stored: StoredSample, reviews: Sequence[Review], *, repeated: bool) -> GoldCase:
    sample, row, judged = stored.sample, stored.row, stored.judged
    name = f"{sample.sample_id} (repeat {sample.repeat})" if repeated else sample.sample_id
    comments = [f"{each.reviewer}: {each.comment}" for each in reviews if each.comment]
    second = stored.responses.response_b
    return GoldCase(
        id=name,
        gold=gold_of(reviews),
        verdict=judged,
        task=row.task,
        response=stored.responses.response.text,
        response_b=None if second is None else second.text,
        comments={WHOLE: "\n".join(comments)} if comments else {},
        # Several repeats of a sample are no independent evidence.
        cluster=sample.sample_id if repeated else None,
        words=words_of(row),
    )
