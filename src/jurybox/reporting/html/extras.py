"""The parts of a run's page that require reading samples: the worst, and the jury's votes."""

from collections.abc import Mapping
from itertools import islice
from typing import Final

import msgspec

from jurybox.calibration.bias_metrics import position
from jurybox.calibration.bias_results import BiasMetric
from jurybox.calibration.calibration_record import CalibrationStatus
from jurybox.calibration.observations import Observations
from jurybox.engine.records import RunRow
from jurybox.reporting.attention import SampleCard, numbered_card
from jurybox.reporting.judge_votes import stored_votes
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.stored import SampleRecord, plan_of, procedure_of, reading
from jurybox.reporting.view import RunView
from jurybox.statistics.jury_agreement import JuryAgreement, JuryCounter
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store


class Extras(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a page that require reading samples; empty unless the caller supplies them."""

    pending: bool = False  # whether the parts below that are missing are still being computed
    worst: tuple[SampleCard, ...] = ()
    baseline: RunDiff | None = None  # the comparison with the run that `RunView.before` names
    # A string says why the calibration can't be read, or is empty if there is none.
    calibration: CalibrationStatus | str | None = None
    people: ReviewAgreement | None = None
    jury_agreement: JuryAgreement | None = None
    with_lost_votes: int = 0  # how many samples have a lost vote
    position: tuple[BiasMetric, ...] = ()
    unstable: tuple[SampleCard, ...] = ()
    unstable_winners: Mapping[str, int] = {}  # how many of the unstable pairs each side wins


NO_EXTRAS: Final = Extras()


def with_lost_votes(store: Store, view: RunView) -> int:
    """Count the samples that have a lost vote."""
    if not view.summary["unscored_votes"]:
        return 0
    return store.find_samples(view.run_id, SampleQuery(limit=0)).flags.get("lost_votes", 0)


MOST_PAIRS: Final = 1000
"""The maximum number of pairs to read; reading a pair's votes takes a millisecond or two."""

_SHOWN: Final = 10


def order_metrics(store: Store, run: RunRow, most: int = MOST_PAIRS) -> tuple[BiasMetric, ...]:
    """Return how the order affects the votes on a run's first pairs; empty without pairs.

    The votes are read again from the replies, since reports have only the votes' outcome.
    """
    procedure = procedure_of(run)
    with reading(run):
        records = map(SampleRecord, islice(store.samples(run.id), most))
        votes = [vote for each in records for vote in stored_votes(procedure, each, store)]
    return tuple(position(Observations(voted=votes))) if votes else ()


def unstable_winners(store: Store, view: RunView) -> dict[str, int]:
    """Count the ties and wins among the unstable pairs; empty without unstable pairs."""
    if not view.conclusion.spreads.stable.get("unstable"):
        return {}
    query = SampleQuery(flags=("unstable",), limit=1)
    sides = (msgspec.structs.replace(query, winner=side) for side in ("tie", "A", "B"))
    return {str(each.winner): store.find_samples(view.run_id, each).total for each in sides}


def unstable_pairs(store: Store, run: RunRow) -> tuple[SampleCard, ...]:
    """Return the first unstable pairs, including reviewed ones."""
    found = store.find_samples(run.id, SampleQuery(flags=("unstable",), limit=_SHOWN)).rows
    return tuple(numbered_card(store, run, row.number) for row in found)


def vote_metrics(
    store: Store, view: RunView
) -> tuple[JuryAgreement | None, tuple[BiasMetric, ...]]:
    """Return how far the votes of a run agree, and how the order of two responses affects them."""
    known = view.estimates.position()
    # Responses that were scored separately have no order.
    ordered = known is not None and bool(known.n)
    return jury_agreement(store, view.row), order_metrics(store, view.row) if ordered else ()


def jury_agreement(store: Store, run: RunRow) -> JuryAgreement | None:
    """Return how far the votes on a run's samples agree, and which responses a jury prefers.

    None if no sample has several votes or two responses.
    """
    procedure = procedure_of(run)
    ordered = SampleQuery(any_flags=("stable", "unstable"), limit=0)
    several = bool(procedure.judges) and procedure.votes > 1
    if not (several or store.find_samples(run.id, ordered).total):
        return None
    counter = JuryCounter(procedure, plan_of(run).repeats)
    with reading(run):
        counter.add(each.values() for each in store.facets(run.id))
        for row in store.samples(run.id) if counter.judges else ():
            if (report := SampleRecord(row).report) is not None:
                counter.add_judges(report)
    return counter.agreement()
