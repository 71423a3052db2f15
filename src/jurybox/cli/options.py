"""Options that several commands share, and the store they name."""

import shlex
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jurybox.cli.output import remember_json
from jurybox.errors import InputError
from jurybox.settings import STORE
from jurybox.text_format import closest
from jurybox.wiring import setting

if TYPE_CHECKING:
    from jurybox.engine.records import RunRow
    from jurybox.integrations.ray_engine import RayCluster
    from jurybox.storage.store import Store

json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=remember_json,
    help="Print only JSON on standard output.",
)
_STORE: Final = "jurybox.store"


def name_store(ctx: click.Context, _: click.Parameter | None, url: str | None) -> None:
    """Remember which store the command uses."""
    ctx.meta[_STORE] = url


store_option = click.option(
    "--store",
    expose_value=False,
    callback=name_store,
    metavar="URL",
    help="Where runs are stored: a file, or postgresql://...; defaults to JURYBOX_STORE, then"
    " .jurybox/jurybox.db.",
)
base_url_option = click.option(
    "--base-url",
    metavar="URL",
    help="The address of an OpenAI-compatible endpoint, for models without their own.",
)
judges_option = click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="A judge model, such as openai/gpt-4.1-2025-04-14, instead of the suite's or the run's;"
    " repeat it for a mixed jury.",
)
votes_option = click.option(
    "--votes",
    type=click.IntRange(1, 99),
    metavar="N",
    help="Votes per sample; defaults to the suite's, then to the rubric's.",
)
max_cost_option = click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="DOLLARS",
    help="Stop before the run could cost more, counting calls in flight; it can be resumed.",
)
gold_option = click.option(
    "--gold",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Human labels: rows with `id` and `gold` or `gold_winner`; defaults to the run's reviews,"
    " then to the labels in its rows.",
)
concurrency_option = click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="The maximum number of concurrent calls to one endpoint.",
)
accept_option = click.option(
    "--accept-unreviewed",
    is_flag=True,
    help="Don't wait for the reviews that the rubric requires; this is recorded with the run.",
)
unpinned_option = click.option(
    "--allow-unpinned",
    is_flag=True,
    help="Accept model names that don't state a version.",
)
version_drift_option = click.option(
    "--allow-version-drift",
    is_flag=True,
    help="Accept, and record, a different version of a model than its name states.",
)
level_option = click.option(
    "--level",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    metavar="P",
    help="The confidence level of intervals.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="The random seed; the same seed gives the same results.",
)
cluster_option = click.option(
    "--cluster",
    metavar="FIELD",
    help="Treat samples with the same value of this field as dependent, such as: scenario.",
)
engine_option = click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the run is executed: in this process, or on a Ray cluster.",
)
address_option = click.option(
    "--address",
    metavar="HOST:PORT",
    help="The Ray cluster; by default one is started on this machine for the run.",
)


@contextmanager
def cluster_of(name: str, address: str | None) -> "Generator[RayCluster | None]":
    """Yield the cluster named by the two options, if any, and disconnect at the end."""
    if name == "local":
        if address is not None:
            raise InputError("the local engine has no address", "add --engine ray", "--address")
        yield None
        return
    if address == "":
        raise InputError("it is empty", "give HOST:PORT, or leave it out", "--address")
    from jurybox.integrations.ray_engine import RayCluster

    with closing(RayCluster(address)) as cluster:
        yield cluster


class CommandGroup(click.Group):
    """A group that prints its help if no command is named, and suggests the nearest name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help if no command is named."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of their definition."""
        del ctx
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the nearest command for an unknown name."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            close = closest(args[0], known)
            hint = "" if close is None else f"; did you mean `{close}`?"
            raise click.UsageError(f"no command `{args[0]}`{hint}", ctx=ctx)
        return super().resolve_command(ctx, args)


def named_store() -> str | None:
    """Return the store that the command line names, if any."""
    return click.get_current_context().meta.get(_STORE)


@contextmanager
def opened(*, create: bool = False) -> Generator["Store"]:
    """Open the store of a command."""
    from jurybox.wiring import open_run_store

    with closing(open_run_store(named_store(), create=create)) as store:
        yield store


def stored_run(command: Callable[..., object]) -> Callable[..., object]:
    """Add RUN, ``--store`` and ``--json``; the command gets the open store and the run's row."""

    @wraps(command)
    def found(run: str, **given: Any) -> object:  # noqa: ANN401 - those of the command
        with opened_run(run) as (store, row):
            return command(store, row, **given)

    return click.argument("run", metavar="RUN")(store_option(json_option(found)))


@contextmanager
def opened_run(name: str) -> Generator[tuple["Store", "RunRow"]]:
    """Open the store of a command, and find a run in it."""
    from jurybox.wiring import find_run

    with opened() as store:
        yield store, find_run(store, name)


def shown_store() -> str:
    """Return where runs are stored, without the password of an address."""
    from jurybox.wiring import DEFAULT_STORE, without_secrets

    return without_secrets(named_store() or setting(STORE) or DEFAULT_STORE)


def resume_line(run_id: str) -> str:
    """Return how to resume a stopped run."""
    line, url = f"continue with: jurybox resume {run_id}", named_store()
    if url is None:
        return line
    shown = shown_store()
    return f"{line} --store {shlex.quote(shown) if shown == url else 'URL'}"
