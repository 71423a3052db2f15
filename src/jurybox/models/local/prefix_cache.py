"""How a prompt is read, so that the same prompt gives the same numbers whatever was read before.

The last digits of a model's numbers depend on which tokens were read together. So there is one way
only: every segment of a prompt is read by itself, from its first token to its last, and what an
earlier prompt left behind is used only up to a place where that one was cut in the same way.
"""

from collections.abc import Sequence
from itertools import accumulate

import msgspec


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a model has read: the tokens, and where every reading began.

    ``more`` says that unknown tokens, the model's own, may follow.
    """

    tokens: tuple[int, ...] = ()
    cuts: tuple[int, ...] = ()
    more: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Read up to ``tokens``' end, with what is held before ``start`` left as it is."""

    tokens: tuple[int, ...]
    start: int


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How to get a prompt read: the steps in order, and what is held then."""

    steps: tuple[Step, ...]
    held: Held
    kept: int


def plan(held: Held, segments: Sequence[Sequence[int]]) -> Reading:
    """Return the steps that read ``segments``, none of which is empty.

    The runtime keeps as much of what it holds as the next prompt begins with, wanted or not.
    """
    tokens = tuple(token for segment in segments for token in segment)
    ends = tuple(accumulate(len(segment) for segment in segments))
    starts = (0, *ends[:-1])
    kept = max((start for start in starts if _holds(held, tokens, starts, start)), default=0)
    steps: list[Step] = []
    if kept and _collides(held, tokens, kept):
        # What follows begins as what followed before, so more would be kept than should be: a
        # token that is neither comes between.
        steps.append(Step(tokens=(*tokens[:kept], _other(tokens[kept])), start=kept))
    left = [(start, end) for start, end in zip(starts, ends, strict=True) if start >= kept]
    steps += [Step(tokens=tokens[:end], start=start) for start, end in left]
    return Reading(steps=tuple(steps), held=Held(tokens=tokens, cuts=starts), kept=kept)


def _holds(held: Held, tokens: tuple[int, ...], starts: tuple[int, ...], start: int) -> bool:
    """Say whether what is held before ``start`` is what reading ``tokens`` would leave there."""
    if start not in held.cuts and start != len(held.tokens):
        return False
    before = tuple(cut for cut in held.cuts if cut < start)
    return before == tuple(cut for cut in starts if cut < start) and (
        held.tokens[:start] == tokens[:start]
    )


def _collides(held: Held, tokens: tuple[int, ...], start: int) -> bool:
    if start == len(held.tokens):
        return held.more
    return held.tokens[start] == tokens[start]


def _other(token: int) -> int:
    return 0 if token else 1
