"""One sample as one row (the exported record of section I, A1, A4, A7, A13, C15)."""

import hashlib
import io
import json
from collections.abc import Callable

from jurybox.judging.flow import Failure
from jurybox.reporting.export_rows import export_run, write_json_lines
from jurybox.text_format import visible_json
from verdicts import preferred, scored

GOOD = '{"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Right; one guess."}'
OWN = """---
id: own
version: 1.0.0
scale: 1-5
votes: 1
---
# Own
## Criteria
### Confidence
How sure it sounds.

| Score | Meaning |
| --- | --- |
| 5 | very |
| 1 | not at all |

### Criteria
How well it names its criteria.

| Score | Meaning |
| --- | --- |
| 5 | all of them |
| 1 | none |
"""


def reply_to(prompt: str, score: object) -> str:
    """Answer in the `json` format; what is compared gets the score as its preference."""
    names = [
        line.split("(`")[1].split("`")[0] for line in prompt.splitlines() if "### " in line[:4]
    ]
    why = {name: f"On {name}." for name in names}
    if isinstance(score, str):
        return preferred(score, names, why)
    return scored(dict.fromkeys(names, score), why)


def exported(made: object, *, raw: bool = False) -> list[dict]:
    file = io.BytesIO()
    export_run(made.store, made.row, file, write_json_lines, raw=raw)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_a_row_has_every_field_of_a_sample_a1(make_run: Callable, row: Callable) -> None:
    sample = row("q1", ms=6000.0, tokens=(1000, 3000), reference="R", context="C", scenario="s")
    (record,) = exported(make_run([sample], lambda _: GOOD))
    assert record["id"] == "q1"
    assert record["repeat"] == 0
    assert record["scenario"] == "s"
    assert (record["task"], record["reference"], record["context"]) == ("Task q1", "R", "C")
    assert (record["response"], record["response_b"]) == ("fine", None)
    assert record["accuracy_score"] == 2
    assert record["faithfulness_score"] == 1
    assert record["overall"] == 0.75
    assert record["total_score"] == 3
    assert record["latency_e2e_ms"] == 6000.0
    assert record["latency_model_ms"] is None
    assert record["timed_out"] is False
    assert record["input_tokens"] == 1000
    assert record["output_tokens"] == 3000
    assert record["total_tokens"] == 4000
    assert record["token_efficiency_ratio"] == 3.0
    # 2 / 2, 1 / 2, 3000 / 6000 and 2000 / 4000.
    norms = ("accuracy_norm", "faithfulness_norm", "latency_norm", "token_efficiency_norm")
    assert [record[name] for name in norms] == [1.0, 0.5, 0.5, 0.5]
    # 0.45 + 0.30 * 0.5 + 0.15 * 0.5 + 0.10 * 0.5
    assert record["sample_score"] == 0.725
    assert (
        record["criteria"][1].items()
        >= {
            "id": "faithfulness_score",
            "score": 1,
            "reasoning": "Right; one guess.",
            "confidence": "moderate",
            "vote_mean": 1,
        }.items()
    )
    assert record["criteria"][1]["votes"] == [1]
    assert record["confidence"] == "moderate"
    assert (record["stable"], record["winner"]) == (None, None)
    assert record["safety_flag"] is False
    assert (record["needs_review"], record["review_reasons"]) == (False, [])
    assert record["passed"] is True
    assert (record["evaluator_error"], record["target_error"]) == (None, None)
    assert len(record["record_sha256"]) == 64
    assert "exchanges" not in record


def test_rules_come_with_their_trace_and_the_judge_stands_beside_c15(
    make_run: Callable, row: Callable
) -> None:
    sample = row("q1", "I'm sorry that you feel sad.", metadata={"n": 1})
    judged = make_run(
        [sample], lambda _: "Score: 0.25 | Reasoning: Short.", rubric="companion", run_id="one"
    )
    (record,) = exported(judged)
    by_id = {each["id"]: each for each in record["criteria"]}
    assert by_id["helpfulness"]["score"] == record["helpfulness"]
    assert by_id["emotional_intelligence"]["base"] == 0.5
    assert any(each["trace"] for each in record["criteria"])
    assert record["judge_score"] == 0.25
    assert record["judge_fallback"] is False
    assert record["judge_criteria"][0]["reasoning"] == "Short."
    assert record["overall_quality"] != 0.25
    assert record["metadata"] == {"n": 1}
    (alone,) = exported(make_run([sample], rubric="companion", run_id="two"))
    beside = ("judge_score", "judge_criteria")
    assert [alone[name] for name in beside] == [None, None]
    assert [name for name in alone if name in beside] == list(beside)
    assert alone["overall_quality"] == record["overall_quality"]


def test_a_pair_has_a_winner_and_preferences(make_run: Callable, row: Callable) -> None:
    pair = row("q1", "one", response_b=row("", "two").response)
    always_first = make_run([pair], lambda prompt: reply_to(prompt, "A"), rubric="general")
    (record,) = exported(always_first)
    assert (record["response"], record["response_b"]) == ("one", "two")
    assert record["stable"] is False
    assert record["winner"] == "tie"
    assert record["criteria"][0]["preference"] == "tie"
    assert "unstable" in record["review_reasons"]


def test_two_responses_against_a_reference_have_scores_each_e2(
    make_run: Callable, row: Callable
) -> None:
    pair = row("q1", "one", response_b=row("", "two").response, reference="R")
    made = make_run(
        [pair],
        lambda prompt: reply_to(prompt, 5 if "\ntwo\n" in prompt else 2),
        rubric="general",
    )
    (record,) = exported(made)
    assert record["winner"] == "B"
    assert record["responses"]["B"]["overall"] == 1.0
    assert record["responses"]["A"]["criteria"][0]["score"] == 2


def test_a_score_never_takes_the_name_of_another_field(make_run: Callable, row: Callable) -> None:
    made = make_run([row("q1")], lambda prompt: reply_to(prompt, 4), rubric=OWN)
    (record,) = exported(made)
    assert record["criterion.confidence"] == 4
    assert record["criterion.criteria"] == 4
    assert record["confidence"] == "moderate"
    assert record["criteria"][0]["id"] == "confidence"


def test_raw_adds_every_request_and_reply_to_the_byte_a13(
    make_run: Callable, row: Callable
) -> None:
    made = make_run([row("q1")], lambda _: "no \u00fc \u2028", run_id="raw")
    file = io.BytesIO()
    export_run(made.store, made.row, file, write_json_lines, raw=True)
    stored = list(made.store.exchanges("raw"))
    assert len(stored) == 2  # asked again once (A4)
    for each in stored:
        # What can't be seen is written as an escape, which means the same.
        assert visible_json(f",{each.outcome[1:-1]}").encode() in file.getvalue()
    (record,) = exported(made, raw=True)
    for each, told in zip(stored, record["exchanges"], strict=True):
        assert told["request"] == each.request
        assert told["request_sha256"] == hashlib.sha256(each.request.encode()).hexdigest()
    assert [each["role"] for each in record["exchanges"]] == ["judge", "judge"]
    assert record["exchanges"][1]["reply"]["text"] == "no \u00fc \u2028"


def test_a_request_without_a_reply_has_its_failure(make_run: Callable, row: Callable) -> None:
    broken = Failure(kind="unreachable", message="gone")
    (record,) = exported(make_run([row("q1")], lambda _: broken), raw=True)
    assert record["exchanges"][0]["failure"]["message"] == "gone"
    assert "reply" not in record["exchanges"][0]
    assert record["evaluator_error"] == "model_error"
