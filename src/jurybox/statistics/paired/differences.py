"""Where the mean of paired differences lies."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.bootstrap import Resampling, bca
from jurybox.statistics.distributions import normal_quantile, t_quantile
from jurybox.statistics.estimate import Interval
from jurybox.statistics.intervals import codes_of

Values = NDArray[np.float64]

FEWEST_DRAWN: Final = 50
"""With fewer independent units draws are too much alike, and cover less than Student's t does."""

_PIECE: Final = 2_000_000


class Units(msgspec.Struct, frozen=True, kw_only=True):
    """Differences gathered into what is independent: pairs, or clusters of them."""

    sums: Values
    sizes: Values

    @property
    def mean(self) -> float:
        """The mean over all pairs."""
        return float(self.sums.sum() / self.sizes.sum())

    @property
    def alike(self) -> bool:
        """Whether every unit has the same mean, so that their spread can't be told."""
        means = self.sums / self.sizes
        return bool(np.ptp(means) <= 1e-12 * max(1.0, float(np.max(np.abs(means)))))

    @property
    def standard_error(self) -> float:
        """Of the mean; ``sqrt(G / (G - 1) sum((s_g - n_g mean)^2)) / n`` over G units."""
        count = len(self.sums)
        apart = self.sums - self.sizes * self.mean
        return float(np.sqrt(count / (count - 1) * np.sum(apart**2)) / self.sizes.sum())


def gather(differences: Values, clusters: Sequence[Hashable] | None) -> Units:
    """Return the differences by cluster, in the order in which clusters appear."""
    if clusters is None:
        return Units(sums=differences, sizes=np.ones(len(differences)))
    codes, count = codes_of(clusters, len(differences))
    sums = np.bincount(codes, weights=differences, minlength=count)
    return Units(sums=sums.astype(np.float64), sizes=np.bincount(codes).astype(np.float64))


def mean_interval(units: Units, resampling: Resampling) -> Interval | str:
    """Return the interval of the mean difference, or why there is none.

    From 50 units on by resampling (BCa), below that by Student's t with the units' standard
    error. Where all units have the same mean difference there is no spread to go by, and two more
    are imagined: one that doesn't differ, and one that moved as far the other way. There is none
    where nothing differs: from zero to zero would promise that nothing ever will.
    """
    count, level = len(units.sums), resampling.level
    if count < 2:  # noqa: PLR2004 - one value has no spread
        return "one independent difference has no spread" if count else "there are no pairs"
    if units.alike:
        if not units.mean:
            return _nothing(units)
        return _student(_imagined(units), level, ", two of them imagined")
    drawn = _bootstrapped(units, resampling) if count >= FEWEST_DRAWN else None
    if drawn is not None:
        return drawn
    return _student(units, level)


def _student(units: Units, level: float, note: str = "") -> Interval:
    count = len(units.sums)
    half = t_quantile((1 + level) / 2, count - 1) * units.standard_error
    method = f"Student's t, {count} {_word(units)}{note}"
    return Interval(low=units.mean - half, high=units.mean + half, level=level, method=method)


def _imagined(units: Units) -> Units:
    size = float(units.sizes.mean())
    return Units(
        sums=np.append(units.sums, [0.0, -size * units.mean]),
        sizes=np.append(units.sizes, [size, size]),
    )


def _nothing(units: Units) -> str:
    if float(units.sizes.max()) > 1:
        return "no cluster differs on the whole"
    return "the runs are equal on every sample"


def _word(units: Units) -> str:
    return "pairs" if len(units.sums) == units.sizes.sum() else "clusters"


def _bootstrapped(units: Units, resampling: Resampling) -> Interval | None:
    """Draw units, and compute the means of many draws at once."""
    count = len(units.sums)
    rng = np.random.default_rng(resampling.seed)
    drawn = np.empty(resampling.resamples)
    step = max(1, _PIECE // count)
    for start in range(0, len(drawn), step):
        chosen = rng.integers(0, count, (min(step, len(drawn) - start), count))
        sums, sizes = units.sums[chosen].sum(axis=1), units.sizes[chosen].sum(axis=1)
        drawn[start : start + step] = sums / sizes
    left_out = (units.sums.sum() - units.sums) / (units.sizes.sum() - units.sizes)
    unit = "rows" if _word(units) == "pairs" else "clusters"
    return bca(units.mean, drawn, left_out, resampling=resampling, unit=unit)


def rates_interval(only_a: int, only_b: int, n: int, level: float) -> Interval:
    """Return the interval of the difference of two rates on the same ``n`` samples.

    One is added to either kind of discordant pair, so that the interval stays honest where few
    or no pairs differ: with ``a = (only_a + 1) / (n + 2)`` and ``b`` likewise, it is
    ``b - a +- z sqrt((a + b - (b - a)^2) / (n + 2))``, within -1 and 1.

    Reference: D. G. Bonett and R. M. Price (2012), "Adjusted Wald confidence interval for a
    difference of binomial proportions based on paired data", Journal of Educational and
    Behavioral Statistics 37, 479-488.
    """
    a, b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    half = normal_quantile((1 + level) / 2) * float(np.sqrt((a + b - (b - a) ** 2) / (n + 2)))
    low, high = max(-1.0, b - a - half), min(1.0, b - a + half)
    return Interval(low=low, high=high, level=level, method="Bonett-Price")
