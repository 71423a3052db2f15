"""Rescores a run: scores its stored replies by a different rubric, without calling a model."""

from typing import Final

import msgspec

from jurybox.app.evaluate_once import missing_rules
from jurybox.app.job import finish_row
from jurybox.app.prepare import read_rubric
from jurybox.app.run_suite import RunResult, new_run
from jurybox.app.view_run import run_cost
from jurybox.engine import records
from jurybox.engine.plan import Plan
from jurybox.engine.replay import derive
from jurybox.errors import InputError
from jurybox.reporting.stored import plan_of, rubric_of
from jurybox.reporting.view import finished_view
from jurybox.rubric import parse_rubric
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.summary import RunTally
from jurybox.storage.store import Store
from jurybox.wiring import read_prices

_BATCH: Final = 200


def rescore_run(row: records.RunRow, rubric: str, store: Store) -> RunResult:
    """Store a new run with a finished run's replies, scored by a different rubric."""
    if row.status != "finished":
        raise InputError("the run isn't finished", "continue it with `jurybox resume`", row.id)
    before = plan_of(row)
    document = read_rubric(rubric)
    # Overlays extend one rubric, in any of its versions.
    same = parse_rubric(document.text, document.origin).id == rubric_of(row).id
    plan = msgspec.structs.replace(
        before,
        rubric=document,
        overlays=before.overlays if same else {},
        derived_from=row.id,
    )
    procedure = plan.procedure()
    _check(before.procedure(), procedure, row.id)
    derived = new_run(plan, rescored=row)
    with store.claim(derived.id):
        store.create_run(derived)
        tally = _copy(store, row.id, derived.id, plan, procedure)
        # No model was called, so nothing was paid.
        cost = run_cost((), read_prices())
        finished = finish_row(
            derived, records.StoredOutcome(conclusion=tally.conclude(), cost=cost), store
        )
    return RunResult(view=finished_view(finished, store))


def _check(before: Procedure, now: Procedure, run_id: str) -> None:
    """Check that the new rubric can read the replies."""
    again = "run the suite again"
    if not before.judges:
        missing = missing_rules(now.judging.rubric)
        if missing is not None:
            problem = f"the run was scored by rules, and {missing}"
            raise InputError(problem, f"use another rubric, or {again}", run_id)
        return
    old, new = (each.judging.rubric.reply_format for each in (before, now))
    if old != new:
        problem = f"the judges replied in the format `{old}`, but the rubric reads `{new}`"
        raise InputError(problem, again, run_id)
    scored, wanted = _scales(before), _scales(now)
    for name in (*wanted, *scored):
        if name not in wanted:
            problem = f"the judges were asked about `{name}`, which the rubric doesn't have"
            raise InputError(problem, again, run_id)
        if wanted[name] != scored.get(name):
            problem = f"the judges weren't asked about `{name}` on the rubric's scale"
            raise InputError(problem, again, run_id)


def _scales(procedure: Procedure) -> dict[str, tuple[float, float]]:
    return {each.id: each.scale.ends for each in procedure.judging.scored}


def _copy(store: Store, old: str, new: str, plan: Plan, procedure: Procedure) -> RunTally:
    """Write every sample with its replies into the new run, scored by the new rubric."""
    tally = RunTally(procedure.judging.rubric, plan.repeats)
    samples: list[records.SampleRow] = []
    exchanges: list[records.ExchangeRow] = []
    for stored in store.stored_rows(old):
        if stored.sample is None:
            continue
        copies = [
            records.sealed(msgspec.structs.replace(each, run_id=new, key=""))
            for each in stored.exchanges
        ]
        renamed = msgspec.structs.replace(stored.sample, run_id=new)
        answers = records.in_order(renamed, copies)
        scored = records.hashed_sample(
            derive(plan, procedure, renamed, answers), map(records.hashes_of, answers)
        )
        samples.append(scored)
        exchanges += copies
        tally.add(records.read_result(scored.result), scored.repeat)
        if len(samples) >= _BATCH:
            store.append(samples, exchanges)
            samples, exchanges = [], []
    store.append(samples, exchanges)
    return tally
