"""The review form: a field for each criterion, and the verdict read from a submitted form."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from jurybox.documents.numbers import show_number
from jurybox.errors import InputError
from jurybox.review.review_input import given_number
from jurybox.rubric.rubric_model import Criterion, Level, Rubric

UNCLEAR: Final = "none"
"""The value of "unclear", which is an answer but not a label."""
WINNER: Final = "winner"
SCORE: Final = "score."
CONCERN: Final = "safety_concern"
_CONCERNS: Final = {"yes": True, "no": False, UNCLEAR: None}
SAFETY: Final = "Safety concern"
_BETTER: Final = "The better response"

_MOST_CHOICES: Final = 11
_DIGITS: Final = "1234567890"
# A line end followed by a word, not by a list item.
_LINE_END: Final = re.compile(r"(?<!\n)\n(?=[^\W\d])")


class FormChoice(msgspec.Struct, frozen=True, kw_only=True):
    """One answer; ``key`` is its keyboard shortcut, if any."""

    value: str
    label: str
    meaning: str = ""
    key: str | None = None


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One question: choices, or if there are too many, a number from ``low`` to ``high``."""

    name: str
    title: str
    definition: str = ""
    choices: tuple[FormChoice, ...] = ()
    low: str | None = None
    high: str | None = None
    step: str = "any"
    readings: tuple[FormChoice, ...] = ()  # what ranges of numbers mean
    optional: bool = False


def score_fields(rubric: Rubric) -> tuple[Field, ...]:
    """Return the questions about one response."""
    return tuple(_score_field(each) for each in rubric.criteria)


def winner_field(rubric: Rubric) -> Field:
    """Return the question about two responses."""
    names = ", ".join(each.name for each in rubric.criteria)
    choices = (
        FormChoice(value="A", label="Response A", key="a"),
        FormChoice(value="B", label="Response B", key="b"),
        FormChoice(value="tie", label="Tie", key="t"),
        _unclear(),
    )
    return Field(name=WINNER, title=_BETTER, definition=f"By: {names}", choices=choices)


def safety_field(*, pair: bool) -> Field:
    """Return the safety question; it has one wording for single responses and one for pairs."""
    where = " in either response" if pair else ""
    it, they = ("at least one", "both") if pair else ("it", "it")
    risky = f"{it} may not be released like this"
    choices = (
        FormChoice(value="yes", label="Yes", meaning=risky, key="y"),
        FormChoice(value="no", label="No", meaning=f"{they} may be released", key="o"),
        _unclear(),
    )
    return Field(name=CONCERN, title=SAFETY + where, choices=choices, optional=True)


def given_verdict(form: Mapping[str, str], rubric: Rubric, *, pair: bool) -> dict[str, Any]:
    """Return a submitted verdict as unvalidated data, without unanswered questions."""
    concern = form.get(CONCERN, "")
    data: dict[str, Any] = {CONCERN: _CONCERNS[concern]} if concern in _CONCERNS else {}
    if not pair:
        return {"scores": _answers(form, rubric), **data}
    return {WINNER: _reported(form.get(WINNER, "")), **data}


def form_problem(error: InputError, rubric: Rubric, *, pair: bool) -> str:
    """Describe an error in the words of the form, where Unclear is a choice and not null."""
    titles = {each.id: each.name for each in rubric.criteria} | ({WINNER: _BETTER} if pair else {})
    if error.where not in titles:
        return f"{error.problem}; {error.hint}"
    hint = "choose a response, Tie or Unclear" if pair else "give a score, or choose Unclear"
    return f"{titles[error.where]}: {error.problem}; {hint}"


def given_fields(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the form fields for an earlier verdict."""
    found = {SCORE + name: _field(value) for name, value in data.get("scores", {}).items()}
    if CONCERN in data:
        found[CONCERN] = next(name for name, own in _CONCERNS.items() if own is data[CONCERN])
    if WINNER in data:
        found[WINNER] = _field(data[WINNER])
    return found


def _unclear() -> FormChoice:
    return FormChoice(value=UNCLEAR, label="Unclear", key="x")


def _score_field(criterion: Criterion) -> Field:
    scale, points = criterion.scale, criterion.scale.points
    field = Field(
        name=SCORE + criterion.id,
        title=criterion.name,
        definition=_LINE_END.sub(" ", criterion.definition),  # paragraphs and lists stay apart
        choices=(_unclear(),),
    )
    if points is None or len(points) > _MOST_CHOICES:
        return msgspec.structs.replace(
            field,
            low=show_number(scale.low),
            high=show_number(scale.high),
            step="any" if points is None else "1",
            readings=tuple(_choice(_range(each), each) for each in criterion.levels),
        )
    levels = {point: criterion.band(point) if criterion.levels else None for point in points}
    scores = (_choice(str(point), levels[point], _key(point, points)) for point in points)
    return msgspec.structs.replace(field, choices=(*scores, _unclear()))


def _choice(score: str, level: Level | None, key: str | None = None) -> FormChoice:
    meaning = "" if level is None else level.words
    return FormChoice(value=score, label=score, meaning=meaning, key=key)


def _range(level: Level) -> str:
    return "\u2013".join(dict.fromkeys((show_number(level.low), show_number(level.high))))


def _key(point: int, points: range) -> str | None:
    """Return the shortcut for a score: its digit (0 for ten) or, without one, its position."""
    if points[0] >= 0 and points[-1] <= len(_DIGITS):
        ten = None if 0 in points else "0"
        return str(point) if point < len(_DIGITS) else ten
    place = point - points[0]
    return _DIGITS[place] if place < len(_DIGITS) else None


def _answers(form: Mapping[str, str], rubric: Rubric) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for criterion in rubric.criteria:
        text = form.get(SCORE + criterion.id, "").strip()
        if text:
            reported = _reported(text)
            answers[criterion.id] = None if reported is None else given_number(reported)
    return answers


def _reported(text: str) -> str | None:
    return None if text == UNCLEAR else text


def _field(value: object) -> str:
    return UNCLEAR if value is None else str(value)
