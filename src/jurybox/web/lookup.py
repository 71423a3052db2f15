"""Finds the run and the sample named in a request's address."""

from typing import Annotated, Final

from fastapi import Depends, Path
from starlette.requests import Request

from jurybox.engine.records import RunRow, SampleRow
from jurybox.reporting.stored import SampleRecord, read_record
from jurybox.storage.store import Store
from jurybox.web.app_state import AppState, app_state_of
from jurybox.web.error_pages import PageError

ANY_TEXT: Final = r"^[^\x00]*$"
"""The pattern of a text without NUL, which no store accepts."""
LARGEST: Final = 2**53 - 1
"""The largest sample number that JSON can represent exactly."""

PlaceOf = Annotated[AppState, Depends(app_state_of)]
Number = Annotated[int, Path(ge=0, le=LARGEST)]


def known_run(place: AppState, name: str) -> RunRow:
    """Return a run by its full id.

    Raises:
        PageError: there is no such run.

    """
    row = place.store.run(name)
    if row is None:
        raise PageError(404, "there is no such run", "look at the list of runs", name[:80])
    return row


def known_sample(store: Store, run: RunRow, number: int) -> SampleRow:
    """Return a sample by its number.

    Raises:
        PageError: there is no such sample.

    """
    row = store.sample(run.id, number)
    if row is None:
        raise PageError(404, "the run has no such sample", "look at the list of its samples")
    return row


def _run(
    request: Request,
    run: Annotated[str, Path(min_length=1, max_length=200, pattern=ANY_TEXT)],
    place: PlaceOf,
) -> RunRow:
    request.state.run = known_run(place, run)  # an error page links to it
    return request.state.run


TheRun = Annotated[RunRow, Depends(_run)]


def _record(run: TheRun, number: Number, place: PlaceOf) -> SampleRecord:
    row = known_sample(place.store, run, number)
    return read_record(run, row, place.store.exchanges_of(run.id, row.number))


TheRecord = Annotated[SampleRecord, Depends(_record)]
