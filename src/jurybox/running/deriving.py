"""From what is stored of a sample to what follows from it."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from jurybox.running.drive import drive_sync
from jurybox.running.plan import Plan
from jurybox.running.records import ExchangeRow, SampleRow
from jurybox.running.retelling import ByThread, Exactly, role_of
from jurybox.running.runner import Work, sample_row
from jurybox.running.storing import EVERY, Store
from jurybox.running.transcript import read_outcome, read_request
from jurybox.sample import Response, Row
from jurybox.scoring.conduct import Procedure, conduct
from jurybox.scoring.uses import Exchanged, with_uses


class StoredResponses(msgspec.Struct, frozen=True, kw_only=True):
    """The responses of a sample as they are stored."""

    response: Response
    response_b: Response | None = None


_RESPONSES = msgspec.json.Decoder(StoredResponses)
_INPUTS = msgspec.json.Decoder(Row)


def named(sample: SampleRow) -> str:
    """Return what a person calls a record."""
    return f"record {sample.number}, sample {sample.sample_id}, repeat {sample.repeat}"


def grouped(
    store: Store, run_id: str, numbers: range = EVERY
) -> Iterator[tuple[SampleRow | None, list[ExchangeRow]]]:
    """Yield every sample with its exchanges; exchanges of unfinished samples come without one."""
    samples = store.samples(run_id, numbers)
    asked = groupby(store.exchanges(run_id, numbers), key=lambda exchange: exchange.number)
    groups = ((number, list(rows)) for number, rows in asked)
    sample, group = next(samples, None), next(groups, None)
    while sample is not None or group is not None:
        if group is None or (sample is not None and sample.number < group[0]):
            yield sample, []
            sample = next(samples, None)
        elif sample is None or group[0] < sample.number:
            yield None, group[1]
            group = next(groups, None)
        else:
            yield sample, group[1]
            sample, group = next(samples, None), next(groups, None)


def derive(
    plan: Plan,
    procedure: Procedure,
    sample: SampleRow,
    exchanges: Sequence[ExchangeRow],
) -> SampleRow:
    """Return the row that follows from a sample's inputs and the replies, but for its hashes.

    Raises:
        DifferentError: other questions were asked than the rubric asks.
        msgspec.DecodeError: something stored can't be read.

    """
    stored = _RESPONSES.decode(sample.responses)
    row = _INPUTS.decode(sample.inputs)
    row = msgspec.structs.replace(
        row,
        response=stored.response if procedure.target is None else None,
        response_b=stored.response_b,
    )
    if plan.derived_from is None:
        exactly = Exactly(exchanges)
        conducted = drive_sync(conduct(procedure, row), exactly)
        exactly.finish()
        told = exactly.told
    else:
        conducted = drive_sync(conduct(procedure, row), ByThread(exchanges))
        told = [
            Exchanged(role=role_of(each), request=read_request(each), outcome=read_outcome(each))
            for each in exchanges
        ]
    result = with_uses(conducted.result, told)
    work = Work(number=sample.number, repeat=sample.repeat, row=row)
    conducted = msgspec.structs.replace(conducted, result=result)
    return sample_row(sample.run_id, work, conducted, sample.notes)
