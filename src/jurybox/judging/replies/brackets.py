"""The ``bracket-verdict`` and ``bracket-rating`` reply formats: ``[[A]]``, ``[[7]]``."""

import re
from typing import Final

from jurybox.documents.numbers import read_number
from jurybox.judging.flow import Defect
from jurybox.judging.verdict import Preference, Remarks, Scores, Side
from jurybox.rubric.scale import Scale

# With an address behind it, it is a citation.
_BRACKETS = re.compile(r"\[\[([^\[\]]{1,400})\]\](?!\()")
_SIDES: Final[dict[str, Side]] = {"A": "A", "B": "B", "C": "tie"}


def read_bracket_verdict(text: str) -> Preference | Defect:
    """Read ``[[A]]``, ``[[B]]`` or, for a tie, ``[[C]]``."""
    given = _only_brackets(text, "[[A]], [[B]] or [[C]] for a tie")
    if isinstance(given, Defect):
        return given
    if given not in _SIDES:
        return Defect(f"[[{' '.join(given.split())}]] is none of [[A]], [[B]] and [[C]].")
    remarks = Remarks(reasoning={}, bias_checklist={}, extra={"text": text})
    return Preference(winner=_SIDES[given], preferences={}, remarks=remarks)


def read_bracket_rating(text: str, name: str, scale: Scale) -> Scores | Defect:
    """Read ``[[7]]``; ``name`` is what it rates."""
    given = _only_brackets(text, "the rating as [[number]]")
    if isinstance(given, Defect):
        return given
    problem = scale.problem_with(read_number(given))
    if problem is not None:
        return Defect(f"the rating [[{' '.join(given.split())}]] is not {scale.describe()}.")
    remarks = Remarks(reasoning={name: text}, bias_checklist={})
    return Scores(scores={name: float(given) if scale.continuous else int(given)}, remarks=remarks)


def _only_brackets(text: str, wanted: str) -> str | Defect:
    """Return what stands in double brackets; two that differ are none."""
    found = {match[1].strip(" ") for match in _BRACKETS.finditer(text)}
    if not found:
        return Defect(f"it holds no verdict: give {wanted}.")
    if len(found) > 1:
        return Defect(f"it holds verdicts that differ: give exactly one, {wanted}.")
    return found.pop()
