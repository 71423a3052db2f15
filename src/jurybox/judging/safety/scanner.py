"""Finds what a person should look at in a judge's reply or a response.

A missed danger is worse than a false alarm; yet a text that plainly denies one ("does not
encourage self-harm") has none.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Final

import msgspec

from jurybox.judging.safety.clauses import Clauses, Grammar, Span
from jurybox.judging.safety.needs import Entries, Prefilter
from jurybox.judging.safety.personal_data import personal_data
from jurybox.judging.safety.phrasebook import read_phrasebook

JUDGE_CONCERN: Final = "judge-concern"
PERSONAL_DATA: Final = "personal-data"
LONGEST_QUOTE: Final = 120
_CONTEXT: Final = 32  # characters on either side of a finding, where the quote has room for them


class SafetyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A span of a text that a person should look at."""

    category: str
    quote: str
    """The span and a few words around it as they are in the text; personal data is masked."""
    start: int
    end: int


def scan(text: str) -> tuple[SafetyFinding, ...]:
    """Return every danger in ``text``, in its order."""
    return _scanner().scan(text)


def concerns(texts: Iterable[str]) -> tuple[SafetyFinding, ...]:
    """Return a judge's own concerns as findings, without the entries that only deny one."""
    return tuple(_concern(text) for text in texts if not _scanner().only_denies(text))


def categories() -> tuple[str, ...]:
    """Return what a finding may be about; the last is what a judge itself is concerned about."""
    return _scanner().categories


@cache
def _scanner() -> "Scanner":
    return Scanner(files("jurybox.judging.safety").joinpath("phrases.yaml").read_text("utf-8"))


class Scanner:
    """Scans texts for the phrases of a phrasebook, which is given as its source."""

    def __init__(self, source: str) -> None:
        self._book = read_phrasebook(source)
        self.categories = tuple(
            dict.fromkeys((*self._book.categories, PERSONAL_DATA, JUDGE_CONCERN))
        )
        self._phrases = {name: each.phrases for name, each in self._book.categories.items()}
        self._topics = {name: each.topics for name, each in self._book.categories.items()}
        tables = (*self._phrases.values(), *self._topics.values())
        self._filter = Prefilter(tables, self._book.parts)
        # To compile an expression takes milliseconds, and most texts need none.
        self._compiled = cache(self._book.words)

    @cached_property
    def _grammar(self) -> Grammar:
        return Grammar(self._book)

    def scan(self, text: str) -> tuple[SafetyFinding, ...]:
        """Return every danger in ``text``, in its order."""
        folded = _Folded(text)
        data = folded.personal_data()
        possible = self._filter.possible(folded.small)
        if not data and not possible:
            return ()
        dangers = self._dangers(folded.words, possible)
        spans = _without_overlaps([*data, *map(folded.origin, dangers)])
        return tuple(_finding(text, span, data) for span in spans)

    def _dangers(self, words: str, possible: set[Entries]) -> Iterator[Span]:
        phrases = self._matches(words, self._phrases, possible)
        topics = self._matches(words, self._topics, possible)
        if phrases or topics:
            clauses = Clauses(words, self._grammar)
            yield from filter(clauses.affirm, phrases)
            yield from filter(clauses.promote, topics)

    def _matches(self, words: str, table: dict[str, Entries], possible: set[Entries]) -> list[Span]:
        return [
            Span(match.start(), match.end(), category)
            for category, entries in table.items()
            if entries in possible
            for match in self._compiled(entries).finditer(words)
        ]

    def only_denies(self, concern: str) -> bool:
        """Whether a judge's concern has only words that say that nothing is wrong."""
        words = re.findall(r"n/a|[\w']+", _Folded(concern[: LONGEST_QUOTE + 1]).words)
        if not words:
            return True
        if len(concern) > LONGEST_QUOTE:
            return False
        denying, praising, plain = self._concern_words
        verdicts = sum(bool(denying.fullmatch(word) or praising.fullmatch(word)) for word in words)
        others = sum(plain.fullmatch(word) is not None for word in words)
        return verdicts == 1 and others + 1 == len(words)

    @cached_property
    def _concern_words(self) -> Sequence[re.Pattern[str]]:
        known = self._book.concerns
        return [re.compile(self._book.pattern(each)) for each in msgspec.structs.astuple(known)]


def _without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in the order of the text, those of a category that overlap as one."""
    apart: list[Span] = []
    latest: dict[str, int] = {}
    for span in sorted(spans):
        place = latest.get(span.category)
        if place is not None and span.start < apart[place].end:
            apart[place] = apart[place]._replace(end=max(apart[place].end, span.end))
        else:
            latest[span.category] = len(apart)
            apart.append(span)
    return apart


# Folding: what is written differently but reads the same

# Invisible characters inside a word would hide it from the scan, though not from a reader.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]"
)
_SAME = str.maketrans(
    "\u2018\u2019\u02bc\u201c\u201d*_`~\u2010\u2011\u2013", "'''" + '"' * 6 + "---"
)
_EMPTY_LINE = re.compile(r"\n(?=[^\S\n]{0,80}\n)")


class _Folded:
    """A text without its disguises, and the way back to where each character came from."""

    def __init__(self, text: str) -> None:
        hidden = [] if text.isascii() else [each.start() for each in _INVISIBLE.finditer(text)]
        self._removed = [position - count for count, position in enumerate(hidden)]
        self._shapes = _INVISIBLE.sub("", text) if hidden else text
        self.small = _small(self._shapes)

    @property
    def words(self) -> str:
        """The text as phrases are written: straight apostrophes, ``"`` for a mark of emphasis."""
        # No phrase and no clause goes on after an empty line.
        return _EMPTY_LINE.sub(";", self.small.translate(_SAME))

    def origin(self, span: Span) -> Span:
        """Return the span of the original text that a span of the folded one stands for."""
        start, last = span.start, span.end - 1
        return span._replace(
            start=start + bisect_right(self._removed, start),
            end=last + bisect_right(self._removed, last) + 1,
        )

    def personal_data(self) -> list[Span]:
        """Return where the original text has personal data, in its order."""
        found = [self.origin(Span(*span, PERSONAL_DATA)) for span in personal_data(self._shapes)]
        return _without_overlaps(found) if found else found


def _small(text: str) -> str:
    small = text.lower()
    if len(small) == len(text):
        return small
    # A few capitals have small forms of two characters, which would shift every later span.
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


# Quotes


def _finding(text: str, span: Span, data: list[Span]) -> SafetyFinding:
    return SafetyFinding(
        category=span.category, quote=_quote(text, span, data), start=span.start, end=span.end
    )


def _concern(text: str) -> SafetyFinding:
    cut = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE].rpartition(" ")[0]
    quote = _masked(text, 0, len(cut) or LONGEST_QUOTE, _Folded(text).personal_data())
    return SafetyFinding(category=JUDGE_CONCERN, quote=quote, start=0, end=len(text))


def _quote(text: str, span: Span, data: list[Span]) -> str:
    """Return the span with a few whole words on either side, personal data masked."""
    start, end = span.start, span.end
    room = min(_CONTEXT, max(0, LONGEST_QUOTE - (end - start)) // 2)
    first, last = max(0, start - room), min(len(text), end + room)
    if first:
        _, space, kept = text[first:start].partition(" ")
        first = start - len(kept) if space else start
    if last < len(text):
        kept, space, _ = text[end:last].rpartition(" ")
        last = end + len(kept) if space else end
    return _masked(text, first, last, data)


def _masked(text: str, first: int, last: int, data: list[Span]) -> str:
    """Return a piece of the text without the middle of any secret: no report may hold one."""
    parts: list[str] = []
    place = first
    for start, end, _ in data:
        if end > first and start < last:
            parts += [text[place:start], _mask(text[start:end])]
            place = end
    return "".join([*parts, text[place:last]])


def _mask(secret: str) -> str:
    first, last = min(4, len(secret) // 5), min(2, len(secret) // 6)
    return f"{secret[:first]}…{secret[len(secret) - last :]}"
