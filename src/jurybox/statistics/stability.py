"""Stability: how far a score moves when a sample is judged again with something changed."""

from collections.abc import Sequence
from typing import Final

import msgspec

from jurybox.statistics.bias_estimates import BiasMetric, percent, side_of, signed, unmeasured
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import mean_of, proportion

STABILITY_METRICS: Final = ("change", "changed", "largest")
"""The mean change, the share of scores that changed, and the largest change."""

# Sums of decimal fractions differ in the last digit where the fractions don't.
_ROUNDING: Final = 1e-9


class Alteration(msgspec.Struct, frozen=True, kw_only=True):
    """What was changed, in words: ``flattery behind the response``; and whether it should count."""

    name: str
    what: str
    harmless: bool


def changes(
    before: Sequence[float], after: Sequence[float], alteration: Alteration, *, level: float = 0.95
) -> tuple[BiasMetric, BiasMetric, BiasMetric]:
    """Return the mean change, the share that changed, and the largest change.

    Scores are shares of the judge's scale, one row per sample. The largest change is the one
    furthest from zero, with its sign.
    """
    apart = [round(b - a, 9) for a, b in zip(before, after, strict=True)]
    names = [f"{alteration.name}.{each}" for each in STABILITY_METRICS]
    n = len(apart)
    if not n:
        why = "no sample was scored both before and after"
        one, two, three = (unmeasured(name, why) for name in names)
        return one, two, three
    mean = mean_of(apart, ends=(-1.0, 1.0), level=level)
    moved = [abs(each) > _ROUNDING for each in apart]
    share = proportion(moved, level=level)
    largest = Estimate(value=max(apart, key=abs), n=n, reason="an extreme has no interval")
    most = signed(largest.value or 0.0)
    shown = percent(share.value or 0.0, share.interval)
    counted = "1 sample" if n == 1 else f"{n} samples"
    if any(moved):
        sentence = (
            f"the score changes by {signed(mean.value or 0.0, mean.interval)} of the scale on"
            f" average, in {sum(moved)} of {counted}, by {most} at the most:"
            f" {_verdict(mean.interval, harmless=alteration.harmless)}."
        )
    else:
        top = "" if share.interval is None else f" (at most {percent(share.interval.high)} would)"
        sentence = f"no score of {counted} changes{top}."
    sentences = (
        sentence,
        f"{shown} of the scores change.",
        f"the largest change is {most}.",
    )
    one, two, three = (
        BiasMetric(
            name=name,
            value=found.value,
            n=n,
            samples=n,
            interval=found.interval,
            reason=found.reason,
            sentence=f"With {alteration.what}, {each}",
        )
        for name, found, each in zip(names, (mean, share, largest), sentences, strict=True)
    )
    return one, two, three


def _verdict(interval: Interval | None, *, harmless: bool) -> str:
    side = side_of(interval, 0.0)
    if not side:
        return "no significant drift, but scores aren't stable"
    if harmless:
        return "what shouldn't matter does"
    return f"the judge gives {'more' if side > 0 else 'less'} for it"
