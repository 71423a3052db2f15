"""Figures as they are told, and as they are reckoned with."""

import math
from typing import Final

_SUREST: Final = 1e-6


def shown(probability: float) -> str:
    """Return a probability with two decimals."""
    return f"{probability:.2f}"


def logit(probability: float) -> float:
    """Return the log of the odds, which adds up where probabilities don't; never infinite."""
    kept = min(max(probability, _SUREST), 1 - _SUREST)
    return math.log(kept / (1 - kept))


def expit(log_odds: float) -> float:
    """Return the probability of some log-odds."""
    return 1 / (1 + math.exp(-log_odds))
