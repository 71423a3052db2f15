"""D1 and D2: columns of any name, contexts, chat logs and empty responses, as users have them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import Done, call
from jurybox.datasets import FIELDS
from jurybox.suite import ROW_FIELDS

JUDGE = """
PROMPTS = []

def strict(prompt):
    with open("prompts.txt", "a") as file:
        file.write(prompt + "\\0")
    return '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "The same."}'
"""
Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a suite over rows; the prompts of its judge are kept."""
    (tmp_path / "judge.py").write_text(JUDGE)

    def go(rows: list[dict[str, Any]], more: str = "", *arguments: str) -> Done:
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        head = "suite: own\nrubric: answer-quality\ndataset: rows.jsonl\n"
        judge = "judge: {model: 'python/judge:strict', votes: 1}\n"
        (tmp_path / "suite.yaml").write_text(f"{head}{judge}{more}\n")
        return call(monkeypatch, "run", "suite.yaml", *arguments)

    return go


def prompts() -> list[str]:
    path = Path("prompts.txt")
    return path.read_text().split("\0")[:-1] if path.exists() else []


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "2 + 2?", "completion": "four", "expected": "4"},
        {"question": "2 + 2?", "answer": "four", "ground_truth": "4", "contexts": ["sums"]},
        {"input": "2 + 2?", "actual_output": "four", "expected_output": "4"},
        {"user_input": "2 + 2?", "response": "four", "reference": "4"},
        {"Question": "2 + 2?", "Model Output": "four", "expectedOutput": 4},
        {"instruction": "2 + 2?", "prediction": "four", "target": "4"},
    ],
)
def test_the_usual_names_of_other_tools_need_no_mapping_d1(row: dict[str, Any], run: Run) -> None:
    done = run([row])
    assert done.code != 2, done.err
    (prompt,) = prompts()
    assert all(text in prompt for text in ("2 + 2?", "candidate_answer: four", "answer: 4"))


def test_any_column_can_be_mapped_and_resumed_d1(run: Run) -> None:
    row = {"q": "2 + 2?", "prompt": "other", "gold label": "4", "a": "four", "ms": 5}
    columns = "columns: {task: q, reference: gold label, response: a, latency_e2e_ms: ms}"
    assert run([row], columns).code != 2
    (prompt,) = prompts()
    assert "2 + 2?" in prompt
    assert "answer: 4" in prompt
    # A usual name whose field has another column is other data.
    assert "other" not in prompt


def test_a_mapped_column_that_is_not_there_is_named_d1(run: Run) -> None:
    done = run([{"task": "x", "response": "y", "truth": "z"}], "columns: {reference: truht}")
    assert done.err == (
        "rows.jsonl:1:1: no row has the column `truht`, which the suite names for `reference`; "
        "did you mean `truth`? [missing-column]\n"
    )


def test_missing_fields_are_said_once_per_file_with_its_columns_d1(run: Run) -> None:
    done = run([{"text": f"row {number}", "label": "x"} for number in range(30)])
    assert done.code == 2
    assert done.err.splitlines() == [
        f"rows.jsonl:1:1: 30 rows have no `{field}`; the columns are `text`, `label`; name its "
        f"column with `columns: {{{field}: COLUMN}}` in the suite{rest} [missing-field]"
        for field, rest in (("task", ""), ("response", ", or name a `target` there"))
    ]


def test_two_columns_of_one_field_are_named_once_d1(run: Run) -> None:
    rows = [{"prompt": "a", "question": "b", "response": "c"}] * 9
    (line,) = run(rows).err.splitlines()
    assert "`prompt` and `question` are both names of `task`" in line
    assert run(rows, "columns: {task: question}").code != 2


def test_a_near_miss_is_refused_and_other_data_kept_d2(run: Run) -> None:
    row = {"task": "x", "response": "y", "contxt": "z", "topic": "sums"}
    (line,) = run([row]).err.splitlines()
    assert "the column `contxt` is almost `context`; rename it, or write" in line
    assert not prompts()
    assert run([row], "columns: {context: contxt}").code != 2


@pytest.mark.parametrize(
    ("context", "shown"),
    [
        ("one text", "one text"),
        (["one text"], "one text"),
        (["first", "second"], "[1] first\n\n[2] second"),
        ([{"id": "doc-7", "text": "first"}, {"text": "second"}], "[doc-7] first\n\n[2] second"),
        ([{"page_content": "first", "metadata": {"page": 3}}, "second"], "[1] first\n\n[2] second"),
    ],
)
@pytest.mark.parametrize("column", ["context", "contexts", "retrieval_context"])
def test_the_judge_sees_every_context_d2(
    context: object, shown: str, column: str, run: Run
) -> None:
    run([{"task": "x", "response": "y", column: context}])
    (prompt,) = prompts()
    assert shown in prompt


@pytest.mark.parametrize(
    ("context", "said"),
    [([5], "`context[0]` is the number 5"), ([{"body": "x"}], "`context[0]` has none of `text`")],
)
def test_a_context_without_text_is_refused_d2(context: object, said: str, run: Run) -> None:
    assert said in run([{"task": "x", "response": "y", "context": context}]).err


TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": "2 + 2?"},
]


@pytest.mark.parametrize("column", ["messages", "conversation", "input"])
def test_a_chat_log_is_split_into_history_task_and_response_d2(
    column: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run([{column: [*TURNS, {"role": "assistant", "content": "four"}]}])
    shown = call(monkeypatch, "show", "last", "--sample", "1", "--json").json
    assert (shown["task"], shown["response"], shown["messages"]) == ("2 + 2?", "four", TURNS[:3])


def test_a_chat_log_that_ends_with_the_user_is_for_a_target_d2(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("bot.py").write_text("def answer(prompt):\n    return 'four'\n")
    run([{"messages": TURNS}], "target: python/bot:answer")
    shown = call(monkeypatch, "show", "last", "--sample", "1", "--json").json
    assert (shown["task"], shown["response"], shown["messages"]) == ("2 + 2?", "four", TURNS[:3])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"messages": [TURNS[2]]}, "has no user turn to answer"),
        ({"messages": [], "response": "x"}, "has no user turn to answer"),
        ({"messages": TURNS[:3], "answer": "x"}, "ends with a response, and `answer` is one too"),
        ({"messages": [*TURNS, {"role": "tool", "content": "x"}]}, "there is no 'tool'"),
    ],
)
def test_a_chat_log_without_a_task_is_refused_d2(row: dict[str, Any], said: str, run: Run) -> None:
    (line,) = run([row]).err.splitlines()
    assert said in line


def test_earlier_turns_next_to_a_task_stay_what_they_are_d2(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run([{"task": "2 + 2?", "messages": TURNS[:3], "response": "four"}])
    shown = call(monkeypatch, "show", "last", "--sample", "1", "--json").json
    assert (shown["task"], shown["messages"]) == ("2 + 2?", TURNS[:3])


@pytest.mark.parametrize("target", ["", "target: python/bot:silent"])
def test_an_empty_response_fails_without_a_judge_d2(
    target: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("bot.py").write_text("def silent(prompt):\n    return ' '\n")
    done = run([{"task": "2 + 2?", "response": " ", "reference": "4"}], target, "--json")
    assert done.code == 1
    assert not prompts()
    shown = call(monkeypatch, "show", "last", "--sample", "1", "--json").json
    assert (shown["passed"], shown["target_error"]) == (False, "the response is empty")
    assert shown["accuracy_score"] == 0


def test_a_suite_can_map_every_field_of_a_row_d1() -> None:
    assert set(ROW_FIELDS) == set(FIELDS)


@pytest.mark.parametrize("text", ["", "\u200b\u2060", "\ufeff \u3164\u2800", "\u00ad\ufe0f"])
def test_a_response_that_nobody_sees_is_empty_in_every_format_d2(
    text: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run([{"id": "a", "task": "2 + 2?", "response": text}]).code == 1
    lines = f"id,task,response\na,2 + 2?,{text}\nb,2 + 2?,4\n"
    Path("rows.csv").write_text(lines)
    suite = Path("suite.yaml").read_text().replace("rows.jsonl", "rows.csv")
    Path("suite.yaml").write_text(suite)
    done = call(monkeypatch, "run", "suite.yaml", "--json")
    assert done.code == 1, done.err
    summary = json.loads(done.out)["summary"]
    assert (summary["samples"], summary["target_error_rate"]) == (2, 0.5)
    assert summary["target_errors"] == {"the response is empty": 1}
    assert len(prompts()) == 1
