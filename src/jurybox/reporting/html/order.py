"""What the order of two responses does, and the pairs that it decided."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.judging.verdict import Side
from jurybox.reporting.attention import Concern
from jurybox.reporting.html.samples import SampleCard, card_of
from jurybox.reporting.judge_conduct import read_stored
from jurybox.reporting.pair_votes import both_orders, kept_preferences, pair_votes
from jurybox.reporting.stored import damaged, procedure_of
from jurybox.running.records import RunRow, in_order
from jurybox.running.storing import Store
from jurybox.statistics.interval import Interval

if TYPE_CHECKING:
    from jurybox.statistics.bias.figure import BiasFigure

UNSTABLE: Final = "unstable"
MOST: Final = 5000
"""So many pairs are looked at: reading the votes on one takes a millisecond or two."""

_SHOWN: Final = 10
_FIRST: Final = "The first place wins, of the calls with a winner"
_STAYS: Final = "The winner stays when the responses change places"
_FLIPS: Final = "The preference flips with the places"


class OrderFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of what the order does.

    Attributes:
        label: what it is, in words.
        criterion: whose preference flips with the order; None for the winner.
        value: a share; None where it can't be told.
        n: how many votes or calls it is made from, on so many ``samples``.
        interval: where it probably lies.
        reason: why that or the value isn't known.
        most: how many of a run's samples are looked at.

    """

    label: str
    criterion: str | None
    value: float | None
    n: int
    samples: int
    interval: Interval | None
    reason: str | None
    most: int = MOST


def order_figures(store: Store, run: RunRow, most: int = MOST) -> tuple[OrderFigure, ...]:
    """Return what the order does to the votes on a run's first pairs; nothing without pairs.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    # Numpy is loaded for this only.
    from jurybox.statistics.bias import position

    try:
        votes = list(_votes(store, run, most))
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None
    if not votes:
        return ()
    straight, swapped = [each.straight for each in votes], [each.swapped for each in votes]
    samples = [each.sample for each in votes]
    names = dict.fromkeys(name for each in votes for name in each.kept)
    voted = {name: [each for each in votes if name in each.kept] for name in names}
    flips = position.flips(
        {name: [each.kept[name] for each in some] for name, some in voted.items()},
        {name: [each.sample for each in some] for name, some in voted.items()},
    )
    return (
        _told(_FIRST, position.first_place_win_rate(straight, swapped, samples)),
        _told(_STAYS, position.swap_consistency(straight, swapped, samples)),
        *(_told(_FLIPS, each, name) for name, each in zip(names, flips, strict=True)),
    )


class _Vote(msgspec.Struct, frozen=True, kw_only=True):
    """Who won in either order, and which preferences stayed."""

    sample: str
    straight: Side
    swapped: Side
    kept: dict[str, bool]


def _votes(store: Store, run: RunRow, most: int) -> Iterator[_Vote]:
    """Yield the votes, read anew from their replies: the reports have only what came of them."""
    procedure = procedure_of(run)
    for sample in islice(store.samples(run.id), most):
        stored = read_stored(sample)
        if stored is None or stored.responses.response_b is None:
            continue
        row = msgspec.structs.replace(stored.row, response_b=stored.responses.response_b)
        exchanges = in_order(sample, store.exchanges_of(run.id, sample.number))
        for seat, vote in pair_votes(procedure, row.sample(stored.responses.response), exchanges):
            straight, swapped = both_orders(seat, vote)
            kept = kept_preferences(seat, vote)
            yield _Vote(sample=sample.sample_id, straight=straight, swapped=swapped, kept=kept)


def _told(label: str, figure: "BiasFigure", criterion: str | None = None) -> OrderFigure:
    return OrderFigure(
        label=label,
        criterion=criterion,
        value=figure.value,
        n=figure.n,
        samples=figure.samples,
        interval=figure.interval,
        reason=figure.reason,
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
