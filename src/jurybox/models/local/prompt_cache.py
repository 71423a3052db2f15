"""A prompt as tokens: the template's marks kept apart from people's words, and what is kept of it.

The words of a conversation may hold what looks like a mark of the template, such as the one that
ends a message; read as a mark it would let a response speak as another role. So the template is
filled with placeholders, and the words take their places only after everything was tokenized.

The last digits of a model's numbers depend on which tokens were read together. So that the same
prompt gives the same numbers whatever was read before, every segment of a prompt is read by itself,
and what an earlier prompt left in the cache is used only up to a cut that both have.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

import msgspec

from jurybox.sample import Turn

# Characters of a private use area, which no template and no tokenizer gives a meaning.
_OPEN: Final = "\ue0f0"
_SHUT: Final = "\ue0f1"
# Token lists of texts that come again and again: the template's, and what prompts share.
_REMEMBERED: Final = 256


class UnanswerableError(Exception):
    """This request can't be answered, whenever it is sent."""


class Piece(msgspec.Struct, frozen=True):
    """A text to tokenize.

    ``marks`` is whether it is the template's, whose marks count; ``opens`` whether it begins a
    prompt.
    """

    text: str
    marks: bool
    opens: bool = False


Render = Callable[[Sequence[dict[str, str]]], str]
Tokenize = Callable[[Piece], tuple[int, ...]]


class Prompts:
    """Tokenizes the prompts of one model; ``render`` fills its chat template."""

    def __init__(self, render: Render, tokenize: Tokenize) -> None:
        self._render = render
        self._around = lru_cache(_REMEMBERED)(self._rendered)
        self._tokens = lru_cache(_REMEMBERED)(tokenize)

    def segments(
        self, messages: Sequence[Turn], shared: Sequence[int], *, most: int
    ) -> tuple[tuple[int, ...], ...]:
        """Return the tokens of each segment.

        Raises:
            UnanswerableError: the template or the tokenizer fails, or there are ``most`` tokens or
                more, so that no room is left for an answer.

        """
        around = self._around(tuple(turn.role for turn in messages))
        parts = [
            tuple(token for piece in pieces for token in self._tokens(piece))
            for pieces in segments(around, messages, shared)
        ]
        length = sum(map(len, parts))
        if length >= most:
            raise UnanswerableError(
                f"the prompt has {length} tokens, and the model reads {most - 1} at most; shorten"
                " the sample or the rubric"
            )
        return tuple(part for part in parts if part)

    def _rendered(self, roles: tuple[str, ...]) -> tuple[str, ...]:
        messages = [
            {"role": role, "content": placeholder(index)} for index, role in enumerate(roles)
        ]
        return cut(self._render(messages), len(roles))


def placeholder(index: int) -> str:
    """Return the text that marks a message's place."""
    return f"{_OPEN}{index}{_SHUT}"


def cut(rendered: str, count: int) -> tuple[str, ...]:
    """Return what the template writes around ``count`` messages.

    Raises:
        UnanswerableError: the template leaves a message out, or repeats one.

    """
    parts: list[str] = []
    rest = rendered
    for index in range(count):
        before, found, rest = rest.partition(placeholder(index))
        if not found:
            raise UnanswerableError(
                "the model's chat template has no place for such a conversation"
            )
        parts.append(before)
    if _OPEN in rest or any(_OPEN in part for part in parts):
        raise UnanswerableError("the model's chat template says a message twice")
    return (*parts, rest)


def segments(
    around: Sequence[str], messages: Sequence[Turn], shared: Sequence[int]
) -> tuple[tuple[Piece, ...], ...]:
    """Return the conversation, cut after the characters of the last message in ``shared``."""
    last = messages[-1].content
    bounds = sorted({bound for bound in shared if 0 < bound <= len(last)})
    first: list[Piece] = [Piece(around[0], marks=True, opens=True)]
    for turn, part in zip(messages[:-1], around[1:], strict=False):
        first += [Piece(turn.content, marks=False), Piece(part, marks=True)]
    starts, ends = [0, *bounds], [*bounds, len(last)]
    words = [Piece(last[a:b], marks=False) for a, b in zip(starts, ends, strict=True)]
    cuts = [[*first, words[0]], *([word] for word in words[1:])]
    cuts[-1].append(Piece(around[-1], marks=True))
    # Even an empty beginning may have a token: the one that begins a text.
    return tuple(tuple(each for each in pieces if each.text or each.opens) for pieces in cuts)


class CacheState(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens in a model's cache, and where each segment began.

    ``more`` is whether unknown tokens, of the model's answer, may follow.
    """

    tokens: tuple[int, ...] = ()
    cuts: tuple[int, ...] = ()
    more: bool = False


class ReadStep(msgspec.Struct, frozen=True, kw_only=True):
    """Read ``tokens``, of which those before ``start`` are in the cache."""

    tokens: tuple[int, ...]
    start: int


class ReadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that read a prompt, and the cache after them."""

    steps: tuple[ReadStep, ...]
    cache: CacheState
    kept: int


def plan(cache: CacheState, segments: Sequence[Sequence[int]]) -> ReadPlan:
    """Return the steps that read ``segments``, none of which is empty.

    The runtime keeps as much of its cache as the next prompt begins with, wanted or not.
    """
    tokens = tuple(token for segment in segments for token in segment)
    ends = tuple(accumulate(len(segment) for segment in segments))
    starts = (0, *ends[:-1])
    kept = max((start for start in starts if _holds(cache, tokens, starts, start)), default=0)
    steps: list[ReadStep] = []
    if kept and _collides(cache, tokens, kept):
        # The next segment begins like the old one, so more would be kept than should be: another
        # token comes between.
        steps.append(ReadStep(tokens=(*tokens[:kept], _other(tokens[kept])), start=kept))
    left = [(start, end) for start, end in zip(starts, ends, strict=True) if start >= kept]
    steps += [ReadStep(tokens=tokens[:end], start=start) for start, end in left]
    return ReadPlan(steps=tuple(steps), cache=CacheState(tokens=tokens, cuts=starts), kept=kept)


def _holds(cache: CacheState, tokens: tuple[int, ...], starts: tuple[int, ...], start: int) -> bool:
    """Return whether the cache before ``start`` is what reading ``tokens`` would leave there."""
    if start not in cache.cuts and start != len(cache.tokens):
        return False
    before = tuple(cut for cut in cache.cuts if cut < start)
    return before == tuple(cut for cut in starts if cut < start) and (
        cache.tokens[:start] == tokens[:start]
    )


def _collides(cache: CacheState, tokens: tuple[int, ...], start: int) -> bool:
    if start == len(cache.tokens):
        return cache.more
    return cache.tokens[start] == tokens[start]


def _other(token: int) -> int:
    return 0 if token else 1
