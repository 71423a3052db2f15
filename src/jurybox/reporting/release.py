"""What the release of a run waits for: the reviews that its rubric requires (E11)."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from jurybox.engine.ports import SampleQuery, Store
from jurybox.engine.records import ReviewRow, RunRow, StoredOutcome, seal_of
from jurybox.reporting.stored import damaged, reading
from jurybox.review.reviews import ActiveReviews, Review, active_reviews, by_number
from jurybox.rubric.rubric_model import ReviewReason, Rubric, releases
from jurybox.scoring.sample_index import flag_names
from jurybox.scoring.sample_result import NEEDS_REVIEW, SampleResult, decide
from jurybox.scoring.summary import Acceptance, Conclusion
from jurybox.text_format import counted

BLOCKED: Final = "blocked"
"""The decision in place of a release where a reviewer confirmed a safety concern."""


class ReleaseReview(msgspec.Struct, frozen=True, kw_only=True):
    """What a release waits for.

    Attributes:
        required: the reasons for review that the rubric names.
        awaiting: how many samples with such a reason no review has settled.
        confirmed: in how many samples a reviewer sees a safety concern, where that is required.
        accepted: that the unreviewed samples were accepted as they are.

    """

    required: tuple[ReviewReason, ...] = ()
    awaiting: int = 0
    confirmed: int = 0
    accepted: Acceptance | None = None

    @property
    def held(self) -> tuple[str, ...]:
        """Why reviews hold the release back; nothing where they don't."""
        lines: list[str] = []
        if self.awaiting and self.accepted is None:
            reasons = ", ".join(self.required)
            lines.append(f"awaiting review: {counted(self.awaiting, 'sample')} ({reasons})")
        if self.confirmed:
            count = counted(self.confirmed, "sample")
            lines.append(f"a reviewer confirmed a safety concern: {count}")
        return tuple(lines)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the run has to know: why it is held back, and what was accepted."""
        if self.accepted is None:
            return self.held
        count = counted(self.accepted.samples, "sample")
        when = f"--accept-unreviewed, {self.accepted.at}"
        return (*self.held, f"accepted without the required review: {count} ({when})")

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "required": list(self.required),
            "awaiting": self.awaiting,
            "confirmed": self.confirmed,
            "accepted_unreviewed": msgspec.to_builtins(self.accepted),
        }


def read_reviews(run: RunRow, rows: Sequence[ReviewRow]) -> ActiveReviews:
    """Return what reviewers say, from rows that are as they were stored.

    Raises:
        IncompleteError: one was changed, or can't be read.

    """
    for row in rows:
        if seal_of(row) != row.seal:
            raise damaged(run, f"review {row.id} was changed after it was stored")
    with reading(run):
        return active_reviews(rows)


def release_review(
    run: RunRow, rubric: Rubric, stored: StoredOutcome, store: Store
) -> ReleaseReview:
    """Return what the release of a run waits for, by the reviews that it has now.

    Raises:
        IncompleteError: a review can't be read, or the store failed.

    """
    required = rubric.require_review
    if not required:
        return ReleaseReview()
    reviews = by_number(read_reviews(run, store.reviews(run.id)).every)
    # Nothing needs to be counted where the run noted no such sample.
    flagged = any(each.kind in required for each in stored.conclusion.attention)
    query = SampleQuery(any_flags=required, limit=1)
    total = store.find_samples(run.id, query).total if flagged else 0
    settled = [
        number for number, own in reviews.items() if _settles(run, store, number, own, rubric)
    ]
    confirmed = [own for own in reviews.values() if "safety" in required and _has_concern(own)]
    return ReleaseReview(
        required=required,
        awaiting=total - len(settled),
        confirmed=len(confirmed),
        accepted=stored.accepted,
    )


def _settles(
    run: RunRow, store: Store, number: int, reviews: Sequence[Review], rubric: Rubric
) -> bool:
    """Return whether reviews of a sample settle every required reason that it is flagged for."""
    facets = next(store.facets(run.id, range(number, number + 1)), None)
    flags = () if facets is None else flag_names(facets.flags)
    flagged = [reason for reason in rubric.require_review if reason in flags]
    return bool(flagged) and all(_settled(reason, reviews) for reason in flagged)


def _settled(reason: str, reviews: Sequence[Review]) -> bool:
    if reason == "safety":
        return any(each.verdict.safety_concern is not None for each in reviews)
    return any(each.verdict.is_label for each in reviews)


def _has_concern(reviews: Sequence[Review]) -> bool:
    return any(each.verdict.safety_concern for each in reviews)


def reviewed_conclusion(conclusion: Conclusion, rubric: Rubric, found: ReleaseReview) -> Conclusion:
    """Return what follows from a run's samples and their reviews together."""
    held = found.held
    if not held:
        return conclusion
    decision, reasons = conclusion.decision, conclusion.decision_reasons
    if releases(rubric.decisions, decision):
        decision = BLOCKED if found.confirmed else NEEDS_REVIEW
        reasons = (*held, *reasons)
    ready = None if conclusion.release_ready is None else False
    return msgspec.structs.replace(
        conclusion, release_ready=ready, decision=decision, decision_reasons=reasons
    )


def sample_decision(
    run: RunRow, rubric: Rubric, store: Store, number: int, result: SampleResult
) -> str | None:
    """Return the decision on a sample, by the reviews that it has now.

    Raises:
        IncompleteError: a review can't be read, or the store failed.

    """
    if result.decision != NEEDS_REVIEW:
        return result.decision
    reviews = read_reviews(run, store.reviews_of(run.id, number)).every
    if _has_concern(reviews):
        return BLOCKED
    required = [each for each in rubric.require_review if each in result.review_reasons]
    if not all(_settled(reason, reviews) for reason in required):
        return NEEDS_REVIEW
    decided = decide(rubric.sample_decisions, result.figures)
    return None if decided is None else decided.decide
