"""Figures as they are told, and as they are reckoned with."""

import math
from typing import Final

_BOTTOM: Final = 0.2
_TOP: Final = 0.8
_SUREST: Final = 1e-6


def shown(probability: float) -> str:
    """Return a probability with two decimals."""
    return f"{probability:.2f}"


def answered(question: str, probability: float) -> str:
    """Return a question with its answer, as a finding tells it."""
    return f"{question} Yes: {shown(probability)}."


def logit(probability: float) -> float:
    """Return the log of the odds, which adds up where probabilities don't; never infinite."""
    kept = min(max(probability, _SUREST), 1 - _SUREST)
    return math.log(kept / (1 - kept))


def decided(lead: float) -> float:
    """Return how far up a scale a lead puts a response, in log-odds over what divides good and bad.

    It is in the top fifth or in the bottom fifth, further out the surer it is: a scale with many
    points has room for that, one with three has none.
    """
    sure = expit(lead)
    return 2 * _BOTTOM * sure if lead < 0 else 1 - 2 * (1 - _TOP) * (1 - sure)


def expit(log_odds: float) -> float:
    """Return the probability of some log-odds."""
    return 1 / (1 + math.exp(-log_odds))
