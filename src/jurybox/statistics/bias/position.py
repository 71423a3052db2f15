"""Position: whether the place in which a response is shown decides (E8).

A vote on a pair is two calls, one in each order. A fair judge lets the first place win as often as
the second, since each response stands in each place once; and names the same response both times.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.bias.figure import BiasFigure, percent, side_of, too_few, untold
from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.estimate import Interval
from jurybox.statistics.intervals import codes_of, proportion

FIRST_PLACE = "position.first_place_win_rate"
CONSISTENCY = "position.swap_consistency"
FLIPS = "position.flips"

_A, _B = "A", "B"
_FAIR = 0.5
# A vote is two calls.
_VOTE = 2.0


def first_place_win_rate(
    straight: Sequence[str],
    swapped: Sequence[str],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasFigure:
    """Return how often the response shown first wins, of the calls that name a winner.

    ``p = sum(F) / sum(T)`` over the samples, with ``F`` calls won by the first place and ``T``
    calls that were decided; 0.5 is fair. Both orders of a vote are asked, so a judge that sticks to
    its winner has ``F = T / 2`` in every sample, and only inconsistent votes move the figure. The
    interval is that of a ratio over clusters, ``p -+ t sqrt(m/(m - 1) sum((F - pT)^2)) / sum(T)``,
    after two imagined votes were added, one won by the first place in both orders and one by the
    second: that keeps it honest where hardly any vote is inconsistent.

    Args:
        straight: who won with A shown first: ``A``, ``B``, or anything else for neither.
        swapped: who won with B shown first, mapped back.
        samples: to which sample each vote belongs.
        level: of the interval.

    References: W. G. Cochran (1977), "Sampling Techniques", section 6.3 (ratios over clusters);
    D. G. Bonett and R. M. Price (2012), "Adjusted Wald confidence interval for a difference of
    binomial proportions based on paired data", Journal of Educational and Behavioral Statistics
    37, 479-488 (the imagined observations).

    """
    decided = _which(straight, {_A, _B}) + _which(swapped, {_A, _B})
    won = _which(straight, {_A}) + _which(swapped, {_B})
    kept = decided > 0
    n = int(decided.sum())
    codes, m = codes_of(
        [each for each, keep in zip(samples, kept, strict=True) if keep], int(kept.sum())
    )
    why = too_few(m, "a pair with a winner")
    if why is not None:
        return untold(FIRST_PLACE, why, n=n, samples=m)
    wins, calls = (np.bincount(codes, each[kept], m).astype(np.float64) for each in (won, decided))
    value = float(wins.sum() / calls.sum())
    interval = _ratio_interval(wins, calls, level)
    shown = percent(value, interval)
    side = side_of(interval, _FAIR)
    if side == 0:
        sentence = f"No position bias can be told: the response shown first wins {shown} of the"
        sentence += " decided calls."
    else:
        place = "first" if side > 0 else "second"
        sentence = f"The response shown first wins {shown} of the decided calls:"
        sentence += f" the judge favours the {place} place."
    return BiasFigure(
        name=FIRST_PLACE, value=value, n=n, samples=m, interval=interval, sentence=sentence
    )


def swap_consistency(
    straight: Sequence[str],
    swapped: Sequence[str],
    samples: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> BiasFigure:
    """Return the share of votes whose outcome stays when the responses change places (E8).

    ``sum(straight == swapped) / votes``, the second already mapped back; two ties agree.
    """
    same = [one == other for one, other in zip(straight, swapped, strict=True)]
    found = proportion(same, clusters=samples, level=level)
    count = len(set(samples))
    why = too_few(count, "a vote in both orders")
    if why is not None or found.value is None:
        return untold(CONSISTENCY, why or "", n=found.n, samples=count)
    shown = percent(found.value, found.interval)
    return BiasFigure(
        name=CONSISTENCY,
        value=found.value,
        n=found.n,
        samples=count,
        interval=found.interval,
        sentence=f"The verdict stays the same in {shown} of the votes when the responses change"
        " places.",
    )


def flips(
    kept: Mapping[str, Sequence[bool]],
    samples: Mapping[str, Sequence[Hashable]],
    *,
    level: float = 0.95,
) -> tuple[BiasFigure, ...]:
    """Return for each criterion the share of votes whose preference flips with the places.

    Args:
        kept: by criterion, for each vote, whether its preference stayed.
        samples: by criterion, to which sample each vote belongs.
        level: of the intervals.

    """
    return tuple(_flips(name, kept[name], samples[name], level) for name in kept)


def _flips(
    criterion: str, kept: Sequence[bool], samples: Sequence[Hashable], level: float
) -> BiasFigure:
    name = f"{FLIPS}.{criterion}"
    found = proportion([not each for each in kept], clusters=samples, level=level)
    count = len(set(samples))
    why = too_few(count, f"a preference for `{criterion}` in both orders")
    if why is not None or found.value is None:
        return untold(name, why or "", n=found.n, samples=count)
    shown = percent(found.value, found.interval)
    return BiasFigure(
        name=name,
        value=found.value,
        n=found.n,
        samples=count,
        interval=found.interval,
        sentence=f"The preference for `{criterion}` flips with the places in {shown} of the votes.",
    )


def _which(verdicts: Sequence[str], sides: set[str]) -> NDArray[np.float64]:
    return np.array([each in sides for each in verdicts], dtype=np.float64)


def _ratio_interval(
    wins: NDArray[np.float64], calls: NDArray[np.float64], level: float
) -> Interval:
    value = float(wins.sum() / calls.sum())
    won = np.concatenate([wins, [_VOTE, 0.0]])
    asked = np.concatenate([calls, [_VOTE, _VOTE]])
    m, total = len(asked), float(asked.sum())
    centre = float(won.sum()) / total
    spread = m / (m - 1) * float(np.sum((won - centre * asked) ** 2))
    half = t_quantile((1 + level) / 2, m - 1) * spread**0.5 / total
    return Interval(
        # Pulled towards the middle by the imagined votes, it must still hold what was seen.
        low=max(0.0, min(value, centre - half)),
        high=min(1.0, max(value, centre + half)),
        level=level,
        method=f"adjusted ratio, {m - 2:,} clusters",
    )
