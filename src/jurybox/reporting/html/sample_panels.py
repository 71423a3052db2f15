"""What a page shows of a run's votes, and of its unstable pairs."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.reporting.attention import Concern, SampleCard, numbered_card
from jurybox.reporting.pair_votes import OrderedVote, stored_votes
from jurybox.reporting.stored import SampleRecord, procedure_of, reading
from jurybox.statistics.bias_estimates import BiasMetric

# Rows of one dataset are asked about in the same way.
_LOOKED_AT: Final = 100


class Independence(msgspec.Struct, frozen=True, kw_only=True):
    """Of how many of the samples that were looked at the votes could only be the same (E10)."""

    looked_at: int
    dependent: int


def independence(store: Store, run: RunRow) -> Independence | None:
    """Return whether the votes on a run's first samples could differ; None without several."""
    looked_at = dependent = 0
    with reading(run):
        for sample in islice(store.samples(run.id), _LOOKED_AT):
            report = SampleRecord(sample).report
            if report is not None and report.votes_valid > 1:
                looked_at += 1
                dependent += not report.votes_independent
    return Independence(looked_at=looked_at, dependent=dependent) if looked_at else None


UNSTABLE: Final = "unstable"
MOST_PAIRS: Final = 5000
"""How many pairs are read: reading the votes on one takes a millisecond or two."""

_SHOWN: Final = 10


class OrderMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of what the order of two responses does, over a run's first pairs."""

    label: str
    criterion: str | None  # whose preference flips with the order; None for the winner
    metric: BiasMetric
    most: int = MOST_PAIRS


def order_metrics(store: Store, run: RunRow, most: int = MOST_PAIRS) -> tuple[OrderMetric, ...]:
    """Return what the order does to the votes on a run's first pairs; nothing without pairs."""
    # Numpy is loaded for this only.
    from jurybox.statistics.bias_estimates import (
        first_place_win_rate,
        flip_rate,
        swap_consistency,
    )

    with reading(run):
        votes = list(_votes(store, run, most))
    if not votes:
        return ()
    samples = [sample for sample, _ in votes]
    straight, swapped = [vote.straight for _, vote in votes], [vote.swapped for _, vote in votes]
    found = [
        OrderMetric(
            label="The first place wins, of the calls with a winner",
            criterion=None,
            metric=first_place_win_rate(straight, swapped, samples),
        ),
        OrderMetric(
            label="The winner stays when the responses change places",
            criterion=None,
            metric=swap_consistency(straight, swapped, samples),
        ),
    ]
    for name in dict.fromkeys(name for _, vote in votes for name in vote.kept):
        kept = [(sample, vote.kept[name]) for sample, vote in votes if name in vote.kept]
        flips = flip_rate(name, [each for _, each in kept], [sample for sample, _ in kept])
        label = "The preference flips with the places"
        found.append(OrderMetric(label=label, criterion=name, metric=flips))
    return tuple(found)


def _votes(store: Store, run: RunRow, most: int) -> Iterator[tuple[str, OrderedVote]]:
    """Yield the votes, read again from their replies: reports have only their outcome."""
    procedure = procedure_of(run)
    for row in islice(store.samples(run.id), most):
        record = SampleRecord(row)
        if record.report is not None and record.responses.response_b is not None:
            for vote in stored_votes(procedure, record, store):
                yield row.sample_id, vote


def unstable_pairs(
    store: Store, run: RunRow, concerns: Iterable[Concern]
) -> tuple[SampleCard, ...]:
    """Return the first pairs whose winner changes with the order."""
    places = [each for found in concerns if found.kind == UNSTABLE for each in found.samples]
    numbers = [each.number for each in places if each.number is not None]
    return tuple(numbered_card(store, run, each) for each in numbers[:_SHOWN])
