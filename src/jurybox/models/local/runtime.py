"""What runs embedded models: llama.cpp, in the package `xllamacpp` of the extra `local`."""

import importlib.metadata
import os
from typing import Final

from jurybox.errors import InputError

PACKAGE: Final = "xllamacpp"


def installed_runtime() -> str | None:
    """Return the runtime and its version; None where it isn't installed."""
    try:
        return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def runtime() -> str:
    """Return the runtime and its version.

    Raises:
        InputError: it isn't installed.

    """
    found = installed_runtime()
    if found is None:
        problem = "no runtime for embedded models is installed"
        raise InputError(problem, "install `jurybox[local]`")
    return found


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
