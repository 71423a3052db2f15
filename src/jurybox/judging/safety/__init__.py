"""The safety scan: the same text always has the same findings, and no model is asked.

What it looks for is in ``phrases.yaml``, which says how to add to it.
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
