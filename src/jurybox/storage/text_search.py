"""Finds the samples of a run that contain a text, without an index of words.

The texts are a sample's id, inputs, responses, judges' replies and reviews. With 100,000 samples,
that takes up to a second, mostly for the replies.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, cast, get_args

import msgspec

from jurybox.engine.records import ReviewRow
from jurybox.engine.replay import StoredResponses
from jurybox.review.reviews import active_rows
from jurybox.sample import Row, Turn
from jurybox.storage.schema import Database, RowFinder

_ROW: Final = msgspec.json.Decoder(Row)
_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)


def _finder(wanted: str) -> Callable[[Iterable[str]], bool]:
    """Return a function that checks if any of several texts contains a text.

    For an ASCII text, only the case of ASCII letters is ignored, because full case folding of long
    texts takes ten times as long.
    """
    fold = str.encode if wanted.isascii() else _folded
    try:
        needle = fold(wanted).lower()
    except UnicodeEncodeError:
        return lambda _texts: False  # stored texts contain no lone surrogates
    return lambda texts: any(needle in fold(text).lower() for text in texts)


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


def _is_plain(wanted: str) -> bool:
    """Return whether a match in stored JSON is certain to be inside a value."""
    lower = wanted.lower()
    escaped = not wanted.isascii() or _as_json(wanted) != wanted
    return not escaped and not _OUTSIDE.issuperset(lower) and lower not in _own_words()


def _as_json(text: str) -> str:
    """Return a text as it is escaped within JSON."""
    return msgspec.json.encode(text).decode()[1:-1]


def _pattern(text: str) -> str:
    """Return the LIKE pattern for texts that contain ``text``; ``!`` is its escape character."""
    for sign in "!%_":
        text = text.replace(sign, f"!{sign}")
    return f"%{text}%"


# A stored reply begins with its text, in which every quote is escaped; so nothing else matches.
_ESCAPE: Final = "'!'"
_OWN: Final = ("sample_id, inputs, responses", "samples WHERE run_id = ?")
_JUDGES: Final = ("outcome", "exchanges WHERE run_id = ? AND role = 'judge'")
_REPLY: Final = '{"reply":{"text":"', '","usage":{%'


class TextSearch:
    """A search for a text in all samples of a run."""

    def __init__(self, database: Database, reader: RowFinder, run_id: str, wanted: str) -> None:
        self._like, self._numbers = database.like, database.numbers
        self._reader, self._run_id, self._wanted = reader, run_id, wanted
        self._has = _finder(wanted)

    def numbers(self) -> str:
        """Return the numbers of all samples that contain the text, as a JSON list."""
        wanted = self._wanted
        own, replies = list[tuple[str, str]](), list[tuple[str, str]]()
        if wanted.isascii():
            once, (first, after) = _as_json(wanted), _REPLY
            # Most replies are JSON, whose texts are escaped twice.
            texts = {once, _as_json(once)}
            replies += [("outcome", first + _pattern(text) + after) for text in texts]
            if "\0" not in wanted:
                own += [("sample_id", _pattern(wanted))]
                own += [(column, _pattern(once)) for column in ("inputs", "responses")]
        found = {
            *self._in(_OWN, own, _texts, exact=_is_plain(wanted)),
            *self._in(_JUDGES, replies, _said, exact=bool(replies)),
            *self._reviewed(),
        }
        return msgspec.json.encode(found).decode()

    def _in(
        self,
        source: tuple[str, str],
        patterns: Sequence[tuple[str, str]],
        texts: Callable[..., Iterable[str]],
        *,
        exact: bool,
    ) -> Iterator[int]:
        """Yield the samples with the text in one of some columns.

        Both databases can ignore the case of ASCII letters, and compare faster than Python: each of
        ``patterns`` says what a column may contain. If these aren't ``exact``, the ``texts`` of the
        columns are searched.
        """
        columns, rest = source
        likely = " OR ".join(f"{name} {self._like} ? ESCAPE {_ESCAPE}" for name, _ in patterns)
        rest = f"FROM {rest} AND ({likely})" if likely else f"FROM {rest}"
        values = (self._run_id, *(pattern for _, pattern in patterns))
        if exact:
            # As one text, because returning a row for each takes as long as finding them.
            statement = f"SELECT {self._numbers} {rest}"
            for (numbers,) in self._reader.rows(tuple[str | None], statement, values):
                yield from msgspec.json.decode(numbers or "[]", type=list[int])
            return
        statement = f"SELECT number, {columns} {rest}"
        for number, *found in self._reader.stream(tuple[int | str, ...], statement, values):
            if self._has(texts(*found)):
                yield int(number)

    def _reviewed(self) -> Iterator[int]:
        """Yield the samples with the text in a review's comment or author."""
        rows = self._reader.find(
            ReviewRow, "WHERE run_id = ? ORDER BY created_at, id", self._run_id
        )
        for row in active_rows(rows):
            if self._has((row.reviewer, row.comment)):
                yield row.number


def _said(outcome: str) -> Iterator[str]:
    """Yield the text of a reply, and the texts within it if it is JSON."""
    try:
        text = msgspec.json.decode(outcome)["reply"]["text"]
        yield text
        yield from _strings(msgspec.json.decode(text))
    except (msgspec.DecodeError, LookupError, TypeError, UnicodeEncodeError, RecursionError):
        return
