"""The thread that owns an engine."""

import threading
from collections.abc import Callable, Iterator

import pytest

from jurybox.models.local.engine import Completion, Job, Stopped
from jurybox.models.local.worker import Done, Ticket, Worker, unload, worker_for
from jurybox.sample import Turn

SOON = 20.0


def job(text: str, *shared: int) -> Job:
    return Job(messages=(Turn(role="user", content=text),), shared=shared)


class Slow:
    """An engine that answers when it is allowed to, and notes what it was asked."""

    version = "slow 1"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun = threading.Event()
        self.allowed = threading.Event()
        self.closed = False

    def complete(self, job: Job, stopped: Callable[[], bool]) -> Completion:
        text = job.messages[-1].content
        self.asked.append(text)
        self.begun.set()
        while not self.allowed.wait(0.001):
            if stopped():
                raise Stopped
        if text == "fail":
            raise ValueError("out of order")
        return Completion(
            text=text, finish_reason="stop", prompt_tokens=1, completion_tokens=1, cached_tokens=0
        )

    def close(self) -> None:
        self.closed = True


class Asked(Ticket):
    """A ticket that keeps what came of it."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, self._keep)
        self.done: Done | None = None

    def _keep(self, done: Done) -> None:
        self.done = done

    def result(self) -> Completion | BaseException:
        assert self.over.wait(SOON)
        assert self.done is not None
        return self.done.result


@pytest.fixture
def engine() -> Slow:
    return Slow()


@pytest.fixture
def worker(engine: Slow) -> Iterator[Worker]:
    worker = Worker(lambda: engine)
    yield worker
    engine.allowed.set()
    worker.close()


def submitted(worker: Worker, *texts: str) -> list[Asked]:
    tickets = [Asked(job(text, 7)) for text in texts]
    for ticket in tickets:
        worker.submit(ticket)
    return tickets


def test_everybody_is_answered_with_the_time_it_took(worker: Worker, engine: Slow) -> None:
    engine.allowed.set()
    tickets = submitted(worker, "a", "b", "c")
    assert {getattr(ticket.result(), "text", None) for ticket in tickets} == {"a", "b", "c"}
    assert all(ticket.done and ticket.done.version == "slow 1" for ticket in tickets)
    assert all(ticket.done and ticket.done.elapsed_ms >= 0 for ticket in tickets)


def test_those_who_share_a_prefix_come_one_after_the_other(worker: Worker, engine: Slow) -> None:
    first = submitted(worker, "prefix.1")
    assert engine.begun.wait(SOON)
    rest = submitted(worker, "another1", "prefix.2", "another2", "prefix.3")
    engine.allowed.set()
    for ticket in (*first, *rest):
        ticket.result()
    assert engine.asked == ["prefix.1", "prefix.2", "prefix.3", "another1", "another2"]


def test_who_gives_up_in_the_queue_is_never_asked_for(worker: Worker, engine: Slow) -> None:
    first, second = submitted(worker, "first", "second")
    assert engine.begun.wait(SOON)
    worker.give_up(second)
    assert isinstance(second.result(), Stopped)
    engine.allowed.set()
    first.result()
    worker.close()
    assert engine.asked == ["first"]


def test_who_gives_up_in_the_middle_is_stopped_and_the_next_goes_on(
    worker: Worker, engine: Slow
) -> None:
    first, second = submitted(worker, "first", "second")
    assert engine.begun.wait(SOON)
    worker.give_up(first)
    assert isinstance(first.result(), Stopped)
    engine.allowed.set()
    assert isinstance(second.result(), Completion)


def test_a_fault_is_handed_to_who_waits_and_ends_nothing(worker: Worker, engine: Slow) -> None:
    engine.allowed.set()
    bad, good = submitted(worker, "fail", "good")
    assert isinstance(bad.result(), ValueError)
    assert isinstance(good.result(), Completion)


def test_closing_stops_in_the_middle_and_frees_the_engine(worker: Worker, engine: Slow) -> None:
    first, second = submitted(worker, "first", "second")
    assert engine.begun.wait(SOON)
    worker.close()
    assert isinstance(first.result(), Stopped)
    assert isinstance(second.result(), Stopped)
    assert engine.closed
    worker.close()


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
    assert isinstance(first.result(), OSError)
    second, third = submitted(worker, "second", "third")
    assert isinstance(second.result(), Completion)
    assert isinstance(third.result(), Completion)
    assert len(attempts) == 2
    worker.close()


def test_a_loop_that_is_gone_stops_nobody(worker: Worker, engine: Slow) -> None:
    engine.allowed.set()

    def gone(_: Done) -> None:
        raise RuntimeError("Event loop is closed")

    ticket = Ticket(job("a"), gone)
    worker.submit(ticket)
    assert ticket.over.wait(SOON)
    (second,) = submitted(worker, "b")
    assert isinstance(second.result(), Completion)


def test_a_process_has_one_worker_for_a_file_until_it_is_unloaded() -> None:
    engine = Slow()
    engine.allowed.set()
    key = object()
    worker = worker_for(key, lambda: engine)
    assert worker_for(key, lambda: engine) is worker
    (ticket,) = submitted(worker, "a")
    ticket.result()
    unload()
    assert engine.closed
    assert worker_for(key, lambda: engine) is not worker
    unload()
