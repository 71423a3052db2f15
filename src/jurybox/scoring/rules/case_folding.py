"""A text as phrases are looked up in it, and the way back to the text as it was written.

Folded are: case ("Straße" is "STRASSE"), the shape of apostrophes, canonically equal spellings (an
accent may be a character of its own), and whatever nobody sees, such as a soft hyphen. Words
stand one space apart, also over the end of a line; an empty line stays one, for no phrase goes
on after it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator

import msgspec

Change = tuple[int, int, str]
"""Start and end of a piece of a text, and what takes its place."""

_APOSTROPHES = "\u2018\u2019\u201b\u02bc"
_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
_SEEN = re.compile(f"[^{_UNSEEN}]+")
# Space other than a single blank, and what nobody sees. It begins with a set of characters and not
# with a choice, because only then is everything else passed over quickly.
_ODD = re.compile(rf"[\s{_UNSEEN}](?:(?<! )|(?=[\s{_UNSEEN}]))[\s{_UNSEEN}]*")
_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")
# Halves of characters, which no other library takes for text.
_SURROGATE, _REPLACEMENT = re.compile("[\ud800-\udfff]"), "\ufffd"

# With the letter before them, on which they may be marks.
_NOT_ASCII = re.compile("[\x00-\x7f]?[^\x00-\x7f]+")
# No script needs more marks on a letter (UAX #15, Stream-Safe Text), and sorting them takes time.
_MOST_MARKS = 30


def count_line_breaks(text: str) -> int:
    """Return how often a text goes on in a new line; a carriage return before one is part of it."""
    return len(_LINE_BREAK.findall(text))


class _Rewriting:
    """A text in which pieces were replaced, and where each of its characters comes from."""

    def __init__(self, text: str, changes: list[Change], keep: Callable[[str], str]) -> None:
        self._changes = changes
        self._starts: list[int] = []
        parts: list[str] = []
        place = length = 0
        for start, end, replacement in changes:
            length += start - place
            parts += keep(text[place:start]), replacement
            self._starts.append(length)
            length += len(replacement)
            place = end
        self.text = "".join([*parts, keep(text[place:])])

    def origin(self, place: int) -> tuple[int, int]:
        """Return start and end of what became the character at ``place``."""
        index = bisect_right(self._starts, place) - 1
        if index < 0:
            return place, place + 1
        start, end, replacement = self._changes[index]
        beyond = place - self._starts[index] - len(replacement)
        return (start, end) if beyond < 0 else (end + beyond, end + beyond + 1)


class Folded(msgspec.Struct, frozen=True, gc=False):
    """A folded text; ``text`` has one space or one line break between two words.

    ``one_line`` says that the original has no line break and no other space than single blanks.
    """

    text: str
    original: str
    one_line: bool
    _rewritings: tuple[_Rewriting, ...] = ()

    @property
    def words(self) -> int:
        """The number of words, which is what stands between spaces."""
        return len(self.text.split())

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return which part of the original a part of the folded text stands for."""
        for rewriting in self._rewritings:
            start, end = rewriting.origin(start)[0], rewriting.origin(end - 1)[1]
        return start, end


def fold(text: str) -> Folded:
    """Fold a text."""
    small, rewritings = (text.lower(), ()) if text.isascii() else _fold_letters(text)
    # Most texts have only single blanks, which is quickly seen.
    tidy = text.isascii() and " ".join(small.split()) == small
    if not tidy and _ODD.search(small):
        return _fold_space(small, text, rewritings)
    return Folded(small, text, one_line=True, _rewritings=rewritings)


def _fold_letters(text: str) -> tuple[str, tuple[_Rewriting, ...]]:
    plain = _SURROGATE.sub(_REPLACEMENT, text)
    for apostrophe in _APOSTROPHES:
        plain = plain.replace(apostrophe, "'")
    small = plain.casefold()
    if len(small) == len(plain) and unicodedata.is_normalized("NFC", plain):
        return small, ()
    composed = _Rewriting(plain, list(_letters(plain)), str.casefold)
    return composed.text, (composed,)


def _fold_space(small: str, original: str, before: tuple[_Rewriting, ...]) -> Folded:
    changes = [(match.start(), match.end(), _tidy(match[0])) for match in _ODD.finditer(small)]
    spaced = _Rewriting(small, changes, str)
    # The way back begins with the last.
    return Folded(spaced.text, original, one_line=False, _rewritings=(spaced, *before))


def _tidy(odd: str) -> str:
    if odd == "\n":
        return " "
    space = odd if odd.isspace() else "".join(_SEEN.findall(odd))
    if not space:
        return ""
    return "\n" if count_line_breaks(space) > 1 else " "


def _letters(text: str) -> Iterator[Change]:
    """Yield the letters that folding makes longer, or that have marks or other spellings."""
    for run in _NOT_ASCII.finditer(text):
        start, size = run.span()
        while start < size:
            end = start + 1
            while end < size and end - start <= _MOST_MARKS and _continues(text[end]):
                end += 1
            letter = text[start:end]
            folded = unicodedata.normalize("NFC", letter).casefold()
            if len(folded) != 1 or folded != letter.casefold():
                yield start, end, folded
            start = end


def _continues(char: str) -> bool:
    # Marks, and the vowels and final consonants that make up a Korean syllable.
    return char > "\u02ff" and (unicodedata.combining(char) > 0 or "\u1160" <= char <= "\u11ff")
