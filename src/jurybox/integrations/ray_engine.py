"""Runs parts of a run on the workers of a Ray cluster, within one shared budget per endpoint.

The caller defines the parts and the function that works on a part. A `Coordinator`, an actor on the
driver's node, grants workers their concurrent calls and the start times of requests, collects their
progress, and stops them. When a worker is lost, Ray gives its part to another worker.
"""

import asyncio
import importlib
import logging
import os
import pickle
import secrets
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Final, TypeVar

import msgspec

from jurybox.engine.limiter import EndpointLimiter, SharedBudget
from jurybox.errors import IncompleteError, InputError
from jurybox.suite.model_spec import ModelSpec

Ray = Any  # The library is an optional extra, and most of its API is untyped.

# Seconds between a worker's renewals of its share; each also reports its progress.
_BEAT: Final = 0.2
_POLL: Final = 0.1
# Seconds within which a running cluster accepts a connection.
_PATIENCE: Final = 10.0
# How many times Ray gives a part to another worker after losing its worker.
_MOST_LOSSES: Final = 20


class StopOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A request to all workers to end, soon or at once."""

    reason: str
    at_once: bool


def _library() -> Ray:
    """Import Ray without its usage reports."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        return importlib.import_module("ray")
    except ImportError:
        hint = "install it with: pip install 'jurybox[ray]'"
        raise InputError("--engine ray needs Ray", hint) from None


class Coordinator:
    """The state that all workers of a run share; an actor, so it handles one call at a time."""

    def __init__(self, calls: int) -> None:
        self._budget = SharedBudget(calls)
        self._reports: dict[str, bytes] = {}
        self._order: StopOrder | None = None
        self._secrets = b""

    async def keep(self, secrets: bytes) -> None:
        """Keep the workers' secrets: Ray may write arguments to disk, but not an actor's state."""
        self._secrets = secrets

    async def secrets(self) -> bytes:
        """Return the secrets."""
        return self._secrets

    async def beat(
        self, holder: str, demands: Mapping[str, tuple[int, int]], report: bytes
    ) -> tuple[dict[str, int], StopOrder | None]:
        """Take a worker's report; return its calls per endpoint, and the order to stop, if any."""
        self._reports[holder] = report
        return self._budget.renew(holder, demands, time.monotonic()), self._order

    async def turns(
        self, endpoint: str, spec: ModelSpec, tokens: Sequence[float], correction: float
    ) -> tuple[list[float], float]:
        """Return in how many seconds each request may start, and when to ask for more."""
        now = time.monotonic()
        return self._budget.turns(endpoint, spec, tokens, now, correction=correction)

    async def leave(self, holder: str) -> None:
        """Release a worker's share."""
        self._budget.release(holder)

    async def stop(self, order: StopOrder) -> None:
        """Stop all workers, present and future."""
        self._order = order

    async def reports(self, parts: Collection[str]) -> list[bytes]:
        """Return the latest reports on these parts, and forget all others."""
        self._reports = {name: each for name, each in self._reports.items() if name in parts}
        return [*self._reports.values()]


class Host:
    """An object on the driver's node, whose methods workers call one at a time; an actor.

    If two workers have the same part, because one of them only seemed to be lost, the later one
    keeps it.
    """

    def __init__(self, make: Callable[[], object]) -> None:
        self._object = make()
        self._workers: dict[str, str] = {}

    def take(self, part: str, worker: str) -> None:
        """Give a part to a worker."""
        self._workers[part] = worker

    def call(self, part: str, worker: str, name: str, given: Sequence[object]) -> object:
        """Call a method for a worker."""
        if self._workers[part] != worker:
            raise IncompleteError(f"another worker has part {part}")
        found: Any = getattr(self._object, name)(*given)
        return list(found) if isinstance(found, Iterator) else found  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


class _WorkerShare:
    """This worker's share of an endpoint; asks for several requests' start times at once."""

    def __init__(self, coordinator: Ray, limiter: EndpointLimiter) -> None:
        self.calls = 0
        self.limiter = limiter
        self.is_known = False
        self._coordinator = coordinator
        self._waiting: dict[str, deque[tuple[float, asyncio.Future[None]]]] = {}
        self._corrections: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    @property
    def demand(self) -> tuple[int, int]:
        """How many calls the worker wants and uses; it wants the whole limit at first."""
        limiter = self.limiter
        wanted = max(1, limiter.wanted) if self.is_known else limiter.concurrency.limit
        return wanted, limiter.used

    def grant(self, calls: int) -> None:
        """Use this many concurrent calls from now on."""
        self.calls, self.is_known = calls, True
        self.limiter.slots.wake()

    async def turn(self, spec: ModelSpec, tokens: float) -> None:
        """Wait until the limits that all workers share allow a request of about ``tokens``."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(spec.model, deque()).append((tokens, turn))
        asking = self._asking.get(spec.model)
        if asking is None or asking.done():
            self._asking[spec.model] = asyncio.create_task(self._ask(spec))
        await turn

    def correct(self, spec: ModelSpec, reserved: float, used: float) -> None:
        """Record an estimate's error in tokens; the next request for turns sends it."""
        known = self._corrections.get(spec.model, 0.0)
        self._corrections[spec.model] = known + used - reserved

    async def _ask(self, spec: ModelSpec) -> None:
        waiting, loop = self._waiting[spec.model], asyncio.get_running_loop()
        while waiting:
            tokens = [each for each, _ in waiting]
            correction = self._corrections.pop(spec.model, 0.0)
            starts, pause = await self._coordinator.turns.remote(
                self.limiter.name, spec, tokens, correction
            )
            for start in starts:
                _, turn = waiting.popleft()
                loop.call_later(start, _resolve, turn)
            await asyncio.sleep(pause)


def _resolve(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # its sample may have been cancelled
        turn.set_result(None)


class WorkerLink:
    """A worker's connection to its run: its shares, its reports, and the order to stop."""

    def __init__(self, coordinator: Ray, host: Ray, holder: str) -> None:
        self._coordinator = coordinator
        self._host = host
        self._holder = holder
        self._worker = secrets.token_hex(8)
        if host is not None:
            _library().get(host.take.remote(holder, self._worker))
        self._shares: dict[str, _WorkerShare] = {}
        self._changed = asyncio.Event()

    def share(self, limiter: EndpointLimiter) -> _WorkerShare:
        """Return this worker's share of an endpoint."""
        share = self._shares[limiter.name] = _WorkerShare(self._coordinator, limiter)
        self._changed.set()
        return share

    async def secrets(self) -> bytes:
        """Return the secrets that the driver gave to all workers."""
        return await self._coordinator.secrets.remote()

    def call_host(self, name: str, *given: object) -> Any:  # noqa: ANN401 - what it returned
        """Call a method of the object that the driver's node hosts."""
        ray = _library()
        try:
            return ray.get(self._host.call.remote(self._holder, self._worker, name, given))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None

    @asynccontextmanager
    async def connected(
        self, report: Callable[[], bytes], stop: Callable[[StopOrder], None]
    ) -> AsyncGenerator[None]:
        """Renew the shares and report progress until the block ends."""
        beating = asyncio.create_task(self._beat(report, stop))
        try:
            yield
        finally:
            beating.cancel()
            await self._coordinator.leave.remote(self._holder)

    async def _beat(self, report: Callable[[], bytes], stop: Callable[[StopOrder], None]) -> None:
        known: StopOrder | None = None
        while True:
            self._changed.clear()
            demands = {name: share.demand for name, share in self._shares.items()}
            granted, order = await self._coordinator.beat.remote(self._holder, demands, report())
            for name, calls in granted.items():
                self._shares[name].grant(calls)
            if order is not None and order != known:
                known = order
                stop(order)
            try:
                async with asyncio.timeout(_BEAT):
                    await self._changed.wait()
            except TimeoutError:
                pass


P = TypeVar("P")
PartWork = Callable[[P, WorkerLink], str]
"""Processes a part in a worker; returns why it is unfinished, or "". A module-level function."""


def _do_part(work: PartWork[P], coordinator: Ray, host: Ray, holder: str, part: P) -> str:
    return work(part, WorkerLink(coordinator, host, holder))


def _do_row(row: dict[str, Any], work: PartWork[Any], actors: Sequence[Ray]) -> dict[str, str]:
    part = pickle.loads(row["part"])  # noqa: S301 - made by the driver
    coordinator, host = actors
    return {"name": row["name"], "reason": _do_part(work, coordinator, host, row["name"], part)}


def _worker_failed(error: Exception) -> IncompleteError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return IncompleteError(f"a worker of the cluster failed: {lines[-1]}")


def _knock(address: str) -> None:
    """Check that something listens at an address; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdecimal():
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


class RayCluster:
    """A connection to Ray; without an address, to a new cluster on this machine."""

    def __init__(self, address: str | None) -> None:
        """Remember the address; the first use connects."""
        self._address = address
        self._coordinator: Ray = None
        self._host: Ray = None

    @cached_property
    def _ray(self) -> Ray:
        """The Ray library, connected to the cluster."""
        ray, address = _library(), self._address
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        own = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            _knock(address or "")
            ray.init(address=address or "local", **quiet, **({} if address else own))
        except (OSError, OverflowError, RuntimeError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            where = address or "on this machine"
            problem = f"no Ray cluster {where} ({reason}); check --address and `ray status`"
            raise IncompleteError(problem) from None
        return ray

    @cached_property
    def cpus(self) -> int:
        """The number of parts that can run at once."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def begin_run(
        self, calls: int, secrets: bytes, host: Callable[[], object] | None = None
    ) -> None:
        """Start a run with at most ``calls`` concurrent calls per endpoint.

        ``host`` makes the object that workers call on the driver's node.
        """
        self._coordinator = self._actor(Coordinator, calls)
        self._host = None if host is None else self._actor(Host, host)
        self._ray.get(self._coordinator.keep.remote(secrets))  # before any worker asks for them

    def _actor(self, kind: type, *given: object) -> Ray:
        # On the driver's node, so that it and the driver are lost together.
        node = self._ray.get_runtime_context().get_node_id()
        strategies: Ray = importlib.import_module("ray.util.scheduling_strategies")
        here = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        remote = self._ray.remote(kind).options(num_cpus=0, scheduling_strategy=here)
        return remote.remote(*given)

    def call(self, function: Callable[..., object], *given: object) -> Ray:
        """Call a module-level function in a worker; if the worker is lost, in another one."""
        remote = self._ray.remote(function).options(num_cpus=1, max_retries=_MOST_LOSSES)
        return remote.remote(*given)

    def submit(self, work: PartWork[P], name: str, part: P) -> Ray:
        """Process a part of the run in a worker."""
        return self.call(_do_part, work, self._coordinator, self._host, name, part)

    def map(self, work: PartWork[P], parts: Mapping[str, P]) -> Iterator[tuple[str, str]]:
        """Process parts through Ray Data; yield each one's name and why it is unfinished, or ""."""
        data: Ray = importlib.import_module("ray.data")
        data.DataContext.get_current().enable_progress_bars = False
        named = data.from_items(
            [{"name": name, "part": pickle.dumps(part)} for name, part in parts.items()],
            override_num_blocks=len(parts),
        )
        actors = (self._coordinator, self._host)
        done = named.map(_do_row, fn_kwargs={"work": work, "actors": actors}, num_cpus=1)
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        try:
            for row in done.iter_rows():
                yield row["name"], row["reason"]
        except self._ray.exceptions.RayError as error:
            raise _worker_failed(error) from None

    async def wait(self, parts: Sequence[Ray]) -> list[Ray]:
        """Return the parts that are done, after a short wait for all of them."""
        done, _ = await asyncio.to_thread(
            self._ray.wait, [*parts], num_returns=len(parts), timeout=_POLL, fetch_local=False
        )
        return done

    def result(self, part: Ray) -> Any:  # noqa: ANN401 - what the function returned
        """Wait for a part, and return its result."""
        try:
            return self._ray.get(part)
        except self._ray.exceptions.RayError as error:
            raise _worker_failed(error) from None

    async def reports(self, parts: Collection[str]) -> list[bytes]:
        """Return the latest reports on these parts."""
        return await self._coordinator.reports.remote(parts)

    def stop(self, reason: str, *, at_once: bool) -> None:
        """Stop all workers."""
        self._coordinator.stop.remote(StopOrder(reason=reason, at_once=at_once))

    def close(self) -> None:
        """Disconnect; a cluster that was started here is stopped."""
        if "_ray" in self.__dict__:
            self._ray.shutdown()
