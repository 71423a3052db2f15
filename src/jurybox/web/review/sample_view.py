"""A sample as a reviewer sees it."""

from collections.abc import Iterator
from typing import Final

import msgspec

from jurybox.review.reviews import ReviewCase
from jurybox.sample import Response

_MOST_TURNS: Final = 50
_LONGEST_TROUBLE: Final = 500
_TITLES: Final = {
    "scenario_text": "What this scenario tests",
    "context": "Context",
    "task": "Task",
    "reference": "Reference",
}


class TextPart(msgspec.Struct, frozen=True, kw_only=True):
    """A text with its title; ``error`` says why it is missing. ``name`` identifies it."""

    name: str
    title: str
    text: str
    error: str | None = None


def parts_of(case: ReviewCase, *, revealed: bool = False) -> tuple[TextPart, ...]:
    """Return the displayed parts of a case; ``revealed`` names two responses as in the run."""
    return *_parts(case), *_responses(case, swapped=revealed and case.order == "BA")


def _parts(case: ReviewCase) -> Iterator[TextPart]:
    for place, turn in enumerate(case.messages[-_MOST_TURNS:]):
        yield TextPart(name=f"turn-{place}", title=f"Earlier, {turn.role}", text=turn.content)
    for name in _TITLES:
        if (text := getattr(case, name)) is not None:
            yield TextPart(name=name, title=_TITLES[name], text=text)


def _responses(case: ReviewCase, *, swapped: bool) -> Iterator[TextPart]:
    letters = ("a", "b") if case.is_pair else ("",)
    for letter, response in zip(letters, case.responses, strict=True):
        name = f"response-{letter}" if letter else "response"
        title = f"Response {letter.upper()}".strip()
        if swapped:
            other = "B" if letter == "a" else "A"
            title = f"Response {other}, shown to you as {letter.upper()}"
        error = None if response.answered else _why_missing(response)
        yield TextPart(name=name, title=title, text=response.text, error=error)


def _why_missing(response: Response) -> str:
    return (response.error or "it came too late")[:_LONGEST_TROUBLE]
