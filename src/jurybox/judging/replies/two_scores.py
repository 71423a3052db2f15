"""The ``two-scores`` reply format: ``9 8.5`` on a line of its own, the first or the last."""

import re

from jurybox.documents.numbers import NUMBER, read_number
from jurybox.judging.flow import Defect
from jurybox.judging.verdict import Preference, Remarks, Side
from jurybox.rubric.scale import Scale

_LINE = re.compile(rf"\s*({NUMBER})(?:[ \t]*,)?[ \t]+({NUMBER})\s*")


def read_two_scores(text: str, scale: Scale) -> Preference | Defect:
    """Read the scores of two responses; the higher one wins, and both are kept."""
    lines = [line for line in text.split("\n") if line.strip()]
    matches = [_LINE.fullmatch(line) for line in (lines[:1] + lines[-1:])]
    pairs = [match.groups() for match in matches if match is not None]
    if not pairs:
        return Defect("neither its first nor its last line holds just the two scores.")
    found: set[tuple[float, ...]] = set()
    for pair in pairs:
        scores = [read_number(written) for written in pair]
        for written, score in zip(pair, scores, strict=True):
            if score is None or scale.problem_with(score) is not None:
                return Defect(f"the score {written} is not {scale.describe()}.")
        found.add(tuple(score for score in scores if score is not None))
    if len(found) > 1:
        return Defect("its first and its last line give scores that differ; give them once.")
    first, second = found.pop()
    winner: Side = "tie" if first == second else "A" if first > second else "B"
    remarks = Remarks(
        reasoning={}, bias_checklist={}, extra={"scores": [first, second], "text": text}
    )
    return Preference(winner=winner, preferences={}, remarks=remarks)
