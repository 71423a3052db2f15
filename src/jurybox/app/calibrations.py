"""Finds stored calibrations, and the one that applies to a run; doesn't import numpy."""

from itertools import islice
from typing import Any

import msgspec

from jurybox.calibration.calibration_record import (
    Calibration,
    CalibrationStatus,
    JudgeSetting,
    calibration_status,
)
from jurybox.engine.records import ENCODER, CalibrationRow, seal_of, sealed
from jurybox.errors import IncompleteError, InputError
from jurybox.reporting.view import RunView
from jurybox.storage.store import Store

LAST = "last"
_MANY = 5
_LOOKED_AT = 1000


class _ReportMethod(msgspec.Struct, frozen=True):
    method: str


_METHOD = msgspec.json.Decoder(_ReportMethod)


def calibration_row(made: Calibration) -> CalibrationRow:
    """Return the row of a calibration."""
    record = ENCODER.encode(made).decode()
    return sealed(
        CalibrationRow(
            id=made.id, rubric_id=made.rubric_id, created_at=made.created_at, record=record
        )
    )


def read_calibration(row: CalibrationRow) -> Calibration:
    """Return a stored calibration."""
    if seal_of(row) != row.seal:
        what = f"calibration {row.id} was changed after it was stored"
        raise IncompleteError(f"{what}; calibrate again")
    try:
        return msgspec.json.decode(row.record, type=Calibration)
    except msgspec.DecodeError as error:
        what = f"calibration {row.id} can't be read ({error}); calibrate again"
        raise IncompleteError(what) from None


def find_calibration(store: Store, name: str) -> Calibration:
    """Return a calibration by its id, or the ``last`` one."""
    rows = store.calibrations()
    if not rows:
        hint = "make one with `jurybox calibrate --gold FILE`"
        raise InputError("the store has no calibrations", hint)
    for row in rows:
        if name in {LAST, row.id}:
            return read_calibration(row)
    known = ", ".join(row.id for row in rows[:_MANY])
    raise InputError("no such calibration", f"there are {known}", name)


def setting_of(view: RunView) -> JudgeSetting | None:
    """Return the inputs that a run's judging depends on; None if no judge was asked."""
    metadata: dict[str, Any] = view.metadata
    rubric: dict[str, str] = metadata.get("rubric") or {}
    prompt: str | None = metadata.get("evaluator_prompt_template_version_or_hash")
    judges: str | None = metadata.get("evaluator_model_id")
    if not judges or prompt is None or "sha256" not in rubric:
        return None
    return JudgeSetting(
        rubric_version=rubric.get("version", ""),
        rubric_sha256=rubric["sha256"],
        judges=tuple(judges.split(", ")),
        judge_version=_judge_version(view, judges.split(", ")),
        prompt_sha256=prompt.removeprefix("sha256:"),
        votes=metadata.get("votes") or 0,
    )


def _judge_version(view: RunView, judges: list[str]) -> str | None:
    """Return the judges' versions: from names and files, and as providers report them."""
    known: str | None = view.metadata.get("evaluator_model_version")
    reported = sorted(
        {each.version for name in judges for each in view.conclusion.reported.get(name, ())}
    )
    versions = ", ".join(reported)
    if not versions or versions == known:
        return known
    return f"{known}, reported {versions}" if known else versions


def calibration_of_run(view: RunView, store: Store) -> CalibrationStatus | str | None:
    """Return the calibration that applies to a run, or an error text if it can't be read.

    None if its rubric was never calibrated, or if the run was rescored, since its judges never saw
    the new rubric.
    """
    setting = setting_of(view)
    if setting is None or view.derived_from is not None:
        return None
    rubric: dict[str, str] = view.metadata["rubric"]
    try:
        known = [read_calibration(row) for row in store.calibrations(rubric["id"])]
    except IncompleteError as error:
        return str(error)
    found = calibration_status(known, setting)
    if found is None or found.stale:
        return found
    # Called last, because it reads samples.
    try:
        methods = _methods(store, view.run_id)
    except msgspec.DecodeError as error:
        return f"run {view.run_id} can't be read ({error}); `jurybox verify` says where"
    return calibration_status(known, setting, methods)


def _methods(store: Store, run_id: str) -> tuple[str, ...]:
    """Return the methods by which the first samples of a run were judged."""
    reports = (sample.report for sample in islice(store.samples(run_id), _LOOKED_AT))
    return tuple(sorted({_METHOD.decode(each).method for each in reports if each is not None}))


def calibration_as_data(view: RunView, store: Store) -> dict[str, Any] | None:
    """Return the calibration that applies to a run, as data for JSON."""
    found = calibration_of_run(view, store)
    if found is None:
        return None
    if isinstance(found, str):
        return {"error": found}
    return {**msgspec.to_builtins(found), "text": found.line}


def as_data(made: Calibration) -> dict[str, Any]:
    """Return a calibration as ``calibrate --json`` prints it."""
    return {**msgspec.to_builtins(made), "dollars": made.dollars}
