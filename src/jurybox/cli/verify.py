"""``jurybox verify``."""

import re
from typing import Any

import click
import msgspec

from jurybox.cli.options import json_option, opened_run, run_argument, store_option
from jurybox.cli.output import harmless, print_json
from jurybox.cli.signals import FINE, INCOMPLETE, fail
from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.storage.audit import Audit, audit

_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.IGNORECASE)


@click.command("verify")
@run_argument
@click.option("--digest", metavar="HEX", help="Also compare with a digest saved elsewhere.")
@store_option
@json_option
def command(run: str, digest: str | None, as_json: bool) -> int:
    """Verify that a RUN follows from its models' replies, and was not changed.

    RUN is a run's id, its name, a tag, or `last`. Every judge's conversation is replayed over
    the stored replies, without a model; scores, metrics, gates and the digest are derived again and
    compared. The first record that differs is named, and the exit code is then 3. A user with write
    access could replace the whole run; only a digest saved elsewhere reveals that.

    \b
    Examples:
      jurybox verify last
      jurybox verify 20260301-0914 --digest 5a1f...
      jurybox verify last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    noted = None if digest is None else _read(digest)
    with opened_run(run) as (store, row):
        found = audit(store, row)
    problem = _problem(found, row, noted)
    if as_json:
        print_json(_as_data(found, problem))
    elif problem is None:
        click.echo(_line(found))
    return FINE if problem is None else fail(harmless(problem), INCOMPLETE)


def _read(digest: str) -> str:
    match = _DIGEST.fullmatch(digest.strip())
    if match is None:
        raise InputError("not a digest", "give all 64 hexadecimal digits", "--digest")
    return match[1].lower()


def _problem(found: Audit, row: RunRow, noted: str | None) -> str | None:
    """Return the problem as one line."""
    if found.difference is not None:
        return f"run {row.id} differs: {found.difference}"
    if noted is None:
        return None
    if not found.complete:
        return f"run {row.id} isn't finished, so it has no digest to compare"
    if noted == found.digest:
        return None
    return f"run {row.id} differs: its digest is {found.digest}, but {noted} was expected"


def _line(found: Audit) -> str:
    counts = f"{found.samples} samples, {found.exchanges} exchanges"
    if found.complete:
        return f"verified: {counts}, digest {found.digest}"
    return f"verified so far: {counts}; the run isn't finished, so it has no metrics to check yet"


def _as_data(found: Audit, problem: str | None) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(found)
    return {"verified": problem is None, **data, "error": problem}
