"""Runs a model file in llama.cpp, through the package `xllamacpp`."""

import contextlib
import ctypes
import http.client
import importlib
import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.local import prompt_cache
from jurybox.models.local.files import PACKAGE, cores
from jurybox.sample import Usage

# More tokens than any rubric needs; memory grows with the context. Some models support fewer.
_CONTEXT: Final = 8192
# Tokens per step; a stop is noticed between steps.
_BATCH: Final = 128
_SILENT: Final = -1
_OK: Final = 200
_SOCKET: Final = "server.sock"
_LONGEST_SOCKET: Final = 100
_LONGEST_WAIT: Final = 600.0
_WAIT_POLICY: Final = "OMP_WAIT_POLICY"
# Tokens that any vocabulary has.
_PROBE: Final = ((1, 2, 3), (4, 5))
_FIRST: Final = {"temperature": 0.0, "top_k": 1}


NO_NUMBERS: Final = "its weights are damaged: the probabilities aren't numbers"


_REFUSED: Final = "the runtime refused the request"
CLOSED: Final = "the model was closed meanwhile"


def _refused(data: bytes, problem: str) -> prompt_cache.UnanswerableError:
    """Return the server's error on one line."""
    match msgspec.json.decode(data):
        case {"error": {"message": str(message)}} | {"message": str(message)}:
            what = " ".join(message.split())
        case _:
            what = "it doesn't say why"
    return prompt_cache.UnanswerableError(f"{problem}: {what}")


def _entry(token: Any) -> dict[str, object]:  # noqa: ANN401 - JSON
    """Return a token as OpenAI writes it."""
    others = token["top_logprobs"]
    numbers = [each["logprob"] for each in (token, *others)]
    # The server turns NaN into equal probabilities, which no working model has.
    if None in numbers or (len(others) > 1 and len({*numbers[1:]}) == 1):
        raise prompt_cache.UnanswerableError(NO_NUMBERS)
    return _probability(token) | {"top_logprobs": [_probability(each) for each in others]}


def _probability(token: Any) -> dict[str, object]:  # noqa: ANN401 - JSON
    return {"token": token["token"], "logprob": token["logprob"]}


class LoadError(Exception):
    """The runtime can't load the file."""


class _CacheMismatchError(Exception):
    """The server kept more or less of its cache than planned."""


class Engine:
    """A model file in a server inside this process, without a port; for one thread at a time."""

    def __init__(self, path: str) -> None:
        """Load the file.

        Raises:
            LoadError: it can't be loaded.

        """
        xllamacpp = _imported()
        # The folder is private, and only clients with the key are answered.
        self._folder = _private_folder()
        self._socket = str(Path(self._folder) / _SOCKET)
        self._key = secrets.token_urlsafe(32)
        try:
            with _signals_left_alone():
                parameters = _parameters(xllamacpp, path, self._socket, self._key)
                self._server: Any = xllamacpp.Server(parameters)
        except Exception as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            # The runtime's own error says only that loading failed.
            problem = "it is damaged, or of a type that the runtime doesn't support"
            raise LoadError(problem) from error
        self._cache = prompt_cache.CacheState()
        self._prompts = prompt_cache.Prompts(self._rendered, self._tokenized)
        self._keeps = True
        try:
            self._context = self._context_length()
            self._probe()
        except BaseException:
            self.close()
            raise

    def complete(self, request: ModelRequest, stopped: Callable[[], bool]) -> ModelReply:
        """Return the answer, which doesn't depend on earlier requests.

        Raises:
            UnanswerableError: the request is too long or unsupported, or ``stopped`` returned True.

        """
        shared = request.shared_ends if self._keeps else ()
        wanted = self._prompts.segments(request.messages, shared, most=self._context)
        for known in (self._cache, prompt_cache.CacheState()):
            with contextlib.suppress(_CacheMismatchError):
                return self._answer(request, known, wanted, stopped)
        raise prompt_cache.UnanswerableError("the runtime's cache doesn't behave as expected")

    def close(self) -> None:
        """Stop the server and free the memory."""
        self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answer(
        self,
        request: ModelRequest,
        known: prompt_cache.CacheState,
        wanted: prompt_cache.Segments,
        stopped: Callable[[], bool],
    ) -> ModelReply:
        # Until this succeeds, the server's cache is unknown.
        self._cache = prompt_cache.CacheState()
        steps = prompt_cache.plan(known, wanted)
        for step in steps[:-1]:
            self._run(step, {"n_predict": 0, **_FIRST}, stopped)
        answer = self._run(steps[-1], _sampling(request), stopped)
        more = (answer.usage.output_tokens or 0) > 1
        self._cache = prompt_cache.CacheState(wanted, more=more)
        usage = msgspec.structs.replace(answer.usage, cached_tokens=steps[0].start)
        return msgspec.structs.replace(answer, usage=usage)

    def _run(
        self,
        step: prompt_cache.ReadStep,
        parameters: dict[str, object],
        stopped: Callable[[], bool],
    ) -> ModelReply:
        body = {
            "prompt": step.tokens,
            "stream": True,
            "return_progress": True,
            "cache_prompt": step.start > 0,
            **parameters,
        }
        texts: list[str] = []
        tokens: list[Any] = []
        with self._asked("POST", "/v1/completions", body) as response:
            if response.status != _OK:
                raise _refused(response.read(), _REFUSED)
            for line in response:
                if stopped():
                    raise prompt_cache.UnanswerableError(CLOSED)
                if not line.startswith(b"data: {"):
                    continue
                event: Any = msgspec.json.decode(line.partition(b" ")[2])
                if not event.get("choices"):
                    raise _refused(line.partition(b" ")[2], _REFUSED)
                (choice,) = event["choices"]
                texts.append(choice["text"])
                logprobs: Any = choice.get("logprobs")
                tokens += [] if logprobs is None else logprobs.get("content", [])
                if choice.get("finish_reason") and "usage" in event and "timings" in event:
                    break
            else:
                raise prompt_cache.UnanswerableError(
                    "the runtime ended in the middle of the answer"
                )
        if event["timings"]["cache_n"] != step.start:
            raise _CacheMismatchError
        usage = event["usage"]
        # In the format of OpenAI's chat completions.
        entries = {"content": [_entry(token) for token in tokens]}
        return ModelReply(
            text="".join(texts),
            finish_reason=choice["finish_reason"],
            usage=Usage(
                input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"]
            ),
            logprobs=msgspec.json.encode(entries).decode() if "logprobs" in parameters else None,
        )

    def _probe(self) -> None:
        """Check whether the model returns log probabilities, and whether its cache can be reused.

        Some types of models can't keep only a part of their cache; they read every prompt anew.
        """
        try:
            for step in prompt_cache.plan(self._cache, _PROBE):
                self._run(step, {"n_predict": 1, **_FIRST, "logprobs": 5}, lambda: False)
        except _CacheMismatchError:
            self._keeps = False
        except prompt_cache.UnanswerableError as error:
            raise LoadError(str(error)) from error
        else:
            self._cache = prompt_cache.CacheState(_PROBE)

    def _context_length(self) -> int:
        """Return the maximum number of tokens of a request and its answer."""
        answer = self._call("GET", "/props", None, "the runtime has no settings")
        return answer["default_generation_settings"]["n_ctx"]

    def _rendered(self, messages: Sequence[dict[str, str]]) -> str:
        what = "the model's chat template fails"
        return self._call("POST", "/apply-template", {"messages": messages}, what)["prompt"]

    def _tokenized(self, piece: prompt_cache.Piece) -> tuple[int, ...]:
        body = {"content": piece.text, "parse_special": piece.marks, "add_special": piece.opens}
        return tuple(self._call("POST", "/tokenize", body, "the runtime can't read it")["tokens"])

    def _call(self, method: str, path: str, body: object, problem: str) -> Any:  # noqa: ANN401
        """Return the server's answer; raise an error with the problem if it refuses the call."""
        with self._asked(method, path, body) as response:
            data = response.read()
        if response.status != _OK:
            raise _refused(data, problem)
        return msgspec.json.decode(data)

    @contextlib.contextmanager
    def _asked(self, method: str, path: str, body: object) -> Generator[http.client.HTTPResponse]:
        """Send a request; the end of the block closes the connection, which stops the answer."""
        connection = _Connection(self._socket)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        try:
            connection.request(method, path, msgspec.json.encode(body), headers)
            yield connection.getresponse()
        finally:
            connection.close()


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_LONGEST_WAIT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_LONGEST_WAIT)
        self.sock.connect(self._path)


def _imported() -> Any:  # noqa: ANN401 - it has no types
    """Import the runtime with threads that sleep while waiting.

    The threads synchronize after every small step. With the default busy waiting, a model can be
    ten times slower if another program needs a core. The library reads the variable when it is
    loaded; a value set by the user is kept, and child processes don't inherit ours.
    """
    if _WAIT_POLICY in os.environ:
        return importlib.import_module(PACKAGE)
    os.environ[_WAIT_POLICY] = "PASSIVE"
    try:
        return importlib.import_module(PACKAGE)
    finally:
        del os.environ[_WAIT_POLICY]


@contextlib.contextmanager
def _signals_left_alone() -> Generator[None]:
    """Restore the signal handlers for Ctrl-C and SIGTERM, which llama.cpp's server replaces.

    Python's own functions work in the main thread only, and ignore handlers set by C code.
    """
    sigaction = ctypes.CDLL(None).sigaction
    before = {
        number: ctypes.create_string_buffer(1024) for number in (signal.SIGINT, signal.SIGTERM)
    }
    for number, action in before.items():
        sigaction(int(number), None, action)
    try:
        yield
    finally:
        for number, action in before.items():
            sigaction(int(number), action, None)


def _private_folder() -> str:
    folder = tempfile.mkdtemp(prefix="jurybox-")
    if len(os.fsencode(Path(folder) / _SOCKET)) < _LONGEST_SOCKET:
        return folder
    # Socket paths are limited in length, and the default temporary folder may be deeply nested.
    Path(folder).rmdir()
    return tempfile.mkdtemp(prefix="jurybox-", dir="/tmp")


def _parameters(xllamacpp: Any, path: str, socket_path: str, key: str) -> Any:  # noqa: ANN401
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.hostnames = [socket_path]
    parameters.api_keys = [key]
    parameters.cors_origins = "localhost"
    parameters.cors_credentials = False
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.n_threads_http = 1
    # Turns off keep-alive lines between events, which the binding can't parse.
    parameters.sse_ping_interval = -1
    parameters.verbosity = _SILENT
    parameters.warmup = False
    parameters.offline = True
    # One slot, so that answers don't depend on concurrent requests.
    parameters.n_parallel = 1
    parameters.cont_batching = False
    parameters.n_ctx = _CONTEXT
    parameters.n_batch = _BATCH
    parameters.n_ubatch = _BATCH
    parameters.cpuparams.n_threads = cores()
    parameters.cpuparams_batch.n_threads = cores()
    # If true, the runtime would choose the context size by the free memory, which varies.
    parameters.fit_params = False
    # Keeps the whole cache of the only slot, and no other cache.
    parameters.cache_ram_mib = 0
    parameters.n_ctx_checkpoints = 0
    parameters.swa_full = True
    return parameters


def _sampling(request: ModelRequest) -> dict[str, object]:
    generation = request.generation
    parameters: dict[str, object] = {
        "n_predict": generation.max_tokens,
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "top_k": 0 if generation.temperature > 0 else 1,
        "min_p": 0.0,
        "seed": generation.seed,
        "samplers": ["top_k", "top_p", "temperature"],
    }
    if request.schema is not None:
        parameters["json_schema"] = msgspec.Raw(request.schema.encode())
    if request.logprobs:
        parameters["logprobs"] = request.logprobs
    return parameters
