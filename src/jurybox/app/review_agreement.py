"""Measure how far a run's judges agree with its reviewers."""

from collections.abc import Iterator, Mapping, Sequence

from jurybox.app.estimate_run import RunLabels, estimate
from jurybox.app.review_desk import ReviewDesk, StoredSample
from jurybox.calibration.calibration_record import Agreement
from jurybox.calibration.gold import WHOLE, Gold, GoldCase
from jurybox.calibration.splits import words_of
from jurybox.reporting.review_text import ReviewAgreement, SubsetAgreement, UnclearCase
from jurybox.reporting.stored import damaged, plan_of
from jurybox.review.reviews import Review, by_number, gold_of
from jurybox.review.selection import RandomPart
from jurybox.statistics.corrected import CorrectedMetric


def review_agreement(desk: ReviewDesk) -> ReviewAgreement | None:
    """Return how far the judges agree with the reviewers; None without active reviews.

    Reads every result of the run: about a second for 1,000 reviewed samples and 6 criteria.
    """
    reviews = desk.active_reviews()
    if not reviews.every:
        return None
    every, blind, part = reviews.every, reviews.blind, desk.part_of(reviews)
    found = _cases(desk, by_number(blind))
    flagged = {each.number for each in blind if each.queued}
    random = _part(desk, [found[number] for number in found if number in part.reviewed])
    # Reviewers are compared with each other only where there are several; and comparing everything
    # takes as long as all the rest.
    whole = random.agreement if len(found) == random.samples else None
    if whole is None and len({each.reviewer for each in blind}) > 1:
        whole = _compared(desk, list(found.values()))
    counted = {each.id for each in blind}
    return ReviewAgreement(
        reviews=len(every),
        samples=len({each.number for each in every}),
        reviewers=tuple(sorted({each.reviewer for each in every})),
        open=sum(each.id not in counted for each in every),
        random=random,
        flagged=_part(desk, [found[number] for number in found if number in flagged]),
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
        by_rules=not plan_of(desk.run).judges,
        estimates=_estimates(desk, blind, part),
        unclear=tuple(_unclear(desk, every)),
    )


def _unclear(desk: ReviewDesk, reviews: Sequence[Review]) -> Iterator[UnclearCase]:
    for each in reviews:
        given = {"winner": each.verdict.winner} if each.verdict.is_pair else each.verdict.scores
        criteria = tuple(name for name, value in given.items() if value is None)
        if criteria:
            yield UnclearCase(
                number=each.number,
                sample_id=desk.stored(each.number).id,
                reviewer=each.reviewer,
                criteria=criteria,
                comment=each.comment,
            )


def labels_of(reviews: Sequence[Review], part: RandomPart) -> dict[int, Gold]:
    """Return the reviews of the random part, by sample number."""
    return {
        number: gold_of(each)
        for number, each in by_number(reviews).items()
        if number in part.labeled
    }


def _estimates(
    desk: ReviewDesk, blind: Sequence[Review], part: RandomPart
) -> tuple[CorrectedMetric, ...]:
    labels = labels_of(blind, part)
    labeled = any(gold.scores or gold.winners for gold in labels.values())
    if part.needed or not labeled:
        return ()
    given = RunLabels(reviewed=labels, drawn=part.reviewed | part.missed)
    return estimate(desk.store, desk.run, given).estimates


def _part(desk: ReviewDesk, found: Sequence[GoldCase]) -> SubsetAgreement:
    return SubsetAgreement(samples=len(found), agreement=_compared(desk, found))


def _compared(desk: ReviewDesk, found: Sequence[GoldCase]) -> Agreement | None:
    from jurybox.calibration.judge_comparison import compare

    labeled = [case for case in found if case.gold.scores or case.gold.winners]
    return compare(labeled, desk.rubric) if labeled else None


def _cases(desk: ReviewDesk, reviews: Mapping[int, Sequence[Review]]) -> dict[int, GoldCase]:
    repeated = plan_of(desk.run).repeats > 1
    found: dict[int, GoldCase] = {}
    for number, each in reviews.items():
        stored = desk.stored(number)
        changed = [one for one in each if one.record_sha256 != stored.row.record_sha256]
        if changed:
            raise damaged(desk.run, f"review {changed[0].id} is of another record {number}")
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
        comments={WHOLE: "\n".join(comments)} if comments else {},
        # Repeats of a sample aren't independent evidence.
        cluster=stored.id if repeated else None,
        words=words_of(row),
    )
