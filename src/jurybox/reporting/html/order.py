"""What the order of two responses does, and the pairs that it decided."""

from collections.abc import Iterable
from typing import Final

import msgspec

from jurybox.reporting.attention import Concern
from jurybox.reporting.html.samples import SampleCard, card_of
from jurybox.reporting.judge_conduct import observe
from jurybox.running.records import RunRow
from jurybox.running.storing import Store
from jurybox.statistics.interval import Interval

UNSTABLE: Final = "unstable"
_BIAS: Final = "position"
_SHOWN: Final = 10
_NAMES: Final = {
    "first_place_win_rate": "The first place wins, of the calls with a winner",
    "swap_consistency": "The winner stays when the responses change places",
}
_FLIPS: Final = "flips."


class OrderFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of what the order does.

    Attributes:
        label: what it is, in words.
        criterion: whose preference flips with the order; None for the winner.
        value: a share; None where it can't be told.
        n: how many votes or calls it is made from, on so many ``samples``.
        interval: where it probably lies.
        reason: why that or the value isn't known.

    """

    label: str
    criterion: str | None
    value: float | None
    n: int
    samples: int
    interval: Interval | None
    reason: str | None


def order_figures(store: Store, run: RunRow) -> tuple[OrderFigure, ...]:
    """Return what the order does to the votes on a run's pairs; nothing without pairs.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    # Numpy is loaded for this only.
    from jurybox.calibration.bias import measure

    # What people say changes nothing of this, and needn't be right.
    seen = observe(store, run, {})
    if not seen.voted:
        return ()
    found = next(each.figures for each in measure(seen) if each.bias == _BIAS)
    return tuple(
        OrderFigure(
            label=_NAMES.get(name, "The preference flips with the places"),
            criterion=name.removeprefix(_FLIPS) if name.startswith(_FLIPS) else None,
            value=each.value,
            n=each.n,
            samples=each.samples,
            interval=each.interval,
            reason=each.reason,
        )
        for each in found
        for name in (each.name.removeprefix(f"{_BIAS}."),)
    )


def unstable_pairs(
    store: Store, run: RunRow, concerns: Iterable[Concern]
) -> tuple[SampleCard, ...]:
    """Return the first pairs whose winner changes with the order.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    places = [each for found in concerns if found.kind == UNSTABLE for each in found.samples]
    numbers = [each.number for each in places if each.number is not None]
    return tuple(card_of(store, run, each) for each in numbers[:_SHOWN])
