"""The metrics of a run by scenario and by demographic (C13), and the judge's fallbacks (C15)."""

from jurybox.rubric import parse_rubric
from jurybox.sample import Response, Row
from jurybox.scoring.evaluate_sample import conclude
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import RunTally

RUBRIC = parse_rubric("""---
id: r
version: 1.0.0
scale: 0.0-1.0
reply_format: score-line
fallback_score: 0.5
---
# R
## Criteria
### Care
""")


def summary(*results: SampleResult) -> dict[str, object]:
    tally = RunTally(RUBRIC, 1)
    for number, result in enumerate(results):
        tally.add(result, 0, number)
    return tally.conclude().summary


def scored(
    care: float, scenario: str | None = None, demographic: str | None = None
) -> SampleResult:
    return SampleResult(metrics={"care": care}, scenario=scenario, demographic=demographic)


def test_samples_are_added_up_by_scenario_and_by_demographic() -> None:
    metrics = summary(
        scored(0.2, "basic"), scored(0.4, "age", "younger"), scored(0.8, "age", "older")
    )
    assert {name: each["care_mean"] for name, each in metrics["scenarios"].items()} == {
        "age": 0.6000000000000001,
        "basic": 0.2,
    }
    assert {name: each["samples"] for name, each in metrics["demographics"].items()} == {
        "older": 1,
        "younger": 1,
    }


def test_a_run_without_labels_has_no_groups() -> None:
    assert not {"scenarios", "demographics"} & set(summary(scored(0.2)))


def test_the_demographic_is_what_the_metadata_says() -> None:
    def label(**metadata: object) -> str | None:
        row = Row(id="a", task="Hi", metadata=metadata)
        sample = row.sample(Response(text="Hello"))
        return conclude(RUBRIC, row, sample, None, None).demographic

    assert label(demographic="older_65_plus") == "older_65_plus"
    assert [label(), label(demographic=7), label(demographic=" ")] == [None, None, None]


def test_fallbacks_are_a_share_of_the_samples_that_were_judged_c15() -> None:
    judged = [
        SampleResult(metrics={}, judged=True, votes_valid=1, judge_fallback=fell)
        for fell in (True, False, False, False)
    ]
    metrics = summary(*judged, SampleResult(metrics={}, target_error="timed out"))
    assert metrics["judge_fallback_rate"] == 0.25
    assert metrics["n"]["judge_fallback_rate"] == 4


def test_without_a_judge_there_is_no_share_of_fallbacks() -> None:
    assert summary(scored(0.2))["judge_fallback_rate"] is None
