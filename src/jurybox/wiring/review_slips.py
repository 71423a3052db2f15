"""Which reviews were stored, and their reviewers not shown the judges' verdict since."""

from collections import OrderedDict
from threading import Lock
from typing import Final

_MOST: Final = 100_000


class Unseen:
    """Names of reviews after which nothing was shown yet; any thread may ask.

    It is known in this process only. Another one knows of none, and then whoever has reviewed a
    sample counts as having seen the verdict: that may cost a label, but never makes one up.
    """

    def __init__(self) -> None:
        self._names: OrderedDict[str, None] = OrderedDict()
        self._lock = Lock()

    def add(self, name: str) -> None:
        """Note a review that was just stored."""
        with self._lock:
            self._names[name] = None
            while len(self._names) > _MOST:
                self._names.popitem(last=False)

    def discard(self, name: str) -> None:
        """Note that its reviewer is shown the verdict."""
        with self._lock:
            self._names.pop(name, None)

    def __contains__(self, name: str) -> bool:
        """Return whether its reviewer was shown nothing yet."""
        with self._lock:
            return name in self._names


UNSEEN: Final = Unseen()
"""One for the whole process: the name of a review is unique."""
