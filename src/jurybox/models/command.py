"""A command as a model: asked on its standard input, answering on its standard output."""

import errno
import signal
import subprocess
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.models.function import prompt_of
from jurybox.models.model_errors import quoted
from jurybox.models.process import LARGEST, Heard, hear_out
from jurybox.sample import Usage

_LONGEST_COMPLAINT: Final = 200
_MEGABYTE: Final = 1_000_000
# Too much at once for this machine: fewer commands side by side will do.
_TOO_MUCH: Final = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


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
        heard = await hear_out(self._start, self._input(request))
        _check_end(heard)
        reply = _read_json(heard.printed) if self._json else _read_text(heard.printed)
        return msgspec.structs.replace(
            reply,
            # A command that sees the prompt alone can't have heeded the parameters.
            sent=request.generation if self._json else None,
            seed_sent=self._json,
            latency_ms=heard.elapsed_ms,
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


def _check_end(heard: Heard) -> None:
    if not heard.whole:
        what = f"the command printed more than {LARGEST / _MEGABYTE:.0f} MB"
        raise ModelError("unreadable", what, retry=False)
    if heard.code == 0:
        return
    how = f"ended with code {heard.code}"
    if heard.code < 0:
        how = f"was ended by {_signal_name(-heard.code)}"
    lines = heard.complained.decode("utf-8", "replace").strip().splitlines()
    last = quoted(lines[-1])[:_LONGEST_COMPLAINT] if lines else ""
    what = f"the command {how}: {last}" if last else f"the command {how}"
    raise ModelError("refused", what, retry=False)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _decoded(printed: bytes) -> str:
    try:
        return printed.decode()
    except UnicodeDecodeError as error:
        what = f"what the command printed isn't UTF-8 (byte {error.start})"
        raise ModelError("unreadable", what, retry=False) from None


def _read_text(printed: bytes) -> ModelReply:
    return ModelReply(text=_decoded(printed).removesuffix("\n"))


# As many as a store can hold.
_Tokens = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Said(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    input_tokens: _Tokens | None = None
    output_tokens: _Tokens | None = None
    latency_model_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None


def _read_json(printed: bytes) -> ModelReply:
    try:
        said = msgspec.json.decode(_decoded(printed), type=_Said)
    except (msgspec.DecodeError, RecursionError) as error:
        what = f'the command must print an object such as {{"text": "..."}}: {quoted(str(error))}'
        raise ModelError("unreadable", what, retry=False) from None
    usage = Usage(input_tokens=said.input_tokens, output_tokens=said.output_tokens)
    return ModelReply(text=said.text, usage=usage, latency_model_ms=said.latency_model_ms)
