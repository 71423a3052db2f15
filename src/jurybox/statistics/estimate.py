"""What a statistic is: a value with its interval, or the reason why there is none."""

import msgspec


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Where a figure probably lies, and how that was found out.

    Attributes:
        low: the lower end.
        high: the upper end.
        level: how often intervals made like this cover the true figure, such as 0.95.
        method: how it was made, in a few words: ``Wilson``, ``BCa bootstrap, 2,000 resamples``.

    """

    low: float
    high: float
    level: float
    method: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a set of data.

    Attributes:
        value: the figure; ``None`` where it is undefined, never NaN and never a stand-in.
        n: how many items it is computed from.
        interval: where it probably lies, where that can be told.
        reason: why the value or its interval is ``None``, in words.

    """

    value: float | None
    n: int
    interval: Interval | None = None
    reason: str | None = None
