"""``replay/FILE``: returns recorded replies without calling a model.

A file has one JSON object per line: ``{"request", "reply"}``, or ``"failure"`` instead of a reply.
If the same request was made several times, the file has a line for each, and they are replayed in
the order of the lines.
"""

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.engine.records import ENCODER
from jurybox.errors import InputError
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome


class Exchange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a recording: a request with its reply or its failure."""

    request: ModelRequest
    reply: ModelReply | None = None
    failure: Failure | None = None


def request_key(request: ModelRequest) -> str:
    """Return the SHA-256 of everything that identifies a request."""
    # The request is the same, no matter which parts of it other requests share.
    alone = msgspec.structs.replace(request, frame=None, shared=())
    return hashlib.sha256(ENCODER.encode(alone)).hexdigest()


class Recorder:
    """Writes every exchange to a file, so that it can be replayed.

    Lines are appended, and written immediately.
    """

    def __init__(self, file: str | PathLike[str]) -> None:
        try:
            self._file = Path(file).open("ab", buffering=0)  # noqa: SIM115 - it is closed later
        except OSError as error:
            raise InputError(
                f"can't be written ({error.strerror})", "check the path", str(file)
            ) from None

    def __call__(self, request: ModelRequest, outcome: Outcome) -> None:
        """Write one line."""
        reply, failure = (None, outcome) if isinstance(outcome, Failure) else (outcome, None)
        whole = msgspec.structs.replace(request, frame=None)
        exchange = Exchange(request=whole, reply=reply, failure=failure)
        self._file.write(ENCODER.encode(exchange) + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ReplayModel:
    """Answers from a file.

    A request is looked up with its model's name, then without the name, because a file replayed as
    ``replay/FILE`` was recorded under a different name. If several models answered the request, it
    is refused.
    """

    def __init__(self, file: str | PathLike[str]) -> None:
        """Read the whole file."""
        self._file = str(file)
        self._exact: defaultdict[str, deque[Exchange]] = defaultdict(deque)
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        for exchange in _read(file):
            key = request_key(exchange.request)
            self._exact[key].append(exchange)
            self._keys[_nameless(exchange.request)].add(key)

    @property
    def endpoint(self) -> str:
        """The name."""
        return f"replay/{self._file}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the next recorded reply to this request."""
        key = request_key(request)
        if key not in self._exact:
            key = self._under_another_name(request)
        if not self._exact[key]:
            raise self._model_error("was sent more times than it was recorded", request)
        exchange = self._exact[key].popleft()
        if exchange.failure is not None:
            failed = exchange.failure
            raise ModelError(failed.kind, failed.message, retry=False, fatal=failed.fatal)
        return exchange.reply or ModelReply(text="")

    async def aclose(self) -> None:
        """Do nothing; the file is already closed."""

    def _under_another_name(self, request: ModelRequest) -> str:
        keys = self._keys.get(_nameless(request), set())
        if not keys:
            raise self._model_error("isn't in the file", request)
        if len(keys) > 1:
            raise self._model_error("was recorded from several models", request)
        return next(iter(keys))

    def _model_error(self, what: str, request: ModelRequest) -> ModelError:
        last = request.messages[-1].content if request.messages else ""
        begin = " ".join(last.split())[:60]
        message = f"request {request_key(request)[:12]} (vote {request.vote}, `{begin}`) {what}"
        return ModelError("refused", f"{message}; record it again", retry=False)


def open_recording(name: str, folder: str, _models: object) -> ReplayModel:
    """Return the model that replays a file; relative paths start at ``folder``."""
    return ReplayModel(Path(folder) / name)


def _nameless(request: ModelRequest) -> str:
    return request_key(msgspec.structs.replace(request, model=""))


def _read(file: str | PathLike[str]) -> Iterator[Exchange]:
    try:
        lines = Path(file).read_bytes().splitlines()
    except OSError as error:
        problem = f"can't be read ({error.strerror})"
        raise InputError(problem, "check the path", str(file)) from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _exchange(line, f"{file}:{number}")


def _exchange(line: bytes, where: str) -> Exchange:
    hint = "record it again"
    try:
        exchange = msgspec.json.decode(line, type=Exchange)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"that isn't a recorded exchange ({error})", hint, where) from None
    if (exchange.reply is None) == (exchange.failure is None):
        raise InputError("an exchange has either a reply or a failure", hint, where)
    return exchange
