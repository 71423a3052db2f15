"""Start, resume and finish runs."""

import asyncio
import math
import os
import sys
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from jurybox.app.dataset_check import hash_dataset, plan_dataset
from jurybox.app.delivery import deliver_run, order
from jurybox.app.event_loop import blocking
from jurybox.app.ids import new_id, now_utc
from jurybox.app.job import Job, OnProgress, Watch
from jurybox.app.metadata import (
    ALLOW_VERSION_DRIFT,
    MAX_COST,
    NAMELESS,
    RunIdentity,
    first_change,
    judge_versions,
    recorded_versions,
    run_metadata,
)
from jurybox.app.prepare import Prepared, prepare, prepare_all
from jurybox.app.shards import ShardedRun
from jurybox.app.suite_choice import RunOptions
from jurybox.app.view_run import Run, view_run, view_unfinished
from jurybox.app.view_run import accept_unreviewed as accept_reviews
from jurybox.datasets import Dataset
from jurybox.engine.plan import Plan, plan_text
from jurybox.engine.records import ENCODER, RunRow, in_order, read_outcome, sealed
from jurybox.errors import IncompleteError, InputError
from jurybox.integrations.ray_engine import RayCluster
from jurybox.judging.flow import Failure
from jurybox.models.function import Function, function_names
from jurybox.reporting.stored import plan_of
from jurybox.reporting.view import RunView, finished_view
from jurybox.settings import REGION
from jurybox.storage.store import Store
from jurybox.wiring import find_run, open_run_store, setting, takes_base_url


async def arun(  # noqa: PLR0913 - overrides of the suite, all by keyword
    suite: str | os.PathLike[str] | Mapping[str, Any],
    *,
    rubric: str | None = None,
    target: str | Function | None = None,
    prompt: str | os.PathLike[str] | None = None,
    system: str | os.PathLike[str] | None = None,
    responses: str | os.PathLike[str] | None = None,
    judges: str | Function | Sequence[str | Function] = (),
    votes: int | None = None,
    dataset: str | os.PathLike[str] | None = None,
    repeats: int | None = None,
    limit: int | None = None,
    concurrency: int | None = None,
    base_url: str | None = None,
    allow_unpinned: bool = False,
    allow_version_drift: bool = False,
    accept_unreviewed: bool = False,
    cache: bool | None = None,
    batch: bool | None = None,
    filters: Sequence[str] = (),
    name: str | None = None,
    tags: Sequence[str] = (),
    baseline: str | None = None,
    max_cost: float | None = None,
    store: str | None = None,
    on_progress: OnProgress | None = None,
) -> Run:
    """Run a suite, store the run, and return its metrics, gates and decision.

    Example:
        >>> import jurybox
        >>> run = jurybox.run("companion-scenarios", responses="good")  # doctest: +SKIP
        >>> run.conclusion.decision, len(run.samples)  # doctest: +SKIP
        ('deploy', 41)

    Args:
        suite: the path of a suite file, the name of a bundled one (`companion-scenarios`), or a
            suite as a dictionary, ``{"suite": "capitals", "rubric": "facts.md", "rows": [...]}``.
        rubric: a rubric's name or path, instead of the suite's.
        target: the model under test, instead of the suite's: a name, or your function.
        prompt: the file of the target's prompt, instead of the suite's.
        system: the file of the target's system prompt, instead of the suite's.
        responses: a file of recorded responses, or the name of responses bundled with the suite;
            then no target is asked.
        judges: the judge models, instead of the suite's: names, or your functions.
        votes: the number of votes per sample, instead of the suite's.
        dataset: a dataset, instead of the suite's.
        repeats: how many times every sample is run.
        limit: how many rows of the dataset to use, starting with the first.
        concurrency: the maximum number of concurrent calls per endpoint.
        base_url: the address of an OpenAI-compatible endpoint.
        allow_unpinned: accept models whose names don't state a version.
        allow_version_drift: accept replies from a different model version than the name states.
        accept_unreviewed: don't wait for required reviews; this is recorded.
        cache: reuse replies to identical requests in earlier runs of the store.
        batch: send judge requests through the providers' batch APIs, which is slower and cheaper.
        filters: use only rows with these values, each as ``FIELD=VALUE``.
        name: the name of the run, for `load_run` and commands.
        tags: labels of the run.
        baseline: a stored run to compare the new run with.
        max_cost: the maximum cost in US dollars; the run stops before exceeding it.
        store: a path or a database URL; ``.jurybox/jurybox.db`` by default.
        on_progress: called with a `Progress` several times a second.

    Raises:
        InputError: an argument, the suite or a file it names can't be used; no model was called.
        IncompleteError: the run couldn't be finished; finished samples are kept, and it can be
        resumed.

    """
    given = {key: value for key, value in locals().items() if key != "suite"}
    (ended,) = await _run_all(suite, given, several=False)
    return ended


run = blocking("run", arun)


async def arun_targets(
    suite: str | os.PathLike[str] | Mapping[str, Any],
    **options: Any,  # noqa: ANN401 - those of `arun`
) -> list[Run]:
    """Run every target of a suite that has several, and return the runs in the suite's order.

    Example:
        >>> import jurybox
        >>> [each.passed for each in jurybox.run_targets("bots.yaml")]  # doctest: +SKIP
        [True, False]

    Args:
        suite: a suite with ``targets``, in any form that `arun` accepts.
        options: those of `arun`; each run's name ends with its target's name.

    Raises:
        InputError: an argument, the suite or a file it names can't be used; no model was called.
        IncompleteError: a run couldn't be finished; finished samples are kept, and it can be
        resumed.

    """
    return await _run_all(suite, options, several=True)


run_targets = blocking("run_targets", arun_targets)


async def _run_all(
    suite: str | os.PathLike[str] | Mapping[str, Any], given: dict[str, Any], *, several: bool
) -> list[Run]:
    """Run a suite with the options of `arun`."""
    store: str | None = given.pop("store", None)
    on_progress: OnProgress | None = given.pop("on_progress", None)
    accept_unreviewed: bool = given.pop("accept_unreviewed", False)
    for key, each in given.items():
        given[key] = os.fspath(each) if hasattr(each, "__fspath__") else each
    given |= {key: tuple(given.get(key, ())) for key in ("filters", "tags")}
    given["judges"] = function_names(given.get("judges", ()))
    if given.get("target") is not None:
        (given["target"],) = function_names(given["target"])
    given["baseline"] = baseline_id(store, given.get("baseline"))
    named = suite if isinstance(suite, str | Mapping) else Path(suite)
    options = RunOptions(**given)
    ready = prepare_all(named, options) if several else [prepare(named, options)]
    for warning in dict.fromkeys(text for each in ready for text in each.warnings):
        warnings.warn(warning, stacklevel=2)

    @contextmanager
    def watch(job: Job) -> Generator[None]:
        job.on_progress = on_progress
        yield

    runs: list[Run] = []
    with closing(open_run_store(store, create=True)) as opened:
        for each in ready:
            result = await _start(each, opened, watch)
            run_id = result.view.run_id
            if result.stopped is not None:
                resume = f"`jurybox resume {run_id}`"
                raise IncompleteError(f"{result.stopped}; resume it with {resume}")
            view = result.view
            if accept_unreviewed:
                view = accept_reviews(view.row, opened)
            runs.append(Run.of(view, store))
            news = await asyncio.to_thread(deliver_run, opened, run_id)
            if bad := [line for line, is_good in news if not is_good]:
                warnings.warn("\n".join(bad), stacklevel=2)
    return runs


def baseline_id(store: str | None, name: str | None) -> str | None:
    """Return the id of a baseline, which may be named by its id, its name, a tag or ``last``."""
    if name is None:
        return None
    with closing(open_run_store(store)) as opened:
        return find_run(opened, name).id


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The run after working on it; ``stopped`` says why the work ended early, if it did."""

    view: RunView
    stopped: str | None = None


SAME_AGAIN: Final = "nothing is lost; run the same command again to resume"


def new_run(plan: Plan, identity: RunIdentity = NAMELESS, rescored: RunRow | None = None) -> RunRow:
    """Return the row of a run that starts now, with its metadata."""
    run_id, timestamp = new_id(), now_utc()
    metadata = run_metadata(
        run_id=run_id,
        timestamp=timestamp,
        plan=plan,
        region=setting(REGION),
        identity=identity,
        rescored=None if rescored is None else msgspec.json.decode(rescored.metadata),
    )
    return sealed(
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


async def _start(
    prepared: Prepared,
    store: Store,
    watch: Watch = nullcontext,
    *,
    cluster: RayCluster | None = None,
) -> RunResult:
    """Store the plan of a run, and work on it until it is finished or stopped."""
    row = new_run(prepared.plan, _with_the_rest(prepared.identity, store))

    def begin() -> None:
        store.create_run(row)
        if prepared.langfuse is not None:
            order(row.id, store, prepared.langfuse.queue)

    with store.claim(row.id):
        return await _work(prepared, store, row, begin, watch, cluster)


start_run = blocking("start_run", _start)


def _with_the_rest(identity: RunIdentity, store: Store) -> RunIdentity:
    """Reduce the maximum cost by what earlier targets of the suite have spent."""
    if identity.max_cost is None or identity.group is None:
        return identity
    earlier = [view_run(row, store) for row in store.runs() if identity.group in row.metadata]
    spent = (view.cost["dollars"] for view in earlier)
    rest = identity.max_cost - sum(math.inf if each is None else each for each in spent)
    return msgspec.structs.replace(identity, max_cost=max(0.0, round(rest, 9)))


async def _resume(  # noqa: PLR0913 - a run and what may differ from its beginning, by keyword
    row: RunRow,
    store: Store,
    watch: Watch = nullcontext,
    *,
    base_url: str | None = None,
    concurrency: int | None = None,
    allow_version_drift: bool = False,
    retry_failed: bool = False,
    max_cost: float | None = None,
    cluster: RayCluster | None = None,
) -> RunResult:
    """Resume a stopped run; samples with a transient failure are evaluated again.

    With ``retry_failed``, this also applies to a finished run, which is then unfinished again.
    """
    if row.status == "finished" and not retry_failed:
        hint = "`jurybox show` shows it; --retry-failed repeats failed requests"
        raise InputError("the run is finished", hint, row.id)
    plan = plan_of(row)
    if plan.derived_from is not None:
        problem = "it is a rescored run, which calls no model"
        raise InputError(problem, f"resume or rescore run {plan.derived_from}", row.id)
    if base_url is not None and not any(map(takes_base_url, plan.model_specs())):
        hint = "leave it out, or start a new run with other addresses"
        raise InputError("every model of the run has its own address", hint, "--base-url")
    if concurrency is not None:
        plan = msgspec.structs.replace(plan, concurrency=concurrency)
    changed = {ALLOW_VERSION_DRIFT: True} if allow_version_drift else {}
    changed |= {} if max_cost is None else {MAX_COST: max_cost}
    with _claimed(store, row.id):
        # Another process may have finished the run in the meantime.
        current = store.run(row.id) or row
        if current.status == "finished" and not retry_failed:
            return RunResult(view=finished_view(current, store))
        failed = _failed_samples(store, row.id)
        if current.status == "finished" and not failed:
            hint = "see the run with `jurybox show`"
            raise InputError("it has no failed request to retry", hint, row.id)
        dataset = _same_dataset(plan, store, row.id, cluster)
        current = _resumed(current, changed)
        again = Prepared(plan=plan, dataset=dataset, base_url=base_url)
        reopen = partial(store.reopen, current, failed)
        return await _work(again, store, current, reopen, watch, cluster)


resume_run = blocking("resume_run", _resume)


def equal_run(store: Store, plan: Plan) -> RunRow | None:
    """Return the newest run with the same plan and judge versions, finished or not."""
    wanted, versions = _what_is_asked(plan), judge_versions(plan)
    rows = (row for row in store.runs() if row.suite == plan.suite)
    known = (row for row in rows if recorded_versions(row) == versions)
    return next((row for row in known if _what_is_asked(plan_of(row)) == wanted), None)


def _what_is_asked(plan: Plan) -> str:
    """Return a plan as text for comparison, ignoring its concurrency."""
    return plan_text(msgspec.structs.replace(plan, concurrency=None))


def finished_run(prepared: Prepared, store: Store, known: RunRow | None, watch: Watch) -> RunView:
    """Start a run, or resume ``known``, an equal one, and return it once it is finished."""
    if known is not None and known.status == "finished":
        return finished_view(known, store)
    if known is None:
        ended = start_run(prepared, store, watch)
    else:
        ended = resume_run(
            known,
            store,
            watch,
            base_url=prepared.base_url,
            concurrency=prepared.plan.concurrency,
            allow_version_drift=prepared.identity.allow_version_drift,
        )
    if ended.stopped is not None:
        what = f"run {ended.view.run_id} was stopped: {ended.stopped}"
        raise IncompleteError(f"{what}; {SAME_AGAIN}")
    return ended.view


def _same_dataset(plan: Plan, store: Store, run_id: str, cluster: RayCluster | None) -> Dataset:
    """Open the dataset of a run again; refuse it if it has changed."""
    recorded = plan.dataset.responses
    dataset = plan_dataset(plan)
    if dataset.recorded != plan.dataset.responses_sha256:
        problem = "the recorded responses have changed since the run began"
        raise InputError(problem, "restore the file, or start a new run", str(recorded))
    other = sorted({*dataset.files} ^ {*plan.dataset.files})
    if other:
        what = f"`{other[0]}` is {'new' if other[0] in dataset.files else 'missing'}"
        problem = f"the dataset's files have changed since the run began: {what}"
        raise InputError(problem, "restore them, or start a new run", dataset.origin)
    if cluster is not None and dataset.slices():
        sha256, _ = cluster.result(cluster.call(hash_dataset, plan))
    else:
        sha256, _ = dataset.hashed()
    changed = first_change(dataset, plan, store.samples(run_id))
    if sha256 != plan.dataset.sha256:
        rows = sum(1 for _ in dataset.rows(needs_response=plan.target is None))
        count = f"{rows} rows instead of {plan.dataset.rows}"
        what = changed or (count if rows != plan.dataset.rows else "in rows not judged so far")
        problem = f"the dataset has changed since the run began: {what}"
        raise InputError(problem, "restore it, or start a new run", dataset.origin)
    if changed is not None:
        problem = f"the run has samples from a different version of the dataset: {changed}"
        raise InputError(problem, "start a new run", dataset.origin)
    return dataset


def _resumed(row: RunRow, changed: Mapping[str, object]) -> RunRow:
    """Return the row of a run that is in progress again, with fields of its metadata changed."""
    metadata = {**msgspec.json.decode(row.metadata), **changed}
    return sealed(
        msgspec.structs.replace(
            row,
            status="running",
            metadata=ENCODER.encode(metadata).decode(),
            finished_at=None,
            outcome=None,
            digest=None,
        )
    )


@contextmanager
def _claimed(store: Store, run_id: str) -> Generator[None]:
    with store.claim(run_id) as mine:
        if not mine:
            raise InputError("another process is working on the run", "wait for it", run_id)
        yield


def _failed_samples(store: Store, run_id: str) -> list[int]:
    """Return unreviewed samples with a failed request that may succeed now."""
    reviewed, failed = {review.number for review in store.reviews(run_id)}, list[int]()
    for number in store.transient_failures(run_id):
        sample = None if number in reviewed else store.sample(run_id, number)
        # Without the requests that were repeated successfully.
        used = () if sample is None else in_order(sample, store.exchanges_of(run_id, number))
        if any(isinstance(each, Failure) and each.transient for each in map(read_outcome, used)):
            failed.append(number)
    return failed


def delete_run(row: RunRow, store: Store) -> None:
    """Remove a run and all its stored data."""
    with _claimed(store, row.id):
        store.delete_run(row.id)


async def _work(
    prepared: Prepared,
    store: Store,
    row: RunRow,
    begin: Callable[[], object],
    watch: Watch,
    cluster: RayCluster | None,
) -> RunResult:
    """Begin a run, or begin it again, and work on it until it is finished or stopped."""
    plan, base_url, spread = prepared.plan, prepared.base_url, None
    # Ray reports lost nodes on stdout.
    with nullcontext() if cluster is None else redirect_stdout(sys.stderr):
        if cluster is not None:
            spread = ShardedRun(cluster, store, row, plan, base_url)
        begin()
        job = Job(store, row, plan)
        with watch(job):
            row = await job.work(prepared.dataset, base_url, spread)
    if row.status == "finished":
        return RunResult(view=finished_view(row, store))
    view = view_unfinished(row, store, working=False)
    return RunResult(view=view, stopped=job.why_stopped)
