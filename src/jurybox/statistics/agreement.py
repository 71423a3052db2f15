"""How far raters agree: people with each other, a judge with people.

A statistic is a function in `pair_coefficients` or `panel_coefficients` and a row in one of the
tables here; commands and reports follow the tables.

Reference for the notes on prevalence: A. R. Feinstein and D. V. Cicchetti (1990), "High agreement
but low kappa: I. The problems of two paradoxes", Journal of Clinical Epidemiology 43, 543-549.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Final

import msgspec
import numpy as np

from jurybox.documents.numbers import show_number
from jurybox.rubric.scale import Scale
from jurybox.statistics import pair_coefficients as pair
from jurybox.statistics import panel_coefficients as panel
from jurybox.statistics.estimates import Estimate
from jurybox.statistics.intervals import Values, wilson
from jurybox.statistics.jackknife import Patterns, estimates_of

# "Slight" agreement at best, in the words of J. R. Landis and G. G. Koch (1977).
_NEAR_ZERO: Final = 0.2
_HIGH: Final = 0.75


class AgreementStatistic(msgspec.Struct, frozen=True):
    """One statistic of agreement, computed by ``formula`` for many rows of weights."""

    name: str  # its name in JSON, after its group if it has one
    formula: Callable[..., Values]
    heading: str  # the heading of its column or row in a table
    group: str = ""  # the object that JSON puts it in
    categorical: bool = False  # whether it needs a scale with points
    correlation: bool = False  # whether it is undefined if a rater gave only one score


def _alpha(kind: str, formula: Callable[..., Values]) -> AgreementStatistic:
    return AgreementStatistic(f"alpha_{kind}", formula, f"alpha, {kind}", group="alpha")


def _icc(form: int) -> AgreementStatistic:
    return AgreementStatistic(f"icc_{form}_1", panel.icc(form), f"ICC({form},1)", group="icc")


PAIR_STATISTICS: Final = (
    AgreementStatistic("exact", pair.exact, "exact"),
    AgreementStatistic("kappa", pair.kappa, "kappa", categorical=True),
    AgreementStatistic("kappa_linear", pair.kappa_linear, "linear"),
    AgreementStatistic("kappa_quadratic", pair.kappa_quadratic, "quadratic"),
    AgreementStatistic("spearman", pair.spearman, "Spearman", correlation=True),
    AgreementStatistic("kendall", pair.kendall, "Kendall", correlation=True),
    AgreementStatistic("pearson", pair.pearson, "Pearson", correlation=True),
)
_RATINGS: Final = (
    _alpha("nominal", panel.alpha_nominal),
    _alpha("ordinal", panel.alpha_ordinal),
    _alpha("interval", panel.alpha_interval),
    _alpha("ratio", panel.alpha_ratio),
    AgreementStatistic("fleiss_kappa", panel.fleiss_kappa, "Fleiss' kappa", categorical=True),
    AgreementStatistic("ac1", panel.panel_ac1, "AC1", categorical=True),
    AgreementStatistic("ac2", panel.panel_ac2, "AC2, quadratic", categorical=True),
)
_COMPLETE: Final = (_icc(1), _icc(2), _icc(3))
PANEL_STATISTICS: Final = (*_RATINGS, *_COMPLETE)
"""The statistics of all raters together: over all ratings, or over items that all rated."""


class PairAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far two raters agree on ``n`` items; ``note`` explains a kappa near zero."""

    n: int
    estimates: Mapping[str, Estimate]
    note: str | None = None

    def __getitem__(self, name: str) -> Estimate:
        """Return a statistic by its name."""
        return self.estimates[name]


class RaterPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters by name, and how far they agree."""

    raters: tuple[str, str]
    agreement: PairAgreement


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """The ratings of one criterion.

    ``table`` has a row for each item, a column for each rater, and NaN for a missing rating; every
    row has a rating. ``clusters`` has the cluster of each item, if items depend on each other.
    """

    criterion: str | None
    raters: tuple[str, ...]
    table: Values
    clusters: tuple[Hashable, ...] | None = None


class PanelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far all raters of a criterion agree, together and in pairs."""

    criterion: str | None
    n_items: int
    n_paired: int  # items with two ratings or more
    n_ratings: int
    raters: tuple[str, ...]
    estimates: Mapping[str, Estimate]
    pairs: tuple[RaterPair, ...]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Estimate:
        """Return a statistic by its name."""
        return self.estimates[name]


def agree(
    a: Sequence[float] | Values,
    b: Sequence[float] | Values,
    scale: Scale,
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> PairAgreement:
    """Return how far two raters agree on the items that both rated, in the same order.

    For independent items, the interval of exact agreement is Wilson's. Scores must be on the scale.
    """
    cells = pair.cells_of(a, b)
    if not cells.n:
        missing = Estimate(value=None, n=0, reason="the two raters have no item in common")
        return PairAgreement(n=0, estimates={each.name: missing for each in PAIR_STATISTICS})
    counted = len(cells.x) <= pair.MOST_CELLS
    used = {
        each.name: each.formula
        for each in PAIR_STATISTICS
        if not (scale.continuous and each.categorical) and (counted or each.name != "kendall")
    }

    patterns = Patterns(
        pattern_of=cells.cell_of, count=len(cells.x), informative=cells.n, clusters=clusters
    )
    found = estimates_of(
        used,
        partial(pair.WeightedCells, cells),
        patterns,
        lambda name: _undefined(name, cells),
        level,
    )
    if clusters is None:
        agreed = float(cells.counts[cells.x == cells.y].sum())
        around = wilson(agreed, cells.n, level)
        found["exact"] = Estimate(value=agreed / cells.n, n=cells.n, interval=around)
    if not counted:
        reason = f"more than {pair.MOST_CELLS:,} different pairs of scores; see Spearman"
        found["kendall"] = Estimate(value=None, n=cells.n, reason=reason)
    found = _ordered(
        PAIR_STATISTICS,
        found,
        cells.n,
        "a continuous scale has no categories; see the weighted kappas",
    )
    return PairAgreement(n=cells.n, estimates=found, note=_pair_note(cells, found, scale))


def _ordered(
    statistics: Iterable[AgreementStatistic], found: Mapping[str, Estimate], n: int, reason: str
) -> dict[str, Estimate]:
    missing = Estimate(value=None, n=n, reason=reason)
    return {each.name: found.get(each.name, missing) for each in statistics}


_SAME_SCORE: Final = "every score is the same, so agreement can't be distinguished from chance"


def _undefined(name: str, cells: pair.Cells) -> str:
    if not next(each.correlation for each in PAIR_STATISTICS if each.name == name):
        return _SAME_SCORE
    one = [len(np.unique(side)) == 1 for side in (cells.x, cells.y)]
    who = "both raters" if all(one) else "the first rater" if one[0] else "the second rater"
    return f"{who} always gave the same score, so there is no correlation"


def _pair_note(cells: pair.Cells, found: Mapping[str, Estimate], scale: Scale) -> str | None:
    if scale.continuous:
        return None
    size = len(cells.values)
    both = sum(np.bincount(side, cells.counts, size) for side in (cells.x, cells.y))
    totals = np.asarray(both, dtype=np.float64)
    return _prevalence_note(found["exact"].value, found["kappa"].value, cells.values, totals)


def _prevalence_note(
    agreed: float | None, kappa: float | None, values: Values, totals: Values, name: str = "kappa"
) -> str | None:
    """Explain why kappa is near zero or undefined although most scores agree; else None."""
    if agreed is None or agreed < _HIGH or (kappa is not None and kappa > _NEAR_ZERO):
        return None
    most = int(np.argmax(totals))
    common = show_number(float(values[most]))
    if kappa is None:
        return (
            f"every score is {common}, so {name} is undefined: "
            "raters who always give it would agree as well without looking at an item"
        )
    return (
        f"{agreed:.0%} of the items have the same score, yet {name} is {kappa:.2f}: "
        f"{totals[most] / totals.sum():.0%} of the scores are {common}, so raters who give it "
        "nearly always would agree about as often without looking at an item; the data have too "
        "few other scores to show whether they agree on those (AC1 is less sensitive to this)"
    )


def agree_all(ratings: Ratings, scale: Scale, *, level: float = 0.95) -> PanelAgreement:
    """Return how far the raters agree; scores must be on the scale, one per rater and item.

    The intervals assume that items, or their clusters, are independent.
    """
    table, clusters = ratings.table, ratings.clusters
    given = ~np.isnan(table)
    patterns = panel.RatingPatterns(np.nonzero(given)[0], table[given], len(table))
    found = _of_ratings(patterns, scale, clusters, level)
    return PanelAgreement(
        criterion=ratings.criterion,
        n_items=len(table),
        n_paired=_paired(patterns),
        n_ratings=int(given.sum()),
        raters=ratings.raters,
        estimates=found | _of_complete(table, clusters, level),
        pairs=_pairs(table, ratings.raters, scale, clusters, level),
        notes=tuple(_panel_notes(patterns, found, scale)),
    )


def _paired(patterns: panel.RatingPatterns) -> int:
    return int(np.sum(patterns.paired[patterns.pattern_of]))


_Clusters = Sequence[Hashable] | None
"""The cluster of each item; None if items are independent."""


def _of_ratings(
    patterns: panel.RatingPatterns,
    scale: Scale,
    clusters: _Clusters,
    level: float,
) -> dict[str, Estimate]:
    n, points = _paired(patterns), len(scale.points or ())
    if not n:
        return _ordered(_RATINGS, {}, 0, "no item was rated by two raters or more")
    no_ratio = None
    if scale.low < 0:
        no_ratio = "the scale has points below zero, which have no ratio"
    elif len(patterns.values) > panel.MOST_RATIO:
        no_ratio = f"more than {panel.MOST_RATIO:,} different scores"
    used = {
        each.name: each.formula
        for each in _RATINGS
        if (points or not each.categorical) and not (no_ratio and each.name == "alpha_ratio")
    }

    left_out = Patterns(
        pattern_of=patterns.pattern_of,
        count=len(patterns.ratings),
        informative=n,
        clusters=clusters,
        width=4 * len(patterns.row),
    )
    undefined = _SAME_SCORE
    if len(patterns.values) > 1:
        undefined = (
            "every score of the items with two ratings or more is the same, so agreement can't be "
            "distinguished from chance"
        )
    rows = partial(panel.WeightedRatings, patterns, points=points)
    found = estimates_of(used, rows, left_out, lambda _: undefined, level)
    if no_ratio:
        found["alpha_ratio"] = Estimate(value=None, n=n, reason=no_ratio)
    return _ordered(_RATINGS, found, n, "a continuous scale has no categories; see alpha")


def _of_complete(table: Values, clusters: _Clusters, level: float) -> dict[str, Estimate]:
    """Return the statistics of the items that every rater rated."""
    if table.shape[1] <= 1:
        return _ordered(_COMPLETE, {}, 0, "there is only one rater")
    full = ~np.isnan(table).any(axis=1)
    scores, n = table[full], int(full.sum())
    if n <= 1:
        return _ordered(_COMPLETE, {}, n, "fewer than two items were rated by every rater")
    rows, row_of = np.unique(scores, axis=0, return_inverse=True)
    undefined = _SAME_SCORE
    if not np.all(rows == rows[0, 0]):
        undefined = (
            "this form is undefined, because the mean scores of items differ too little, compared "
            "with the scores of one item by different raters"
        )

    patterns = Patterns(
        pattern_of=row_of.reshape(-1).astype(np.intp),
        count=len(rows),
        informative=n,
        clusters=clusters and [clusters[place] for place in np.flatnonzero(full).tolist()],
    )
    used = {each.name: each.formula for each in _COMPLETE}
    squares = partial(panel.MeanSquares, rows)
    return estimates_of(used, squares, patterns, lambda _: undefined, level)


def _pairs(
    table: Values, names: Sequence[str], scale: Scale, clusters: _Clusters, level: float
) -> tuple[RaterPair, ...]:
    found: list[RaterPair] = []
    for one, other in combinations(range(len(names)), 2):
        both = np.flatnonzero(~np.isnan(table[:, one] + table[:, other])).tolist()
        agreement = agree(
            table[both, one],
            table[both, other],
            scale,
            clusters=clusters and [clusters[place] for place in both],
            level=level,
        )
        found.append(RaterPair(raters=(names[one], names[other]), agreement=agreement))
    return tuple(found)


def _panel_notes(
    patterns: panel.RatingPatterns, found: Mapping[str, Estimate], scale: Scale
) -> Iterable[str]:
    paired, items = _paired(patterns), len(patterns.pattern_of)
    if 0 < paired < items:
        yield (
            f"{items - paired:,} of {items:,} items have only one rating: alpha doesn't use them, "
            "and Fleiss' kappa, AC1 and AC2 use them only for how common each score is"
        )
    if len(np.unique(patterns.ratings)) > 1:
        yield (
            "items have different numbers of ratings, so Fleiss' kappa is Gwet's extension of it"
        )
    if not paired or scale.continuous:
        return
    weights = np.bincount(patterns.pattern_of, minlength=len(patterns.ratings)).astype(np.float64)
    totals = np.bincount(patterns.column, weights[patterns.row] * patterns.times)
    agreed = float(panel.WeightedRatings(patterns, weights[None, :]).agreed[0])
    kappa = found["fleiss_kappa"].value
    note = _prevalence_note(
        agreed, kappa, patterns.values, totals.astype(np.float64), "Fleiss' kappa"
    )
    if note is not None:
        yield note
