"""Where two texts differ, word by word, within a bound of work."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

import msgspec

_WORDS: Final = re.compile(r"(\s*)(\w+|[^\w\s])")
_MOST_STEPS: Final = 60_000
"""So many steps are taken; the work grows with the square of what differs."""
_LONGEST: Final = 30_000

_Word = tuple[str, str]
"""The space before a word, and the word."""
_Pair = tuple[int, int]


class Piece(msgspec.Struct, frozen=True):
    """A part of a text; ``own`` says that the other text hasn't got it."""

    text: str
    own: bool


def word_diff(one: str, other: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]] | None:
    """Return both texts in pieces; None where they are too long or differ too much for it."""
    if max(len(one), len(other)) > _LONGEST:
        return None
    left, right = _words(one), _words(other)
    # Spaces are the same everywhere: only words are worth a search, and they carry their space.
    pairs = _pairs([word for _, word in left], [word for _, word in right])
    return None if pairs is None else _pieces(left, right, pairs)


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


def _pairs(one: list[str], other: list[str]) -> list[_Pair] | None:
    """Return the places of words that both texts have, in order."""
    # Whatever is equal at both ends needs no search.
    head = _equal(one, other)
    tail = _equal(one[head:][::-1], other[head:][::-1])
    ends = len(one) - tail, len(other) - tail
    found = _search(one[head : ends[0]], other[head : ends[1]])
    if found is None:
        return None
    return [
        *((at, at) for at in range(head)),
        *((head + a, head + b) for a, b in found),
        *((ends[0] + at, ends[1] + at) for at in range(tail)),
    ]


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _search(one: list[str], other: list[str]) -> list[_Pair] | None:
    """Find the fewest words to take out and put in (Myers); None where it takes too many steps.

    ``farthest[k]`` is how far one gets in the first text on the diagonal k (the place in the first
    less the place in the second), having taken out and put in so many words.
    """
    if not one or not other:
        return []
    farthest = {1: 0}
    taken: list[dict[int, int]] = []
    steps = 0
    for edits in range(len(one) + len(other) + 1):
        taken.append(farthest)
        steps += edits + 1
        now: dict[int, int] = {}
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and farthest[k - 1] < farthest[k + 1])
            at = begin = farthest[k + 1] if down else farthest[k - 1] + 1
            while at < len(one) and 0 <= at - k < len(other) and one[at] == other[at - k]:
                at += 1
            steps += at - begin
            now[k] = at
            if at >= len(one) and at - k >= len(other):
                return _back(taken, len(one), len(other))
        if steps > _MOST_STEPS:
            return None
        farthest = now
    return []


def _back(taken: list[dict[int, int]], x: int, y: int) -> list[_Pair]:
    """Go back from the end to the beginning, and note the words in common."""
    pairs: list[_Pair] = []
    for edits in range(len(taken) - 1, -1, -1):
        farthest, k = taken[edits], x - y
        down = k == -edits or (k != edits and farthest[k - 1] < farthest[k + 1])
        begin = farthest[k + 1] if down else farthest[k - 1] + 1
        while x > begin:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = (x, y - 1) if down else (x - 1, y)
    return pairs[::-1]


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
