"""Builds the models of a run from its plan, with limits, cache and batches."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from jurybox.app.ids import now_utc
from jurybox.engine.driver import Call, Callers, SampleState, routed
from jurybox.engine.limiter import Limits, Share
from jurybox.engine.plan import Plan
from jurybox.engine.ports import Model
from jurybox.engine.records import read_outcome, sealed
from jurybox.engine.runner import ModelSession
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome
from jurybox.judging.model_versions import contradiction
from jurybox.models.batched import BatchedModel, BatchLog, OpenBatch
from jurybox.models.chat_model import ChatModel
from jurybox.models.command import CommandModel
from jurybox.models.providers import HTTP_PROVIDERS, ModelName
from jurybox.sample import Usage
from jurybox.scoring.prices import cost
from jurybox.scoring.sample_result import Role
from jurybox.settings import PRICES
from jurybox.storage.store import Store
from jurybox.suite.model_spec import ModelSpec
from jurybox.text_format import listed
from jurybox.wiring import ModelBuilder, known_keys, read_limits, read_prices

# These models may answer differently under the same name, so their replies are never reused.
_UNCACHED: Final = ("command/", "python/", "replay/")

# A batch may take hours regardless of its size, so it should have many requests; but their prompts
# stay in memory until they are answered.
_BATCH_WINDOW: Final = 2000
_UNLIMITED: Final = 10**9
# Batched judges have no limit on calls. A retry waits for the next batch, so it needs no delay.
_BATCH_LIMITS: Final = Limits(
    concurrency=_UNLIMITED,
    start=_UNLIMITED,
    attempts=4,
    rate_limit_attempts=4,
    first_delay=0.0,
    patience=None,
)
_BATCH_PROVIDERS: Final = tuple(name for name, each in HTTP_PROVIDERS.items() if each.batches)
_NO_BATCH: Final = "ask directly with --no-batch"
RoleCall = Callable[[Role, ModelRequest, SampleState], Awaitable[Outcome]]


def plan_models(plan: Plan, base_url: str | None) -> tuple[dict[str, Model], Model | None]:
    """Build the judges of a plan by name, and its target; they connect with their first requests.

    A target and a judge of the same name may have different endpoints.
    """
    builder = ModelBuilder(base_url or plan.base_url, plan.folder or None)
    judges = {name: builder.build(spec) for name, spec in plan.judge_specs().items()}
    target = plan.target
    if target is None:
        return judges, None
    if not target.command:
        return judges, builder.build(target.spec)
    secrets = known_keys(plan.model_specs())
    folder = Path(plan.folder)
    return judges, CommandModel(target.command, stdin=target.stdin, cwd=folder, secrets=secrets)


@asynccontextmanager
async def open_session(  # noqa: PLR0913 - a plan and what a run adds to it, by keyword
    plan: Plan,
    store: Store,
    batches: "JudgeBatches",
    base_url: str | None = None,
    *,
    allow_version_drift: bool = False,
    budget: "Budget | None" = None,
    share: Share | None = None,
) -> AsyncGenerator[ModelSession]:
    """Build the models of a plan, and close them at the end.

    ``share`` limits this process if others use the same endpoints.
    """
    direct, target = plan_models(plan, base_url)
    judges: Mapping[str, Model] = batches.wrap(direct) if plan.batch else direct
    limits = read_limits(concurrency=plan.concurrency)
    callers = Callers(limits, on_failure=batches.on_change, share=share)
    judging = Callers(_BATCH_LIMITS) if plan.batch else callers
    specs = plan.judge_specs().items()
    asked = None
    if plan.target is not None and target is not None:
        spec = msgspec.structs.replace(plan.target.spec, timeout=plan.target.timeout)
        # A timeout of the system under test is a measurement, so it isn't retried.
        asked = callers.caller(target, spec, retry_timeouts=False)
    call = routed(asked, {name: judging.caller(judges[name], spec) for name, spec in specs})
    # More than twice the number of allowed calls.
    calls = (plan.concurrency or Limits().concurrency) * (1 if plan.target is None else 2)

    @cache
    def endpoint(role: Role, name: str) -> str:
        return (target if role == "target" and target else direct[name]).endpoint

    try:
        yield ModelSession(
            call=call if budget is None else budget.limited(call),
            endpoint=endpoint,
            window=_BATCH_WINDOW if plan.batch else 2 * calls + 8,
            outages=callers.outages,
            unwritten=callers.unwritten,
            lookup=_finder(store) if plan.cache else None,
            allow_version_drift=allow_version_drift,
        )
    finally:
        for model in (*judges.values(), *direct.values(), target):
            if model is not None:
                await model.aclose()


@asynccontextmanager
async def checked_route(
    specs: Sequence[ModelSpec],
    base_url: str | None,
    *,
    allow_version_drift: bool,
    patience: float | None = None,
) -> AsyncGenerator[Call]:
    """Provide one function that calls several models and refuses replies of other versions.

    If a reply comes from a different version, the function raises `IncompleteError`. ``patience``
    is how many seconds an endpoint may keep failing.
    """
    builder = ModelBuilder(base_url)
    models = {spec.model: builder.build(spec) for spec in specs}
    route = Callers(read_limits(patience=patience)).route(models, specs)

    async def call(request: ModelRequest) -> Outcome:
        outcome = await route(request)
        reported = outcome.model if isinstance(outcome, ModelReply) else None
        what = contradiction(request.model, reported)
        if what is not None and not allow_version_drift:
            raise IncompleteError(what)
        return outcome

    try:
        yield call
    finally:
        for model in models.values():
            await model.aclose()


class Budget:
    """Allows a request only if the run can't exceed its maximum cost.

    It counts the cost of all replies, and the maximum cost of calls in flight: one token per byte
    of the request, and the maximum tokens of a reply.
    """

    def __init__(self, plan: Plan, most: float) -> None:
        """Limit the cost to ``most`` US dollars."""
        if plan.batch:
            problem = "a batch is paid for as a whole, so nothing can limit its cost"
            raise InputError(problem, f"{_NO_BATCH}, or leave it out", "--max-cost")
        self.spent = 0.0
        self._in_flight = 0.0
        self._most = most
        self._prices = read_prices()
        self._changed = asyncio.Event()
        target = () if plan.target is None else (plan.target.model,)
        for model in (*target, *plan.judges):
            if cost(model, Usage(input_tokens=1, output_tokens=1), self._prices) is None:
                hint = f"add it to the file of prices ({PRICES}), or leave --max-cost out"
                raise InputError(
                    "its price is not known, so nothing can limit its cost", hint, model
                )

    def limited(self, call: RoleCall) -> RoleCall:
        """Return a function that calls a model once the budget has room for it."""
        return lambda role, request, state: self._call(request, lambda: call(role, request, state))

    async def _call(self, request: ModelRequest, send: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Send the request once the budget has room for it; fail if it never will."""
        highest = self._highest(request)
        while self.spent + self._in_flight + highest > self._most:
            if not self._in_flight:
                return self._refused(highest)
            self._changed.clear()
            await self._changed.wait()
        self._in_flight += highest
        try:
            outcome = await send()
        finally:
            self._in_flight = max(0.0, round(self._in_flight - highest, 12))
            self._changed.set()
        self.add(request, outcome)
        return outcome

    def add(self, request: ModelRequest, outcome: Outcome) -> None:
        """Add the cost of a reply; if it reports no usage, the maximum it may have cost."""
        if isinstance(outcome, Failure) or outcome.cached:
            return
        price = cost(request.model, outcome.usage, self._prices)
        self.spent += self._highest(request) if price is None else price

    def _highest(self, request: ModelRequest) -> float:
        usage = Usage(
            input_tokens=len(msgspec.json.encode(request)),
            output_tokens=request.generation.max_tokens,
        )
        return cost(request.model, usage, self._prices) or 0.0

    def _refused(self, highest: float) -> Failure:
        what = f"${self.spent:.4f} of ${self._most:g} is spent"
        message = f"{what}, and the next call may cost ${highest:.4f}; raise --max-cost to resume"
        return Failure(kind="refused", message=message, fatal=True, transient=True)


def _finder(store: Store) -> Callable[[str, str], Awaitable[ModelReply | None]]:
    """Return the function that looks up a model's reply to the same request in earlier runs."""

    async def find(model: str, key: str) -> ModelReply | None:
        if model.startswith(_UNCACHED):
            return None
        row = await asyncio.to_thread(store.find_exchange, key)
        outcome = None if row is None else read_outcome(row)
        return outcome if isinstance(outcome, ModelReply) else None

    return find


def check_batchable(judges: Sequence[str], origin: str) -> None:
    """Check that every judge can be asked in batches."""
    if not judges:
        raise InputError("there is no judge to ask in batches", _NO_BATCH, origin)
    for name in judges:
        if ModelName.parse(name).provider not in _BATCH_PROVIDERS:
            hint = f"{_NO_BATCH}, or name judges of {listed(_BATCH_PROVIDERS)}"
            raise InputError("the judge can't be asked in batches", hint, name)


class JudgeBatches:
    """The provider batches of a run's judges; empty if judges are asked directly."""

    def __init__(
        self, store: Store, run_id: str, on_change: Callable[[], None], warn: Callable[[str], None]
    ) -> None:
        self._store = store
        self._run_id = run_id
        self.on_change = on_change
        self._warn = warn
        self._models: dict[str, BatchedModel] = {}

    def wrap(self, models: Mapping[str, Model]) -> Mapping[str, Model]:
        """Return the judges as models that collect their requests into batches."""
        log = BatchLog(self._store, self._run_id, now_utc)
        for name, model in models.items():
            if not isinstance(model, ChatModel):
                raise InputError("the judge can't be asked in batches", _NO_BATCH, name)
            batched = self._models[name] = BatchedModel(name, model, log)
            batched.on_change, batched.warn = self.on_change, self._warn
        return self._models

    def stop(self, reason: str, *, at_once: bool) -> None:
        """Stop waiting for batches; they continue at the provider."""
        for model in self._models.values():
            model.stop(reason, at_once=at_once)

    def open(self) -> list[OpenBatch]:
        """Return the batches whose results are still missing."""
        return [each for model in self._models.values() for each in model.open.values()]


def close_batches(store: Store, run_id: str) -> None:
    """Mark the open batches of a run as read."""
    for row in store.batches(run_id):
        if row.state in {"submitting", "submitted"}:
            store.update_batch(sealed(msgspec.structs.replace(row, state="read")))
