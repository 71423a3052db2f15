"""Who might still ask something: the moment in which nobody does is the one to send a batch."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


class Attendance:
    """Counts those who are busy; who only waits for a batch isn't.

    A sample counts once while nobody is asked about it, and once for each of its requests that is
    under way: so the count is 0 exactly when all that can be asked for now is waiting in a batch,
    and no clock has to guess it.
    """

    def __init__(self, on_quiet: Callable[[], None]) -> None:
        self._busy = 0
        self._on_quiet = on_quiet

    @property
    def quiet(self) -> bool:
        """Whether nothing more can come."""
        return self._busy == 0

    def enter(self, count: int = 1) -> None:
        """Note that somebody is busy."""
        self._busy += count

    def leave(self, count: int = 1) -> None:
        """Note that somebody waits, or is gone."""
        self._busy -= count
        if self._busy == 0 and count:
            self._on_quiet()

    @contextmanager
    def held(self) -> Generator[None]:
        """Be busy for the length of a block."""
        self.enter()
        try:
            yield
        finally:
            self.leave()
