"""Which expressions of the safety scan a text can match at all, told by one pass over it.

An expression has keys: pieces of plain text of which every match holds one. They are written in a
line, `|` between them and `{a,b}` for either; where ` & ` divides them into groups, every match
holds one of each. Few texts hold a key of a first group, and to look for all of those at once is
some thirty times as fast as to try every expression.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)
Group = tuple[str, ...]

# A text is looked at in pieces, because a hostile one may hold a key at every character.
_PIECE: Final = 1 << 16


class Prefilter(Generic[T]):
    """Expressions, known by the groups of keys of each of which their matches hold one."""

    def __init__(self, needs: Mapping[T, Sequence[Group]]) -> None:
        # A group is known by its number, because many expressions share one.
        numbers = {group: n for n, group in enumerate({g for own in needs.values() for g in own})}
        self._by_first: dict[int, list[tuple[T, frozenset[int]]]] = {}
        for expression, (first, *others) in needs.items():
            entry = expression, frozenset(numbers[group] for group in others)
            self._by_first.setdefault(numbers[first], []).append(entry)
        firsts = {group: n for group, n in numbers.items() if n in self._by_first}
        self._firsts = _Keys(firsts)
        self._others = _Keys({group: n for group, n in numbers.items() if group not in firsts})

    def possible(self, plain: bytes) -> set[T]:
        """Return the expressions that may match the text with this plain form."""
        firsts = self._firsts.groups_in(plain)
        if not firsts:
            return set()
        found = firsts | self._others.groups_in(plain)
        return {
            expression
            for first in firsts
            for expression, others in self._by_first[first]
            if others <= found
        }


class _Keys:
    """The keys of some groups, as one automaton."""

    def __init__(self, groups: Mapping[Group, int]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, Implementation

        owners: dict[str, list[int]] = {}
        for group, number in groups.items():
            for key in group:
                owners.setdefault(key, []).append(number)
        self._owners = tuple(owners.values())
        self._longest = max(map(len, owners), default=0)
        self._automaton = BytesAhoCorasick(
            [key.encode("ascii") for key in owners], implementation=Implementation.DFA
        )

    def groups_in(self, plain: bytes) -> set[int]:
        """Return the numbers of the groups of which a text holds a key."""
        hits: set[int] = set()
        for start in range(0, len(plain), _PIECE):
            piece = plain[start : start + _PIECE + self._longest]
            if found := self._automaton.find_matches_as_indexes(piece, overlapping=True):
                hits.update([key for key, _, _ in found])
        return {number for key in hits for number in self._owners[key]} if hits else hits


def groups(keys: str) -> tuple[Group, ...]:
    """Return the groups of keys that a line stands for."""
    return tuple(map(_group, keys.split(" & ")))


@cache
def _group(keys: str) -> Group:
    return tuple(
        "".join(parts)
        for key in keys.split("|")
        for parts in product(*(part.split(",") for part in re.split(r"[{}]", key)))
    )


# The plain form of words: letters and digits, a space for any gap, a dot for each other mark.

_GAPS: Final = "\t\n\v\f\r\x1c\x1d\x1e\x1f \"'-*_`~"
_WORDS: Final = bytes(
    # A character outside ASCII comes as `?`. It may be a gap; to take a letter for one is safe too.
    byte if (char := chr(byte)).isalnum() else ord(" " if char in _GAPS + "?" else ".")
    for byte in range(128)
).ljust(256)


def plain_words(small: str) -> bytes:
    """Return the plain form of a text in small letters."""
    plain = f" {small} ".encode("ascii", "replace").translate(_WORDS)
    while b"  " in plain:
        plain = plain.replace(b"  ", b" ")
    return plain


def word_groups(keys: str) -> tuple[Group, ...]:
    """Return groups of keys for the plain form of words, in which `_` is the edge of a word."""
    return tuple(map(_edged, groups(keys)))


@cache
def _edged(group: Group) -> Group:
    return tuple(
        "".join(parts)
        for key in group
        for parts in product(*(" ." if part == "_" else (part,) for part in re.split("(_)", key)))
    )


# The plain form of shapes: a zero for any digit.

_SHAPES: Final = bytes(
    # A character outside ASCII comes as `?`. It may be a digit of another script.
    ord("0") if (char := chr(byte)).isdigit() or char == "?" else byte
    for byte in range(128)
).ljust(256)


def plain_shapes(text: str) -> bytes:
    """Return the plain form of a text in which the kinds of characters matter."""
    return text.encode("ascii", "replace").translate(_SHAPES)
