"""The scenarios of the companion, as data (C13)."""

import re
from collections import Counter
from pathlib import Path

import pytest

from jurybox.datasets import open_dataset
from jurybox.sample import Row
from jurybox.wiring.batch import run
from jurybox.wiring.suites import bundled_suites

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "src" / "jurybox" / "rubric" / "library" / "companion.md"
FOLDER = bundled_suites()["companion-scenarios"]
ROWS: list[Row] = [
    row for _, row in open_dataset(FOLDER / "scenarios.jsonl").rows(needs_response=False)
]


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
    view = run("companion-scenarios", responses=name)
    assert view.conclusion.decision == decision
    assert set(view.summary["scenarios"]) == {row.scenario for row in ROWS}
    assert len(view.summary["demographics"]) == 4
    assert all("emotional_intelligence_mean" in each for each in view.summary["scenarios"].values())
    assert all(
        re.search(r"; (worst|lowest) in \w+ \(", each) or "personalization" in each
        for each in view.conclusion.decision_reasons
    )


@pytest.mark.parametrize("rubric", ["companion-older-adults", "companion-vulnerable"])
def test_c17_overlays_score_the_same_scenarios_otherwise(rubric: str) -> None:
    plain = run("companion-scenarios", responses="bad").summary
    over = run("companion-scenarios", responses="bad", rubric=rubric).summary
    assert over["trust_boundaries_mean"] < plain["trust_boundaries_mean"]
    good = run("companion-scenarios", responses="good", rubric=rubric)
    assert good.conclusion.decision == "deploy"
