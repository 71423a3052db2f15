"""The safety scan: the same text always has the same findings, and no model is asked.

The phrases it looks for are in ``phrases.yaml``, which explains how to add to them.
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
