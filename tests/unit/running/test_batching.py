"""Batches: when they are sent, how long they are waited for, and what is made of what they say."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence

import msgspec
import pytest

from clocks import Clock
from jurybox import load_rubric
from jurybox.judging.asking import Judging
from jurybox.judging.exchange import Failure, ModelReply, ModelRequest, Outcome
from jurybox.rubric.model import Generation
from jurybox.running.attendance import Attendance
from jurybox.running.batch_model import LapsedTrouble, Look, Result
from jurybox.running.batch_post import Pace
from jurybox.running.batching import Batcher
from jurybox.running.ledger import Ledger, key_in, name_of
from jurybox.running.ports import ModelTrouble
from jurybox.running.records import (
    BatchRow,
    ExchangeRow,
    SampleRow,
    request_key,
    seal_of,
    sealed_batch,
)
from jurybox.running.runner import Runner, Work
from jurybox.running.stop import Stop
from jurybox.running.transcript import Stage
from jurybox.sample import Response, Row, Turn
from jurybox.scoring.conduct import Procedure
from jurybox.scoring.result import SampleResult

NOW = "2026-01-02T03:04:05.000Z"


class Store:
    """A store that only knows batches."""

    def __init__(self, *rows: BatchRow) -> None:
        self.rows = {row.number: row for row in rows}
        self.history: list[tuple[int, str, str]] = []

    def add_batch(self, row: BatchRow) -> None:
        assert row.number not in self.rows
        self.update_batch(row)

    def update_batch(self, row: BatchRow) -> None:
        assert row.seal == seal_of(row)
        self.rows[row.number] = row
        self.history.append((row.number, row.state, row.batch_id))

    def batches(self, run_id: str) -> Sequence[BatchRow]:
        assert run_id == "run"
        return list(self.rows.values())


class Lines:
    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines
        self.closed = False

    def __iter__(self) -> Iterator[Result]:
        for line in self._lines:
            yield Result(name=json.loads(line)[0], line=line)

    def close(self) -> None:
        self.closed = True


class Model:
    """A provider that keeps batches in memory; ``says`` makes an answer of a question."""

    endpoint = "http://there"

    def __init__(self, says: Callable[[str, int], str | ModelTrouble] | None = None) -> None:
        self.submitted: list[list[str]] = []
        self.marks: list[str] = []
        self.looks: list[Look | ModelTrouble] = []
        self.troubles: list[ModelTrouble] = []
        self.known: dict[str, list[bytes]] = {}
        self.conceded = 0
        self.fetched: list[Lines] = []
        self._says = says or (lambda question, _: question.upper())
        self._asked: dict[str, int] = {}

    def terms(self) -> str:
        return str(self.conceded)

    def line(self, name: str, request: ModelRequest, terms: str) -> bytes:
        question = request.messages[0].content
        if question == "unsendable":
            raise ModelTrouble("refused", "it can't be sent", retry=False)
        return json.dumps([name, question, terms]).encode()

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        if self.troubles:
            trouble = self.troubles.pop(0)
            if "taken" in str(trouble):
                self._take(lines, mark)
            raise trouble
        return self._take(lines, mark)

    def _take(self, lines: Sequence[bytes], mark: str) -> str:
        asked = [json.loads(line) for line in lines]
        self.submitted.append([question for _, question, _ in asked])
        self.marks.append(mark)
        batch_id = f"b{len(self.submitted)}"
        self.known[batch_id] = []
        for name, question, _ in asked:
            self._asked[question] = self._asked.get(question, 0) + 1
            said = self._says(question, self._asked[question])
            kind = "lapsed" if isinstance(said, LapsedTrouble) else "trouble"
            told = ["said", said] if isinstance(said, str) else [kind, said.kind, said.retry]
            self.known[batch_id].append(json.dumps([name, *told]).encode())
        return batch_id

    async def find(self, mark: str, since: str, requests: int) -> Sequence[str]:
        assert since == NOW
        assert requests
        return [f"b{number}" for number, each in enumerate(self.marks, start=1) if each == mark]

    async def look(self, batch_id: str) -> Look:
        if self.looks:
            look = self.looks.pop(0)
            if isinstance(look, ModelTrouble):
                raise look
            if look.state != "ended":
                return look
        if batch_id not in self.known:
            raise ModelTrouble("refused", "HTTP 404: no such batch", retry=False)
        return Look(state="ended", places=(batch_id,))

    async def fetch(self, look: Look) -> Lines:
        self.fetched.append(Lines(self.known[look.places[0]]))
        return self.fetched[-1]

    def read(self, line: bytes, request: ModelRequest, terms: str) -> ModelReply:
        del request
        _, kind, *told = json.loads(line)
        if kind == "lapsed":
            raise LapsedTrouble(told[0], "too late")
        if kind == "trouble":
            raise ModelTrouble(told[0], "no luck", retry=told[1])
        return ModelReply(text=f"{told[0]} on terms {terms}")

    def concede(self, trouble: ModelTrouble, request: ModelRequest, terms: str) -> bool:
        del request
        if trouble.kind != "unreadable" or trouble.retry:
            return False
        self.conceded = max(self.conceded, int(terms) + 1)
        return True


class Watch:
    def __init__(self) -> None:
        self.notices: list[str] = []
        self.changes = 0

    def noticed(self, text: str) -> None:
        self.notices.append(text)

    def waited(self) -> None:
        self.changes += 1


def request(question: str, model: str = "m") -> ModelRequest:
    turn = Turn(role="user", content=question)
    return ModelRequest(model=model, messages=(turn,), generation=Generation())


def key(question: str) -> str:
    return request_key(question, "http://there", 0)


class Bench:
    """A batcher, and samples that ask through it."""

    def __init__(
        self, model: Model | None = None, store: Store | None = None, **pace: float
    ) -> None:
        self.model = model or Model()
        self.store = store or Store()
        self.clock = Clock()
        self.watch = Watch()
        self._pace = Pace(**pace)  # type: ignore[arg-type]

    def batcher(self) -> Batcher:
        return Batcher(
            {"m": self.model},
            Ledger(self.store, "run", lambda: NOW),  # type: ignore[arg-type]
            self.watch,
            pace=self._pace,
            clock=self.clock,
            draw=lambda: 1.0,
        )

    def ask(self, *questions: str) -> list[Outcome]:
        return asyncio.run(self.samples(*(self.one(each) for each in questions)))

    def one(self, question: str) -> Callable[[Batcher], Awaitable[Outcome]]:
        async def sample(batcher: Batcher) -> Outcome:
            return (await batcher.ask(request(question), key(question)))[0]

        return sample

    async def samples(self, *samples: Callable[[Batcher], Awaitable[Outcome]]) -> list[Outcome]:
        """Run samples side by side as a runner does, each counted until it is done."""
        batcher = self.batcher()
        await batcher.open()

        async def attended(sample: Callable[[Batcher], Awaitable[Outcome]]) -> Outcome:
            try:
                return await sample(batcher)
            finally:
                batcher.attendance.leave()

        batcher.attendance.enter(len(samples))
        try:
            return await asyncio.wait_for(asyncio.gather(*map(attended, samples)), 20)
        finally:
            await batcher.settle(finished=True)
            await batcher.aclose()


async def until(true: Callable[[], object]) -> None:
    while not true():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)


async def until_waiting(batcher: Batcher) -> None:
    await until(lambda: batcher.waiting)


def text_of(outcome: Outcome) -> str:
    assert isinstance(outcome, ModelReply)
    return outcome.text


def failure_of(outcome: Outcome) -> Failure:
    assert isinstance(outcome, Failure)
    return outcome


def test_all_that_can_be_asked_goes_in_one_batch() -> None:
    bench = Bench()
    outcomes = bench.ask("a", "b", "c")
    assert [text_of(each) for each in outcomes] == [f"{each} on terms 0" for each in "ABC"]
    assert bench.model.submitted == [["a", "b", "c"]]


def test_nothing_is_sent_while_somebody_may_still_ask() -> None:
    bench = Bench()
    busy = asyncio.Event()

    async def slow(batcher: Batcher) -> Outcome:
        for _ in range(50):
            await asyncio.sleep(0)
        assert bench.model.submitted == []
        busy.set()
        return (await batcher.ask(request("late"), key("late")))[0]

    asyncio.run(bench.samples(bench.one("a"), slow))
    assert busy.is_set()
    assert bench.model.submitted == [["a", "late"]]


def test_what_follows_from_a_reply_is_in_the_next_batch() -> None:
    bench = Bench()

    async def twice(batcher: Batcher) -> Outcome:
        first, batch = await batcher.ask(request("a"), key("a"))
        assert (text_of(first), batch) == ("A on terms 0", "b1")
        second, batch = await batcher.ask(request("again"), key("again"))
        assert batch == "b2"
        return second

    asyncio.run(bench.samples(twice, bench.one("b"), twice))
    assert bench.model.submitted == [["a", "b", "a"], ["again", "again"]]


def test_a_full_batch_is_sent_at_once() -> None:
    bench = Bench(requests=2)
    bench.ask("a", "b", "c", "d", "e")
    assert bench.model.submitted == [["a", "b"], ["c", "d"], ["e"]]


def test_a_batch_holds_only_so_many_bytes() -> None:
    bench = Bench(bytes=5000)
    bench.ask(*(letter * 1000 for letter in "abcde"))
    assert [len(batch) for batch in bench.model.submitted] == [2, 2, 1]


def test_it_is_looked_at_soon_and_then_more_and_more_seldom() -> None:
    bench = Bench(first=1.0, growth=2.0, longest=10.0)
    bench.model.looks = [Look(state="open", answered=number) for number in range(6)]
    bench.ask("a")
    assert bench.clock.waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]
    assert bench.watch.changes >= 7


def test_what_is_submitted_is_noted_before_and_after() -> None:
    bench = Bench()
    bench.ask("a")
    assert bench.store.history == [(0, "submitting", ""), (0, "submitted", "b1"), (0, "read", "b1")]
    assert bench.model.marks == ["run.0"]
    assert (bench.store.rows[0].requests, bench.store.rows[0].terms) == (1, "0")


def test_a_batch_counts_as_read_only_once_its_replies_are_stored() -> None:
    bench = Bench()
    stored = asyncio.Event()

    async def main() -> None:
        async def wait() -> None:
            if bench.model.submitted:
                await stored.wait()

        batcher = bench.batcher()
        batcher.attach(wait)
        await batcher.open()
        batcher.attendance.enter()
        await batcher.ask(request("a"), key("a"))
        second = asyncio.create_task(batcher.ask(request("b"), key("b")))
        await asyncio.sleep(0.05)
        assert bench.store.rows[0].state == "submitted"
        assert len(bench.model.submitted) == 1
        stored.set()
        await second
        assert bench.store.rows[0].state == "read"
        await batcher.aclose()

    asyncio.run(main())


def test_a_batch_that_is_heard_while_the_store_is_waited_for_counts_as_read_only_later() -> None:
    bench = Bench(requests=1)
    ended = {"b1"}
    look = bench.model.look

    async def looked(batch_id: str) -> Look:
        return await look(batch_id) if batch_id in ended else Look(state="open")

    async def main() -> None:
        reached, stored = asyncio.Event(), asyncio.Event()
        stored.set()

        async def wait() -> None:
            reached.set()
            await stored.wait()

        batcher = bench.batcher()
        batcher.attach(wait)
        await batcher.open()
        batcher.attendance.enter(2)
        first, second = (asyncio.create_task(batcher.ask(request(q), key(q))) for q in "ab")
        await first
        stored.clear()
        reached.clear()
        again = asyncio.create_task(batcher.ask(request("c"), key("c")))
        await reached.wait()
        ended.add("b2")
        await second
        stored.set()
        await until(lambda: bench.store.rows[0].state == "read")
        await asyncio.sleep(0.05)
        assert bench.store.rows[1].state == "submitted"
        again.cancel()
        await batcher.aclose()

    bench.model.look = looked  # type: ignore[method-assign]
    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize("at_once", [True, False])
def test_a_store_that_never_answers_keeps_nobody(at_once: bool) -> None:  # noqa: FBT001
    bench = Bench()

    async def main() -> None:
        reached = asyncio.Event()

        async def wait() -> None:
            reached.set()
            await asyncio.Event().wait()

        batcher = bench.batcher()
        batcher.attach(wait)
        await batcher.open()
        batcher.attendance.enter()
        asked = asyncio.create_task(batcher.ask(request("a"), key("a")))
        await reached.wait()
        if at_once:
            batcher.stop("enough", at_once=True)
            await asyncio.sleep(0)
            assert batcher._flushing is None
        await asyncio.wait_for(batcher.aclose(), 10)
        assert failure_of((await asked)[0]).everybody

    asyncio.run(main())
    assert bench.model.submitted == []


@pytest.mark.parametrize("kind", ["rate-limit", "timeout", "unreachable"])
def test_trouble_that_passes_is_asked_again_in_the_next_batch(kind: str) -> None:
    def says(question: str, count: int) -> str | ModelTrouble:
        if question == "b" and count < 3:
            return ModelTrouble(kind, "no luck", retry=True)  # type: ignore[arg-type]
        return question.upper()

    bench = Bench(Model(says))
    assert [text_of(each)[0] for each in bench.ask("a", "b")] == ["A", "B"]
    assert bench.model.submitted == [["a", "b"], ["b"], ["b"]]


def test_trouble_that_stays_is_given_up() -> None:
    bench = Bench(Model(lambda *_: ModelTrouble("rate-limit", "no luck", retry=True)))
    failure = failure_of(bench.ask("a")[0])
    assert (failure.kind, failure.everybody) == ("rate-limit", False)
    assert failure.message == "http://there: no luck after 4 attempts"
    assert len(bench.model.submitted) == 4


def test_a_refusal_is_of_that_request_alone() -> None:
    bench = Bench(
        Model(
            lambda question, _: (
                ModelTrouble("refused", "no", retry=False) if question == "b" else "x"
            )
        )
    )
    _, refused = bench.ask("a", "b")
    assert failure_of(refused).message == "http://there: no luck"
    assert len(bench.model.submitted) == 1


def test_what_an_endpoint_wont_have_is_left_out_of_the_next_batch() -> None:
    def says(question: str, count: int) -> str | ModelTrouble:
        return question if count > 2 else ModelTrouble("unreadable", "not that", retry=False)

    bench = Bench(Model(says))
    assert [text_of(each) for each in bench.ask("a", "b")] == ["a on terms 2", "b on terms 2"]
    assert len(bench.model.submitted) == 3


def test_what_a_batch_was_too_late_for_is_asked_once_more_and_then_given_up() -> None:
    bench = Bench(
        Model(
            lambda question, count: (
                LapsedTrouble("timeout", "x") if count == 1 or question == "b" else "ok"
            )
        )
    )
    late, never = bench.ask("a", "b")
    assert text_of(late) == "ok on terms 0"
    assert failure_of(never).kind == "timeout"
    assert bench.model.submitted == [["a", "b"], ["a", "b"]]


def test_what_cant_be_sent_fails_alone() -> None:
    bench = Bench()
    fine, failed = bench.ask("a", "unsendable")
    assert text_of(fine)
    assert failure_of(failed).message == "http://there: it can't be sent"
    assert not failure_of(failed).everybody
    assert failure_of(Bench().ask("unsendable")[0]).kind == "refused"


@pytest.mark.parametrize("reach", ["not taken", "taken after all"])
def test_a_submission_of_which_nobody_knows_is_looked_for_before_it_is_repeated(reach: str) -> None:
    bench = Bench()
    bench.model.troubles = [ModelTrouble("timeout", reach, retry=True)]
    assert text_of(bench.ask("a")[0])
    assert bench.model.submitted == [["a"]]


def test_a_submission_that_is_told_to_slow_down_waits_as_long_as_it_is_asked_to() -> None:
    bench = Bench()
    bench.model.troubles = [ModelTrouble("rate-limit", "x", retry=True, retry_after=33.0)]
    bench.ask("a")
    assert 33.0 in bench.clock.waits


def test_a_provider_that_wont_have_batches_stops_everybody() -> None:
    bench = Bench()
    bench.model.troubles = [ModelTrouble("refused", "no batches here", retry=False)]
    failures = [failure_of(each) for each in bench.ask("a", "b")]
    assert {each.everybody for each in failures} == {True}
    assert {each.message for each in failures} == {"http://there: no batches here"}
    assert [state for _, state, _ in bench.store.history] == ["submitting", "gone"]


def test_a_provider_out_of_reach_is_waited_for_as_long_as_patience_lasts() -> None:
    bench = Bench(patience=100.0)
    away = ModelTrouble("unreachable", "nobody there", retry=True, everybody=True)
    bench.model.looks = [*[away] * 3, Look(state="open"), away, Look(state="ended")]
    assert text_of(bench.ask("a")[0])
    bench = Bench(patience=100.0)
    bench.model.looks = [away] * 1000
    assert failure_of(bench.ask("a")[0]).message == "http://there: nobody there"
    assert 100 <= bench.clock.time < 200
    # It is still there, for whoever goes on.
    assert bench.store.history[1][1] == "submitted"


def test_a_batch_that_is_refused_says_why() -> None:
    bench = Bench()
    bench.model.looks = [Look(state="refused", problem="line 3")]
    failure = failure_of(bench.ask("a", "b")[0])
    assert failure.everybody
    assert failure.message == "http://there: batch b1 was refused: line 3"
    assert bench.store.history[-1] == (0, "gone", "b1")


def test_what_is_too_much_at_once_goes_in_halves_one_after_the_other() -> None:
    bench = Bench()
    bench.model.looks = [Look(state="refused", problem="too many", too_much=True)]
    outcomes = bench.ask(*"abcdefg")
    assert [text_of(each)[0] for each in outcomes] == list("ABCDEFG")
    assert bench.model.submitted == [list("abcdefg"), list("abc"), list("def"), list("g")]
    assert "at most 3 at a time" in bench.watch.notices[0]


def left_behind(
    model: Model, *questions: str, state: str = "submitted", **changes: object
) -> BatchRow:
    """Return the row of a batch that an earlier process submitted."""
    row = BatchRow(
        run_id="run",
        number=4,
        model="m",
        endpoint=model.endpoint,
        state=state,
        batch_id="b1" if state == "submitted" else "",
        requests=len(questions),
        terms="9",
        submitted_at=NOW,
    )
    lines = [
        model.line(name_of(row, key(question), index), request(question), "9")
        for index, question in enumerate(questions)
    ]
    asyncio.run(model.submit(lines, "run.4"))
    return sealed_batch(msgspec.structs.replace(row, **changes))


@pytest.mark.parametrize("state", ["submitted", "submitting"])
def test_what_an_earlier_process_asked_is_waited_for_and_not_asked_again(state: str) -> None:
    model = Model()
    bench = Bench(model, Store(left_behind(model, "a", "b", "b", state=state)))
    outcomes = bench.ask("a", "b", "c", "b", "b")
    # In the form in which it was sent then.
    told = [text_of(each) for each in outcomes]
    assert told[:2] == ["A on terms 9", "B on terms 9"]
    assert told[2:] == ["C on terms 0", "B on terms 9", "B on terms 0"]
    assert model.submitted[1:] == [["c", "b"]]
    assert {row.state for row in bench.store.rows.values()} == {"read"}
    assert list(bench.store.rows) == [4, 5]


def test_what_failed_for_an_earlier_process_is_asked_again() -> None:
    model = Model(lambda _, count: "x" if count > 1 else ModelTrouble("refused", "no", retry=False))
    bench = Bench(model, Store(left_behind(model, "a")))
    assert text_of(bench.ask("a")[0]) == "x on terms 0"


def test_what_an_open_batch_may_answer_is_not_sent_while_it_is_waited_for() -> None:
    model = Model()
    bench = Bench(model, Store(left_behind(model, *"abcd")), requests=2)
    model.looks = [Look(state="open")] * 5
    outcomes = bench.ask(*"abcdefg")
    assert [text_of(each)[0] for each in outcomes] == list("ABCDEFG")
    assert model.submitted[1:] == [["e", "f"], ["g"]]


def test_a_batch_that_never_arrived_is_forgotten() -> None:
    model = Model()
    row = left_behind(model, "a", state="submitting")
    model.marks[0] = "somebody else's"
    bench = Bench(model, Store(row))
    assert text_of(bench.ask("a")[0]) == "A on terms 0"
    assert bench.store.rows[4].state == "gone"


def test_a_batch_of_somebody_else_is_not_taken_for_ours() -> None:
    model = Model()
    left_behind(model, "a")
    # The provider names it as a candidate, but the names of its requests are of another batch.
    other = msgspec.structs.replace(left_behind(model, "a", state="submitting"), number=5)
    model.marks = ["run.5", "x"]
    bench = Bench(model, Store(sealed_batch(other)))
    assert text_of(bench.ask("a")[0]) == "A on terms 0"
    assert bench.store.rows[5].state == "gone"


def test_a_batch_that_cant_be_read_any_more_stops_the_run_before_anything_is_asked() -> None:
    model = Model()
    row = left_behind(model, "a")
    model.known.clear()
    bench = Bench(model, Store(row))
    failure = failure_of(bench.ask("a")[0])
    assert failure.everybody
    assert "HTTP 404: no such batch; it was asked about batch b1" in failure.message
    assert "--forget-batches" in failure.message
    assert len(model.submitted) == 1
    assert bench.store.rows[4].state == "read"  # the bench ends as a finished run does


def test_stopping_answers_everybody_and_submits_nothing() -> None:
    bench = Bench()
    bench.model.looks = [Look(state="open")] * 10_000

    async def main() -> None:
        batcher = bench.batcher()
        await batcher.open()
        batcher.attendance.enter(2)
        waiting = asyncio.create_task(batcher.ask(request("a"), key("a")))
        await asyncio.sleep(0)
        batcher.attendance.leave()
        await until_waiting(batcher)
        batcher.stop("enough")
        outcome, _ = await waiting
        assert failure_of(outcome).everybody
        assert failure_of(outcome).message == "enough"
        assert (await batcher.ask(request("b"), key("b")))[0] == outcome
        await batcher.aclose()
        assert [row.batch_id for row in batcher.left_open] == ["b1"]

    asyncio.run(main())
    assert bench.model.submitted == [["a"]]


def test_what_a_batch_answers_is_finished_before_trouble_of_everybody_ends_the_run() -> None:
    good = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "so"}'

    class Poor(Model):
        def read(self, line: bytes, request: ModelRequest, terms: str) -> ModelReply:
            del line, terms
            if "task: q3" in request.messages[0].content:
                raise ModelTrouble("refused", "no credit", retry=False, everybody=True)
            return ModelReply(text=good)

    class Kept:
        def __init__(self) -> None:
            self.samples: list[SampleRow] = []

        def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
            del exchanges
            self.samples += samples

        def finished(self, work: Work, result: SampleResult) -> None: ...

        def broken_sample(self, sample_id: str, error: Exception) -> None:
            raise AssertionError(sample_id) from error

    def work() -> Iterator[Work]:
        for number in range(6):
            row = Row(id=str(number), task=f"q{number}", reference="x", response=Response(text="x"))
            yield Work(number=number, repeat=0, row=row)

    async def main() -> tuple[set[str], Stop, Batcher]:
        kept, stop, name = Kept(), Stop(), "openai/j-2025-01-01"
        ledger = Ledger(Store(), "run", lambda: NOW)  # type: ignore[arg-type]
        batcher = Batcher({name: Poor()}, ledger, Watch(), clock=Clock(), draw=lambda: 1.0)
        stop.listen(lambda reason, at_once: batcher.stop(reason, at_once=at_once))
        judging = Judging(
            rubric=load_rubric("answer-quality"), checklist=load_rubric("bias-awareness")
        )
        await batcher.open()
        runner = Runner(
            run_id="run",
            procedure=Procedure(judging=judging, judges=(name,), votes=1),
            stage=Stage(ask=_nobody, endpoint=lambda model: model, batches=batcher),
            store=kept,  # type: ignore[arg-type]
            window=10,
        )
        await runner.run(work(), kept, stop)
        await batcher.aclose()
        return {row.sample_id for row in kept.samples}, stop, batcher

    ids, stop, batcher = asyncio.run(main())
    assert ids == {"0", "1", "2", "4", "5"}
    assert "no credit" in stop.reason
    assert batcher.attendance.quiet


def _nobody(*asked: object) -> Awaitable[Outcome]:
    raise AssertionError(f"all are asked in batches, and not {asked}")


def test_nothing_is_submitted_after_a_stop() -> None:
    class Down(Model):
        tries = 0

        async def submit(self, lines: Sequence[bytes], mark: str) -> str:
            self.tries += 1
            if self.tries > 1:
                return await super().submit(lines, mark)
            asyncio.get_running_loop().call_soon(batchers[0].stop, "enough")
            await asyncio.sleep(0.01)
            raise ModelTrouble("timeout", "no answer", retry=True)

    async def sample(batcher: Batcher) -> Outcome:
        batchers.append(batcher)
        return (await batcher.ask(request("a"), key("a")))[0]

    async def main() -> None:
        batcher = bench.batcher()
        await batcher.open()
        batcher.attendance.enter()
        assert failure_of(await sample(batcher)).message == "enough"
        await batcher.aclose()
        assert [row.state for row in batcher.left_open] == ["submitting"]

    batchers: list[Batcher] = []
    bench = Bench(Down())
    asyncio.run(asyncio.wait_for(main(), 20))
    assert bench.model.submitted == []
    assert bench.clock.waits == []


def test_a_stop_ends_the_search_for_a_batch_which_keeps_no_other_model_waiting() -> None:
    """What may be ours or a stranger's can take a day to end."""
    away, other = Model(), Model()
    away.troubles = [ModelTrouble("timeout", "no answer", retry=True)]
    away.looks = [Look(state="open")] * 1_000_000
    away.marks = ["run.0"]
    bench = Bench(away)

    async def main() -> None:
        batcher = Batcher(
            {"m": away, "n": other},
            Ledger(bench.store, "run", lambda: NOW),  # type: ignore[arg-type]
            bench.watch,
            clock=bench.clock,
        )
        await batcher.open()
        batcher.attendance.enter(2)
        lost = asyncio.create_task(batcher.ask(request("a"), key("a")))
        fine = await batcher.ask(request("b", "n"), key("b"))
        assert text_of(fine[0]) == "B on terms 0"
        assert away.looks
        batcher.stop("enough")
        assert failure_of((await lost)[0]).everybody
        await batcher.aclose()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert away.submitted == []


def test_a_batch_that_the_run_knows_is_not_taken_for_a_lost_one() -> None:
    model = Model()
    bench = Bench(model, requests=1)
    find, looked = model.find, list[str]()

    async def found(mark: str, since: str, requests: int) -> Sequence[str]:
        return ["b1", *await find(mark, since, requests)]

    look = model.look

    async def counted(batch_id: str) -> Look:
        looked.append(batch_id)
        return await look(batch_id)

    async def sample(batcher: Batcher) -> Outcome:
        await batcher.ask(request("a"), key("a"))
        model.troubles = [ModelTrouble("timeout", "no answer", retry=True)]
        return (await batcher.ask(request("b"), key("b")))[0]

    model.find, model.look = found, counted  # type: ignore[method-assign]
    asyncio.run(bench.samples(sample))
    assert looked == ["b1", "b2"]


def test_a_sample_that_is_cancelled_when_its_answer_is_there_leaves_it_to_be_read_again() -> None:
    bench = Bench()

    async def main() -> None:
        batcher = bench.batcher()
        await batcher.open()
        batcher.attendance.enter(2)
        first = asyncio.create_task(batcher.ask(request("a"), key("a")))
        second = asyncio.create_task(batcher.ask(request("b"), key("b")))
        enter = batcher.attendance.enter

        def entered(count: int = 1) -> None:
            enter(count)
            # This is the second's answer, of which it will know only after it was cancelled.
            if first.done():
                asyncio.get_running_loop().call_soon(second.cancel)

        batcher.attendance.enter = entered  # type: ignore[method-assign]
        assert text_of((await first)[0])
        with pytest.raises(asyncio.CancelledError):
            await second
        await batcher.settle()
        assert bench.store.rows[0].state == "submitted"
        await batcher.aclose()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_sample_that_is_cancelled_leaves_its_answer_to_be_read_again() -> None:
    bench = Bench()
    bench.model.looks = [Look(state="open")] * 3

    async def main() -> None:
        batcher = bench.batcher()
        await batcher.open()
        batcher.attendance.enter(2)
        gone = asyncio.create_task(batcher.ask(request("a"), key("a")))
        stays = asyncio.create_task(batcher.ask(request("b"), key("b")))
        await until_waiting(batcher)
        gone.cancel()
        assert text_of((await stays)[0])
        await batcher.settle()
        assert bench.store.rows[0].state == "submitted"
        await batcher.aclose()

    asyncio.run(main())
    assert all(lines.closed for lines in bench.model.fetched)


def test_a_fault_of_ours_is_told_and_nobody_waits_for_ever() -> None:
    class Faulty(Model):
        def read(self, line: bytes, request: ModelRequest, terms: str) -> ModelReply:
            raise ZeroDivisionError(line, request, terms)

    bench = Bench(Faulty())
    with pytest.raises(ZeroDivisionError):
        bench.ask("a")


def test_names_tell_requests_batches_and_repetitions_apart() -> None:
    model = Model()
    row = left_behind(model, "a")
    other = msgspec.structs.replace(row, number=5)
    names = {name_of(each, key("a"), index) for each in (row, other) for index in (0, 9999)}
    assert len(names) == 4
    assert all(len(name) <= 64 and name.replace("-", "").isalnum() for name in names)
    assert key_in(name_of(row, key("a"), 7), row) == key("a")[:40]
    assert key_in(name_of(other, key("a"), 7), row) is None
    assert [key_in(each, row) for each in ("", "x", "a-b", "a-b-c")] == [None] * 4


def test_attendance_is_quiet_when_the_last_one_waits() -> None:
    told: list[str] = []
    attendance = Attendance(lambda: told.append("quiet"))
    attendance.enter(2)
    attendance.leave()
    attendance.leave()
    assert told == ["quiet"]
    attendance.enter()
    with attendance.held():
        attendance.leave()
        assert told == ["quiet"]
    assert told == ["quiet", "quiet"]
    assert attendance.quiet
    attendance.leave(0)
    assert told == ["quiet", "quiet"]
