"""Tokenizes prompts safely, and plans which tokens of the cache to reuse.

A conversation may contain text that looks like a mark of the chat template, such as the mark at the
end of a message. Read as a mark, it would let a response speak as another role. So the template is
filled with placeholders, and the texts of the conversation are tokenized separately.

The last digits of a model's probabilities depend on which tokens are read together. To make answers
independent of earlier prompts, every segment of a prompt is read separately, and the cache of an
earlier prompt is reused only up to a segment boundary that both prompts have.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

import msgspec

from jurybox.sample import Turn

# Characters of a private use area, which have no meaning in templates and tokenizers.
_OPEN: Final = "\ue0f0"
_SHUT: Final = "\ue0f1"
# How many texts to cache with their tokens: those of the template, and parts that prompts share.
_REMEMBERED: Final = 256


class UnanswerableError(Exception):
    """This request can never be answered."""


class Piece(msgspec.Struct, frozen=True):
    """A text to tokenize.

    ``marks`` means that the text belongs to the template, so its marks are read as marks; ``opens``
    means that the text begins a prompt.
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
            UnanswerableError: the template or the tokenizer fails, or the prompt has ``most``
            tokens or more, which leaves no room for an answer.

        """
        around = self._around(tuple(turn.role for turn in messages))
        parts = [
            tuple(token for piece in pieces for token in self._tokens(piece))
            for pieces in segments(around, messages, shared)
        ]
        length = sum(map(len, parts))
        if length >= most:
            raise UnanswerableError(
                f"the prompt has {length} tokens, but the model reads at most {most - 1}; shorten"
                " the sample or the rubric"
            )
        return tuple(part for part in parts if part)

    def _rendered(self, roles: tuple[str, ...]) -> tuple[str, ...]:
        messages = [
            {"role": role, "content": placeholder(index)} for index, role in enumerate(roles)
        ]
        return cut(self._render(messages), len(roles))


def placeholder(index: int) -> str:
    """Return the placeholder of a message."""
    return f"{_OPEN}{index}{_SHUT}"


def cut(rendered: str, count: int) -> tuple[str, ...]:
    """Return the text of the template around ``count`` messages.

    Raises:
        UnanswerableError: the template omits or repeats a message.

    """
    parts: list[str] = []
    rest = rendered
    for index in range(count):
        before, found, rest = rest.partition(placeholder(index))
        if not found:
            raise UnanswerableError("the model's chat template doesn't support these messages")
        parts.append(before)
    if _OPEN in rest or any(_OPEN in part for part in parts):
        raise UnanswerableError("the model's chat template repeats a message")
    return (*parts, rest)


def segments(
    around: Sequence[str], messages: Sequence[Turn], shared: Sequence[int]
) -> tuple[tuple[Piece, ...], ...]:
    """Return the conversation, split at the positions ``shared`` of the last message."""
    last = messages[-1].content
    bounds = sorted({bound for bound in shared if 0 < bound <= len(last)})
    first: list[Piece] = [Piece(around[0], marks=True, opens=True)]
    for turn, part in zip(messages[:-1], around[1:], strict=False):
        first += [Piece(turn.content, marks=False), Piece(part, marks=True)]
    starts, ends = [0, *bounds], [*bounds, len(last)]
    words = [Piece(last[a:b], marks=False) for a, b in zip(starts, ends, strict=True)]
    cuts = [[*first, words[0]], *([word] for word in words[1:])]
    cuts[-1].append(Piece(around[-1], marks=True))
    # Even an empty beginning may have a token that marks the start of a text.
    return tuple(tuple(each for each in pieces if each.text or each.opens) for pieces in cuts)


class CacheState(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens in a model's cache, and where each segment began.

    ``more`` means that unknown tokens of the model's answer may follow.
    """

    tokens: tuple[int, ...] = ()
    cuts: tuple[int, ...] = ()
    more: bool = False


class ReadStep(msgspec.Struct, frozen=True, kw_only=True):
    """Reads ``tokens``; those before ``start`` are in the cache."""

    tokens: tuple[int, ...]
    start: int


class ReadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps that read a prompt, and the cache after them."""

    steps: tuple[ReadStep, ...]
    cache: CacheState
    kept: int


def plan(cache: CacheState, segments: Sequence[Sequence[int]]) -> ReadPlan:
    """Return the steps that read ``segments``, none of which is empty.

    The runtime always reuses the longest common beginning of its cache and the next prompt.
    """
    tokens = tuple(token for segment in segments for token in segment)
    ends = tuple(accumulate(len(segment) for segment in segments))
    starts = (0, *ends[:-1])
    kept = max((start for start in starts if _holds(cache, tokens, starts, start)), default=0)
    steps: list[ReadStep] = []
    if kept and _collides(cache, tokens, kept):
        # The next segment begins like the old one, so the runtime would reuse too much; a
        # different token is read in between.
        steps.append(ReadStep(tokens=(*tokens[:kept], _other(tokens[kept])), start=kept))
    left = [(start, end) for start, end in zip(starts, ends, strict=True) if start >= kept]
    steps += [ReadStep(tokens=tokens[:end], start=start) for start, end in left]
    return ReadPlan(steps=tuple(steps), cache=CacheState(tokens=tokens, cuts=starts), kept=kept)


def _holds(cache: CacheState, tokens: tuple[int, ...], starts: tuple[int, ...], start: int) -> bool:
    """Return whether reading ``tokens`` would give the same cache before ``start``."""
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
