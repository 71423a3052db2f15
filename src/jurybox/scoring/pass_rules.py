"""Does a sample pass, and what is to be done with it?"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import MEASURES, TOTAL_SCORE
from jurybox.rubric.model import Decision, Rubric

Figures = Mapping[str, float | None]


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One pass rule, the value it was checked against, and whether it passes.

    ``passed`` is None where the rule is about something that wasn't measured; a missing score
    fails.
    """

    rule: str
    value: float | None
    passed: bool | None


def sample_figures(rubric: Rubric, report: EvaluationReport) -> dict[str, float | None]:
    """Return the figures of one judged response that rules may name."""
    figures: dict[str, float | None] = dict.fromkeys(MEASURES)
    figures |= _scores(report.criteria)
    return figures | {rubric.overall_name: report.overall, TOTAL_SCORE: report.total_score}


def _scores(criteria: Iterable[CriterionReport]) -> dict[str, float | None]:
    return {criterion.id: criterion.score for criterion in criteria}


def check_rules(rules: Sequence[Comparison], figures: Figures) -> tuple[RuleOutcome, ...]:
    """Hold every rule against the figures."""
    return tuple(
        RuleOutcome(
            rule=_written(rule),
            value=figures.get(rule.name),
            passed=_holds(rule, figures),
        )
        for rule in rules
    )


@cache
def _written(rule: Comparison) -> str:
    # The few rules of a rubric are written out for every sample.
    return str(rule)


def _holds(rule: Comparison, figures: Figures) -> bool | None:
    value = figures.get(rule.name)
    return None if value is None and rule.name in MEASURES else rule.passes(value)


def decide(decisions: Sequence[Decision], figures: Figures) -> Decision | None:
    """Return the first decision whose conditions are met; the last has none."""
    for decision in decisions:
        some = any(rule.passes(figures.get(rule.name)) for rule in decision.when_any)
        every = all(rule.passes(figures.get(rule.name)) for rule in decision.when_all)
        if some if decision.when_any else every:
            return decision
    return None


def verdict_as_data(rules: Sequence[RuleOutcome], decision: Decision | None) -> dict[str, Any]:
    """Return what the rubric's rules say, as plain data; ``passed`` is None without rules."""
    return {
        "passed": all(rule.passed is not False for rule in rules) if rules else None,
        "rules": [msgspec.to_builtins(rule) for rule in rules],
        "decision": None if decision is None else decision.decide,
    }
