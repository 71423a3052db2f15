"""The store of runs, as commands name it."""

import shlex
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from jurybox.engine.ports import Store

store_option = click.option(
    "--store",
    "store_url",
    metavar="URL",
    help="Where runs are kept: a file, or postgresql://...; else what JURYBOX_STORE names, or"
    " .jurybox/jurybox.db.",
)
run_argument = click.argument("run", metavar="RUN")
"""A run's id, the beginning of its id, or ``last``."""


@contextmanager
def opened(url: str | None, *, create: bool = False) -> Generator["Store"]:
    """Open the store for a command.

    Raises:
        InputError: there is none.
        IncompleteError: it can't be opened.

    """
    from jurybox.wiring import open_run_store

    store = open_run_store(url, create=create)
    try:
        yield store
    finally:
        store.close()


def shown_store(url: str | None) -> str:
    """Return where runs are kept, without the password that an address may hold."""
    from jurybox.wiring import DEFAULT_STORE

    where = url or read_settings().store or DEFAULT_STORE
    if not where.lower().startswith("postgres"):
        return where
    parts = urlsplit(where)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def resume_line(run_id: str, url: str | None) -> str:
    """Return how a stopped run is gone on with."""
    line = f"go on with: jurybox resume {run_id}"
    if url is None:
        return line
    shown = shown_store(url)
    return f"{line} --store {shlex.quote(shown) if shown == url else 'URL'}"
