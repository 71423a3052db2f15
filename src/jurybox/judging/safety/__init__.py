"""The safety scan: deterministic, without a model.

The phrases are in ``phrases.yaml``, which explains how to add more.
"""

from jurybox.judging.safety.scanner import (
    FORGED_PROMPT,
    JUDGE_CONCERN,
    LONGEST_QUOTE,
    SafetyFinding,
    Suspicion,
    categories,
    concerns,
    injections,
    scan,
    suspicion,
)

__all__ = [
    "FORGED_PROMPT",
    "JUDGE_CONCERN",
    "LONGEST_QUOTE",
    "SafetyFinding",
    "Suspicion",
    "categories",
    "concerns",
    "injections",
    "scan",
    "suspicion",
]
