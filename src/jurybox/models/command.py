"""A command as a model: the prompt on its standard input, the reply on its standard output."""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Annotated, Final, Literal

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.function import in_a_thread, prompt_of
from jurybox.models.model_errors import SecretMask, quoted
from jurybox.sample import Usage

_LONGEST_QUOTE: Final = 200
_MEGABYTE: Final = 1_000_000
# Too much at once for this machine: fewer commands side by side will do.
_TOO_MUCH: Final = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}

LARGEST: Final = 16_000_000
"""The most bytes that a command may print."""

_STDERR_BYTES: Final = 4096
# Seconds between two looks at how much a command has printed.
_LOOK_EVERY: Final = 0.1


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a process printed, the end of its standard error, its code (negative: a signal)."""

    stdout: bytes
    stderr: bytes
    code: int
    elapsed_ms: float


def _write(to_process: tuple[IO[bytes], bytes]) -> None:
    stdin, given = to_process
    # A command that doesn't read to the end breaks the pipe; that is no error.
    with contextlib.suppress(BrokenPipeError), stdin:
        stdin.write(given)


def _wait(process: "subprocess.Popen[bytes]") -> None:
    # Without reaping it, so that its number stays its own until its group is killed.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def _kill_group(number: int) -> bool:
    """Kill the group of a process; False where it belongs to another user."""
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


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

    def __init__(
        self,
        argv: tuple[str, ...],
        *,
        stdin: Literal["text", "json"],
        cwd: Path,
        secrets: Iterable[str] = (),
    ) -> None:
        """Take a command with its arguments; ``secrets`` are hidden in what it prints."""
        if not argv or not argv[0]:
            raise InputError("the command is empty", "name a program, and then its arguments")
        self._argv = argv
        self._json = stdin == "json"
        self._cwd = cwd
        self._mask = SecretMask(secrets)

    @property
    def endpoint(self) -> str:
        """The name of the program."""
        return f"command/{Path(self._argv[0]).name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Run the command."""
        result = await self._run(self._input(request))
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

    async def _run(self, given: bytes) -> ProcessResult:
        """Run the command in a session of its own; whatever is left of that is killed at the end.

        The output goes to files: a child that the command left behind may keep a pipe open.
        """
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            started = time.monotonic()
            process = self._start(stdout, stderr)
            ended = asyncio.ensure_future(in_a_thread(_wait, process))
            written = asyncio.ensure_future(in_a_thread(_write, (process.stdin, given)))
            try:
                await asyncio.wait([ended], timeout=_LOOK_EVERY)
                while not ended.done() and _size(stdout) <= LARGEST:
                    await asyncio.wait([ended], timeout=_LOOK_EVERY)
                elapsed = time.monotonic() - started
            finally:
                if _kill_group(process.pid) or ended.done():
                    process.wait()
                ended.cancel()
                written.cancel()
                await asyncio.gather(ended, written, return_exceptions=True)
            stdout.seek(0)
            stderr.seek(max(0, _size(stderr) - _STDERR_BYTES))
            return ProcessResult(
                stdout=self._mask(stdout.read(LARGEST + 1)),
                stderr=self._mask(stderr.read()),
                code=process.returncode,
                elapsed_ms=elapsed * 1000,
            )

    def _start(self, stdout: IO[bytes], stderr: IO[bytes]) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(  # noqa: S603 - the user's own command, and no shell
                self._argv,
                cwd=self._cwd,
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
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
    if len(result.stdout) > LARGEST:
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
