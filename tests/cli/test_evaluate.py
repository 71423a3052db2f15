"""``jurybox evaluate`` (section I of the specification), with judges written in Python."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import JURYBOX
from jurybox.models.local.files import catalog

JUDGES = """
import json, re


def _reply(prompt, verdict):
    ids = re.findall(r"^### .*\\\\(`(\\\\w+)`:", prompt, re.MULTILINE)
    items = re.findall(r"^## (\\\\w+)$", prompt[prompt.index("# Bias checklist"):], re.MULTILINE)
    reply = {
        "reasoning": {name: f"Seen: {name}." for name in ids},
        "bias_checklist": {name: f"Not at work: {name}." for name in items},
        "safety_concerns": [],
    }
    if "<<<RESPONSE B" in prompt:
        side = verdict(prompt)
        return json.dumps(reply | {"preferences": dict.fromkeys(ids, side), "winner": side})
    return json.dumps(reply | {"scores": dict.fromkeys(ids, verdict(prompt))})


def kind(prompt: str) -> str:
    return _reply(prompt, lambda _: 4)


def harsh(prompt: str) -> str:
    return _reply(prompt, lambda _: 1)


def exact(prompt: str) -> str:
    return _reply(prompt, lambda prompt: 5 if "four" in prompt.split("<<<RESPONSE")[1] else 2)


def first(prompt: str) -> str:
    return _reply(prompt, lambda _: "A")


def longer(prompt: str) -> str:
    a, b = re.findall(r"<<<RESPONSE \\\\w \\\\w+>>>\\\\n(.*?)\\\\n<<<END", prompt, re.S)
    return _reply(prompt, lambda _: "A" if len(a) > len(b) else "B")


def mute(prompt: str) -> str:
    return "I would rather not say."


def broken(prompt: str) -> str:
    raise RuntimeError("out of order")
""".replace("\\\\", "\\")


@pytest.fixture(autouse=True)
def _judges(tmp_path: Path) -> None:
    (tmp_path / "judges.py").write_text(JUDGES)


def ask(jurybox: Callable, judge: str, *more: str, rubric: str = "general") -> object:
    return jurybox(
        "evaluate",
        *("--rubric", rubric, "--task", "What is 2 + 2?", "--response", "It is four."),
        *("--judge", f"python/judges:{judge}"),
        *more,
    )


def test_a_response_is_scored_and_passes(started: Callable) -> None:
    done = ask(started, "kind")
    assert done.code == 0
    assert re.search(
        r"^correctness +4 of 5 +moderate +4 4 4 +Seen: correctness\.", done.out, re.MULTILINE
    )
    assert "total  20 of 25, overall 0.750" in done.out
    assert "correctness >= 3  passes" in done.out
    assert re.search(r"^position +Not at work: position\.", done.out, re.MULTILINE)


def test_tokens_and_cost_are_shown_and_an_unknown_price_is_unknown(jurybox: Callable) -> None:
    assert "tokens  unknown input, unknown output; cost unknown" in ask(jurybox, "kind").out


def test_a_failed_pass_rule_is_exit_code_1(jurybox: Callable) -> None:
    done = ask(jurybox, "harsh")
    assert done.code == 1
    assert "correctness >= 3  fails" in done.out


def test_json_is_the_report_and_nothing_else(jurybox: Callable) -> None:
    done = ask(jurybox, "kind", "--json", "--votes", "2")
    assert (done.code, done.err) == (0, "")
    report = json.loads(done.out)
    assert report["rubric"]["id"] == "general"
    assert report["criteria"][0]["votes"] == [4, 4]
    assert report["votes_independent"] is False


def test_a_judge_with_a_position_bias_is_found_out_and_is_no_failure(jurybox: Callable) -> None:
    done = ask(jurybox, "first", "--response-b", "4")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[1] == "needs review: a vote's winner changed with the order of the responses"
    assert "winner  tie; a vote's winner changed with the order" in done.out


def test_a_merge_decision_is_shown_with_its_meaning(jurybox: Callable) -> None:
    done = ask(jurybox, "harsh", rubric="code-review")
    assert re.search(r"^decision  reject: ", done.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("judge", "reason"), [("mute", "no JSON object"), ("broken", "out of order")]
)
def test_a_jury_without_a_valid_vote_is_exit_code_3(
    jurybox: Callable, judge: str, reason: str
) -> None:
    done = ask(jurybox, judge)
    assert done.code == 3
    assert "needs review: no judge gave a valid vote" in done.out
    assert reason in done.out
    assert "unscored" in done.out
    assert json.loads(ask(jurybox, judge, "--json").out)["total_score"] is None


def test_texts_come_from_files_and_standard_input(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "task.txt").write_text("What is 2 + 2?", encoding="utf-8")
    done = jurybox(
        "evaluate",
        *("--rubric", "general", "--task", "@task.txt", "--response", "-"),
        *("--reference", "x", "--judge", "python/judges:exact", "--json"),
        stdin=b"It is four.",
    )
    assert json.loads(done.out)["total_score"] == 25


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("--judge", "nobody/x"), "`nobody/x`: there is no provider `nobody`"),
        (("--judge", "openai/gpt-latest"), "`openai/gpt-latest` may refer to a different model"),
        (("--judge", "anthropic/claude-x"), "anthropic/claude-x: ANTHROPIC_API_KEY is not set"),
        (("--judge", "python/nowhere:f"), "python/nowhere:f: the module can't be imported"),
        (("--votes", "0"), "jurybox evaluate: invalid value for '--votes': 0 is not"),
        (("--task", "@missing.txt"), "--task: missing.txt can't be read (no such file"),
        (("--rubric", "genral"), "genral: no such rubric; did you mean `general`?"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    jurybox: Callable, change: tuple[str, ...], line: str
) -> None:
    done = ask(jurybox, "kind", *change)
    assert done.code == 2
    assert done.err.startswith(line)
    assert done.err.count("\n") == 1
    assert done.out == ""


EMBEDDED = catalog()[0]
NOBODY = (
    "no judge was given; name a model, such as `openai/gpt-4.1-2025-04-14`,"
    " or run `jurybox model pull` (1.1 GB) to use the embedded one\n"
)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("JURYBOX_MODELS", str(folder))
    return folder


def test_without_a_judge_it_is_said_how_to_have_one_and_nothing_is_fetched(
    jurybox: Callable, models: Path
) -> None:
    done = jurybox("evaluate", "--rubric", "general", "--task", "t", "--response", "r")
    assert (done.code, done.out, done.err) == (2, "", NOBODY)
    assert list(models.iterdir()) == []


def test_an_embedded_judge_that_is_damaged_is_named_and_not_fetched_anew(
    jurybox: Callable, models: Path
) -> None:
    with (models / EMBEDDED.file).open("wb") as file:
        file.truncate(5)
    done = jurybox("evaluate", "--rubric", "general", "--task", "t", "--response", "r")
    assert (done.code, done.out) == (2, "")
    assert "the file is damaged" in done.err
    assert "jurybox model pull" in done.err
    assert done.err.count("\n") == 1
    assert [each.name for each in models.iterdir()] == [EMBEDDED.file]


@pytest.mark.usefixtures("models")
def test_rules_that_score_one_response_dont_compare_two(jurybox: Callable) -> None:
    done = jurybox(
        *("evaluate", "--rubric", "companion", "--task", "t", "--response", "r"),
        *("--response-b", "s"),
    )
    assert done.code == 2
    assert "`companion` has rules that score one response at a time" in done.err
    assert "jurybox model pull" in done.err


def test_without_a_vote_nothing_is_decided(jurybox: Callable) -> None:
    done = ask(jurybox, "mute", rubric="code-review")
    assert done.code == 3
    assert "decision" not in done.out
    assert json.loads(ask(jurybox, "mute", "--json").out)["passed"] is False


def test_ctrl_c_ends_a_judge_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "judges.py").write_text(
        "import time\ndef hang(prompt: str) -> str:\n"
        "    open('asked', 'w').close()\n    time.sleep(120)\n    return ''\n"
    )
    command = [JURYBOX, "evaluate", "--rubric", "general", "--task", "t", "--response", "r"]
    command += ["--judge", "python/judges:hang"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (tmp_path / "asked").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (3, b"", b"jurybox: interrupted\n")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("--reference", " "), "the reference answer is empty"),
        (("--task", "-", "--context", "-"), "--context: --task has already read standard input"),
        (("--response", "\udcff"), "--response: byte 0 is not UTF-8"),
    ],
)
def test_what_can_not_be_judged_is_refused_before_any_call(
    jurybox: Callable, change: tuple[str, ...], line: str
) -> None:
    done = ask(jurybox, "kind", *change)
    assert done.code == 2
    assert done.err.startswith(line)


COMPANION = ("evaluate", "--rubric", "companion", "--task", "I'm sad.", "--response", "Cheer up!")


def test_explain_shows_each_rule_on_which_words_for_how_much(jurybox: Callable) -> None:
    done = jurybox(*COMPANION, "--explain")
    assert re.search(
        r"^emotional_intelligence +0\.1 Unacceptable +0\.5 +base", done.out, re.MULTILINE
    )
    assert re.search(
        r"^ +-0\.4 +Answers an emotional message with toxic positivity +"
        r"user_has emotional_keywords and response_has toxic_phrases +"
        r"user: \u201csad\u201d, \u201cCheer up\u201d",
        done.out,
        re.MULTILINE,
    )


def test_the_judge_stands_apart_from_the_rules_c15(jurybox: Callable) -> None:
    done = ask(jurybox, "mute", rubric="companion")
    rules, _, judge = done.out.partition("next to the rules: judge score  0.5\n")
    assert "by the rubric's rules" in rules
    assert "python/judges:mute" in judge
    assert "a reply could not be read: the rubric's fallback score is used" in judge
    assert "I would rather not say." in judge


def test_a_judge_that_fails_beside_the_rules_is_exit_code_3(jurybox: Callable) -> None:
    done = ask(jurybox, "broken", rubric="companion")
    assert done.code == 3
    assert "judge score  no valid vote" in done.out
    assert "overall_quality  0." in done.out


def test_a_response_that_came_too_late_has_nothing_to_explain(jurybox: Callable) -> None:
    done = jurybox(*COMPANION, "--timed-out", "--explain")
    assert done.code == 2
    assert done.err == "--explain: a response that timed out isn't scored; omit --explain\n"
    assert "by rubric, not judged" in jurybox(*COMPANION, "--timed-out").out


def test_there_is_nothing_to_explain_without_rules(jurybox: Callable) -> None:
    done = ask(jurybox, "kind", "--explain")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("general: no rule scores this response")


STRICT = """
import json


def right(prompt: str) -> str:
    return json.dumps({"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."})
"""


def single(jurybox: Callable, *more: str) -> object:
    Path("strict.py").write_text(STRICT)
    texts = ("--task", "Capital?", "--response", "Paris.", "--reference", "Paris")
    judge = ("--judge", "python/strict:right")
    return jurybox("evaluate", "--rubric", "answer-quality", *texts, *judge, *more)


def test_a5_nothing_passes_that_was_not_measured(jurybox: Callable) -> None:
    done = single(jurybox)
    assert done.code == 1
    assert "not measured: latency_e2e_ms <= 8000, total_tokens <= 6000" in done.out
    data = single(jurybox, "--latency-e2e-ms", "10", "--json").json
    assert data["passed"] is False
    assert [rule["passed"] for rule in data["rules"]] == [True, True, True, None]


def test_a5_a_single_run_has_every_field_of_a_sample(jurybox: Callable) -> None:
    measured = ("--latency-e2e-ms", "6000", "--latency-model-ms", "900", "--input-tokens", "100")
    done = single(jurybox, *measured, "--output-tokens", "50", "--json")
    assert (done.code, done.json["passed"]) == (0, True)
    fields = {
        "accuracy_score": 2,
        "faithfulness_score": 2,
        "latency_e2e_ms": 6000,
        "latency_model_ms": 900,
        "timed_out": False,
        "input_tokens": 100,
        "output_tokens": 50,
        "total_tokens": 150,
        "token_efficiency_ratio": 0.5,
        "latency_norm": 0.5,
        "evaluator_error": None,
    }
    assert {name: done.json[name] for name in fields} == fields
    assert done.json["sample_score"] == pytest.approx(0.45 + 0.30 + 0.15 * 0.5 + 0.10)


def test_a5_a7_what_came_too_late_is_not_judged_and_fails(jurybox: Callable) -> None:
    done = single(jurybox, "--timed-out", "--latency-e2e-ms", "30000", "--json")
    assert (done.code, done.json["passed"], done.json["timed_out"]) == (1, False, True)
    scores = (done.json["accuracy_score"], done.json["faithfulness_score"])
    assert (*scores, done.json["sample_score"]) == (0, None, 0)
    assert done.json["latency_e2e_ms"] == 30000


@pytest.mark.parametrize(("score", "reasons"), [("0.1", ["judge_disagrees"]), ("0.75", [])])
def test_c15_a_judge_far_from_the_rules_queues_the_response(
    jurybox: Callable, score: str, reasons: list[str]
) -> None:
    Path("lines.py").write_text(
        f"def rate(prompt):\n    return 'Score: {score} | Reasoning: So.'\n"
    )
    response = "I understand, that sounds hard. What happened to you today?"
    texts = ("--rubric", "companion", "--task", "I'm sad.", "--response", response)
    data = jurybox("evaluate", *texts, "--judge", "python/lines:rate", "--json").json
    assert data["judge"]["score"] == float(score)
    assert data["overall_quality"] > 0.7
    assert (data["review_reasons"], data["needs_review"]) == (reasons, bool(reasons))


@pytest.mark.parametrize(
    "unused", ["--latency-e2e-ms", "--latency-model-ms", "--input-tokens", "--output-tokens"]
)
def test_a_measure_of_one_response_is_refused_where_two_are_compared(
    jurybox: Callable, unused: str
) -> None:
    pair = ("--rubric", "general", "--task", "T", "--response", "A", "--response-b", "B")
    done = jurybox("evaluate", *pair, "--judge", "python/judges:first", unused, "5")
    assert (done.code, done.out) == (2, "")
    assert "it describes one response, but two are compared" in done.err
    done = jurybox("evaluate", *pair, "--judge", "python/judges:first", "--json")
    assert "pass rules are for single responses" in done.err
    assert done.json["passed"] is None


def test_e9_a_judge_that_is_named_twice_is_refused(jurybox: Callable) -> None:
    judges = ("--judge", "python/judges:kind", "--judge", "python/judges:kind")
    done = jurybox("evaluate", "--rubric", "general", "--task", "T", "--response", "R", *judges)
    assert (done.code, done.out) == (2, "")
    assert "python/judges:kind: the model is named twice; name it once" in done.err
