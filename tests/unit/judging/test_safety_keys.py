"""No expression of the safety scan matches a text without one of its keys: proved, not sampled.

An expression's parse tree is walked together with the automaton of its keys. What comes out at the
end are texts that match and hold no key; there may be none. Assertions are passed over, so the walk
takes more texts for matches than there are, never fewer. The last tests do without that proof: they
make matches and see them pass.
"""

import re
from collections.abc import Iterable
from functools import cache
from random import Random
from re import _constants as op  # the tree has no public door
from re import _parser as parser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurybox.judging import safety, safety_personal_data
from jurybox.judging.safety_patterns import PHRASES
from jurybox.judging.safety_personal_data import SHAPES, Shape
from jurybox.judging.safety_prefilter import groups, plain_shapes, plain_words, word_groups
from jurybox.judging.safety_topics import TOPICS
from jurybox.judging.safety_vocabulary import KEYS, Phrase, compiled, keys

FOREIGN = "é\u00a0\u0663—"  # a letter, a space, a digit and a mark outside ASCII
EVERY = "".join(map(chr, range(128))) + FOREIGN
FOLDED = "".join(char for char in EVERY if char == char.lower() and char not in "*_`~")
CLASSES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}

Paths = dict[str, str]
"""Texts without a key so far, by what the automaton remembers of them: how a key may begin."""


class Walk:
    """A walk over an expression; ``plain`` is what a prefilter makes of each character."""

    def __init__(self, own: Iterable[str], plain: dict[str, str]) -> None:
        self._keys = frozenset(own)
        self._beginnings = {"", *(key[:end] for key in self._keys for end in range(len(key)))}
        self._plain = plain
        self._groups: dict[int | None, Any] = {}
        self._step = cache(self._memory)

    def without_key(self, pattern: re.Pattern[str], edge: str) -> str | None:
        """Return a text that may match and holds no key, any of ``edge`` on either side."""
        paths = {"": ""}
        tree = parser.parse(pattern.pattern)
        paths = self._sequence(self._take(paths, edge) if edge else paths, tree)
        return next(iter((self._take(paths, edge) if edge else paths).values()), None)

    def _memory(self, memory: str, char: str) -> str | None:
        """Return what is remembered after one more character, or None where it ends a key."""
        if char == " " and memory.endswith(" ") and self._plain["\n"] == " ":
            return memory  # gaps are as short in the plain form of words
        ends = [(memory + char)[start:] for start in range(len(memory) + 2)]
        if not self._keys.isdisjoint(ends):
            return None
        return next(end for end in ends if end in self._beginnings)

    def _take(self, paths: Paths, chars: Iterable[str]) -> Paths:
        plain = {self._plain[char]: char for char in chars}
        taken: Paths = {}
        for memory, text in paths.items():
            for char, original in plain.items():
                after = self._step(memory, char)
                if after is not None:
                    taken.setdefault(after, text + original)
        return taken

    def _sequence(self, paths: Paths, nodes: Iterable[tuple[Any, Any]]) -> Paths:
        for node in nodes:
            paths = self._node(paths, *node)
        return paths

    def _node(self, paths: Paths, kind: Any, value: Any) -> Paths:  # noqa: ANN401 - the tree's own
        match kind:
            case op.AT | op.ASSERT | op.ASSERT_NOT:
                return paths
            case op.BRANCH:
                branches = [self._sequence(paths, branch) for branch in value[1]]
                return {memory: text for each in branches for memory, text in each.items()}
            case op.SUBPATTERN:
                group, *_, nodes = value
                self._groups[group] = nodes
                return self._sequence(paths, nodes)
            case op.GROUPREF:
                return self._sequence(paths, self._groups[value])
            case op.MAX_REPEAT | op.MIN_REPEAT:
                return self._repeat(paths, *value)
            case _:
                return self._take(paths, filter(lambda char: _is(char, kind, value), self._plain))

    def _repeat(self, paths: Paths, least: int, most: int, nodes: Any) -> Paths:  # noqa: ANN401
        for _ in range(least):
            paths = self._sequence(paths, nodes)
        all_paths, last = dict(paths), paths
        for _ in range(least, min(most, 1000)):
            last = self._sequence(last, nodes)
            if last.keys() <= all_paths.keys():
                return all_paths
            all_paths = last | all_paths
        assert most < 1000, "a repetition without an end must come to rest"
        return all_paths


def _is(char: str, kind: Any, value: Any) -> bool:  # noqa: ANN401 - the tree's own
    match kind:
        case op.LITERAL:
            return ord(char) == value
        case op.NOT_LITERAL:
            return ord(char) != value
        case op.RANGE:
            return value[0] <= ord(char) <= value[1]
        case op.CATEGORY:
            return re.match(CLASSES[value], char) is not None
        case op.IN if value[0][0] == op.NEGATE:
            return not any(_is(char, *each) for each in value[1:])
        case op.IN:
            return any(_is(char, *each) for each in value)
        case _:
            raise NotImplementedError(kind)


WORDS = {char: plain_words(f"x{char}x").decode()[2:-2] for char in FOLDED}
CHARACTERS = {char: plain_shapes(char).decode() for char in EVERY}


def phrase_without_key(phrase: Phrase, own: Iterable[str]) -> str | None:
    """Return a text that the phrase may match without a key; at its edges, no word goes on."""
    return Walk(own, WORDS).without_key(compiled(phrase.pattern), edge=" .")


EVERY_PHRASE = [
    pytest.param(phrase, id=f"{name} {category} {number}")
    for name, table in (("phrase", PHRASES), ("topic", TOPICS))
    for category, phrases in table.items()
    for number, phrase in enumerate(phrases, start=1)
]


@pytest.mark.parametrize("phrase", EVERY_PHRASE)
def test_no_text_has_a_phrase_without_one_of_its_keys(phrase: Phrase) -> None:
    for group in word_groups(keys(phrase)):
        assert phrase_without_key(phrase, group) is None


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.keys for shape in SHAPES])
def test_no_text_has_personal_data_without_one_of_its_keys(shape: Shape) -> None:
    for group in groups(shape.keys):
        assert Walk(group, CHARACTERS).without_key(shape.pattern, edge="") is None


@pytest.mark.parametrize("key", word_groups(KEYS["<program>"])[0])
def test_a_missing_key_of_a_phrase_is_noticed(key: str) -> None:
    phrase = next(each for each in PHRASES["malware"] if each.pattern.startswith("here"))
    [own, _] = word_groups(keys(phrase))
    edges = key.strip(" .")
    text = phrase_without_key(phrase, [each for each in own if each.strip(" .") != edges])
    assert text is not None
    assert edges.encode() in plain_words(text)


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.keys for shape in SHAPES])
def test_a_missing_key_of_personal_data_is_noticed(shape: Shape) -> None:
    [own] = groups(shape.keys)
    for key in {own[0], own[-1]}:
        fewer = [each for each in own if each != key]
        text = Walk(fewer, CHARACTERS).without_key(shape.pattern, edge="")
        assert text is not None
        assert key.encode() in plain_shapes(text)


def match_of(nodes: Iterable[tuple[Any, Any]], alphabet: str, random: Random) -> str:
    """Return a text that the nodes match, if the assertions in them allow it."""
    text = ""
    for kind, value in nodes:
        match kind:
            case op.AT | op.ASSERT | op.ASSERT_NOT:
                pass
            case op.BRANCH:
                text += match_of(random.choice(value[1]), alphabet, random)
            case op.SUBPATTERN:
                text += match_of(value[-1], alphabet, random)
            case op.GROUPREF:
                text += random.choice(" .-")
            case op.MAX_REPEAT:
                least, most, body = value
                times = random.randint(least, min(most, least + random.choice([1, 3, 30])))
                text += "".join(match_of(body, alphabet, random) for _ in range(times))
            case _:
                text += random.choice([char for char in alphabet if _is(char, kind, value)])
    return text


RANDOM = st.randoms(use_true_random=False)
AROUND = st.sampled_from(["", " ", "So, ", "(", "x", "é", " \u00a0", "\n\n", ". Then"])


@pytest.mark.parametrize("phrase", EVERY_PHRASE)
@settings(max_examples=settings.default.max_examples // 4)
@given(random=RANDOM, before=AROUND, after=AROUND)
def test_a_text_made_for_a_phrase_passes(
    phrase: Phrase, random: Random, before: str, after: str
) -> None:
    pattern = compiled(phrase.pattern)
    made = match_of(parser.parse(pattern.pattern), FOLDED, random)
    folded = safety._Folded(before + made + after)
    passed = safety._prefilter().possible(plain_words(folded.small))
    assert phrase in passed or pattern.search(folded.words) is None


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.keys for shape in SHAPES])
@settings(max_examples=settings.default.max_examples // 4)
@given(random=RANDOM, before=AROUND, after=AROUND)
def test_a_text_made_for_personal_data_passes(
    shape: Shape, random: Random, before: str, after: str
) -> None:
    made = match_of(parser.parse(shape.pattern.pattern), EVERY, random)
    folded = safety._Folded(before + made + after)
    passed = safety_personal_data._prefilter().possible(plain_shapes(folded.shapes))
    assert shape in passed or shape.pattern.search(folded.shapes) is None
