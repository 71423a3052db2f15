"""Corrects a judge's metrics by human labels: means (PPI++) and rates (Rogan and Gladen)."""

import math
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.documents.numbers import metric_value
from jurybox.rubric.metrics import PASSING_RATE, WIN_RATE
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Ends, Values, mean_of, normal_quantile, proportion

FEWEST_LABELS: Final = 10
"""The minimum number of (independent) labels; with fewer, the judge's errors are unknown."""


class CorrectedMean(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a metric that the judge scored on all samples and people on some.

    ``judge`` is the judge's mean over all samples; its interval ignores the judge's errors.
    ``human`` is people's mean over the labeled samples. ``corrected`` combines both, and has no
    value if there are too few labels.
    """

    judge: Estimate
    human: Estimate
    corrected: Estimate
    tuning: float | None = None  # lambda: 0 ignores the judge, 1 trusts it fully
    bias: float | None = None  # the judge's mean minus people's, on the labeled samples
    clusters: int | None = None  # how many clusters the labeled samples form, if given
    effective_labels: float | None = None  # how many labels alone would be as precise
    # How many more labels would halve the corrected interval. None if that is impossible, or with
    # clusters, since it would then depend on which samples are labeled.
    labels_to_halve: int | None = None
    reason: str | None = None
    sentence: str = ""


class CorrectedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate, corrected by how often the judge is right when people say yes and no.

    ``apparent`` is the judge's rate on the samples without labels; ``unclipped`` is the formula's
    value if it lies outside 0 to 1.
    """

    apparent: Estimate
    sensitivity: Estimate
    specificity: Estimate
    corrected: Estimate
    unclipped: float | None = None
    reason: str | None = None


class CorrectedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric: the judge's value, the human value, and the corrected one.

    ``unscored`` counts labeled samples that the judge didn't score, ``missing`` counts samples of
    the random subset without a label. A yes-or-no metric also has ``rate``, a second correction by
    the judge's sensitivity and specificity.
    """

    metric: str
    mean: CorrectedMean
    rate: CorrectedRate | None = None
    unscored: int = 0
    missing: int = 0

    @property
    def formatted_as(self) -> str:
        """The metric's name if it is a rate; a criterion's name may look like one."""
        return self.metric if self.metric in {PASSING_RATE, WIN_RATE} else ""


def correction_sentence(made: CorrectedMean, shown_as: str) -> str:
    """Return the correction of a metric in words."""

    def said(value: float | None) -> str:
        return metric_value(shown_as, value)

    alone = "" if made.judge.value is None else f"the judge alone says {said(made.judge.value)}"
    value, interval = made.corrected.value, made.corrected.interval
    if value is None or interval is None:
        return f"nothing is corrected: {made.reason}" + (f"; {alone}" if alone else "")
    ends = f"{100 * interval.level:g}% interval {said(interval.low)} to {said(interval.high)}"
    text = f"corrected by {made.human.n:,} labels it is {said(value)} ({ends}); {alone}"
    if made.judge.value is not None and not interval.low <= made.judge.value <= interval.high:
        text += ", which the labels contradict"
    if made.tuning == 0:
        text += "; the judge would not make the interval narrower"
    elif made.effective_labels is not None:
        text += f"; with the judge, they are as precise as {made.effective_labels:,.0f} labels"
    if made.clusters is not None:
        return text
    if made.labels_to_halve is None:
        return f"{text}; more labels on these samples can't halve the interval"
    return f"{text}; {made.labels_to_halve:,} more would halve the interval"


class LabeledScores:
    """Human and judge values of labeled samples, and judge values of the ``rest``.

    ``ends`` are the ends of the scale, if it has any; by default, 0 and 1 for yes-or-no values.
    """

    def __init__(
        self,
        human: Sequence[float] | Values,
        judge: Sequence[float] | Values,
        rest: Sequence[float] | Values,
        *,
        ends: Ends | None = None,
        clusters: Sequence[Hashable] | None = None,
        rest_clusters: Sequence[Hashable] | None = None,
    ) -> None:
        self.human, self.judge, self.rest = (
            np.asarray(part, dtype=np.float64) for part in (human, judge, rest)
        )
        values = np.concatenate([self.human, self.judge, self.rest])
        self.binary = bool(np.isin(values, (0.0, 1.0)).all())
        self.ends = (0.0, 1.0) if ends is None and self.binary else ends
        self.clusters, self.rest_clusters = clusters, rest_clusters


def corrected_mean(data: LabeledScores, *, level: float = 0.95) -> CorrectedMean:
    """Correct the judge's mean by people's labels.

    With n labeled samples (people's ``y``, the judge's ``f``) and N others (``g``), it is
    ``mean(y - t f) + t mean(g)`` with ``t = cov(y, f) / ((1 + n/N) var(f and g))`` between 0 and 1.
    With a given ``t`` it is unbiased for any judge; since ``t`` is estimated from the same labels,
    a few of them leave some of the judge's bias, far less than the interval's width. The interval
    combines the intervals of the two means: each half-width is the root of the sum of their squared
    half-widths. If the values have ends, so does
    ``y - t f``, and a judge that was right on every label isn't treated as infallible. If the
    interval of the labels alone isn't wider, the judge is left out: ``t`` is 0, and value and
    interval are those of the labels. Labels must be drawn at random from all samples.

    References: A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023), "PPI++: efficient
    prediction-powered inference"; A. N. Angelopoulos and others (2023), "Prediction-powered
    inference", Science 382, 669-674; G. Y. Zou and A. Donner (2008), "Construction of confidence
    limits about effect measures: a general approach", Statistics in Medicine 27, 1693-1702.
    """
    n, more = len(data.human), len(data.rest)
    everything = np.concatenate([data.judge, data.rest])
    joined = None if data.clusters is None else (*data.clusters, *(data.rest_clusters or ()))
    known = CorrectedMean(
        judge=_mean_or_rate(everything, joined, data.ends, level),
        human=_mean_or_rate(data.human, data.clusters, data.ends, level),
        corrected=Estimate(value=None, n=n + more),
        bias=float(data.judge.mean() - data.human.mean()) if n else None,
        clusters=None if data.clusters is None else len(set(data.clusters)),
    )
    reason = _refusal(data)
    if reason is not None:
        return msgspec.structs.replace(known, reason=reason)
    tuning = _tuning(data)
    corrected = _tuned(data, tuning, level)
    alone, around = known.human.interval, corrected.interval
    if alone is not None and (around is None or _width(around) >= _width(alone)):
        tuning, corrected, around = 0.0, msgspec.structs.replace(known.human, n=n + more), alone
    if around is None:
        reason = "people and the judge gave all samples the same value: there is no spread"
        return msgspec.structs.replace(known, reason=reason)
    return msgspec.structs.replace(
        known,
        corrected=corrected,
        tuning=tuning,
        effective_labels=None if alone is None else n * (_width(alone) / _width(around)) ** 2,
        labels_to_halve=_to_halve(data) if data.clusters is None else None,
    )


def _width(interval: Interval) -> float:
    return interval.high - interval.low


def _tuned(data: LabeledScores, tuning: float, level: float) -> Estimate:
    """Return the corrected mean for a given ``tuning``."""
    n = len(data.human) + len(data.rest)
    low, high = data.ends or (-math.inf, math.inf)
    ends = None if data.ends is None else (low - tuning * high, high - tuning * low)
    residual = mean_of(
        data.human - tuning * data.judge, clusters=data.clusters, ends=ends, level=level
    )
    rest = mean_of(data.rest, clusters=data.rest_clusters, ends=data.ends, level=level)
    if residual.value is None or rest.value is None:
        return Estimate(value=None, n=n)
    value = residual.value + tuning * rest.value
    own, others = residual.interval, rest.interval
    if own is None:
        return Estimate(value=value, n=n)
    below, above = residual.value - own.low, own.high - residual.value
    if others is not None:
        below = math.hypot(below, tuning * (rest.value - others.low))
        above = math.hypot(above, tuning * (others.high - rest.value))
    method = "prediction-powered (PPI++)" + ("" if data.clusters is None else ", clustered")
    interval = Interval(
        low=max(low, value - below), high=min(high, value + above), level=level, method=method
    )
    return Estimate(value=min(high, max(low, value)), interval=interval, n=n)


def _refusal(data: LabeledScores) -> str | None:
    """Return why nothing can be corrected."""
    n = len(data.human)
    if n < FEWEST_LABELS:
        return _too_few_labels(n)
    if data.clusters is not None and len(set(data.clusters)) < FEWEST_LABELS:
        found = len(set(data.clusters))
        return f"the labels come from {found} clusters; {FEWEST_LABELS} are needed"
    if not len(data.rest):
        return "every sample has a label: people's own value needs no correction"
    return None


def _too_few_labels(n: int) -> str:
    found = "1 label is" if n == 1 else f"{n} labels are"
    return f"{found} too few to know the judge's errors; {FEWEST_LABELS} are needed"


def _tuning(data: LabeledScores) -> float:
    everything = np.concatenate([data.judge, data.rest])
    spread = float(everything.var(ddof=1))
    if spread <= 0:
        return 0.0
    together = float(np.cov(data.human, data.judge, ddof=1)[0, 1])
    wanted = together / ((1 + len(data.human) / len(data.rest)) * spread)
    return min(1.0, max(0.0, wanted))


def _mean_or_rate(
    values: Values, clusters: Sequence[Hashable] | None, ends: Ends | None, level: float
) -> Estimate:
    """Return a mean with its interval: Wilson's for rates."""
    if np.isin(values, (0.0, 1.0)).all():
        return proportion((values > 0).tolist(), clusters=clusters, level=level)
    return mean_of(values, clusters=clusters, ends=ends, level=level)


def _to_halve(data: LabeledScores) -> int | None:
    """Return how many more samples must be labeled to halve the interval's width.

    With the share ``r2`` of people's variance that the judge explains, and T samples in all, the
    variance with n labels is about ``var(y) ((1 - r2) / n + r2 / T)``. This is solved for the n
    that gives a quarter of the current variance.
    """
    n, whole = len(data.human), len(data.human) + len(data.rest)
    if min(np.ptp(data.human), np.ptp(data.judge)) == 0:
        explained = 0.0
    else:
        together = float(np.corrcoef(data.human, data.judge)[0, 1])
        explained = max(0.0, together) ** 2
    now = (1 - explained) / n + explained / whole
    left = now / 4 - explained / whole
    if left <= 0:
        return None
    needed = int(np.ceil((1 - explained) / left - 1e-9))
    return needed - n if n < needed <= whole else None


def corrected_rate(data: LabeledScores, *, level: float = 0.95) -> CorrectedRate:
    """Correct the judge's rate of yes by its sensitivity and specificity; ignores clusters.

    With the judge's rate ``p`` on the samples without labels, its sensitivity ``s`` and its
    specificity ``c`` on the labeled ones, it is ``(p + c - 1) / (s + c - 1)``, limited to 0 to 1.
    It has no value if ``s + c <= 1``, because the judge's rate then carries no information. The
    interval is Lang and Reiczigel's: all three rates are pulled slightly toward the middle, and
    their variances are added by the delta method, with a correction for skew. Unlike for
    `corrected_mean`, labels need to be random only among people's yes and among their no.

    Reference: W. J. Rogan and B. Gladen (1978), "Estimating prevalence from the results of a
    screening test", American Journal of Epidemiology 107, 71-76; Z. Lang and J. Reiczigel (2014),
    "Confidence limits for prevalence of disease adjusted for estimated sensitivity and
    specificity", Preventive Veterinary Medicine 113, 13-22.
    """
    yes = data.human > 0
    apparent, sensitivity, specificity = (
        proportion(right.tolist(), level=level)
        for right in (data.rest > 0, data.judge[yes] > 0, data.judge[~yes] == 0)
    )
    reason = _rate_refusal(apparent, sensitivity, specificity)
    value, unclipped, interval = None, None, None
    if reason is None:
        raw = _formula(_of(apparent), _of(sensitivity), _of(specificity))
        value = min(1.0, max(0.0, raw))
        unclipped = None if value == raw else raw
        interval = _rate_interval(apparent, sensitivity, specificity, level)
        if interval is None:
            reason = "the judge is so close to guessing that there is no interval"
    return CorrectedRate(
        apparent=apparent,
        sensitivity=sensitivity,
        specificity=specificity,
        corrected=Estimate(value=value, interval=interval, n=len(data.rest)),
        unclipped=unclipped,
        reason=reason,
    )


def _rate_refusal(apparent: Estimate, sensitivity: Estimate, specificity: Estimate) -> str | None:
    if sensitivity.n + specificity.n < FEWEST_LABELS:
        return _too_few_labels(sensitivity.n + specificity.n)
    for found, what in ((sensitivity, "yes"), (specificity, "no")):
        if not found.n:
            return f"no label is {what}, so the judge's errors there are unknown"
    if not apparent.n:
        return "every sample has a label: people's own rate needs no correction"
    if _of(sensitivity) + _of(specificity) <= 1:
        return "sensitivity and specificity sum to no more than 1: the judge might as well guess"
    return None


def _of(found: Estimate) -> float:
    return found.value or 0.0


def _formula(p: float, sensitivity: float, specificity: float) -> float:
    return (p + specificity - 1) / (sensitivity + specificity - 1)


def _rate_interval(
    apparent: Estimate, sensitivity: Estimate, specificity: Estimate, level: float
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
