"""A model file loaded by llama.cpp, whose ready-built wheels are the package `xllamacpp`."""

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

from jurybox.judging.exchange import ModelRequest
from jurybox.models.local.answer import Answer, Completion, Unanswerable, complaint
from jurybox.models.local.chat import Piece, Prompts
from jurybox.models.local.prefix_cache import Held, Reading, Step, plan
from jurybox.models.local.runtime import PACKAGE, cores

# Longer prompts than any rubric needs; memory grows with it. A model made for less gets less.
_CONTEXT: Final = 8192
# Tokens that are read at once; a stop is noticed in between.
_BATCH: Final = 128
_SILENT: Final = -1
_OK: Final = 200
_SOCKET: Final = "server.sock"
_LONGEST_SOCKET: Final = 100
_LONGEST_WAIT: Final = 60.0
_WAIT_POLICY: Final = "OMP_WAIT_POLICY"
# Tokens that any vocabulary has.
_PROBE: Final = ((1, 2, 3), (4, 5))
_FIRST: Final = {"temperature": 0.0, "top_k": 1}


class LoadingFailed(Exception):  # noqa: N818 - it reads as what it is
    """The runtime refuses the file."""


class _Inconsistent(Exception):  # noqa: N818 - never seen outside
    """The server kept more or less of what it had read than it should have."""


class Engine:
    """One file in one server of this process, which opens no port; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        """Load the file.

        Raises:
            LoadingFailed: it can't be loaded.

        """
        xllamacpp = _imported()
        # Only this user can enter the folder, and only who knows the key is answered.
        self._folder = _private_folder()
        self._socket = str(Path(self._folder) / _SOCKET)
        self._key = secrets.token_urlsafe(32)
        try:
            with _signals_left_alone():
                parameters = _parameters(xllamacpp, path, self._socket, self._key)
                self._server: Any = xllamacpp.Server(parameters)
        except Exception as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            # Its own error says no more than that it failed.
            problem = "it is damaged, or of a kind that the runtime doesn't know"
            raise LoadingFailed(problem) from error
        self._held = Held()
        self._prompts = Prompts(self._rendered, self._tokenized)
        self._keeps = True
        try:
            self._context = self._context_length()
            self._probe()
        except BaseException:
            self.close()
            raise

    def complete(self, request: ModelRequest, stopped: Callable[[], bool]) -> Completion:
        """Answer; the same request gets the same answer, whatever was asked before.

        Raises:
            Stopped: ``stopped`` returned True in the middle.
            Unanswerable: the question is too long, or asks for what can't be done.

        """
        shared = request.shared_ends if self._keeps else ()
        wanted = self._prompts.segments(request.messages, shared, most=self._context)
        try:
            return self._answer(request, plan(self._held, wanted), stopped)
        except _Inconsistent:
            self._held = Held()
            try:
                return self._answer(request, plan(self._held, wanted), stopped)
            except _Inconsistent as error:
                raise Unanswerable("the runtime doesn't read as it should") from error

    def close(self) -> None:
        """Stop the server and free the memory."""
        self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answer(
        self, request: ModelRequest, reading: Reading, stopped: Callable[[], bool]
    ) -> Completion:
        # Until all is well, nothing is known of what the server holds.
        self._held = Held()
        for step in reading.steps[:-1]:
            self._run(step, {"n_predict": 0, **_FIRST}, stopped)
        answer = self._run(reading.steps[-1], _sampling(request), stopped)
        self._held = msgspec.structs.replace(reading.held, more=answer.written > 1)
        return answer.completion(reading.kept, with_logprobs=request.logprobs > 0)

    def _run(
        self, step: Step, parameters: dict[str, object], stopped: Callable[[], bool]
    ) -> Answer:
        answer = Answer(stopped)
        body = {
            "prompt": step.tokens,
            "stream": True,
            "return_progress": True,
            "cache_prompt": step.start > 0,
            **parameters,
        }
        self._server.handle_completions(msgspec.json.encode(body), answer.hear)
        answer.check()
        if answer.kept != step.start:
            raise _Inconsistent
        return answer

    def _probe(self) -> None:
        """Find out whether the file gives numbers, and whether what was read can be kept.

        Some kinds of models can't keep a part of it; those read every prompt as a whole.
        """
        reading = plan(Held(), _PROBE)
        try:
            for step in reading.steps:
                answer = self._run(step, {"n_predict": 1, **_FIRST, "logprobs": 5}, lambda: False)
                answer.completion(0, with_logprobs=True)
        except _Inconsistent:
            self._keeps = False
        except Unanswerable as error:
            raise LoadingFailed(str(error)) from error
        else:
            self._held = reading.held

    def _context_length(self) -> int:
        """Return how many tokens a question and its answer may have together."""
        _, answer = self._asked("GET", "/props")
        return answer["default_generation_settings"]["n_ctx"]

    def _rendered(self, messages: Sequence[dict[str, str]]) -> str:
        status, answer = self._asked("POST", "/apply-template", {"messages": messages})
        if status != _OK:
            raise Unanswerable(f"the model's chat template fails: {complaint(answer)}")
        return answer["prompt"]

    def _tokenized(self, piece: Piece) -> tuple[int, ...]:
        body = {"content": piece.text, "parse_special": piece.marks, "add_special": piece.opens}
        status, answer = self._asked("POST", "/tokenize", body)
        if status != _OK:
            raise Unanswerable(f"the runtime can't read the prompt: {complaint(answer)}")
        return tuple(answer["tokens"])

    def _asked(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Ask what the server answers over its socket only; return the status and the answer."""
        connection = _Connection(self._socket)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        try:
            connection.request(method, path, msgspec.json.encode(body), headers)
            response = connection.getresponse()
            return response.status, msgspec.json.decode(response.read())
        finally:
            connection.close()


class _Connection(http.client.HTTPConnection):
    """A connection to a socket that is a file."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_LONGEST_WAIT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_LONGEST_WAIT)
        self.sock.connect(self._path)


def _imported() -> Any:  # noqa: ANN401 - it has no types
    """Import the runtime so that its threads wait asleep.

    They meet after every small step. Where they wait awake, as is usual, and another program needs
    a core, a model can write ten times as slowly. The library reads the variable when it is loaded;
    the user's own choice stands, and child processes get none of it.
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
    """Put the signal handlers back: llama.cpp's server takes Ctrl-C and SIGTERM for itself.

    Python's own functions for that work in the main thread only, and know nothing of handlers that
    were set behind their back.
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
    # The system cuts off the names of sockets, and the usual place may be far down.
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
    # Between events that never come here; the binding can't read it.
    parameters.sse_ping_interval = -1
    parameters.verbosity = _SILENT
    parameters.warmup = False
    parameters.offline = True
    # One after the other, in one place: answers must not depend on what else is asked.
    parameters.n_parallel = 1
    parameters.cont_batching = False
    parameters.n_ctx = _CONTEXT
    parameters.n_batch = _BATCH
    parameters.n_ubatch = _BATCH
    parameters.cpuparams.n_threads = cores()
    parameters.cpuparams_batch.n_threads = cores()
    # Guesses the context from the memory that is free, which isn't the same every day.
    parameters.fit_params = False
    # Nothing is kept but what stands in the one place, and all of that.
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
