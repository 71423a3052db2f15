"""A group of commands that are imported only when they are called."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from jurybox.text_format import closest


class LazyGroup(click.Group):
    """Knows the module of each command, whose ``command`` it is, and its one line of help.

    Called without a command, it prints its help and is content.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - whatever click's own group takes
        lazy: Mapping[str, tuple[str, str]],
        **kwargs: Any,  # noqa: ANN401 - the same
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help where no command is named."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order given."""
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in self._lazy:
            return None
        return import_module(self._lazy[cmd_name][0]).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where there is none of that name."""
        if args and args[0] not in self._lazy and not args[0].startswith("-"):
            meant = closest(args[0], self._lazy)
            hint = "" if meant is None else f"; did you mean `{meant}`?"
            raise click.UsageError(f"no command `{args[0]}`{hint}", ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing one of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self._lazy.items()])
