"""What has happened to a dataset since a run began."""

from collections.abc import Iterator
from typing import Final

import msgspec

from jurybox.datasets import Dataset, DatasetError, survey
from jurybox.running.plan import Plan
from jurybox.running.records import SampleRow
from jurybox.running.replay import StoredResponses
from jurybox.running.storing import Store
from jurybox.sample import Row

_COMPARED: Final = (
    "task",
    "reference",
    "context",
    "messages",
    "scenario",
    "metadata",
    "response",
    "response_b",
)


def describe_change(dataset: Dataset, plan: Plan, store: Store, run_id: str) -> str | None:
    """Say what is different from when the run began, or None where nothing is.

    Raises:
        InputError: the file can't be read.

    """
    needs_response = plan.target is None
    try:
        found = survey(dataset, needs_response=needs_response)
    except DatasetError as error:
        fault = error.findings[0]
        where = f"{dataset.unit} {fault.line}"
        return f"the dataset has changed since the run began, and {where} is at fault"
    first = _first_other(dataset, plan, store, run_id)
    if found.sha256 != plan.dataset.sha256:
        what = f"the dataset has changed since the run began: {_counted(found.rows, plan)}"
        return what if first is None else f"{what}, {first}"
    # It may have been changed while the run was going, and changed back.
    return None if first is None else f"the run has samples of another version: {first}"


def _counted(rows: int, plan: Plan) -> str:
    before = plan.dataset.rows
    return f"{rows} rows as before" if rows == before else f"{rows} rows instead of {before}"


def _first_other(dataset: Dataset, plan: Plan, store: Store, run_id: str) -> str | None:
    """Name the first row that is known to be different: those of finished samples are stored."""
    stored = store.samples(run_id)
    sample = next(stored, None)
    while sample is not None:
        repeat = sample.repeat
        first = repeat * plan.dataset.used
        for number, (line, row) in enumerate(_rows(dataset, plan), start=first):
            if sample is None or sample.repeat != repeat:
                break
            if sample.number == number:
                other = _other(_stored_row(sample, plan), row, f"{dataset.unit} {line}")
                if other is not None:
                    return other
                sample = next(stored, None)
        else:
            if sample is not None and sample.repeat == repeat:
                return f"sample `{sample.sample_id}` is gone"
    return None


def _rows(dataset: Dataset, plan: Plan) -> Iterator[tuple[int, Row]]:
    return dataset.rows(needs_response=plan.target is None)


def _stored_row(sample: SampleRow, plan: Plan) -> Row:
    """Return the row that a sample was made from; a target's response is none of its."""
    row = msgspec.json.decode(sample.inputs, type=Row)
    kept = msgspec.json.decode(sample.responses, type=StoredResponses)
    return msgspec.structs.replace(
        row,
        response=kept.response if plan.target is None else None,
        response_b=kept.response_b,
    )


def _other(before: Row, now: Row, where: str) -> str | None:
    if before.id != now.id:
        return f"{where} was sample `{before.id}` and is `{now.id}`"
    for field in _COMPARED:
        if getattr(before, field) != getattr(now, field):
            return f"{where}, sample `{now.id}`, has another `{field}`"
    return None
