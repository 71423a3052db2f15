"""Reading the replies of a run again, under another rubric, without asking anybody."""

from typing import Final

import msgspec

from jurybox.app.costs import run_cost
from jurybox.app.evaluate_once import missing_rules
from jurybox.app.prepare import rubric_document
from jurybox.app.run_suite import Ended, new_run, now_utc
from jurybox.engine.plan import Plan, read_plan
from jurybox.engine.ports import Store
from jurybox.engine.records import (
    ENCODER,
    ExchangeRow,
    RunRow,
    SampleRow,
    StoredOutcome,
    hashed_sample,
    hashes_of,
    in_order,
    read_result,
    run_digest,
    sealed,
)
from jurybox.engine.replay import derive, grouped
from jurybox.errors import InputError
from jurybox.models.prices import load_prices
from jurybox.reporting.view import finished_view
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.summary import RunTally
from jurybox.wiring import read_settings

_BATCH: Final = 200


def rescore_run(row: RunRow, rubric: str, store: Store) -> Ended:
    """Store a new run that holds what the replies of a finished one say under another rubric.

    Raises:
        InputError: the replies can't say anything under that rubric.
        IncompleteError: the store is in trouble.

    """
    if row.status != "finished":
        raise InputError("the run isn't finished", "go on with `jurybox resume`", row.id)
    before = read_plan(row.plan)
    plan = msgspec.structs.replace(
        before,
        rubric=rubric_document(rubric, None),
        derived_from=before.derived_from or row.id,
    )
    procedure = plan.procedure()
    _check(before.procedure(), procedure, row.id)
    derived = new_run(plan, procedure)
    with store.claim(derived.id):
        store.create_run(derived)
        tally = _copy(store, row.id, derived.id, plan, procedure)
        conclusion = tally.conclude()
        # Nobody was asked, so nothing was paid.
        outcome = StoredOutcome(
            conclusion=conclusion,
            cost=run_cost((), load_prices(read_settings().prices)),
        )
        finished = sealed(
            msgspec.structs.replace(
                derived,
                status="finished",
                finished_at=now_utc(),
                outcome=ENCODER.encode(outcome).decode(),
                digest=run_digest(store.hashes(derived.id)),
            )
        )
        store.update_run(finished)
    return Ended(view=finished_view(finished))


def _check(before: Procedure, now: Procedure, run_id: str) -> None:
    """See that the replies can be read under the new rubric at all."""
    if not before.judges:
        missing = missing_rules(now.judging.rubric)
        if missing is not None:
            problem = f"the run was scored by rules, and {missing}"
            raise InputError(problem, "use another rubric, or run the suite again", run_id)
        return
    old, new = before.judging.rubric, now.judging.rubric
    if old.protocol.reply_format != new.protocol.reply_format:
        problem = (
            f"the judges replied in the format `{old.protocol.reply_format}`, "
            f"and the rubric reads `{new.protocol.reply_format}`"
        )
        raise InputError(problem, "run the suite again", run_id)
    asked, wanted = _asked(before), _asked(now)
    if asked != wanted:
        names = [name for name in (*wanted, *asked) if wanted.get(name) != asked.get(name)]
        problem = f"the judges weren't asked about `{names[0]}` on the rubric's scale"
        if names[0] not in wanted:
            problem = f"the judges were asked about `{names[0]}`, which the rubric doesn't have"
        raise InputError(problem, "run the suite again", run_id)


def _asked(procedure: Procedure) -> dict[str, tuple[float, float]]:
    return {each.id: (each.scale.low, each.scale.high) for each in procedure.judging.scored}


def _copy(store: Store, old: str, new: str, plan: Plan, procedure: Procedure) -> RunTally:
    """Write every sample again as the new rubric has it, with the replies it comes from."""
    tally = RunTally(procedure.judging.rubric, plan.repeats)
    samples: list[SampleRow] = []
    exchanges: list[ExchangeRow] = []
    for sample, asked in grouped(store, old):
        if sample is None:
            continue
        told = [sealed(msgspec.structs.replace(each, run_id=new, key="")) for each in asked]
        renamed = msgspec.structs.replace(sample, run_id=new)
        answers = in_order(renamed, told)
        again = derive(plan, procedure, renamed, answers)
        again = hashed_sample(again, map(hashes_of, answers))
        samples.append(again)
        exchanges += told
        tally.add(read_result(again.result), again.repeat, again.number)
        if len(samples) >= _BATCH:
            store.append(samples, exchanges)
            samples, exchanges = [], []
    store.append(samples, exchanges)
    return tally
