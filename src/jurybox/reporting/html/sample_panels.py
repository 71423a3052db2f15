"""Single samples on a page: the task, the responses, and why they were judged so."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, SampleRow
from jurybox.reporting.attention import Concern, ExtremeSample, numbered_sample
from jurybox.reporting.html.histograms import UNITS
from jurybox.reporting.metric_text import shown
from jurybox.reporting.pair_votes import OrderedVote, stored_votes
from jurybox.reporting.reasons import Reason, reasons_of
from jurybox.reporting.stored import SampleRecord, procedure_of, reading
from jurybox.sample import Response
from jurybox.statistics.bias_estimates import BiasMetric

# Rows of one dataset are asked about in the same way.
_LOOKED_AT: Final = 100


class CardResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response; ``trouble`` says why there is none."""

    label: str
    text: str
    trouble: str | None = None


class SampleCard(msgspec.Struct, frozen=True, kw_only=True):
    """A sample that is shown for the ``value`` of a metric, or for its flags alone.

    ``passed`` is None where the rubric has no rule by which samples pass.
    """

    number: int
    id: str
    repeat: int
    figure: str
    value: float | None
    passed: bool | None
    flags: tuple[str, ...]
    task: str
    answers: tuple[CardResponse, ...]
    grounds: tuple[Reason, ...]

    @property
    def measured(self) -> str:
        """The value with its unit."""
        unit = UNITS.get(self.figure)
        if self.value is None or unit is None:
            return "" if self.value is None else shown(self.value)
        return f"{shown(round(self.value, 1))} {unit}"


class Independence(msgspec.Struct, frozen=True, kw_only=True):
    """Of how many of the samples that were looked at the votes could only be the same (E10)."""

    looked_at: int
    dependent: int


def cards(store: Store, run: RunRow, extremes: Iterable[ExtremeSample]) -> tuple[SampleCard, ...]:
    """Return the cards of some samples.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    return tuple(card_of(store, run, each.number, each.figure, each.value) for each in extremes)


def card_of(
    store: Store, run: RunRow, number: int, figure: str = "", value: float | None = None
) -> SampleCard:
    """Return the card of the sample with a number.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    with reading(run):
        return card(numbered_sample(store, run, number), figure, value)


def card(sample: SampleRow, figure: str, value: float | None) -> SampleCard:
    """Return a sample's card, with the metric for which it is shown.

    Raises:
        msgspec.DecodeError: something stored can't be read.

    """
    record = SampleRecord(sample)
    result, responses = record.result, record.responses
    first = "response" if responses.response_b is None else "response A"
    answers = [_answer(responses.response, first)]
    if responses.response_b is not None:
        answers.append(_answer(responses.response_b, "response B"))
    return SampleCard(
        number=sample.number,
        id=sample.sample_id,
        repeat=sample.repeat,
        figure=figure,
        value=value,
        # Without a rule nothing passes or fails, not even what has no score.
        passed=result.passed if result.rules else None,
        flags=result.review_reasons,
        task=record.inputs.task,
        answers=tuple(answers),
        grounds=tuple(reasons_of(record)),
    )


def _answer(response: Response, label: str) -> CardResponse:
    trouble = response.error or ("timed out" if response.timing.timed_out else None)
    return CardResponse(label=label, text=response.text, trouble=trouble)


def independence(store: Store, run: RunRow) -> Independence | None:
    """Return whether the votes on a run's first samples could differ; None without several votes.

    Raises:
        IncompleteError: what is stored can't be read.

    """
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
    """Return what the order does to the votes on a run's first pairs; nothing without pairs.

    Raises:
        IncompleteError: what is stored can't be read.

    """
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
    """Return the first pairs whose winner changes with the order.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    places = [each for found in concerns if found.kind == UNSTABLE for each in found.samples]
    numbers = [each.number for each in places if each.number is not None]
    return tuple(card_of(store, run, each) for each in numbers[:_SHOWN])
