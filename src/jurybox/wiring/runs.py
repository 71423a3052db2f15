"""Starting a run, and going on with one."""

import asyncio
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.errors import IncompleteError, InputError
from jurybox.reporting.view import RunView, finished_view
from jurybox.running.plan import Plan, plan_text, read_plan
from jurybox.running.records import ENCODER, RunRow, sealed_run
from jurybox.running.storing import Store
from jurybox.scoring.conduct import Procedure
from jurybox.wiring import read_settings
from jurybox.wiring.changes import describe_change
from jurybox.wiring.judge_batches import close_batches
from jurybox.wiring.metadata import run_metadata
from jurybox.wiring.planning import Prepared
from jurybox.wiring.running import Job, OnProgress, now_utc
from jurybox.wiring.viewing import view_unfinished

if TYPE_CHECKING:
    from jurybox.datasets import Dataset

# No letters that are taken for each other.
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"

Hold = Callable[[Job], None]
"""Is given the job before it begins, so that somebody can stop it."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How working on a run ended; ``stopped`` says why it isn't finished."""

    view: RunView
    stopped: str | None = None


def start_run(
    prepared: Prepared,
    store: Store,
    *,
    base_url: str | None = None,
    on_progress: OnProgress | None = None,
    hold: Hold | None = None,
) -> Ended:
    """Store the plan of a run, and work on it until it is finished or stopped.

    Raises:
        IncompleteError: the store is in trouble.

    """
    row = new_run(prepared.plan, prepared.procedure)
    with store.claim(row.id):
        store.create_run(row)
        job = Job(store, row, prepared.plan, read_settings(), on_progress)
        return _work(job, store, prepared.dataset, base_url, hold)


def resume_run(
    row: RunRow,
    store: Store,
    *,
    base_url: str | None = None,
    concurrency: int | None = None,
    on_progress: OnProgress | None = None,
    hold: Hold | None = None,
) -> Ended:
    """Go on with a run where it was stopped.

    Raises:
        InputError: it is finished, somebody is at work on it, or its dataset has changed.
        IncompleteError: the store is in trouble.

    """
    from jurybox.datasets import open_dataset

    if row.status == "finished":
        raise InputError("the run is finished", "`jurybox show` shows it", row.id)
    plan = _plan_of(row)
    if plan.derived_from is not None:
        raise InputError("re-scoring was broken off", "re-score the run anew", row.id)
    with store.claim(row.id) as mine:
        if not mine:
            raise InputError("another process is working on the run", "wait for it", row.id)
        # Somebody may have finished it while this process was waiting for its turn.
        current = store.run(row.id) or row
        if current.status == "finished":
            return Ended(view=finished_view(current))
        recorded = plan.dataset.responses
        dataset = open_dataset(
            Path(plan.dataset.path),
            None if recorded is None else Path(recorded),
            limit=plan.dataset.limit,
        )
        if dataset.recorded != plan.dataset.responses_sha256:
            problem = "the recorded responses have changed since the run began"
            raise InputError(problem, "bring the file back, or start a new run", str(recorded))
        changed = describe_change(dataset, plan, store, row.id)
        if changed is not None:
            raise InputError(changed, "bring the file back, or start a new run", dataset.origin)
        if concurrency is not None:
            plan = msgspec.structs.replace(plan, concurrency=concurrency)
        job = Job(store, current, plan, read_settings(), on_progress)
        return _work(job, store, dataset, base_url, hold)


def forget_batches(row: RunRow, store: Store) -> None:
    """Wait for no batch of a run any more: what they were asked is asked again.

    Raises:
        InputError: somebody is at work on the run.
        IncompleteError: the store is in trouble.

    """
    with store.claim(row.id) as mine:
        if not mine:
            raise InputError("another process is working on the run", "wait for it", row.id)
        close_batches(store, row.id, "gone")


def _work(
    job: Job, store: Store, dataset: "Dataset", base_url: str | None, hold: Hold | None
) -> Ended:
    async def work() -> RunRow:
        if hold is not None:
            hold(job)
        return await job.work(dataset, base_url)

    row = asyncio.run(work())
    if row.status == "finished":
        return Ended(view=finished_view(row))
    return Ended(view=view_unfinished(row, store, working=False), stopped=job.why_stopped)


def new_run(plan: Plan, procedure: Procedure) -> RunRow:
    """Return the row of a run that begins now, with its metadata (A11)."""
    now = datetime.now(UTC)
    tail = "".join(secrets.choice(_LETTERS) for _ in range(4))
    run_id = f"{now:%Y%m%d-%H%M%S}-{tail}"
    timestamp = now_utc()
    metadata = run_metadata(
        run_id=run_id,
        timestamp=timestamp,
        plan=plan,
        procedure=procedure,
        region=read_settings().region,
    )
    return sealed_run(
        RunRow(
            id=run_id,
            suite=plan.suite,
            status="running",
            created_at=timestamp,
            finished_at=None,
            plan=plan_text(plan),
            metadata=ENCODER.encode(metadata).decode(),
            outcome=None,
            digest=None,
        )
    )


def _plan_of(row: RunRow) -> Plan:
    try:
        return read_plan(row.plan)
    except msgspec.DecodeError as error:
        what = f"the plan of run {row.id} can't be read ({error}); `jurybox verify` says where"
        raise IncompleteError(what) from None
