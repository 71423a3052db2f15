"""E14: a calibration holds as long as nothing that it depends on has changed."""

import msgspec

from jurybox.calibration.calibration_record import (
    Agreement,
    Calibration,
    CriterionAgreement,
    GoldSource,
    JudgeSetting,
    calibration_status,
)
from jurybox.statistics.estimates import Estimate

SETTING = JudgeSetting(
    rubric_version="1.0.0",
    rubric_sha256="aa",
    judges=("openai/m-2026-01-01",),
    judge_version="2026-01-01",
    prompt_sha256="bb",
    votes=3,
)


def record(**changes: object) -> Calibration:
    half = Estimate(value=0.724, n=120)
    metrics = CriterionAgreement(
        criterion="correctness", scale=(1, 5), n=120, labels=120, unscored=0, exact=half, kappa=half
    )
    made = Calibration(
        id="cal-1",
        created_at="2026-11-16T01:02:03.000Z",
        rubric_id="answers",
        **msgspec.structs.asdict(SETTING),
        gold=GoldSource(name="gold.jsonl", sha256="cc", rows=120, used=120),
        seed=0,
        metrics=Agreement(n=120, loss=0.1, criteria=(metrics,), methods=("rubric",)),
        runs=(),
    )
    return msgspec.structs.replace(made, **changes)


def test_the_order_of_judges_makes_no_difference() -> None:
    two = ("a/1@1", "b/2@2")
    found = calibration_status(
        [record(judges=two)], msgspec.structs.replace(SETTING, judges=two[::-1])
    )
    assert found is not None
    assert found.stale == ()


def test_one_that_holds_counts_for_more_than_a_newer_one_of_another_version() -> None:
    newer = record(id="cal-2", rubric_version="1.1.0", rubric_sha256="x")
    found = calibration_status([newer, record()], SETTING)
    assert found is not None
    assert (found.id, found.stale) == ("cal-1", ())
    stale = calibration_status([newer], SETTING)
    assert stale is not None
    assert stale.rubric_version == "1.1.0"
