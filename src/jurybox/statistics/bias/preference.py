"""Self-preference: whether a judge favours what models of its own family wrote."""

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from jurybox.statistics.bias.figure import (
    BiasFigure,
    number,
    side_of,
    too_few,
    too_one_sided,
    untold,
)
from jurybox.statistics.bias.pairs import Kind
from jurybox.statistics.bias.regression import coefficient
from jurybox.statistics.intervals import codes_of

DIFFERENCE: Final = "self_preference.score_difference"
DIFFERENCE_GIVEN_GOLD: Final = "self_preference.score_difference_given_gold"

_OWN: Final = "the response of the judge's own family"
_KINDS: Final = ("of the judge's own family", "of another family")
_FAVOUR: Final = "its own family"
_PAIRS: Final = "one response of the judge's family and one of another"
OWN: Final = Kind(name="self_preference.own_win_rate", which=_OWN, favour=_FAVOUR, pairs=_PAIRS)
OWN_EXCESS: Final = Kind(
    name="self_preference.own_win_excess", which=_OWN, favour=_FAVOUR, pairs=_PAIRS
)


def own_against_others(
    scores: Sequence[float],
    own: Sequence[bool],
    judges: Sequence[str],
    samples: Sequence[Hashable],
    *,
    given_gold: bool = False,
    level: float = 0.95,
) -> BiasFigure:
    """Return how much higher a judge scores its own family's responses than others'.

    The coefficient of ``own`` in ``score = own + judge`` by least squares over clusters: the
    difference of the means, within each family of judges where there are several.

    Args:
        scores: the judge's score of each response; where people scored it too, the judge's minus
            people's, and ``given_gold``.
        own: whether the response is of the judge's own family.
        judges: the family of the judge who gave the score.
        samples: to which sample it belongs.
        given_gold: whether the scores are what the judge gives beyond people.
        level: of the interval.

    """
    name = DIFFERENCE_GIVEN_GOLD if given_gold else DIFFERENCE
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a response by a known model" + (" and gold" if given_gold else ""))
    why = why or too_one_sided(own, samples, _KINDS)
    if why is not None:
        return untold(name, why, n=n, samples=m)
    columns = [np.asarray(own, dtype=np.float64)]
    # One of the families is the intercept.
    columns += [
        np.array([each == family for each in judges], dtype=np.float64)
        for family in sorted(set(judges))[1:]
    ]
    found = coefficient(scores, columns, samples, level=level)
    if found.value is None:
        return untold(name, found.reason or "", n=n, samples=m)
    side = side_of(found.interval, 0.0)
    told = ("no self-preference can be told", "the judge favours its own family")[side > 0]
    told = "the judge is harder on its own family" if side < 0 else told
    beyond = " beyond what people give" if given_gold else ""
    shown = number(found.value, found.interval)
    return BiasFigure(
        name=name,
        value=found.value,
        n=n,
        samples=m,
        interval=found.interval,
        sentence=f"Responses of the judge's own family get {shown} of the scale beside"
        f" others{beyond}: {told}.",
    )
