"""Blocking versions of async functions, which also work inside a notebook's event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def blocking(name: str, function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return a blocking version of an async function, called ``name``."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_blocking(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    return call


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion, in a separate thread if this one has a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _run_in_thread(work)


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()

    async def cancellable() -> T:
        task = asyncio.ensure_future(work)
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(max_workers=1) as pool:
        done = pool.submit(asyncio.run, cancellable())
        try:
            return done.result()
        except KeyboardInterrupt:
            # Finished work is kept, as after any other Ctrl-C.
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
            raise
