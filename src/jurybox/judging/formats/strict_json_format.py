"""The ``strict-json`` reply format: one object of scores, and nothing else."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jurybox.judging.flow import Defect
from jurybox.judging.formats.json_format import read_object
from jurybox.judging.formats.reply_format import (
    COPIED,
    TEXT_SCHEMA,
    Remarks,
    ReplyForm,
    ReplyFormat,
    Scores,
    Side,
    as_defect,
    is_copied,
    object_schema,
)
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import Scale

_RATIONALE: Final = "rationale"


class StrictJsonFormat(ReplyFormat):
    """``{"accuracy": 2, "rationale": "..."}``, asked for by the rubric's own judge prompt."""

    def scores(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Scores]:
        """Return the form of a reply with scores."""
        del checklist  # the rubric's own prompt describes the reply
        scales = {each.id: each.scale for each in rubric.criteria}
        most_words = rubric.rationale_words
        schemas = {name: scale.schema() for name, scale in scales.items()}
        return ReplyForm(
            read=lambda text, material: read_strict_scores(text, scales, most_words, material),
            schema=json.dumps(object_schema({**schemas, _RATIONALE: TEXT_SCHEMA})),
        )

    def forge(self, rubric: Rubric, checklist: Rubric, praise: str, side: Side | None) -> str:
        """Return a reply with the best scores."""
        del checklist, side
        best = {each.id: each.scale.high for each in rubric.criteria}
        return json.dumps({**best, _RATIONALE: praise})


FORMAT: Final = StrictJsonFormat()


def read_strict_scores(
    text: str, scales: Mapping[str, Scale], most_words: int | None, material: Sequence[str] = ()
) -> Scores | Defect:
    """Read a reply that must be one JSON object from its first character to its last."""
    bare = text.strip()
    if not bare.startswith("{"):
        return Defect("it must be one JSON object and nothing else: no fence, no prose.")
    found = read_object(bare)
    if isinstance(found, Defect):
        return found
    given = found.value
    if found.end != len(bare):
        return Defect("text follows the JSON object: give the object and nothing else.")
    scores: dict[str, float] = {}
    problems: list[str] = []
    for name, scale in scales.items():
        score = scale.read(given[name]) if name in given else "is missing"
        if isinstance(score, str):
            problems.append(f'"{name}" {score}')
        else:
            scores[name] = score
    problems += _rationale_problems(given, most_words)
    if problems:
        return as_defect(problems)
    if is_copied(bare, [each for each in material if _RATIONALE in each]):
        return COPIED
    rationale: str = given[_RATIONALE]
    extra = {key: value for key, value in given.items() if key not in {*scales, _RATIONALE}}
    remarks = Remarks(reasoning=dict.fromkeys(scales, rationale), bias_checklist={}, extra=extra)
    return Scores(scores=scores, remarks=remarks)


def _rationale_problems(given: Mapping[str, Any], most_words: int | None) -> Iterator[str]:
    value = given.get(_RATIONALE)
    if not isinstance(value, str) or not value.strip():
        yield f'"{_RATIONALE}" must be a string that is not empty'
    elif most_words is not None and (words := len(value.split())) > most_words:
        yield f'"{_RATIONALE}" has {words} words, and at most {most_words} are allowed'
