"""Finding rubric documents: bundled ones by name, your own by name or path."""

import os
import sys
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from jurybox.errors import InputError
from jurybox.rubric import MAX_BYTES
from jurybox.wording import nearest, printable

STDIN = "-"
_ENDING = ".md"


class RubricFile(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was found and read; ``origin`` is what to call it in messages."""

    name: str
    origin: str
    bundled: bool
    data: bytes


class RubricFiles:
    """The bundled documents, and those of one folder of the user's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def bundled(self) -> list[str]:
        """Return the names of the bundled rubrics."""
        return sorted(_bundled())

    def own(self) -> dict[str, Path]:
        """Return the user's own rubrics by name."""
        if not self._folder.is_dir():
            return {}
        # A pipe would wait for somebody to write into it.
        paths = sorted(path for path in self._folder.glob(f"*{_ENDING}") if not path.is_fifo())
        return {shown(path.name.removesuffix(_ENDING)): path for path in paths}

    def read(self, name: str) -> RubricFile:
        """Find one document.

        ``-`` is standard input, ``x.md`` and ``a/b`` are paths, anything else is a name.

        Raises:
            InputError: there is no such document, it can't be read, or two go by that name.

        """
        if name == STDIN:
            return _read_stdin()
        if name.endswith(_ENDING) or "/" in name:
            return read_path(Path(name))
        bundled, own = _bundled(), self.own()
        if name in bundled and name in own:
            problem = f"both a bundled rubric and {shown(own[name])}"
            raise InputError(problem, "rename yours, or give its path", name)
        if name in bundled:
            data = bundled[name].read_bytes()
            return RubricFile(name=name, origin=name, bundled=True, data=data)
        if name in own:
            return read_path(own[name])
        # A file without the ending is worth finding: `jurybox rubric check draft`.
        if _is_file(name):
            return read_path(Path(name))
        mend = nearest(name, [*bundled, *own], "see `jurybox rubric list`")
        if _is_file(f"{name}{_ENDING}"):
            mend = f"did you mean `{name}{_ENDING}`?"
        raise InputError("no such rubric", mend, shown(name))


def read_path(path: Path) -> RubricFile:
    """Read a document, but no more of it than is needed to see that it is too large.

    Raises:
        InputError: it can't be read.

    """
    origin = shown(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError("no such file", "check the path", origin) from None
    except IsADirectoryError:
        raise InputError("a folder", f"name the files in it: {origin}/*.md", origin) from None
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise InputError(f"can't be read ({reason})", "check the file", origin) from None
    return RubricFile(name=shown(path.stem), origin=origin, bundled=False, data=data)


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        # Too long a name, or one with a NUL, is no file's.
        return False


def shown(path: str | os.PathLike[str]) -> str:
    """Return a name that can be printed anywhere, whatever bytes the file system holds."""
    return printable(os.fspath(path))


def _read_stdin() -> RubricFile:
    # Python has no standard input at all where it was closed.
    if sys.stdin is None:
        raise InputError("standard input is closed", "give a file or pipe a document", "<stdin>")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    return RubricFile(name=STDIN, origin="<stdin>", bundled=False, data=data)


def _bundled() -> dict[str, Traversable]:
    library = resources.files("jurybox.rubric") / "library"
    return {
        path.name.removesuffix(_ENDING): path
        for path in library.iterdir()
        if path.name.endswith(_ENDING)
    }
