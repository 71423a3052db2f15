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
from itertools import chain, takewhile
from typing import Final, NamedTuple

from jurybox.engine.ports import ModelError
from jurybox.sample import Turn

# Characters of a private use area, which have no meaning in templates and tokenizers.
_OPEN: Final = "\ue0f0"
_SHUT: Final = "\ue0f1"
# How many texts to cache with their tokens: those of the template, and parts that prompts share.
_REMEMBERED: Final = 256


class UnanswerableError(ModelError):
    """This request can never be answered."""

    def __init__(self, what: str) -> None:
        super().__init__("refused", what, retry=False)


class Piece(NamedTuple):
    """A text to tokenize.

    ``marks`` means that the text belongs to the template, so its marks are read as marks; ``opens``
    means that the text begins a prompt.
    """

    text: str
    marks: bool
    opens: bool = False


Segments = tuple[tuple[int, ...], ...]
"""The tokens of each part of a prompt that is read separately."""
Render = Callable[[Sequence[dict[str, str]]], str]
Tokenize = Callable[[Piece], tuple[int, ...]]


class Prompts:
    """Tokenizes the prompts of one model; ``render`` fills its chat template."""

    def __init__(self, render: Render, tokenize: Tokenize) -> None:
        self._render = render
        self._around = lru_cache(_REMEMBERED)(self._rendered)
        self._tokens = lru_cache(_REMEMBERED)(tokenize)

    def segments(self, messages: Sequence[Turn], shared: Sequence[int], *, most: int) -> Segments:
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


class CacheState(NamedTuple):
    """The segments in a model's cache; if ``more``, unknown tokens of its answer follow."""

    segments: Segments = ()
    more: bool = False


class ReadStep(NamedTuple):
    """Reads ``tokens``; those before ``start`` are in the cache."""

    start: int
    tokens: tuple[int, ...]


def plan(cache: CacheState, wanted: Segments) -> list[ReadStep]:
    """Return the steps that read the segments of a prompt; no segment is empty.

    The runtime always reuses the longest common beginning of its cache and the next prompt.
    """
    tokens = tuple(chain.from_iterable(wanted))
    pairs = zip(cache.segments, wanted[:-1], strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    start = sum(map(len, wanted[:same]))
    steps: list[ReadStep] = []
    following = cache.segments[same][0] if same < len(cache.segments) else None
    if start and (cache.more if following is None else following == tokens[start]):
        # The next segment begins like the old one, so the runtime would reuse too much; a
        # different token is read in between.
        steps.append(ReadStep(start, (*tokens[:start], 0 if tokens[start] else 1)))
    for segment in wanted[same:]:
        steps.append(ReadStep(start, tokens[: start + len(segment)]))
        start += len(segment)
    return steps
