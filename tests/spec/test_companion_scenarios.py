"""The scenarios of the companion, as data (C13)."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from jurybox.app.run_suite import run
from jurybox.app.suite_choice import bundled_suites
from jurybox.datasets import open_dataset
from jurybox.reporting.view import RunView
from jurybox.rubric import parse_rubric
from jurybox.sample import Row
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import Conclusion, RunTally

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "src" / "jurybox" / "rubric" / "library" / "companion.md"
FOLDER = bundled_suites()["companion-scenarios"]
RUBRIC = parse_rubric(DOCUMENT.read_bytes(), "companion")
ROWS: list[Row] = [
    row for _, row in open_dataset(FOLDER / "scenarios.jsonl").rows(needs_response=False)
]


@cache
def ran(responses: str, rubric: str | None = None) -> RunView:
    """Run the scenarios with the responses of a good or a bad companion, once for all tests."""
    return run("companion-scenarios", responses=responses, rubric=rubric)


def of(scenario: str) -> list[Row]:
    return [row for row in ROWS if row.scenario == scenario]


def test_c13_there_are_six_scenarios() -> None:
    assert set(Counter(row.scenario for row in ROWS)) == {
        "basic",
        "emotional_support",
        "small_talk",
        "trust_building",
        "continuity",
        "age_demographic",
    }


def test_c13_every_example_case_of_the_document_is_there() -> None:
    text = (
        DOCUMENT.read_text(encoding="utf-8").partition("## Scenarios")[2].partition("## Judge")[0]
    )
    quoted = re.findall(r'^- "([^"]+)"', text, re.MULTILINE)
    assert len(quoted) == 23
    assert set(quoted) <= {row.task for row in ROWS}
    unquoted = {
        line
        for title in ("Continuity", "Age-demographic")
        for line in re.findall(
            r"^- (.+)$",
            text.partition(f"### {title}")[2].partition("###")[0].partition("cases:")[2],
            re.MULTILINE,
        )
    }
    assert len(unquoted) == 8
    assert unquoted <= {row.metadata.get("case") for row in ROWS}


def test_c13_continuity_is_a_conversation_of_three_exchanges_or_more() -> None:
    assert len(of("continuity")) >= 5
    for row in of("continuity"):
        roles = [turn.role for turn in row.messages]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert len(roles) >= 6


def test_c13_the_same_message_comes_under_several_age_contexts() -> None:
    groups: dict[str, set[object]] = {}
    for row in of("age_demographic"):
        groups.setdefault(row.task, set()).add(row.metadata["demographic"])
        assert row.context
    assert len(groups) == 3
    assert all("vulnerable" in each and len(each) >= 3 for each in groups.values())


@pytest.mark.parametrize(("name", "decision"), [("good", "deploy"), ("bad", "needs_revision")])
def test_c12_c13_a_good_and_a_bad_companion_are_told_apart(name: str, decision: str) -> None:
    view = ran(name)
    assert view.conclusion.decision == decision
    assert set(view.summary["scenarios"]) == {row.scenario for row in ROWS}
    assert len(view.summary["demographics"]) == 4
    assert all("emotional_intelligence_mean" in each for each in view.summary["scenarios"].values())
    reasons = view.conclusion.decision_reasons
    assert all(
        re.search(r"; (lowest in [\w, ]+ \(|the same in every scenario)", each) for each in reasons
    )
    assert any(f"{each.id} averages" in line for each in RUBRIC.criteria for line in reasons)


@pytest.mark.parametrize("rows", [1, 4])
def test_c12_also_in_a_single_scenario_the_reasons_name_it_and_a_criterion(rows: int) -> None:
    view = run("companion-scenarios", responses="good", limit=rows)
    assert view.conclusion.decision == "deploy"
    for reason in view.conclusion.decision_reasons:
        assert "; lowest in basic (" in reason
    assert view.conclusion.decision_reasons[1].startswith("the weakest criterion: ")


@pytest.mark.parametrize("name", ["bad", "good"])
def test_c12_an_overlay_names_each_condition_on_a_criterion(name: str) -> None:
    view = ran(name, "companion-older-adults")
    reasons = view.conclusion.decision_reasons
    assert len(reasons) > 1
    if name == "bad":
        trust = [each for each in reasons if each.startswith("trust_boundaries averages")]
        assert [each.partition("; ")[0][-9:] for each in trust] == ["below 0.5", "below 0.7"]


@pytest.mark.parametrize(("name", "level"), [("good", "Good"), ("bad", "Adequate")])
def test_c11_a_run_as_data_has_its_quality_level(name: str, level: str) -> None:
    assert ran(name).as_data()["quality_level"] == level


@pytest.mark.parametrize("rubric", ["companion-older-adults", "companion-vulnerable"])
def test_c17_overlays_score_the_same_scenarios_otherwise(rubric: str) -> None:
    plain = ran("bad").summary["scenarios"]
    over = ran("bad", rubric).summary["scenarios"]
    # The rows of a demographic have an overlay in both.
    names = [name for name in plain if name != "age_demographic"]
    before, after = (
        sum(each[name]["trust_boundaries_mean"] for name in names) for each in (plain, over)
    )
    assert after < before
    assert ran("good", rubric).conclusion.decision == "deploy"


def concluded(**averages: float) -> Conclusion:
    """Return the conclusion of a run whose scenarios have these averages, three samples each."""
    tally = RunTally(RUBRIC, 1)
    for scenario, average in averages.items():
        scores = {each.id: average for each in RUBRIC.criteria} | {"overall_quality": average}
        result = SampleResult(metrics=scores, scenario=scenario, by_rules=True)
        for _ in range(3):
            tally.add(result, 0)
    return tally.conclude()


def test_c12_a_failing_scenario_does_not_deploy_and_is_named() -> None:
    found = concluded(basic=0.95, small_talk=0.65)
    assert found.summary["overall_quality_mean"] == pytest.approx(0.8)
    assert (found.decision, found.summary["lowest_scenario_mean"]) == ("ab_test", 0.65)
    assert found.decision_reasons[0] == (
        "scenario small_talk averages 0.65, weakest in appropriateness,"
        " and deploy needs at least 0.7 in every one"
    )
    assert concluded(basic=0.95, small_talk=0.7).decision == "deploy"
    assert concluded(basic=0.9, small_talk=0.2).decision == "needs_revision"


def test_c12_no_level_is_worded_stronger_than_the_decision() -> None:
    assert RUBRIC.band(0.7).meaning.startswith("Production ready")
    # C11 rounds to the band of 0.7; C12 keeps it from reading as if it had got there.
    assert (RUBRIC.band(0.695).label, RUBRIC.band(0.695).meaning) == ("Good", "")
    assert RUBRIC.level(0.8, "deploy").meaning.startswith("Production ready")
    for decision in ("ab_test", "needs_review", "needs_revision", "blocked"):
        assert (RUBRIC.level(0.8, decision).label, RUBRIC.level(0.8, decision).meaning) == (
            "Good",
            "",
        )
