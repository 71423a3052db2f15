"""Where two texts differ, word by word."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

import msgspec

_WORDS: Final = re.compile(r"(\s*)(\w+|[^\w\s])")
_LONGEST: Final = 30_000

_Word = tuple[str, str]
"""The space before a word, and the word."""
_Pair = tuple[int, int]


class Piece(msgspec.Struct, frozen=True):
    """A part of a text; ``own`` says that the other text hasn't got it."""

    text: str
    own: bool


def word_diff(one: str, other: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]] | None:
    """Return both texts in pieces; None where they are too long for it."""
    if max(len(one), len(other)) > _LONGEST:
        return None
    left, right = _words(one), _words(other)
    # Spaces are the same everywhere: only words are worth a search, and they carry their space.
    pairs = _pairs([word for _, word in left], [word for _, word in right])
    return _pieces(left, right, pairs)


def cut_pieces(pieces: Sequence[Piece], most: int) -> tuple[Piece, ...]:
    """Return the pieces of the beginning of a text."""
    kept: list[Piece] = []
    for piece in pieces:
        if most <= 0:
            break
        kept.append(Piece(piece.text[:most], piece.own))
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
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
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


def _joined(parts: list[tuple[str, bool]]) -> Iterator[Piece]:
    """Join neighbours that are both shared, or both not."""
    text, own = "", False
    for more, its_own in parts:
        if more and its_own != own:
            if text:
                yield Piece(text, own)
            text, own = "", its_own
        text += more
    if text:
        yield Piece(text, own)
