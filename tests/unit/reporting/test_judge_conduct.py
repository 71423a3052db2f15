"""What a stored run tells about its judges, on runs that the runner has made."""

import re
from collections.abc import Callable

import pytest

from jurybox.app.bias_report import observe
from jurybox.app.gold_sets import row_labels
from jurybox.errors import IncompleteError
from jurybox.judging.flow import Failure
from jurybox.judging.formats.reply_format import Side
from jurybox.sample import Response
from verdicts import preferred, scored

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
PART = re.compile(r"<<<RESPONSE(?: [AB])? \w+>>>\n(.*?)\n<<<END", re.DOTALL)


def _sides(right: Side, clear: Side, winner: Side) -> str:
    return preferred(winner, {"right": right, "clear": clear})


def longest(prompt: str) -> str:
    """Prefer the longer response, but on clarity the first one."""
    a, b = PART.findall(prompt)
    side = "A" if len(a) > len(b) else "B"
    return _sides(side, "A", side)


def fives(prompt: str) -> str:
    del prompt
    return scored({"right": 5, "clear": 3})


def pair(row: Callable, name: str = "p", **metadata: object) -> object:
    texts = {"text": "a **b** c", "response_b": Response(text="- one\n- two three four")}
    return row(name, metadata=metadata, **texts)


def test_a_vote_that_was_asked_again_or_lost_is_read_as_it_counts(
    make_run: Callable, row: Callable
) -> None:
    said = iter(["nonsense", _sides("A", "A", "A"), _sides("B", "B", "B")])
    made = make_run([pair(row)], lambda _: next(said), rubric=RUBRIC)
    (vote,) = observe(made.store, made.row, row_labels(made.store, made.row)).voted
    # The first is asked again: its reply is the third.
    assert {vote.straight, vote.swapped} == {"B"}

    down = Failure(kind="timeout", message="too late")
    lost = make_run([pair(row)], lambda _: down, rubric=RUBRIC, run_id="run-b")
    assert observe(lost.store, lost.row, row_labels(lost.store, lost.row)).voted == []


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
    seen = observe(made.store, made.row, row_labels(made.store, made.row))
    assert [(each.sample, each.words) for each in seen.scored] == [("s", 2), ("s", 1)]
    assert [each.maker for each in seen.graded] == ["gpt", "claude"]
    assert seen.voted == []


def test_a_damaged_run_is_named(
    make_run: Callable, row: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_run([pair(row)], longest, rubric=RUBRIC)
    monkeypatch.setattr(made.store, "exchanges_of", lambda *_: [])
    with pytest.raises(IncompleteError, match=r"run run-a can't be read .*jurybox verify"):
        observe(made.store, made.row, row_labels(made.store, made.row))
