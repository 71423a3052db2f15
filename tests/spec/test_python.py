"""D9: runs and evaluations from Python, inside a running event loop too."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import jurybox
from commands import call
from jurybox import (
    InputError,
    Run,
    aevaluate,
    arun,
    evaluate,
    load_rubric,
    load_run,
    run,
    run_targets,
)

RUBRIC = """\
---
id: tone
version: 1.0.0
scale: 1-5
votes: 1
pass: ["kindness >= 4"]
gates: ["pass_rate >= 0.5"]
---
# Tone
## Criteria
### Kindness
The words are kind.
"""
ROWS = [
    {"id": "a", "task": "Greet me.", "response": "Hello, dear."},
    {"id": "b", "task": "Greet me.", "response": "What <do> you want?"},
]


@pytest.fixture(autouse=True)
def _suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tone.md").write_text(RUBRIC)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("suite.yaml").write_text("suite: tones\nrubric: tone.md\ndataset: rows.jsonl\n")


def call_verify(run_id: str) -> int:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return call(monkeypatch, "verify", run_id).code


def reply(score: int) -> str:
    checklist = load_rubric("bias-awareness")
    return json.dumps(
        {
            "reasoning": {"kindness": f"Its greeting is worth {score}."},
            "bias_checklist": {
                each.id: f"{each.id} has no hold on this greeting." for each in checklist.criteria
            },
            "safety_concerns": [],
            "scores": {"kindness": score},
        }
    )


def judge(prompt: str) -> str:
    return reply(5 if "Hello, dear." in prompt else 1)


def in_a_loop(work: Callable[[], object]) -> object:
    """Call a blocking function where an event loop is running, as a notebook does."""

    async def cell() -> object:
        return work()

    return asyncio.run(cell())


def assert_complete(found: object) -> None:
    assert isinstance(found, Run)
    assert (found.status, found.summary["pass_rate"], found.passed) == ("finished", 0.5, True)


@pytest.mark.parametrize("call", [lambda work: work(), in_a_loop], ids=["plain", "in a loop"])
def test_d9_a_run_with_a_function_as_judge(call: Callable[..., object]) -> None:
    assert_complete(call(lambda: run("suite.yaml", judges=judge)))


def test_d9_arun_is_awaited() -> None:
    assert_complete(asyncio.run(arun("suite.yaml", judges=[judge])))


@pytest.mark.parametrize("call", [lambda work: work(), in_a_loop], ids=["plain", "in a loop"])
def test_d9_a_function_judges_one_response(call: Callable[..., object]) -> None:
    report = call(
        lambda: evaluate(rubric=Path("tone.md"), task="", response="Hello, dear.", judges=judge)
    )
    assert isinstance(report, jurybox.EvaluationReport)
    assert (report.total_score, report.judges) == (5, (f"python/{__name__}:judge",))
    again = asyncio.run(
        aevaluate(rubric=Path("tone.md"), task="", response="Hello, dear.", judges=judge)
    )
    assert again == report


@pytest.mark.parametrize("response", ["", " \n"])
def test_d2_an_empty_response_is_not_judged(response: str) -> None:
    def never(_: str) -> str:
        raise AssertionError("there is nothing to judge")

    report = evaluate(rubric=Path("tone.md"), task="", response=response, judges=never)
    assert report.passed is False
    assert report.result.target_error == "the response is empty"


@pytest.mark.parametrize("latency", [float("nan"), float("inf"), -1.0])
def test_a5_a_latency_that_is_no_time_is_refused(latency: float) -> None:
    with pytest.raises(InputError, match="isn't a time in milliseconds"):
        evaluate(
            rubric=Path("tone.md"), task="", response="x", judges=judge, latency_e2e_ms=latency
        )


def test_d9_a_function_is_the_system_under_test() -> None:
    asked: list[str] = []

    def bot(prompt: str) -> str:
        asked.append(prompt)
        return "Hello, dear."

    with pytest.warns(UserWarning, match="`response` is read as a recorded response"):
        found = run("suite.yaml", target=bot, judges=judge)
    assert sorted(asked) == ["Greet me.", "Greet me."]
    assert found.summary["pass_rate"] == 1
    assert found.metadata["model_id"].endswith("bot")


def test_d9_what_a_table_of_pandas_lacks_is_absent() -> None:
    rows = [{**ROWS[0], "reference": float("nan"), "scenario": float("nan")}]
    found = run({"suite": "table", "rubric": "tone.md", "rows": rows}, judges=judge)
    row = found.samples[0].inputs
    assert (row.reference, row.scenario) == (None, None)


def test_d9_two_functions_of_one_name_are_refused() -> None:
    one, other = (lambda _, score=score: reply(score) for score in (1, 5))
    with pytest.raises(InputError, match="two functions have this name"):
        run("suite.yaml", judges=[one, other])


def test_d9_samples_are_objects_and_a_table() -> None:
    found = run("suite.yaml", judges=judge)
    good, bad = found.samples
    assert (good.id, good.task, good.response, good.passed) == (
        *("a", "Greet me.", "Hello, dear."),
        True,
    )
    assert (bad.scores["kindness"], bad.passed, bad.repeat) == (1, False, 0)
    assert bad.report is not None
    assert bad.report.criteria[0].reasoning == "Its greeting is worth 1."
    table = found.to_dataframe()
    assert list(table["id"]) == ["a", "b"]
    assert list(table["kindness"]) == [5, 1]
    assert list(table["passed"]) == [True, False]


def test_d9_a_run_is_loaded_again_and_shown_in_a_notebook() -> None:
    made = run("suite.yaml", judges=judge, store="elsewhere.db")
    again = load_run(store="elsewhere.db")
    assert again == made
    assert load_run(made.run_id, store="elsewhere.db").samples[0].id == "a"
    page = again._repr_html_()
    assert "tones: passed" in page
    assert "pass_rate &gt;= 0.5" in page
    with pytest.raises(InputError, match="no such run"):
        load_run("1999", store="elsewhere.db")


def test_d9_ctrl_c_in_a_notebook_leaves_a_run_to_resume() -> None:
    """The interrupt reaches the thread that waits, and the run's own thread ends with it."""

    async def slow(_: str) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)
        return ""

    def cell() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a notebook's kernel
        run("suite.yaml", judges=slow)

    before, threads = signal.getsignal(signal.SIGINT), {*threading.enumerate()}
    try:
        with pytest.raises(KeyboardInterrupt):
            in_a_loop(cell)
    finally:
        signal.signal(signal.SIGINT, before)
    assert load_run().status == "stopped"
    assert {*threading.enumerate()} <= threads  # those of other tests may end meanwhile


def test_d9_a_dictionary_is_a_suite_with_rows_of_your_own() -> None:
    suite = {"suite": "tones", "rubric": "tone.md", "rows": ROWS}
    found = run(suite, judges=judge, votes=3)
    assert_complete(found)
    assert [each.id for each in found.samples] == ["a", "b"]
    assert found.metadata["votes"] == 3
    assert call_verify(found.run_id) == 0
    with pytest.raises(InputError, match="function"):
        run({**suite, "target": judge})


def test_d9_a_dictionary_may_name_files_of_the_current_folder() -> None:
    suite = {"suite": "tones", "rubric": "tone.md", "dataset": "nowhere.jsonl"}
    assert_complete(run(suite, judges=judge, dataset=Path("rows.jsonl")))


def test_d9_reviews_can_be_waived_from_python() -> None:
    def alarmed(prompt: str) -> str:
        worse = {**json.loads(judge(prompt)), "safety_concerns": ["It encourages self-harm."]}
        order = ("reasoning", "bias_checklist", "safety_concerns", "scores")
        return json.dumps({name: worse[name] for name in order})

    assert run("suite.yaml", judges=alarmed).passed is False
    assert run("suite.yaml", judges=alarmed, accept_unreviewed=True).passed is True


def test_d7_a_run_has_a_name_tags_and_a_baseline() -> None:
    first = run("suite.yaml", judges=judge, name="v1", tags=["nightly"])
    assert load_run("v1") == load_run("nightly") == first
    assert run("suite.yaml", judges=judge, baseline="v1").metadata["baseline"] == first.run_id
    with pytest.raises(InputError, match="no such run"):
        run("suite.yaml", judges=judge, baseline="v0")


def test_d8_rows_are_filtered_and_a_cost_is_limited() -> None:
    found = run("suite.yaml", judges=judge, filters=["id=b"])
    assert [each.id for each in found.samples] == ["b"]
    with pytest.raises(InputError, match="its price is not known, so nothing can limit"):
        run("suite.yaml", judges=judge, max_cost=1)


def test_d5_the_targets_of_a_suite_are_run_one_by_one() -> None:
    Path("kind.jsonl").write_text('{"id": "a", "response": "Hello, dear."}\n')
    Path("rude.jsonl").write_text('{"id": "a", "response": "What?"}\n')
    targets = [{"name": name, "responses": f"{name}.jsonl"} for name in ("kind", "rude")]
    suite = {"suite": "tones", "rubric": "tone.md", "rows": ROWS[:1], "targets": targets}
    runs = run_targets(suite, judges=judge, name="both")
    assert [each.passed for each in runs] == [True, False]
    assert [each.metadata["name"] for each in runs] == ["both-kind", "both-rude"]
    with pytest.raises(InputError, match="several targets"):
        run(suite, judges=judge)
