"""Finding samples by their facets: a question becomes a statement, and its answers a page.

First the numbers of the samples are found, in their order, then the rows of one page of them: a
database that sorts whole rows takes several times as long.
"""

import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from typing import Final

import msgspec

from jurybox.documents.field_reader import NAME
from jurybox.engine.ports import SamplePage, SampleQuery
from jurybox.sample import Turn
from jurybox.scoring.sample_index import FLAGS, Facets, label
from jurybox.storage.database import Database, Values
from jurybox.storage.reader import PagedReader
from jurybox.storage.schema import FACETS, SAMPLES
from jurybox.storage.statements import columns


class _Inputs(msgspec.Struct, frozen=True, kw_only=True):
    task: str
    reference: str | None = None
    context: str | None = None
    messages: tuple[Turn, ...] = ()


class _SearchedResponse(msgspec.Struct, frozen=True, kw_only=True):
    text: str


class _SearchedResponses(msgspec.Struct, frozen=True, kw_only=True):
    response: _SearchedResponse
    response_b: _SearchedResponse | None = None


_INPUTS: Final = msgspec.json.Decoder(_Inputs)
_RESPONSES: Final = msgspec.json.Decoder(_SearchedResponses)


def finder(wanted: str) -> Callable[[str, str, str], bool]:
    """Return a function that checks if a sample's id, inputs or responses contain a text.

    In a text of ASCII alone only the case of ASCII letters is of no account: folding whatever
    else is in a long text takes ten times as long.
    """
    fold = _ascii_folded if wanted.isascii() else _folded
    try:
        needle = fold(wanted)
    except UnicodeEncodeError:
        return _nowhere  # half of a surrogate pair is in no stored text
    in_json = fold(as_json(wanted))

    def has(sample_id: str, inputs: str, responses: str) -> bool:
        return (
            needle in fold(sample_id)
            or (in_json in fold(inputs) and _among(needle, fold, _of_inputs(inputs)))
            or (in_json in fold(responses) and _among(needle, fold, _of_responses(responses)))
        )

    return has


def as_json(text: str) -> str:
    """Return a text as it is escaped within JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def pattern(text: str) -> str:
    """Return what a database takes for any text with this one in it; ``!`` escapes."""
    for sign in "!%_":
        text = text.replace(sign, f"!{sign}")
    return f"%{text}%"


def _nowhere(*_texts: str) -> bool:
    return False


def _ascii_folded(text: str) -> bytes:
    return text.encode().lower()


def _folded(text: str) -> bytes:
    return text.casefold().encode()


def _among(needle: bytes, fold: Callable[[str], bytes], texts: Iterator[str | None]) -> bool:
    return any(text is not None and needle in fold(text) for text in texts)


def _of_inputs(stored: str) -> Iterator[str | None]:
    try:
        inputs = _INPUTS.decode(stored)
    except msgspec.DecodeError:
        return  # an audit finds it
    yield from (inputs.task, inputs.context, inputs.reference)
    yield from (turn.content for turn in inputs.messages)


def _of_responses(stored: str) -> Iterator[str | None]:
    try:
        responses = _RESPONSES.decode(stored)
    except msgspec.DecodeError:
        return
    yield responses.response.text
    if responses.response_b is not None:
        yield responses.response_b.text


# ruff: noqa: S608 - the names are ours, and values are never written into a statement


_SOME: Final = 500
_TEXTS: Final = 100
# From here on SQLite is faster when it sorts all at once than when it keeps the first few.
_DEEP: Final = 5000
_BEFORE_ALL: Final = -(2**63)
_LARGEST: Final = sys.float_info.max
_ROWS: Final = f"SELECT {', '.join(columns(FACETS))} FROM {FACETS} WHERE run_id = ? AND number IN "

_Text = tuple[int, str, str, str]


class Finder:
    """One question about the samples of a run."""

    def __init__(
        self, database: Database, reader: PagedReader, run_id: str, query: SampleQuery
    ) -> None:
        self._metric, self._like = database.metric, database.like
        self._reader = reader
        self._run_id = run_id
        self._query = query
        self._where, self._values = self._conditions()

    def page(self) -> SamplePage:
        """Return the page that is asked for."""
        query = self._query
        if query.search:
            numbers, total = self._searched()
        else:
            total = self._count()
            # Where there are no more, nothing needs to be sorted.
            numbers = self._ordered(query.limit, query.offset) if total > query.offset else []
        return SamplePage(rows=self._rows(numbers), total=total)

    def count_flags(self) -> dict[str, int]:
        """Return how many samples have each flag that any of them has."""
        statement = f"SELECT flags, count(*) FROM {FACETS} WHERE {self._where} GROUP BY flags"
        found = self._reader.rows(list[tuple[int, int]], statement, self._values)
        counts = {
            name: sum(count for flags, count in found if flags & bit) for name, bit in FLAGS.items()
        }
        return {name: count for name, count in counts.items() if count}

    def _count(self) -> int:
        statement = f"SELECT count(*) FROM {FACETS} WHERE {self._where}"
        found = self._reader.rows(list[tuple[int]], statement, self._values)
        return found[0][0] if found else 0

    def _ordered(self, limit: int, offset: int) -> list[int]:
        statement, values = self._in_order()
        if offset > _DEEP and self._query.sort != "number":
            every = self._reader.stream(list[tuple[int]], statement, values)
            with closing(every):
                return [number for (number,) in islice(every, offset, offset + limit)]
        found = self._reader.rows(
            list[tuple[int]], f"{statement} LIMIT ? OFFSET ?", (*values, limit, offset)
        )
        return [number for (number,) in found]

    def _searched(self) -> tuple[list[int], int]:
        """Look through the texts of all samples to which the rest applies."""
        query = self._query
        found = self._matching()
        ordered: Iterator[int] = iter(found)
        if query.sort != "number":
            matching = frozenset(found)
            statement, values = self._in_order()
            every = self._reader.stream(list[tuple[int]], statement, values)
            ordered = (number for (number,) in every if number in matching)
        elif query.descending:
            ordered = reversed(found)
        return list(islice(ordered, query.offset, query.offset + query.limit)), len(found)

    def _matching(self) -> "array[int]":
        has = finder(self._query.search)
        numbers = array("q")
        likely, patterns = self._likely(self._query.search)
        statement = (
            f"SELECT samples.number, samples.sample_id, samples.inputs, samples.responses"
            f" FROM {FACETS} JOIN {SAMPLES} ON samples.run_id = facets.run_id"
            f" AND samples.number = facets.number"
            f" WHERE {self._where} {likely} AND facets.number > ? ORDER BY facets.number LIMIT ?"
        )
        last = _BEFORE_ALL
        while True:
            page = self._reader.rows(
                list[_Text], statement, (*self._values, *patterns, last, _TEXTS)
            )
            numbers.extend(number for number, *texts in page if has(*texts))
            if len(page) < _TEXTS:
                return numbers
            last = page[-1][0]

    def _likely(self, wanted: str) -> tuple[str, tuple[str, ...]]:
        """Return a condition for samples in which a text may be, and its values.

        Both databases know the case of ASCII letters, and compare faster than we do.
        """
        if not wanted.isascii() or "\0" in wanted:
            return "", ()
        conditions = (
            f"{name} {self._like} ? ESCAPE '!'"
            for name in ("samples.sample_id", "samples.inputs", "samples.responses")
        )
        in_json = pattern(as_json(wanted))
        return f"AND ({' OR '.join(conditions)})", (pattern(wanted), in_json, in_json)

    def _rows(self, numbers: list[int]) -> tuple[Facets, ...]:
        rows: dict[int, Facets] = {}
        for start in range(0, len(numbers), _SOME):
            some = numbers[start : start + _SOME]
            marks = ", ".join("?" for _ in some)
            found = self._reader.rows(list[Facets], f"{_ROWS}({marks})", (self._run_id, *some))
            rows |= {row.number: row for row in found}
        return tuple(rows[number] for number in numbers if number in rows)

    def _conditions(self) -> tuple[str, Values]:
        query = self._query
        parts, values = ["facets.run_id = ?"], list[str | float | None]([self._run_id])
        if query.flags:
            bits = sum({FLAGS[name] for name in query.flags})
            parts.append("(flags & ?) = ?")
            values += [bits, bits]
        if query.any_flags:
            parts.append("(flags & ?) <> 0")
            values.append(sum({FLAGS[name] for name in query.any_flags}))
        for name in ("scenario", "demographic", "winner"):
            wanted: str | None = getattr(query, name)
            if wanted is not None:
                parts.append(f"{name} = ?")
                values.append(label(wanted))
        if query.metric is not None:
            name = _stored(query.metric)
            low = -_LARGEST if query.low is None else query.low
            high = _LARGEST if query.high is None else query.high
            parts.append(f"{self._metric} BETWEEN ? AND ?")
            values += [name, low, high]
        if query.queued:
            parts.append("urgency > 0")
        return " AND ".join(parts), values

    def _in_order(self) -> tuple[str, Values]:
        query = self._query
        name, values = query.sort_metric, self._values
        direction = "DESC" if query.descending else "ASC"
        if name is not None:
            # Samples without the metric come last, either way.
            by = f"{self._metric} {direction} NULLS LAST, number"
            values = (*values, _stored(name))
        elif query.sort == "number":
            by = f"number {direction}"
        else:
            column = {"id": "sample_id", "urgency": "urgency"}[query.sort]
            by = f"{column} {direction}, number"
        return f"SELECT number FROM {FACETS} WHERE {self._where} ORDER BY {by}", values


def _stored(metric: str) -> str:
    """Return a metric's name; where no document can give it, a name that no metric has.

    A name with a quote in it would have no safe way into a JSON path.
    """
    return metric if NAME.fullmatch(metric) else ""
