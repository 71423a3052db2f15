"""A command as a model, with the prompt on standard input and the reply on standard output."""

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
# The machine is overloaded; fewer concurrent commands help.
_TOO_MUCH: Final = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}

LARGEST: Final = 16_000_000
"""The maximum output of a command, in bytes."""

_STDERR_BYTES: Final = 4096
# Seconds between two checks of a command's output size.
_LOOK_EVERY: Final = 0.1


def _write(to_process: tuple[IO[bytes], bytes]) -> None:
    stdin, given = to_process
    # A command may close the pipe without reading everything; that isn't an error.
    with contextlib.suppress(BrokenPipeError), stdin:
        stdin.write(given)


def _wait(process: "subprocess.Popen[bytes]") -> None:
    # The process isn't reaped, so that its id isn't reused before its group is killed.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def _kill_group(number: int) -> bool:
    """Kill a process group; return False if it belongs to another user."""
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
    """Runs a command for every request, without a shell, and returns its output as the reply.

    With ``stdin="text"``, the command gets the prompt, which is the messages' texts separated by
    blank lines, and its output, without a final newline, is the reply. With ``stdin="json"``, it
    gets ``{"messages": [{"role", "content"}], "generation": {...}}`` and prints ``{"text"}``,
    optionally with ``input_tokens``, ``output_tokens`` and ``latency_model_ms``.

    The command inherits this program's environment, including API keys, which it may need. It runs
    in its own session, so Ctrl-C doesn't reach it; processes that it leaves behind there are killed
    when the request ends.
    """

    def __init__(
        self,
        argv: tuple[str, ...],
        *,
        stdin: Literal["text", "json"],
        cwd: Path,
        secrets: Iterable[str] = (),
    ) -> None:
        """Set the command with its arguments; ``secrets`` are masked in its output."""
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
        stdout, elapsed_ms = await self._run(self._input(request))
        reply = _read_json(stdout) if self._json else _read_text(stdout)
        return msgspec.structs.replace(
            reply,
            # A command that gets only the prompt can't have used the parameters.
            sent=request.generation if self._json else None,
            seed_sent=self._json,
            latency_ms=elapsed_ms,
        )

    async def aclose(self) -> None:
        """Do nothing; no process runs between requests."""

    def _input(self, request: ModelRequest) -> bytes:
        try:
            if not self._json:
                return prompt_of(request).encode()
            messages = [{"role": turn.role, "content": turn.content} for turn in request.messages]
            given = {"messages": messages, "generation": request.generation}
            return msgspec.json.encode(given) + b"\n"
        except UnicodeEncodeError:
            # A lone surrogate, from a file that was read with `surrogateescape`.
            what = "the request contains half a character (a lone surrogate), which can't be sent"
            raise ModelError("refused", what, retry=False) from None

    async def _run(self, given: bytes) -> tuple[bytes, float]:
        """Return the command's output, and how many milliseconds it took.

        It runs in its own session, and all processes of the session are killed at the end.

        The output goes to files, because a leftover child process may keep a pipe open.
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
            output = self._mask(stdout.read(LARGEST + 1))
            _check_end(output, self._mask(stderr.read()), process.returncode)
            return output, elapsed * 1000

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


def _check_end(stdout: bytes, stderr: bytes, code: int) -> None:
    if len(stdout) > LARGEST:
        what = f"the command printed more than {LARGEST / _MEGABYTE:.0f} MB"
        raise ModelError("unreadable", what, retry=False)
    if code == 0:
        return
    how = f"ended with code {code}" if code > 0 else f"was ended by {_signal_name(-code)}"
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    last = quoted(lines[-1])[:_LONGEST_QUOTE] if lines else ""
    what = f"the command {how}: {last}" if last else f"the command {how}"
    raise ModelError("failed", what, retry=False)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _decoded(stdout: bytes) -> str:
    try:
        return stdout.decode()
    except UnicodeDecodeError as error:
        what = f"the command's output isn't UTF-8 (byte {error.start})"
        raise ModelError("unreadable", what, retry=False) from None


def _read_text(stdout: bytes) -> ModelReply:
    return ModelReply(text=_decoded(stdout).removesuffix("\n"))


# The maximum that a store can keep.
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
