"""Prediction-powered inference for a mean, with power tuning (PPI++)."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.corrected.result import CorrectedMean
from jurybox.statistics.corrected.wording import sentence
from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.intervals import codes_of, mean_of, proportion
from jurybox.statistics.result import Figure, Interval

Values = NDArray[np.float64]

_ERRORS_KNOWN: Final = 5
FEWEST_LABELS: Final = 10
"""With fewer (or fewer independent) labels, nobody knows how wrong the judge is."""


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a correction.

    Attributes:
        human: people's figures of the labelled samples.
        judge: the judge's figures of the same samples, in the same order.
        rest: the judge's figures of all other samples.
        clusters: what each labelled sample belongs to, where samples are not independent.
        rest_clusters: the same of the others.

    """

    human: Values
    judge: Values
    rest: Values
    clusters: tuple[Hashable, ...] | None = None
    rest_clusters: tuple[Hashable, ...] | None = None

    @property
    def binary(self) -> bool:
        """Whether all figures are 0 or 1."""
        return all(np.isin(part, (0.0, 1.0)).all() for part in (self.human, self.judge, self.rest))


def labels(
    human: Sequence[float] | Values,
    judge: Sequence[float] | Values,
    rest: Sequence[float] | Values,
    *,
    clusters: Sequence[Hashable] | None = None,
    rest_clusters: Sequence[Hashable] | None = None,
) -> Labels:
    """Return checked data.

    Raises:
        ValueError: lengths don't fit, a figure isn't finite, or only one part has clusters.

    """
    parts = [np.asarray(part, dtype=np.float64) for part in (human, judge, rest)]
    if len(parts[0]) != len(parts[1]):
        raise ValueError(f"{len(parts[0])} labels for {len(parts[1])} figures of the judge")
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError("a figure isn't finite; leave samples without one out")
    if (clusters is None) != (rest_clusters is None):
        raise ValueError("clusters are needed of all samples or of none")
    named = (len(clusters or ()), len(rest_clusters or ()))
    if clusters is not None and named != (len(parts[0]), len(parts[2])):
        raise ValueError("there must be a cluster for each sample")
    return Labels(
        human=parts[0],
        judge=parts[1],
        rest=parts[2],
        clusters=None if clusters is None else tuple(clusters),
        rest_clusters=None if rest_clusters is None else tuple(rest_clusters),
    )


def corrected_mean(data: Labels, *, level: float = 0.95) -> CorrectedMean:
    """Correct the judge's mean by people's labels.

    With n labelled samples (people's ``y``, the judge's ``f``) and N others (``g``), it is
    ``mean(y) + t (mean(g) - mean(f))`` with ``t = cov(y, f) / ((1 + n/N) var(f and g))`` between
    0 and 1: unbiased whatever the judge does, and never less sure than labels alone but by chance.
    Its variance is ``var(y - t f) / n + t^2 var(g) / N``; with clusters, the sum of squares of
    each cluster's part in it. The interval takes Student's t on the labels (or their clusters)
    less one. Where the judge was wrong on fewer than five labels, and for yes or no always, one
    more of either error, as large as the figures go, is imagined in that variance, so that a judge
    who was right on every label isn't taken for infallible. Labels must be drawn at random from all
    samples.

    Reference: A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023), "PPI++: efficient
    prediction-powered inference"; A. N. Angelopoulos and others (2023), "Prediction-powered
    inference", Science 382, 669-674. The added errors are those of D. G. Bonett and R. M. Price
    (2012), for differences of paired rates.
    """
    n, more = len(data.human), len(data.rest)
    everything = np.concatenate([data.judge, data.rest])
    joined = None if data.clusters is None else (*data.clusters, *(data.rest_clusters or ()))
    known = CorrectedMean(
        judge=_figure(everything, joined, level),
        human=_figure(data.human, data.clusters, level),
        corrected=Figure(value=None, interval=None, n=n + more),
        bias=float(data.judge.mean() - data.human.mean()) if n else None,
        clusters=None if data.clusters is None else len(set(data.clusters)),
    )
    reason = _refusal(data)
    if reason is not None:
        return _worded(msgspec.structs.replace(known, reason=reason))
    tuning = _tuning(data)
    value = float(data.human.mean() + tuning * (data.rest.mean() - data.judge.mean()))
    variance = _variance(data, tuning)
    if variance <= 0:
        reason = "people and the judge gave all samples the same figure: there is no spread"
        return _worded(msgspec.structs.replace(known, reason=reason))
    degrees = (n if data.clusters is None else len(set(data.clusters))) - 1
    half = t_quantile((1 + level) / 2, degrees) * float(np.sqrt(variance))
    low, high = value - half, value + half
    if data.binary:
        low, high = max(0.0, low), min(1.0, high)
    method = "prediction-powered (PPI++)" + ("" if joined is None else ", clustered")
    interval = Interval(low=low, high=high, level=level, method=method)
    made = msgspec.structs.replace(
        known,
        corrected=Figure(value=value, interval=interval, n=n + more),
        tuning=tuning,
        effective_labels=n * _variance(data, 0.0) / variance,
        labels_to_halve=_to_halve(data) if data.clusters is None else None,
    )
    return _worded(made)


def _refusal(data: Labels) -> str | None:
    """Return why nothing can be corrected."""
    n = len(data.human)
    if n < FEWEST_LABELS:
        return too_few(n)
    if data.clusters is not None and len(set(data.clusters)) < FEWEST_LABELS:
        found = len(set(data.clusters))
        return f"the labels come from {found} clusters; {FEWEST_LABELS} are needed"
    if not len(data.rest):
        return "every sample has a label: people's own figure needs no correction"
    return None


def too_few(n: int) -> str:
    """Say that so many labels are too few."""
    found = "1 label is" if n == 1 else f"{n} labels are"
    return f"{found} too few to know the judge's errors; {FEWEST_LABELS} are needed"


def _tuning(data: Labels) -> float:
    everything = np.concatenate([data.judge, data.rest])
    spread = float(everything.var(ddof=1))
    if spread <= 0:
        return 0.0
    together = float(np.cov(data.human, data.judge, ddof=1)[0, 1])
    wanted = together / ((1 + len(data.human) / len(data.rest)) * spread)
    return min(1.0, max(0.0, wanted))


def _variance(data: Labels, tuning: float) -> float:
    """Return the variance of the corrected mean."""
    residuals = data.human - tuning * data.judge
    added = _imagined(data, tuning)
    residuals = np.append(residuals, added)
    rest = tuning * (data.rest - data.rest.mean()) / len(data.rest)
    if data.clusters is None:
        own = float(residuals.var(ddof=1)) / len(residuals)
        return own + _clustered(rest, None)
    parts = np.append((residuals - residuals.mean()) / len(residuals), rest)
    alone = [("added", number) for number in range(len(added))]
    return _clustered(parts, (*data.clusters, *alone, *(data.rest_clusters or ())))


def _imagined(data: Labels, tuning: float) -> list[float]:
    """Return the residuals of one sample that only people, and one that only the judge rates high.

    Errors that few labels show may be missing from them altogether.
    """
    wrong = int(np.sum(data.human != data.judge))
    if wrong >= _ERRORS_KNOWN and np.ptp(data.human) > 0 and not data.binary:
        return []
    everything = np.concatenate([data.human, data.judge, data.rest])
    low, high = float(everything.min()), float(everything.max())
    return [high - tuning * low, low - tuning * high]


def _clustered(parts: Values, clusters: Sequence[Hashable] | None) -> float:
    """Return the variance of a sum whose parts are independent only between clusters."""
    sums, count = parts, len(parts)
    if clusters is not None:
        codes, count = codes_of(clusters, len(parts))
        sums = np.bincount(codes, parts, count)
    return float(count / (count - 1) * np.sum(sums**2)) if count > 1 else 0.0


def _figure(values: Values, clusters: Sequence[Hashable] | None, level: float) -> Figure:
    """Return a mean with its interval: Wilson's for rates, else Student's."""
    if np.isin(values, (0.0, 1.0)).all():
        return proportion((values > 0).tolist(), clusters=clusters, level=level)
    return mean_of(values.tolist(), clusters=clusters, level=level)


def _to_halve(data: Labels) -> int | None:
    """Return how many more of the samples must be labelled to halve the interval's width.

    With the share ``r2`` of people's variance that the judge explains, and T samples in all, the
    variance with n labels is about ``var(y) ((1 - r2) / n + r2 / T)``; solved for a quarter of
    today's. The second part is what the number of samples limits, however many are labelled.
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


def _worded(made: CorrectedMean) -> CorrectedMean:
    return msgspec.structs.replace(made, sentence=sentence(made))
