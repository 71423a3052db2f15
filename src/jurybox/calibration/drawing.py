"""Chance that anybody can draw again: which samples people are shown, and which response first."""

import hashlib
from collections.abc import Callable, Collection
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
        self._keys = tuple(_hash("order", run_id, step, "") for step in range(_ROUNDS))
        self._half = max(1, ((size - 1).bit_length() + 1) // 2)

    def number(self, place: int) -> int:
        """Return the number at a place, both from 0."""
        found = self._forwards(place)
        while found >= self.size:
            found = self._forwards(found)
        return found

    def place(self, number: int) -> int:
        """Return the place of a number."""
        found = self._backwards(number)
        while found >= self.size:
            found = self._backwards(found)
        return found

    def _forwards(self, value: int) -> int:
        mask = (1 << self._half) - 1
        left, right = value >> self._half, value & mask
        for key in self._keys:
            left, right = right, left ^ (_mixed(right ^ key) & mask)
        return left << self._half | right

    def _backwards(self, value: int) -> int:
        mask = (1 << self._half) - 1
        left, right = value >> self._half, value & mask
        for key in reversed(self._keys):
            left, right = right ^ (_mixed(left ^ key) & mask), left
        return left << self._half | right


class RandomPart(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that were drawn at random, as far as people came.

    Attributes:
        size: how many samples the run will have.
        drawn: how many were drawn.
        labelled: the numbers of those that people spoke about.

    """

    size: int
    drawn: int = 0
    labelled: frozenset[int] = frozenset()

    @property
    def skipped(self) -> int:
        """How many of them nobody spoke about, though people went on behind them."""
        return self.drawn - len(self.labelled)

    @property
    def needed(self) -> int:
        """How many more labels are needed before a figure is corrected."""
        return max(0, min(FEWEST, self.size) - len(self.labelled))


def random_part(
    order: RandomOrder,
    labelled: Collection[int],
    last: int | None,
    is_there: Callable[[int], bool] = lambda _: True,
) -> RandomPart:
    """Return the beginning of the order that people have been through.

    A sample counts for its place in the order alone, whichever queue it was reviewed from: those
    who reach a sample of the random order that they know already are not shown it twice. The part
    ends at the number ``last``, the furthest that was reviewed from the random queue, and earlier
    where else more than one in ten would be missing: what people leave out is no random choice.
    """
    if last is None:
        return RandomPart(size=order.size)
    end, most_missing = order.place(last) + 1, len(labelled) / (1 / _SKIPPABLE - 1)
    met: list[int] = []
    drawn = missing = 0
    best = RandomPart(size=order.size)
    for place in range(end):
        number = order.number(place)
        if number in labelled:
            met.append(number)
        elif not is_there(number):
            continue
        else:
            missing += 1
            if missing > most_missing:
                break
        drawn += 1
        if number in labelled and missing <= drawn * _SKIPPABLE:
            best = RandomPart(size=order.size, drawn=drawn, labelled=frozenset(met))
    return best


def _mixed(value: int) -> int:
    """Return 64 bits that depend on all 64 of a value: the finalizer of MurmurHash3."""
    value = ((value ^ value >> 33) * 0xFF51AFD7ED558CCD) & _BITS
    value = ((value ^ value >> 33) * 0xC4CEB9FE1A85EC53) & _BITS
    return value ^ value >> 33


def _hash(what: str, run_id: str, number: int, text: str) -> int:
    parts = "".join(f"{len(part)}:{part}" for part in (what, run_id, str(number), text))
    return int.from_bytes(hashlib.blake2b(parts.encode(), digest_size=8).digest())
