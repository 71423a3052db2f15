"""``jurybox mcp``."""

import click

from jurybox.cli.options import check_extra, named_store, store_option


@click.command("mcp")
@store_option
def command() -> None:
    """Serve jurybox to agents through the Model Context Protocol, on standard input and output.

    The tools are evaluate, compare, run, show, list_rubrics, check_rubric, prompt and check_reply.
    An agent starts this command itself; name it in the agent's settings.

    \b
    Examples:
      jurybox mcp
      jurybox mcp --store runs.db
    """  # noqa: D301 - click reads \b as "keep these lines"
    check_extra("mcp", "mcp")
    from jurybox.mcp_server import mcp_server

    mcp_server(named_store()).run("stdio")
