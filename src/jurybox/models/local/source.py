"""What every source of a model says of itself: how far it is, and why it can't go on."""

from collections.abc import Callable

import msgspec


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How many bytes of a model are there, and where they come from."""

    source: str
    done: int
    total: int


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One line about something that didn't go as it should, or takes its time."""

    text: str


Report = Callable[[Progress | Note], None]


class SourceTrouble(Exception):  # noqa: N818 - as the trouble with models is called
    """A source can't give a model; another one may."""
