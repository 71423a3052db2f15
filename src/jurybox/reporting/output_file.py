"""Writes a file atomically: completely or not at all."""

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from jurybox.errors import IncompleteError, InputError


@contextlib.contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """Open a temporary file that is renamed to ``path`` when the block ends without an error.

    Until then, an existing file stays unchanged. A pipe or a device is written directly.
    """
    try:
        goal = path.resolve()
        existing = _mode(goal)
    except (OSError, ValueError, RuntimeError) as error:
        raise _unusable(path, error) from None
    if existing is not None and stat.S_ISDIR(existing):
        raise InputError("is a folder", "name a file in it", str(path))
    # A pipe or a device must not be replaced.
    replace = existing is None or stat.S_ISREG(existing)
    if replace:
        _check_links(path, goal)
    draft = goal.with_name(f".{goal.name[:40]}.{secrets.token_hex(4)}.part") if replace else goal
    try:
        file = draft.open("xb" if replace else "wb")
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from None
    try:
        with file:
            yield file
        if replace:
            if existing is not None:
                shutil.copymode(goal, draft)
            draft.replace(goal)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritten(path, error) from None
    finally:
        if replace:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path) -> Generator[Path]:
    """Create a temporary folder that is renamed to ``path`` when the block ends without error."""
    if os.path.lexists(path):
        raise InputError("already exists", "choose a new folder, or remove this one", str(path))
    draft = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}.part")
    try:
        _check_links(path, path.resolve())
        draft.mkdir()
    except (OSError, ValueError, RuntimeError) as error:
        raise _unusable(path, error) from None
    try:
        yield draft
        draft.rename(path)
    except OSError as error:
        raise _unwritten(path, error) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _check_links(path: Path, goal: Path) -> None:
    """Refuse to write through a link: a linked file, or a linked folder in the current folder."""
    here = Path.cwd()
    plain = Path(os.path.normpath(here / path)).parent
    # Links outside the current folder belong to the system, such as /tmp on macOS.
    ours = not path.is_absolute() or plain.is_relative_to(here)
    led_away = path.is_symlink() and goal.parent != path.parent.resolve()
    if led_away or (ours and goal.parent != plain):
        raise InputError("is a link to another folder", f"write to {goal} itself", str(path))


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _unusable(path: Path, error: Exception) -> InputError:
    if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        return InputError(f"the folder {path.parent} does not exist", "make it first", str(path))
    problem = f"can't be written ({_reason(error)})"
    return InputError(problem, "choose another place", str(path))


def _unwritten(path: Path, error: OSError) -> IncompleteError:
    hint = "free disk space, or choose another path"
    return IncompleteError(f"{path}: can't be written ({_reason(error)}); {hint}")


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).lower()
