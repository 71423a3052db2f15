"""How far people agree with each other, which is as much as a judge can be asked for."""

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Final

from jurybox.calibration.figures import Ceiling
from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement.pair import PairAgreement, agree
from jurybox.statistics.agreement.panel import Ratings, agree_all
from jurybox.statistics.bootstrap import Resampling

_FEWEST: Final = 2
# All pairs of people are drawn for it: with many, that would take longer than judging.
_MANY: Final = 6

Given = Mapping[str, Mapping[str, float]]
"""What people gave: by sample, then by person."""


def ceiling_of(
    given: Given,
    judge: Mapping[str, float],
    scale: Scale,
    resampling: Resampling | None,
    *,
    nominal: bool = False,
) -> Ceiling | None:
    """Return how far people agree; None where no sample has what two of them say.

    Kappas are quadratic over the declared scale, or unweighted for ``nominal`` scores. Without
    ``resampling`` alpha has no interval.
    """
    several = {item: people for item, people in given.items() if len(people) >= _FEWEST}
    if not several:
        return None
    names = sorted({who for people in several.values() for who in people})
    by_person = {
        who: {item: people[who] for item, people in several.items() if who in people}
        for who in names
    }
    pairs = [
        _pair(by_person[one], by_person[other], scale) for one, other in combinations(names, 2)
    ]
    with_judge = [_pair(judge, by_person[who], scale) for who in names]
    kappa = "kappa" if nominal else "kappa_quadratic"
    drawn = resampling if len(names) <= _MANY else None
    whole = agree_all(_ratings(several, names), scale, resampling=drawn)
    kind = "nominal" if nominal else "interval" if scale.continuous else "ordinal"
    return Ceiling(
        people=len(names),
        n=len(several),
        exact=_mean(pairs, lambda each: each["exact"].value),
        kappa=_mean(pairs, lambda each: each[kappa].value),
        judge_kappa=_mean(with_judge, lambda each: each[kappa].value),
        alpha=whole.alpha[kind],
    )


def _pair(one: Mapping[str, float], other: Mapping[str, float], scale: Scale) -> PairAgreement:
    shared = sorted(one.keys() & other.keys())
    return agree(
        [one[item] for item in shared], [other[item] for item in shared], scale, resampling=None
    )


def _mean(
    pairs: Iterable[PairAgreement], figure: Callable[[PairAgreement], float | None]
) -> float | None:
    """Return the mean over pairs by how many samples each shares; undefined ones are left out."""
    known = [(value, pair.n) for pair in pairs if (value := figure(pair)) is not None]
    total = sum(n for _, n in known)
    return sum(value * n for value, n in known) / total if total else None


def _ratings(given: Given, names: list[str]) -> Ratings:
    items = tuple(sorted(given))
    places = {who: place for place, who in enumerate(names)}
    entries = [
        (number, places[who], score)
        for number, item in enumerate(items)
        for who, score in given[item].items()
    ]
    return Ratings(
        criterion=None,
        items=items,
        raters=tuple(names),
        item=tuple(item for item, _, _ in entries),
        rater=tuple(rater for _, rater, _ in entries),
        score=tuple(score for _, _, score in entries),
    )
