"""The engine over `xllamacpp`, whose wheels bring llama.cpp ready built."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from jurybox.models.local.chat import Piece, Prompts
from jurybox.models.local.engine import (
    UNKNOWN_FILE,
    Completion,
    Foreign,
    Job,
    LoadingFailed,
    Options,
    Unanswerable,
)
from jurybox.models.local.reading import Held, Reading, Step, plan
from jurybox.models.local.server_answer import Answer, complaint
from jurybox.models.local.server_socket import ServerSocket
from jurybox.models.local.signals import signals_left_alone
from jurybox.models.local.threads import import_runtime

NAME: Final = "xllamacpp"

_SILENT: Final = -1
_OK: Final = 200
_SOCKET: Final = "server.sock"
_LONGEST_SOCKET: Final = 100
# Tokens that any vocabulary has.
_PROBE: Final = ((1, 2, 3), (4, 5))


class _Inconsistent(Exception):  # noqa: N818 - never seen outside
    """The server kept more or less of what it had read than it should have."""


class XllamacppEngine:
    """One file in one server of this process, which has one place and opens no port."""

    def __init__(self, path: str, options: Options) -> None:
        """Load the file.

        Raises:
            LoadingFailed: it can't be loaded.

        """
        xllamacpp: Foreign = import_runtime("xllamacpp")
        self._version = f"{NAME} {xllamacpp.__version__}"
        self._options = options
        # Only this user can enter the folder, and only who knows the key is answered.
        self._folder = _private_folder()
        key = secrets.token_urlsafe(32)
        socket_path = str(Path(self._folder) / _SOCKET)
        self._socket = ServerSocket(socket_path, key)
        try:
            with signals_left_alone():
                self._server: Foreign = xllamacpp.Server(
                    _parameters(xllamacpp, path, options, (socket_path, key))
                )
        except Exception as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise LoadingFailed(UNKNOWN_FILE) from error
        self._held = Held()
        self._prompts = Prompts(self._rendered, self._tokenized)
        self._keeps = True
        try:
            self._probe()
        except LoadingFailed:
            self.close()
            raise

    @property
    def version(self) -> str:
        """The runtime and its version."""
        return self._version

    def complete(self, job: Job, stopped: Callable[[], bool]) -> Completion:
        """Answer."""
        wanted = self._prompts.segments(job, whole=not self._keeps, most=self._options.context)
        try:
            return self._answer(job, plan(self._held, wanted), stopped)
        except _Inconsistent:
            self._held = Held()
            try:
                return self._answer(job, plan(self._held, wanted), stopped)
            except _Inconsistent as error:
                raise Unanswerable("the runtime doesn't read as it should") from error

    def close(self) -> None:
        """Stop the server."""
        self._server = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answer(self, job: Job, reading: Reading, stopped: Callable[[], bool]) -> Completion:
        # Until all is well, nothing is known of what the server holds.
        self._held = Held()
        for step in reading.steps[:-1]:
            self._run(step, {"n_predict": 0, **_FIRST}, stopped)
        answer = self._run(reading.steps[-1], _sampling(job), stopped)
        more = answer.written > 1
        self._held = msgspec.structs.replace(reading.held, more=more)
        return answer.completion(reading.kept, with_logprobs=job.logprobs > 0)

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

    def _rendered(self, messages: Sequence[dict[str, str]]) -> str:
        status, answer = self._socket.post("/apply-template", {"messages": messages})
        if status != _OK:
            raise Unanswerable(f"the model's chat template fails: {complaint(answer)}")
        return answer["prompt"]

    def _tokenized(self, piece: Piece, *, opens: bool) -> Sequence[int]:
        body = {"content": piece.text, "parse_special": piece.marks, "add_special": opens}
        status, answer = self._socket.post("/tokenize", body)
        if status != _OK:
            raise Unanswerable(f"the runtime can't read the prompt: {complaint(answer)}")
        return answer["tokens"]


def _private_folder() -> str:
    folder = tempfile.mkdtemp(prefix="jurybox-")
    if len(os.fsencode(Path(folder) / _SOCKET)) < _LONGEST_SOCKET:
        return folder
    # The system cuts off the names of sockets, and the usual place may be far down.
    Path(folder).rmdir()
    return tempfile.mkdtemp(prefix="jurybox-", dir="/tmp")


_FIRST: Final = {"temperature": 0.0, "top_k": 1}


def _parameters(xllamacpp: Foreign, path: str, options: Options, door: tuple[str, str]) -> Foreign:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.hostnames = [door[0]]
    parameters.api_keys = [door[1]]
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
    parameters.n_ctx = options.context
    parameters.n_batch = options.batch
    parameters.n_ubatch = options.batch
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    # Guesses the context from the memory that is free, which isn't the same every day.
    parameters.fit_params = False
    # Nothing is kept but what stands in the one place, and all of that.
    parameters.cache_ram_mib = 0
    parameters.n_ctx_checkpoints = 0
    parameters.swa_full = True
    return parameters


def _sampling(job: Job) -> dict[str, object]:
    generation = job.generation
    parameters: dict[str, object] = {
        "n_predict": generation.max_tokens,
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "top_k": 0 if generation.temperature > 0 else 1,
        "min_p": 0.0,
        "seed": generation.seed,
        "samplers": ["top_k", "top_p", "temperature"],
    }
    if job.schema is not None:
        parameters["json_schema"] = msgspec.Raw(job.schema.encode())
    elif job.grammar is not None:
        parameters["grammar"] = job.grammar
    if job.logprobs:
        parameters["logprobs"] = job.logprobs
    return parameters
