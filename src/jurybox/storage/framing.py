"""What many requests share, stored once.

All requests of a run begin with the same rubric and end with the same instructions; only what is
between, a sample's own, differs. A frame is such a beginning and end. An exchange is stored with
the name of its frame and with the rest of its request; whoever reads it gets the request whole.

Frames are learnt from the requests as they come. Votes of one jury differ near the beginning of
their requests, so there are several frames in a run, and each is found by comparing requests of
different samples.
"""

import hashlib
from collections import deque
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from threading import Lock
from typing import Final, NamedTuple

from jurybox.running.hashing import shared_beginning
from jurybox.running.records import ExchangeRow

_RUN: Final = attrgetter("run_id")
_SHORTEST: Final = 1024
"""A frame that has less than that in it saves too little."""
_LONGEST: Final = 1_000_000
"""What is longer isn't kept in memory to be compared with others."""
_MOST_RUNS: Final = 8
_MOST_FRAMES: Final = 16
_MOST_CANDIDATES: Final = 16
_MOST_LEARNT: Final = 64
_PATIENCE: Final = 64
"""After so many requests in a row that share nothing with others, none is compared any more."""


class Frame(NamedTuple):
    """The beginning and the end that requests share; ``sha256`` is its name."""

    sha256: str
    head: str
    tail: str

    @property
    def size(self) -> int:
        """How many characters are in it."""
        return len(self.head) + len(self.tail)

    def holds(self, text: str) -> bool:
        """Tell whether a text has both."""
        head, tail = self.head, self.tail
        # In that order: requests of other votes differ soon after their beginning.
        return text.startswith(head) and text.endswith(tail) and len(text) >= len(head) + len(tail)


class Framed(NamedTuple):
    """A request as it is stored: its frame, and what is within; all of it where there is none."""

    frame: Frame | None
    rest: str


class _Candidate(NamedTuple):
    number: int
    text: str


class Framer:
    """Takes requests of any run apart; any thread may call it.

    Each run has frames of its own, so that what happens to one of them spoils no other run.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: dict[str, _RunFramer] = {}

    def __call__(self, exchanges: Sequence[ExchangeRow]) -> list[Framed]:
        """Return the requests of exchanges as they are stored."""
        with self._lock:
            return [
                framed
                for run_id, rows in groupby(exchanges, _RUN)
                for framed in map(self._of(run_id).framed, rows)
            ]

    def _of(self, run_id: str) -> "_RunFramer":
        known = self._runs.pop(run_id, None) or _RunFramer(run_id)
        # The one that was asked for last is forgotten last.
        self._runs[run_id] = known
        if len(self._runs) > _MOST_RUNS:
            del self._runs[next(iter(self._runs))]
        return known


class _RunFramer:
    """Takes the requests of one run apart."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._frames: list[Frame] = []
        self._candidates: deque[_Candidate] = deque(maxlen=_MOST_CANDIDATES)
        self._patience = _PATIENCE
        self._learnt = 0

    def framed(self, row: ExchangeRow) -> Framed:
        """Return a request as it is stored."""
        text = row.request
        if len(text) < _SHORTEST:
            return Framed(None, text)
        # The largest that fits: they are kept in that order.
        for frame in self._frames:
            if frame.holds(text):
                break
        else:
            frame = self._learn(row)
            if frame is None:
                return Framed(None, text)
        return Framed(frame, text[len(frame.head) : len(text) - len(frame.tail)])

    def _learn(self, row: ExchangeRow) -> Frame | None:
        if not self._patience or self._learnt == _MOST_LEARNT or len(row.request) > _LONGEST:
            return None
        frame = self._trimmed(row.request) or self._shared_with_others(row)
        if frame is None:
            self._patience -= 1
            self._candidates.append(_Candidate(row.number, row.request))
            return None
        self._patience = _PATIENCE
        self._learnt += 1
        self._frames = sorted((frame, *self._frames), key=lambda each: -each.size)[:_MOST_FRAMES]
        return frame

    def _trimmed(self, text: str) -> Frame | None:
        """Take out of a frame what only the first samples had in common."""
        for index, known in enumerate(self._frames):
            shared = self._frame(
                text[: shared_beginning(known.head, text)], _shared_end(known.tail, text)
            )
            # Where much is missing, it is of another kind of requests.
            if shared.size >= max(_SHORTEST, known.size * 3 // 4) and shared.holds(text):
                del self._frames[index]
                return shared
        return None

    def _shared_with_others(self, row: ExchangeRow) -> Frame | None:
        """Find what it has most of in common with a request about another sample."""
        best = None
        for other in self._candidates:
            if other.number == row.number:
                continue
            head = row.request[: shared_beginning(other.text, row.request)]
            room = min(len(other.text), len(row.request)) - len(head)
            tail = _shared_end(other.text[len(other.text) - room :], row.request)
            if len(head) + len(tail) >= (_SHORTEST if best is None else best.size + 1):
                best = self._frame(head, tail)
        return best

    def _frame(self, head: str, tail: str) -> Frame:
        text = f"{self._run_id}\n{len(head)}:{head}{tail}"
        data = text.encode("utf-8", "surrogatepass")
        return Frame(hashlib.sha256(data).hexdigest(), head, tail)


def _shared_end(one: str, other: str) -> str:
    """Return what two texts end with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return one[len(one) - low :]
