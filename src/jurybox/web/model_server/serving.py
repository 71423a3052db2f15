"""From a model's name to a server on this machine's own address, and to its end."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aiohttp import web

from jurybox.errors import InputError
from jurybox.judging.exchange import ModelRequest
from jurybox.rubric.model import Generation
from jurybox.running.ports import ModelTrouble
from jurybox.sample import Turn
from jurybox.web.model_server.completions import Completions, Served
from jurybox.wiring import read_settings
from jurybox.wiring.models import build_models, local_file

ADDRESS: Final = "127.0.0.1"
# What is left to do then is to hand out refusals.
_LONGEST_GOODBYE: Final = 5.0
_IDLE: Final = 75.0
_BACKLOG: Final = 128


def find_model(name: str) -> Served:
    """Return an embedded model by its name or the path of its file; nothing is loaded yet.

    Raises:
        InputError: there is no such model, it isn't on this machine, or nothing can run it.

    """
    settings = read_settings()
    file = local_file(name, os.getcwd(), settings)  # noqa: PTH109 - as models are built
    full = f"local/{name}"
    model = build_models([full], settings)[full]
    names = (Path(name).name, file.path.stem)
    if file.entry is not None:
        names = (file.entry.name, *file.entry.aliases, *names)
    created = int(file.path.stat().st_mtime)
    return Served(id=names[0], names=names[1:], created=created, model=model)


def open_port(port: int) -> socket.socket:
    """Take a port of this machine's own address, which no other machine can reach.

    Raises:
        InputError: another program has it, or it isn't for everybody.

    """
    taken = socket.socket()
    try:
        # Connections of a server that has just ended don't keep the next one from starting.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((ADDRESS, port))
        taken.listen(_BACKLOG)
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            problem = "another program uses it"
        else:
            problem = f"can't be used ({(error.strerror or str(error)).lower()})"
        raise InputError(problem, "choose another, or 0 for a free one", f"port {port}") from None
    return taken


async def serve(
    served: Served, port: socket.socket, ready: Callable[[], object], stopped: asyncio.Event
) -> None:
    """Load the model, say that it is ready, and answer until it is to stop.

    Who asks before waits for the model to be loaded.

    Raises:
        InputError: the model can't be loaded.

    """
    completions = Completions(served)
    runner = web.AppRunner(
        completions.application(),
        access_log=None,
        logger=_silent(),
        auto_decompress=False,
        handler_cancellation=True,
        keepalive_timeout=_IDLE,
        shutdown_timeout=_LONGEST_GOODBYE,
    )
    try:
        await _load(served, stopped)
        if not stopped.is_set():
            await runner.setup()
            await web.SockSite(runner, port).start()
            ready()
            await stopped.wait()
    finally:
        completions.stop()
        await served.model.aclose()
        await runner.cleanup()
        port.close()


async def _load(served: Served, stopped: asyncio.Event) -> None:
    """Ask for one token, so that a file that can't be used is found out now."""
    request = ModelRequest(
        model=served.id,
        messages=(Turn(role="user", content="."),),
        generation=Generation(max_tokens=1),
    )
    loading = asyncio.ensure_future(served.model.complete(request))
    ending = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait([loading, ending], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (loading, ending):
            task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        try:
            await loading
        except ModelTrouble as trouble:
            # Another question may fare better, unless it is the file's fault.
            if trouble.everybody:
                mend = "check the file, or use another model"
                raise InputError(str(trouble), mend, served.model.endpoint) from None


def _silent() -> logging.Logger:
    """Return a log that goes nowhere: what the library notes may hold parts of a request."""
    logger = logging.getLogger("jurybox.web")
    logger.disabled = True
    return logger
