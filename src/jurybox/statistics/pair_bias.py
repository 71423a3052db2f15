"""Bias for a kind of response: how often it wins, how it is scored, and what people say."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.bias_metric import (
    BiasMetric,
    by_side,
    measured,
    number,
    percent,
    too_few,
    too_one_sided,
    unmeasured,
)
from jurybox.statistics.cluster_regression import coefficient
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import codes_of, mean_of, proportion, wilson

_TIE: Final = 0.5
_FAIR: Final = 0.5


class ResponseKind(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two responses is measured, in words: ``the longer response``."""

    name: str
    which: str
    favor: str
    pairs: str


def win_rate(
    shares: Sequence[float], samples: Sequence[Hashable], kind: ResponseKind, *, level: float = 0.95
) -> BiasMetric:
    """Return how often a kind of response wins, of the votes that name a winner.

    ``shares`` has 1 for each vote it wins, 0 for each it loses, and 0.5 for ties, which are left
    out. The interval is Wilson's over samples.
    """
    decided = [(each > _TIE, s) for each, s in zip(shares, samples, strict=True) if each != _TIE]
    found = proportion([won for won, _ in decided], clusters=[s for _, s in decided], level=level)
    count = len({sample for _, sample in decided})
    why = too_few(count, f"{kind.pairs} and a winner")
    if why is not None or found.value is None:
        return unmeasured(kind.name, why or "", n=found.n, samples=count)
    shown = percent(found.value, found.interval)
    sentence = f"Of two responses, {kind.which} wins {shown} of the decided votes"
    return measured(kind.name, found, count, sentence + _verdict(found.interval, _FAIR, kind))


def win_rate_at_equal(
    shares: Sequence[float],
    difference: Sequence[float],
    samples: Sequence[Hashable],
    kind: ResponseKind,
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return how often a kind of response wins where the two don't differ in something else.

    The intercept of ``share = b0 + b1 difference`` by least squares over clusters, kept within 0
    and 1; ties count as half.
    """
    n, m = len(shares), codes_of(samples, len(shares))[1]
    why = too_few(m, kind.pairs)
    if why is not None:
        return unmeasured(kind.name, why, n=n, samples=m)
    if len(set(shares)) == 1:
        # Nothing varies, so nothing can go with the difference.
        value, interval = shares[0], wilson(shares[0] * m, m, level)
    else:
        columns = [np.ones(n), np.asarray(difference, dtype=np.float64)]
        varied = columns if np.ptp(columns[1]) else columns[:1]
        found = coefficient(shares, varied, samples, intercept=False, level=level)
        if found.value is None or found.interval is None:
            return unmeasured(kind.name, found.reason or "", n=n, samples=m)
        ends = found.interval
        value, low, high = (min(1.0, max(0.0, x)) for x in (found.value, ends.low, ends.high))
        interval = msgspec.structs.replace(ends, low=low, high=high)
    sentence = f"At equal length, {kind.which} wins {percent(value, interval)} of the votes"
    found = Estimate(value=value, n=n, interval=interval)
    return measured(kind.name, found, m, sentence + _verdict(interval, _FAIR, kind))


def win_excess(
    shares: Sequence[float],
    people: Sequence[float],
    samples: Sequence[Hashable],
    kind: ResponseKind,
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return how much more often the judge prefers a kind of response than people do.

    The mean of the judge's share minus people's over the same votes, ties as half, with Student's
    interval over samples; 0 is fair whatever people prefer.
    """
    apart = [one - other for one, other in zip(shares, people, strict=True)]
    found = mean_of(apart, clusters=samples, level=level)
    count = len(set(samples))
    why = too_few(count, f"{kind.pairs} and a winner by people")
    if why is not None or found.value is None:
        return unmeasured(kind.name, why or "", n=found.n, samples=count)
    shown = number(found.value, found.interval)
    sentence = f"Compared with people, the judge prefers {kind.which} by {shown} of the votes"
    return measured(kind.name, found, count, sentence + _verdict(found.interval, 0.0, kind))


def _verdict(interval: Interval | None, fair: float, kind: ResponseKind) -> str:
    favors, disfavors = f"the judge favors {kind.favor}", f"the judge disfavors {kind.favor}"
    said = by_side(interval, fair, none="no significant bias", above=favors, below=disfavors)
    return f": {said}."


def difference_name(mark: str) -> str:
    """Return the name of the difference in score that a mark of layout makes."""
    return f"formatting.{mark}.difference"


def formatted(mark: str) -> ResponseKind:
    """Return the kind of response that has a mark of layout, where the other one hasn't."""
    return ResponseKind(
        name=f"formatting.{mark}.win_rate",
        which=f"the response with {mark}",
        favor=mark,
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
) -> BiasMetric:
    """Return how much higher responses with a mark of layout are scored, at equal length.

    The coefficient of ``has`` in ``score = has + words`` by least squares over clusters.
    """
    name = difference_name(mark)
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a score") or too_one_sided(has, samples, ("with it", "without it"))
    if why is not None:
        return unmeasured(name, why, n=n, samples=m)
    length = np.asarray(words, dtype=np.float64)
    columns = [np.asarray(has, dtype=np.float64), *([length] if np.ptp(length) else [])]
    found = coefficient(scores, columns, samples, level=level)
    if found.value is None:
        return unmeasured(name, found.reason or "", n=n, samples=m)
    favors, disfavors = f"the judge favors {mark}", f"the judge disfavors {mark}"
    verdict = by_side(
        found.interval, 0.0, none="no significant bias", above=favors, below=disfavors
    )
    shown = number(found.value, found.interval)
    sentence = f"At equal length, responses with {mark} get {shown} of the scale more than others:"
    return measured(name, found, m, f"{sentence} {verdict}.")


OWN_DIFFERENCE: Final = "self_preference.score_difference"
OWN_DIFFERENCE_GIVEN_GOLD: Final = "self_preference.score_difference_given_gold"
OWN: Final = ResponseKind(
    name="self_preference.own_win_rate",
    which="the response of the judge's own family",
    favor="its own family",
    pairs="one response of the judge's family and one of another",
)
OWN_EXCESS: Final = msgspec.structs.replace(OWN, name="self_preference.own_win_excess")


def own_against_others(
    scores: Sequence[float],
    own: Sequence[bool],
    judges: Sequence[str],
    samples: Sequence[Hashable],
    *,
    given_gold: bool = False,
    level: float = 0.95,
) -> BiasMetric:
    """Return how much higher a judge scores its own family's responses than others'.

    The coefficient of ``own`` in ``score = own + judge`` by least squares over clusters: the
    difference of the means, within each family of judges where there are several. With
    ``given_gold`` the scores are the judge's minus people's.
    """
    name = OWN_DIFFERENCE_GIVEN_GOLD if given_gold else OWN_DIFFERENCE
    n, m = len(scores), codes_of(samples, len(scores))[1]
    why = too_few(m, "a response by a known model" + (" and gold" if given_gold else ""))
    kinds = ("of the judge's own family", "of another family")
    why = why or too_one_sided(own, samples, kinds)
    if why is not None:
        return unmeasured(name, why, n=n, samples=m)
    columns = [np.asarray(own, dtype=np.float64)]
    # One of the families is the intercept.
    columns += [
        np.array([each == family for each in judges], dtype=np.float64)
        for family in sorted(set(judges))[1:]
    ]
    found = coefficient(scores, columns, samples, level=level)
    if found.value is None:
        return unmeasured(name, found.reason or "", n=n, samples=m)
    verdict = by_side(
        found.interval,
        0.0,
        none="no significant self-preference",
        above="the judge favors its own family",
        below="the judge is harder on its own family",
    )
    beyond = " beyond what people give" if given_gold else ""
    shown = number(found.value, found.interval)
    sentence = f"Responses of the judge's own family get {shown} of the scale more than others"
    return measured(name, found, m, f"{sentence}{beyond}: {verdict}.")
