"""A conversation as the model was trained to read it, with people's words kept apart from marks.

The words of a conversation may hold what looks like a mark of the template, such as the one that
ends a message; read as a mark it would let a response speak as somebody else. So the template is
filled with placeholders, and the words take their places only after everything was cut.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from jurybox.models.local.engine import Job, Unanswerable
from jurybox.sample import Turn

# Characters of a private use area, which no template and no tokenizer gives a meaning.
_OPEN: Final = "\ue0f0"
_SHUT: Final = "\ue0f1"
# Token lists of texts that come again and again: the template's, and what prompts share.
_REMEMBERED: Final = 256


class Piece(msgspec.Struct, frozen=True):
    """A text; ``marks`` says that it is the template's, where marks are marks."""

    text: str
    marks: bool


Render = Callable[[Sequence[dict[str, str]]], str]


class Tokenize(Protocol):
    """What cuts a piece into tokens; ``opens`` where it is the very beginning of a prompt."""

    def __call__(self, piece: Piece, *, opens: bool) -> Sequence[int]:
        """Return the tokens."""
        ...


Segments = tuple[tuple[int, ...], ...]


class Prompts:
    """The prompts of one model: ``render`` fills its template, ``tokenize`` cuts into tokens."""

    def __init__(self, render: Render, tokenize: Tokenize) -> None:
        self._render = render
        self._tokenize = tokenize
        self._around: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._tokens: OrderedDict[tuple[Piece, bool], tuple[int, ...]] = OrderedDict()

    def segments(self, job: Job, *, whole: bool, most: int) -> Segments:
        """Return the tokens of each part that is read by itself; ``whole`` leaves it in one.

        Raises:
            Unanswerable: the template or the tokenizer can't cope with it, or there are ``most``
                tokens or more, so that no room is left for an answer.

        """
        roles = tuple(turn.role for turn in job.messages)
        if roles not in self._around:
            if len(self._around) >= _REMEMBERED:
                self._around.clear()
            messages = [
                {"role": role, "content": placeholder(index)} for index, role in enumerate(roles)
            ]
            self._around[roles] = cut(self._render(messages), len(roles))
        bounds = () if whole else job.shared
        lists: list[list[int]] = []
        for pieces in segments(self._around[roles], job.messages, bounds):
            tokens: list[int] = []
            for piece in pieces:
                # What a model wants at the very beginning of a text stands there only.
                tokens += self._tokenized(piece, opens=not lists and not tokens)
            lists.append(tokens)
        length = sum(len(tokens) for tokens in lists)
        if length >= most:
            raise Unanswerable(
                f"the prompt has {length} tokens, and the model reads {most - 1} at most; shorten"
                " the sample or the rubric"
            )
        return tuple(tuple(tokens) for tokens in lists if tokens)

    def _tokenized(self, piece: Piece, *, opens: bool) -> tuple[int, ...]:
        key = (piece, opens)
        if key in self._tokens:
            self._tokens.move_to_end(key)
        else:
            self._tokens[key] = tuple(self._tokenize(piece, opens=opens))
            if len(self._tokens) > _REMEMBERED:
                self._tokens.popitem(last=False)
        return self._tokens[key]


def placeholder(index: int) -> str:
    """Return what stands for the words of a message."""
    return f"{_OPEN}{index}{_SHUT}"


def cut(rendered: str, count: int) -> tuple[str, ...]:
    """Return what the template writes around the words of ``count`` messages.

    Raises:
        Unanswerable: the template leaves a message out, or says it twice.

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
    first: list[Piece] = []
    for part, turn in zip(around, messages[:-1], strict=False):
        first += [Piece(part, marks=True), Piece(turn.content, marks=False)]
    first.append(Piece(around[len(messages) - 1], marks=True))
    starts, ends = [0, *bounds], [*bounds, len(last)]
    words = [Piece(last[a:b], marks=False) for a, b in zip(starts, ends, strict=True)]
    tail = Piece(around[-1], marks=True)
    cuts = [[*first, words[0]], *([word] for word in words[1:])]
    cuts[-1].append(tail)
    return tuple(tuple(piece for piece in pieces if piece.text) for pieces in cuts)
