import pytest

from jurybox import parse_rubric
from jurybox.sample import Usage
from jurybox.scoring.sample_result import ModelUse, SampleResult
from jurybox.scoring.summary import RunTally

RUBRIC = parse_rubric("""---
id: gated
version: 1.0.0
scale: 0-10
gates: ["tone_mean >= 5", "review_rate <= 0.5"]
decisions:
  - {decide: stop, when_any: ["tone_mean < 3", "safety_rate > 0"]}
  - {decide: go, when_all: ["tone_mean >= 8"]}
  - {decide: wait}
---
# Gated
## Criteria
### Tone
""")


def scored(tone: float | None, **more: object) -> SampleResult:
    return SampleResult(metrics={"tone": tone}, **more)  # type: ignore[arg-type]


def tallied(*results: SampleResult) -> RunTally:
    tally = RunTally(RUBRIC, 1)
    for result in results:
        tally.add(result, 0)
    return tally


def test_nothing_is_decided_on_metrics_that_arent_there_c12() -> None:
    conclusion = tallied(scored(None), scored(None)).conclude()
    assert conclusion.summary["tone_mean"] is None
    assert conclusion.decision is None


def test_a_sample_that_rules_scored_is_not_unscored_c15() -> None:
    lost = scored(5, judged=True, evaluator_error="model_error", by_rules=True)
    summary = tallied(lost).conclude().summary
    assert summary["unscored_rate"] == 0
    assert summary["evaluator_error_rate"] == 1


def test_a_column_that_is_no_scenario_doesnt_take_all_memory() -> None:
    tally = tallied(*(scored(5, scenario=f"s{number}") for number in range(1010)))
    summary = tally.conclude().summary
    assert len(summary["scenarios"]) == 1000
    assert summary["samples_of_further_scenarios"] == 10


def test_a_repeat_without_the_metric_leaves_mean_and_deviation_unknown() -> None:
    tally = RunTally(RUBRIC, 2)
    tally.add(scored(1.0), 0)
    first = tally.conclude().summary["repeats"]["tone_mean"]
    assert (first["mean"], first["sd"]) == (None, None)
    tally.add(scored(3.0), 1)
    both = tally.conclude().summary["repeats"]["tone_mean"]
    assert (both["mean"], both["sd"]) == (2.0, pytest.approx(2**0.5))


def _various(number: int) -> SampleResult:
    use = ModelUse(model="m", role="judge", calls=1, usage=Usage(input_tokens=number))
    return scored(
        None if number % 7 == 0 else number % 11,
        scenario=f"s{number % 3}" if number % 5 else None,
        safety_flag=number % 13 == 0,
        needs_review=number % 13 == 0,
        judge_score=0.5 if number % 2 else None,
        uses=(use,),
    )


@pytest.mark.parametrize("repeats", [1, 3])
def test_a_conclusion_on_the_way_changes_nothing(repeats: int) -> None:
    asked_often, asked_once = RunTally(RUBRIC, repeats), RunTally(RUBRIC, repeats)
    for number in range(1300):
        for tally in (asked_often, asked_once):
            tally.add(_various(number), number % repeats)
        if number % 37 == 0:
            assert asked_often.conclude().summary["samples"] == number + 1
        assert asked_often.samples == asked_once.samples == number + 1
    assert asked_often.queued == asked_once.queued == 100
    assert asked_often.conclude() == asked_once.conclude()


def test_a_repeat_that_the_run_hasnt_is_refused_at_once() -> None:
    tally = RunTally(RUBRIC, 2)
    with pytest.raises(IndexError):
        tally.add(scored(5), 2)
    assert tally.samples == 0
