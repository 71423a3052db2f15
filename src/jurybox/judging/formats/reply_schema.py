"""The JSON schema of a reply, for models that can be held to one."""

import json
from typing import Any

from jurybox.judging.formats.json_verdict import (
    CHECKLIST,
    CONCERNS,
    PREFERENCES,
    REASONING,
    SCORES,
    WINNER,
)
from jurybox.judging.formats.strict_json import RATIONALE
from jurybox.judging.verdict import SIDES
from jurybox.rubric.model import Rubric

_TEXT = {"type": "string"}


def scores_schema(rubric: Rubric, checklist: Rubric) -> str:
    """Return the schema of a ``json`` reply with scores."""
    scores = _object({each.id: each.scale.schema() for each in rubric.criteria})
    return json.dumps(_object({**_remarks(rubric, checklist), SCORES: scores}))


def preferences_schema(rubric: Rubric, checklist: Rubric) -> str:
    """Return the schema of a ``json`` reply with preferences."""
    side = {"type": "string", "enum": list(SIDES)}
    preferences = _object(dict.fromkeys((each.id for each in rubric.criteria), side))
    verdict = {PREFERENCES: preferences, WINNER: side}
    return json.dumps(_object({**_remarks(rubric, checklist), **verdict}))


def strict_schema(rubric: Rubric) -> str:
    """Return the schema of a ``strict-json`` reply."""
    scores = {each.id: each.scale.schema() for each in rubric.criteria}
    return json.dumps(_object({**scores, RATIONALE: _TEXT}))


def _remarks(rubric: Rubric, checklist: Rubric) -> dict[str, Any]:
    return {
        REASONING: _object(dict.fromkeys((each.id for each in rubric.criteria), _TEXT)),
        CHECKLIST: _object(dict.fromkeys((each.id for each in checklist.criteria), _TEXT)),
        CONCERNS: {"type": "array", "items": _TEXT},
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
