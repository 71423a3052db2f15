"""Finds dangers, injections and personal data in judges' replies and responses.

A missed danger is worse than a false alarm, but a clearly denied danger ("does not encourage
self-harm") isn't a finding. Trying every phrase on every text would take thirty times as long, and
double the CPU time of a judged sample, so one pass first looks for the words that phrases require.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec
from ahocorasick_rs import BytesAhoCorasick

from jurybox.judging.safety.clauses import Clauses, Grammar, Span
from jurybox.judging.safety.phrasebook import (
    API_KEY,
    BANK_CARD,
    EMAIL_ADDRESS,
    IBAN,
    PHONE_NUMBER,
    PRIVATE_KEY,
    SOCIAL_SECURITY_NUMBER,
    SecretShape,
    read_phrasebook,
    tidy,
)


def personal_data(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each piece of personal data starts and ends, kind by kind.

    Denials are ignored: a secret in a sentence that denies it is still a secret.
    """
    for hint, shapes in SHAPES:
        if hint(text):
            for shape in shapes:
                for match in shape.pattern.finditer(text):
                    if size := shape.length(match[0]):
                        yield match.start(), match.start() + size


# A phone or card number has nine or more digits and separators; an IBAN begins like "DE89".
_has_number = re.compile(r"\d(?:[\d ().-]{8}|(?<=[A-Z]{2}\d)\d)").search


_KEY_STARTS: Final = (
    *("sk-", "AKIA", "ASIA", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-"),
    *("k_live_", "AIza", "xox", "eyJ", "-----BEGIN "),
)


SHAPES: Final[tuple[tuple[Callable[[str], object], tuple[SecretShape, ...]], ...]] = (
    (lambda text: "@" in text, (EMAIL_ADDRESS,)),
    (_has_number, (PHONE_NUMBER, BANK_CARD, SOCIAL_SECURITY_NUMBER, IBAN)),
    (lambda text: any(map(text.__contains__, _KEY_STARTS)), (API_KEY, PRIVATE_KEY)),
)
"""The shapes in groups; a text is searched for a group only if it passes its quick test."""


Entries = tuple[str, ...]
"""Phrases that are tried together, as one expression."""
Words = frozenset[str]
"""Pieces of plain text from the start of a word; every match contains one of them."""

_SHORTEST: Final = 3  # letters; shorter pieces are in nearly every text
_TOKEN = re.compile(
    r"(?P<text>(?:[\w':,& -](?![?*+{]))+)|(?P<look>\(\?<?[=!])|(?P<open>\()|(?P<close>\))"
    r"|(?P<or>\|)|(?P<end>\\b)|(?P<repeat>[?*+]|\{[^}]*\})|(?P<part><[a-z]+>)"
    r"|(?P<any>\[(?:\\.|[^\]\\])*\]|\\.|.)"
)
_NUMBER_OF: Final = itemgetter(0)
_PLAIN: Final = bytes(code if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)


class Prefilter:
    """Finds the entries that a text may match."""

    def __init__(self, tables: Iterable[Entries], parts: Mapping[str, str]) -> None:
        known: dict[str, _Needs] = {}
        for name, part in parts.items():
            known[f"<{name}>"] = _NeedsReader(part, known).choice()
        needs = [
            (entries, need.all)
            for entries in tables
            for entry in entries
            for need in _NeedsReader(entry, known).sequences()
        ]
        words = sorted(frozenset[str]().union(*(each for _, needed in needs for each in needed)))
        self._automaton = BytesAhoCorasick([word.encode() for word in words])
        numbers = {word: number for number, word in enumerate(words)}
        self._always = {entries for entries, needed in needs if not needed}
        self._by_word: dict[int, list[tuple[Entries, list[frozenset[int]]]]] = {}
        for entries, needed in needs:
            rarest = _rarest(needed)
            others = [frozenset(numbers[word] for word in e) for e in needed if e is not rarest]
            for word in rarest:
                self._by_word.setdefault(numbers[word], []).append((entries, others))

    def possible(self, text: str) -> set[Entries]:
        """Return the entries that a lower-case text may match."""
        looked_at = _plain(text) if text.isascii() else _plain(text) + text.encode(errors="replace")
        hits = self._automaton.find_matches_as_indexes(looked_at, overlapping=True)
        found = set(map(_NUMBER_OF, hits))
        return self._always | {
            entries
            for word in found & self._by_word.keys()
            for entries, others in self._by_word[word]
            if not any(map(found.isdisjoint, others))
        }


class _Needs:
    """The literals that every match of a part of a phrase has; whether the part ends with a gap."""

    def __init__(self, needed: list[Words], *, ends_with_gap: bool) -> None:
        self.all = needed
        self.ends_with_gap = ends_with_gap


class _NeedsReader:
    """Finds the literals that a phrase requires; none in case of doubt."""

    def __init__(self, entry: str, parts: Mapping[str, _Needs]) -> None:
        self._parts = parts
        self._tokens = [(each.lastgroup, each[0]) for each in _TOKEN.finditer(tidy(entry))]
        self._tokens.reverse()  # so that `pop` returns the next token

    def sequences(self) -> list[_Needs]:
        """Read up to a closing bracket or the end; return what each alternative requires."""
        read = [self._sequence()]
        while self._tokens and self._tokens[-1][0] == "or":
            self._tokens.pop()
            read.append(self._sequence())
        return read

    def choice(self) -> _Needs:
        """Read the alternatives as one piece."""
        read = self.sequences()
        if len(read) == 1:
            return read[0]
        rarest = [_rarest(each.all) for each in read]
        any_of = [frozenset[str]().union(*rarest)] if all(rarest) else []
        return _Needs(any_of, ends_with_gap=all(each.ends_with_gap for each in read))

    def _sequence(self) -> _Needs:
        needed: list[Words] = []
        literal = " "  # plain text so far, from the start of a word; empty inside an unknown word
        while self._tokens and self._tokens[-1][0] not in {"or", "close"}:
            kind, token = self._tokens.pop()
            if kind == "text":
                _, gap, after = token.partition(" ")
                literal = literal + token if literal else gap + after
                continue
            piece = self._piece(kind, token)
            repeat = self._repeat()
            if kind == "look":
                continue
            needed += _words(f"{literal} " if kind == "end" else literal)
            begins = literal.endswith(" ")
            if piece is not None and not repeat.startswith(("?", "{0")):
                # Other alphabets are also searched inside words.
                needed += [each for each in piece.all if begins or not "".join(each).isascii()]
            literal = " " if piece is not None and begins and piece.ends_with_gap else ""
        return _Needs(needed + _words(literal), ends_with_gap=literal.endswith(" "))

    def _piece(self, kind: str | None, token: str) -> _Needs | None:
        if kind == "part":
            if token not in self._parts:
                raise ValueError(f"{token}: `parts` must define it above the entry that uses it")
            return self._parts[token]
        if kind not in {"open", "look"}:
            return None
        piece = self.choice()
        self._tokens.pop()  # the closing bracket
        return piece

    def _repeat(self) -> str:
        repeated = self._tokens and self._tokens[-1][0] == "repeat"
        return self._tokens.pop()[1] if repeated else ""


def _words(literal: str) -> list[Words]:
    plain = _plain(literal).decode()
    if len(plain.strip()) < _SHORTEST:
        # `_plain` removes other alphabets entirely, so their words are searched for unchanged.
        return [] if literal.isascii() else [frozenset({max(literal.split(), key=len)})]
    # The last word may continue, unless the literal ends it.
    return [frozenset({plain.rstrip() if literal[-1].isalnum() else plain})]


def _plain(text: str) -> bytes:
    """Return letters and digits, with one space before, between and after words."""
    # Non-ASCII characters arrive as `?` and become spaces too: this only adds candidates.
    words = text.encode("ascii", "replace").translate(_PLAIN).split()
    return b" %b " % b" ".join(words)


def _rarest(needed: list[Words]) -> Words:
    """Return the words that the fewest texts contain, estimated by their length."""
    return min(
        needed, key=lambda words: sum(2.0 ** -len(word) for word in words), default=frozenset[str]()
    )


JUDGE_CONCERN: Final = "judge-concern"
PERSONAL_DATA: Final = "personal-data"
FORGED_PROMPT: Final = "forged-prompt"
"""The category of text in a response that addresses its judge."""
LONGEST_QUOTE: Final = 120
_CONTEXT: Final = 32  # characters on either side of a finding, if they fit into the quote


class SafetyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A span of a text that a person should look at."""

    category: str
    quote: str
    """The span and a few words around it from the text; personal data is masked."""
    start: int
    end: int


class Suspicion(NamedTuple):
    """What texts may contain, by a quick pass over all of them."""

    dangers: bool
    injections: bool
    possible: set[Entries]
    """The phrases that may be in one of the texts."""


def scan(
    text: str, suspected: Suspicion | None = None, *, judge: bool = False
) -> tuple[SafetyFinding, ...]:
    """Return every danger in ``text``, in text order.

    Args:
        text: the text of a response or a judge.
        suspected: what it and other texts may contain, if that is known.
        judge: whether a judge wrote it; alarms ("the answer is unsafe") count only then.

    """
    return _scanner().scan(text, suspected, judge=judge)


def injections(response: str, suspected: Suspicion | None = None) -> tuple[SafetyFinding, ...]:
    """Return the passages of a response that address its judge."""
    return _scanner().injections(response, suspected)


def suspicion(texts: Iterable[str]) -> Suspicion:
    """Return whether texts may contain dangers or injections, after one quick pass over them."""
    return _scanner().suspicion("\n\n".join(texts))


def concerns(texts: Iterable[str]) -> tuple[SafetyFinding, ...]:
    """Return a judge's own concerns as findings, without texts that only say there are none."""
    return tuple(_concern(text) for text in texts if not _scanner().only_denies(text))


def categories() -> tuple[str, ...]:
    """Return the categories of findings; the last is the judge's own concern."""
    return _scanner().categories


@cache
def _scanner() -> "Scanner":
    return Scanner(files("jurybox.judging.safety").joinpath("phrases.yaml").read_text("utf-8"))


class Scanner:
    """Scans texts for the phrases of a phrasebook, given as YAML."""

    def __init__(self, source: str) -> None:
        self._book = read_phrasebook(source)
        self.categories = tuple(
            dict.fromkeys((*self._book.categories, PERSONAL_DATA, JUDGE_CONCERN))
        )
        self._phrases = {name: each.phrases for name, each in self._book.categories.items()}
        self._alarms = {name: each.alarms for name, each in self._book.categories.items()}
        self._topics = {name: each.topics for name, each in self._book.categories.items()}
        tables = (*self._phrases.values(), *self._alarms.values(), *self._topics.values())
        known = self._book.injections
        self._marks = re.compile("|".join(known.marks))
        self._injections = {(entry,) for entry in known.phrases}
        self._filter = Prefilter((*tables, *self._injections), self._book.parts)
        # Compiled on demand, because compiling takes milliseconds and most texts need no pattern.
        self._compiled = cache(self._book.words)
        self._loosely = cache(self._book.word_ends)

    @cached_property
    def _grammar(self) -> Grammar:
        return Grammar(self._book)

    def scan(
        self, text: str, suspected: Suspicion | None = None, *, judge: bool = False
    ) -> tuple[SafetyFinding, ...]:
        """Return every danger in ``text``, in text order; alarms count if ``judge`` is true."""
        folded = _Folded(text)
        data = folded.personal_data()
        possible = self._filter.possible(folded.small) if suspected is None else suspected.possible
        dangers = self._dangers(folded.words, possible, judge=judge)
        spans = _without_overlaps([*data, *map(folded.origin, dangers)])
        return tuple(_finding(text, span, data) for span in spans)

    def suspicion(self, text: str) -> Suspicion:
        """Return whether a text may contain dangers or injections."""
        folded = _Folded(text)
        possible = self._filter.possible(folded.small)
        alike = not text.isascii() and _ALIKE.search(text)
        if alike:
            possible |= self._filter.possible(_Folded(_ALIKE.sub(_plain_letter, text)).small)
        dangers = alike or possible - self._injections or folded.personal_data()
        injections = alike or possible & self._injections or self._marks.search(folded.small)
        return Suspicion(bool(dangers), bool(injections), possible)

    def injections(
        self, response: str, suspected: Suspicion | None = None
    ) -> tuple[SafetyFinding, ...]:
        """Return the passages of a response that are meant for its judge; denials don't matter."""
        folded = _Folded(response if response.isascii() else _ALIKE.sub(_plain_letter, response))
        possible = self._filter.possible(folded.small) if suspected is None else suspected.possible
        found = self._addresses(folded, possible)
        spans = _without_overlaps(
            [folded.origin(Span(*match.span(), FORGED_PROMPT)) for match in found]
        )
        data = folded.personal_data() if spans else []
        return tuple(_finding(response, span, data) for span in spans)

    def _addresses(self, folded: "_Folded", possible: set[Entries]) -> Iterator[re.Match[str]]:
        """Yield the matches of marks and of possible phrases that address a judge."""
        yield from self._marks.finditer(folded.small)
        phrases = possible & self._injections
        words = folded.words if phrases else ""
        for entries in phrases:
            for match in self._loosely(entries).finditer(words):
                if not words[match.start() - 1 : match.start()].isalnum():
                    yield match

    def _dangers(self, words: str, possible: set[Entries], *, judge: bool) -> Iterator[Span]:
        phrases = self._matches(words, self._phrases, possible)
        if judge:
            phrases += self._matches(words, self._alarms, possible)
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
        """Return whether a judge's concern only states that nothing is wrong."""
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
    """Return the spans in text order; overlapping spans of a category are merged."""
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


# Folding: different characters that read the same

# Invisible characters inside a word would hide it from the scan, though not from a reader.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]"
)
_SAME = str.maketrans(
    "\u2018\u2019\u02bc\u201c\u201d*_`~\u2010\u2011\u2013", "'''" + '"' * 6 + "---"
)
# Wide, circled and mathematical signs, invisible tags, Cyrillic and Greek lookalikes.
_ALIKE = re.compile(
    "[\u2460-\u24ff\uff01-\uff5e\U0001d400-\U0001d7ff\U000e0020-\U000e007e]"
    "|(?<=[A-Za-z])[аеорсухіοεα]|[аеорсухіοεα](?=[A-Za-z])"
)
_LATIN = dict(zip("аеорсухіοεα", "aeopcyxioea", strict=True))
_EMPTY_LINE = re.compile(r"\n(?=[^\S\n]{0,80}\n)")


class _Folded:
    """A text in lower case without invisible characters; maps its spans to the original text."""

    def __init__(self, text: str) -> None:
        hidden = [] if text.isascii() else [each.start() for each in _INVISIBLE.finditer(text)]
        self._removed = [position - count for count, position in enumerate(hidden)]
        self._shapes = _INVISIBLE.sub("", text) if hidden else text
        self.small = _small(self._shapes)

    @property
    def words(self) -> str:
        """The text in the notation of phrases: straight apostrophes, ``"`` for emphasis marks."""
        # No phrase or clause continues after an empty line.
        return _EMPTY_LINE.sub(";", self.small.translate(_SAME))

    def origin(self, span: Span) -> Span:
        """Return the span of the original text that corresponds to a span of the folded text."""
        start, last = span.start, span.end - 1
        return span._replace(
            start=start + bisect_right(self._removed, start),
            end=last + bisect_right(self._removed, last) + 1,
        )

    def personal_data(self) -> list[Span]:
        """Return the spans of personal data in the original text, in order."""
        found = [self.origin(Span(*span, PERSONAL_DATA)) for span in personal_data(self._shapes)]
        return _without_overlaps(found) if found else found


def _plain_letter(alike: re.Match[str]) -> str:
    """Return the ASCII lookalike of a character: one character, so that spans stay valid."""
    if alike[0] >= "\U000e0020":
        return chr(ord(alike[0]) - 0xE0000)
    plain = unicodedata.normalize("NFKC", _LATIN.get(alike[0], alike[0]))
    return plain if len(plain) == 1 else alike[0]


def _small(text: str) -> str:
    small = text.lower()
    if len(small) == len(text):
        return small
    # A few capitals have lower-case forms of two characters, which would shift later spans.
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _finding(text: str, span: Span, data: list[Span]) -> SafetyFinding:
    return SafetyFinding(
        category=span.category, quote=_quote(text, span, data), start=span.start, end=span.end
    )


def _concern(text: str) -> SafetyFinding:
    cut = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE].rpartition(" ")[0]
    quote = _masked(text, 0, len(cut) or LONGEST_QUOTE, _Folded(text).personal_data())
    return SafetyFinding(category=JUDGE_CONCERN, quote=quote, start=0, end=len(text))


def _quote(text: str, span: Span, data: list[Span]) -> str:
    """Return the span with a few words on either side, personal data masked."""
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
    """Return a piece of the text with the middle of every secret masked."""
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
