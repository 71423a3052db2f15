"""Position bias: whether the place in which a response is shown decides (E8).

A vote on a pair is two calls, one in each order. A fair judge lets the first place win as often as
the second, since each response is in each place once; and names the same response both times.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from jurybox.statistics.bias_metric import (
    BiasMetric,
    by_side,
    measured,
    percent,
    too_few,
    unmeasured,
)
from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Values, codes_of, proportion

FIRST_PLACE: Final = "position.first_place_win_rate"
CONSISTENCY: Final = "position.swap_consistency"
FLIPS: Final = "position.flips"

_FAIR: Final = 0.5
_CALLS: Final = 2.0  # of one vote


def first_place_win_rate(
    straight: Sequence[str],
    swapped: Sequence[str],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return how often the response shown first wins, of the calls that name a winner.

    ``p = sum(F) / sum(T)`` over the samples, with ``F`` calls won by the first place and ``T``
    decided calls; 0.5 is fair. Both orders of a vote are asked, so a judge that keeps its winner
    has ``F = T / 2`` in every sample, and only inconsistent votes move the value. The interval is
    that of a ratio over clusters, ``p -+ t sqrt(m/(m - 1) sum((F - pT)^2)) / sum(T)``, after two
    imagined votes were added, one won by the first place in both orders and one by the second:
    that keeps it honest where hardly any vote is inconsistent.

    ``straight`` says who won with A shown first (``A``, ``B``, or anything else for neither),
    ``swapped`` who won with B shown first, mapped back.

    References: W. G. Cochran (1977), "Sampling Techniques", section 6.3 (ratios over clusters);
    D. G. Bonett and R. M. Price (2012), "Adjusted Wald confidence interval for a difference of
    binomial proportions based on paired data", Journal of Educational and Behavioral Statistics
    37, 479-488 (the imagined observations).
    """
    decided = _which(straight, {"A", "B"}) + _which(swapped, {"A", "B"})
    won = _which(straight, {"A"}) + _which(swapped, {"B"})
    kept = decided > 0
    n = int(decided.sum())
    owners = [each for each, keep in zip(samples, kept, strict=True) if keep]
    codes, m = codes_of(owners, int(kept.sum()))
    why = too_few(m, "a pair with a winner")
    if why is not None:
        return unmeasured(FIRST_PLACE, why, n=n, samples=m)
    wins, calls = (np.bincount(codes, each[kept], m).astype(np.float64) for each in (won, decided))
    value = float(wins.sum() / calls.sum())
    interval = _ratio_interval(wins, calls, level)
    favors = "the judge favors the {} place"
    verdict = by_side(
        interval,
        _FAIR,
        none="no significant position bias",
        above=favors.format("first"),
        below=favors.format("second"),
    )
    sentence = f"The response shown first wins {percent(value, interval)} of the decided calls:"
    found = Estimate(value=value, n=n, interval=interval)
    return measured(FIRST_PLACE, found, m, f"{sentence} {verdict}.")


def swap_consistency(
    straight: Sequence[str],
    swapped: Sequence[str],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasMetric:
    """Return the share of votes whose outcome stays when the responses change places (E8).

    ``sum(straight == swapped) / votes``, the second already mapped back; two ties agree.
    """
    same = [one == other for one, other in zip(straight, swapped, strict=True)]
    sentence = "The verdict stays the same in {} of the votes when the responses change places."
    return _share(CONSISTENCY, same, samples, "a vote in both orders", sentence, level)


def flip_rate(
    criterion: str, kept: Sequence[bool], samples: Sequence[Hashable], *, level: float = 0.95
) -> BiasMetric:
    """Return the share of votes whose preference for a criterion flips with the places."""
    what = f"a preference for `{criterion}` in both orders"
    sentence = f"The preference for `{criterion}` flips with the places in {{}} of the votes."
    flipped = [not each for each in kept]
    return _share(f"{FLIPS}.{criterion}", flipped, samples, what, sentence, level)


def _share(
    name: str,
    outcomes: Sequence[bool],
    samples: Sequence[Hashable],
    what: str,
    sentence: str,
    level: float,
) -> BiasMetric:
    found = proportion(outcomes, clusters=samples, level=level)
    count = len(set(samples))
    why = too_few(count, what)
    if why is not None or found.value is None:
        return unmeasured(name, why or "", n=found.n, samples=count)
    return measured(name, found, count, sentence.format(percent(found.value, found.interval)))


def _which(verdicts: Sequence[str], sides: set[str]) -> Values:
    return np.array([each in sides for each in verdicts], dtype=np.float64)


def _ratio_interval(wins: Values, calls: Values, level: float) -> Interval:
    value = float(wins.sum() / calls.sum())
    won = np.concatenate([wins, [_CALLS, 0.0]])
    asked = np.concatenate([calls, [_CALLS, _CALLS]])
    m, total = len(asked), float(asked.sum())
    center = float(won.sum()) / total
    spread = m / (m - 1) * float(np.sum((won - center * asked) ** 2))
    half = t_quantile((1 + level) / 2, m - 1) * spread**0.5 / total
    return Interval(
        # Pulled towards the middle by the imagined votes, it must still contain what was seen.
        low=max(0.0, min(value, center - half)),
        high=min(1.0, max(value, center + half)),
        level=level,
        method=f"adjusted ratio, {m - 2:,} clusters",
    )
