"""``jurybox run``: what it prints, where, and its exit codes (section I of the specification)."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import JURYBOX

JUDGES = """
import asyncio
import json


def kind(prompt: str) -> str:
    return json.dumps({"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."})


def mute(prompt: str) -> str:
    return "I would rather not say."


def moody(prompt: str) -> str:
    return mute(prompt) if "task: Task 1\\n" in prompt else kind(prompt)


def rude(prompt: str) -> str:
    return json.dumps(
        {"accuracy_score": 2, "faithfulness_score": 2, "rationale": "\\x1b[2J\\x1b]0;mine\\x07"}
    )


def broken(prompt: str) -> str:
    raise RuntimeError("out of order")


async def slow(prompt: str) -> str:
    await asyncio.sleep(60)
    return kind(prompt)
"""
ROW = {
    "reference": "yes",
    "response": "yes",
    "latency_e2e_ms": 100,
    "input_tokens": 10,
    "output_tokens": 5,
}
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a suite with a few rows and a judge."""

    def written(judge: str = "kind", rows: int = 3, more: str = "", **columns: object) -> None:
        (tmp_path / "judges.py").write_text(JUDGES)
        lines = [
            json.dumps({"id": f"q{number}", "task": f"Task {number}", **ROW, **columns})
            for number in range(rows)
        ]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines))
        (tmp_path / "suite.yaml").write_text(
            "suite: small\nrubric: answer-quality\ndataset: rows.jsonl\n"
            f"judge: {{models: [python/judges:{judge}]}}\n{more}"
        )

    return written


def test_a_run_prints_the_verdict_then_why(started: Callable, write: Write) -> None:
    write()
    done = started("run", "suite.yaml")
    assert done.code == 0
    assert done.out.startswith("Ship: every gate passes. Not certain yet: ")
    gate = r"^aggregate_score >= 0.8 +1\.000 +0\.050 to 1\.000 +yes, not certain +\+0\.200$"
    assert re.search(gate, done.out, re.MULTILINE)
    assert "look at" not in done.out


def test_progress_goes_to_standard_error_as_plain_lines(jurybox: Callable, write: Write) -> None:
    write()
    done = jurybox("run", "suite.yaml")
    first, last = done.err.splitlines()
    assert re.fullmatch(
        r"run \d{8}-\d{6}-\w{4}: 3 samples, judged by python/judges:kind,"
        r" saved to \.jurybox/jurybox\.db",
        first,
    )
    assert re.fullmatch(
        r"3 of 3 samples, [\d.,]+/s, cost unknown, 0 unscored, 0 flagged, 0 failed", last
    )
    assert "\x1b" not in done.out + done.err


def test_json_is_the_run_and_nothing_else(jurybox: Callable, write: Write) -> None:
    write(scenario="short")
    done = jurybox("run", "suite.yaml", "--json", "--repeats", "2")
    assert done.code == 0
    run = done.json
    assert {"run_id", "status", "suite", "summary", "gates", "release_ready"} <= run.keys()
    assert {"review", "metadata", "cost"} <= run.keys()
    assert "decision" not in run
    assert (run["status"], run["suite"], run["release_ready"]) == ("finished", "small", True)
    interval = run["gates"][0].pop("interval")
    assert (round(interval["low"], 3), interval["high"], interval["level"]) == (0.05, 1.0, 0.95)
    assert run["gates"][0] == {"gate": "aggregate_score >= 0.8", "value": 1.0, "passed": True}
    assert (run["verdict"], run["people_say"]) == ("Ship", None)
    assert run["reason"].startswith("every gate passes. Not certain yet: aggregate score")
    assert (run["review"]["queued"], run["review"]["reasons"]) == (0, {})
    assert (run["review"]["awaiting"], run["release_reasons"]) == (0, [])
    assert run["metadata"]["run_id"] == run["run_id"]
    assert run["cost"]["models"][0]["calls"] == 6
    assert run["summary"]["repeats"]["aggregate_score"] == {
        "mean": 1.0,
        "sd": 0.0,
        "values": [1.0, 1.0],
    }
    shown = jurybox("show", run["run_id"], "--json").json
    assert shown["gates"][0].pop("interval") == interval
    assert shown == run


def test_a_gate_that_does_not_hold_is_exit_code_1(jurybox: Callable, write: Write) -> None:
    write(latency_e2e_ms=20_000)
    done = jurybox("run", "suite.yaml")
    assert done.code == 1
    assert done.out.startswith("Don't ship: pass rate is 0.0% and has to be at least 85%; p95 of ")
    assert "\n  3  latency_e2e_ms <= 8000\n" in done.out


@pytest.mark.parametrize("judge", ["mute", "broken"])
def test_a_run_without_one_valid_vote_is_exit_code_3(
    jurybox: Callable, write: Write, judge: str
) -> None:
    write(judge=judge)
    done = jurybox("run", "suite.yaml")
    assert done.code == 3
    assert "  unscored, 3 samples: no judge gave a valid vote: q0, q1, q2" in done.out
    assert "resume" not in done.err
    assert ", 3 unscored, " in done.err


PARTLY = """---
id: partly
version: 1.0.0
scale: 0.0-1.0
{front}---
# Partly
## Criteria
### Warmth
```yaml rules
base: 0.5
```
### Wit
### Tact
"""


@pytest.mark.parametrize(
    ("front", "missing"),
    [
        ("", "`wit`, `tact` of `partly` have no rules that can score without a judge"),
        ("weights: {wit: 0}\n", "`tact` of `partly` has no rules that can score without a judge"),
        ("weights: {warmth: 0}\n", "`partly` has no rules that can score without a judge"),
    ],
)
def test_without_a_judge_criteria_without_rules_are_named_before_the_run(
    jurybox: Callable, tmp_path: Path, front: str, missing: str
) -> None:
    (tmp_path / "partly.md").write_text(PARTLY.format(front=front))
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "task": "Hi", "response": "Hello"}\n')
    (tmp_path / "suite.yaml").write_text("suite: x\nrubric: partly.md\ndataset: rows.jsonl\n")
    done = jurybox("run", "suite.yaml", JURYBOX_MODELS="models")
    hint = (
        "name a model, such as `openai/gpt-4.1-2025-04-14`,"
        " or run `jurybox model pull` (1.1 GB) to use the embedded one"
    )
    assert (done.code, done.out) == (2, "")
    assert done.err == f"suite.yaml: no judge was given, and {missing}; {hint}\n"
    assert not (tmp_path / ".jurybox").exists()
    assert not (tmp_path / "models").exists()


def test_criteria_that_count_for_nothing_need_no_rules(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "partly.md").write_text(PARTLY.format(front="weights: {wit: 0, tact: 0}\n"))
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "task": "Hi", "response": "Hello"}\n')
    (tmp_path / "suite.yaml").write_text("suite: x\nrubric: partly.md\ndataset: rows.jsonl\n")
    done = jurybox("run", "suite.yaml", "--json")
    assert (done.code, json.loads(done.out)["summary"]["overall_mean"]) == (0, 0.5)


@pytest.mark.parametrize("code", ["return 'no idea'", "raise RuntimeError('down')"])
def test_a_decision_that_no_judge_confirmed_says_so(
    jurybox: Callable, tmp_path: Path, code: str
) -> None:
    (tmp_path / "judges.py").write_text(f"def lost(prompt):\n    {code}\n")
    (tmp_path / "rows.csv").write_text("task,response\nI'm sad.,I understand. Tell me more?\n")
    (tmp_path / "suite.yaml").write_text("suite: s\nrubric: companion\ndataset: rows.csv\n")
    done = jurybox("run", "suite.yaml", "--judge", "python/judges:lost", "--allow-unpinned")
    decided = re.search(r"^decision  (\w+): ", done.out, re.MULTILINE)
    assert decided
    assert f"{decided[1]}, no judge confirmed it" in jurybox("runs").out
    assert json.loads(jurybox("runs", "--json").out)["runs"][0]["unconfirmed"]
    # The rubric's gates decide the exit code.
    wanted = ("--decision", decided[1])
    assert "no judge confirmed the scores" in jurybox("gate", "last", *wanted).out.splitlines()[0]
    assert json.loads(jurybox("gate", "last", *wanted, "--json").out)["unconfirmed"]
    assert "no judge confirmed the scores" in jurybox("diff", "last", "last").out


def test_a_rubric_of_rules_needs_no_judge_and_ends_in_a_decision(
    jurybox: Callable, tmp_path: Path
) -> None:
    row = {"id": "a", "task": "I feel sad today.", "response": "I hear you. How are you now?"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (tmp_path / "suite.yaml").write_text("suite: x\nrubric: companion\ndataset: rows.jsonl\n")
    done = jurybox("run", "suite.yaml")
    assert done.code == 0
    assert re.search(r"^decision  \w+: ", done.out, re.MULTILINE)
    assert ": 1 sample, scored by the rubric's rules, saved to" in done.err


def test_warnings_come_before_the_first_call(jurybox: Callable, write: Write) -> None:
    write(more="target: python/judges:kind\n")
    done = jurybox("run", "suite.yaml")
    lines = done.err.splitlines()
    assert lines[0].startswith("warning: `response` is read as a recorded response, but the target")
    assert lines[1].startswith("run 20")


def test_on_a_terminal_there_is_a_bar(on_terminal: Callable, write: Write) -> None:
    write()
    shown = on_terminal("run", "suite.yaml")
    assert "\u2501" in shown
    assert "3/3" in shown
    assert "0 unscored, 0 flagged, 0 failed" in shown
    assert "of 3 samples, 0" not in shown


def test_a_terminal_that_can_not_draw_gets_plain_lines(on_terminal: Callable, write: Write) -> None:
    write()
    shown = on_terminal("run", "suite.yaml", TERM="dumb")
    assert "3 of 3 samples, " in shown
    assert "\x1b" not in shown


def test_nobody_can_command_the_terminal(jurybox: Callable, write: Write) -> None:
    rude = "\x1b[2J\x1b]0;mine\x07\u202etxt"
    write(judge="rude", scenario=rude, response=rude, task=rude, context=rude)
    shown = [
        jurybox("run", "suite.yaml"),
        jurybox("show", "last"),
        jurybox("show", "last", "--sample", "q0"),
    ]
    write(latency_e2e_ms=rude)
    shown.append(jurybox("run", "suite.yaml"))
    assert [done.code for done in shown] == [0, 0, 0, 2]
    for done in shown:
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.out + done.err)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (["missing.yaml"], "missing.yaml: no such file"),
        (["suite.yaml", "--judge", "openai/gpt-x"], "openai/gpt-x: the name doesn't say which"),
        (
            ["suite.yaml", "--judge", "openai/gpt-latest"],
            "`openai/gpt-latest` may refer to a different model",
        ),
        (["suite.yaml", "--judge", "python/judges:nobody"], "python/judges:nobody: there is no"),
        (["suite.yaml", "--limit", "0"], "jurybox run: invalid value for '--limit'"),
        (["suite.yaml", "--store", "mysql://x"], "`mysql:` doesn't begin the address of a store"),
        ([], "jurybox run: missing argument 'SUITE.yaml'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    jurybox: Callable, write: Write, change: list[str], line: str
) -> None:
    write()
    done = jurybox("run", *change)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith(line)


def test_a_password_of_the_store_is_never_shown(jurybox: Callable, write: Write) -> None:
    write()
    url = "postgresql://me:secret@127.0.0.1:9/runs?password=secret"
    done = jurybox("run", "suite.yaml", "--store", url)
    assert done.code == 3
    assert "secret" not in done.out + done.err


def test_what_is_printed_where_nobody_can_read_it_is_no_reason_to_lose_a_run(
    jurybox: Callable, write: Write
) -> None:
    write()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([JURYBOX, "run", "suite.yaml"], stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 3
    assert jurybox("runs", "--json").json["runs"][0]["status"] == "finished"


def test_a_judge_has_a_timeout_of_its_own(jurybox: Callable, write: Write, tmp_path: Path) -> None:
    write("slow", rows=1)
    suite = tmp_path / "suite.yaml"
    suite.write_text(suite.read_text().replace("slow]", "slow], timeout: 0.05"))
    done = jurybox("run", "suite.yaml", JURYBOX_PATIENCE="0.2")
    assert done.code == 3
    assert "timed out after 0.05 s, and no answer for 0.2 s" in done.err


def test_a_timeout_and_batches_exclude_each_other(
    jurybox: Callable, write: Write, tmp_path: Path
) -> None:
    write()
    suite = tmp_path / "suite.yaml"
    models = "models: [openai/gpt-4.1-2025-04-14], timeout: 5, batch: true"
    suite.write_text(suite.read_text().replace("models: [python/judges:kind]", models))
    done = jurybox("run", "suite.yaml")
    assert done.code == 2
    assert "leave out `timeout`, or ask directly with --no-batch" in done.err


def test_c13_a_prompt_that_drops_the_context_is_refused(
    jurybox: Callable, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "target.py").write_text("def answer(prompt: str) -> str:\n    return prompt\n")
    (tmp_path / "prompt.md").write_text("Answer: {{task}}")
    target = "target: {model: python/target:answer, prompt: prompt.md}\n"
    context = "The user is 74 years old."
    write(more=target, context=context, response=None)
    done = jurybox("run", "suite.yaml")
    assert done.code == 2
    assert done.err.count("the target's prompt drops the rows' `context`") == 1
    write(more=f"{target}unused: [context]\n", context=context, response=None)
    assert "can't be used" not in jurybox("run", "suite.yaml").err
    for more in ("", "system: system.md", "prompt: shown.md"):
        (tmp_path / "system.md").write_text("Be kind.")
        (tmp_path / "shown.md").write_text("{{context}} {{task}}")
        parts = ", ".join(filter(None, ("model: python/target:answer", more)))
        write(more=f"target: {{{parts}}}\n", context=context, response=None)
        jurybox("run", "suite.yaml")
        shown = json.loads(jurybox("show", "last", "--sample", "q0", "--json").out)
        assert context in shown["response"]
