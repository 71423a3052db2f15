"""``local/NAME``: a model that runs in this process."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from jurybox.errors import InputError
from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.models.local.engine import (
    Completion,
    Engine,
    Job,
    LoadingFailed,
    Options,
    Stopped,
    Unanswerable,
)
from jurybox.models.local.files import ModelFile
from jurybox.models.local.gguf import inspect
from jurybox.models.local.runtimes import Runtime, loader
from jurybox.models.local.threads import cores
from jurybox.models.local.worker import Done, Ticket, Worker, worker_for
from jurybox.running.ports import ModelTrouble
from jurybox.sample import Usage

# Longer prompts than any rubric needs; memory grows with it.
_LONGEST_CONTEXT: Final = 8192
# The last one means a random seed to llama.cpp.
_SEEDS: Final = 2**32 - 1
_SHOWN_DIGITS: Final = 12


class LocalModel:
    """A file of the machine; all who use it in this process share what was loaded once."""

    def __init__(self, name: str, file: ModelFile, runtime: Runtime) -> None:
        self._name = name
        self._file = file
        self._runtime = runtime
        self._tickets: dict[Ticket, Worker] = {}

    @property
    def endpoint(self) -> str:
        """The name."""
        return f"local/{self._name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Wait for a turn, and answer."""
        generation = msgspec.structs.replace(
            request.generation, seed=request.generation.seed % _SEEDS
        )
        job = Job(
            messages=request.messages,
            generation=generation,
            schema=request.schema,
            logprobs=request.logprobs,
            shared=request.shared_ends,
        )
        done = await self._done(job)
        answer = done.result
        if not isinstance(answer, Completion):
            raise self._trouble(answer) from answer
        return ModelReply(
            text=answer.text,
            usage=Usage(
                input_tokens=answer.prompt_tokens,
                output_tokens=answer.completion_tokens,
                cached_tokens=answer.cached_tokens,
            ),
            sent=generation,
            model=f"{self._short_name()} sha256:{self._file.sha256[:_SHOWN_DIGITS]}",
            fingerprint=done.version,
            finish_reason=answer.finish_reason,
            latency_model_ms=done.elapsed_ms,
            logprobs=answer.logprobs,
        )

    async def aclose(self) -> None:
        """Stop what is going on for this model; the file stays loaded for who asks next."""
        tickets = dict(self._tickets)
        for ticket, worker in tickets.items():
            worker.give_up(ticket)
        for ticket in tickets:
            await asyncio.to_thread(ticket.over.wait)

    async def _done(self, job: Job) -> Done:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Done] = loop.create_future()

        def settle(done: Done) -> None:
            if not future.done():
                future.set_result(done)

        ticket = Ticket(job, lambda done: loop.call_soon_threadsafe(settle, done))
        key = (self._file.path, self._file.sha256, self._runtime)
        worker = worker_for(key, self._load)
        self._tickets[ticket] = worker
        worker.submit(ticket)
        try:
            return await future
        except BaseException:
            worker.give_up(ticket)
            raise
        finally:
            # Who is being stopped is still to be waited for.
            self._tickets = {
                each: its for each, its in self._tickets.items() if not each.over.is_set()
            }

    def _load(self) -> Engine:
        path = self._file.path
        try:
            info = inspect(path)
        except InputError as error:
            raise LoadingFailed(str(error)) from error
        context = min(info.context_length or _LONGEST_CONTEXT, _LONGEST_CONTEXT)
        options = Options(context=context, threads=cores())
        return loader(self._runtime)(str(path), options)

    def _trouble(self, error: BaseException) -> ModelTrouble:
        match error:
            case Unanswerable():
                return ModelTrouble("refused", str(error), retry=False)
            case Stopped():
                return ModelTrouble("refused", "the model was closed meanwhile", retry=False)
            case LoadingFailed():
                what = f"can't be loaded by {self._runtime}: {error}"
            case _:
                what = f"the runtime failed with {type(error).__name__}: {error}"
        return ModelTrouble("refused", what, retry=False, everybody=True)

    def _short_name(self) -> str:
        """Return the name without the folders, which are nobody's business."""
        return Path(self._name).name
