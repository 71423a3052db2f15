"""From the form that a reviewer sends to the verdict that it means."""

from collections.abc import Mapping
from typing import Any

from jurybox.calibration.review_input import given_number
from jurybox.rubric.model import Rubric
from jurybox.web.review.fields import PREFERENCE, SCORE, UNTOLD, WINNER


def given_verdict(form: Mapping[str, str], rubric: Rubric, *, pair: bool) -> dict[str, Any]:
    """Return a verdict as data, still to be read: what wasn't answered is missing in it."""
    if not pair:
        return {"scores": _answers(form, SCORE, rubric, numbers=True)}
    preferences = _answers(form, PREFERENCE, rubric, numbers=False)
    data: dict[str, Any] = {"preferences": preferences} if preferences else {}
    winner = form.get(WINNER, "")
    return {WINNER: _told(winner), **data} if winner else data


def given_fields(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a form for a verdict that was given before."""
    found = {SCORE + name: _field(value) for name, value in data.get("scores", {}).items()}
    for name, value in data.get("preferences", {}).items():
        found[PREFERENCE + name] = _field(value)
    if WINNER in data:
        found[WINNER] = _field(data[WINNER])
    return found


def _answers(
    form: Mapping[str, str], prefix: str, rubric: Rubric, *, numbers: bool
) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for criterion in rubric.criteria:
        text = form.get(prefix + criterion.id, "").strip()
        if text:
            told = _told(text)
            answers[criterion.id] = given_number(told) if numbers and told is not None else told
    return answers


def _told(text: str) -> str | None:
    return None if text == UNTOLD else text


def _field(value: object) -> str:
    return UNTOLD if value is None else str(value)
