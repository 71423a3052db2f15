"""A rate corrected by the judge's sensitivity and specificity (Rogan and Gladen)."""

import numpy as np

from jurybox.statistics.corrected.mean import FEWEST_LABELS, Labels, too_few
from jurybox.statistics.corrected.result import CorrectedRate
from jurybox.statistics.distributions import normal_quantile
from jurybox.statistics.intervals import wilson
from jurybox.statistics.result import Figure, Interval


def corrected_rate(data: Labels, *, level: float = 0.95) -> CorrectedRate:
    """Correct the judge's rate of yes by how often it is right on yes and on no.

    With the judge's rate ``p`` on the samples without labels, its sensitivity ``s`` and its
    specificity ``c`` on the labelled ones, it is ``(p + c - 1) / (s + c - 1)``, brought between 0
    and 1. There is none where ``s + c <= 1``: then the judge says yes as often to what people
    call no, and its rate carries no information. The interval is that of Lang and Reiczigel: all
    three rates are drawn a little towards the middle, and their variances added by the delta
    method with a correction for the skew. Unlike the prediction-powered mean, labels need not be
    drawn at random from all samples; within people's yes and no they must.

    Reference: W. J. Rogan and B. Gladen (1978), "Estimating prevalence from the results of a
    screening test", American Journal of Epidemiology 107, 71-76; Z. Lang and J. Reiczigel (2014),
    "Confidence limits for prevalence of disease adjusted for estimated sensitivity and
    specificity", Preventive Veterinary Medicine 113, 13-22.

    Raises:
        ValueError: a figure is neither 0 nor 1, or there are clusters, which this can't take.

    """
    if not data.binary:
        raise ValueError("a rate is of yes and no: all figures must be 0 or 1")
    if data.clusters is not None:
        raise ValueError("clusters are not supported here; use the prediction-powered mean")
    yes = data.human > 0
    apparent = _rate(int(data.rest.sum()), len(data.rest), level)
    sensitivity = _rate(int(data.judge[yes].sum()), int(yes.sum()), level)
    specificity = _rate(int((1 - data.judge[~yes]).sum()), int((~yes).sum()), level)
    reason = _refusal(apparent, sensitivity, specificity)
    value, unclipped, interval = None, None, None
    if reason is None:
        raw = _formula(_of(apparent), _of(sensitivity), _of(specificity))
        value = min(1.0, max(0.0, raw))
        unclipped = None if value == raw else raw
        interval = _interval(apparent, sensitivity, specificity, level)
        if interval is None:
            reason = "the judge is so near to guessing that there is no interval"
    return CorrectedRate(
        apparent=apparent,
        sensitivity=sensitivity,
        specificity=specificity,
        corrected=Figure(value=value, interval=interval, n=len(data.rest)),
        unclipped=unclipped,
        reason=reason,
    )


def _rate(yes: int, n: int, level: float) -> Figure:
    if not n:
        return Figure(value=None, interval=None, n=0, reason="there are no samples")
    return Figure(value=yes / n, interval=wilson(yes, n, level), n=n)


def _refusal(apparent: Figure, sensitivity: Figure, specificity: Figure) -> str | None:
    if sensitivity.n + specificity.n < FEWEST_LABELS:
        return too_few(sensitivity.n + specificity.n)
    for figure, what in ((sensitivity, "yes"), (specificity, "no")):
        if not figure.n:
            return f"no label is {what}, so the judge's errors there are unknown"
    if not apparent.n:
        return "every sample has a label: people's own rate needs no correction"
    if _of(sensitivity) + _of(specificity) <= 1:
        return "sensitivity and specificity sum to no more than 1: the judge might as well guess"
    return None


def _of(figure: Figure) -> float:
    """Return a value that is known to be there."""
    return 0.0 if figure.value is None else figure.value


def _formula(p: float, sensitivity: float, specificity: float) -> float:
    return (p + specificity - 1) / (sensitivity + specificity - 1)


def _interval(
    apparent: Figure, sensitivity: Figure, specificity: Figure, level: float
) -> Interval | None:
    z = normal_quantile((1 + level) / 2)
    n = apparent.n + z**2
    p = (apparent.n * _of(apparent) + z**2 / 2) / n
    n_yes, n_no = sensitivity.n + 2, specificity.n + 2
    s = (sensitivity.n * _of(sensitivity) + 1) / n_yes
    c = (specificity.n * _of(specificity) + 1) / n_no
    if s + c <= 1:
        return None
    rate = _formula(p, s, c)
    of_s, of_c = s * (1 - s) / n_yes, c * (1 - c) / n_no
    skew = 2 * z**2 * (rate * of_s - (1 - rate) * of_c)
    spread = p * (1 - p) / n + rate**2 * of_s + (1 - rate) ** 2 * of_c
    half = z * float(np.sqrt(spread)) / (s + c - 1)
    low, high = (min(1.0, max(0.0, rate + skew + side)) for side in (-half, half))
    return Interval(low=low, high=high, level=level, method="Lang-Reiczigel")
