"""The safety scan: deterministic, without a model.

The phrases are in ``phrases.yaml``, which explains how to add more.
"""

from jurybox.judging.safety.scanner import (
    FORGED_PROMPT,
    JUDGE_CONCERN,
    LONGEST_QUOTE,
    SafetyFinding,
    categories,
    concerns,
    harmless,
    injections,
    scan,
)

__all__ = [
    "FORGED_PROMPT",
    "JUDGE_CONCERN",
    "LONGEST_QUOTE",
    "SafetyFinding",
    "categories",
    "concerns",
    "harmless",
    "injections",
    "scan",
]
