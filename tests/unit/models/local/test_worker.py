"""The thread that owns an engine."""

import threading
from collections.abc import Callable, Iterator

import pytest

from jurybox.judging.flow import ModelRequest
from jurybox.models.local.llama import Completion, RequestCancelledError
from jurybox.models.local.local_model import QueuedRequest, Worker, unload, worker_for
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn

SOON = 20.0


def ask(text: str) -> QueuedRequest:
    messages = (Turn(role="user", content=text),)
    return QueuedRequest(ModelRequest(model="local/m", messages=messages, generation=Generation()))


def result(ticket: QueuedRequest) -> Completion | BaseException:
    return ticket.answer.exception(SOON) or ticket.answer.result(SOON)


class Slow:
    """An engine that answers when it is allowed to, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun = threading.Event()
        self.allowed = threading.Event()
        self.closed = False

    def complete(self, request: ModelRequest, stopped: Callable[[], bool]) -> Completion:
        text = request.messages[-1].content
        self.asked.append(text)
        self.begun.set()
        while not self.allowed.wait(0.001):
            if stopped():
                raise RequestCancelledError
        if text == "fail":
            raise ValueError("out of order")
        return Completion(
            text=text, finish_reason="stop", prompt_tokens=1, completion_tokens=1, cached_tokens=0
        )

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def engine() -> Slow:
    return Slow()


@pytest.fixture
def worker(engine: Slow) -> Iterator[Worker]:
    worker = Worker(lambda: engine)
    yield worker
    engine.allowed.set()
    worker.close()


def submitted(worker: Worker, *texts: str) -> list[QueuedRequest]:
    tickets = [ask(text) for text in texts]
    for ticket in tickets:
        worker.submit(ticket)
    return tickets


def test_who_gives_up_in_the_queue_is_never_asked_for(worker: Worker, engine: Slow) -> None:
    first, second = submitted(worker, "first", "second")
    assert engine.begun.wait(SOON)
    second.cancel()
    engine.allowed.set()
    assert isinstance(result(first), Completion)
    assert isinstance(result(second), RequestCancelledError)
    assert engine.asked == ["first"]


def test_a_file_that_cannot_be_loaded_is_tried_again_by_who_asks_next(engine: Slow) -> None:
    engine.allowed.set()
    attempts: list[int] = []

    def load() -> Slow:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return engine

    worker = Worker(load)
    (first,) = submitted(worker, "first")
    assert isinstance(result(first), OSError)
    second, third = submitted(worker, "second", "third")
    assert isinstance(result(second), Completion)
    assert isinstance(result(third), Completion)
    assert len(attempts) == 2
    worker.close()


def test_a_process_has_one_worker_for_a_file_until_it_is_unloaded() -> None:
    engine = Slow()
    engine.allowed.set()
    key = object()
    worker = worker_for(key, lambda: engine)
    assert worker_for(key, lambda: engine) is worker
    (ticket,) = submitted(worker, "a")
    result(ticket)
    unload()
    assert engine.closed
    assert worker_for(key, lambda: engine) is not worker
    unload()
