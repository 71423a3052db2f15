"""Hearing a process out, and leaving nothing of it behind.

Not with asyncio's own processes: until Python 3.12 they get a socket for their standard input,
which ``/dev/stdin`` can't open, and don't tell of an end before all that share the output ended.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from jurybox.engine.ports import ModelError

LARGEST: Final = 16_000_000
"""The most bytes that are listened to."""

_LONGEST_COMPLAINT: Final = 4096
# What others print after the process itself has ended belongs to it, unless they take so long.
_PATIENCE: Final = 1.0


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a process printed, the end of its complaints, its code (negative: a signal).

    ``elapsed_ms`` is from before its start to its end, or to what was printed last. ``whole`` is
    false where it printed more than `LARGEST` bytes and was ended for it.
    """

    printed: bytes
    whole: bool
    complained: bytes
    code: int
    elapsed_ms: float


async def hear_out(start: "Callable[[], subprocess.Popen[bytes]]", given: bytes) -> Heard:
    """Start a process that leads a group of its own, and return what it has to say to ``given``.

    However this ends, the whole group is killed and the process is reaped.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    process = start()
    listener = _Listener(process)
    try:
        await listener.listen(given)
    finally:
        listener.close()
        # The process, ended or not, hasn't been waited for: nobody else can have its number yet.
        if _kill_group(process.pid) or listener.ended.done():
            try:
                await listener.ended
            finally:
                # A second cancellation may not keep the dead from being buried.
                process.wait()
    return Heard(
        printed=bytes(listener.printed),
        whole=len(listener.printed) <= LARGEST,
        complained=listener.complained,
        code=process.returncode,
        elapsed_ms=(listener.last - started) * 1000,
    )


def _kill_group(number: int) -> bool:
    """Kill all that a process has left in its group; False where it belongs to another user."""
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


class _Listener:
    """Listens until the process has ended and its pipes are closed, or silent for too long."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._unconnected = [process.stdin, process.stdout, process.stderr]
        self._ears: list[asyncio.ReadTransport] = []
        self._mouth: asyncio.WriteTransport | None = None
        self._open = 2
        self._patience: asyncio.TimerHandle | None = None
        self._over: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.printed = bytearray()
        self.complained = b""
        self.last = self._loop.time()

    async def listen(self, given: bytes) -> None:
        """Say ``given``, and wait until all is heard."""
        try:
            threading.Thread(target=self._watch, daemon=True).start()
        except RuntimeError as error:
            self.ended.set_result(None)
            raise ModelError("rate-limit", str(error), retry=True) from None
        self._mouth, _ = await self._loop.connect_write_pipe(
            asyncio.BaseProtocol, self._unconnected.pop(0)
        )
        # Who doesn't listen, or not to the end, breaks the pipe; that is no fault.
        self._mouth.write(given)
        self._mouth.write_eof()
        for hear in (self._hear, self._hear_complaint):
            ear, _ = await self._loop.connect_read_pipe(
                lambda hear=hear: _Ear(hear, self._closed), self._unconnected.pop(0)
            )
            self._ears.append(ear)
        await self._over

    def close(self) -> None:
        """Let go of everything but the process."""
        self._stop()
        for pipe in self._unconnected:
            if pipe is not None:
                pipe.close()
        for ear in self._ears:
            ear.close()
        # It closes by itself when it has said everything, which may be never.
        if self._mouth is not None and self._mouth.get_write_buffer_size():
            self._mouth.abort()

    def _watch(self) -> None:
        # Without reaping it, so that its number stays its own until its group is killed.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        # The loop is closed where nobody waits any more.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._note_end)

    def _note_end(self) -> None:
        self.last = self._loop.time()
        if not self.ended.done():
            self.ended.set_result(None)
        self._consider()

    def _hear(self, data: bytes) -> None:
        self.last = self._loop.time()
        self.printed += data
        if len(self.printed) > LARGEST:
            self._stop()
        self._consider()

    def _hear_complaint(self, data: bytes) -> None:
        self.complained = (self.complained + data)[-_LONGEST_COMPLAINT:]
        self._consider()

    def _closed(self) -> None:
        self._open -= 1
        self._consider()

    def _consider(self) -> None:
        """Stop when there is nothing more to hear."""
        if self._patience is not None:
            self._patience.cancel()
        if self._over.done() or not self.ended.done():
            return
        if self._open:
            self._patience = self._loop.call_later(_PATIENCE, self._stop)
        else:
            self._stop()

    def _stop(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if not self._over.done():
            self._over.set_result(None)


class _Ear(asyncio.Protocol):
    def __init__(self, hear: Callable[[bytes], None], closed: Callable[[], None]) -> None:
        self._hear = hear
        self._closed = closed

    def data_received(self, data: bytes) -> None:
        self._hear(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - so it is called
        self._closed()
