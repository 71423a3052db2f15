"""E14: the loop keeps what helps on samples that a change was not made from, and nothing else."""

from collections.abc import Callable

import pytest

from answers import case, rubric
from jurybox.calibration.gold import GoldCase, Part
from jurybox.calibration.tuning_loop import (
    JudgedPart,
    LoopOptions,
    TuningLoop,
    gain_of,
)
from jurybox.judging.flow import Defect
from jurybox.judging.prompts import rubric_text
from jurybox.rubric.rubric_model import Rubric

SIZES: dict[Part, int] = {"tune": 30, "select": 30, "report": 30}
PLACES: dict[Part, int] = {"tune": 0, "select": 100, "report": 200}
Judge = Callable[[str, int, int], float]
"""Scores by the prompt, the sample's number and what people say."""


def judged(judge: Judge, of: Rubric, part: Part) -> tuple[GoldCase, ...]:
    prompt = rubric_text(of)
    numbers = range(PLACES[part], PLACES[part] + SIZES[part])
    return tuple(case(n, 1 + n % 3, judge(prompt, n, 1 + n % 3)) for n in numbers)


class Played:
    """Plays the loop with a judge, and keeps what was asked for."""

    def __init__(self, judge: Judge, *, rounds: int = 3, model: Defect | None = None) -> None:
        self.parts: list[tuple[str, int]] = []
        self._judge = judge
        suggest = None if model is None else lambda _: model
        loop = TuningLoop(rubric(), LoopOptions(rounds=rounds), self._part, suggest)
        self.tuned = loop.run(SIZES)

    def _part(self, of: Rubric, part: Part, number: int) -> JudgedPart:
        self.parts.append((part, number))
        cases = judged(self._judge, of, part)
        return JudgedPart(cases=cases, run_id=f"run {len(self.parts)}")


def lenient(prompt: str, _: int, people: int) -> float:
    return people if "be stricter" in prompt else people + 2


def test_the_report_part_is_looked_at_once_and_last() -> None:
    parts = Played(lenient).parts
    assert parts == [
        ("tune", 0),
        ("select", 0),
        ("tune", 1),
        ("select", 1),
        ("report", 0),
        ("report", 1),
    ]


def test_what_does_not_help_where_it_was_made_is_not_tried_elsewhere() -> None:
    played = Played(lambda _, __, people: people + 2, rounds=2)
    assert [part for part, number in played.parts if number] == ["tune", "tune"]
    assert all("select part wasn't judged" in each.reason for each in played.tuned.tuning.rounds)


def test_no_change_is_tried_twice() -> None:
    tuned = Played(lambda _, __, people: people + 2, rounds=20).tuned
    changes = [each.change for each in tuned.tuning.rounds]
    assert len(set(changes)) == len(changes)
    assert tuned.tuning.ended == "no rule has another change to try"


def test_a_gain_that_could_be_chance_is_refused() -> None:
    def seldom(prompt: str, number: int, people: int) -> float:
        better = "be stricter" in prompt and (number < 100 or number == 100)
        return people if better else people + 1

    (first, *_) = Played(seldom).tuned.tuning.rounds
    assert not first.kept
    assert "could be chance" in first.reason


def test_a_gain_that_only_the_interval_believes_in_says_why_it_is_refused() -> None:
    before = [case(n, 3, 2 if n < 5 else 3) for n in range(40)]
    gain = gain_of(before, [case(n, 3, 3) for n in range(40)], rubric(), level=0.95, seed=0)
    assert gain.interval is not None
    assert gain.interval.high < 0
    assert not gain.clear
    assert gain.sentence.endswith(
        "no significant difference: after minus before is -0.031 (95% interval -0.058 to -0.004,"
        " p = 0.062, 40 samples); a true difference of 0.038 would be found with probability 0.8"
    )


def test_more_rounds_ask_for_more_certainty() -> None:
    assert LoopOptions(rounds=1).deciding == pytest.approx(0.95)
    assert LoopOptions(rounds=5).deciding == pytest.approx(0.99)


def test_changes_add_up_in_one_version() -> None:
    def twice(prompt: str, number: int, people: int) -> float:
        high = 0 if "be stricter" in prompt else 1
        mixed = 0 if "Judges often give this" in prompt else number % 2
        return people + high + mixed

    tuned = Played(twice, rounds=4).tuned
    assert sum(each.kept for each in tuned.tuning.rounds) == 2
    assert tuned.winner is not None
    assert tuned.winner.version == "1.1.0"
    assert tuned.metrics.loss == 0


def test_an_unusable_proposal_is_recorded_and_dropped() -> None:
    tuned = Played(lambda _, __, people: people + 2, rounds=2, model=Defect("no JSON")).tuned
    last = tuned.tuning.rounds[-1]
    assert (last.by, last.kept, last.tune) == ("model", False, None)
    assert last.reason == "the proposal can't be used: no JSON"
