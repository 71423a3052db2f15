"""``jurybox serve``."""

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING, Final

import click

from jurybox.cli.options import at_store, check_extra, opened, option, shown_store, store_option
from jurybox.cli.output import say
from jurybox.cli.signals import FINE, close_on_signals
from jurybox.errors import InputError
from jurybox.settings import TOKEN
from jurybox.wiring import setting

if TYPE_CHECKING:
    import socket

    from jurybox.web.app_state import ServeSettings

_HOST: Final = "127.0.0.1"
_PORT: Final = 8080


@click.command("serve")
@option(
    "--host ADDRESS",
    "The address to listen on; visitors from other machines need a token.",
    default=_HOST,
)
@option(
    "--port N",
    "The port to listen on; 0 picks a free one.",
    type=click.IntRange(0, 65535),
    default=_PORT,
)
@option(
    "--allow-host NAME",
    "Another host name that browsers may use; can be repeated.",
    several="names",
)
@option(
    "--overlap N", "How many reviewers each sample is given to.", type=click.IntRange(1), default=1
)
@option(
    "--reviewer NAME",
    "Assign samples to this reviewer, instead of to the first who ask; can be repeated.",
    several="reviewers",
)
@option("--no-reveal", "Hide the judge's verdict also after a reviewer has scored a sample.")
@store_option
def command(
    host: str,
    port: int,
    names: tuple[str, ...],
    overlap: int,
    reviewers: tuple[str, ...],
    no_reveal: bool,
) -> int:
    """Show the runs in the store as pages in a browser, and as JSON for programs.

    The address is printed on standard error. Only this machine can reach it, unless --host names
    another address: then visitors need a token, which is generated and printed once, or taken from
    JURYBOX_TOKEN. Ctrl-C ends it.

    \b
    Examples:
      jurybox serve
      jurybox serve --port 0 --store runs.db
      jurybox serve --host 0.0.0.0 --allow-host evals.example
      jurybox serve --reviewer anna --reviewer ben --reviewer chris --overlap 2
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.review.review_input import read_reviewer

    check_extra("web", "fastapi", "hypercorn", "itsdangerous")
    people = tuple(dict.fromkeys(map(read_reviewer, reviewers)))
    if people and overlap > len(people):
        hint = "name more of them, or lower --overlap"
        raise InputError(f"there are only {len(people)} reviewers", hint, f"--overlap {overlap}")
    # Imported here: the web libraries take a third of a second.
    from jurybox.web.app_state import ServeSettings
    from jurybox.web.server import choose_token, is_loopback, known_names, open_port

    given = setting(TOKEN)
    known, addresses = known_names(host, names)
    with opened() as store, open_port(host, port) as door:
        settings = ServeSettings(
            store=store,
            store_name=shown_store(),
            at_store=at_store(),
            names=known,
            addresses=addresses,
            port=door.getsockname()[1],
            token=None if is_loopback(host) and given is None else choose_token(given),
            say=say,
            overlap=overlap,
            reviewers=people,
            reveal=not no_reveal,
        )
        asyncio.run(_serve(settings, door))
    _leave()
    return FINE


async def _serve(settings: "ServeSettings", door: "socket.socket") -> None:
    from jurybox.web.server import address_of, serve
    from jurybox.web.site import application, warm

    stopped = asyncio.Event()
    close_on_signals(stopped)
    app = application(settings)
    threading.Thread(target=warm, args=(app,), daemon=True).start()

    def ready() -> None:
        say(f"{address_of(door)} shows the runs of {settings.store_name}; Ctrl-C ends it")
        if settings.token is not None and setting(TOKEN) is None:
            say(f"token  {settings.token}")

    await serve(app, door, ready, stopped)


def _leave() -> None:
    """Exit at once, without waiting for unfinished responses."""
    busy = [each for each in threading.enumerate() if not each.daemon]
    if len(busy) > 1:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(FINE)
