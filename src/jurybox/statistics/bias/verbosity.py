"""Verbosity: whether a response gains by its length.

Rank correlation, also at equal values of a third thing, with an interval over clusters.

References: C. Spearman (1904), "The proof and measurement of association between two things",
American Journal of Psychology 15, 72-101; M. G. Kendall (1942), "Partial rank correlation",
Biometrika 32, 277-283.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.bias.figure import BiasFigure, number, side_of, too_few, untold
from jurybox.statistics.bias.pair_bias import Kind
from jurybox.statistics.bias.regression import coefficient
from jurybox.statistics.bootstrap import DEFAULT, Resampling, bca
from jurybox.statistics.estimate import Figure
from jurybox.statistics.intervals import codes_of

Values = NDArray[np.float64]
Codes = NDArray[np.intp]

_SAME: Final = 1e-12
# Two thousand draws of 100,000 rows take a minute, and their interval is narrow anyway.
_MOST_ROWS: Final = 20_000_000
_FEWEST_DRAWS: Final = 400
_JACKKNIFED: Final = 500
# So many numbers are worked on at once: more would only take memory.
_AT_ONCE: Final = 200_000


def rank_correlation(
    x: Sequence[float] | Values,
    y: Sequence[float] | Values,
    clusters: Sequence[Hashable],
    *,
    given: Sequence[float] | Values | None = None,
    resampling: Resampling = DEFAULT,
) -> Figure:
    """Return Spearman's correlation of two columns, with the BCa interval over whole clusters.

    With a third column it is the partial correlation of the ranks,
    ``(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2))``: how the two go together where the third
    is equal. Equal values share the mean of their ranks, in every draw anew.
    """
    columns = [_coded(each) for each in ((x, y) if given is None else (x, y, given))]
    n = len(columns[0])
    codes, m = codes_of(clusters, n)
    value = float(_correlations(columns, np.ones((1, n)))[0]) if n else math.nan
    if math.isnan(value):
        return Figure(value=None, n=n, reason="one of the two doesn't vary")
    draws = min(resampling.resamples, max(_FEWEST_DRAWS, _MOST_ROWS // n))
    used = msgspec.structs.replace(resampling, resamples=draws)
    rng = np.random.default_rng(used.seed)
    groups = min(m, _JACKKNIFED)
    step = max(1, _AT_ONCE // n)
    drawn = [
        _correlations(columns, _drawn(rng, min(step, draws - at), m)[:, codes])
        for at in range(0, draws, step)
    ]
    left_out = [
        _correlations(columns, _without(codes % groups, range(at, min(at + step, groups))))
        for at in range(0, groups, step)
    ]
    interval = bca(
        value, np.concatenate(drawn), np.concatenate(left_out), resampling=used, unit="clusters"
    )
    reason = None if interval is not None else "it doesn't vary enough to tell how sure it is"
    return Figure(value=value, n=n, interval=interval, reason=reason)


def _coded(values: Sequence[float] | Values) -> Codes:
    """Return the places of the values among all different ones."""
    return np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)[1].astype(np.intp)


def _drawn(rng: np.random.Generator, draws: int, m: int) -> Values:
    """Return how often each cluster is drawn, a row a draw."""
    chosen = rng.integers(0, m, (draws, m)) + m * np.arange(draws)[:, None]
    return np.bincount(chosen.ravel(), minlength=draws * m).reshape(draws, m).astype(np.float64)


def _without(groups: Codes, left_out: range) -> Values:
    return (groups != np.array(left_out)[:, None]).astype(np.float64)


def _correlations(columns: Sequence[Codes], weights: Values) -> Values:
    """Return the correlation for each row of weights, how often each row of the data counts.

    NaN where it is undefined.
    """
    x, y, *rest = [_ranks(column, weights) for column in columns]
    plain = np.sum(weights * x * y, axis=1)
    if not rest:
        return plain
    with_x, with_y = (np.sum(weights * each * rest[0], axis=1) for each in (x, y))
    below = (1 - with_x**2) * (1 - with_y**2)
    above = plain - with_x * with_y
    return np.where(below > _SAME, above / np.sqrt(np.maximum(below, _SAME)), np.nan)


def _ranks(codes: Codes, weights: Values) -> Values:
    """Return the ranks, centred and of unit length; NaN where all are equal."""
    draws, size = len(weights), int(codes.max()) + 1
    cells = codes + size * np.arange(draws)[:, None]
    mass = np.bincount(cells.ravel(), weights.ravel(), draws * size).reshape(draws, size)
    total = mass.sum(axis=1, keepdims=True)
    middle = np.cumsum(mass, axis=1) - mass / 2 - total / 2
    length = np.sqrt(np.sum(mass * middle**2, axis=1, keepdims=True))
    varies = length > _SAME * total
    scaled = np.where(varies, middle / np.where(varies, length, 1.0), np.nan)
    return np.take(scaled, codes, axis=1)


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
