"""Ids and times of stored rows, and datasets kept in the store's folder."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jurybox.engine.records import ENCODER
from jurybox.errors import IncompleteError
from jurybox.reporting.output_file import whole_file
from jurybox.wiring import store_folder

# Without characters that look alike.
_CHARACTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"


def now_utc() -> str:
    """Return the current time in the format of stored rows."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(prefix: str = "", time: str = "%Y%m%d-%H%M%S") -> str:
    """Return an id that sorts by time, such as 20260301-091425-x7kq."""
    tail = "".join(secrets.choice(_CHARACTERS) for _ in range(4))
    return f"{prefix}{datetime.now(UTC):{time}}-{tail}"


def kept_dataset(
    folder: str, name: str, rows: Iterable[Mapping[str, Any]], store_url: str | None = None
) -> Path:
    """Write rows to a file of JSON lines next to the store; identical rows share one file."""
    data = b"".join(ENCODER.encode(row) + b"\n" for row in rows)
    digest = hashlib.sha256(data).hexdigest()[:12]
    path = store_folder(store_url) / folder / f"{name}-{digest}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() and path.read_bytes() == data:
            return path
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise IncompleteError(f"{path.parent}: can't be written ({reason})") from None
    with whole_file(path) as file:
        file.write(data)
    return path
