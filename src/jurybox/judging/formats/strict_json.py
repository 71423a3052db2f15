"""The ``strict-json`` reply format: one object with a score a criterion, and nothing else (A3)."""

from collections.abc import Mapping
from typing import Any

from jurybox.judging.flow import Defect
from jurybox.judging.formats.objects import read_object
from jurybox.judging.verdict import Remarks, Scores
from jurybox.rubric.scale import Scale

RATIONALE = "rationale"


def read_strict_scores(
    text: str, scales: Mapping[str, Scale], rationale_words: int | None
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
    problems = [
        *_problems_with_scores(given, scales),
        *_problems_with_rationale(given.get(RATIONALE), rationale_words),
    ]
    if problems:
        return Defect(" ".join(f"{problem}." for problem in problems))
    rationale: str = given[RATIONALE]
    extra = {key: value for key, value in given.items() if key not in {*scales, RATIONALE}}
    remarks = Remarks(reasoning=dict.fromkeys(scales, rationale), bias_checklist={}, extra=extra)
    return Scores(scores={name: given[name] for name in scales}, remarks=remarks)


def _problems_with_scores(given: Mapping[str, Any], scales: Mapping[str, Scale]) -> list[str]:
    problems: list[str] = []
    for name, scale in scales.items():
        problem = scale.problem_with(given[name]) if name in given else "is missing"
        if problem is not None:
            problems.append(f'"{name}" {problem}')
    return problems


def _problems_with_rationale(value: object, most: int | None) -> list[str]:
    if not isinstance(value, str) or not value.strip():
        return [f'"{RATIONALE}" must be a text that is not empty']
    words = len(value.split())
    if most is not None and words > most:
        return [f'"{RATIONALE}" has {words} words, and at most {most} are allowed']
    return []
