"""The fields of a row: their names, their types, and what is said where they are wrong."""

from typing import Any

import pytest

from dataset_files import findings, jsonl, only_finding, read, warnings
from jurybox.datasets import FIELDS
from jurybox.datasets.fields import FIELD_OF, Columns
from jurybox.datasets.row_reader import record_of
from jurybox.sample import Response, Row

TASK = {"task": "Add 1 and 2."}

ROW_FIELDS = {name: each.aliases for name, each in FIELDS.items()}


def row(**columns: object) -> Row:
    (found,) = read(jsonl({**TASK, **columns}), needs_response="response" in columns)
    return found


def problem(**columns: object) -> str:
    return only_finding(jsonl({**TASK, **columns}))


def test_the_names_are_those_of_the_specification() -> None:
    assert ROW_FIELDS == {
        "id": (),
        "task": ("input", "question", "user_input", "prompt", "query", "instruction"),
        "reference": (
            "reference_answer", "expected", "ideal", "target", "expected_output",
            "expected_answer", "ground_truth", "correct_answer",
        ),
        "context": ("provided_context", "contexts", "retrieval_context", "retrieved_contexts"),
        "response": (
            "candidate_answer", "output", "answer", "completion", "actual_output", "prediction",
            "generated_answer", "model_output", "response_a",
        ),
        "response_b": (),
        "messages": ("conversation", "chat_history"),
        "scenario": (),
        "metadata": (),
        "checks": (),
        "latency_e2e_ms": (),
        "latency_model_ms": (),
        "input_tokens": (),
        "output_tokens": (),
        "timed_out": (),
    }  # fmt: skip


def test_null_counts_as_absent() -> None:
    columns: dict[str, Any] = {name: None for name in FIELD_OF if name != "task"}
    text = jsonl({**columns, "task": None, "question": "x", "own": None})
    assert read(text) == [Row(id="1", task="x")]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("a b", "a b"), (7, "7"), (-7, "-7"), (10**40, "1" + "0" * 40), ("é\u00a0😀", "é\u00a0😀"),
     ("x" * 200, "x" * 200), ("1", "1")],
)  # fmt: skip
def test_an_id_is_a_text_or_a_whole_number(given: object, kept: str) -> None:
    assert row(id=given).id == kept


@pytest.mark.parametrize(
    ("given", "code"),
    [("", "bad-id"), ("  ", "bad-id"), ("a\nb", "bad-id"), ("a\0", "bad-id"), ("\x7f", "bad-id"),
     ("a\u0085", "bad-id"), ("x" * 201, "bad-id"), (10**200, "bad-id"), (1.0, "wrong-type"),
     (True, "wrong-type"), (["a"], "wrong-type"), ({}, "wrong-type")],
)  # fmt: skip
def test_what_is_no_id_is_refused(given: object, code: str) -> None:
    assert problem(id=given).endswith(f"[{code}]")


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [({"id": 1}, {}, "has no `id`, but the first row has one"),
     ({}, {"id": 2}, "has an `id`, but the first row has none")],
)  # fmt: skip
def test_either_every_row_has_an_id_or_none(
    first: dict[str, object], then: dict[str, object], said: str
) -> None:
    found = only_finding(jsonl({**TASK, **first}, {**TASK, **then}))
    assert found == f"2:1: the row {said}; give every row an id, or none [mixed-ids]"


@pytest.mark.parametrize("name", ["task", "question"])
@pytest.mark.parametrize(
    ("given", "code"), [("", "blank"), (" \n", "blank"), (5, "wrong-type"), ({}, "wrong-type")]
)
def test_a_task_says_something(name: str, given: object, code: str) -> None:
    assert findings(jsonl({name: given})) == [f"1:1 {code}"]


def test_a_blank_context_or_scenario_counts_as_absent() -> None:
    assert row(context=" ", scenario="") == Row(id="1", task=TASK["task"])
    assert row(context="", provided_context="x").context == "x"


@pytest.mark.parametrize(
    "field", ["reference", "context", "scenario", "response", "response_b", "candidate_answer"]
)
@pytest.mark.parametrize("given", [1.5, True, {}])
def test_a_text_is_a_text(field: str, given: object) -> None:
    found = problem(**{field: given})
    assert found.startswith(f"1:1: `{field}` is ")
    assert found.endswith("; give a string [wrong-type]")


@pytest.mark.parametrize("field", ["latency_e2e_ms", "latency_model_ms"])
@pytest.mark.parametrize(
    ("given", "said"),
    [(-1, "the number -1"), (-0.5, "the number -0.5"), (10**400, "a large number"),
     ("12", 'the string "12"'), (True, "`true`")],
)  # fmt: skip
def test_a_latency_is_a_finite_number_from_zero(field: str, given: object, said: str) -> None:
    wanted = "give a number of milliseconds from 0 to 1e12 [wrong-type]"
    assert problem(**{field: given}) == f"1:1: `{field}` is {said}; {wanted}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("hi", '`messages` is the string "hi"'),
        ({"role": "user", "content": "x"}, "`messages` is an object"),
        (["hi"], "`messages[0]`: expected `object`, got `str`"),
        (
            [{"role": "user", "content": "x"}, {"role": "user"}],
            "`messages[1]`: object missing required field `content`",
        ),
        ([{"content": "x"}], "`messages[0]`: object missing required field `role`"),
        ([{"role": "tool", "content": "x"}], "`messages[0].role`: there is no 'tool'"),
        (
            [{"role": ["user"], "content": "x"}],
            "`messages[0].role`: expected `str`, got `array`",
        ),
        (
            [{"role": "user", "content": ["x"]}],
            "`messages[0].content`: expected `str`, got `array`",
        ),
        (
            [{"role": "user", "content": None}],
            "`messages[0]`: object missing required field `content`",
        ),
        (
            [{"role": "user", "content": "x", "name": "y"}],
            "`messages[0]`: object contains unknown field `name`",
        ),
    ],
)
def test_messages_are_turns_and_nothing_else(given: object, said: str) -> None:
    assert problem(messages=given).startswith(f"1:1: {said}; ")


def test_a_column_that_is_also_in_the_metadata_is_refused() -> None:
    assert problem(topic="sums", metadata={"topic": "logic"}) == (
        "1:1: `topic` is both a column and a key of `metadata`; "
        "remove or rename one of them [two-names]"
    )


def nested(levels: int) -> object:
    value: object = "x"
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return {"a": value}


@pytest.mark.parametrize("column", ["metadata", "own"])
def test_metadata_may_be_nested_but_not_without_end(column: str) -> None:
    assert row(**{column: nested(60)}).metadata
    found = problem(**{column: nested(70)})
    assert found == f"1:1: `{column}` is nested too deeply; use at most 64 levels [too-deep]"


def test_all_faults_of_a_row_are_found() -> None:
    text = jsonl({"id": "", "task": 5, "messages": 1, "timed_out": 1, "input_tokens": -1})
    assert findings(text, needs_response=True) == [
        "1:1 bad-id", "1:1 wrong-type", "1:1 wrong-type", "1:1 wrong-type", "1:1 wrong-type",
        "1:1 missing-field",
    ]  # fmt: skip


def test_a_recorded_response_is_dropped_where_a_target_makes_one() -> None:
    recorded = {**TASK, "response": "x", "latency_e2e_ms": 1, "input_tokens": 2, "response_b": "y"}
    text = jsonl(recorded, recorded)
    assert [each.response for each in read(text)] == [None, None]
    assert [each.response_b for each in read(text)] == [Response(text="y")] * 2
    (warning,) = warnings(text)
    assert warning == (
        "`response` is read as a recorded response, but the target makes new ones; if it is the "
        "reference, write `columns: {reference: response}` in the suite"
    )
    assert warnings(text, needs_response=True) == []
    (warning,) = warnings(jsonl({**recorded, "reference": "z"}))
    assert warning.endswith("the target makes new ones")


@pytest.mark.parametrize("columns", [{"refrence": "3", "expected": "3"}, {"answers": ["3"]}])
def test_what_resembles_a_field_is_other_data_where_it_cannot_be_meant(
    columns: dict[str, object],
) -> None:
    (found,) = read(jsonl({**TASK, **columns}))
    assert found.metadata == {name: columns[name] for name in columns if name != "expected"}


@pytest.mark.parametrize(
    ("column", "meant"),
    [("refrence", "reference"), ("taks", "task"), ("inputs", "input"),
     ("respose", "response"), ("contex", "context"), ("meta_data", "metadata"),
     ("preference", None), ("content", None), ("message", None), ("production", None),
     ("latency_e2e", None), ("topic", None), ("source", None), ("category", None), ("model", None),
     ("question_id", None), ("language", None), ("level", None), ("ids", None), ("url", None),
     ("difficulty", None), ("text", None), ("label", None), ("created_at", None), ("score", None),
     ("x" * 1000, None), ("", None)],
)  # fmt: skip
def test_only_what_looks_like_a_slip_is_taken_for_one(column: str, meant: str | None) -> None:
    assert Columns().misspelled(column) == meant


def test_a_row_written_as_a_record_reads_back_as_the_same_row() -> None:
    columns: dict[str, Any] = {
        "id": "a",
        "task": "x",
        "messages": [{"role": "user", "content": "Hello"}],
        "metadata": {"level": 1},
        "response": "",
        "response_b": "y",
        "latency_e2e_ms": 0.0,
        "timed_out": True,
        "output_tokens": 0,
    }
    made = row(**columns)
    assert read(jsonl(record_of(made)), needs_response=True) == [made]
    assert set(record_of(made)) == set(columns)
