"""A batch run from Python."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jurybox.errors import IncompleteError

if TYPE_CHECKING:
    from jurybox.app.run_suite import OnProgress
    from jurybox.reporting.view import RunView


def run(  # noqa: PLR0913 - what may be said beside the suite, all by keyword
    suite: str | os.PathLike[str],
    *,
    rubric: str | None = None,
    target: str | None = None,
    prompt: str | os.PathLike[str] | None = None,
    system: str | os.PathLike[str] | None = None,
    responses: str | os.PathLike[str] | None = None,
    judges: str | Sequence[str] = (),
    repeats: int | None = None,
    limit: int | None = None,
    concurrency: int | None = None,
    base_url: str | None = None,
    allow_unpinned: bool = False,
    cache: bool | None = None,
    batch: bool | None = None,
    store: str | None = None,
    on_progress: "OnProgress | None" = None,
) -> "RunView":
    """Run a suite to its end, store all of it, and return its figures, gates and decision.

    Args:
        suite: the path of a suite file, or the name of a bundled one (`companion-scenarios`).
        rubric: a rubric's name or path, in place of the suite's.
        target: the model that answers, in place of the suite's.
        prompt: the file of its prompt, in place of the suite's.
        system: the file of its system prompt, in place of the suite's.
        responses: a file of recorded responses, or the name of some that are bundled with the
            suite; nobody is asked for new ones then.
        judges: models that judge, in place of the suite's.
        repeats: how often every sample is run; else as the suite says.
        limit: how many rows of the dataset to use, from the first.
        concurrency: the most calls at once to one endpoint.
        base_url: the address of an OpenAI-compatible endpoint.
        allow_unpinned: accept models whose names don't say which version is meant.
        cache: reuse replies that earlier runs in the store got to equal requests.
        batch: ask judges in their providers' batches, later and for less; else as the suite says.
        store: a path or the URL of a database; ``.jurybox/jurybox.db`` otherwise.
        on_progress: is called with a `Progress` now and then.

    Raises:
        InputError: something that was given can't be used; nothing was asked yet.
        IncompleteError: the run couldn't be finished; what was done is kept and can be resumed.

    """
    from jurybox.app.prepare import RunOptions, prepare
    from jurybox.app.run_suite import start_run
    from jurybox.wiring import open_run_store

    options = RunOptions(
        rubric=rubric,
        target=target,
        prompt=_path(prompt),
        system=_path(system),
        responses=_path(responses),
        judges=(judges,) if isinstance(judges, str) else tuple(judges),
        repeats=repeats,
        limit=limit,
        concurrency=concurrency,
        base_url=base_url,
        allow_unpinned=allow_unpinned,
        cache=cache,
        batch=batch,
    )
    prepared = prepare(suite if isinstance(suite, str) else Path(suite), options)
    opened = open_run_store(store, create=True)
    try:
        ended = start_run(prepared, opened, base_url=base_url, on_progress=on_progress)
    finally:
        opened.close()
    if ended.stopped is not None:
        run_id = ended.view.run_id
        raise IncompleteError(f"{ended.stopped}; go on with `jurybox resume {run_id}`")
    return ended.view


def _path(given: str | os.PathLike[str] | None) -> str | None:
    return None if given is None else os.fspath(given)
