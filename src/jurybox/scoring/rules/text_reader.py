"""Reads a response and its conversation word by word, for signals to count and quote.

Words are runs of letters and digits, including a contraction that follows.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import msgspec

from jurybox.judging.safety import SafetyFinding
from jurybox.rubric.rules import Lexicon, Source
from jurybox.sample import Turn
from jurybox.scoring.rules.phrases import Folded, Hit, fold
from jurybox.scoring.rules.rule_report import MOST_QUOTES, Quote

Quoting = Callable[[str], tuple[Quote, ...]]
"""Quotes the words that a signal matched, on demand; takes the signal's name."""

_SENTENCE_ENDS = (". ", "! ", "? ", "\u2026 ")
_DIGIT = re.compile(r"\d")
_MOST_REMEMBERED = 1 << 16
_SHORTEST_STEM = 3
_MOST_LOOKED_AT = 3 * MOST_QUOTES  # more than are quoted, because some can't be
_VOWELS = re.compile("[aeiouy]+")

Triple = tuple[str, str, str]


@lru_cache(_MOST_REMEMBERED)
def stem(word: str) -> str:
    """Return a word without its English endings, so that "worries" and "worried" are equal."""
    bare = without_tail(word)
    if len(bare) <= _SHORTEST_STEM or not bare.isascii():
        return bare
    for ending, instead in _ENDINGS:
        if bare.endswith(ending) and len(bare) - len(ending) >= _SHORTEST_STEM:
            cut = bare[: len(bare) - len(ending)]
            if not _VOWELS.search(cut):
                return bare
            return _even(cut + instead)
    return _even(bare)


# The longest endings come first; "ss" isn't a plural.
_ENDINGS: Final = (
    ("ingly", ""),
    ("edly", ""),
    ("iness", "y"),
    ("ness", ""),
    ("ies", "y"),
    ("ied", "y"),
    ("ily", "y"),
    ("ing", ""),
    ("sses", "ss"),
    ("ss", "ss"),
    ("us", "us"),
    ("es", ""),
    ("ed", ""),
    ("ly", ""),
    ("s", ""),
)


def _even(cut: str) -> str:
    """Map "stopp" and "stop", "lov" and "love" to one form."""
    if len(cut) > _SHORTEST_STEM and cut[-1] == cut[-2] and cut[-1] not in "aeioulsz":
        return cut[:-1]
    if len(cut) > _SHORTEST_STEM and cut.endswith("e"):
        return cut[:-1]
    return f"{cut[:-1]}i" if len(cut) > _SHORTEST_STEM and cut.endswith("y") else cut


def without_tail(word: str) -> str:
    """Return a word without its contraction: "it's" is "it", "don't" is "do"."""
    head, apostrophe, tail = word.partition("'")
    return head[:-1] if apostrophe and tail == "t" and head.endswith("n") and head[:-1] else head


class _WordLetters(dict[int, str]):
    """A table for ``str.translate`` that keeps only words and apostrophes."""

    def __missing__(self, code: int) -> str:
        """Compute and cache the mapping of a character."""
        char = chr(code)
        letter = char == "'" or char.isalnum() or unicodedata.category(char).startswith("M")
        self[code] = char if letter else " "
        return self[code]


_LETTERS: Final = _WordLetters()
# The same, but it also keeps line ends.
_LINES: Final = _WordLetters({ord("\n"): "\n"})


class WordList:
    """A lexicon that is matched word by word."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.words = frozenset(fold(phrase).text.strip() for phrase in lexicon.phrases)
        self.stems = frozenset(map(stem, self.words))
        self.other = lru_cache(_MOST_REMEMBERED)(self._other)

    def _other(self, word: str) -> str:
        """Return the stem of a word; empty if it is in the list or a single letter."""
        bare = without_tail(word)
        if word in self.words or bare in self.words or (len(bare) == 1 and bare.isascii()):
            return ""
        return stem(word)


class Families:
    """A lexicon in which each phrase is a family of words."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._heads: dict[str, str] = {}
        for phrase in lexicon.phrases:
            family = [stem(word) for word in _words(fold(phrase).text)]
            for each in family:
                self._heads.setdefault(each, family[0])

    def heads(self, stems: Iterable[str]) -> dict[str, str]:
        """Return one of the given stems for each family; the key is the family's first stem."""
        heads = self._heads
        return {heads.get(each, each): each for each in stems}


class Passage:
    """A text, split into words."""

    def __init__(self, folded: Folded, source: Source) -> None:
        self.folded = folded
        self.source: Source = source
        self.words = _words(folded.text)
        self._content: dict[int, dict[str, int]] = {}

    def content(self, stop_words: WordList) -> dict[str, int]:
        """Return the distinct stems of the content words, and where each first occurs."""
        known = self._content.get(id(stop_words))
        if known is None:
            stems = list(map(stop_words.other, self.words))
            # Reversed, so that the first of equal stems is kept.
            known = dict(zip(reversed(stems), range(len(stems) - 1, -1, -1), strict=True))
            known.pop("", None)
            self._content[id(stop_words)] = known
        return known

    @cached_property
    def stems(self) -> list[str]:
        """The stem of each word."""
        return list(map(stem, self.words))

    @cached_property
    def triples(self) -> list[Triple]:
        """The triples of consecutive words."""
        words = self.words
        return list(zip(words, words[1:], words[2:], strict=False))

    @cached_property
    def sentences(self) -> list[int]:
        """The number of words in each sentence."""
        text = self.folded.text
        for end in _SENTENCE_ENDS:
            if end in text:
                text = text.replace(end, "\n")
        lengths = [len(sentence.split()) for sentence in text.translate(_LINES).split("\n")]
        return [length for length in lengths if length]

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """The position of each word in the folded text."""
        spans: list[tuple[int, int]] = []
        end = 0
        for word in self.words:
            start = self.folded.text.index(word, end)
            end = start + len(word)
            spans.append((start, end))
        return spans

    def quoting(self, numbers: Iterable[int], words: int = 1) -> Quoting:
        """Return a function that quotes runs of ``words`` words, which begin at ``numbers``."""

        def quote(name: str) -> tuple[Quote, ...]:
            spans = self._spans
            first = sorted(numbers)[:_MOST_LOOKED_AT]
            return self.quote_spans(
                name, [(spans[each][0], spans[each + words - 1][1]) for each in first]
            )

        return quote

    def quoting_spans(self, spans: Sequence[tuple[int, int]]) -> Quoting:
        """Return a function that quotes spans of the folded text."""
        return lambda name: self.quote_spans(name, spans)

    def quote_spans(self, name: str, spans: Sequence[tuple[int, int]]) -> tuple[Quote, ...]:
        """Quote pieces of the folded text, except those with digits, which may be personal data."""
        quotes: list[Quote] = []
        for start, end in spans:
            if _DIGIT.search(self.folded.text, start, end):
                continue
            begin, stop = self.folded.span(start, end)
            words = self.folded.original[begin:stop]
            quotes.append(Quote(text=self.source, words=words, start=begin, source=name))
            if len(quotes) == MOST_QUOTES:
                break
        return tuple(quotes)


def _words(text: str) -> list[str]:
    letters = text.translate(_LETTERS)
    words = letters.split()
    # Most apostrophes are within a word.
    if "' " in letters or " '" in letters or letters[:1] == "'" or letters[-1:] == "'":
        words = [bare for word in words if (bare := word.strip("'"))]
    return words


_BETWEEN_TURNS = "\n\n"


class Conversation(msgspec.Struct, frozen=True, dict=True):
    """A response with its conversation, as signals read it."""

    response: Folded
    user: Folded
    messages: Sequence[Turn]
    findings: Sequence[SafetyFinding]

    @cached_property
    def answer(self) -> Passage:
        """The response, word by word."""
        return Passage(self.response, "response")

    @cached_property
    def message(self) -> Passage:
        """The user's message, word by word."""
        return Passage(self.user, "user")

    @cached_property
    def earlier(self) -> Folded:
        """The user's earlier turns, separated by empty lines."""
        turns = (turn.content for turn in self.messages if turn.role == "user")
        return fold(_BETWEEN_TURNS.join(turns))

    def start_of_recent(self, turns: int) -> int:
        """Return where the last few of the user's earlier turns begin in ``earlier.text``."""
        contents = [turn.content for turn in self.messages if turn.role == "user"]
        older = contents[:-turns]
        return len(fold(_BETWEEN_TURNS.join([*older, ""])).text) if older else 0

    @cached_property
    def before(self) -> Passage:
        """All earlier turns, including the system prompt."""
        turns = (turn.content for turn in self.messages)
        return Passage(fold(_BETWEEN_TURNS.join(turns)), "earlier")

    @cached_property
    def from_user(self) -> Passage:
        """The earlier turns of the user, and the system prompt."""
        turns = (turn.content for turn in self.messages if turn.role != "assistant")
        return Passage(fold(_BETWEEN_TURNS.join(turns)), "earlier")

    @cached_property
    def own_turns(self) -> Passage:
        """The assistant's earlier turns, word by word."""
        turns = (turn.content for turn in self.messages if turn.role == "assistant")
        return Passage(fold(_BETWEEN_TURNS.join(turns)), "earlier")

    def text(self, source: Source) -> Folded:
        """Return one of the texts that are searched for phrases."""
        if source == "response":
            return self.response
        return self.user if source == "user" else self.earlier


Span = tuple[int, int]


class Lists(NamedTuple):
    """The lexicons of a numeric signal: its word lists, and the matches of its phrases.

    The word lists are in the order of the signal's definition.
    """

    words: tuple[WordList, ...] = ()
    hits: Mapping[Source, Sequence[Hit]] = {}
    families: Families | None = None

    @property
    def here(self) -> Sequence[Hit]:
        """The matches in the response."""
        return self.hits.get("response", ())


class Amount(NamedTuple):
    """The value of a numeric signal for a response, and a function that quotes what it counted."""

    number: float
    quote: Quoting | None = None


NumericSignal = Callable[[Conversation, Lists], Amount]
NONE = Amount(0)
