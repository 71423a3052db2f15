"""Verbosity bias: whether a response gains by its length.

References: C. Spearman (1904), "The proof and measurement of association between two things",
American Journal of Psychology 15, 72-101; M. G. Kendall (1942), "Partial rank correlation",
Biometrika 32, 277-283.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.bias_metric import (
    BiasMetric,
    by_side,
    measured,
    number,
    too_few,
    unmeasured,
)
from jurybox.statistics.cluster_regression import coefficient
from jurybox.statistics.estimates import Estimate
from jurybox.statistics.intervals import Codes, Values, codes_of
from jurybox.statistics.jackknife import Patterns, estimates_of
from jurybox.statistics.pair_bias import ResponseKind
from jurybox.statistics.pair_coefficients import margins

_ROUNDING: Final = 1e-12


def rank_correlation(
    x: Sequence[float] | Values,
    y: Sequence[float] | Values,
    clusters: Sequence[Hashable],
    *,
    given: Sequence[float] | Values | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return Spearman's correlation of two columns, with its interval over clusters.

    With a third column it is the partial correlation of the ranks,
    ``(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2))``: how the two go together where the third
    is equal. Equal values share the mean of their ranks.
    """
    columns = [
        np.unique(np.asarray(each, dtype=np.float64), return_inverse=True)[1].astype(np.intp)
        for each in ((x, y) if given is None else (x, y, given))
    ]
    n = len(columns[0])
    if not n:
        return Estimate(value=None, n=0, reason="there are no values")
    rows = Patterns(pattern_of=np.arange(n), count=n, informative=n, clusters=clusters, width=4 * n)
    found = estimates_of(
        lambda weights: {"": _correlations(columns, weights)},
        rows,
        lambda _: "one of the two doesn't vary",
        level,
    )
    return found[""]


def _correlations(columns: Sequence[Codes], weights: Values) -> Values:
    """Return the correlation for each row of weights; NaN where it is undefined."""
    x, y, *rest = [_ranks(column, weights) for column in columns]
    plain = np.sum(weights * x * y, axis=1)
    if not rest:
        return plain
    with_x, with_y = (np.sum(weights * each * rest[0], axis=1) for each in (x, y))
    below = (1 - with_x**2) * (1 - with_y**2)
    above = plain - with_x * with_y
    return np.where(below > _ROUNDING, above / np.sqrt(np.maximum(below, _ROUNDING)), np.nan)


def _ranks(codes: Codes, weights: Values) -> Values:
    """Return the ranks, centered and of unit length; NaN where all are equal."""
    mass = margins(codes, int(codes.max()) + 1, weights)
    total = mass.sum(axis=1, keepdims=True)
    middle = np.cumsum(mass, axis=1) - mass / 2 - total / 2
    length = np.sqrt(np.sum(mass * middle**2, axis=1, keepdims=True))
    varies = length > _ROUNDING * total
    scaled = np.where(varies, middle / np.where(varies, length, 1.0), np.nan)
    return np.take(scaled, codes, axis=1)


CORRELATION: Final = "verbosity.correlation"
SLOPE: Final = "verbosity.slope"
GIVEN_GOLD: Final = "verbosity.correlation_given_gold"
SLOPE_GIVEN_GOLD: Final = "verbosity.slope_given_gold"
LONGER: Final = ResponseKind(
    name="verbosity.longer_win_rate",
    which="the longer response",
    favor="longer responses",
    pairs="two responses of different length",
)
LONGER_EXCESS: Final = msgspec.structs.replace(LONGER, name="verbosity.longer_win_excess")

_WORDS: Final = 100
_NO_VARIATION: Final = "at equal scores by people nothing is left that varies"


def score_by_length(
    scores: Sequence[float],
    words: Sequence[int],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> tuple[BiasMetric, BiasMetric]:
    """Return how scores go with length: the rank correlation, and the change per 100 words.

    Longer responses may be better ones, so this alone is no fault of the judge.
    """
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a score")
    found = None if why else rank_correlation(scores, words, samples, level=level)
    if found is None or found.value is None:
        what = "score" if len(set(scores)) == 1 else "length"
        why = why or f"all responses have the same {what}"
        return (
            unmeasured(CORRELATION, why, n=n, samples=m),
            unmeasured(SLOPE, why, n=n, samples=m),
        )
    verdict = by_side(
        found.interval,
        0.0,
        none="no significant relation",
        above="longer responses get higher scores",
        below="longer responses get lower scores",
    )
    sentence = f"Score and length correlate by {number(found.value, found.interval)}: {verdict}."
    slope = _slope(SLOPE, scores, words, samples, level)
    return measured(CORRELATION, found, m, sentence), slope


def score_by_length_given_gold(
    scores: Sequence[float],
    words: Sequence[int],
    gold: Sequence[float],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> tuple[BiasMetric, BiasMetric]:
    """Return how scores go with length at equal quality, as people see it.

    The partial rank correlation given people's score, and how much the judge's score minus
    people's changes per 100 words.
    """
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a score by people")
    if why is not None:
        return (
            unmeasured(GIVEN_GOLD, why, n=n, samples=m),
            unmeasured(SLOPE_GIVEN_GOLD, why, n=n, samples=m),
        )
    found = rank_correlation(scores, words, samples, given=gold, level=level)
    if found.value is None:
        partial = unmeasured(GIVEN_GOLD, _NO_VARIATION, n=n, samples=m)
    else:
        shown = number(found.value, found.interval)
        verdict = by_side(
            found.interval,
            0.0,
            none="no significant bias",
            above="the judge favors longer responses",
            below="the judge favors shorter responses",
        )
        sentence = f"At equal scores by people, score and length correlate by {shown}: {verdict}."
        partial = measured(GIVEN_GOLD, found, m, sentence)
    apart = [one - other for one, other in zip(scores, gold, strict=True)]
    return partial, _slope(SLOPE_GIVEN_GOLD, apart, words, samples, level)


def _slope(
    name: str,
    scores: Sequence[float],
    words: Sequence[int],
    samples: Sequence[Hashable],
    level: float,
) -> BiasMetric:
    hundreds = np.asarray(words, dtype=np.float64) / _WORDS
    found = coefficient(scores, [hundreds], samples, level=level)
    m = len(set(samples))
    if found.value is None:
        why = found.reason if name == SLOPE else _NO_VARIATION
        return unmeasured(name, why or "", n=found.n, samples=m)
    shown = number(found.value, found.interval)
    what = "the judge's score" if name == SLOPE else "the judge's score minus people's"
    sentence = f"With 100 words more, {what} changes by {shown} of the scale."
    return measured(name, found, m, sentence)
