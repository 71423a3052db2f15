"""A run as plain data: what every page, file and command shows of it."""

from typing import Any, cast

import msgspec

from jurybox.engine.plan import Metadata, Plan, read_plan
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, StoredOutcome, read_result
from jurybox.errors import IncompleteError
from jurybox.scoring.summary import Conclusion, GateOutcome, Reported, RunTally


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run and all that follows from it so far.

    ``status`` is ``running``, ``stopped`` or ``finished``; figures of a run that isn't finished are
    those of the samples it has. ``notes`` say what a reader has to know before any figure.
    """

    run_id: str
    status: str
    suite: str
    planned: int
    conclusion: Conclusion
    metadata: Metadata
    cost: dict[str, Any]
    digest: str | None
    created_at: str
    finished_at: str | None
    elapsed_s: float | None = None
    derived_from: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> dict[str, Any]:
        """The figures, by their names in the rubric."""
        return self.conclusion.summary

    @property
    def gates(self) -> tuple[GateOutcome, ...]:
        """The gates, each with its value."""
        return self.conclusion.gates

    @property
    def passed(self) -> bool:
        """Whether the run is finished and no gate failed."""
        return self.status == "finished" and all(gate.passed for gate in self.gates)

    def as_data(self) -> dict[str, Any]:
        """Return the run as ``run --json`` and ``show --json`` print it."""
        conclusion = self.conclusion
        data: dict[str, Any] = {
            "run_id": self.run_id,
            "status": self.status,
            "suite": self.suite,
            "summary": conclusion.summary,
            "gates": msgspec.to_builtins(conclusion.gates),
        }
        if conclusion.release_ready is not None:
            data["release_ready"] = conclusion.release_ready and self.status == "finished"
        if conclusion.decision is not None:
            data["decision"] = conclusion.decision
            data["decision_reasons"] = list(conclusion.decision_reasons)
        if conclusion.quality_level is not None:
            data["quality_level"] = conclusion.quality_level
        return data | {
            "review": conclusion.review,
            "metadata": self.metadata,
            "cost": self.cost,
            "planned": self.planned,
            "digest": self.digest,
            "created_at": self.created_at,
            "finished_at": self.finished_at,
            "elapsed_s": self.elapsed_s,
            "reported_versions": msgspec.to_builtins(conclusion.reported),
            "versions_changed": conclusion.versions_changed,
            "derived_from": self.derived_from,
            "notes": list(self.notes),
        }


def finished_view(row: RunRow) -> RunView:
    """Return the view of a finished run; its samples need not be read for it.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    try:
        plan = read_plan(row.plan)
        stored = msgspec.json.decode(row.outcome or "null", type=StoredOutcome)
    except msgspec.DecodeError as error:
        raise _damaged(row, error) from None
    return _view(row, plan, stored)


def unfinished_view(row: RunRow, store: Store, *, working: bool) -> RunView:
    """Return the view of a run that isn't finished, from the samples that it has.

    ``working`` says that a process is at work on it.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    try:
        plan = read_plan(row.plan)
        tally = RunTally(plan.procedure().judging.rubric, plan.repeats)
        for number, repeat, _, result in store.results(row.id):
            tally.add(read_result(result), repeat, number)
    except msgspec.DecodeError as error:
        raise _damaged(row, error) from None
    return partial_view(row, plan, tally.conclude(), working=working)


def partial_view(row: RunRow, plan: Plan, conclusion: Conclusion, *, working: bool) -> RunView:
    """Return the view of a run that isn't finished, from what follows from its samples so far."""
    shown = msgspec.structs.replace(row, status="running" if working else "stopped")
    return _view(shown, plan, StoredOutcome(conclusion=conclusion, cost={}))


def _damaged(row: RunRow, error: Exception) -> IncompleteError:
    return IncompleteError(f"run {row.id} can't be read ({error}); `jurybox verify` says where")


def _view(row: RunRow, plan: Plan, stored: StoredOutcome) -> RunView:
    conclusion = stored.conclusion
    metadata = cast("Metadata", msgspec.json.decode(row.metadata))
    return RunView(
        run_id=row.id,
        status=row.status,
        suite=row.suite,
        planned=plan.samples,
        conclusion=conclusion,
        metadata=_with_reported(metadata, plan, conclusion),
        cost=stored.cost,
        digest=row.digest,
        created_at=row.created_at,
        finished_at=row.finished_at,
        elapsed_s=stored.elapsed_s,
        derived_from=plan.derived_from,
        notes=tuple(_notes(row, plan, conclusion)),
    )


def _with_reported(metadata: Metadata, plan: Plan, conclusion: Conclusion) -> Metadata:
    """Fill in the versions that the providers reported where the names don't pin one (A10)."""
    target = () if plan.target is None else (plan.target.model,)
    for field, models in (("model_version", target), ("evaluator_model_version", plan.judges)):
        if metadata.get(field) is None:
            said = [_versions(conclusion.reported.get(model, ())) for model in models]
            metadata = {**metadata, field: ", ".join(each for each in said if each) or None}
    return metadata


def _versions(reported: tuple[Reported, ...]) -> str:
    return " / ".join(each.version for each in reported)


def _notes(row: RunRow, plan: Plan, conclusion: Conclusion) -> list[str]:
    """Say what has to be known before any figure is believed."""
    notes: list[str] = []
    have = conclusion.summary["samples"]
    if row.status != "finished":
        notes.append(f"not finished: {have} of {plan.samples} samples")
    for model, versions in conclusion.reported.items():
        if len(versions) > 1:
            listed = ", ".join(f"{each.version} ({each.samples} samples)" for each in versions)
            notes.append(f"{model} changed its version during the run: {listed}")
    if plan.derived_from is not None:
        notes.append(f"re-scored from the replies of run {plan.derived_from}")
    lost = conclusion.summary["unscored_votes"]
    if lost:
        notes.append(f"{lost} votes are missing: no valid reply")
    skipped = conclusion.summary.get("skipped_votes")
    if skipped:
        notes.append(f"{skipped} votes were not asked for: the outcome was decided without them")
    return notes
