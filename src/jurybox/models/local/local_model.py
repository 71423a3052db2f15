"""``local/NAME``: a model that runs in this process."""

import asyncio
from concurrent.futures import wait
from pathlib import Path
from typing import Final

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.models.local.answer import Completion, Stopped, Unanswerable
from jurybox.models.local.engine import Engine, LoadingFailed
from jurybox.models.local.files import ModelFile
from jurybox.models.local.runtime import runtime
from jurybox.models.local.worker import Ticket, worker_for
from jurybox.sample import Usage

# The last one means a random seed to llama.cpp.
_SEEDS: Final = 2**32 - 1
_SHOWN_DIGITS: Final = 12


class LocalModel:
    """A file of this machine; all models of this process with that file share what was loaded."""

    def __init__(self, name: str, file: ModelFile) -> None:
        """Name the file that answers; it is loaded with the first request.

        Raises:
            InputError: no runtime is installed.

        """
        self._name = name
        self._file = file
        self._runtime = runtime()
        self._tickets: set[Ticket] = set()

    @property
    def endpoint(self) -> str:
        """The name."""
        return f"local/{self._name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Wait for a turn, and answer."""
        generation = msgspec.structs.replace(
            request.generation, seed=request.generation.seed % _SEEDS
        )
        ticket = Ticket(msgspec.structs.replace(request, generation=generation))
        try:
            answer = await self._answer(ticket)
        except Exception as error:
            raise self._trouble(error) from error
        return ModelReply(
            text=answer.text,
            usage=Usage(
                input_tokens=answer.prompt_tokens,
                output_tokens=answer.completion_tokens,
                cached_tokens=answer.cached_tokens,
            ),
            sent=generation,
            # Without the folders of the name, which are private.
            model=f"{Path(self._name).name} sha256:{self._file.sha256[:_SHOWN_DIGITS]}",
            fingerprint=self._runtime,
            finish_reason=answer.finish_reason,
            latency_model_ms=ticket.elapsed_ms,
            logprobs=answer.logprobs,
        )

    async def aclose(self) -> None:
        """Stop what is in progress for this model; the file stays loaded for the next one."""
        tickets = list(self._tickets)
        for ticket in tickets:
            ticket.give_up()
        await asyncio.to_thread(wait, [ticket.answer for ticket in tickets])

    async def _answer(self, ticket: Ticket) -> Completion:
        self._tickets.add(ticket)
        ticket.answer.add_done_callback(lambda _: self._tickets.discard(ticket))
        worker_for((self._file.path, self._file.sha256), self._load).submit(ticket)
        try:
            return await asyncio.wrap_future(ticket.answer)
        finally:
            ticket.give_up()

    def _load(self) -> Engine:
        return Engine(str(self._file.path))

    def _trouble(self, error: Exception) -> ModelError:
        match error:
            case Unanswerable():
                return ModelError("refused", str(error), retry=False)
            case Stopped():
                return ModelError("refused", "the model was closed meanwhile", retry=False)
            case LoadingFailed():
                what = f"can't be loaded by {self._runtime}: {error}"
            case _:
                what = f"the runtime failed with {type(error).__name__}: {error}"
        return ModelError("refused", what, retry=False, fatal=True)
