"""A model that answers late: when it submits, and what it takes from earlier batches."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from jurybox.engine.ports import ModelError
from jurybox.engine.records import BatchRow, ExchangeRow
from jurybox.errors import IncompleteError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.batched import BatchedModel, BatchLog, Pace
from jurybox.models.chat_model import Accepted, BatchStatus, ChatModel
from jurybox.models.http import HttpAnswer, HttpCall
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn

QUICK = Pace(idle=0.02, first=0.0)


class Table:
    """The part of a store that batches need."""

    def __init__(self) -> None:
        self.rows: dict[int, BatchRow] = {}
        self.notes: list[str] = []
        self.full = False

    def add_batch(self, row: BatchRow) -> None:
        if self.full:
            raise IncompleteError("the disk is full")
        assert row.number not in self.rows
        self.rows[row.number] = row

    def update_batch(self, row: BatchRow) -> None:
        self.rows[row.number] = row

    def batches(self, run_id: str) -> Sequence[BatchRow]:
        del run_id
        return list(self.rows.values())

    def exchanges(self, run_id: str) -> Sequence[ExchangeRow]:
        row = {"run_id": run_id, "number": 0, "position": 0, "role": "judge", "key": ""}
        return [
            ExchangeRow(**row, frame="", material="", outcome="", notes=notes)  # type: ignore[arg-type]
            for notes in self.notes
        ]

    def store(self, reply: ModelReply) -> None:
        """Store a reply, as far as it says where it came from."""
        self.notes.append(json.dumps({"latency_ms": None, "reference": reply.reference}))


def line_of(name: str, payload: Mapping[str, object]) -> bytes:
    return json.dumps({"custom_id": name, **payload}).encode()


class Provider:
    """Answers each request with its words and a number that is never given twice."""

    address = "https://provider.example"

    def __init__(self) -> None:
        self.batches: list[list[Mapping[str, str]]] = []
        self.fetched: list[str] = []

    async def submit(self, lines: Sequence[bytes]) -> str:
        self.batches.append([json.loads(line) for line in lines])
        return f"b{len(self.batches) - 1}"

    async def send(self, call: HttpCall) -> None:
        self.fetched.append(call.path)
        assert call.into is not None
        for number, asked in enumerate(self.batches[int(call.path[1:])]):
            text = f"{asked['words']} {call.path}.{number}"
            call.into.write(line_of(asked["custom_id"], {"text": text}) + b"\n")

    def mask(self, line: bytes) -> bytes:
        return line

    async def aclose(self) -> None:
        pass


class Chat(ChatModel):
    """A model of that provider."""

    path = "/"
    client: Provider  # type: ignore[assignment]

    def payload(self, request: ModelRequest, accepted: Accepted) -> dict[str, object]:
        del accepted
        words = request.messages[0].content
        if words == "unsendable":
            raise ModelError("refused", "it can't be sent", retry=False)
        return {"words": words}

    def reply(self, answer: HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        del payload
        return ModelReply(text=json.loads(answer.body)["text"])

    def batch_line(self, name: str, payload: Mapping[str, object]) -> bytes:
        return line_of(name, payload)

    async def submit_batch(self, lines: Sequence[bytes], mark: str) -> str:
        del mark
        return await self.client.submit(lines)

    async def find_batches(self, *_: object) -> Sequence[str]:
        return []

    async def batch_status(self, batch_id: str) -> BatchStatus:
        return BatchStatus(state="ended", paths=(batch_id,))

    def batch_answer(self, line: bytes) -> bytes:
        return line


def batched(provider: Provider, table: Table, pace: Pace = QUICK) -> BatchedModel:
    log = BatchLog(table, "run", lambda: "2026-01-01T00:00:00Z")  # type: ignore[arg-type]
    return BatchedModel("m", Chat("m", provider), log, pace)  # type: ignore[arg-type]


def request(words: str) -> ModelRequest:
    return ModelRequest(
        model="m", generation=Generation(), messages=(Turn(role="user", content=words),)
    )


async def ask(model: BatchedModel, *words: str) -> list[ModelReply]:
    asked = (model.complete(request(each)) for each in words)
    return await asyncio.wait_for(asyncio.gather(*asked), 20)


def run(main: Callable[[Provider, Table], Awaitable[None]]) -> None:
    async def started() -> None:
        await main(Provider(), Table())

    asyncio.run(started())


@pytest.mark.parametrize("pace", [Pace(requests=2, first=0.0), Pace(bytes=70, first=0.0)])
def test_a_full_batch_is_submitted_without_waiting(pace: Pace) -> None:
    async def main(provider: Provider, table: Table) -> None:
        model = batched(provider, table, pace)
        asked = asyncio.create_task(ask(model, "a", "b", "c"))
        await asyncio.sleep(0.1)
        assert [len(each) for each in provider.batches] == [2]
        asked.cancel()
        await model.aclose()

    run(main)


def test_a_request_that_cant_be_sent_fails_alone() -> None:
    async def main(provider: Provider, table: Table) -> None:
        model = batched(provider, table)
        asked = (model.complete(request(each)) for each in ("a", "unsendable"))
        good, bad = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(good, ModelReply)
        assert str(bad) == "it can't be sent"

    run(main)


def test_a_request_that_was_cancelled_is_not_submitted() -> None:
    async def main(provider: Provider, table: Table) -> None:
        model = batched(provider, table)
        dropped = asyncio.create_task(model.complete(request("a")))
        await asyncio.sleep(0)
        kept = asyncio.create_task(model.complete(request("b")))
        await asyncio.sleep(0)
        dropped.cancel()
        await kept
        assert [each["words"] for batch in provider.batches for each in batch] == ["b"]

    run(main)


def test_a_batch_whose_answers_are_all_stored_is_not_fetched_again() -> None:
    async def main(provider: Provider, table: Table) -> None:
        for reply in await ask(batched(provider, table), "a", "b"):
            table.store(reply)
        await ask(batched(provider, table), "c")
        assert provider.fetched == ["b0", "b1"]
        assert table.rows[0].state == "read"

    run(main)


def test_nothing_is_submitted_that_the_store_doesnt_know() -> None:
    async def main(provider: Provider, table: Table) -> None:
        table.full = True
        model = batched(provider, table)
        with pytest.raises(ModelError, match="the disk is full") as caught:
            await model.complete(request("a"))
        assert caught.value.fatal
        assert provider.batches == []
        await model.aclose()

    run(main)
