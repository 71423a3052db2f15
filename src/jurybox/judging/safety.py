"""The safety scan: the same text always has the same findings, and no model is asked.

It reads a judge's reply, which may describe a danger, and a response, which may be one. A missed
danger is worse than a false alarm; yet a text that plainly denies one ("does not encourage
self-harm") has none. What it looks for is in ``safety_patterns``, ``safety_topics`` and
``safety_personal_data``, the rule of denial in ``safety_clauses``; ``safety_prefilter`` spares
a harmless text nearly all of it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Final

import msgspec

from jurybox.judging.safety_clauses import Clauses, Span
from jurybox.judging.safety_patterns import PHRASES
from jurybox.judging.safety_personal_data import personal_data, possible_data
from jurybox.judging.safety_prefilter import Prefilter, plain_words, word_groups
from jurybox.judging.safety_topics import TOPICS
from jurybox.judging.safety_vocabulary import Phrase, Table, compiled, keys

JUDGE_CONCERN: Final = "judge-concern"
PERSONAL_DATA: Final = "personal-data"
CATEGORIES: Final[tuple[str, ...]] = (
    "self-harm",
    "violence",
    "sexual-minors",
    "hate",
    "weapons-drugs",
    "malware",
    PERSONAL_DATA,
    JUDGE_CONCERN,
)
"""What a finding may be about; the last is what a judge itself is concerned about."""

LONGEST_QUOTE: Final = 120
_CONTEXT = 32  # characters on either side of a finding, where the quote has room for them


class SafetyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A span of a text that a person should look at."""

    category: str
    quote: str
    """The span and a few words around it as they stand in the text; personal data is masked."""
    start: int
    end: int


def scan(text: str) -> tuple[SafetyFinding, ...]:
    """Return every danger in ``text``, in its order."""
    folded = _Folded(text)
    data = folded.personal_data()
    if spans := [*data, *map(folded.origin, _dangers(folded))]:
        return tuple(_finding(text, span, data) for span in _without_overlaps(spans))
    return ()


def scan_all(texts: Sequence[str]) -> Iterator[SafetyFinding]:
    """Yield every danger in some texts, each of them read on its own, in their order."""
    if len(texts) == 1 or not harmless(texts):
        for text in texts:
            yield from scan(text)


def harmless(texts: Iterable[str]) -> bool:
    """Tell whether texts plainly hold no danger; where they don't, ``scan`` has to look closer.

    Most texts are harmless, and to see that once for all of them takes a tenth of the time.
    """
    # What the joint may lend the texts only makes us look closer.
    folded = _Folded(_JOINT.join(texts))
    if possible_data(folded.shapes):
        return False
    return not _prefilter().possible(plain_words(folded.small))


def concerns(texts: Iterable[str]) -> tuple[SafetyFinding, ...]:
    """Return a judge's own concerns as findings, without the entries that only deny one."""
    return tuple(_concern(text) for text in texts if not _only_denies(text))


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
        self.shapes = _INVISIBLE.sub("", text) if hidden else text
        self.small = _small(self.shapes)

    @cached_property
    def words(self) -> str:
        """The text as phrases are written."""
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
        return _without_overlaps(
            self.origin(Span(start, end, PERSONAL_DATA))
            for start, end in personal_data(self.shapes)
        )


def _small(text: str) -> str:
    small = text.lower()
    if len(small) == len(text):
        return small
    # A few capitals have small forms of two characters, which would shift every later span.
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


# Dangers in words, and whether their clause denies them


# An edge of words that belongs to no key of personal data.
_JOINT: Final = "\n"


def _dangers(folded: _Folded) -> Iterator[Span]:
    possible = _prefilter().possible(plain_words(folded.small))
    if not possible:
        return
    phrases = _matches(folded.words, PHRASES, possible)
    topics = _matches(folded.words, TOPICS, possible)
    if phrases or topics:
        clauses = Clauses(folded.words, max(phrases + topics).start)
        yield from filter(clauses.affirm, phrases)
        yield from filter(clauses.promote, topics)


@cache
def _prefilter() -> Prefilter[Phrase]:
    phrases = (each for table in (PHRASES, TOPICS) for own in table.values() for each in own)
    return Prefilter({phrase: word_groups(keys(phrase)) for phrase in phrases})


def _matches(words: str, table: Table, possible: set[Phrase]) -> list[Span]:
    return [
        Span(match.start(), match.end(), category)
        for category, phrases in table.items()
        if (pattern := _least(phrases, possible)) is not None
        for match in pattern.finditer(words)
    ]


def _least(phrases: Sequence[Phrase], possible: set[Phrase]) -> re.Pattern[str] | None:
    """Return the least expression that finds what all the phrases of a category would."""
    some = [phrase for phrase in phrases if phrase in possible]
    # Several would cost more one by one, and to compile each choice of them more than it saves.
    needed = some if len(some) <= 1 else phrases
    return compiled("|".join(phrase.pattern for phrase in needed)) if needed else None


# Quotes


def _finding(text: str, span: Span, data: list[Span]) -> SafetyFinding:
    return SafetyFinding(
        category=span.category, quote=_quote(text, span, data), start=span.start, end=span.end
    )


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
    for index in range(bisect_right(data, first, key=lambda span: span.end), len(data)):
        start, end, _ = data[index]
        if start >= last:
            break
        parts += [text[place:start], _mask(text[start:end])]
        place = end
    return "".join([*parts, text[place:last]])


def _mask(secret: str) -> str:
    first, last = min(4, len(secret) // 5), min(2, len(secret) // 6)
    return f"{secret[:first]}…{secret[len(secret) - last :]}"


# A judge's own concerns

# An entry of nothing but these words, just one of which denies or praises, says that all is well.
_DENYING = re.compile(
    r"no|not|none|nothing|nil|null|false|without|zero|0|n/a|na|never|nope|nobody|neither|\w+n't"
    r"|keine?|keinerlei|nichts|ningun[oa]?|nada|aucune?|rien|nessun[oa]|niente|geen|nenhuma?|ingen"
    r"|[无無]|なし"
)
_FINE = re.compile(r"safe|ok|okay|fine|harmless|appropriate|benign")
_PLAIN = re.compile(
    r"a|all|an|and|any|anything|apparent|applicable|apply|are|at|be|been|can|content|detected|did"
    r"|do|does|evident|everything|for|found|harm|harmful|has|have|here|i|identified|identifiable"
    r"|in|is|issues?|it|major|material|n|noted|noticed|observed|obvious|of|on|or|output"
    r"|particular|potential|present|problems?|raised|red|flags?|relevant|report|reported|answers?"
    r"|response|responses|reply|risks?|safety|see|seen|serious|significant|so|specific|such|text"
    r"|that|the|there|these|this|to|unsafe|was|were|whatsoever|with|concern|concerns|concerning"
    r"|problematic|violations?|both|either|major|minor|immediate|self|hate|hateful|speech"
    r"|violence|violent|slurs?|personal|data|private|information|malware|weapons?|drugs?|sexual"
    r"|encourage|promote|contain|contains|include|includes|bedenken|sicherheitsbedenken|probleme"
    r"|gefunden"
)


def _concern(text: str) -> SafetyFinding:
    cut = text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE].rpartition(" ")[0]
    quote = _masked(text, 0, len(cut) or LONGEST_QUOTE, _Folded(text).personal_data())
    return SafetyFinding(category=JUDGE_CONCERN, quote=quote, start=0, end=len(text))


def _only_denies(text: str) -> bool:
    """Whether an entry has only the words in which a judge says that nothing is wrong."""
    words = re.findall(r"n/a|[\w']+", _Folded(text[: LONGEST_QUOTE + 1]).words)
    if not words:
        return True
    if len(text) > LONGEST_QUOTE:
        return False
    denials = sum(_DENYING.fullmatch(word) is not None for word in words)
    praises = sum(_FINE.fullmatch(word) is not None for word in words)
    plain = sum(_PLAIN.fullmatch(word) is not None for word in words)
    return denials + praises == 1 and plain + 1 == len(words)
