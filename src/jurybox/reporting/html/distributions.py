"""How the figures of the samples are spread, in as many bins as a chart has room for."""

from typing import Final

import msgspec

from jurybox.reporting.html.axes import UNITS
from jurybox.reporting.html.estimates import Estimates
from jurybox.rubric.figures import SAMPLE_SCORE, Statistic
from jurybox.rubric.model import Rubric
from jurybox.scoring.spreads import MEASURED, Bin, FigureSpread
from jurybox.scoring.tally import JUDGE_SCORE

MOST_BINS: Final = 21

_LABELS: Final = {
    "latency_e2e_ms": "Latency, end to end",
    "total_tokens": "Tokens a sample",
    SAMPLE_SCORE: "Sample score",
    JUDGE_SCORE: "The judge's score",
}
_PARTS: Final = (2, 5, 10, 20, 50, 100)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of the run that is drawn into a distribution, such as its 95th percentile."""

    name: str
    label: str
    value: float
    n: int | None


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """One figure over the samples of a run.

    Attributes:
        name: the figure's.
        label: the same for people.
        unit: of its values; empty for scores.
        n: how many samples have it.
        mean: of them.
        bins: low end, high end, count; both ends are the same where a bin is one score.
        marks: figures of the run that lie in it.

    """

    name: str
    label: str
    unit: str
    n: int
    mean: float
    bins: tuple[Bin, ...]
    marks: tuple[Mark, ...] = ()


def score_distributions(rubric: Rubric, estimates: Estimates) -> tuple[Distribution, ...]:
    """Return how the scores are spread: the whole first, then every criterion."""
    names = {
        SAMPLE_SCORE: _LABELS[SAMPLE_SCORE],
        rubric.overall_name: "Overall",
        **{criterion.id: criterion.name for criterion in rubric.criteria},
        JUDGE_SCORE: _LABELS[JUDGE_SCORE],
    }
    return _known(names, rubric, estimates)


def measure_distributions(rubric: Rubric, estimates: Estimates) -> tuple[Distribution, ...]:
    """Return how latency and tokens are spread, with the percentiles that the rubric names."""
    return _known({name: _LABELS[name] for name in MEASURED}, rubric, estimates)


def _known(names: dict[str, str], rubric: Rubric, estimates: Estimates) -> tuple[Distribution, ...]:
    found = ((name, label, estimates.spread(name)) for name, label in names.items())
    return tuple(
        _distribution(name, label, spread, _marks(name, rubric, estimates))
        for name, label, spread in found
        if spread is not None
    )


def _distribution(
    name: str, label: str, spread: FigureSpread, marks: tuple[Mark, ...]
) -> Distribution:
    return Distribution(
        name=name,
        label=label,
        unit=UNITS.get(name, ""),
        n=spread.n,
        mean=spread.mean,
        bins=_few(spread.bins),
        marks=marks,
    )


def _marks(name: str, rubric: Rubric, estimates: Estimates) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    for figure in rubric.figures:
        formula = figure.formula
        if isinstance(formula, Statistic) and formula.of == name and formula.by[0] == "p":
            known = estimates.of(figure.name)
            if known.value is not None:
                mark = Mark(name=figure.name, label=formula.by, value=known.value, n=known.n)
                marks.append(mark)
    return tuple(sorted(marks, key=lambda mark: mark.value))


def _few(bins: tuple[Bin, ...]) -> tuple[Bin, ...]:
    """Put neighbours together until a chart has room for all."""
    if len(bins) <= MOST_BINS:
        return bins
    step = next((part for part in _PARTS if len(bins) <= part * MOST_BINS), len(bins))
    parts = [bins[at : at + step] for at in range(0, len(bins), step)]
    return tuple((part[0][0], part[-1][1], sum(each[2] for each in part)) for part in parts)
