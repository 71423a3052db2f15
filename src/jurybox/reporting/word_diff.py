"""Where two texts differ, word by word, within a bound of work."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Final

import msgspec

_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_MOST: Final = 1500
"""So many words that differ are compared on either side; the work grows with their product."""
_LONGEST: Final = 200_000


class Piece(msgspec.Struct, frozen=True):
    """A part of a text; ``own`` says that the other text hasn't got it."""

    text: str
    own: bool


def word_diff(one: str, other: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]] | None:
    """Return both texts in pieces; None where they are too long to be compared."""
    if max(len(one), len(other)) > _LONGEST:
        return None
    left, right = _WORDS.findall(one), _WORDS.findall(other)
    # Whatever is equal at both ends needs no search.
    head = _equal(left, right)
    tail = _equal(left[head:][::-1], right[head:][::-1])
    middle = (left[head : len(left) - tail], right[head : len(right) - tail])
    if max(len(part) for part in middle) > _MOST:
        return None
    begin, end = "".join(left[:head]), "".join(left[len(left) - tail :])
    pieces: tuple[list[Piece], list[Piece]] = ([], [])
    for operation, a, b, c, d in SequenceMatcher(None, *middle, autojunk=False).get_opcodes():
        for side, text in zip(pieces, (middle[0][a:b], middle[1][c:d]), strict=True):
            if text:
                side.append(Piece("".join(text), operation != "equal"))
    first, second = (
        tuple(each for each in (Piece(begin, own=False), *side, Piece(end, own=False)) if each.text)
        for side in pieces
    )
    return first, second


def _equal(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
