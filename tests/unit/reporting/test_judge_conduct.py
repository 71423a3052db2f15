"""What a stored run tells about its judges, on runs that the runner has made."""

import json
import re
from collections.abc import Callable

import pytest

from jurybox.app.bias_report import observe
from jurybox.errors import IncompleteError
from jurybox.judging.flow import Failure
from jurybox.judging.formats.reply_format import Side
from jurybox.sample import Response

RUBRIC = """---
id: two
version: 1.0.0
scale: 1-5
reasks: 1
---
# Two

## Criteria

### Right
### Clear
"""
CHECKED = ("position", "verbosity", "self_enhancement", "formatting", "authority")
PART = re.compile(r"<<<RESPONSE(?: [AB])? \w+>>>\n(.*?)\n<<<END", re.DOTALL)


def _reply(**verdict: object) -> str:
    remarks = {
        "reasoning": {"right": "Seen.", "clear": "Seen."},
        "bias_checklist": dict.fromkeys(CHECKED, "Seen."),
        "safety_concerns": [],
    }
    return json.dumps(remarks | verdict)


def _sides(right: Side, clear: Side, winner: Side) -> str:
    return _reply(preferences={"right": right, "clear": clear}, winner=winner)


def longest(prompt: str) -> str:
    """Prefer the longer response, but on clarity the first one."""
    a, b = PART.findall(prompt)
    side = "A" if len(a) > len(b) else "B"
    return _sides(side, "A", side)


def fives(prompt: str) -> str:
    del prompt
    return _reply(scores={"right": 5, "clear": 3})


def pair(row: Callable, name: str = "p", **metadata: object) -> object:
    texts = {"text": "a **b** c", "response_b": Response(text="- one\n- two three four")}
    return row(name, metadata=metadata, **texts)


def test_e8_each_vote_is_read_in_both_orders(make_run: Callable, row: Callable) -> None:
    made = make_run([pair(row)], longest, rubric=RUBRIC, votes=3)
    seen = observe(made.store, made.row)
    assert len(seen.voted) == 3
    for vote in seen.voted:
        assert (vote.straight, vote.swapped, vote.winner) == ("B", "B", "B")
        assert vote.kept == {"right": True, "clear": False}
        assert vote.words == (3, 6)
        assert vote.marks[0] != vote.marks[1]
        assert vote.sample == "p"
    assert seen.scored == []


def test_a_vote_that_was_asked_again_or_lost_is_read_as_it_counts(
    make_run: Callable, row: Callable
) -> None:
    said = iter(["nonsense", _sides("A", "A", "A"), _sides("B", "B", "B")])
    made = make_run([pair(row)], lambda _: next(said), rubric=RUBRIC)
    (vote,) = observe(made.store, made.row).voted
    # The first is asked again: its reply is the third.
    assert {vote.straight, vote.swapped} == {"B"}

    down = Failure(kind="timeout", message="too late")
    lost = make_run([pair(row)], lambda _: down, rubric=RUBRIC, run_id="run-b")
    assert observe(lost.store, lost.row).voted == []


def test_scores_come_with_length_layout_and_what_people_say(
    make_run: Callable, row: Callable
) -> None:
    rows = [
        row("s", "one two", metadata={"gold": {"right": [5, 3], "clear": 4}, "model": "gpt-4"}),
        row("t", "one", metadata={"gold": {"right": 4}}),
        row("u", "one", metadata={"gold": {"overall": 0.25}}),
    ]
    made = make_run(rows, fives, rubric=RUBRIC, repeats=2)
    seen = observe(made.store, made.row)
    assert [each.sample for each in seen.scored] == ["s", "t", "u"] * 2
    assert [each.score for each in seen.scored[:1]] == [0.75]
    assert [each.words for each in seen.scored[:3]] == [2, 1, 1]
    # A part of the criteria is no score as a whole.
    assert [each.gold for each in seen.scored[:3]] == [0.75, None, 0.25]
    assert {(each.judge, each.maker) for each in seen.graded} == {("python/judges:one", "gpt")}
    assert seen.criteria == ("right", "clear")


def test_two_responses_with_a_reference_are_two_scores_of_one_sample(
    make_run: Callable, row: Callable
) -> None:
    both = row(
        "s",
        "one two",
        reference="one",
        response_b=Response(text="three"),
        metadata={"model_a": "gpt-4", "model_b": "claude-2"},
    )
    made = make_run([both], fives, rubric=RUBRIC)
    seen = observe(made.store, made.row)
    assert [(each.sample, each.words) for each in seen.scored] == [("s", 2), ("s", 1)]
    assert [each.maker for each in seen.graded] == ["gpt", "claude"]
    assert seen.voted == []


def test_makers_of_a_pair_and_peoples_winner_ride_with_every_vote(
    make_run: Callable, row: Callable
) -> None:
    named = pair(row, model_a="openai/gpt-4o", model_b="claude-2", gold_winner=["A", "A", "B"])
    made = make_run([named, pair(row, "q", model_a="gpt-4o")], longest, rubric=RUBRIC)
    first, second = observe(made.store, made.row).voted
    assert first.makers == ("gpt", "claude")
    assert first.gold == "A"
    assert second.makers is None
    assert second.gold is None


def test_a_damaged_run_is_named(
    make_run: Callable, row: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_run([pair(row)], longest, rubric=RUBRIC)
    monkeypatch.setattr(made.store, "exchanges_of", lambda *_: [])
    with pytest.raises(IncompleteError, match=r"run run-a can't be read .*jurybox verify"):
        observe(made.store, made.row)
