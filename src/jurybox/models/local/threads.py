"""How a runtime's threads share the machine with everything else that runs on it."""

import contextlib
import importlib
import os
from typing import Final

from jurybox.models.local.engine import Foreign

_POLICY: Final = "OMP_WAIT_POLICY"


def import_runtime(module: str) -> Foreign:
    """Import the module of a runtime so that its threads wait asleep.

    They meet after every small step. Where they wait awake, as is usual, and another program needs
    a core, each step takes as long as the system lets that one run: with all cores busy a model
    can write ten times as slowly as with threads that sleep. The library reads the variable when
    it is loaded, and the user's own choice stands.
    """
    with contextlib.ExitStack() as stack:
        if _POLICY not in os.environ:
            os.environ[_POLICY] = "PASSIVE"
            # Nobody else's business: what is started later may have been built otherwise.
            stack.callback(os.environ.pop, _POLICY, None)
        return importlib.import_module(module)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
