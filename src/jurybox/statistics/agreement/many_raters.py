"""All raters of a criterion: how far they agree together, and each with each.

Intraclass correlation: how much of the scores' variance is the items'.

With ``k`` raters who all scored the same ``n`` items, and the mean squares of a two-way table, R of
items, C of raters, E of the rest and W within items:

- ``ICC(1,1) = (R - W) / (R + (k - 1) W)``: each item was scored by other raters.
- ``ICC(2,1) = (R - E) / (R + (k - 1) E + k (C - E) / n)``: these raters stand for others like them;
  a rater who is always higher disagrees.
- ``ICC(3,1) = (R - E) / (R + (k - 1) E)``: only these raters matter; always higher is no
  disagreement.
- ``ICC(1,k) = (R - W) / R``, ``ICC(2,k) = (R - E) / (R + (C - E) / n)``, ``ICC(3,k) = (R - E) /
R``:
  the same of the mean of the ``k`` raters.

Reference: P. E. Shrout and J. L. Fleiss (1979), "Intraclass correlations: uses in assessing rater
reliability", Psychological Bulletin 86, 420-428.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Final

import msgspec
import numpy as np

from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement.cells import Codes, Values, divided
from jurybox.statistics.agreement.coefficients import points_of
from jurybox.statistics.agreement.coincidences import MOST_RATIO, Coincidences, Counts, counts_of
from jurybox.statistics.agreement.draws import FEWEST, Drawing, Figures, intervals, why_none
from jurybox.statistics.agreement.two_raters import PairAgreement, agree, prevalence_note
from jurybox.statistics.bootstrap import DEFAULT, Resampling
from jurybox.statistics.estimate import Figure, Interval

FORMS: Final = ("icc_1_1", "icc_2_1", "icc_3_1", "icc_1_k", "icc_2_k", "icc_3_k")


def icc(scores: Values, weights: Values) -> dict[str, Values]:
    """Return the six forms, for rows of weights of the items; NaN where one is undefined.

    ``scores`` has a row for each item and a column for each rater, with nothing missing.
    """
    k = scores.shape[1]
    x = scores - scores.mean()
    n: Values = np.maximum(weights.sum(axis=1), 1)
    grand = weights @ x.mean(axis=1) / n
    items = k * (weights @ x.mean(axis=1) ** 2 - n * grand**2)
    total = weights @ np.sum(x**2, axis=1) - n * k * grand**2
    within = np.maximum(weights @ (k * x.var(axis=1)), 0)
    raters = n * np.sum((weights @ x / n[:, None] - grand[:, None]) ** 2, axis=1)
    rest = np.maximum(within - raters, 0)
    # A draw of one item has no variance between items; it is undefined below.
    free = np.maximum(n - 1, 1)
    r, w = items / free, within / (n * (k - 1))
    c, e = raters / (k - 1), rest / (free * (k - 1))
    # Below this, what is left of the sum of squares is rounding.
    vary = (n > 1) & (total > 1e-12 * max(float(np.sum(x**2)), 1e-300))
    forms = {
        "icc_1_1": (r - w, r + (k - 1) * w),
        "icc_2_1": (r - e, r + (k - 1) * e + k * (c - e) / n),
        "icc_3_1": (r - e, r + (k - 1) * e),
        "icc_1_k": (r - w, r),
        "icc_2_k": (r - e, r + (c - e) / n),
        "icc_3_k": (r - e, r),
    }
    small = 1e-12 * (r + w)
    return {
        name: divided(above, below, where=vary & (below > small))
        for name, (above, below) in forms.items()
    }


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """The ratings of one criterion, column by column.

    ``item``, ``rater`` and ``score`` have an entry for each rating: the places of its item and
    rater among ``items`` and ``raters``, and its score. A rating that is missing has no entry.
    """

    criterion: str | None
    items: tuple[str, ...]
    raters: tuple[str, ...]
    item: tuple[int, ...]
    rater: tuple[int, ...]
    score: tuple[float, ...]


_TWICE: Final = "no item was rated by two raters or more"
_ONE_SCORE: Final = "every score is the same, so agreement can't be told from chance"
_CONTINUOUS: Final = "a continuous scale has no categories; see alpha"
_ONE_PAIRED: Final = (
    "every score of the items with two ratings or more is the same, so agreement can't be told "
    "from chance"
)
_CLOSE: Final = (
    "the items' mean scores differ too little, set against how the raters differ on each item, "
    "for this form to be defined"
)
_NEGATIVE: Final = "the scale has points below zero, which have no ratio"
_MANY: Final = f"more than {MOST_RATIO:,} different scores"
_COMPLETE: Final = "fewer than two items were rated by every rater"
_ALONE: Final = "there is one rater only"

ALPHAS: Final = ("nominal", "ordinal", "interval", "ratio")
_CATEGORICAL: Final = ("fleiss_kappa", "ac1", "ac2")


class RaterPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters by name, and how far they agree."""

    raters: tuple[str, str]
    agreement: PairAgreement


class PanelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far all raters of a criterion agree.

    Attributes:
        criterion: what they rated, where that was said.
        n_items: how many items have a rating.
        n_paired: how many of them have two or more.
        n_ratings: how many ratings there are.
        raters: their names.
        alpha: Krippendorff's: ``nominal``, ``ordinal``, ``interval``, ``ratio``.
        fleiss_kappa: Fleiss' kappa.
        ac1: Gwet's AC1.
        ac2: Gwet's AC2 with quadratic weights.
        icc: the six forms, ``icc_1_1`` to ``icc_3_k``, of the items that all raters rated.
        pairs: every pair of raters.
        notes: what has to be known to read the figures.

    """

    criterion: str | None
    n_items: int
    n_paired: int
    n_ratings: int
    raters: tuple[str, ...]
    alpha: Mapping[str, Figure]
    fleiss_kappa: Figure
    ac1: Figure
    ac2: Figure
    icc: Mapping[str, Figure]
    pairs: tuple[RaterPair, ...]
    notes: tuple[str, ...]


def agree_all(
    ratings: Ratings, scale: Scale, *, resampling: Resampling | None = DEFAULT
) -> PanelAgreement:
    """Return how far the raters agree; scores must be on the scale, one a rater and item.

    Intervals draw items, which must be independent. Without ``resampling`` there are none.
    """
    item, rater = np.asarray(ratings.item, dtype=np.intp), np.asarray(ratings.rater, dtype=np.intp)
    score = np.asarray(ratings.score, dtype=np.float64)
    _, item = np.unique(item, return_inverse=True)
    items = int(item.max()) + 1 if len(item) else 0
    counts = counts_of(item, score, items)
    together = _together(counts, scale, resampling)
    paired = int(np.sum(counts.ratings[counts.pattern_of] > 1))
    table = _Table(item, rater, score, items, ratings.raters)
    return PanelAgreement(
        criterion=ratings.criterion,
        n_items=items,
        n_paired=paired,
        n_ratings=len(score),
        raters=ratings.raters,
        alpha={name: together[f"alpha_{name}"] for name in ALPHAS},
        fleiss_kappa=together["fleiss_kappa"],
        ac1=together["ac1"],
        ac2=together["ac2"],
        icc=table.icc(resampling),
        pairs=table.pairs(scale, resampling),
        notes=_notes(counts, together, paired, items),
    )


class _Table:
    """The ratings by rater."""

    def __init__(
        self, item: Codes, rater: Codes, score: Values, items: int, raters: tuple[str, ...]
    ) -> None:
        order = np.lexsort((item, rater))
        self._item, self._score = item[order], score[order]
        self._ends = np.searchsorted(rater[order], np.arange(len(raters) + 1))
        self._items = items
        self._raters = raters
        same = (np.diff(self._item) == 0) & (np.diff(rater[order]) == 0)
        if same.any():
            raise ValueError("a rater rated an item twice")

    def _of(self, rater: int) -> tuple[Codes, Values]:
        part = slice(int(self._ends[rater]), int(self._ends[rater + 1]))
        return self._item[part], self._score[part]

    def pairs(self, scale: Scale, resampling: Resampling | None) -> tuple[RaterPair, ...]:
        found: list[RaterPair] = []
        every = list(combinations(range(len(self._raters)), 2))
        for one, other in every:
            (left, a), (right, b) = self._of(one), self._of(other)
            _, i, j = np.intersect1d(left, right, assume_unique=True, return_indices=True)
            agreement = agree(
                a[i].tolist(), b[j].tolist(), scale, resampling=resampling, among=len(every)
            )
            names = (self._raters[one], self._raters[other])
            found.append(RaterPair(raters=names, agreement=agreement))
        return tuple(found)

    def icc(self, resampling: Resampling | None) -> dict[str, Figure]:
        k = len(self._raters)
        if k < 2:  # noqa: PLR2004 - one rater can't disagree
            return dict.fromkeys(FORMS, Figure(value=None, n=0, reason=_ALONE))
        full = np.bincount(self._item, minlength=self._items) == k
        n = int(full.sum())
        if n < 2:  # noqa: PLR2004 - one item has no variance
            return dict.fromkeys(FORMS, Figure(value=None, n=n, reason=_COMPLETE))
        scores = np.stack([each[full[items]] for items, each in map(self._of, range(k))], axis=1)
        rows, row_of = np.unique(scores, axis=0, return_inverse=True)
        drawing = Drawing(pattern_of=row_of.reshape(-1).astype(np.intp), patterns=len(rows))
        undefined = _ONE_SCORE if np.all(rows == rows[0, 0]) else _CLOSE
        return _figures(lambda w: icc(rows, w), drawing, n, resampling, undefined)


def _together(counts: Counts, scale: Scale, resampling: Resampling | None) -> dict[str, Figure]:
    items = len(counts.pattern_of)
    paired = int(np.sum(counts.ratings[counts.pattern_of] > 1))
    names = (*(f"alpha_{name}" for name in ALPHAS), *_CATEGORICAL, "agreed")
    if not paired:
        return dict.fromkeys(names, Figure(value=None, n=0, reason=_TWICE))
    figures = Coincidences(counts, points=points_of(scale), ratio=scale.low >= 0)
    drawing = Drawing(pattern_of=counts.pattern_of, patterns=len(counts.ratings))
    undefined = _ONE_SCORE if len(counts.values) == 1 else _ONE_PAIRED
    found = _figures(figures.figures, drawing, paired, resampling, undefined)
    for name in _CATEGORICAL:
        found.setdefault(name, Figure(value=None, n=items, reason=_CONTINUOUS))
    why = _NEGATIVE if scale.low < 0 else _MANY
    found.setdefault("alpha_ratio", Figure(value=None, n=paired, reason=why))
    return found


def _figures(
    figures: Callable[[Values], Figures],
    drawing: Drawing,
    n: int,
    resampling: Resampling | None,
    undefined: str,
) -> dict[str, Figure]:
    """Return figures of ``n`` items that tell something on agreement; others may be drawn too."""
    whole = {name: float(each[0]) for name, each in figures(drawing.counts[None, :]).items()}
    made: Mapping[str, Interval | None] = {}
    if resampling is not None and n >= FEWEST:
        made = intervals(figures, drawing, whole, resampling)
    found: dict[str, Figure] = {}
    for name, seen in whole.items():
        value = None if np.isnan(seen) else seen
        around = made.get(name)
        reason = None
        if value is None:
            reason = undefined
        elif resampling is not None and around is None:
            reason = why_none(n)
        found[name] = Figure(value=value, n=n, interval=around, reason=reason)
    return found


def _notes(
    counts: Counts, figures: Mapping[str, Figure], paired: int, items: int
) -> tuple[str, ...]:
    notes: list[str] = []
    if 0 < paired < items:
        alone = items - paired
        notes.append(
            f"{alone:,} of {items:,} items have one rating only: they don't enter alpha, and enter "
            "Fleiss' kappa, AC1 and AC2 only by how common each score is"
        )
    if len(np.unique(counts.ratings)) > 1:
        notes.append(
            "items have different numbers of ratings; Fleiss' kappa is then Gwet's extension of it"
        )
    agreed = figures["agreed"].value if "agreed" in figures else None
    if agreed is not None:
        weights = np.bincount(counts.pattern_of, minlength=len(counts.ratings))
        totals = np.bincount(counts.column, weights[counts.row] * counts.times)
        most = int(np.argmax(totals))
        note = prevalence_note(
            agreed=agreed,
            kappa=figures["fleiss_kappa"].value,
            common=float(counts.values[most]),
            share=float(totals[most] / totals.sum()),
            called="Fleiss' kappa",
        )
        notes += [] if note is None else [note]
    return tuple(notes)
