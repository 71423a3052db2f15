"""Texts of others on a page: bounded, isolated, and with nothing in them that can't be seen.

What models and datasets say is never trusted: markup in it is shown as it was written, marks that
would turn the direction of a line around or hide a part of it are shown as U+FFFD, and a text of a
megabyte takes no more room than the page gives it.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

import msgspec
from markupsafe import Markup

from jurybox.reporting.metric_text import cut, shown
from jurybox.text_format import visible

NAME: Final = 80
"""The most characters of a name shown."""

_TITLE: Final = 1000
_SHORT: Final = 320
_WHOLE: Final = 20_000


def seen(text: object, most: int = NAME) -> Markup:
    """Return a short text in one line; what was cut off can be seen by pointing at it."""
    whole = str(text)
    short = visible(cut(whole, most))
    if len(whole) <= most:
        return Markup("<bdi>{}</bdi>").format(short)
    return Markup('<bdi title="{}">{}</bdi>').format(visible(cut(whole, _TITLE)), short)


def prose(text: str) -> Markup:
    """Return a text that may be long: its beginning, and the rest for who opens it."""
    if len(text) <= _SHORT:
        return whole(text)
    return Markup('<details class="long"><summary><bdi>{}</bdi></summary>{}</details>').format(
        visible(cut(text, _SHORT)), whole(text)
    )


def whole(text: str) -> Markup:
    """Return all of a text up to a bound, with its lines; what is beyond it is counted."""
    body = Markup('<div class="prose" dir="auto">{}</div>').format(
        visible(text[:_WHOLE].replace("\r\n", "\n"), kept="\n")
    )
    left = len(text) - _WHOLE
    if left <= 0:
        return body
    return body + Markup('<p class="left-out">{} more characters are left out.</p>').format(
        f"{left:,}"
    )


_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z", re.ASCII)


def counted(count: int, what: str) -> str:
    """Return a count of things: ``1 sample``, ``12,000 samples``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def percent(share: float) -> str:
    """Return a share in percent; all is said of all only, and nothing of nothing only."""
    if 0 < share < 0.001:  # noqa: PLR2004 - what would be rounded to nothing
        return "under 0.1%"
    if 0.999 < share < 1:  # noqa: PLR2004 - what would be rounded to all
        return "over 99.9%"
    return f"{shown(round(100 * share, 1))}%"


def moment(utc: str) -> str:
    """Return a time to the minute: ``2026-03-01 09:14 UTC``."""
    return f"{utc[:10]} {utc[11:16]} UTC" if _TIME.fullmatch(utc) else utc


_WORDS: Final = re.compile(r"(\s*)(\w+|[^\w\s])")
_LONGEST: Final = 30_000

_Word = tuple[str, str]
"""The space before a word, and the word."""
_Pair = tuple[int, int]


class DiffPiece(msgspec.Struct, frozen=True):
    """A part of a text; ``own`` says that the other text hasn't got it."""

    text: str
    own: bool


def word_diff(one: str, other: str) -> tuple[tuple[DiffPiece, ...], tuple[DiffPiece, ...]] | None:
    """Return both texts in pieces; None where they are too long for it."""
    if max(len(one), len(other)) > _LONGEST:
        return None
    left, right = _words(one), _words(other)
    # Spaces are the same everywhere: only words are worth a search, and they carry their space.
    pairs = _pairs([word for _, word in left], [word for _, word in right])
    return _pieces(left, right, pairs)


def cut_pieces(pieces: Sequence[DiffPiece], most: int) -> tuple[DiffPiece, ...]:
    """Return the pieces of the beginning of a text."""
    kept: list[DiffPiece] = []
    for piece in pieces:
        if most <= 0:
            break
        kept.append(DiffPiece(piece.text[:most], piece.own))
        most -= len(piece.text)
    return tuple(kept)


def _words(text: str) -> list[_Word]:
    found: list[_Word] = _WORDS.findall(text)
    # At the end stands a word of no letters, which both texts have, with the last space.
    return [*found, (text[len(text.rstrip()) :], "")]


def _pairs(one: list[str], other: list[str]) -> list[_Pair]:
    """Return the places of words that both texts have, in order.

    In long texts, words that are more than one in a hundred are no beginnings of a match: with
    them, two unrelated texts of 2,000 words would take six seconds.
    """
    matcher = SequenceMatcher(None, one, other, autojunk=True)
    return [
        (block.a + at, block.b + at)
        for block in matcher.get_matching_blocks()
        for at in range(block.size)
    ]


def _pieces(
    left: list[_Word], right: list[_Word], pairs: list[_Pair]
) -> tuple[tuple[DiffPiece, ...], tuple[DiffPiece, ...]]:
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    a = b = 0
    for x, y in pairs:
        # The spaces around what differs are often the same.
        before = a < x and b < y and left[a][0] == right[b][0]
        after = left[x][0] == right[y][0]
        for side, words, begin, end in ((sides[0], left, a, x), (sides[1], right, b, y)):
            if begin < end:
                space, word = words[begin]
                rest = "".join(f"{gap}{each}" for gap, each in words[begin + 1 : end])
                side += [(space, not before), (word + rest, True)]
            space, word = words[end]
            side += [(space, not after), (word, False)]
        a, b = x + 1, y + 1
    return tuple(_joined(sides[0])), tuple(_joined(sides[1]))


def _joined(parts: list[tuple[str, bool]]) -> Iterator[DiffPiece]:
    """Join neighbours that are both shared, or both not."""
    text, own = "", False
    for more, its_own in parts:
        if more and its_own != own:
            if text:
                yield DiffPiece(text, own)
            text, own = "", its_own
        text += more
    if text:
        yield DiffPiece(text, own)
