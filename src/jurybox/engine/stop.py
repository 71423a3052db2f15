"""Ending a run before all its samples are done."""

import asyncio
from collections.abc import Callable

from jurybox.engine.transcript import Transcript


class Stop:
    """How somebody asks a run to end: soon, and then at once."""

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self._samples: dict[asyncio.Task[None], Transcript] = {}
        self.on_request: Callable[[bool], None] = lambda _at_once: None
        """Is called with whether the run has to end at once."""

    @property
    def under_way(self) -> int:
        """How many samples are under way."""
        return sum(transcript.begun for transcript in self._samples.values())

    def soon(self, reason: str) -> None:
        """Begin no further sample; finish those that are under way."""
        if not self.requested:
            self.requested = True
            self.reason = reason
            # Who only stood in the queue for a model has lost nothing.
            self._cancel(lambda transcript: not transcript.begun)
            self.on_request(False)  # noqa: FBT003 - a callback takes it by position

    def at_once(self, reason: str) -> None:
        """Leave the samples that are under way; what is finished is stored."""
        self.soon(reason)
        self._cancel(lambda _: True)
        self.on_request(True)  # noqa: FBT003 - the same

    def _cancel(self, whom: Callable[[Transcript], bool]) -> None:
        for task, transcript in self._samples.items():
            if whom(transcript):
                transcript.called_off = True
                task.cancel()

    def hold(self, task: asyncio.Task[None], transcript: Transcript) -> None:
        """Remember a sample, whose transcript says whether anybody was asked about it yet."""
        self._samples[task] = transcript

    def let_go(self, task: asyncio.Task[None]) -> None:
        """Forget the sample that a task has ended."""
        self._samples.pop(task)
