"""The desk at which people review a run's samples: one door for pages, programs and commands.

Nothing is ever changed here: a review is a row more, and so is its withdrawal. Whatever the desk
knows it reads anew, so that any number of people can sit at it, in any number of windows.
"""

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.calibration.drawing import RandomOrder, RandomPart, random_part
from jurybox.calibration.review_input import read_comment, read_reviewer, read_verdict
from jurybox.calibration.reviews import (
    REVIEW,
    WITHDRAWAL,
    Circumstances,
    Queue,
    Review,
    Verdict,
    standing,
    verdict_text,
)
from jurybox.errors import InputError
from jurybox.reporting.stored import damaged, plan_of, rubric_of
from jurybox.running.finding import MOST, SampleQuery
from jurybox.running.records import ReviewRow, RunRow, SampleRow, seal_of, sealed_review
from jurybox.running.storing import Store
from jurybox.scoring.facets import facets_of
from jurybox.wiring.review_cases import Case, Revealed, Stored, case_of, read_stored

if TYPE_CHECKING:
    from jurybox.wiring.review_figures import Standing

# No letters that are taken for each other.
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far people have come.

    Attributes:
        samples: how many the run will have.
        queued: how many of those it has need a person.
        mine: how many of the queued this reviewer has reviewed.
        anyone: how many of the queued somebody has.
        reviews: how many reviews stand, of whichever samples.
        reviewers: who has reviewed.
        drawn: how many samples of the random part have been come to.
        labelled: how many of these were reviewed blind.
        needed: how many more the random part needs before figures are corrected by it.

    """

    samples: int
    queued: int
    mine: int
    anyone: int
    reviews: int
    reviewers: tuple[str, ...]
    drawn: int
    labelled: int
    needed: int


class ReviewDesk:
    """Where the samples of one run are reviewed."""

    def __init__(self, store: Store, run: RunRow, *, blind: bool = True) -> None:
        """Open the desk; without ``blind`` reviewers see the judges' verdict before they score.

        Raises:
            IncompleteError: the run can't be read.

        """
        self.store = store
        self.run = run
        self.rubric = rubric_of(run)
        self.blind = blind
        self.order = RandomOrder(run.id, plan_of(run).samples)

    def next(
        self,
        reviewer: str,
        *,
        kind: Queue = "flagged",
        after: int | None = None,
        skip: Collection[int] = (),
    ) -> Case | None:
        """Return the next sample that a reviewer hasn't reviewed; None where there is none.

        ``flagged`` are those that need a person, the most urgent first; ``random`` all of them in
        an order drawn for the run. Behind the number ``after`` it goes on, and begins anew at the
        end, so that what was passed over comes back. Those to ``skip`` never come.

        Raises:
            InputError: the name is none, or there is no such queue.
            IncompleteError: the run can't be read.

        """
        name = read_reviewer(reviewer)
        if kind == "picked":
            raise InputError("what is picked has no order", "take `flagged` or `random`", "queue")
        known = {each.number for each in self.reviews() if each.reviewer == name} | {*skip}
        # Nobody has to look at more of the queue than they know of it.
        page = min(MOST, len(known) + 1) if after is None else MOST
        numbers = self._flagged(page) if kind == "flagged" else self._random(after)
        first: int | None = None
        passed = after is None or kind == "random"
        for number in numbers:
            if number == after:
                passed = True
            if number in known or number == after:
                continue
            if passed:
                return self.case(number, name, queue=kind)
            first = number if first is None else first
        if first is None and after is not None and after not in known and self._is_there(after):
            first = after
        return None if first is None else self.case(first, name, queue=kind)

    def _flagged(self, page: int) -> Iterator[int]:
        offset = 0
        while True:
            query = SampleQuery(
                queued=True, sort="urgency", descending=True, offset=offset, limit=page
            )
            rows = self.store.find_samples(self.run.id, query).rows
            yield from (row.number for row in rows)
            if len(rows) < page:
                return
            offset += page

    def _random(self, after: int | None) -> Iterator[int]:
        begin = 0
        if after is not None and 0 <= after < self.order.size:
            begin = self.order.place(after) + 1
        places = chain(range(begin, self.order.size), range(begin))
        return (number for number in map(self.order.number, places) if self._is_there(number))

    def _is_there(self, number: int) -> bool:
        if not 0 <= number < self.order.size:
            return False
        return self.run.status == "finished" or self.store.sample(self.run.id, number) is not None

    def case(self, number: int, reviewer: str, *, queue: Queue = "picked") -> Case:
        """Return what a reviewer may see of a sample before they have scored it.

        Raises:
            InputError: the name is none, or the run has no such sample.
            IncompleteError: the run can't be read.

        """
        name = read_reviewer(reviewer)
        stored = self.stored(number)
        said = self._said(number, name)
        mine = next(iter(self._standing(said)), None)
        return case_of(stored, self.rubric, name, queue, mine, blind=self.blind and not said)

    def submit(
        self,
        number: int,
        reviewer: str,
        verdict: Verdict | Mapping[str, object],
        comment: str = "",
        *,
        shown: Circumstances,
    ) -> ReviewRow:
        """Store a verdict, which names two responses in the order that they were shown in.

        Who has reviewed the sample before has seen what the judges say, so that another review of
        it isn't blind, whatever ``shown`` says.

        Raises:
            InputError: the verdict is none on the run's rubric, or the name or comment is none.
            IncompleteError: the run can't be read, or the store is in trouble.

        """
        name, words = read_reviewer(reviewer), read_comment(comment)
        stored = self.stored(number)
        given = verdict.as_data() if isinstance(verdict, Verdict) else verdict
        said = read_verdict(given, self.rubric, pair=stored.is_pair)
        blind = shown.blind and self.blind and not self._said(number, name)
        order = shown.order if stored.is_pair else "AB"
        told = msgspec.structs.replace(shown, order=order, blind=blind)
        queued = facets_of(stored.sample).urgency > 0
        text = verdict_text(said.in_order(order), told, queued=queued)
        return self._add(stored.sample, name, REVIEW, verdict=text, comment=words)

    def undo(self, reviewer: str) -> ReviewRow | None:
        """Withdraw the newest review of a reviewer that stands; None where there is none.

        Raises:
            InputError: the name is none.
            IncompleteError: the run can't be read, or the store is in trouble.

        """
        name = read_reviewer(reviewer)
        mine = [each for each in self.reviews() if each.reviewer == name]
        if not mine:
            return None
        last = mine[-1]
        return self._add(self.stored(last.number).sample, name, WITHDRAWAL, of=last.id)

    def revealed(self, number: int, reviewer: str) -> Revealed:
        """Return what the judges and other people say of a sample.

        Raises:
            InputError: the reviewer is blind and hasn't scored it, or there is no such sample.
            IncompleteError: the run can't be read.

        """
        name = read_reviewer(reviewer)
        stored = self.stored(number)
        found = self._standing(self.store.reviews_of(self.run.id, number))
        mine = next((each for each in found if each.reviewer == name), None)
        if mine is None and self.blind:
            problem = "the judges' verdict is hidden until you have scored the sample"
            raise InputError(problem, "score it first", stored.sample.sample_id)
        shown = case_of(stored, self.rubric, name, "picked", mine, blind=False)
        return Revealed(
            number=number,
            order=shown.order if mine is None else mine.shown.order,
            judged=stored.judged,
            mine=mine,
            others=tuple(each for each in found if each.reviewer != name),
        )

    def reviews(self, *, blind: bool = False) -> tuple[Review, ...]:
        """Return the reviews that stand, or those that stand of the blind ones.

        Raises:
            IncompleteError: one was changed, or can't be read.

        """
        return self._standing(self.store.reviews(self.run.id), blind=blind)

    def progress(self, reviewer: str | None = None) -> Progress:
        """Return how far people have come; without a reviewer, nothing is ``mine``.

        Raises:
            InputError: the name is none.
            IncompleteError: the run can't be read.

        """
        name = None if reviewer is None else read_reviewer(reviewer)
        found = self.reviews()
        part = self.random_part()
        queued = [each for each in found if each.queued]
        return Progress(
            samples=self.order.size,
            queued=self.store.find_samples(self.run.id, SampleQuery(queued=True, limit=1)).total,
            mine=sum(each.reviewer == name for each in queued),
            anyone=len({each.number for each in queued}),
            reviews=len(found),
            reviewers=tuple(sorted({each.reviewer for each in found})),
            drawn=part.drawn,
            labelled=len(part.labelled),
            needed=part.needed,
        )

    def random_part(self) -> RandomPart:
        """Return the samples that were drawn at random, as far as people came.

        Raises:
            IncompleteError: the run can't be read.

        """
        found = self.reviews(blind=True)
        drawn = [each.number for each in found if each.shown.queue == "random"]
        last = max(drawn, key=self.order.place, default=None)
        return random_part(self.order, {each.number for each in found}, last, self._is_there)

    def standing(self) -> "Standing | None":
        """Return how the judges stand with people so far; None where nobody has reviewed.

        It reads every result of the run, and takes numpy: a second for 100,000 samples.

        Raises:
            IncompleteError: the run can't be read.

        """
        if not self.store.reviews(self.run.id):
            return None
        from jurybox.wiring.review_figures import Evidence, standing_of

        return standing_of(
            Evidence(
                store=self.store,
                run=self.run,
                rubric=self.rubric,
                every=self.reviews(),
                blind=self.reviews(blind=True),
                part=self.random_part(),
                stored=self.stored,
            )
        )

    def stored(self, number: int) -> Stored:
        """Return a sample.

        Raises:
            InputError: the run has no such sample.
            IncompleteError: it can't be read.

        """
        sample = None
        if 0 <= number < self.order.size:
            sample = self.store.sample(self.run.id, number)
        if sample is None:
            problem = f"run {self.run.id} has no sample {number}"
            raise InputError(problem, f"its samples are 0 to {self.order.size - 1}")
        try:
            return read_stored(sample, self.rubric)
        except msgspec.DecodeError as error:
            raise damaged(self.run, error) from None

    def _said(self, number: int, name: str) -> tuple[ReviewRow, ...]:
        """Return all that a reviewer ever said of a sample, also what is withdrawn."""
        rows = self.store.reviews_of(self.run.id, number)
        return tuple(row for row in rows if row.reviewer == name)

    def _standing(self, rows: Sequence[ReviewRow], *, blind: bool = False) -> tuple[Review, ...]:
        for row in rows:
            if seal_of(row) != row.seal:
                raise damaged(self.run, f"review {row.id} was changed after it was stored")
        try:
            return standing(rows, blind=blind)
        except msgspec.DecodeError as error:
            raise damaged(self.run, error) from None

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
        now = datetime.now(UTC)
        tail = "".join(secrets.choice(_LETTERS) for _ in range(4))
        row = sealed_review(
            ReviewRow(
                # Rows of one moment are told apart by their ids, so these have more digits of it.
                id=f"{now:%Y%m%d-%H%M%S-%f}-{tail}",
                run_id=self.run.id,
                number=sample.number,
                reviewer=reviewer,
                created_at=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                action=action,
                of=of,
                record_sha256=sample.record_sha256,
                verdict=verdict,
                comment=comment,
            )
        )
        self.store.add_review(row)
        return row
