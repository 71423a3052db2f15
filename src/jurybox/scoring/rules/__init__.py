"""Automated scoring: the rules of a rubric document, executed."""

from jurybox.scoring.rules.rule_compiler import (
    CompiledRules,
    compile_rules,
    score_by_rules,
)
from jurybox.scoring.rules.rule_report import (
    AutomatedReport,
    CheckedCriterion,
    CriterionScore,
    FiredRule,
    Quote,
)

__all__ = [
    "AutomatedReport",
    "CheckedCriterion",
    "CompiledRules",
    "CriterionScore",
    "FiredRule",
    "Quote",
    "compile_rules",
    "score_by_rules",
]
