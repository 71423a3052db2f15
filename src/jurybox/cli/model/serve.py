"""``jurybox model serve``."""

import asyncio
from typing import TYPE_CHECKING, Final

import click
import msgspec

from jurybox.cli.output import json_option, say
from jurybox.cli.signals import close_on_signals
from jurybox.models.local.catalogue import default_judge

if TYPE_CHECKING:
    import socket

    from jurybox.web.model_server.completions import Served

_PORT: Final = 8765


@click.command("serve")
@click.argument("name", required=False)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_PORT,
    show_default=True,
    metavar="N",
    help="The port to answer on; 0 picks a free one.",
)
@json_option
def command(name: str | None, port: int, as_json: bool) -> None:
    """Answer as an OpenAI-compatible endpoint with the model NAME, on this machine only.

    NAME is a model of the catalogue or the path of a .gguf file; the model that judges where none
    is named. The address is the first line on standard output. Ctrl-C ends it.

    \b
    Examples:
      jurybox model serve
      jurybox model serve smollm2-135m --port 0
      jurybox model serve ./tiny.gguf --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    # Not before it is called: the library behind it takes a third of a second.
    from jurybox.web.model_server.serving import find_model, open_port

    wanted = default_judge().name if name is None else name.removeprefix("local/")
    served = find_model(wanted)
    asyncio.run(_serve(served, open_port(port), as_json=as_json))


async def _serve(served: "Served", port: "socket.socket", *, as_json: bool) -> None:
    from jurybox.web.model_server.serving import serve

    address, number = port.getsockname()
    url = f"http://{address}:{number}/v1"
    stopped = asyncio.Event()
    close_on_signals(stopped)

    def ready() -> None:
        told = {"url": url, "model": served.id, "port": number}
        click.echo(msgspec.json.encode(told) if as_json else url)
        say(f"{served.id} answers as `openai/{served.id} --base-url {url}`; Ctrl-C ends it")

    say(f"loading {served.id}")
    await serve(served, port, ready, stopped)
