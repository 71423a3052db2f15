"""What a request names: a run, a sample; and what isn't there."""

from starlette.requests import Request

from jurybox.reporting.sample_record import Record, read_record
from jurybox.running.records import RunRow
from jurybox.web.place import Place, place_of
from jurybox.web.refusals import Refusal

_LARGEST = 2**63 - 1
_LONGEST = 18


def run_of(request: Request) -> RunRow:
    """Return the run that the address names.

    Raises:
        Refusal: there is none.

    """
    return known_run(place_of(request), request.path_params["run"])


def known_run(place: Place, name: str) -> RunRow:
    """Return a run by its whole id.

    Raises:
        Refusal: there is none.

    """
    row = place.run(name)
    if row is None:
        raise Refusal(404, "there is no such run", "`jurybox runs` lists them", name[:80])
    return row


def record_of(request: Request, run: RunRow) -> Record:
    """Return the sample that the address names.

    Raises:
        Refusal: there is none.

    """
    return known_record(place_of(request), run, sample_number(request.path_params["number"]))


def sample_number(text: str) -> int:
    """Read the number of a sample; one of thousands of digits is refused before it is a number.

    Raises:
        Refusal: it can't be one.

    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST):
        raise Refusal(404, "there is no such sample", "look at the table of samples")
    return int(text)


def known_record(place: Place, run: RunRow, number: int) -> Record:
    """Return a sample of a run by its number.

    Raises:
        Refusal: there is none.
        IncompleteError: what is stored can't be read.

    """
    row = place.store.sample(run.id, number) if number <= _LARGEST else None
    if row is None:
        raise Refusal(404, "the run has no such sample", "look at the table of its samples")
    return read_record(run, row, place.store.exchanges_of(run.id, row.number))
