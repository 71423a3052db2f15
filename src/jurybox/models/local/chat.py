"""A conversation as the model was trained to read it, with people's words kept apart from marks.

The words of a conversation may hold what looks like a mark of the template, such as the one that
ends a message; read as a mark it would let a response speak as another role. So the template is
filled with placeholders, and the words take their places only after everything was cut.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from jurybox.models.local.answer import Unanswerable
from jurybox.sample import Turn

# Characters of a private use area, which no template and no tokenizer gives a meaning.
_OPEN: Final = "\ue0f0"
_SHUT: Final = "\ue0f1"
# Token lists of texts that come again and again: the template's, and what prompts share.
_REMEMBERED: Final = 256


class Piece(msgspec.Struct, frozen=True):
    """A text to cut into tokens.

    ``marks`` says that it is the template's, where marks are marks; ``opens`` that it is the very
    beginning of a prompt.
    """

    text: str
    marks: bool
    opens: bool = False


Render = Callable[[Sequence[dict[str, str]]], str]
Tokenize = Callable[[Piece], tuple[int, ...]]


class Prompts:
    """The prompts of one model: ``render`` fills its template, ``tokenize`` cuts into tokens."""

    def __init__(self, render: Render, tokenize: Tokenize) -> None:
        self._render = render
        self._around = lru_cache(_REMEMBERED)(self._rendered)
        self._tokens = lru_cache(_REMEMBERED)(tokenize)

    def segments(
        self, messages: Sequence[Turn], shared: Sequence[int], *, most: int
    ) -> tuple[tuple[int, ...], ...]:
        """Return the tokens of each part that is read by itself.

        Raises:
            Unanswerable: the template or the tokenizer can't cope with it, or there are ``most``
                tokens or more, so that no room is left for an answer.

        """
        around = self._around(tuple(turn.role for turn in messages))
        parts = [
            tuple(token for piece in pieces for token in self._tokens(piece))
            for pieces in segments(around, messages, shared)
        ]
        length = sum(map(len, parts))
        if length >= most:
            raise Unanswerable(
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
    """Return what stands for the words of a message."""
    return f"{_OPEN}{index}{_SHUT}"


def cut(rendered: str, count: int) -> tuple[str, ...]:
    """Return what the template writes around the words of ``count`` messages.

    Raises:
        Unanswerable: the template leaves a message out, or repeats one.

    """
    parts: list[str] = []
    rest = rendered
    for index in range(count):
        before, found, rest = rest.partition(placeholder(index))
        if not found:
            raise Unanswerable("the model's chat template has no place for such a conversation")
        parts.append(before)
    if _OPEN in rest or any(_OPEN in part for part in parts):
        raise Unanswerable("the model's chat template says a message twice")
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
