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

    ``value`` is ``None`` if it is undefined, never NaN or a substitute; ``reason`` says why the
    value or its interval is missing.
    """

    value: float | None
    n: int
    interval: Interval | None = None
    reason: str | None = None
