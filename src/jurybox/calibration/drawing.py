"""Chance that anybody can draw again: which samples people are shown, and which response first."""

import hashlib
from collections.abc import Callable, Collection
from functools import cached_property
from typing import Final

import msgspec

from jurybox.calibration.reviews import Order

_ROUNDS: Final = 6
_SKIPPABLE: Final = 0.1
_BITS: Final = (1 << 64) - 1

FEWEST: Final = 10
"""So many labels of the random part are needed before a figure is corrected by them."""


def pair_order(run_id: str, number: int, reviewer: str) -> Order:
    """Return the order in which a reviewer sees two responses: the same whenever it is asked."""
    return "BA" if _hash("pair", run_id, number, reviewer) & 1 else "AB"


class RandomOrder:
    """All numbers of a run, in an order that follows from its id and has nothing to do with them.

    A place in it is found without listing the others, so that a run of any size costs nothing: a
    Feistel network over the next power of four, walked until it is within the run.
    """

    def __init__(self, run_id: str, size: int) -> None:
        """Draw the order of ``size`` numbers from 0."""
        self.size = size
        self._run_id = run_id
        self._places: dict[int, int] = {}
        self._half = max(1, ((size - 1).bit_length() + 1) // 2)

    def number(self, place: int) -> int:
        """Return the number at a place, both from 0."""
        found = self._forwards(place)
        while found >= self.size:
            found = self._forwards(found)
        return found

    def place(self, number: int) -> int:
        """Return the place of a number."""
        known = self._places.get(number)
        if known is not None:
            return known
        found = self._backwards(number)
        while found >= self.size:
            found = self._backwards(found)
        self._places[number] = found
        return found

    @cached_property
    def _rounds(self) -> tuple[tuple[int, ...], ...]:
        """What each round makes of every half: looked up, a place takes microseconds."""
        keys = (_hash("order", self._run_id, step, "") for step in range(_ROUNDS))
        mask = (1 << self._half) - 1
        return tuple(tuple(_mixed(each ^ key) & mask for each in range(mask + 1)) for key in keys)

    def _forwards(self, value: int) -> int:
        left, right = value >> self._half, value & ((1 << self._half) - 1)
        for made in self._rounds:
            left, right = right, left ^ made[right]
        return left << self._half | right

    def _backwards(self, value: int) -> int:
        left, right = value >> self._half, value & ((1 << self._half) - 1)
        for made in reversed(self._rounds):
            left, right = right ^ made[left], left
        return left << self._half | right


class RandomPart(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that were drawn at random, as far as people came.

    Attributes:
        size: how many samples the run will have.
        reviewed: the numbers of those that were drawn and reviewed.
        labelled: of which of these somebody could tell something.
        missed: the numbers of those that were drawn and nobody reviewed.
        waiting: the numbers of reviewed samples that count for nothing yet, since too many before
            them in the order are missing; ``passed`` is how many.

    """

    size: int
    reviewed: frozenset[int] = frozenset()
    labelled: frozenset[int] = frozenset()
    missed: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()
    passed: int = 0

    @property
    def drawn(self) -> int:
        """How many were drawn."""
        return len(self.reviewed) + len(self.missed)

    @property
    def skipped(self) -> int:
        """How many of them nobody spoke about, though people went on behind them."""
        return len(self.missed)

    @property
    def unsure(self) -> int:
        """How many of them were reviewed, and nobody could tell anything."""
        return len(self.reviewed) - len(self.labelled)

    @property
    def needed(self) -> int:
        """How many more labels are needed before a figure is corrected."""
        return max(0, min(FEWEST, self.size) - len(self.labelled))


def too_many_missing(missing: int, drawn: int) -> bool:
    """Return whether so many without a label make the rest of a random part no random choice."""
    return missing > drawn * _SKIPPABLE


def random_part(
    order: RandomOrder,
    reviewed: Collection[int],
    last: int | None,
    is_there: Callable[[int], bool] | None = None,
    *,
    labelled: Collection[int] | None = None,
) -> RandomPart:
    """Return the beginning of the order that people have been through.

    A sample counts for its place in the order alone, whichever queue it was reviewed from: those
    who reach a sample of the random order that they know already are not shown it twice. The part
    ends at the number ``last``, the furthest that was reviewed from the random queue, and earlier
    where else more than one in ten would be missing: what people leave out is no random choice.
    ``labelled`` are those of the reviewed of which somebody could tell something; all, if it isn't
    given. Samples that aren't there yet are not missed.
    """
    if last is None:
        return RandomPart(size=order.size)
    ends = order.place(last)
    found = sorted((place, number) for number in reviewed if (place := order.place(number)) <= ends)
    missed: list[int] = []
    best = best_missed = missing = before = 0
    for count, (place, _) in enumerate(found, start=1):
        if is_there is None:
            missing += place - before
        elif missing <= len(reviewed):  # more than that and nothing can be made good
            numbers = map(order.number, range(before, place))
            missed.extend(number for number in numbers if is_there(number))
            missing = len(missed)
        before = place + 1
        if not too_many_missing(missing, count + missing):
            best, best_missed = count, missing
    if is_there is None and best:
        met = {place for place, _ in found[:best]}
        gaps = (place for place in range(found[best - 1][0]) if place not in met)
        missed = [order.number(place) for place in gaps]
    part = frozenset(number for _, number in found[:best])
    waiting = frozenset(number for _, number in found[best:])
    return RandomPart(
        size=order.size,
        reviewed=part,
        labelled=part if labelled is None else part.intersection(labelled),
        missed=frozenset(missed[:best_missed]),
        waiting=waiting,
        passed=missing if waiting else 0,
    )


def _mixed(value: int) -> int:
    """Return 64 bits that depend on all 64 of a value: the finalizer of MurmurHash3."""
    value = ((value ^ value >> 33) * 0xFF51AFD7ED558CCD) & _BITS
    value = ((value ^ value >> 33) * 0xC4CEB9FE1A85EC53) & _BITS
    return value ^ value >> 33


def _hash(what: str, run_id: str, number: int, text: str) -> int:
    parts = "".join(f"{len(part)}:{part}" for part in (what, run_id, str(number), text))
    return int.from_bytes(hashlib.blake2b(parts.encode(), digest_size=8).digest())
