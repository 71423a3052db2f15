"""Finds samples by their facets, one page at a time.

The sorted sample numbers are found first, then the rows of one page, because sorting whole rows
takes several times as long.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from jurybox.documents.field_reader import NAME
from jurybox.engine.records import Facets, label
from jurybox.scoring.sample_result import FLAGS, KINDS, MARKS
from jurybox.storage.database import LOSSES
from jurybox.storage.schema import Database, RowFinder
from jurybox.storage.text_search import TextSearch

MOST: Final = 1000
"""The maximum number of samples on a page."""
_MOST_GROUPS: Final = 200  # listed scenarios, and demographics
LONGEST_SEARCH: Final = 1000
ANY: Final = "any"
"""Any winner: all pairs with a result, ties included."""
_METRIC: Final = "metric:"


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which samples to return; every condition has to be met."""

    # A text in the sample's id, inputs (including metadata), responses, judges' replies or reviews.
    # Case is ignored, but for an ASCII text only the case of A to Z.
    search: str = ""
    matching: str | None = None  # the numbers of all samples with this text, if already known
    flags: tuple[str, ...] = ()  # names of `FLAGS`, all of which a sample has
    any_flags: tuple[str, ...] = ()  # names of `FLAGS`, at least one of which a sample has
    scenario: str | None = None
    demographic: str | None = None
    winner: str | None = None  # or `ANY`
    also_in: str | None = None  # the id of a run that has the samples too, by id and repeat
    # The name of a metric whose value is from ``low`` to ``high``, inclusive, greater than
    # ``above`` and less than ``below``.
    metric: str | None = None
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    # ``number``, ``urgency``, ``id``, ``metric:NAME``, or ``among`` for the order of these numbers;
    # ties are sorted by number.
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
    among: tuple[int, ...] | None = None  # only samples with these numbers
    without: tuple[int, ...] = ()  # no samples with these numbers
    offset: int = 0
    limit: int = 50

    @property
    def sort_metric(self) -> str | None:
        """The name of the metric by which samples are sorted."""
        return self.sort.removeprefix(_METRIC) if self.sort.startswith(_METRIC) else None


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of matching samples, how many match in total, and how many have each flag."""

    rows: tuple[Facets, ...]
    total: int
    flags: dict[str, int]


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """The first scenarios and demographics of a run, sorted by name."""

    scenarios: tuple[str, ...]
    demographics: tuple[str, ...]


# ruff: noqa: S608 - the names are ours, and values are never written into a statement


_SAFETY: Final = FLAGS["safety"]
_FEW: Final = 10_000
_MOST_URGENT: Final = 1 + max(kind.urgency for kind in (KINDS | MARKS).values())


class Finder:
    """One query for samples of a run."""

    def __init__(
        self, database: Database, reader: RowFinder, run_id: str, query: SampleQuery
    ) -> None:
        self._database = database
        self._reader = reader
        self._run_id = run_id
        self._query = query
        self._flags, self._urgency = "flags", "urgency"
        if query.concerned:
            concerned = one_of(query.concerned)
            self._flags = f"(flags | CASE WHEN {concerned} THEN {_SAFETY} ELSE 0 END)"
        known = {_MOST_URGENT: query.concerned, 0: query.settled}
        cases = [f"WHEN {one_of(some)} THEN {value}" for value, some in known.items() if some]
        if cases:
            self._urgency = f"CASE {' '.join(cases)} ELSE urgency END"
        self._filters, self._values = self._conditions()
        # The `+` keeps SQLite from using the index of flags if another filter is narrower or needs
        # other columns.
        others = {query.scenario, query.demographic, query.winner, query.metric}
        is_indexed = others == {None} and query.among is None
        self._counted = self._flags if is_indexed else f"+{self._flags}"
        if query.search:
            matching = query.matching
            if matching is None:
                matching = TextSearch(database, reader, run_id, query.search).numbers()
            if query.among is not None:
                # The database would read the list of all matches again for these few samples.
                found = {*query.among} & {*msgspec.json.decode(matching, type=list[int])}
                matching = msgspec.json.encode(found).decode()
            self._filters.insert(0, database.among)
            self._values.insert(1, matching)
        self._where = " AND ".join(("run_id = ?", *self._filters))

    def page(self) -> SamplePage:
        """Return the requested page."""
        query = self._query
        flags = self._counted
        statement = f"SELECT {flags}, count(*) FROM facets WHERE {self._where} GROUP BY {flags}"
        counts = self._reader.rows(tuple[int, int], statement, self._values)
        total = sum(count for _, count in counts)
        named = {
            name: sum(count for flags, count in counts if flags & bit)
            for name, bit in FLAGS.items()
        }
        numbers: list[int] = []
        if query.sort == "among":
            numbers = self._as_given()[query.offset :][: query.limit]
        elif query.limit and total > query.offset:  # otherwise nothing needs to be sorted
            # A page near the end is found by reading backward.
            limit = min(query.limit, total - query.offset)
            after = total - query.offset - limit
            backward = after < query.offset
            order = self._in_order(backward=backward, few=total < _FEW)
            statement = f"{order} LIMIT ? OFFSET ?"
            values = (*self._values, limit, after if backward else query.offset)
            numbers = [number for (number,) in self._reader.rows(tuple[int], statement, values)]
            numbers = numbers[::-1] if backward else numbers
        rest = f"WHERE run_id = ? AND {one_of(numbers)}"
        found = self._reader.find(Facets, rest, self._run_id) if numbers else ()
        rows = {row.number: row for row in found}
        return SamplePage(
            rows=tuple(rows[number] for number in numbers if number in rows),
            total=total,
            flags={name: count for name, count in named.items() if count},
        )

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all samples that match, in order."""
        if self._query.sort == "among":
            return iter(self._as_given())
        found = self._reader.stream(tuple[int], self._in_order(), self._values)
        return (number for (number,) in found)

    def groups(self, kind: str, every: Sequence[str]) -> Sequence[str]:
        """Return which of ``every`` scenario or demographic of the run the samples that match have.

        The samples are read only until all are found.
        """
        if not self._filters:
            return every
        # The `||` keeps SQLite from using an index that has the samples in another order.
        name = f"{kind} || ''"
        statement = (
            f"SELECT DISTINCT {name} FROM facets WHERE {self._where} AND {name} IS NOT NULL LIMIT ?"
        )
        found = self._reader.rows(tuple[str], statement, (*self._values, len(every)))
        return [name for (name,) in found]

    def _as_given(self) -> list[int]:
        """Return the numbers that match in their given order, which takes a database longer."""
        statement = f"SELECT number FROM facets WHERE {self._where}"
        found = {number for (number,) in self._reader.rows(tuple[int], statement, self._values)}
        kept = [number for number in self._query.among or () if number in found]
        return kept[::-1] if self._query.descending else kept

    def _conditions(self) -> tuple[list[str], list[str | float | None]]:
        """Return all conditions except the one on the run, and the values of all conditions."""
        query = self._query
        parts, values = list[str](), list[str | float | None]([self._run_id])
        if query.flags:
            bits = sum({FLAGS[name] for name in query.flags})
            parts.append(f"({self._flags} & ?) = ?")
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
        if query.also_in is not None:
            parts.append(
                "EXISTS (SELECT 1 FROM samples AS other WHERE other.run_id = ?"
                " AND other.sample_id = facets.sample_id AND other.repeat = facets.repeat)"
            )
            values.append(query.also_in)
        if query.metric is not None:
            metric = self._number(query.metric)
            ends = {">=": query.low, "<=": query.high, ">": query.above, "<": query.below}
            given = {sign: end for sign, end in ends.items() if end is not None}
            parts += [f"{metric} IS NOT NULL", *(f"{metric} {sign} ?" for sign in given)]
            values += given.values()
        if query.queued:
            parts.append("urgency > 0")
        parts += [one_of(query.among)] if query.among is not None else []
        parts += [f"NOT {one_of(query.without)}"] if query.without else []
        return parts, values

    def _number(self, metric: str) -> str:
        """Return the SQL expression for a metric; for an invalid name, it evaluates to NULL.

        A name with a quote would be unsafe in a JSON path.
        """
        return self._database.metric.format(
            name=metric if NAME.fullmatch(metric.replace(".", "_")) else ""
        )

    def _in_order(self, *, backward: bool = False, few: bool = False) -> str:
        """Return a statement for the numbers in the requested or the reverse order.

        A ``few`` are sorted, because an index in that order has mostly others.
        """
        query = self._query
        up, down = ("DESC", "ASC") if backward else ("ASC", "DESC")
        direction = down if query.descending else up
        if query.sort == "number":
            by = f"number {direction}"
        elif query.sort_metric is not None:
            nulls = "FIRST" if query.missing_first != backward else "LAST"
            then = f", urgency {down}, {LOSSES} {up}" if query.missing_first else ""
            metric = f"{'+' if few else ''}{self._number(query.sort_metric)}"
            by = f"{metric} {direction} NULLS {nulls}{then}, number {up}"
            if query.missing_first and query.concerned:
                by = f"CASE WHEN {one_of(query.concerned)} THEN 0 ELSE 1 END {up}, {by}"
        elif query.sort == "urgency":
            by = f"{self._urgency} {direction}, {LOSSES} {up}, number {up}"
        else:
            by = f"sample_id {direction}, number {up}"
        return f"SELECT number FROM facets WHERE {self._where} ORDER BY {by}"


def one_of(numbers: Sequence[int]) -> str:
    """Return the condition that a sample has one of some numbers."""
    return f"number IN ({', '.join(map(str, numbers)) or 'NULL'})"


def groups_of(
    database: Database, reader: RowFinder, run_id: str, query: SampleQuery | None = None
) -> Groups:
    """Find the groups of a run, or of its samples that match a query without its own group."""

    def distinct(column: str) -> tuple[str, ...]:
        # Index lookups, without a scan.
        lowest = f"SELECT min({column}) FROM facets WHERE run_id = ? AND {column} IS NOT NULL"
        statement = (
            f"WITH RECURSIVE found (name) AS ({lowest} UNION ALL"
            f" SELECT ({lowest} AND {column} > found.name) FROM found WHERE found.name IS NOT NULL)"
            " SELECT name FROM found WHERE name IS NOT NULL LIMIT ?"
        )
        rows = reader.rows(tuple[str], statement, (run_id, run_id, _MOST_GROUPS))
        every = [name for (name,) in rows]
        if query is not None:
            others = msgspec.structs.replace(query, **{column: None})
            every = sorted(Finder(database, reader, run_id, others).groups(column, every))
        return tuple(every)

    return Groups(scenarios=distinct("scenario"), demographics=distinct("demographic"))
