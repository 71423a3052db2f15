"""Reproducible random choices: the order of samples, and which of two responses is first."""

import hashlib
from collections.abc import Collection, Container, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import msgspec

from jurybox.review.reviews import Order
from jurybox.text_format import counted, verb

_SKIPPABLE: Final = 0.1

FEWEST: Final = 10
"""The minimum number of labels in the random subset for correcting a metric."""


def pair_order(run_id: str, number: int, reviewer: str) -> Order:
    """Return the reproducible order in which a reviewer sees two responses."""
    return "BA" if _digest(f"pair {run_id} {number} {reviewer}")[-1] % 2 else "AB"


class RandomOrder:
    """All sample numbers of a run in a random order that is reproducible from the run's id."""

    def __init__(self, run_id: str, size: int) -> None:
        """Prepare a random order of the numbers below ``size``; it is drawn when first needed."""
        self.size = size
        self._run_id = run_id

    @property
    def numbers(self) -> tuple[int, ...]:
        """All sample numbers in this order."""
        return _shuffled(self._run_id, self.size)

    def number(self, place: int) -> int:
        """Return the sample number at a position; both count from 0."""
        return self.numbers[place]

    def place(self, number: int) -> int:
        """Return the position of a sample number in this order."""
        return _places(self._run_id, self.size)[number]

    def until(self, last: int) -> tuple[int, ...]:
        """Return the numbers up to and including ``last``, in this order."""
        return self.numbers[: self.place(last) + 1]


# Cached, because every page view of a review server needs the order.
@lru_cache(maxsize=4)
def _shuffled(run_id: str, size: int) -> tuple[int, ...]:
    return tuple(sorted(range(size), key=lambda number: _digest(f"order {run_id} {number}")))


@lru_cache(maxsize=4)
def _places(run_id: str, size: int) -> dict[int, int]:
    return {number: place for place, number in enumerate(_shuffled(run_id, size))}


def assigned(run_id: str, number: int, reviewers: Sequence[str], overlap: int) -> tuple[str, ...]:
    """Return the ``overlap`` reviewers that a sample is assigned to."""
    first = int.from_bytes(_digest(f"assign {run_id} {number}")[:8])
    count = min(overlap, len(reviewers))
    return tuple(reviewers[(first + place) % len(reviewers)] for place in range(count))


def next_number(queue: Iterable[int], reviewed: Container[int], after: int | None) -> int | None:
    """Return the next unreviewed number after ``after``, starting over at the queue's end."""
    numbers = iter(queue)
    passed: list[int] = []
    for number in numbers if after is not None else ():
        passed.append(number)
        if number == after:
            break
    return next((number for number in chain(numbers, passed) if number not in reviewed), None)


def needed_line(needed: int, unsure: int = 0, *, others: bool = False) -> str:
    """Return how many more reviews are needed to correct a metric, and how to get them.

    ``others`` says whether there are reviewed flagged samples, which count once it is their turn in
    the random order.
    """
    reviews = f"{counted(needed, 'more review')} from the random queue {verb(needed, 'are')} needed"
    again = "; `--overlap 2` of `jurybox serve` assigns unclear samples to a second reviewer"
    fewer = (
        ". Flagged samples that are already reviewed count once the queue reaches them, so fewer"
        " may be enough"
    )
    more = f"{again if unsure else ''}{fewer if others and needed > 1 else ''}"
    return f"{reviews}{more}"


class RandomSubset(msgspec.Struct, frozen=True, kw_only=True):
    """How far reviewers have worked through the random order, from its beginning."""

    size: int  # how many samples the run will have
    reviewed: frozenset[int] = frozenset()  # the numbers of the drawn samples with a review
    labeled: frozenset[int] = frozenset()  # of these, the numbers with a label and a judge's score
    unscored: frozenset[int] = frozenset()  # those with a label only, which correct no mean
    missed: frozenset[int] = frozenset()  # the numbers of the drawn samples without a review
    # The numbers of reviewed samples that don't count yet, since too many samples before them in
    # the order have no review; ``passed`` are the numbers of those without a review.
    waiting: frozenset[int] = frozenset()
    passed: frozenset[int] = frozenset()

    @property
    def drawn(self) -> int:
        """How many samples were drawn."""
        return len(self.reviewed) + len(self.missed)

    @property
    def skipped(self) -> int:
        """How many drawn samples have no review, though later ones do."""
        return len(self.missed)

    @property
    def unsure(self) -> int:
        """How many drawn samples were reviewed without a label."""
        return len(self.reviewed) - len(self.labeled) - len(self.unscored)

    def counts(self) -> dict[str, int]:
        """Return how far reviewers are, as pages and reports say it."""
        names = ("unscored", "waiting", "passed")
        known = {name: len(getattr(self, name)) for name in names}
        return known | {"drawn": self.drawn, "needed": self.needed}

    @property
    def needed(self) -> int:
        """How many more labels are needed before a metric is corrected."""
        return max(0, min(FEWEST, self.size - len(self.unscored)) - len(self.labeled))


def too_many_missing(missing: int, drawn: int) -> bool:
    """Return whether a random subset lacks so many labels that it may not be random any more."""
    return missing > drawn * _SKIPPABLE


def random_subset(
    order: RandomOrder,
    reviewed: Collection[int],
    last: int | None,
    *,
    present: Container[int],
    labeled: Collection[int],
    unscored: Collection[int] = (),
) -> RandomSubset:
    """Return how far reviewers have worked through the random order.

    Reviews from any queue count, because reviewers aren't shown a sample twice. The random subset
    begins with the order and ends at ``last``, the last sample reviewed from the random queue. It
    ends earlier if more than 10% of its samples would lack a review, because reviewers don't skip
    at random. If all samples after ``last`` are reviewed, it has them too, because none is left to
    draw. ``labeled`` are the reviewed samples with a label, ``unscored`` those without a judge's
    score. Only samples that are ``present`` count as missing.
    """
    after = 0 if last is None else order.place(last) + 1
    if reviewed and all(number in reviewed for number in order.numbers[after:]):
        last = order.numbers[-1]
    if last is None:
        return RandomSubset(size=order.size)
    met: list[int] = []
    missed: list[int] = []
    counted = counted_missed = 0
    for number in order.until(last):
        if number in reviewed:
            met.append(number)
            if not too_many_missing(len(missed), len(met) + len(missed)):
                counted, counted_missed = len(met), len(missed)
        elif number in present:
            missed.append(number)
    part, waiting = frozenset(met[:counted]), frozenset(met[counted:])
    return RandomSubset(
        size=order.size,
        reviewed=part,
        labeled=part.intersection(labeled).difference(unscored),
        unscored=part.intersection(labeled).intersection(unscored),
        missed=frozenset(missed[:counted_missed]),
        waiting=waiting,
        passed=frozenset(missed) if waiting else frozenset(),
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
