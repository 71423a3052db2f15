"""One kind of response against others: how often it wins, what it is scored, what people say."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.bias.figure import (
    BiasFigure,
    number,
    percent,
    side_of,
    too_few,
    too_one_sided,
    untold,
)
from jurybox.statistics.bias.regression import coefficient
from jurybox.statistics.estimate import Interval
from jurybox.statistics.intervals import codes_of, mean_of, proportion, wilson

TIE: Final = 0.5
_FAIR: Final = 0.5


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two responses is looked at, in words: ``the longer response``."""

    name: str
    which: str
    favour: str
    pairs: str


def win_rate(
    shares: Sequence[float], samples: Sequence[Hashable], kind: Kind, *, level: float = 0.95
) -> BiasFigure:
    """Return how often a kind of response wins, of the votes that name a winner.

    ``shares`` has 1 for each vote it wins, 0 for each it loses, and 0.5 for ties, which are left
    out. The interval is Wilson's over samples.
    """
    decided = [(each > TIE, s) for each, s in zip(shares, samples, strict=True) if each != TIE]
    found = proportion([won for won, _ in decided], clusters=[s for _, s in decided], level=level)
    count = len({sample for _, sample in decided})
    why = too_few(count, f"{kind.pairs} and a winner")
    if why is not None or found.value is None:
        return untold(kind.name, why or "", n=found.n, samples=count)
    shown = percent(found.value, found.interval)
    sentence = f"Of two responses, {kind.which} wins {shown} of the decided votes"
    sentence += _judged(side_of(found.interval, _FAIR), kind)
    return BiasFigure(
        name=kind.name,
        value=found.value,
        n=found.n,
        samples=count,
        interval=found.interval,
        sentence=sentence,
    )


def win_rate_at_equal(
    shares: Sequence[float],
    difference: Sequence[float],
    samples: Sequence[Hashable],
    kind: Kind,
    *,
    level: float = 0.95,
) -> BiasFigure:
    """Return how often a kind of response wins where the two don't differ in something else.

    The intercept of ``share = b0 + b1 difference`` by least squares over clusters, kept within 0
    and 1; ties count as half.
    """
    n, m = len(shares), codes_of(samples, len(shares))[1]
    why = too_few(m, kind.pairs)
    if why is not None:
        return untold(kind.name, why, n=n, samples=m)
    if len(set(shares)) == 1:
        # Nothing varies, so that nothing can go with the difference.
        value, interval = shares[0], wilson(shares[0] * m, m, level)
    else:
        columns = [np.ones(n), np.asarray(difference, dtype=np.float64)]
        varied = columns if np.ptp(columns[1]) else columns[:1]
        found = coefficient(shares, varied, samples, intercept=False, level=level)
        if found.value is None or found.interval is None:
            return untold(kind.name, found.reason or "", n=n, samples=m)
        value, interval = _share(found.value), _within(found.interval)
    sentence = f"At equal length, {kind.which} wins {percent(value, interval)} of the votes"
    sentence += _judged(side_of(interval, _FAIR), kind)
    return BiasFigure(
        name=kind.name, value=value, n=n, samples=m, interval=interval, sentence=sentence
    )


def win_excess(
    shares: Sequence[float],
    people: Sequence[float],
    samples: Sequence[Hashable],
    kind: Kind,
    *,
    level: float = 0.95,
) -> BiasFigure:
    """Return how much more often the judge prefers a kind of response than people do.

    The mean of the judge's share minus people's over the same votes, ties as half, with Student's
    interval over samples; 0 is fair whatever people prefer.
    """
    apart = [one - other for one, other in zip(shares, people, strict=True)]
    found = mean_of(apart, clusters=samples, level=level)
    count = len(set(samples))
    why = too_few(count, f"{kind.pairs} and a winner by people")
    if why is not None or found.value is None:
        return untold(kind.name, why or "", n=found.n, samples=count)
    shown = number(found.value, found.interval)
    sentence = f"Beyond what people say, the judge prefers {kind.which} by {shown} of the votes"
    sentence += _judged(side_of(found.interval, 0.0), kind)
    return BiasFigure(
        name=kind.name,
        value=found.value,
        n=found.n,
        samples=count,
        interval=found.interval,
        reason=found.reason,
        sentence=sentence,
    )


def _judged(side: int, kind: Kind) -> str:
    if side == 0:
        return ": no bias can be told."
    return f": the judge favours {kind.favour}." if side > 0 else f": it disfavours {kind.favour}."


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def _within(interval: Interval) -> Interval:
    return msgspec.structs.replace(interval, low=_share(interval.low), high=_share(interval.high))


FORMATTING: Final = "formatting"


def difference_name(mark: str) -> str:
    """Return what a gate calls the difference in score that a mark of layout makes."""
    return f"{FORMATTING}.{mark}.difference"


def formatted(mark: str) -> Kind:
    """Return the kind of response that has a mark of layout, where the other one hasn't."""
    return Kind(
        name=f"{FORMATTING}.{mark}.win_rate",
        which=f"the response with {mark}",
        favour=mark,
        pairs="one response with it and one without",
    )


def difference_by_mark(
    mark: str,
    scores: Sequence[float],
    has: Sequence[bool],
    words: Sequence[int],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasFigure:
    """Return how much higher responses with a mark of layout are scored, at equal length.

    The coefficient of ``has`` in ``score = has + words`` by least squares over clusters.
    """
    name = difference_name(mark)
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a score") or too_one_sided(has, samples, ("with it", "without it"))
    if why is not None:
        return untold(name, why, n=n, samples=m)
    length = np.asarray(words, dtype=np.float64)
    columns = [np.asarray(has, dtype=np.float64), *([length] if np.ptp(length) else [])]
    found = coefficient(scores, columns, samples, level=level)
    if found.value is None:
        return untold(name, found.reason or "", n=n, samples=m)
    side = side_of(found.interval, 0.0)
    told = ("no bias can be told", f"the judge favours {mark}")[side > 0]
    told = f"the judge disfavours {mark}" if side < 0 else told
    return BiasFigure(
        name=name,
        value=found.value,
        n=n,
        samples=m,
        interval=found.interval,
        sentence=f"At equal length, responses with {mark} get"
        f" {number(found.value, found.interval)} of the scale beside others: {told}.",
    )


OWN_DIFFERENCE: Final = "self_preference.score_difference"
OWN_DIFFERENCE_GIVEN_GOLD: Final = "self_preference.score_difference_given_gold"

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
    name = OWN_DIFFERENCE_GIVEN_GOLD if given_gold else OWN_DIFFERENCE
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
