"""``jurybox serve``."""

import asyncio
import os
import sys
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from jurybox.cli.exits import FINE
from jurybox.cli.output import say
from jurybox.cli.signals import close_on_signals
from jurybox.cli.stores import opened, shown_store, store_option
from jurybox.errors import InputError

if TYPE_CHECKING:
    import socket

    from jurybox.engine.ports import Store

_HOST: Final = "127.0.0.1"
_PORT: Final = 8080
_NEEDED: Final = ("fastapi", "hypercorn", "itsdangerous")


@click.command("serve")
@click.option(
    "--host",
    default=_HOST,
    show_default=True,
    metavar="ADDRESS",
    help="The address to answer on; one that others can reach asks them for a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    metavar="N",
    help="The port to answer on; 0 picks a free one.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="Another name by which browsers may ask for it; can be given several times.",
)
@store_option
def command(host: str, port: int, names: tuple[str, ...], store_url: str | None) -> int:
    """Show the runs of the store as pages in a browser, and as JSON for programs.

    The address is printed on standard error. Only this machine can reach it, unless --host says
    otherwise: then whoever comes has to show a token, which is printed once, or is the one that
    JURYBOX_TOKEN holds. Ctrl-C ends it.

    \b
    Examples:
      jurybox serve
      jurybox serve --port 0 --store runs.db
      jurybox serve --host 0.0.0.0 --allow-host evals.example
    """  # noqa: D301 - click reads \b as "keep these lines"
    for name in _NEEDED:
        if find_spec(name) is None:
            raise InputError(
                f"{name} is not installed", "install it with: pip install 'jurybox[web]'"
            )
    # Not before it is called: the libraries behind it take a third of a second.
    from jurybox.web.server import open_port

    with opened(store_url) as store:
        door = open_port(host, port)
        asyncio.run(_serve(host, door, names, store, shown_store(store_url)))
    _leave()
    return FINE


async def _serve(
    host: str, door: "socket.socket", names: tuple[str, ...], store: "Store", store_name: str
) -> None:
    from jurybox.web.app_state import ServeSettings
    from jurybox.web.server import address_of, choose_token, is_loopback, known_names, serve
    from jurybox.web.site import application, warm
    from jurybox.wiring import read_settings

    given = read_settings().token
    token = None if is_loopback(host) and given is None else choose_token(given)
    known, addresses = known_names(host, names)
    settings = ServeSettings(
        store=store,
        store_name=store_name,
        names=known,
        addresses=addresses,
        port=door.getsockname()[1],
        token=token,
        say=say,
    )
    stopped = asyncio.Event()
    close_on_signals(stopped)
    app = application(settings)
    threading.Thread(target=warm, args=(app,), daemon=True).start()

    def ready() -> None:
        say(f"{address_of(door)} shows the runs of {store_name}; Ctrl-C ends it")
        if token is not None and given is None:
            say(f"token  {token}")

    await serve(app, door, ready, stopped)


def _leave() -> None:
    """End at once where a page is still being made: nobody waits for it any more."""
    busy = [each for each in threading.enumerate() if not each.daemon]
    if len(busy) > 1:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(FINE)
