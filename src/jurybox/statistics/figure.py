"""What a figure is: a value with its interval, or the reason why there is none."""

import msgspec

from jurybox.statistics.interval import Interval


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
