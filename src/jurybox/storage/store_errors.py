"""The error messages of a store; each database maps its own error codes to them."""

from typing import Final, Literal

import msgspec

from jurybox.errors import IncompleteError, InputError, JuryboxError

TroubleKind = Literal[
    "full",
    "locked",
    "damaged",
    "read-only",
    "unopenable",
    "unreachable",
    "refused",
    "input-output",
    "stored already",
    "no run",
    "unstorable",
    "other",
]


_GO_ON: Final = "then continue with `jurybox resume`"
_WORDS: Final[dict[TroubleKind, tuple[str, str]]] = {
    "full": ("the disk is full", f"make room, {_GO_ON}"),
    "locked": (
        "it has been locked by another process",
        f"let that one finish, or end it, {_GO_ON}",
    ),
    "damaged": ("it is damaged", "restore it from a copy, or name another one with --store"),
    "read-only": ("it can't be written", "make the file and its folder writable"),
    "unopenable": ("it can't be opened", "check the path, and that you may write in its folder"),
    "unreachable": (
        "it can't be reached",
        f"check the address, the password and the server, {_GO_ON}",
    ),
    "refused": ("the server refuses it", "check the rights of the user on the database"),
    "input-output": (
        "it can't be read or written",
        f"check the disk and the room on it, {_GO_ON}",
    ),
    "stored already": (
        "the sample, exchange or run is stored already, as if two processes worked on one run",
        f"let the other one finish, {_GO_ON}",
    ),
    "no run": ("the run isn't in it", "restore it from a copy, or run the suite again"),
    "unstorable": (
        "a text has a character that can't be stored, NUL or half of a surrogate pair",
        "take it out of the data",
    ),
    "other": ("it failed", f"fix that, {_GO_ON}"),
}


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of an error, and the database's own message."""

    kind: TroubleKind
    said: str = ""


class StoreUnreachableError(IncompleteError):
    """The server can't be reached now; whether it did what it was asked last isn't known."""


def error_of(trouble: Trouble, store: str, patience: float) -> JuryboxError:
    """Return the error for a person: what is the matter, and how to fix it."""
    where = f"store {store}"
    problem, hint = _WORDS[trouble.kind]
    if trouble.kind == "unstorable":
        return InputError(problem, hint, where)
    if trouble.kind == "locked":
        problem = f"{problem} for more than {patience:g} s"
    said = f" ({trouble.said})" if trouble.said else ""
    kind = StoreUnreachableError if trouble.kind == "unreachable" else IncompleteError
    return kind(f"{where}: {problem}{said}; {hint}")
