"""Verbosity: whether a response gains by its length."""

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from jurybox.statistics.bias.figure import BiasFigure, number, side_of, too_few, untold
from jurybox.statistics.bias.pairs import Kind
from jurybox.statistics.bias.ranks import rank_correlation
from jurybox.statistics.bias.regression import coefficient
from jurybox.statistics.bootstrap import DEFAULT, Resampling
from jurybox.statistics.intervals import codes_of

CORRELATION: Final = "verbosity.correlation"
SLOPE: Final = "verbosity.slope"
GIVEN_GOLD: Final = "verbosity.correlation_given_gold"
SLOPE_GIVEN_GOLD: Final = "verbosity.slope_given_gold"

_LONGER: Final = "the longer response"
_PAIRS: Final = "two responses of different length"
LONGER: Final = Kind(
    name="verbosity.longer_win_rate", which=_LONGER, favour="longer responses", pairs=_PAIRS
)
LONGER_EXCESS: Final = Kind(
    name="verbosity.longer_win_excess", which=_LONGER, favour="longer responses", pairs=_PAIRS
)

_WORDS: Final = 100
_FOLLOWS: Final = "at equal scores by people nothing is left that varies"


def score_by_length(
    scores: Sequence[float],
    words: Sequence[int],
    samples: Sequence[Hashable],
    *,
    resampling: Resampling = DEFAULT,
) -> tuple[BiasFigure, BiasFigure]:
    """Return how scores go with length: the rank correlation, and the change per 100 words.

    Longer responses may be better ones, so this alone is no fault of the judge.
    """
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a score")
    if why is not None:
        return _neither(CORRELATION, SLOPE, why, n, m)
    found = rank_correlation(scores, words, samples, resampling=resampling)
    if found.value is None:
        return _neither(CORRELATION, SLOPE, _flat(scores), n, m)
    side = side_of(found.interval, 0.0)
    told = ("no relation can be told", "longer responses get higher scores")[side > 0]
    told = "longer responses get lower scores" if side < 0 else told
    sentence = f"Score and length correlate by {number(found.value, found.interval)}: {told}."
    correlation = BiasFigure(
        name=CORRELATION,
        value=found.value,
        n=n,
        samples=m,
        interval=found.interval,
        reason=found.reason,
        sentence=sentence,
    )
    return correlation, _slope(SLOPE, scores, words, samples, resampling.level)


def score_by_length_given_gold(
    scores: Sequence[float],
    words: Sequence[int],
    gold: Sequence[float],
    samples: Sequence[Hashable],
    *,
    resampling: Resampling = DEFAULT,
) -> tuple[BiasFigure, BiasFigure]:
    """Return how scores go with length at equal quality, as people see it.

    The partial rank correlation given people's score, and how much the judge's score minus
    people's changes per 100 words.
    """
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a score by people")
    if why is not None:
        return _neither(GIVEN_GOLD, SLOPE_GIVEN_GOLD, why, n, m)
    found = rank_correlation(scores, words, samples, given=gold, resampling=resampling)
    if found.value is None:
        partial = untold(GIVEN_GOLD, _FOLLOWS, n=n, samples=m)
    else:
        side = side_of(found.interval, 0.0)
        shown = number(found.value, found.interval)
        told = ("no bias can be told", "the judge favours longer responses")[side > 0]
        told = "the judge favours shorter responses" if side < 0 else told
        partial = BiasFigure(
            name=GIVEN_GOLD,
            value=found.value,
            n=n,
            samples=m,
            interval=found.interval,
            reason=found.reason,
            sentence=f"At equal scores by people, score and length correlate by {shown}: {told}.",
        )
    apart = [one - other for one, other in zip(scores, gold, strict=True)]
    return partial, _slope(SLOPE_GIVEN_GOLD, apart, words, samples, resampling.level)


def _slope(
    name: str,
    scores: Sequence[float],
    words: Sequence[int],
    samples: Sequence[Hashable],
    level: float,
) -> BiasFigure:
    hundreds = np.asarray(words, dtype=np.float64) / _WORDS
    found = coefficient(scores, [hundreds], samples, level=level)
    if found.value is None:
        why = found.reason if name == SLOPE else _FOLLOWS
        return untold(name, why or "", n=found.n, samples=len(set(samples)))
    shown = number(found.value, found.interval)
    what = "the judge's score" if name == SLOPE else "the judge's score minus people's"
    return BiasFigure(
        name=name,
        value=found.value,
        n=found.n,
        samples=len(set(samples)),
        interval=found.interval,
        sentence=f"With 100 words more, {what} changes by {shown} of the scale.",
    )


def _neither(one: str, other: str, why: str, n: int, samples: int) -> tuple[BiasFigure, BiasFigure]:
    return untold(one, why, n=n, samples=samples), untold(other, why, n=n, samples=samples)


def _flat(scores: Sequence[float]) -> str:
    if len(set(scores)) == 1:
        return "all responses have the same score"
    return "all responses have the same length"
