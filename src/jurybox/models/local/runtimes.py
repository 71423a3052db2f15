"""Which builds of llama.cpp are installed, and which one is used."""

import importlib.metadata
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from jurybox.errors import InputError
from jurybox.models.local.engine import Engine, Options
from jurybox.wording import listed, nearest

RuntimeName = Literal["llama-cpp-python", "xllamacpp"]
# The faster one first.
RUNTIMES: Final[tuple[RuntimeName, ...]] = ("llama-cpp-python", "xllamacpp")
INSTALL: Final = "install `jurybox[local]`"

Load = Callable[[str, Options], Engine]


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """A build of llama.cpp that is installed."""

    name: RuntimeName
    version: str

    def __str__(self) -> str:
        """Return both, as replies carry them."""
        return f"{self.name} {self.version}"


def installed() -> tuple[Runtime, ...]:
    """Return the runtimes that are installed, the one that is used by default first."""
    return tuple(
        Runtime(name=name, version=version)
        for name in RUNTIMES
        if (version := _version(name)) is not None
    )


def chosen(wanted: str | None = None) -> Runtime:
    """Return the runtime that is used: the one that is wanted, or else the fastest.

    Raises:
        InputError: there is none, or not that one.

    """
    found = installed()
    if wanted is None:
        if not found:
            raise InputError("no runtime for embedded models is installed", INSTALL)
        return found[0]
    for runtime in found:
        if runtime.name == wanted:
            return runtime
    where = "JURYBOX_RUNTIME"
    if wanted in RUNTIMES:
        raise InputError(f"`{wanted}` isn't installed", f"run `pip install {wanted}`", where)
    mend = nearest(wanted, RUNTIMES, f"there are {listed(RUNTIMES)}")
    raise InputError(f"there is no runtime `{wanted}`", mend, where)


def loader(runtime: Runtime) -> Load:
    """Return what loads a file."""
    match runtime.name:
        case "xllamacpp":
            from jurybox.models.local.xllamacpp_engine import XllamacppEngine

            return XllamacppEngine
        case "llama-cpp-python":
            from jurybox.models.local.llama_cpp_engine import LlamaCppEngine

            return LlamaCppEngine


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
