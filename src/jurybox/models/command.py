"""A command as a model: the prompt on its standard input, the reply on its standard output.

Not with asyncio's own processes: until Python 3.12 they get a socket for their standard input,
which ``/dev/stdin`` can't open, and don't report an end before all that share the output ended.
"""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.function import prompt_of
from jurybox.models.model_errors import quoted
from jurybox.sample import Usage

_LONGEST_QUOTE: Final = 200
_MEGABYTE: Final = 1_000_000
# Too much at once for this machine: fewer commands side by side will do.
_TOO_MUCH: Final = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


LARGEST: Final = 16_000_000
"""The most bytes that a command may print."""

_STDERR_BYTES: Final = 4096
# What its children print after the process has ended counts too, for this many seconds.
_PATIENCE: Final = 1.0


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a process printed, the end of its standard error, its code (negative: a signal).

    ``elapsed_ms`` is from before its start to its end, or to the last output. ``complete`` is False
    where it printed more than `LARGEST` bytes and was killed for it.
    """

    stdout: bytes
    complete: bool
    stderr: bytes
    code: int
    elapsed_ms: float


async def run_process(
    start: "Callable[[], subprocess.Popen[bytes]]", given: bytes
) -> ProcessResult:
    """Start a process in a group of its own, write ``given`` to it, and return its output.

    However this ends, the whole group is killed and the process is reaped.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    process = start()
    output = _Output(process)
    try:
        await output.read(given)
    finally:
        output.close()
        # The process, ended or not, hasn't been reaped: its number can't have been reused yet.
        if _kill_group(process.pid) or output.ended.done():
            try:
                await output.ended
            finally:
                # A second cancellation must not keep the process from being reaped.
                process.wait()
    return ProcessResult(
        stdout=bytes(output.stdout),
        complete=len(output.stdout) <= LARGEST,
        stderr=output.stderr,
        code=process.returncode,
        elapsed_ms=(output.last - started) * 1000,
    )


def _kill_group(number: int) -> bool:
    """Kill the group of a process; False where it belongs to another user."""
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


class _Output:
    """Reads until the process has ended and its pipes are closed, or silent for too long."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._unconnected = [process.stdin, process.stdout, process.stderr]
        self._readers: list[asyncio.ReadTransport] = []
        self._stdin: asyncio.WriteTransport | None = None
        self._open = 2
        self._patience: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.stdout = bytearray()
        self.stderr = b""
        self.last = self._loop.time()

    async def read(self, given: bytes) -> None:
        """Write ``given``, and wait until all is read."""
        try:
            threading.Thread(target=self._watch, daemon=True).start()
        except RuntimeError as error:
            self.ended.set_result(None)
            raise ModelError("rate-limit", str(error), retry=True) from None
        self._stdin, _ = await self._loop.connect_write_pipe(
            asyncio.BaseProtocol, self._unconnected.pop(0)
        )
        # A command that doesn't read to the end breaks the pipe; that is no error.
        self._stdin.write(given)
        self._stdin.write_eof()
        for receive in (self._on_stdout, self._on_stderr):
            reader, _ = await self._loop.connect_read_pipe(
                lambda receive=receive: _Reader(receive, self._closed), self._unconnected.pop(0)
            )
            self._readers.append(reader)
        await self._done

    def close(self) -> None:
        """Close everything but the process."""
        self._stop()
        for pipe in self._unconnected:
            if pipe is not None:
                pipe.close()
        for reader in self._readers:
            reader.close()
        # It closes by itself when everything is written, which may be never.
        if self._stdin is not None and self._stdin.get_write_buffer_size():
            self._stdin.abort()

    def _watch(self) -> None:
        # Without reaping it, so that its number stays its own until its group is killed.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        # The loop may be closed already.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._on_exit)

    def _on_exit(self) -> None:
        self.last = self._loop.time()
        if not self.ended.done():
            self.ended.set_result(None)
        self._check_done()

    def _on_stdout(self, data: bytes) -> None:
        self.last = self._loop.time()
        self.stdout += data
        if len(self.stdout) > LARGEST:
            self._stop()
        self._check_done()

    def _on_stderr(self, data: bytes) -> None:
        self.stderr = (self.stderr + data)[-_STDERR_BYTES:]
        self._check_done()

    def _closed(self) -> None:
        self._open -= 1
        self._check_done()

    def _check_done(self) -> None:
        """Stop when there is nothing more to read."""
        if self._patience is not None:
            self._patience.cancel()
        if self._done.done() or not self.ended.done():
            return
        if self._open:
            self._patience = self._loop.call_later(_PATIENCE, self._stop)
        else:
            self._stop()

    def _stop(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if not self._done.done():
            self._done.set_result(None)


class _Reader(asyncio.Protocol):
    def __init__(self, receive: Callable[[bytes], None], closed: Callable[[], None]) -> None:
        self._receive = receive
        self._closed = closed

    def data_received(self, data: bytes) -> None:
        self._receive(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - so it is called
        self._closed()


class CommandModel:
    """Starts a command for every request, without a shell, and takes what it prints for the reply.

    With ``stdin="text"`` the command is given the prompt, which is the messages' texts with blank
    lines between them, and what it prints is the reply, but for one newline at the end. With
    ``stdin="json"`` it is given ``{"messages": [{"role", "content"}], "generation": {...}}`` and
    prints ``{"text"}``, to which it may add ``input_tokens``, ``output_tokens`` and
    ``latency_model_ms``.

    The command has the environment of this program, with any API keys in it: it may need them. It
    is in a session of its own, so Ctrl-C doesn't reach it; whatever it has started and left behind
    in that session ends when the reply is there, and when the request is given up.
    """

    def __init__(self, argv: tuple[str, ...], *, stdin: Literal["text", "json"], cwd: Path) -> None:
        if not argv or not argv[0]:
            raise InputError("the command is empty", "name a program, and then its arguments")
        self._argv = argv
        self._json = stdin == "json"
        self._cwd = cwd

    @property
    def endpoint(self) -> str:
        """The name of the program."""
        return f"command/{Path(self._argv[0]).name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Run the command."""
        result = await run_process(self._start, self._input(request))
        _check_end(result)
        reply = _read_json(result.stdout) if self._json else _read_text(result.stdout)
        return msgspec.structs.replace(
            reply,
            # A command that sees the prompt alone can't have heeded the parameters.
            sent=request.generation if self._json else None,
            seed_sent=self._json,
            latency_ms=result.elapsed_ms,
        )

    async def aclose(self) -> None:
        """Do nothing; nothing is left running between two requests."""

    def _input(self, request: ModelRequest) -> bytes:
        try:
            if not self._json:
                return prompt_of(request).encode()
            messages = [{"role": turn.role, "content": turn.content} for turn in request.messages]
            given = {"messages": messages, "generation": request.generation}
            return msgspec.json.encode(given) + b"\n"
        except UnicodeEncodeError:
            # A lone surrogate, from a file that was read with `surrogateescape`.
            what = "the request holds half a character, which can't be sent"
            raise ModelError("refused", what, retry=False) from None

    def _start(self) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(  # noqa: S603 - the user's own command, and no shell
                self._argv,
                cwd=self._cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            what = f"the command can't be started ({error.strerror}: {error.filename})"
            if error.errno in _TOO_MUCH:
                raise ModelError("rate-limit", what, retry=True) from None
            what = f"{what}; check its path, and that it may be executed"
        except ValueError as error:
            what = f"the command can't be started ({error})"
        raise ModelError("refused", what, retry=False, fatal=True)


def _check_end(result: ProcessResult) -> None:
    if not result.complete:
        what = f"the command printed more than {LARGEST / _MEGABYTE:.0f} MB"
        raise ModelError("unreadable", what, retry=False)
    if result.code == 0:
        return
    how = f"ended with code {result.code}"
    if result.code < 0:
        how = f"was ended by {_signal_name(-result.code)}"
    lines = result.stderr.decode("utf-8", "replace").strip().splitlines()
    last = quoted(lines[-1])[:_LONGEST_QUOTE] if lines else ""
    what = f"the command {how}: {last}" if last else f"the command {how}"
    raise ModelError("refused", what, retry=False)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _decoded(stdout: bytes) -> str:
    try:
        return stdout.decode()
    except UnicodeDecodeError as error:
        what = f"what the command printed isn't UTF-8 (byte {error.start})"
        raise ModelError("unreadable", what, retry=False) from None


def _read_text(stdout: bytes) -> ModelReply:
    return ModelReply(text=_decoded(stdout).removesuffix("\n"))


# As many as a store can hold.
_Tokens = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _CommandReply(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    input_tokens: _Tokens | None = None
    output_tokens: _Tokens | None = None
    latency_model_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None


def _read_json(stdout: bytes) -> ModelReply:
    try:
        reply = msgspec.json.decode(_decoded(stdout), type=_CommandReply)
    except (msgspec.DecodeError, RecursionError) as error:
        what = f'the command must print an object such as {{"text": "..."}}: {quoted(str(error))}'
        raise ModelError("unreadable", what, retry=False) from None
    usage = Usage(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
    return ModelReply(text=reply.text, usage=usage, latency_model_ms=reply.latency_model_ms)
