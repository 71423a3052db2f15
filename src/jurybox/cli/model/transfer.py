"""How far a pull is, on standard error: a bar for people, plain lines for logs."""

import contextlib
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

from jurybox.cli.output import console, say
from jurybox.cli.progress import on_screen, shown_time
from jurybox.models.local.catalogue import shown_bytes
from jurybox.models.local.source import Note, Progress, Report

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_BETWEEN_LINES: Final = 10.0
_WIDTH: Final = 20


@contextlib.contextmanager
def displayed(clock: Callable[[], float] = time.monotonic) -> Generator[Report]:
    """Give what shows the progress of a pull where there is somebody to see it."""
    if not on_screen():
        yield _Lines(clock).show
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(bar_width=_WIDTH),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=console(stderr=True), transient=True) as bar:
        yield _Drawn(bar).show


class _Drawn:
    """A bar that is drawn again and again; lines stand above it."""

    def __init__(self, bar: "Bar") -> None:
        self._bar = bar
        # It has no total, and so no speed or end, before there is something to tell.
        self._task = bar.add_task("", total=None)
        self._source: str | None = None

    def show(self, told: Progress | Note) -> None:
        if isinstance(told, Note):
            say(told.text)
            return
        if told.source != self._source:
            # What another source, or another pull, has brought says nothing about the speed now.
            self._bar.remove_task(self._task)
            self._task = self._bar.add_task(told.source, total=told.total, completed=told.done)
            self._source = told.source
        self._bar.update(self._task, completed=told.done)


class _Lines:
    """A line now and then."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told = clock()
        self._first: tuple[Progress, float] | None = None

    def show(self, told: Progress | Note) -> None:
        if isinstance(told, Note):
            say(told.text)
            return
        now = self._clock()
        if self._first is None or self._first[0].source != told.source:
            self._first = (told, now)
        if now - self._told >= _BETWEEN_LINES and told.done < told.total:
            self._told = now
            say(line_of(told, since=self._first[0].done, elapsed=now - self._first[1]))


def line_of(progress: Progress, *, since: int, elapsed: float) -> str:
    """Return how far a pull is, as a line; ``since`` and ``elapsed`` tell how fast it is."""
    parts = [f"{shown_bytes(progress.done)} of {shown_bytes(progress.total)}"]
    rate = (progress.done - since) / elapsed if elapsed > 0 else 0.0
    if rate > 0:
        left = shown_time((progress.total - progress.done) / rate)
        parts += [f"{shown_bytes(round(rate))}/s", f"{left} left"]
    return ", ".join([*parts, f"from {progress.source}"])
