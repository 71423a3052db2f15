"""The ``strict-json`` format beside the recorded replies (A3)."""

import json
import time

import pytest

from jurybox.judging.flow import Defect
from jurybox.judging.formats.reply_format import Scores
from jurybox.judging.formats.strict_json_format import read_strict_scores
from readers import STRICT, problem, read

GIVEN = {"accuracy_score": 2, "faithfulness_score": 1, "rationale": "One claim has no source."}


def with_words(count: int) -> str:
    return json.dumps({**GIVEN, "rationale": " ".join(["word"] * count)})


def test_a_rubric_without_a_limit_takes_any_number_of_words() -> None:
    assert isinstance(read_strict_scores(with_words(5_000), STRICT, None), Scores)


def test_a3_every_fault_is_named_at_once() -> None:
    said = problem("strict-json", '{"accuracy_score": 3, "rationale": " "}')
    assert said == (
        '"accuracy_score" is 3, which is outside the scale: give a whole number from 0 to 2.'
        ' "faithfulness_score" is missing.'
        ' "rationale" must be a string that is not empty.'
    )


@pytest.mark.parametrize("end", range(0, len(json.dumps(GIVEN)) - 1, 5))
def test_a_reply_that_was_cut_off_is_no_verdict(end: int) -> None:
    assert isinstance(read("strict-json", json.dumps(GIVEN)[:end]), Defect)


@pytest.mark.parametrize(
    "reply",
    [" " * 5_000_000 + json.dumps(GIVEN), json.dumps(GIVEN) + " " * 5_000_000],
    ids=["before", "behind"],
)
def test_five_megabytes_of_space_are_nothing(reply: str) -> None:
    before = time.process_time()
    assert isinstance(read("strict-json", reply), Scores)
    assert time.process_time() - before < 3
