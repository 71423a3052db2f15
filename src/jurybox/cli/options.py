"""Options that several commands share, and the store they name."""

import re
import shlex
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from jurybox.cli.output import remember_json
from jurybox.errors import InputError
from jurybox.settings import STORE
from jurybox.text_format import closest
from jurybox.wiring import setting

if TYPE_CHECKING:
    from jurybox.engine.records import RunRow
    from jurybox.storage.store import Store

_SPELLING: Final = re.compile(r"((?:-\w, )?--[\w/-]+)(?: (.+))?")
Command = TypeVar("Command", bound=Callable[..., object])


def option(
    spelling: str,
    text: str,
    *,
    name: str | None = None,
    several: str | None = None,
    **more: Any,  # noqa: ANN401 - those of `click.option`
) -> Callable[[Command], Command]:
    """Return an option by its spelling, such as ``-o, --output FILE``; a flag has no value.

    Flags such as ``--cache/--no-cache`` are None if neither is given.

    ``name`` is the parameter's name; ``several`` is its name if the option may be repeated.
    """
    found = _SPELLING.fullmatch(spelling)
    assert found is not None, spelling  # noqa: S101 - written in this package
    names = [*found[1].split(", "), *filter(None, [name, several])]
    if found[2] is None:
        more["is_flag"] = True
    else:
        more |= {"metavar": found[2], "multiple": several is not None}
    shown = "default" in more
    if "/" in found[1]:
        more["default"] = None
    return click.option(*names, help=text, show_default=shown, **more)


json_option = option(
    "--json", "Print only JSON on standard output.", expose_value=False, callback=remember_json
)
_STORE: Final = "jurybox.store"


def name_store(ctx: click.Context, _: click.Parameter | None, url: str | None) -> None:
    """Remember which store the command uses."""
    ctx.meta[_STORE] = url


store_option = option(
    "--store URL",
    "Where runs are stored: a file, or postgresql://...; defaults to JURYBOX_STORE, then"
    " .jurybox/jurybox.db.",
    expose_value=False,
    callback=name_store,
)
base_url_option = option(
    "--base-url URL", "The address of an OpenAI-compatible endpoint, for models without their own."
)
judges_option = option(
    "--judge MODEL",
    "A judge model, such as openai/gpt-4.1-2025-04-14; overrides the judges of a suite or a run."
    " Repeat it for a mixed jury.",
    several="judges",
)
votes_option = option(
    "--votes N",
    "Votes per sample; overrides a suite's number of votes and the rubric's.",
    type=click.IntRange(1, 99),
)
max_cost_option = option(
    "--max-cost DOLLARS",
    "Stop before the run could cost more, counting calls in progress; it can be resumed.",
    type=click.FloatRange(0, min_open=True),
)
gold_option = option(
    "--gold FILE",
    "Human labels: rows with `id` and `gold` or `gold_winner`; defaults to the run's reviews,"
    " then to the labels in its rows.",
    type=click.Path(path_type=Path),
)
concurrency_option = option(
    "--concurrency N",
    "The maximum number of concurrent calls to one endpoint.",
    type=click.IntRange(1, 10_000),
)
accept_option = option(
    "--accept-unreviewed",
    "Don't wait for the reviews that the rubric requires; this is recorded.",
)
unpinned_option = option("--allow-unpinned", "Accept model names that don't state a version.")
version_drift_option = option(
    "--allow-version-drift",
    "Accept, and record, a different version of a model than its name states.",
)
level_option = option(
    "--level P",
    "The confidence level of intervals.",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
)
seed_option = option(
    "--seed N",
    "The random seed; the same seed gives the same results.",
    type=click.IntRange(0),
    default=0,
)
cluster_option = option(
    "--cluster FIELD",
    "Treat samples with the same value of this field as dependent, such as: scenario.",
)
_engine_option = option(
    "--engine [local|ray]",
    "Where the run is executed: in this process, or on a Ray cluster.",
    type=click.Choice(["local", "ray"]),
    default="local",
)
_address_option = option(
    "--address HOST:PORT", "The Ray cluster; by default one is started on this machine for the run."
)


def check_extra(extra: str, *modules: str) -> None:
    """Refuse a command if a module of the extra that it needs isn't installed."""
    for name in modules:
        if find_spec(name) is None:
            hint = f"install it with: pip install 'jurybox[{extra}]'"
            raise InputError(f"{name} is not installed", hint)


def cluster_options(command: Callable[..., object]) -> Callable[..., object]:
    """Add ``--engine`` and ``--address``; the command gets the cluster that they name, or None."""

    @wraps(command)
    def spread(
        *args: object,
        engine: str,
        address: str | None,
        **given: Any,  # noqa: ANN401 - those of the command
    ) -> object:
        if engine == "local":
            if address is not None:
                raise InputError("the local engine has no address", "add --engine ray", "--address")
            return command(*args, cluster=None, **given)
        if address == "":
            raise InputError("it is empty", "give HOST:PORT, or leave it out", "--address")
        from jurybox.integrations.ray_engine import RayCluster

        with closing(RayCluster(address)) as cluster:
            return command(*args, cluster=cluster, **given)

    return _engine_option(_address_option(spread))


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
    return f"continue with: jurybox resume {run_id}{at_store()}"


def at_store() -> str:
    """Return the end of a command that uses this command's store; empty for the default store.

    An address with a password is left to the environment.
    """
    from jurybox.wiring import DEFAULT_STORE

    url, shown = named_store() or setting(STORE) or DEFAULT_STORE, shown_store()
    if url == DEFAULT_STORE:
        return ""
    return f" --store {shlex.quote(url)}" if shown == url else f' --store "${STORE}"'
