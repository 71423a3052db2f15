"""Automated scoring: the rules of a rubric document, executed."""

from jurybox.scoring.rules.rule_compiler import CompiledRules, compile_rules, overall_score
from jurybox.scoring.rules.rule_report import (
    AutomatedReport,
    CheckedCriterion,
    CriterionScore,
    FiredRule,
    Quote,
)
from jurybox.scoring.rules.rule_scores import score_by_rules

__all__ = [
    "AutomatedReport",
    "CheckedCriterion",
    "CompiledRules",
    "CriterionScore",
    "FiredRule",
    "Quote",
    "compile_rules",
    "overall_score",
    "score_by_rules",
]
