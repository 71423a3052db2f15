"""Who answers in a run: the models of its plan, behind their limits, and the cache."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.engine.caller import Caller, Callers, Limits, SampleState
from jurybox.engine.plan import Plan, TargetPlan
from jurybox.engine.ports import Model, Store
from jurybox.engine.records import read_outcome, sealed
from jurybox.engine.transcript import ModelSession
from jurybox.errors import InputError
from jurybox.judging.exchange import ModelReply, ModelRequest, Outcome
from jurybox.models.command import CommandModel
from jurybox.models.names import ModelName
from jurybox.scoring.sample_result import Role
from jurybox.settings import Settings
from jurybox.text_format import listed
from jurybox.wiring import build_models

if TYPE_CHECKING:
    from jurybox.models.batched import BatchedModel, BatchLog

# What these answer may change without their names changing, so nobody else's answer is theirs.
_OWN: Final = ("command/", "python/", "replay/")

# A batch holds what all samples under way ask, and may take hours however few it holds, so they
# should be many; but their prompts stay in memory until they are answered.
_IN_BATCHES: Final = 2000
# Judges that answer late are asked without a limit of calls; each request gets four attempts, and
# the next one needs no pause, since it waits for the next batch.
_ANY_NUMBER: Final = 10**9
_LATE: Final = Limits(
    concurrency=_ANY_NUMBER,
    start=_ANY_NUMBER,
    rate_limit_attempts=Limits().attempts,
    retry_reserve=_ANY_NUMBER,
    first_delay=0.0,
)


@asynccontextmanager
async def open_session(
    plan: Plan,
    settings: Settings,
    store: Store,
    base_url: str | None = None,
    batched: Callable[[Mapping[str, Model]], Mapping[str, Model]] | None = None,
) -> AsyncGenerator[ModelSession]:
    """Build the models of a plan, and let go of them at the end.

    Where the plan says so, judges are asked through what ``batched`` makes of them.

    Raises:
        InputError: a model can't be had.
        IncompleteError: the store is in trouble.

    """
    models = plan_models(plan, settings, base_url)
    judges: Mapping[str, Model] = {name: models[name] for name in plan.judges}
    if plan.batch and batched is not None:
        judges = batched(judges)
    try:
        yield ModelSession(
            call=_Callers(plan, models, judges).call,
            endpoint=lambda model: models[model].endpoint,
            window=_window(plan),
            lookup=_finder(store) if plan.cache else None,
        )
    finally:
        for model in (*judges.values(), *models.values()):
            await model.aclose()


def plan_models(plan: Plan, settings: Settings, base_url: str | None) -> dict[str, Model]:
    """Build the models of a plan; they connect to nobody before they are asked.

    Raises:
        InputError: a model can't be had.

    """
    names = list(plan.judges)
    target = plan.target
    if target is not None and not target.command:
        names.append(target.model)
    address = base_url or plan.base_url
    models = build_models(names, settings, address, plan.folder or None)
    if target is not None and target.command:
        models[target.model] = _command(target, plan.folder)
    return models


def _command(target: TargetPlan, folder: str) -> Model:
    return CommandModel(target.command, stdin=target.stdin, cwd=Path(folder))


class _Callers:
    """Calls models; a time-out of the system under test is a measurement and isn't retried."""

    def __init__(
        self, plan: Plan, models: Mapping[str, Model], judges: Mapping[str, Model]
    ) -> None:
        limits = Limits() if plan.concurrency is None else _limits(plan.concurrency)
        callers = Callers(limits)
        judged = Callers(_LATE) if plan.batch else callers
        self._judges = {
            name: judged.caller(model, timeout=plan.judge_timeout) for name, model in judges.items()
        }
        self._target: Caller | None = None
        if plan.target is not None:
            model = models[plan.target.model]
            timeout = plan.target.timeout
            self._target = callers.caller(model, retry_timeouts=False, timeout=timeout)

    def call(self, role: Role, request: ModelRequest, state: SampleState) -> Awaitable[Outcome]:
        if role == "target" and self._target is not None:
            return self._target(request, state)
        return self._judges[request.model](request, state)


def _limits(concurrency: int) -> Limits:
    # Whoever says how many knows the endpoint; to feel one's way up takes seconds.
    return Limits(concurrency=concurrency, start=concurrency)


def _window(plan: Plan) -> int:
    """Return how many samples may be in flight: enough to keep all slots of the endpoints in use.

    For each that waits for a reply there is one whose request is ready and takes its slot at once.
    """
    if plan.batch:
        return _IN_BATCHES
    places = (plan.concurrency or Limits().concurrency) * (1 if plan.target is None else 2)
    return 2 * places + 8


def _finder(store: Store) -> Callable[[str, str], Awaitable[ModelReply | None]]:
    """Return what looks for a model's answer to an equal request in earlier runs."""

    async def find(model: str, key: str) -> ModelReply | None:
        if model.startswith(_OWN):
            return None
        row = await asyncio.to_thread(store.find_exchange, key)
        outcome = None if row is None else read_outcome(row)
        return outcome if isinstance(outcome, ModelReply) else None

    return find


_PROVIDERS: Final = ("anthropic", "openai")
_MEND: Final = "ask directly with --no-batch"


def check_batchable(judges: Sequence[str], origin: str) -> None:
    """See that all judges have batches, before anybody is asked anything.

    Raises:
        InputError: one has none, or there is no judge.

    """
    if not judges:
        raise InputError("there is no judge to ask in batches", _MEND, origin)
    for name in judges:
        if ModelName.parse(name).provider not in _PROVIDERS:
            hint = f"{_MEND}, or name judges of {listed(_PROVIDERS)}"
            raise InputError("the judge can't be asked in batches", hint, name)


def batched_model(name: str, model: Model, log: "BatchLog") -> "BatchedModel":
    """Return the model as it is asked in batches.

    Raises:
        InputError: its provider has none.

    """
    from jurybox.models.batch_provider import BatchableModel
    from jurybox.models.batched import BatchedModel

    if not isinstance(model, BatchableModel):
        raise InputError("the judge can't be asked in batches", _MEND, name)
    return BatchedModel(name, model, log)


def close_batches(store: Store, run_id: str, state: str) -> None:
    """Wait for no batch of a run any more: all is ``read``, or what they hold is ``gone``.

    Raises:
        IncompleteError: the store is in trouble.

    """
    for row in store.batches(run_id):
        if row.state in {"submitting", "submitted"}:
            store.update_batch(sealed(msgspec.structs.replace(row, state=state)))
