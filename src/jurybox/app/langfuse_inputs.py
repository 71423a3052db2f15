"""Prompts and datasets that a suite takes from Langfuse, fetched once and kept as they were."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jurybox.app.ids import kept_dataset
from jurybox.datasets.foreign_files import langfuse_row
from jurybox.errors import IncompleteError, InputError
from jurybox.suite.target_spec import LANGFUSE
from jurybox.wiring import langfuse_client

if TYPE_CHECKING:
    from jurybox.integrations.langfuse_client import DeliveryError, FetchedPrompt


def fetch_prompt(name: str) -> "FetchedPrompt":
    """Return the prompt ``langfuse:NAME@VERSION``; a label means its current version."""
    from jurybox.integrations.langfuse_client import DeliveryError

    prompt, _, which = name.removeprefix(LANGFUSE).rpartition("@")
    try:
        return langfuse_client().prompt(prompt, which)
    except DeliveryError as error:
        raise _reported(error, name) from None


def fetch_dataset(name: str) -> tuple[str, Path]:
    """Write the dataset ``langfuse:NAME`` to a file, as it is now or was at ``NAME@TIME``.

    Returns a name that has the time, and the file.
    """
    from jurybox.integrations.langfuse_client import DeliveryError

    dataset, version = _dated(name.removeprefix(LANGFUSE))
    try:
        rows = [langfuse_row(item) for item in langfuse_client().items(dataset, version)]
    except DeliveryError as error:
        raise _reported(error, name) from None
    if not rows:
        raise InputError("the dataset has no active items", "add some in Langfuse", name)
    data = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
    file = kept_dataset("datasets", re.sub(r"[^A-Za-z0-9._-]+", "-", dataset), data)
    at = version.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{LANGFUSE}{dataset}@{at}", file


def _dated(name: str) -> tuple[str, datetime]:
    """Split ``NAME@TIME``; without a time, it is now."""
    dataset, at, text = name.rpartition("@")
    try:
        version = datetime.fromisoformat(text) if at else None
    except ValueError:
        version = None
    if version is None:
        now = datetime.now(UTC)
        return name, now.replace(microsecond=now.microsecond // 1000 * 1000)
    return dataset, version if version.tzinfo else version.replace(tzinfo=UTC)


def _reported(error: "DeliveryError", where: str) -> InputError | IncompleteError:
    if error.kind == "unreachable":
        return IncompleteError(f"{where}: {error}; try again")
    hint = "check the name and the version" if error.kind == "rejected" else "see above"
    return InputError(str(error), hint, where)
