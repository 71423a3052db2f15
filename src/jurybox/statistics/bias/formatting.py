"""Formatting: whether a response gains by lists, headings and the like, at equal length."""

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from jurybox.statistics.bias.figure import (
    BiasFigure,
    number,
    side_of,
    too_few,
    too_one_sided,
    untold,
)
from jurybox.statistics.bias.pairs import Kind
from jurybox.statistics.bias.regression import coefficient
from jurybox.statistics.intervals import codes_of

FORMATTING: Final = "formatting"


def difference_name(mark: str) -> str:
    """Return what a gate calls the difference in score that a mark of layout makes."""
    return f"{FORMATTING}.{mark}.difference"


def formatted(mark: str) -> Kind:
    """Return the kind of response that has a mark of layout, where the other one hasn't."""
    return Kind(
        name=f"{FORMATTING}.{mark}.win_rate",
        which=f"the response with {mark}",
        favour=mark,
        pairs="one response with it and one without",
    )


def difference_by_mark(
    mark: str,
    scores: Sequence[float],
    has: Sequence[bool],
    words: Sequence[int],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasFigure:
    """Return how much higher responses with a mark of layout are scored, at equal length.

    The coefficient of ``has`` in ``score = has + words`` by least squares over clusters.
    """
    name = difference_name(mark)
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a score") or too_one_sided(has, samples, ("with it", "without it"))
    if why is not None:
        return untold(name, why, n=n, samples=m)
    length = np.asarray(words, dtype=np.float64)
    columns = [np.asarray(has, dtype=np.float64), *([length] if np.ptp(length) else [])]
    found = coefficient(scores, columns, samples, level=level)
    if found.value is None:
        return untold(name, found.reason or "", n=n, samples=m)
    side = side_of(found.interval, 0.0)
    told = ("no bias can be told", f"the judge favours {mark}")[side > 0]
    told = f"the judge disfavours {mark}" if side < 0 else told
    return BiasFigure(
        name=name,
        value=found.value,
        n=n,
        samples=m,
        interval=found.interval,
        sentence=f"At equal length, responses with {mark} get"
        f" {number(found.value, found.interval)} of the scale beside others: {told}.",
    )
