"""The progress of a run on standard error: a bar on a terminal, lines in a log."""

import contextlib
import sys
import time
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from jurybox.cli.output import console, say
from jurybox.documents.numbers import dollars

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from jurybox.app.job import Progress

_BETWEEN_LINES: Final = 10.0
_WIDTH: Final = 20
_FAST: Final = 10


@contextlib.contextmanager
def displayed(planned: int, clock: Callable[[], float] = time.monotonic) -> Generator["_Display"]:
    """Provide a display of a run's progress; its last state stays visible."""
    display = _Display(planned, clock, drawn=on_screen())
    try:
        yield display
    finally:
        display.end()


def on_screen() -> bool:
    """Return whether standard error is a terminal that can redraw."""
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    return not console(stderr=True).is_dumb_terminal


class _Display:
    """Draws a bar; or prints a line every ten seconds, and one at the end."""

    def __init__(self, planned: int, clock: Callable[[], float], *, drawn: bool) -> None:
        self._clock = clock
        self._printed_at = clock()
        self._last: Progress | None = None
        self._bar: tuple[Bar, TaskID] | None = None
        if not drawn:
            return
        from rich import progress

        bar = progress.Progress(
            progress.BarColumn(bar_width=_WIDTH),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.description}", markup=False),
            console=console(stderr=True),
        )
        self._bar = bar, bar.add_task("samples", total=planned)
        bar.start()

    def show(self, progress: "Progress", *, ended: bool = False) -> None:
        self._last = progress
        if self._bar is not None:
            bar, task = self._bar
            text = ", ".join(_parts(progress, ended=ended))
            bar.update(task, completed=progress.done, description=text)
            return
        now = self._clock()
        due = now - self._printed_at >= _BETWEEN_LINES and progress.done < progress.planned
        if due or ended:
            self._printed_at = now
            counted = f"{progress.done} of {progress.planned} samples"
            say(", ".join((counted, *_parts(progress, ended=ended))))

    def end(self) -> None:
        if self._last is not None:
            self.show(self._last, ended=True)
        if self._bar is not None:
            self._bar[0].stop()


def _parts(progress: "Progress", *, ended: bool) -> list[str]:
    """Return what the line shows after the sample count; without a time left if the run ended."""
    # Samples finished before the run was resumed don't count toward its speed.
    fresh = progress.done - progress.before
    rate = fresh / progress.elapsed_s if progress.elapsed_s > 0 else 0.0
    parts = [f"{rate:,.0f}/s" if rate >= _FAST else f"{rate:.2f}/s"]
    left = progress.planned - progress.done
    # The time of one batch doesn't predict the next one.
    if left and rate > 0 and not ended and not progress.batches:
        parts.append(f"{timedelta(seconds=round(left / rate))} left")
    parts.append("cost unknown" if progress.dollars is None else dollars(progress.dollars))
    parts += [f"{getattr(progress, what)} {what}" for what in ("unscored", "flagged", "failed")]
    return parts if ended else [*parts, *progress.batches, *progress.outages]
