"""Ids and times of stored rows."""

import secrets
from datetime import UTC, datetime
from typing import Final

# Without characters that are mistaken for each other.
_CHARACTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"


def now_utc() -> str:
    """Return the current time as rows record it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(prefix: str = "", time: str = "%Y%m%d-%H%M%S") -> str:
    """Return an id that sorts by time, such as 20260301-091425-x7kq."""
    tail = "".join(secrets.choice(_CHARACTERS) for _ in range(4))
    return f"{prefix}{datetime.now(UTC):{time}}-{tail}"
