"""Runs as they are stored, made by the runner itself with judges that answer at once."""

import asyncio
import functools
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from jurybox.app.metadata import RunIdentity, run_metadata
from jurybox.engine.driver import SampleState
from jurybox.engine.plan import DatasetPlan, DocumentPlan, Plan, Procedure, plan_text, read_plan
from jurybox.engine.records import (
    ENCODER,
    RunRow,
    StoredOutcome,
    Work,
    read_result,
    run_digest,
    sealed,
)
from jurybox.engine.runner import ModelSession, Runner, Stop
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome
from jurybox.reporting.view import RunView, finished_view, unfinished_view
from jurybox.sample import Response, Row, Timing, Usage
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import RunTally
from jurybox.storage import open_store
from jurybox.storage.store import Store

WHEN = "2026-03-01T09:14:00.000Z"
Judge = Callable[[str], str | Failure]


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is stored, and as it is shown."""

    store: Store
    row: RunRow
    view: RunView


MakeRun = Callable[..., Made]


def answered(
    sample_id: str,
    text: str = "fine",
    *,
    ms: float | None = 1000.0,
    tokens: tuple[int, int] | None = (100, 50),
    late: bool = False,
    **more: object,
) -> Row:
    """Return a row whose response took so long and used so many tokens."""
    usage = Usage() if tokens is None else Usage(input_tokens=tokens[0], output_tokens=tokens[1])
    timing = Timing(latency_e2e_ms=ms, timed_out=late)
    response = Response(text=text, timing=timing, usage=usage)
    return Row(**{"id": sample_id, "task": f"Task {sample_id}", "response": response, **more})


class _Observer:
    def finished(self, work: Work, result: SampleResult) -> None:
        """Ignore it."""

    def sample_error(self, sample_id: str, error: Exception) -> None:
        raise AssertionError(sample_id) from error


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "runs.db"))
    yield opened
    opened.close()


@pytest.fixture
def row() -> Callable[..., Row]:
    return answered


@pytest.fixture
def make_run(store: Store) -> MakeRun:
    def make(  # noqa: PLR0913 - what makes one run differ from another
        rows: Sequence[Row],
        judge: Judge | None = None,
        *,
        rubric: str = "answer-quality",
        repeats: int = 1,
        votes: int = 1,
        run_id: str = "run-a",
        left_out: int = 0,
        suite: str = "suite",
        judges: Sequence[str] = ("python/judges:one",),
        **identity: object,
    ) -> Made:
        plan = _plan(rows, judge, rubric, repeats, votes)
        own = () if judge is None else tuple(judges)
        plan = msgspec.structs.replace(plan, suite=suite, judges=own)
        row = _begun(run_id, plan, RunIdentity(**identity))
        store.create_run(row)
        work = [
            Work(number=repeat * len(rows) + place, repeat=repeat, row=each)
            for repeat in range(repeats)
            for place, each in enumerate(rows)
        ]
        asyncio.run(_run(run_id, plan, store, judge, work[: len(work) - left_out]))
        if left_out:
            view = unfinished_view(row, store, working=False)
            return Made(store=store, row=row, view=view)
        row = _finished(row, plan, store)
        return Made(store=store, row=row, view=finished_view(row, store))

    return make


def _plan(rows: Sequence[Row], judge: Judge | None, rubric: str, repeats: int, votes: int) -> Plan:
    return Plan(
        suite="suite",
        rubric=_document(rubric),
        checklist=_document("bias-awareness"),
        dataset=DatasetPlan(
            id="rows.jsonl", path="rows.jsonl", sha256="0" * 64, bytes=1, rows=len(rows)
        ),
        judges=() if judge is None else ("python/judges:one",),
        votes=votes,
        repeats=repeats,
    )


def procedure_of(plan: Plan) -> Procedure:
    """Return how a plan judges; to read its documents takes longer than the run."""
    return _procedure_of(plan_text(plan))


@functools.cache
def _procedure_of(text: str) -> Procedure:
    return read_plan(text).procedure()


def _document(name: str) -> DocumentPlan:
    if "\n" in name:
        return DocumentPlan(origin="own.md", text=name)
    path = resources.files("jurybox.rubric") / "library" / f"{name}.md"
    return DocumentPlan(origin=name, text=path.read_text(encoding="utf-8"))


def _begun(run_id: str, plan: Plan, identity: RunIdentity) -> RunRow:
    metadata = run_metadata(
        run_id=run_id,
        timestamp=WHEN,
        plan=plan,
        region=None,
        identity=identity,
    )
    return sealed(
        RunRow(
            id=run_id,
            suite=plan.suite,
            status="running",
            created_at=WHEN,
            finished_at=None,
            plan=plan_text(plan),
            metadata=ENCODER.encode(metadata).decode(),
            outcome=None,
            digest=None,
        )
    )


async def _run(
    run_id: str, plan: Plan, store: Store, judge: Judge | None, work: Sequence[Work]
) -> None:
    async def ask(_: str, request: ModelRequest, state: SampleState) -> Outcome:
        state.started = True
        if judge is None:
            raise AssertionError("nobody is asked")
        said = judge(request.messages[0].content)
        return said if isinstance(said, Failure) else ModelReply(text=said, latency_ms=7.0)

    runner = Runner(
        run_id=run_id,
        procedure=procedure_of(plan),
        session=ModelSession(call=ask, endpoint=lambda _, model: model),
        store=store,
        observer=_Observer(),
        stop=Stop(),
    )
    await runner.run(work)


def _finished(row: RunRow, plan: Plan, store: Store) -> RunRow:
    tally = RunTally(procedure_of(plan).judging.rubric, plan.repeats)
    for _, repeat, _, result in store.results(row.id):
        tally.add(read_result(result), repeat)
    conclusion = tally.conclude()
    models = [
        {"model": use.model, "role": use.role, "calls": use.calls, "dollars": 0.25}
        for use in conclusion.uses
    ]
    outcome = StoredOutcome(
        conclusion=conclusion, cost={"dollars": 0.25, "models": models}, elapsed_s=1.5
    )
    finished = msgspec.structs.replace(
        row,
        status="finished",
        finished_at=WHEN,
        outcome=ENCODER.encode(outcome).decode(),
        digest=run_digest(store.hashes(row.id)),
    )
    finished = sealed(finished)
    store.update_run(finished)
    return finished
