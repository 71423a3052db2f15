"""What keeps a ranking from being all that it seems, in words."""

from collections.abc import Iterator, Sequence

import numpy as np

from jurybox.statistics.ranking.graph import MOST_CYCLES
from jurybox.statistics.ranking.scales import FEW_ITEMS, RUNAWAY, Scales
from jurybox.statistics.ranking.tally import Tally

_SHOWN = 5
_MOST = 20


def cautions(
    counted: Tally,
    scales: Scales,
    groups: Sequence[Sequence[int]],
    found: Sequence[Sequence[str]],
    *,
    complete: bool,
) -> tuple[str, ...]:
    """Return all warnings, the gravest first."""
    return (
        *_unlinked(counted, groups),
        *_one_sided(counted, scales),
        *_unsure(counted, scales),
        *_circles(found, complete=complete),
    )


def unnamed_items(count: int) -> Iterator[str]:
    """Say how many verdicts don't name their item though others do, and repeat."""
    if count:
        rows = "1 row names" if count == 1 else f"{count:,} rows name"
        yield f"{rows} no item: each counts as an item of its own beside those that repeat"


def _unlinked(counted: Tally, groups: Sequence[Sequence[int]]) -> Iterator[str]:
    if len(groups) > 1:
        sets = " and ".join(_names(counted, group) for group in groups[:_SHOWN])
        more = f" and {len(groups) - _SHOWN} more groups" if len(groups) > _SHOWN else ""
        yield f"no verdict links {sets}{more}: ranks and strengths hold within each group only"


def _one_sided(counted: Tally, scales: Scales) -> Iterator[str]:
    """Say between whom all verdicts went one way, so that no distance is finite."""
    said = 0
    for part in scales.parts:
        rest = [i for i in range(len(counted.names)) if i not in part]
        beaten = [i for i in rest if counted.wins[np.ix_(part, [i])].any()]
        lost_to = [i for i in rest if counted.wins[np.ix_([i], part)].any()]
        if len(part) > 1 and not beaten:
            continue
        said += 1
        if said > _MOST:
            yield "more models have no finite strength; each says so itself"
            return
        if len(part) == 1:
            yield _alone(counted, part[0], beaten, lost_to)
        else:
            yield (
                f"{_names(counted, part)} won every verdict against {_names(counted, beaten)}:"
                " the verdicts set no bound to how much stronger they are"
            )


def _alone(counted: Tally, model: int, beaten: Sequence[int], lost_to: Sequence[int]) -> str:
    name = f"`{counted.names[model]}`"
    if not lost_to:
        return f"{name} won every verdict: its strength has no upper bound, so none is given"
    if not beaten:
        return f"{name} lost every verdict: its strength has no lower bound, so none is given"
    return (
        f"{name} lost every verdict against {_names(counted, lost_to)} and won every one against"
        f" {_names(counted, beaten)}: no finite strength can be given"
    )


def _unsure(counted: Tally, scales: Scales) -> Iterator[str]:
    if not counted.wins.any():
        yield "every verdict is a tie: no order can be told"
    elif RUNAWAY in scales.reasons:
        yield (
            "no finite strengths fit: no model ever won against the order that wins and ties"
            " suggest, so none is given"
        )
    if FEW_ITEMS in scales.reasons:
        yield "there are too few items for intervals that take repeated items into account"


def _circles(found: Sequence[Sequence[str]], *, complete: bool) -> Iterator[str]:
    if found:
        count = "1 circle" if len(found) == 1 else f"{len(found)} circles"
        yield f"majorities go round in {count}: no single order agrees with all of them"
    if not complete:
        yield f"there may be more circles; at most {MOST_CYCLES} are listed"


def _names(counted: Tally, models: Sequence[int]) -> str:
    shown = ", ".join(f"`{counted.names[i]}`" for i in models[:_SHOWN])
    more = f" and {len(models) - _SHOWN} more" if len(models) > _SHOWN else ""
    return shown + more
