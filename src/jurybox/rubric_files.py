"""Finds rubric documents: bundled ones by name, and the user's by name or path."""

import os
import sys
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from jurybox.errors import Finding, InputError, RubricError
from jurybox.rubric import MAX_BYTES, Base, Find, Reading, Rubric, check_rubric
from jurybox.text_format import nearest, printable

STDIN = "-"
_ENDING = ".md"
_HERE = Path()


class RubricFile(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was found and read; ``origin`` is its name in messages.

    ``path`` is None for a bundled document and for standard input.
    """

    name: str
    origin: str
    bundled: bool
    data: bytes
    path: Path | None = None


class RubricFiles:
    """The bundled documents, and those in the user's rubric folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def bundled(self) -> list[str]:
        """Return the names of the bundled rubrics."""
        return sorted(_bundled())

    def own(self) -> dict[str, Path]:
        """Return the user's own rubrics by name."""
        if not self._folder.is_dir():
            return {}
        # Pipes are left out, because reading one blocks until another process writes to it.
        paths = sorted(path for path in self._folder.glob(f"*{_ENDING}") if not path.is_fifo())
        return {shown(path.name.removesuffix(_ENDING)): path for path in paths}

    def read(self, name: str, folder: Path = _HERE) -> RubricFile:
        """Find and read one document.

        ``-`` is standard input, ``x.md`` and ``a/b`` are paths, which are relative to ``folder``;
        anything else is a name.
        """
        if name == STDIN:
            return _read_stdin()
        if name.endswith(_ENDING) or "/" in name:
            return read_path(folder / name)
        bundled, own = _bundled(), self.own()
        if name in bundled and name in own:
            problem = f"both a bundled rubric and {shown(own[name])}"
            raise InputError(problem, "rename yours, or give its path", name)
        if name in bundled:
            return _read_bundled(name, bundled[name])
        if name in own:
            return read_path(own[name])
        # The name may be that of a file without an extension: `jurybox rubric check draft`.
        if is_file(name):
            return read_path(Path(name))
        hint = nearest(name, [*bundled, *own], "see `jurybox rubric list`")
        if is_file(f"{name}{_ENDING}"):
            hint = f"did you mean `{name}{_ENDING}`?"
        raise InputError("no such rubric", hint, shown(name))

    def reading(self, name: str | Path) -> tuple[str, Reading]:
        """Read one document; if it can't be read, report that as a finding."""
        try:
            file = self.read(name) if isinstance(name, str) else read_path(name)
        except InputError as error:
            finding = Finding(
                line=0, column=0, code="unreadable-file", problem=error.problem, hint=error.hint
            )
            return str(name), Reading(rubric=None, findings=(finding,))
        return file.origin, self.check(file)

    def every(self) -> list[tuple[str, str | None, Reading]]:
        """Return the name, file (None if bundled) and reading of every rubric found by name."""
        bundled = [(name, None, self.reading(name)[1]) for name in self.bundled()]
        own = [(name, shown(path), self.reading(path)[1]) for name, path in self.own().items()]
        return [*bundled, *own]

    def check(self, file: RubricFile) -> Reading:
        """Read a document and its base; return the rubric or its faults."""
        return check_rubric(file.data, self._finder(file))

    def parse(self, file: RubricFile) -> Rubric:
        """Read a document and its base; raise an error if there are faults."""
        reading = self.check(file)
        if reading.rubric is None:
            raise RubricError(file.origin, reading.findings)
        return reading.rubric

    def _finder(self, file: RubricFile) -> Find:
        """Return a function that finds a document's base; paths are relative to the document."""

        def find(name: str) -> Base:
            base = self.base(file, name)
            key = f"bundled:{base.name}" if base.bundled else str((base.path or Path()).resolve())
            return Base(origin=base.origin, key=key, data=base.data, find=self._finder(base))

        return find

    def base(self, file: RubricFile, name: str) -> RubricFile:
        """Return the base document with this name or path."""
        bundled = _bundled()
        # A bundled rubric never extends a user's document.
        if file.bundled and name in bundled:
            return _read_bundled(name, bundled[name])
        if name == STDIN:
            raise InputError("standard input can't be a base", "name a rubric or a file")
        return self.read(name, Path() if file.path is None else file.path.parent)


def listed_as_data(name: str, file: str | None, reading: Reading) -> dict[str, Any]:
    """Return an entry of the rubric list as data for JSON."""
    data: dict[str, Any] = {
        "name": name,
        "file": file,
        "bundled": file is None,
        "findings": len(reading.findings),
    }
    rubric = reading.rubric
    if rubric is not None:
        data |= {
            "version": rubric.version,
            "title": rubric.title,
            "description": rubric.description,
            "scale": list(rubric.scale.ends),
            "criteria": [criterion.id for criterion in rubric.criteria],
            "sha256": rubric.sha256,
            "extends": list(reading.bases),
        }
    return data


def checked_as_data(origin: str, reading: Reading) -> dict[str, Any]:
    """Return the findings of a document as data for JSON."""
    data: dict[str, Any] = {"file": origin, "ok": reading.rubric is not None}
    if reading.rubric is not None:
        data |= {
            "id": reading.rubric.id,
            "version": reading.rubric.version,
            "sha256": reading.rubric.sha256,
            "criteria": [criterion.id for criterion in reading.rubric.criteria],
            "extends": list(reading.bases),
        }
    return data | {"findings": msgspec.to_builtins(reading.findings)}


def read_path(path: Path) -> RubricFile:
    """Read a document, up to one byte over the allowed size, so that excess is noticed."""
    origin = shown(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError("no such file", "check the path", origin) from None
    except IsADirectoryError:
        raise InputError("is a folder", f"name the files in it: {origin}/*.md", origin) from None
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise InputError(f"can't be read ({reason})", "check the file", origin) from None
    return RubricFile(name=shown(path.stem), origin=origin, bundled=False, data=data, path=path)


def is_file(name: str | Path) -> bool:
    """Return whether a file has this name; return False for a text that is no file name."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        # A name that is too long or contains a NUL isn't a file.
        return False


def shown(path: str | os.PathLike[str]) -> str:
    """Return a file name that is safe to print."""
    return printable(os.fspath(path))


def _read_stdin() -> RubricFile:
    # `sys.stdin` is None if standard input was closed.
    if sys.stdin is None:
        raise InputError("standard input is closed", "give a file or pipe a document", "<stdin>")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    return RubricFile(name=STDIN, origin="<stdin>", bundled=False, data=data)


def _read_bundled(name: str, document: Traversable) -> RubricFile:
    return RubricFile(name=name, origin=name, bundled=True, data=document.read_bytes())


def _bundled() -> dict[str, Traversable]:
    library = resources.files("jurybox.rubric") / "library"
    return {
        path.name.removesuffix(_ENDING): path
        for path in library.iterdir()
        if path.name.endswith(_ENDING)
    }
