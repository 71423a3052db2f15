"""Stability: how far a score moves when a sample is judged again with something changed."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.bias.figure import BiasFigure, number, percent, side_of, untold
from jurybox.statistics.bootstrap import Resampling
from jurybox.statistics.estimate import Figure
from jurybox.statistics.intervals import mean_of, proportion
from jurybox.statistics.paired.differences import gather, mean_interval

CHANGE: Final = "change"
CHANGED: Final = "changed"
LARGEST: Final = "largest"
FIGURES: Final = (CHANGE, CHANGED, LARGEST)

# Sums of decimal fractions differ in the last digit where the fractions don't.
_SAME: Final = 1e-9


class Alteration(msgspec.Struct, frozen=True, kw_only=True):
    """What was changed, in words: ``flattery behind the response``; and whether it should count."""

    name: str
    what: str
    harmless: bool


def changes(
    before: Sequence[float],
    after: Sequence[float],
    alteration: Alteration,
    *,
    level: float = 0.95,
) -> tuple[BiasFigure, BiasFigure, BiasFigure]:
    """Return the mean change with Student's interval, the share that changed, the largest change.

    Scores are shares of the judge's scale; a sample is one row. The largest change is the one
    furthest from zero, with its sign.
    """
    apart = [round(b - a, 9) for a, b in zip(before, after, strict=True)]
    names = [f"{alteration.name}.{each}" for each in FIGURES]
    n = len(apart)
    if not n:
        why = "no sample was scored both before and after"
        one, two, three = (untold(name, why) for name in names)
        return one, two, three
    mean = _mean(apart, level)
    moved = [abs(each) > _SAME for each in apart]
    share = proportion(moved, level=level)
    largest = max(apart, key=abs)
    sentence = _sentence(alteration, sum(moved), n, largest, mean, share)
    made = BiasFigure(
        name=names[0],
        value=mean.value,
        n=n,
        samples=n,
        interval=mean.interval,
        reason=mean.reason,
        sentence=sentence,
    )
    shown = percent(share.value or 0.0, share.interval)
    return (
        made,
        BiasFigure(
            name=names[1],
            value=share.value,
            n=n,
            samples=n,
            interval=share.interval,
            sentence=f"With {alteration.what}, {shown} of the scores change.",
        ),
        BiasFigure(
            name=names[2],
            value=largest,
            n=n,
            samples=n,
            reason="an extreme has no interval",
            sentence=f"With {alteration.what}, the largest change is {number(largest)}.",
        ),
    )


def _mean(apart: Sequence[float], level: float) -> Figure:
    """Return the mean change; changes that are all equal have an interval too, if a wider one."""
    mean = mean_of(apart, level=level)
    if mean.interval is not None or not mean.value:
        return mean
    made = mean_interval(gather(np.array(apart), None), Resampling(level=level))
    if isinstance(made, str):
        return mean
    return msgspec.structs.replace(mean, interval=made, reason=None)


def _sentence(
    alteration: Alteration, moved: int, n: int, largest: float, mean: Figure, share: Figure
) -> str:
    counted = "1 sample" if n == 1 else f"{n} samples"
    if not moved:
        most = "" if share.interval is None else f" (at most {percent(share.interval.high)} would)"
        return f"With {alteration.what}, no score of {counted} changes{most}."
    side = side_of(mean.interval, 0.0)
    verdict = "no drift can be told, but scores aren't stable"
    if side:
        verdict = "the judge gives more for it" if side > 0 else "the judge gives less for it"
    if alteration.harmless and side:
        verdict = "what shouldn't matter does"
    shown = number(mean.value or 0.0, mean.interval)
    return (
        f"With {alteration.what}, the score changes by {shown} of the scale on average, in"
        f" {moved} of {counted}, by {number(largest)} at the most: {verdict}."
    )
