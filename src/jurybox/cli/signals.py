"""Ctrl-C and termination signals: servers close, runs stop soon and then at once."""

import asyncio
import signal
from typing import TYPE_CHECKING, Final

from jurybox.cli.output import say
from jurybox.engine.runner import Stop

if TYPE_CHECKING:
    from jurybox.app.job import Job

_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def close_on_signals(stopped: asyncio.Event) -> None:
    """Have the first signal end the server in good order; the next one does what it always does."""
    loop = asyncio.get_running_loop()
    # Whoever started the command in the background may have had it ignore Ctrl-C.
    heard = [each for each in _END_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]

    def stop() -> None:
        stopped.set()
        for each in heard:
            loop.remove_signal_handler(each)

    for each in heard:
        loop.add_signal_handler(each, stop)


_SIGNALS: Final = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "asked to end",
    signal.SIGHUP: "the terminal was closed",
}


def stop_on_signals(job: "Job") -> None:
    """Have signals stop a job; to be called in its event loop, before it begins.

    The loop forgets about the signals when it ends, so that they do again what they always did.
    """
    loop = asyncio.get_running_loop()
    for number, reason in _SIGNALS.items():
        # Whoever started the command in the background may have had it ignore Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, _stop, job.stop, reason, job.batched)


def _stop(stop: Stop, reason: str, batched: bool = False) -> None:
    if stop.requested:
        stop.at_once(reason)
        return
    stop.soon(reason)
    if batched:
        say("waiting for batches no longer; Ctrl-C again stops at once")
        return
    count = stop.in_flight
    samples = "the sample" if count <= 1 else f"{count} samples"
    say(f"finishing {samples} under way; Ctrl-C again stops at once")
