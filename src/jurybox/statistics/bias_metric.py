"""The result of a measurement of bias, and how it is worded."""

from collections.abc import Hashable, Sequence
from typing import Final

from jurybox.statistics.estimates import Estimate, Interval

FEWEST_SAMPLES: Final = 10
"""Fewer samples give no value: its interval would cover nearly everything."""

FEWEST_OF_A_KIND: Final = 5
_NARROW: Final = 0.02
_NARROWER: Final = 0.002


class BiasMetric(Estimate, frozen=True, kw_only=True):
    """One measurement of bias, from ``n`` votes, calls or responses of ``samples`` samples.

    ``name`` is what a gate calls it, such as ``position.swap_consistency``.
    """

    name: str
    samples: int
    sentence: str = ""


def measured(name: str, found: Estimate, samples: int, sentence: str) -> BiasMetric:
    """Return an estimate as a metric of bias."""
    return BiasMetric(
        name=name,
        value=found.value,
        n=found.n,
        samples=samples,
        interval=found.interval,
        reason=found.reason,
        sentence=sentence,
    )


def unmeasured(name: str, reason: str, *, n: int = 0, samples: int = 0) -> BiasMetric:
    """Return a metric that could not be measured, and why."""
    sentence = f"Not measurable: {reason}."
    return BiasMetric(name=name, value=None, n=n, samples=samples, reason=reason, sentence=sentence)


def too_few(samples: int, what: str) -> str | None:
    """Return the reason why there are too few samples with ``what``, or None."""
    if samples >= FEWEST_SAMPLES:
        return None
    count = "no sample has" if not samples else f"only {samples} samples have"
    count = "only 1 sample has" if samples == 1 else count
    return f"{count} {what}, and {FEWEST_SAMPLES} are needed"


def too_one_sided(
    kinds: Sequence[bool], samples: Sequence[Hashable], named: tuple[str, str]
) -> str | None:
    """Return the reason why one of two kinds of responses is too rare, or None."""
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

    def signed(value: float) -> str:
        return f"{round(value, digits) + 0.0:+.{digits}f}"

    if interval is None:
        return signed(value)
    return f"{signed(value)} ({signed(interval.low)} to {signed(interval.high)})"


def side_of(interval: Interval | None, fair: float) -> int:
    """Return on which side of the fair value an interval lies; 0 where it contains it."""
    if interval is None or interval.low <= fair <= interval.high:
        return 0
    return 1 if interval.low > fair else -1


def by_side(interval: Interval | None, fair: float, *, none: str, above: str, below: str) -> str:
    """Choose the words for where an interval lies."""
    return {0: none, 1: above, -1: below}[side_of(interval, fair)]


def _digits(interval: Interval | None) -> int:
    """Return how many digits are worth showing: an interval must not look like a point."""
    width = 1.0 if interval is None else interval.high - interval.low
    if width >= _NARROW:
        return 0
    return 1 if width >= _NARROWER else 2
