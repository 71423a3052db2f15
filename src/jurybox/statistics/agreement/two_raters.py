"""Two raters: every figure of how far they agree, from the items that both rated.

Why agreement can be high while kappa is near zero.

Reference: A. R. Feinstein and D. V. Cicchetti (1990), "High agreement but low kappa: I. The
problems of two paradoxes", Journal of Clinical Epidemiology 43, 543-549.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
import numpy as np

from jurybox.documents.numbers import show_number
from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement.cells import Cells, Values, Weighted, cells_of
from jurybox.statistics.agreement.coefficients import (
    ac1,
    ac2,
    exact,
    kappa,
    kappa_linear,
    kappa_quadratic,
    kendall,
    kendall_of_many,
    pearson,
    points_of,
    spearman,
)
from jurybox.statistics.agreement.draws import Drawing, Figures, intervals, why_none
from jurybox.statistics.bootstrap import DEFAULT, Resampling
from jurybox.statistics.estimate import Figure, Interval
from jurybox.statistics.intervals import wilson

# "Slight" agreement at best, in the words of J. R. Landis and G. G. Koch (1977).
_NEAR_ZERO: Final = 0.2
_HIGH: Final = 0.75


def prevalence_note(
    *, agreed: float, kappa: float | None, common: float, share: float, called: str = "kappa"
) -> str | None:
    """Say why kappa is near zero, or undefined, though most scores are equal; else ``None``.

    Args:
        agreed: the share of items with the same score.
        kappa: agreement beyond chance; ``None`` where all scores are one.
        common: the score that is given most often.
        share: the share of scores that it has.
        called: the name of the coefficient.

    """
    if agreed < _HIGH or (kappa is not None and kappa > _NEAR_ZERO):
        return None
    mostly = f"{share:.0%} of the scores are {show_number(common)}"
    if kappa is None:
        return (
            f"every score is {show_number(common)}, so {called} is undefined: "
            "raters who always give it would agree as well without looking at an item"
        )
    return (
        f"{agreed:.0%} of the items have the same score, yet {called} is {kappa:.2f}: {mostly}, so "
        "raters who give it nearly always would agree about as often without looking at an item; "
        "the data hold too few other scores to tell whether they agree on those "
        "(AC1 is less sensitive to this)"
    )


Measure = Callable[[Weighted], Values | None]

_NO_ITEMS: Final = "the two raters have no item in common"
_CONTINUOUS: Final = "a continuous scale has no categories; see the weighted kappas"


class PairAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far two raters agree.

    Attributes:
        n: how many items both rated.
        figures: by name: ``exact``, ``kappa``, ``kappa_linear``, ``kappa_quadratic``, ``spearman``,
            ``kendall``, ``pearson``, ``ac1``, ``ac2``.
        note: a sentence where high agreement and a kappa near zero need explaining.

    """

    n: int
    figures: Mapping[str, Figure]
    note: str | None = None

    def __getitem__(self, name: str) -> Figure:
        """Return a figure by its name."""
        return self.figures[name]


FIGURES: Final = (
    "exact",
    "kappa",
    "kappa_linear",
    "kappa_quadratic",
    "spearman",
    "kendall",
    "pearson",
    "ac1",
    "ac2",
)


def agree(
    a: Sequence[float],
    b: Sequence[float],
    scale: Scale,
    *,
    clusters: Sequence[Hashable] | None = None,
    resampling: Resampling | None = DEFAULT,
    among: int = 1,
) -> PairAgreement:
    """Return how far two raters agree on the items that both rated, in the same order.

    The interval of exact agreement is Wilson's where items are independent, and all others are BCa;
    without ``resampling`` there are none. Scores must be on the scale. ``among`` says of how many
    pairs this is one: of very many, intervals are made in a quicker way.
    """
    cells = cells_of(a, b)
    if not cells.n:
        nothing = Figure(value=None, n=0, reason=_NO_ITEMS)
        return PairAgreement(n=0, figures=dict.fromkeys(FIGURES, nothing))
    measures = _measures(scale)
    once = Weighted(cells, cells.counts[None, :])
    whole = {name: measure(once) for name, measure in measures.items()}
    known = {name: float(each[0]) for name, each in whole.items() if each is not None}
    made: dict[str, Interval | None] = {}
    if resampling is not None:
        drawing = Drawing(
            pattern_of=cells.cell_of, patterns=len(cells.x), clusters=clusters, among=among
        )
        known_by = {name: measures[name] for name in known}
        made = _intervals(cells, known_by, known, drawing, resampling)
    if "kendall" not in known:
        level = DEFAULT.level if resampling is None else resampling.level
        tau, around = kendall_of_many(cells, level)
        known["kendall"] = float("nan") if tau is None else tau
        made |= {"kendall": around} if resampling is not None else {}
    why = None if resampling is None else _why_none(cells.n, clusters)
    figures = {name: _figure(name, known.get(name), made.get(name), cells, why) for name in FIGURES}
    return PairAgreement(n=cells.n, figures=figures, note=_note(cells, figures, scale))


def _measures(scale: Scale) -> dict[str, Measure]:
    measures: dict[str, Measure] = {
        "exact": exact,
        "kappa_linear": kappa_linear,
        "kappa_quadratic": kappa_quadratic,
        "spearman": spearman,
        "kendall": kendall,
        "pearson": pearson,
    }
    points = points_of(scale)
    if points is not None:
        measures["kappa"] = kappa
        measures["ac1"] = partial(ac1, points=points)
        measures["ac2"] = partial(ac2, points=points)
    return measures


def _intervals(
    cells: Cells,
    measures: Mapping[str, Measure],
    whole: Mapping[str, float],
    drawing: Drawing,
    resampling: Resampling,
) -> dict[str, Interval | None]:
    wanted = dict(measures)
    if drawing.clusters is None:
        del wanted["exact"]

    def figures(weights: Values) -> Figures:
        draws = Weighted(cells, weights)
        each = {name: measure(draws) for name, measure in wanted.items()}
        return {name: values for name, values in each.items() if values is not None}

    made = intervals(figures, drawing, {name: whole[name] for name in wanted}, resampling)
    if drawing.clusters is None:
        agreed = float(cells.counts[cells.x == cells.y].sum())
        made["exact"] = wilson(agreed, cells.n, resampling.level)
    return made


def _figure(
    name: str, value: float | None, made: Interval | None, cells: Cells, why: str | None
) -> Figure:
    if value is None:
        return Figure(value=None, n=cells.n, reason=_CONTINUOUS)
    if np.isnan(value):
        return Figure(value=None, n=cells.n, reason=_undefined(name, cells))
    reason = why if made is None else None
    return Figure(value=value, n=cells.n, interval=made, reason=reason)


def _why_none(n: int, clusters: Sequence[Hashable] | None) -> str:
    return why_none(n) if clusters is None else why_none(len(set(clusters)), "clusters")


def _undefined(name: str, cells: Cells) -> str:
    if name in {"spearman", "kendall", "pearson"}:
        one = [len(np.unique(side)) == 1 for side in (cells.x, cells.y)]
        who = "both raters" if all(one) else "the first rater" if one[0] else "the second rater"
        return f"{who} gave one score only, which can't go up or down with another"
    return "every score is the same, so agreement can't be told from chance"


def _note(cells: Cells, figures: Mapping[str, Figure], scale: Scale) -> str | None:
    agreed = figures["exact"].value
    if agreed is None or scale.continuous:
        return None
    both = np.bincount(cells.x, cells.counts, len(cells.values)) + np.bincount(
        cells.y, cells.counts, len(cells.values)
    )
    most = int(np.argmax(both))
    return prevalence_note(
        agreed=agreed,
        kappa=figures["kappa"].value,
        common=float(cells.values[most]),
        share=float(both[most]) / (2 * cells.n),
    )
