"""Finds samples by their facets, one page at a time.

The sorted sample numbers are found first, then the rows of one page, because sorting whole rows
takes several times as long.
"""

import math
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Final, cast, get_args

import msgspec

from jurybox.documents.field_reader import NAME
from jurybox.engine.replay import StoredResponses
from jurybox.errors import InputError
from jurybox.sample import Row, Turn
from jurybox.scoring.sample_result import FLAGS, KINDS, MARKS, Facets, label
from jurybox.storage.database import LOSSES, Database, PagedReader, Values
from jurybox.storage.schema import columns
from jurybox.text_format import nearest

MOST: Final = 1000
"""The maximum number of samples on a page."""
MOST_GROUPS: Final = 200
"""The maximum number of listed scenarios, and of demographics."""
LONGEST_SEARCH: Final = 1000
ANY: Final = "any"
"""Any winner: all pairs with a result, ties included."""
_FARTHEST: Final = 2**62
_LARGEST: Final = sys.float_info.max
_METRIC: Final = "metric:"
_ORDERS: Final = ("number", "urgency", "id")


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which samples to return; every condition has to be met."""

    # A text in the sample's id, inputs (including metadata) or responses. Case is ignored, but for
    # an ASCII text only the case of A to Z.
    search: str = ""
    flags: tuple[str, ...] = ()  # names of `FLAGS`, all of which a sample has
    any_flags: tuple[str, ...] = ()  # names of `FLAGS`, at least one of which a sample has
    scenario: str | None = None
    demographic: str | None = None
    winner: str | None = None  # or `ANY`
    # The name of a metric whose value is from ``low`` to ``high``, inclusive, greater than
    # ``above`` and less than ``below``.
    metric: str | None = None
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    # ``number``, ``urgency``, ``id`` or ``metric:NAME``; ties are sorted by number.
    sort: str = "number"
    descending: bool = False
    # Whether samples without the metric come first, in either direction. If so, ties are sorted by
    # urgency, and pairs that response A lost come before others.
    missing_first: bool = False
    # Samples with a safety concern that a reviewer confirmed: they count as flagged `safety`, are
    # the most urgent, and come first if ``missing_first``.
    concerned: tuple[int, ...] = ()
    settled: tuple[int, ...] = ()  # samples that reviews settled: not urgent
    queued: bool = False  # only samples in the review queue
    among: tuple[int, ...] = ()  # only samples with these numbers, if any are given
    without: tuple[int, ...] = ()  # no samples with these numbers
    offset: int = 0
    limit: int = 50

    @property
    def sort_metric(self) -> str | None:
        """The name of the metric by which samples are sorted."""
        return self.sort.removeprefix(_METRIC) if self.sort.startswith(_METRIC) else None

    @property
    def leading(self) -> tuple[int, ...]:
        """The samples that come before all others, whatever their metric."""
        return self.concerned if self.missing_first and self.sort_metric else ()

    @property
    def ends(self) -> dict[str, float]:
        """The bounds of the metric's range, by operator; `>=` is always set, to exclude NULL."""
        low = -_LARGEST if self.low is None else self.low
        ends = {">=": low, "<=": self.high, ">": self.above, "<": self.below}
        return {sign: end for sign, end in ends.items() if end is not None}

    def check(self) -> None:
        """Validate the query."""
        if not 1 <= self.limit <= MOST:
            raise InputError(f"a page can't have {self.limit} samples", f"ask for 1 to {MOST}")
        if not 0 <= self.offset <= _FARTHEST:
            raise InputError(f"a page can't begin at {self.offset}", "begin at 0 or later")
        if self.sort not in _ORDERS and not self.sort_metric:
            hint = f"sort by {', '.join(_ORDERS)} or {_METRIC}NAME"
            raise InputError(f"samples can't be sorted by `{self.sort[:80]}`", hint)
        for name in (*self.flags, *self.any_flags):
            if name not in FLAGS:
                hint = nearest(name[:80], FLAGS, f"give some of {', '.join(FLAGS)}")
                raise InputError(f"there is no flag `{name[:80]}`", hint)
        if len(self.search) > LONGEST_SEARCH:
            problem = f"the text to search for has {len(self.search)} characters"
            raise InputError(problem, f"search for at most {LONGEST_SEARCH}")
        ends = (self.low, self.high, self.above, self.below)
        for end in ends:
            if end is not None and not math.isfinite(end):
                raise InputError(f"{end} can't limit a range", "give a finite number")
        if self.metric is None and any(end is not None for end in ends):
            raise InputError("a range needs a metric", "name the metric")


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of matching samples, how many match in total, and how many have each flag."""

    rows: tuple[Facets, ...]
    total: int
    flags: dict[str, int]


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """The first scenarios and demographics of a run, sorted by name."""

    scenarios: tuple[str, ...]
    demographics: tuple[str, ...]


_ROW: Final = msgspec.json.Decoder(Row)
_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)


def finder(wanted: str) -> Callable[[str, str, str], bool]:
    """Return a function that checks if a sample's id, inputs or responses contain a text.

    For an ASCII text, only the case of ASCII letters is ignored, because full case folding of long
    texts takes ten times as long.
    """
    fold = str.encode if wanted.isascii() else _folded
    try:
        needle = fold(wanted).lower()
    except UnicodeEncodeError:
        # Stored texts contain no lone surrogates.
        return lambda _id, _inputs, _responses: False

    def has(sample_id: str, inputs: str, responses: str) -> bool:
        return any(needle in fold(text).lower() for text in _texts(sample_id, inputs, responses))

    return has


def _folded(text: str) -> bytes:
    return text.casefold().encode()


def _texts(sample_id: str, inputs: str, responses: str) -> tuple[str, ...]:
    """Return the searchable texts of a sample; only its id if the rest can't be read."""
    try:
        row, stored = _ROW.decode(inputs), _RESPONSES.decode(responses)
    except msgspec.DecodeError:
        return (sample_id,)  # an audit reports this damage
    row = msgspec.structs.replace(row, response_b=stored.response_b)
    errors = [each.error for each in (stored.response, stored.response_b) if each is not None]
    others = _strings([row.scenario, row.metadata, row.checks, errors])
    return (sample_id, *row.sample(stored.response).texts, *others)


def _strings(value: object) -> Iterator[str]:
    """Yield all texts within a value that came from JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, each in cast("Mapping[str, object]", value).items():
            yield name
            yield from _strings(each)
    elif isinstance(value, Sequence):
        for each in cast("Sequence[object]", value):
            yield from _strings(each)


@cache
def _own_words() -> str:
    """Return the JSON keys and constants in stored inputs and responses."""
    _, parts = msgspec.json.schema_components([Row, StoredResponses])
    names = {name for part in parts.values() for name in part["properties"]}
    return "\n".join((*names, *get_args(Turn.__annotations__["role"])))


_OUTSIDE: Final = frozenset("0123456789.e+-{}[]:,truefalsn")
"""The characters, in lower case, that occur in stored JSON outside of its strings."""


def is_plain(wanted: str) -> bool:
    """Return whether a text can occur in stored JSON only within values."""
    lower = wanted.lower()
    escaped = not wanted.isascii() or as_json(wanted) != wanted
    return not escaped and not _OUTSIDE.issuperset(lower) and lower not in _own_words()


def as_json(text: str) -> str:
    """Return a text as it is escaped within JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def pattern(text: str) -> str:
    """Return the LIKE pattern for texts that contain ``text``; ``!`` is its escape character."""
    for sign in "!%_":
        text = text.replace(sign, f"!{sign}")
    return f"%{text}%"


# ruff: noqa: S608 - the names are ours, and values are never written into a statement


_SOME: Final = 10_000
_SAFETY: Final = "safety"
_MOST_URGENT: Final = 1 + max(kind.urgency for kind in (KINDS | MARKS).values())
_TEXTS: Final = 100
_BEFORE_ALL: Final = -(2**63)
_ROWS: Final = f"SELECT {', '.join(columns('facets'))} FROM facets WHERE run_id = ? AND number IN "

_Text = tuple[int, str, str, str]


class Finder:
    """One query for samples of a run."""

    def __init__(
        self, database: Database, reader: PagedReader, run_id: str, query: SampleQuery
    ) -> None:
        self._metric, self._like, self._joined = database.metric, database.like, database.joined
        self._reader = reader
        self._run_id = run_id
        self._query = query
        self._filters, self._values = self._conditions()
        self._where = " AND ".join(("facets.run_id = ?", *self._filters))

    def page(self) -> SamplePage:
        """Return the requested page."""
        query = self._query
        found = self._matching() if query.search else None
        if found is not None and len(found) > _SOME:
            everything = sum(self._count_flags().values())
            found = None if len(found) == everything else found  # an index knows the order of all
        counts = self._count_flags() if found is None else self._flags_among(found)
        counts = self._with_concerns(counts, found)
        total = sum(counts.values())
        if found is not None:
            numbers = self._page_of(found)
        else:
            # If the page begins after the last sample, nothing needs to be sorted.
            numbers = self._ordered(total) if total > query.offset else []
        named = {
            name: sum(count for flags, count in counts.items() if flags & bit)
            for name, bit in FLAGS.items()
        }
        flags = {name: count for name, count in named.items() if count}
        return SamplePage(rows=self._rows(numbers), total=total, flags=flags)

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all samples that match, whatever their texts, in order."""
        yield from self._leading()
        for (number,) in self._reader.stream(list[tuple[int]], *self._in_order()):
            yield number

    def _count_flags(self) -> dict[int, int]:
        """Return how many samples have each combination of flags."""
        # The `+` keeps SQLite from using the index of flags if another filter is narrower.
        flags = "+flags" if self._filters else "flags"
        statement = f"SELECT {flags}, count(*) FROM facets WHERE {self._where} GROUP BY {flags}"
        return dict(self._reader.rows(list[tuple[int, int]], statement, self._values))

    def _flags_among(self, found: "array[int]") -> dict[int, int]:
        few = found if len(found) <= _SOME else ()
        where = f"{self._where}{_among(few)} GROUP BY flags"
        statement = f"SELECT flags, {self._joined.format(name='number')} FROM facets WHERE {where}"
        every = self._reader.rows(list[tuple[int, str]], statement, (*self._values, *few))
        is_found = frozenset(found).__contains__
        counts = {flags: sum(map(is_found, _numbers(text))) for flags, text in every}
        return {flags: count for flags, count in counts.items() if count}

    def _with_concerns(
        self, counts: Mapping[int, int], found: "array[int] | None"
    ) -> Mapping[int, int]:
        """Count the samples with a concern that only reviewers saw as flagged `safety` too."""
        if not self._query.concerned:
            return counts
        changed = Counter(counts)
        among = f"{self._where} AND {_in(self._query.concerned)}"
        statement = f"SELECT facets.number, flags FROM facets WHERE {among}"
        for number, flags in self._reader.rows(list[tuple[int, int]], statement, self._values):
            if found is None or number in found:
                changed[flags] -= 1
                changed[flags | FLAGS[_SAFETY]] += 1
        return changed

    def _leading(self) -> list[int]:
        """Return the numbers of the leading samples that match, in order."""
        # They are few. As a part of the order of all samples, they would keep it from its index.
        if not self._query.leading:
            return []
        statement = self._in_order(self._query.leading, leading=True)
        found = self._reader.rows(list[tuple[int]], *statement)
        return [number for (number,) in found]

    def _ordered(self, total: int) -> list[int]:
        """Return the numbers on the page; a page near the end is found by reading backward."""
        query, leading = self._query, self._leading()
        first = leading[query.offset : query.offset + query.limit]
        offset, others = max(0, query.offset - len(leading)), total - len(leading)
        limit = min(query.limit - len(first), others - offset)
        after = others - offset - limit
        backward = after < offset
        statement, values = self._in_order(backward=backward)
        found = self._reader.rows(
            list[tuple[int]],
            f"{statement} LIMIT ? OFFSET ?",
            (*values, limit, after if backward else offset),
        )
        numbers = [number for (number,) in found]
        return first + (numbers[::-1] if backward else numbers)

    def _page_of(self, found: "array[int]") -> list[int]:
        """Return the numbers on the page, from the numbers of all matching samples."""
        query = self._query
        ordered: Iterator[int] = iter(found)
        if query.sort != "number":
            matching = frozenset(found)
            # A few samples are sorted by themselves; many are picked from the sorted list of all.
            statement, values = self._in_order(found if len(found) <= _SOME else ())
            every = self._reader.stream(list[tuple[int]], statement, values)
            others = (number for (number,) in every)
            ordered = filter(matching.__contains__, chain(self._leading(), others))
        elif query.descending:
            ordered = reversed(found)
        return list(islice(ordered, query.offset, query.offset + query.limit))

    def _matching(self) -> "array[int]":
        """Return the numbers of all samples that contain the text and meet all conditions."""
        wanted = self._query.search
        likely, patterns = self._likely(wanted)
        if self._filters:
            # Facets are filtered first, because only a few samples may then have to be searched.
            rest = (
                "FROM facets CROSS JOIN samples WHERE samples.run_id = facets.run_id"
                f" AND samples.number = facets.number AND {self._where} {likely}"
            )
            order = "facets.number"
        else:
            rest, order = f"FROM samples WHERE run_id = ? {likely}", "samples.number"
        values = (*self._values, *patterns)
        if is_plain(wanted):
            # The database's matches are exact, so texts aren't checked again. Numbers come as one
            # text, because returning a row for each would take as long as finding them.
            statement = f"SELECT {self._joined.format(name='samples.number')} {rest}"
            ((text,),) = self._reader.rows(list[tuple[str | None]], statement, values)
            return array("q", sorted(_numbers(text or "")))
        has, numbers, last = finder(wanted), array("q"), _BEFORE_ALL
        statement = (
            f"SELECT samples.number, samples.sample_id, samples.inputs, samples.responses {rest}"
            f" AND {order} > ? ORDER BY {order} LIMIT ?"
        )
        while True:
            page = self._reader.rows(list[_Text], statement, (*values, last, _TEXTS))
            numbers.extend(number for number, *texts in page if has(*texts))
            if len(page) < _TEXTS:
                return numbers
            last = page[-1][0]

    def _likely(self, wanted: str) -> tuple[str, tuple[str, ...]]:
        """Return a condition for samples that may contain a text, and its values.

        Both databases can ignore the case of ASCII letters, and compare faster than Python.
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

    def _conditions(self) -> tuple[list[str], Values]:
        """Return all conditions except the one on the run, and the values of all conditions."""
        query = self._query
        parts, values = list[str](), list[str | float | None]([self._run_id])
        if query.flags:
            bits = sum({FLAGS[name] for name in query.flags})
            flags = "flags"
            if query.concerned and _SAFETY in query.flags:
                safety = f"CASE WHEN {_in(query.concerned)} THEN {FLAGS[_SAFETY]} ELSE 0 END"
                flags = f"(flags | {safety})"
            parts.append(f"({flags} & ?) = ?")
            values += [bits, bits]
        if query.any_flags:
            parts.append("(flags & ?) <> 0")
            values.append(sum({FLAGS[name] for name in query.any_flags}))
        for name in ("scenario", "demographic", "winner"):
            wanted: str | None = getattr(query, name)
            if (name, wanted) == ("winner", ANY):
                parts.append("winner IS NOT NULL")
            elif wanted is not None:
                parts.append(f"{name} = ?")
                values.append(label(wanted))
        if query.metric is not None:
            ends = query.ends
            parts += [f"{self._number(query.metric)} {sign} ?" for sign in ends]
            values += ends.values()
        if query.queued:
            parts.append("urgency > 0")
        parts += [_in(query.among)] if query.among else []
        parts += [f"NOT {_in(query.without)}"] if query.without else []
        return parts, values

    def _urgency(self) -> str:
        """Return the expression for a sample's urgency, given its reviews."""
        query = self._query
        known = {_MOST_URGENT: query.concerned, 0: query.settled}
        cases = [f"WHEN {_in(some)} THEN {value}" for value, some in known.items() if some]
        return f"CASE {' '.join(cases)} ELSE urgency END" if cases else "urgency"

    def _number(self, metric: str) -> str:
        """Return the SQL expression for a metric; for an invalid name, it evaluates to NULL.

        A name with a quote would be unsafe in a JSON path.
        """
        return self._metric.format(name=metric if NAME.fullmatch(metric) else "")

    def _in_order(
        self, among: Sequence[int] = (), *, backward: bool = False, leading: bool = False
    ) -> tuple[str, Values]:
        """Return a statement for the numbers in the requested or the reverse order.

        Only if ``leading``, samples that come before all others are included.
        """
        query = self._query
        up, down = ("DESC", "ASC") if backward else ("ASC", "DESC")
        direction = down if query.descending else up
        where = f"{self._where}{_among(among)}"
        if query.leading and not leading:
            where += f" AND NOT {_in(query.leading)}"
        if query.sort == "number":
            by = f"number {direction}"
        elif query.sort_metric is not None:
            missing = "FIRST" if query.missing_first != backward else "LAST"
            # The `+` keeps SQLite from scanning all rows in order if only a few are wanted.
            sign = "+" if among else ""
            worst = f", urgency {down}, {LOSSES} {up}" if query.missing_first else ""
            metric = self._number(query.sort_metric)
            by = f"{sign}{metric} {direction} NULLS {missing}{worst}, number {up}"
        elif query.sort == "urgency":
            by = f"{self._urgency()} {direction}, {LOSSES} {up}, number {up}"
        else:
            by = f"sample_id {direction}, number {up}"
        return f"SELECT number FROM facets WHERE {where} ORDER BY {by}", (*self._values, *among)


def _in(numbers: Sequence[int]) -> str:
    return f"facets.number IN ({', '.join(map(str, numbers))})"


def _numbers(joined: str) -> Iterator[int]:
    return map(int, joined.split(",") if joined else ())


def _among(numbers: Sequence[int]) -> str:
    marks = ", ".join("?" for _ in numbers)
    return f" AND number IN ({marks})" if numbers else ""
