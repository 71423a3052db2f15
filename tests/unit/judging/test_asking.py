"""From a rubric and a sample to the question, and to the reader of its reply."""

import json
from functools import cache
from importlib import resources

import pytest

from jurybox.errors import InputError
from jurybox.judging.protocol import Judging
from jurybox.rubric import Rubric, parse_rubric
from jurybox.sample import Response, Sample, Turn


@cache
def document(name: str) -> str:
    return (resources.files("jurybox.rubric") / "library" / f"{name}.md").read_text("utf-8")


def bundled(name: str) -> Rubric:
    return parse_rubric(document(name).encode(), name)


CHECKLIST = bundled("bias-awareness")


def judging(name: str) -> Judging:
    return Judging(rubric=bundled(name), checklist=CHECKLIST)


def written(reply_format: str, prompt: str | None = None, scale: str = "1-10") -> Judging:
    """Return a judging by a small rubric of one's own."""
    text = (
        f"---\nid: own\nversion: 1.0.0\nscale: {scale}\nreply_format: {reply_format}\n---\n"
        "# Own\n## Criteria\n### Quality\nHow good it is.\n"
    )
    text += f"\n## Judge prompt\n\n```text\n{prompt}\n```\n" if prompt is not None else ""
    return Judging(rubric=parse_rubric(text.encode(), "own"), checklist=CHECKLIST)


ONE = Sample(task="T", response=Response(text="R"))
PAIR = Sample(task="T", response=Response(text="R"), response_b=Response(text="S"))
REFERENCE = Sample(task="T", response=Response(text="R"), reference="F")
BOTH = "Compare {{response}} with {{response_b}}."


def refusal(asked: Judging, sample: Sample) -> str:
    with pytest.raises(InputError) as refused:
        asked.check(sample)
    return str(refused.value)


def test_a_refusal_is_one_line_that_says_where_what_and_how_to_mend_it() -> None:
    assert refusal(judging("answer-quality"), PAIR) == (
        "answer-quality: replies in the format `strict-json` can't compare two responses;"
        " use another rubric, or give a reference answer"
    )


def test_a_judge_prompt_that_shows_one_response_cannot_compare_two() -> None:
    assert refusal(written("json", "Judge {{response}}."), PAIR) == (
        "own: its judge prompt has no placeholder for the response_b;"
        " put `{{response_b}}` into it, or omit that text"
    )


def test_an_empty_reference_is_a_reference() -> None:
    prompt = (
        judging("general")
        .score_question(Sample(task="T", response=Response(text="R"), reference=""), "R")
        .text
    )
    assert "<<<REFERENCE" in prompt


judging_answer_quality = judging("answer-quality")
judging_companion = judging("companion")


def test_without_a_context_the_earlier_turns_are_it() -> None:
    turns = (Turn(role="user", content="I'm sad."), Turn(role="assistant", content="Oh no."))
    sample = Sample(task="T", response=Response(text="R"), messages=turns)
    prompt = judging_companion.score_question(sample, "R").text
    assert 'Conversation context: "user: I\'m sad.\nassistant: Oh no."' in prompt


def test_a_prompt_of_ones_own_shows_both_responses_in_the_order_asked_for() -> None:
    asked = written("json", BOTH)
    for first, second in (("{{response_b}}", "Y"), ("Y", "{{response}}")):
        text = asked.pair_question(PAIR, first, second).text
        assert text.startswith(f"Compare {first} with {second}.\n")


def test_the_schema_asks_for_reasoning_first() -> None:
    asked = judging("general")
    scores = json.loads(asked.score_form.schema or "")
    remarks = ["reasoning", "bias_checklist", "safety_concerns"]
    assert list(scores["properties"]) == scores["required"] == [*remarks, "scores"]
    pair = json.loads(asked.pair_form.schema or "")
    assert list(pair["properties"]) == pair["required"] == [*remarks, "preferences", "winner"]


def test_the_schema_has_every_criterion_on_its_scale() -> None:
    asked = judging("general")
    schema = json.loads(asked.score_form.schema or "")
    names = [each.id for each in asked.rubric.criteria]
    level = {"type": "integer", "minimum": 1, "maximum": 5}
    assert schema["properties"]["scores"]["properties"] == dict.fromkeys(names, level)
    assert schema["properties"]["reasoning"]["required"] == names
    strict = json.loads(judging_answer_quality.score_form.schema or "")
    assert strict["required"] == ["accuracy_score", "faithfulness_score", "rationale"]
