"""What a figure of bias is, and how it is worded."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from jurybox.statistics.estimate import Interval

FEWEST: Final = 10
"""From fewer samples no figure is made: its interval would cover nearly everything."""

FEWEST_OF_A_KIND: Final = 5
"""A kind of response that fewer samples show can't be told from those samples themselves."""

_NARROW: Final = 0.02
_NARROWER: Final = 0.002


class BiasFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of bias.

    Attributes:
        name: what a gate calls it, such as ``position.swap_consistency``.
        value: the figure; ``None`` where it can't be told.
        n: how many items it is made from: votes, calls or responses.
        samples: how many samples these belong to.
        interval: where the true figure probably lies.
        reason: why the value or its interval is ``None``.
        sentence: what it means, in words.

    """

    name: str
    value: float | None
    n: int
    samples: int
    interval: Interval | None = None
    reason: str | None = None
    sentence: str = ""


def untold(name: str, reason: str, *, n: int = 0, samples: int = 0) -> BiasFigure:
    """Return a figure that can't be told, and why."""
    sentence = f"Can't be told: {reason}."
    return BiasFigure(name=name, value=None, n=n, samples=samples, reason=reason, sentence=sentence)


def too_few(samples: int, what: str) -> str | None:
    """Say that there are too few samples, where there are; ``what`` says of which kind."""
    if samples >= FEWEST:
        return None
    count = "no sample has" if not samples else f"only {samples} samples have"
    count = "only 1 sample has" if samples == 1 else count
    return f"{count} {what}, and {FEWEST} are needed"


def too_one_sided(
    kinds: Sequence[bool], samples: Sequence[Hashable], named: tuple[str, str]
) -> str | None:
    """Say that one of two kinds of responses is too rare; ``named`` says what either is."""
    for kind, what in zip((True, False), named, strict=True):
        count = len({each for each, is_kind in zip(samples, kinds, strict=True) if is_kind is kind})
        if count < FEWEST_OF_A_KIND:
            found = f"responses of only {count} samples are" if count else "no response is"
            return f"{found} {what}, and {FEWEST_OF_A_KIND} samples of each kind are needed"
    return None


def percent(value: float, interval: Interval | None = None) -> str:
    """Return a share as percent, with its interval where there is one."""
    digits = _digits(interval)
    shown = f"{100 * value:.{digits}f}%"
    if interval is None:
        return shown
    return f"{shown} ({100 * interval.low:.{digits}f}% to {100 * interval.high:.{digits}f}%)"


def number(value: float, interval: Interval | None = None) -> str:
    """Return a number with its sign, with its interval where there is one."""
    digits = 2 + _digits(interval)
    shown = f"{_unsigned_zero(value, digits):+.{digits}f}"
    if interval is None:
        return shown
    low, high = (_unsigned_zero(end, digits) for end in (interval.low, interval.high))
    return f"{shown} ({low:+.{digits}f} to {high:+.{digits}f})"


def side_of(interval: Interval | None, fair: float) -> int:
    """Return on which side of what would be fair an interval lies; 0 where it holds it."""
    if interval is None or interval.low <= fair <= interval.high:
        return 0
    return 1 if interval.low > fair else -1


def _digits(interval: Interval | None) -> int:
    """Return how many digits are worth showing: an interval must not look like a point."""
    width = 1.0 if interval is None else interval.high - interval.low
    if width >= _NARROW:
        return 0
    return 1 if width >= _NARROWER else 2


def _unsigned_zero(value: float, digits: int) -> float:
    return round(value, digits) + 0.0
