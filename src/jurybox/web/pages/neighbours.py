"""The samples before and after one, among those that were asked for."""

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.reporting.stored import rubric_of
from jurybox.web.filters import PageFilter
from jurybox.web.template_engine import segment


class Neighbours(msgspec.Struct, frozen=True, kw_only=True):
    """Where to go from a sample; ``place`` counts from 1, and is 0 where nothing was asked for."""

    previous: str | None = None
    next: str | None = None
    place: int = 0
    total: int = 0
    query: str = ""


def neighbours(store: Store, run: RunRow, number: int, asked: PageFilter) -> Neighbours:
    """Return the addresses of a sample's neighbours."""
    base = f"/runs/{segment(run.id)}/samples/"
    if asked.at is None:
        return _by_number(store, run, number, base, asked.address())
    first = max(0, asked.at - 1)
    query = asked.chosen(lambda: store.groups(run.id)).query(
        rubric_of(run).overall_name, offset=first, limit=3
    )
    page = store.find_samples(run.id, query)
    numbers = [row.number for row in page.rows]
    if number not in numbers:
        return _by_number(store, run, number, base, asked.address())
    here = numbers.index(number)
    return Neighbours(
        previous=_link(base, asked, numbers, first, here - 1),
        next=_link(base, asked, numbers, first, here + 1),
        place=first + here + 1,
        total=page.total,
        query=asked.address(),
    )


def _link(base: str, asked: PageFilter, numbers: list[int], first: int, place: int) -> str | None:
    if not 0 <= place < len(numbers):
        return None
    return f"{base}{numbers[place]}{asked.address(at=first + place)}"


def _by_number(store: Store, run: RunRow, number: int, base: str, query: str) -> Neighbours:
    before, after = number - 1, number + 1
    return Neighbours(
        previous=f"{base}{before}" if store.sample(run.id, before) is not None else None,
        next=f"{base}{after}" if store.sample(run.id, after) is not None else None,
        query=query,
    )
