"""Ctrl-C and its like, for commands that serve until they are told to stop."""

import asyncio
import signal
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def close_on_signals(stopped: asyncio.Event) -> None:
    """Have the first signal end the server in good order; the next one does what it always does."""
    loop = asyncio.get_running_loop()
    # Whoever started the command in the background may have had it ignore Ctrl-C.
    heard = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]

    def stop() -> None:
        stopped.set()
        for each in heard:
            loop.remove_signal_handler(each)

    for each in heard:
        loop.add_signal_handler(each, stop)
