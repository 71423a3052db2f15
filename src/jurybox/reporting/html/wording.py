"""Counts, shares and spans as people say them."""

import re
from typing import Final

from jurybox.reporting.figures import MISSING, shown
from jurybox.statistics.interval import Interval

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z", re.ASCII)


def counted(count: int, what: str) -> str:
    """Return a count of things: ``1 sample``, ``12,000 samples``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def percent(share: float) -> str:
    """Return a share in percent; all is said of all only, and nothing of nothing only."""
    if 0 < share < 0.001:  # noqa: PLR2004 - what would be rounded to nothing
        return "under 0.1%"
    if 0.999 < share < 1:  # noqa: PLR2004 - what would be rounded to all
        return "over 99.9%"
    return f"{shown(round(100 * share, 1))}%"


def moment(utc: str) -> str:
    """Return a time to the minute: ``2026-03-01 09:14 UTC``."""
    return f"{utc[:10]} {utc[11:16]} UTC" if _TIME.fullmatch(utc) else utc


def span(interval: Interval | None) -> str:
    """Return an interval."""
    return MISSING if interval is None else f"{shown(interval.low)} to {shown(interval.high)}"


def dollars(value: float | None) -> str:
    """Return what something costs."""
    return "unknown" if value is None else f"${value:,.4f}"
