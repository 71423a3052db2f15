"""Finds dangers, injections and personal data in judges' replies and responses.

A missed danger is worse than a false alarm, but a text that clearly denies one ("does not encourage
self-harm") has none. Personal data and secrets are recognized by their shape and, if they have one,
their check digit.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from jurybox.judging.safety.clauses import Clauses, Grammar, Span
from jurybox.judging.safety.phrasebook import Entries, Prefilter, read_phrasebook

# Reserved for documentation (RFC 2606, RFC 6761), and the usual stand-ins.
_PLACEHOLDER_DOMAIN = re.compile(
    r"(?:^|\.)(?:example(?:\.\w{2,6})?|test|invalid|localhost|local|domain\.com"
    r"|your-?(?:domain|company)\.\w{2,6})$"
)
# Mailboxes of an office, not of a person; `git@` is for repositories.
_ROLE = re.compile(
    r"abuse|admin|contact|git|hello|help|info|legal|no-?reply|office|postmaster|press|privacy|sales"
    r"|security|service|support|webmaster"
)
# Set aside for fiction (555-01xx, Ofcom's ranges); free-phone numbers belong to services.
_FICTION_OR_SERVICE = re.compile(
    r"55501\d\d$|^447700900\d{3}$|^442079460\d{3}$|^1?8(?:00|33|44|55|66|77|88)\d{7}$"
)
_PLACEHOLDER_SECRET = re.compile(r"(?i)example|your|xxxx|placeholder|0000000")
# Visa, Mastercard, American Express, Diners Club, Discover, JCB, UnionPay.
_CARD = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[068]\d{12}"
    r"|6(?:011\d\d|4[4-9]\d{3}|5\d{4})\d{10}|35\d{14}|62\d{14,17}"
)
# The registry of ISO 13616, without countries that few texts name.
_IBAN_LENGTHS: Final = {
    country: int(length)
    for country, length in re.findall(
        r"([A-Z]{2})(\d\d)",
        "AD24 AE23 AL28 AT20 BA20 BE16 BG22 CH21 CY28 CZ24 DE22 DK18 EE20 ES24 FI18 FR27 GB22 GI23"
        "GR27 HR21 HU28 IE22 IL23 IS26 IT27 LI21 LT20 LU20 LV21 MC27 ME22 MK19 MT31 NL18 NO15 PL28"
        "PT25 RO24 RS22 SA24 SE24 SI19 SK24 SM27 TR26 UA29",
    )
}
_SHORTEST_PHONE, _LONGEST_PHONE = 9, 15  # E.164 allows no more


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


def _address(text: str) -> int:
    name, _, domain = text.lower().rpartition("@")
    impersonal = _PLACEHOLDER_DOMAIN.search(domain) or _ROLE.fullmatch(name)
    return 0 if impersonal else len(text)


def _phone(text: str) -> int:
    digits = _digits(text)
    possible = _SHORTEST_PHONE <= len(digits) <= _LONGEST_PHONE
    return len(text) if possible and not _FICTION_OR_SERVICE.search(digits) else 0


def _card(text: str) -> int:
    """Check the issuer with its length, then the check digit (Luhn, ISO/IEC 7812-1)."""
    digits = _digits(text)
    if not _CARD.fullmatch(digits):
        return 0
    weighed = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return 0 if sum(number // 10 + number % 10 for number in weighed) % 10 else len(text)


def _account(text: str) -> int:
    """Check the length for the country and the check digits (ISO 13616: 1 modulo 97).

    The length decides where an IBAN ends, because words in capitals may follow it.
    """
    length = _IBAN_LENGTHS.get(text[:2], 0)
    places = [place for place, char in enumerate(text) if char != " "][:length]
    if not length or len(places) < length:
        return 0
    account = "".join(text[place] for place in places)
    number = int("".join(str(int(char, 36)) for char in account[4:] + account[:4]))
    return places[-1] + 1 if number % 97 == 1 else 0


def _secret(text: str) -> int:
    return 0 if _PLACEHOLDER_SECRET.search(text) else len(text)


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


class SecretShape(NamedTuple):
    """The pattern of one kind of personal data."""

    pattern: re.Pattern[str]
    length: Callable[[str], int]
    """The length of the match that is personal data; 0 for a false match."""


def _has_at(text: str) -> bool:
    return "@" in text


# A phone or card number is at least nine digits with marks between them; an IBAN begins "DE89".
_has_number = re.compile(r"\d(?:[\d ().-]{8}|(?<=[A-Z]{2}\d)\d)").search


_KEY_STARTS: Final = (
    *("sk-", "AKIA", "ASIA", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-"),
    *("k_live_", "AIza", "xox", "eyJ", "-----BEGIN "),
)


def _has_key_start(text: str) -> bool:
    return any(map(text.__contains__, _KEY_STARTS))


# A shape starts only if no character of its kind precedes it, so long runs are read once.
_EMAIL_ADDRESS = SecretShape(
    re.compile(
        r"(?<![\w.%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}"
        r"\.[A-Za-z]{2,24}(?![\w-])"
    ),
    _address,
)
# With a country code; or North American, with brackets or one kind of separator.
_PHONE_NUMBER = SecretShape(
    re.compile(
        r"(?<![\w.+/-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}"
        r"(?:[ .-]\d{2,8}){1,4}|\+[1-9]\d{9,14}|(?:1[ .-])?(?:\([2-9]\d\d\) ?[2-9]\d\d[.-]\d{4}"
        r"|[2-9]\d\d([.-])[2-9]\d\d\1\d{4}))(?![\w-]|\.\d)"
    ),
    _phone,
)
_BANK_CARD = SecretShape(
    re.compile(
        r"(?<![\w.-])(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{4,5})"
        r"(?![\w-]|\.\d)"
    ),
    _card,
)
# Numbers that are never issued are left out.
_SOCIAL_SECURITY_NUMBER = SecretShape(
    re.compile(r"(?<![\w.-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)"), len
)
_IBAN = SecretShape(
    re.compile(r"(?<!\w)[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"), _account
)
# The prefixes of services' keys, which exist so that scanners find them.
_API_KEY = SecretShape(
    re.compile(
        r"(?<![\w-])(?:sk-(?:[A-Za-z0-9]{2,10}-){0,3}[A-Za-z0-9_]{16}[\w-]*"
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)|gh[opsur]_\w{20,}|github_pat_\w{20,}"
        r"|glpat-[\w-]{20,}|[sr]k_live_\w{16,}|AIza[\w-]{35}|xox[abeprs]-[\w-]{10,}"
        r"|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*)"
    ),
    _secret,
)
# Includes the key itself, so that quoting the first line never shows the rest.
_PRIVATE_KEY = SecretShape(
    re.compile(
        r"-----BEGIN (?:[A-Z]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----[A-Za-z0-9+/=\s\\]*"
        r"(?:-----END (?:[A-Z]{1,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
    ),
    len,
)

SHAPES: Final[tuple[tuple[Callable[[str], object], tuple[SecretShape, ...]], ...]] = (
    (_has_at, (_EMAIL_ADDRESS,)),
    (_has_number, (_PHONE_NUMBER, _BANK_CARD, _SOCIAL_SECURITY_NUMBER, _IBAN)),
    (_has_key_start, (_API_KEY, _PRIVATE_KEY)),
)
"""The shapes, by a quick test; most texts fail all tests and need no further search."""


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


def scan(text: str, *, judge: bool = False) -> tuple[SafetyFinding, ...]:
    """Return every danger in ``text``, in text order.

    Args:
        text: the text of a response or a judge.
        judge: whether a judge wrote it; alarms ("the answer is unsafe") count only then.

    """
    return _scanner().scan(text, judge=judge)


def injections(response: str) -> tuple[SafetyFinding, ...]:
    """Return the passages of a response that address its judge."""
    return _scanner().injections(response)


def harmless(texts: Iterable[str]) -> bool:
    """Return whether one quick pass over all texts rules out dangers and injections."""
    return _scanner().harmless("\n\n".join(texts))


def concerns(texts: Iterable[str]) -> tuple[SafetyFinding, ...]:
    """Return a judge's own concerns as findings, without the entries that only deny one."""
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
        # Compiled on demand: that takes milliseconds, and most texts need none.
        self._compiled = cache(self._book.words)
        self._loosely = cache(self._book.word_ends)

    @cached_property
    def _grammar(self) -> Grammar:
        return Grammar(self._book)

    def scan(self, text: str, *, judge: bool = False) -> tuple[SafetyFinding, ...]:
        """Return every danger in ``text``, in text order; alarms count if ``judge`` is true."""
        folded = _Folded(text)
        data = folded.personal_data()
        possible = self._filter.possible(folded.small)
        dangers = self._dangers(folded.words, possible, judge=judge)
        spans = _without_overlaps([*data, *map(folded.origin, dangers)])
        return tuple(_finding(text, span, data) for span in spans)

    def harmless(self, text: str) -> bool:
        """Return whether a quick pass rules out any finding; False in case of doubt."""
        folded = _Folded(text)
        alike = not text.isascii() and _ALIKE.search(text)
        if alike or folded.personal_data():
            return False
        possible = self._filter.possible(folded.small)
        return possible <= self._injections and not any(self._addresses(folded, possible))

    def injections(self, response: str) -> tuple[SafetyFinding, ...]:
        """Return the passages of a response that address its judge, even in a denied clause."""
        folded = _Folded(response if response.isascii() else _ALIKE.sub(_plain_letter, response))
        found = self._addresses(folded, self._filter.possible(folded.small))
        spans = _without_overlaps(
            [folded.origin(Span(*match.span(), FORGED_PROMPT)) for match in found]
        )
        data = folded.personal_data() if spans else []
        return tuple(_finding(response, span, data) for span in spans)

    def _addresses(self, folded: "_Folded", possible: set[Entries]) -> Iterator[re.Match[str]]:
        """Yield the passages that address a judge, from the candidate phrases."""
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
        """Whether a judge's concern only states that nothing is wrong."""
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
    """A text without disguises, with the original position of each character."""

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
    """Return the ASCII lookalike of a character; always a single one, so that spans stay valid."""
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
