"""Whose turn it is: who shares most with what was just read, but nobody waits for ever."""

from collections.abc import Sequence
from typing import Final

from jurybox.models.local.engine import Job

# So often may the first in the queue be passed over.
PATIENCE: Final = 32


def shared_with(job: Job, last: Job | None) -> int:
    """Return how many characters of the last message needn't be read again."""
    if last is None or not job.messages or len(job.messages) != len(last.messages):
        return 0
    mine, theirs = job.messages[-1], last.messages[-1]
    if job.messages[:-1] != last.messages[:-1] or mine.role != theirs.role:
        return 0
    most = 0
    for bound in sorted(set(job.shared)):
        # Both are cut at the same places up to here, and say the same.
        if bound not in last.shared or mine.content[most:bound] != theirs.content[most:bound]:
            break
        most = bound
    return most


def choose(waiting: Sequence[Job], last: Job | None, passed: int) -> int:
    """Return which of those who wait is next.

    ``passed`` is how often the first of them was passed over.
    """
    if passed >= PATIENCE:
        return 0
    return max(range(len(waiting)), key=lambda index: (shared_with(waiting[index], last), -index))
