"""Functions that score the criteria of the bundled `companion` rubric by its rules.

Only the bundled document is used, so these functions give the same scores everywhere.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources

from msgspec.structs import replace

from jurybox.errors import InputError
from jurybox.rubric import Rubric, parse_rubric
from jurybox.scoring.rules.rule_compiler import CompiledRules, compile_rules, score_by_rules
from jurybox.text_format import listed, nearest, printable

_NAME = "companion"


def evaluate_appropriateness(user_input: str, response: str, context: object = None) -> float:
    """Score how suitable a response is for a voice conversation and its context."""
    return _score("appropriateness", user_input, response, context)


def evaluate_conversational_quality(
    user_input: str, response: str, context: object = None
) -> float:
    """Score how natural and engaging a response is when it is spoken."""
    return _score("conversational_quality", user_input, response, context)


def evaluate_helpfulness(user_input: str, response: str, context: object = None) -> float:
    """Score how well a response addresses what the user said."""
    return _score("helpfulness", user_input, response, context)


def evaluate_emotional_intelligence(
    user_input: str, response: str, context: object = None
) -> float:
    """Score how well a response recognizes and answers emotions."""
    return _score("emotional_intelligence", user_input, response, context)


def evaluate_personalization_continuity(
    user_input: str, response: str, context: object = None
) -> float:
    """Score how well a response builds on the conversation and on the user's situation."""
    return _score("personalization_continuity", user_input, response, context)


def evaluate_trust_boundaries(user_input: str, response: str, context: object = None) -> float:
    """Score how well a response keeps boundaries and builds trust without dependency."""
    return _score("trust_boundaries", user_input, response, context)


def overall_quality(scores: Mapping[str, float]) -> float:
    """Return the weighted mean of the six scores, given as a mapping from criterion ids.

    Raises:
        InputError: a score is missing, isn't a number from 0 to 1, or has an unknown criterion id.

    """
    rubric, where = _rubric(), "overall_quality"
    known = [criterion.id for criterion in rubric.criteria]
    for name, score in scores.items():
        if name not in known:
            hint = nearest(str(name), known, f"the criteria are {listed(known)}")
            raise InputError(f"`{printable(str(name))}` isn't a criterion of {_NAME}", hint, where)
        if isinstance(problem := rubric.scale.read(score), str):
            raise InputError(f"`{name}` {problem}", "correct the score", where)
    overall = rubric.overall(scores)
    if overall is None:
        missing = (name for name in known if name not in scores)
        raise InputError(f"no score for {listed(missing)}", "give all six", where)
    return overall


def _score(criterion_id: str, user_input: str, response: str, context: object) -> float:
    # The rules read only the message and the response. The public functions accept a context
    # because their specification has that argument, but it isn't used.
    del context
    given: dict[str, object] = {"user_input": user_input, "response": response}
    for name, text in given.items():
        if not isinstance(text, str):
            problem = f"`{name}` has the type {type(text).__name__}"
            raise InputError(problem, "give it as text", f"evaluate_{criterion_id}")
    rules = _rules_of(criterion_id)
    return score_by_rules(rules, task=user_input, response=response).criteria[0].score


@cache
def _rubric() -> Rubric:
    path = resources.files("jurybox.rubric") / "library" / f"{_NAME}.md"
    return parse_rubric(path.read_bytes(), _NAME)


@cache
def _rules_of(criterion_id: str) -> CompiledRules:
    """Compile the rules of one criterion only, so that scoring searches for nothing else."""
    criteria = tuple(each for each in _rubric().criteria if each.id == criterion_id)
    compiled = compile_rules(replace(_rubric(), criteria=criteria))
    if compiled is None:
        raise InputError("no automated rules", "reinstall jurybox", f"{_NAME}: {criterion_id}")
    return compiled
