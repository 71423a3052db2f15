"""What an interval is."""

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
