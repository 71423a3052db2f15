"""The review desk of a run: what reviewers see, submit and withdraw.

Reviews and withdrawals are appended rows, never changed. Any number of reviewers can use a desk.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import Final

import msgspec

from jurybox.app.ids import new_id, now_utc
from jurybox.calibration.gold import gold_scales
from jurybox.engine.records import ReviewRow, RunRow, SampleRow, facets_of, sealed
from jurybox.errors import InputError
from jurybox.reporting.metric_text import repair_first
from jurybox.reporting.reasons import judged_sample
from jurybox.reporting.release import (
    ReleaseReview,
    asked_reasons,
    read_reviews,
    release_review,
    undecided_samples,
)
from jurybox.reporting.stored import SampleRecord, damaged, outcome_of, plan_of, reading, rubric_of
from jurybox.review.review_input import (
    fault_of,
    read_comment,
    read_reviewer,
    read_verdict,
)
from jurybox.review.reviews import (
    REVIEW,
    WITHDRAWAL,
    ActiveReviews,
    Circumstances,
    HumanVerdict,
    Order,
    Queue,
    Revealed,
    Review,
    ReviewCase,
    active_rows,
    verdict_text,
    was_revealed,
)
from jurybox.review.selection import (
    RandomOrder,
    RandomSubset,
    assigned,
    next_number,
    pair_order,
    random_subset,
)
from jurybox.rubric.document.criteria import scenario_texts
from jurybox.rubric.rubric_model import Rubric
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store

# How long a sample stays with a reviewer who was shown it.
_CLAIMED: Final = timedelta(hours=1)


class ReviewProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of the reviewers."""

    samples: int  # how many samples the run will have
    queued: int  # how many of its samples need review
    unscorable: int  # how many more only lack a score, and so wait for a repaired judge
    # How many queued samples are this reviewer's: all, unless they are assigned.
    share: int
    mine: int  # how many of these this reviewer has reviewed
    anyone: int  # how many queued samples have a review
    reviews: int  # the number of active reviews
    reviewers: tuple[str, ...]  # the names of the reviewers so far
    drawn: int  # how many samples of the random subset reviewers have reached
    labeled: int  # how many of these have a blind label, and a judge's score that it can correct
    needed: int  # how many more labels the random subset needs before it corrects metrics
    # How many reviewed samples don't count yet, since ``passed`` samples before them in the random
    # order have no blind review.
    waiting: int = 0
    passed: int = 0
    unscored: int = 0  # how many samples of the random subset have a label, but no judge's score


class StoredSample(SampleRecord):
    """A decoded sample of a run, with the verdict that the run's metrics use."""

    def __init__(self, row: SampleRow, rubric: Rubric) -> None:
        super().__init__(row)
        self.judged = judged_sample(self, rubric)
        given = {"response": self.responses.response, "response_b": self.responses.response_b}
        self.answered = msgspec.structs.replace(self.inputs, **given)
        """The row of the dataset with its responses."""

    @property
    def is_pair(self) -> bool:
        """Whether two responses are compared."""
        return self.responses.response_b is not None


class ReviewDesk:
    """Gives samples of a run to reviewers, and stores their reviews."""

    def __init__(
        self,
        store: Store,
        run: RunRow,
        *,
        blind: bool = True,
        reveals: bool = True,
        overlap: int = 1,
        reviewers: Sequence[str] = (),
    ) -> None:
        """Open the desk; without ``blind``, reviewers see the judges' verdict before they score.

        Unless the desk ``reveals`` the verdict, reviewers don't see it after they score either.
        The queues give each sample to ``overlap`` reviewers: the first who ask for one or, if
        ``reviewers`` are named, those to whom the sample is assigned.
        """
        self.store = store
        self.run = run
        self.rubric = rubric_of(run)
        self.blind = blind
        self.reveals = reveals
        self.overlap = overlap
        self.reviewers = reviewers
        self._known: tuple[str, Sequence[ReviewRow]] = ("", ())
        self._found: tuple[Sequence[ReviewRow], ActiveReviews] | None = None
        self.order = RandomOrder(run.id, plan_of(run).samples)

    @cached_property
    def repair(self) -> str:
        """What has to be repaired before reviews can correct metrics; empty if nothing has."""
        if self.run.status != "finished":
            return ""
        return repair_first(outcome_of(self.run).conclusion.summary, self.rubric)

    @cached_property
    def _asked_for(self) -> tuple[str, ...]:
        return asked_reasons(self.run)

    def next(
        self,
        reviewer: str,
        *,
        kind: Queue = "flagged",
        after: int | None = None,
    ) -> ReviewCase | None:
        """Return the next sample that needs this reviewer; None if there isn't one.

        A sample is given to at most ``overlap`` reviewers; a reviewer who got it over an hour ago
        and hasn't reviewed it no longer counts, nor does one whose review doesn't count.

        The queue ``flagged`` has the samples that need review, most urgent first. The queue
        ``random`` has all samples in the run's random order. The search starts after the sample
        number ``after`` and wraps around.
        """
        name = read_reviewer(reviewer)
        every = self._read().every
        known = {each.number for each in every if each.reviewer == name}
        others = Counter(each.number for each in every if each.reviewer != name)
        counted, queue = self._counted(name, kind), self._queue(kind)
        known |= {each for each in counted if counted[each] >= self.overlap}
        while True:
            number = next_number(self._share(queue, name), known, after)
            if number is None:
                return None
            if self._claims(number, name, self.overlap + others[number] - counted[number]):
                return self.case(number, name, queue=kind)
            known.add(number)

    def enough(self, reviewer: str, kind: Queue) -> frozenset[int]:
        """Return the samples that enough other reviewers have reviewed."""
        counted = self._counted(read_reviewer(reviewer), kind)
        return frozenset(each for each in counted if counted[each] >= self.overlap)

    def _counted(self, name: str, kind: Queue) -> Counter[int]:
        """Return how many reviews by others count for a queue, by sample.

        In the random queue, the blind ones count, because metrics use these. In the flagged one, a
        release counts every review, unless all reviewers so far left the sample's flag undecided.
        """
        found = self._read()
        undecided = self.undecided() if kind == "flagged" else frozenset[int]()
        reviews = found.blind if kind == "random" else found.every
        return Counter(
            each.number
            for each in reviews
            if each.reviewer != name and each.number not in undecided
        )

    def _share(self, numbers: Iterable[int], name: str | None) -> Iterator[int]:
        """Return the samples that a reviewer may get: all, unless they are assigned."""
        if not self.reviewers:
            return iter(numbers)
        to, most = self.reviewers, self.overlap
        return (each for each in numbers if name in assigned(self.run.id, each, to, most))

    def share(self, reviewer: str, kind: Queue) -> frozenset[int]:
        """Return the samples of a queue that a reviewer may get."""
        return frozenset(self._share(self._queue(kind), read_reviewer(reviewer)))

    def undecided(self, reviewer: str | None = None) -> frozenset[int]:
        """Return the samples that were reviewed but still wait for a decision on their flag.

        With a reviewer, only the samples that this reviewer has reviewed.
        """
        every = self._read().every
        found = undecided_samples(self.run, self.rubric, self.store, every)
        if reviewer is None:
            return found
        return found.intersection(each.number for each in every if each.reviewer == reviewer)

    def release(self) -> ReleaseReview:
        """Return what reviews settled and what the release of a finished run waits for."""
        if self.run.status != "finished":
            return ReleaseReview()
        run, active = self.run, self._read().every
        return release_review(run, self.rubric, outcome_of(run), self.store, active)

    def _claims(self, number: int, name: str, most: int) -> bool:
        """Give a sample to a reviewer, unless enough others have it or have reviewed it."""
        now = datetime.now(UTC)
        return self.store.claim_sample(
            self.run.id,
            number,
            name,
            now=now.isoformat(timespec="seconds"),
            since=(now - _CLAIMED).isoformat(timespec="seconds"),
            most=most,
        )

    def _queue(self, kind: Queue) -> Sequence[int]:
        if kind == "flagged":
            if not self._asked_for:
                return self.store.queued_numbers(self.run.id)
            query = SampleQuery(queued=True, any_flags=self._asked_for, limit=self.order.size)
            query = msgspec.structs.replace(query, sort="urgency", descending=True)
            return [each.number for each in self.store.find_samples(self.run.id, query).rows]
        present = self._present()
        return [number for number in self.order.numbers if number in present]

    def _present(self) -> Container[int]:
        if self.run.status == "finished":
            return range(self.order.size)
        return frozenset(self.store.numbers(self.run.id))

    def case(self, number: int, reviewer: str, *, queue: Queue = "picked") -> ReviewCase:
        """Return the parts of a sample that a reviewer may see before scoring it."""
        name = read_reviewer(reviewer)
        stored = self.stored(number)
        rows = self._rows_of(number, name)
        mine = next(iter(read_reviews(self.run, rows).every), None)
        return _case_of(stored, self.rubric, name, queue, mine, blind=self._is_blind(rows))

    def _is_blind(self, rows: Sequence[ReviewRow]) -> bool:
        """Return whether a reviewer with these rows on a sample hasn't seen the verdict on it."""
        # A desk that reveals verdicts also does so for the reviews of one that didn't.
        reviewed = (row for row in rows if row.action == REVIEW)
        return self.blind and not any(self.reveals or was_revealed(row) for row in reviewed)

    def submit(
        self,
        number: int,
        reviewer: str,
        verdict: HumanVerdict | Mapping[str, object],
        comment: str = "",
        *,
        shown: Circumstances,
    ) -> ReviewRow:
        """Store a verdict; in a verdict on a pair, A is the response that was shown first.

        A second review of a sample counts as blind only if the first didn't reveal the judges'
        verdict.
        """
        name, words = read_reviewer(reviewer), read_comment(comment)
        stored = self.stored(number)
        given = verdict.as_data() if isinstance(verdict, HumanVerdict) else verdict
        read = read_verdict(given, self.rubric, pair=stored.is_pair)
        blind = shown.blind and self._is_blind(self._rows_of(number, name))
        order = shown.order if stored.is_pair else "AB"
        queued = facets_of(stored.row).urgency > 0
        revealed = self.reveals or not blind
        how = Circumstances(queue=shown.queue, order=order, blind=blind, revealed=revealed)
        text = verdict_text(read.in_order(order), how, queued=queued)
        return self._add(stored.row, name, REVIEW, verdict=text, comment=words)

    def undo(self, reviewer: str) -> ReviewRow | None:
        """Withdraw a reviewer's newest active review; None if there isn't one."""
        name = read_reviewer(reviewer)
        # Even a review that can't be read can be withdrawn.
        rows = active_rows(self._rows())
        last = next((row for row in reversed(rows) if row.reviewer == name), None)
        if last is None:
            return None
        sample = self.stored(last.number).row
        return self._add(sample, name, WITHDRAWAL, of=last.id)

    def revealed(self, number: int, reviewer: str) -> Revealed:
        """Return the verdicts of the judges and other reviewers on a sample."""
        name = read_reviewer(reviewer)
        if not self.reveals:
            problem = "the judges' verdict stays hidden from reviewers"
            raise InputError(problem, "serve the pages without --no-reveal", str(number))
        stored = self.stored(number)
        found = read_reviews(self.run, self.store.reviews_of(self.run.id, number)).every
        mine = next((each for each in found if each.reviewer == name), None)
        if mine is None and self.blind:
            problem = "the judges' verdict is hidden until you have scored the sample"
            raise InputError(problem, "score it first", stored.id)
        shown = _case_of(stored, self.rubric, name, "picked", mine, blind=False)
        return Revealed(
            number=number,
            order=shown.order if mine is None else mine.shown.order,
            judged=stored.judged,
            mine=mine,
            others=tuple(each for each in found if each.reviewer != name),
        )

    def reviews(self, *, blind: bool = False) -> tuple[Review, ...]:
        """Return the active reviews, or only the blind ones."""
        found = self.active_reviews()
        return found.blind if blind else found.every

    def active_reviews(self) -> ActiveReviews:
        """Return the active reviews, checked against the rubric."""
        found = self._read()
        scales = {each.id: each.scale for each in self.rubric.criteria}
        for each in {each.id: each for each in chain(found.every, found.blind)}.values():
            fault = fault_of(each.verdict, scales)
            if fault is not None:
                raise damaged(self.run, f"review {each.id}: {fault}")
        return found

    def progress(self, reviewer: str | None = None) -> ReviewProgress:
        """Return the progress of all reviewers; without a reviewer, ``mine`` is 0."""
        name = None if reviewer is None else read_reviewer(reviewer)
        found, part = self._read(), self.random_subset()
        waiting = SampleQuery(queued=True, limit=0)
        count = flagged = self.store.find_samples(self.run.id, waiting).total
        queued = [each for each in found.every if each.queued]
        if self._asked_for:
            asked = {*self._queue("flagged")}
            count, queued = len(asked), [each for each in queued if each.number in asked]
        share = count
        if self.reviewers:
            share = sum(1 for _ in self._share(self._queue("flagged"), name))
        mine = self._share((each.number for each in queued if each.reviewer == name), name)
        return ReviewProgress(
            samples=self.order.size,
            queued=count,
            unscorable=flagged - count,
            share=share,
            mine=sum(1 for _ in mine),
            anyone=len({each.number for each in queued}),
            reviews=len(found.every),
            reviewers=tuple(sorted({each.reviewer for each in found.every})),
            labeled=len(part.labeled),
            **part.counts(),
        )

    def random_subset(self) -> RandomSubset:
        """Return how far reviewers have worked through the random order."""
        return self.subset_of(self._read())

    def subset_of(self, found: ActiveReviews) -> RandomSubset:
        """Return the random subset that these reviews cover."""
        blind = found.blind
        drawn = {each.number for each in blind if each.shown.queue == "random"}
        return random_subset(
            self.order,
            {each.number for each in blind},
            max(drawn, key=self.order.place, default=None),
            present=self._present(),
            labeled={each.number for each in blind if each.verdict.is_label},
            unscored=self._unscored(),
        )

    def _unscored(self) -> frozenset[int]:
        """Return the reviewed samples without a score or winner that a label can correct."""
        names = gold_scales(self.rubric).keys()
        with reading(self.run):
            return frozenset(
                number
                for number, each in self.store.reviewed_facets(self.run.id).items()
                if each.winner is None and names.isdisjoint(each.values())
            )

    def stored(self, number: int) -> StoredSample:
        """Return a sample."""
        sample = None
        if 0 <= number < self.order.size:
            sample = self.store.sample(self.run.id, number)
        if sample is None:
            problem = f"run {self.run.id} has no sample {number}"
            raise InputError(problem, f"its samples are 0 to {self.order.size - 1}")
        with reading(self.run):
            return StoredSample(sample, self.rubric)

    def _rows_of(self, number: int, name: str) -> tuple[ReviewRow, ...]:
        """Return all of a reviewer's rows on a sample, withdrawn ones included."""
        rows = self.store.reviews_of(self.run.id, number)
        return tuple(row for row in rows if row.reviewer == name)

    def _rows(self) -> Sequence[ReviewRow]:
        """Return all review rows of the run; they are read again only if there is a new one."""
        state = self.store.review_state(self.run.id)
        if state != self._known[0]:
            self._known = (state, self.store.reviews(self.run.id))
        return self._known[1]

    def _read(self) -> ActiveReviews:
        rows = self._rows()
        if self._found is None or self._found[0] is not rows:
            self._found = (rows, read_reviews(self.run, rows))
        return self._found[1]

    def _add(
        self,
        sample: SampleRow,
        reviewer: str,
        action: str,
        *,
        of: str | None = None,
        verdict: str = "{}",
        comment: str = "",
    ) -> ReviewRow:
        row = sealed(
            ReviewRow(
                # With microseconds, because rows of the same time are sorted by id.
                id=new_id(time="%Y%m%d-%H%M%S-%f"),
                run_id=self.run.id,
                number=sample.number,
                reviewer=reviewer,
                created_at=now_utc(),
                action=action,
                of=of,
                record_sha256=sample.record_sha256,
                verdict=verdict,
                comment=comment,
            )
        )
        self.store.add_review(row)
        return row


def _case_of(
    stored: StoredSample,
    rubric: Rubric,
    reviewer: str,
    queue: Queue,
    mine: Review | None,
    *,
    blind: bool,
) -> ReviewCase:
    """Return a sample as shown to a reviewer, the same on every visit."""
    sample, row, responses = stored.row, stored.inputs, stored.responses
    order: Order = "AB"
    shown = (responses.response,)
    if responses.response_b is not None:
        order = pair_order(sample.run_id, sample.number, reviewer)
        shown = (responses.response, responses.response_b)
    return ReviewCase(
        run_id=sample.run_id,
        number=sample.number,
        sample_id=sample.sample_id,
        repeat=sample.repeat,
        task=row.task,
        context=row.context,
        reference=row.reference,
        messages=row.messages,
        scenario=row.scenario,
        scenario_text=scenario_texts(rubric).get(row.scenario or ""),
        responses=shown if order == "AB" else shown[::-1],
        order=order,
        criteria=rubric.criteria,
        queue=queue,
        blind=blind,
        reasons=() if blind else stored.judged.reasons,
        mine=None if mine is None else mine.verdict.in_order(order),
        comment="" if mine is None else mine.comment,
    )
