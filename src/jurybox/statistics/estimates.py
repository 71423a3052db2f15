"""The result of every statistic: a value with its interval, or the reason why it is missing."""

import msgspec


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A confidence interval; ``method`` names how it was computed, such as ``Wilson``."""

    low: float
    high: float
    level: float
    method: str


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A statistic of ``n`` items.

    ``value`` is ``None`` where it is undefined, never NaN and never a stand-in; ``reason`` then
    says why, or why there is no interval.
    """

    value: float | None
    n: int
    interval: Interval | None = None
    reason: str | None = None
