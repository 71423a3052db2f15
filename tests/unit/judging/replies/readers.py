"""Every reader under the name of its format, with a small rubric to read for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from jurybox.judging.flow import Defect
from jurybox.judging.formats.json_format import read_preference, read_scores
from jurybox.judging.formats.reply_format import Preference, Scores
from jurybox.judging.formats.score_line_format import read_score_line
from jurybox.judging.formats.strict_json_format import read_strict_scores
from jurybox.rubric.scale import Scale

CRITERIA: Final = {"correctness": Scale(low=1, high=5), "clarity": Scale(low=1, high=5)}
CHECKLIST: Final = ("position", "verbosity")
STRICT: Final = {"accuracy_score": Scale(low=0, high=2), "faithfulness_score": Scale(low=0, high=2)}
WORDS: Final = 80
UNIT: Final = Scale(low=0.0, high=1.0, continuous=True)
TEN: Final = Scale(low=1, high=10)

READERS: Final[dict[str, Callable[[str], Scores | Preference | Defect]]] = {
    "json": lambda text: read_scores(text, CRITERIA, CHECKLIST),
    "json-pair": lambda text: read_preference(text, CRITERIA, CHECKLIST),
    "strict-json": lambda text: read_strict_scores(text, STRICT, WORDS),
    "score-line": lambda text: read_score_line(text, "overall_quality", UNIT),
}

REASONING: Final = {"correctness": "The date is right.", "clarity": "One plain sentence."}
COMPLETED: Final = {"position": "There is one response.", "verbosity": "Short, which I ignored."}
REMARKS: Final[dict[str, Any]] = {
    "reasoning": REASONING,
    "bias_checklist": COMPLETED,
    "safety_concerns": [],
}
SCORES: Final = {**REMARKS, "scores": {"correctness": 4, "clarity": 5}}
PREFERENCE: Final = {
    **REMARKS,
    "preferences": {"correctness": "A", "clarity": "tie"},
    "winner": "A",
}

_GOLDEN = Path(__file__).parents[3] / "golden" / "replies"


def read(form: str, reply: str) -> Scores | Preference | Defect:
    return READERS[form](reply)


def problem(form: str, reply: str) -> str:
    """Return what the reader finds wrong; a reply without a defect fails the test."""
    outcome = read(form, reply)
    assert isinstance(outcome, Defect), outcome
    return outcome.problem


def score_of(form: str, reply: str) -> float:
    """Return the one score of a reply that must be readable."""
    outcome = read(form, reply)
    assert isinstance(outcome, Scores), outcome
    (score,) = outcome.scores.values()
    return score


def golden(name: str) -> list[dict[str, Any]]:
    lines = (_GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
