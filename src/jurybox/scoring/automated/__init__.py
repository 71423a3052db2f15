"""Automated scoring: the rules of a rubric document, executed."""

from jurybox.scoring.automated.compiling import CompiledRules, compile_rules, overall_score
from jurybox.scoring.automated.report import AutomatedReport, CriterionScore, FiredRule, Quote
from jurybox.scoring.automated.scoring import score_by_rules

__all__ = [
    "AutomatedReport",
    "CompiledRules",
    "CriterionScore",
    "FiredRule",
    "Quote",
    "compile_rules",
    "overall_score",
    "score_by_rules",
]
