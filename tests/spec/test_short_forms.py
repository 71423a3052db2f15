"""Short forms: rows and prompts inside a suite, JSON lists, `.env`; and suggestions that help."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Done
from jurybox.wiring import environment, setting

BOT = """
def answer(prompt):
    with open("asked.txt", "w") as file:
        file.write(prompt)
    return "I'm sorry to hear that. What happened?"
"""
Call = Callable[..., Done]


def shown(jurybox: Call, sample: str) -> dict[str, object]:
    return jurybox("show", "last", "--sample", sample, "--json").json


def test_rows_stand_in_the_suite_and_can_be_resumed(jurybox: Call) -> None:
    suite = """
suite: inline
rubric: companion
rows:
  - id: 7
    task: I feel low.
    response: I'm sorry to hear that.
    latency_e2e_ms: 120
    topic: {level: 2, tags: [a, "1"]}
  - {id: 8, task: 2 + 2?, response: 4}
"""
    Path("suite.yaml").write_text(suite)
    done = jurybox("run", "suite.yaml")
    assert "of 2 samples" in done.err
    found = shown(jurybox, "7")
    assert found["task"] == "I feel low."
    assert found["metadata"] == {"topic": {"level": 2, "tags": ["a", "1"]}}
    assert shown(jurybox, "8")["response"] == "4"
    Path("suite.yaml").write_text(suite.replace("task: I feel low.", "tsk: I feel low."))
    assert jurybox("run", "suite.yaml").err.startswith("suite.yaml:5:1: the row has no `task`;")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("rows: [{task: x}]\ndataset: a.jsonl", "both `rows` and a `dataset`; keep one of them"),
        ("rows: []\ndataset: a.jsonl", "both `rows` and a `dataset`; keep one of them"),
        ("rows: 5", "`rows` is `5`; give a list of rows"),
        ("rows: []", "`rows` is empty; give at least one, or name a `dataset` instead"),
        ("dataset: https://a.b/c.jsonl", "that is an address, and addresses aren't read"),
        ("dataset: a.jsonl\njudge:", "no model is named; write `provider/name`"),
        ("dataset: a.jsonl\ncolumns: [a]", "give a mapping such as `{task: prompt}`"),
        ("rows: [5]", "a row must be a mapping, not `5`; write its fields as `task: ...`"),
    ],
)
def test_rows_that_are_none_are_refused(lines: str, said: str, jurybox: Call) -> None:
    Path("suite.yaml").write_text(f"suite: inline\nrubric: companion\n{lines}\n")
    err = jurybox("run", "suite.yaml").err
    assert said in err
    assert err.count("\n") == 1


def test_an_address_given_as_dataset_is_named_as_such(jurybox: Call) -> None:
    Path("suite.yaml").write_text("suite: s\nrubric: companion\ndataset: a.jsonl\n")
    done = jurybox("run", "suite.yaml", "--dataset", "https://a.b/c.jsonl")
    assert done.err.startswith("--dataset: that is an address, and addresses aren't read; download")


@pytest.mark.parametrize(
    "prompt", ["'Answer kindly: {{task}}'", "|\n    Answer kindly:\n\n    {{task}}\n"]
)
def test_a_prompt_stands_in_the_suite(prompt: str, jurybox: Call) -> None:
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(
        "suite: inline\nrubric: companion\nrows: [{task: I feel low.}]\n"
        f"target:\n  model: python/bot:answer\n  prompt: {prompt}\n"
    )
    done = jurybox("run", "suite.yaml", "--json")
    asked = Path("asked.txt").read_text()
    assert asked.startswith("Answer kindly:")
    assert asked.rstrip().endswith("I feel low.")
    assert json.loads(done.out)["metadata"]["prompt_template_id"] == "inline"


def test_a_prompt_without_a_placeholder_is_a_path(jurybox: Call) -> None:
    Path("suite.yaml").write_text(
        "suite: inline\nrubric: companion\nrows: [{task: x}]\n"
        "target: {model: 'python/bot:answer', prompt: prompts/kind.md}\n"
    )
    assert "prompts/kind.md: no such file" in jurybox("run", "suite.yaml").err


def test_a_json_list_is_a_dataset(jurybox: Call) -> None:
    rows = [{"task": "I feel low.", "response": f"I'm sorry {number}."} for number in range(3)]
    Path("rows.json").write_text(json.dumps(rows, indent=2))
    Path("suite.yaml").write_text("suite: list\nrubric: companion\ndataset: rows.json\n")
    assert "of 3 samples" in jurybox("run", "suite.yaml").err
    assert shown(jurybox, "3")["response"] == "I'm sorry 2."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"task": "x"},\n {"task": }]', "rows.json:2:11: not valid JSON"),
        ('{"task": "x"}', "rows.json:1:1: the file is an object, not a list; write `[{...}"),
        ('[{"task": "x", "response": "y"}, 5]', "rows.json:2:1: row 2 is the number 5, not an"),
    ],
)
def test_what_is_wrong_with_a_json_list_is_located(text: str, said: str, jurybox: Call) -> None:
    Path("rows.json").write_text(text)
    Path("suite.yaml").write_text("suite: list\nrubric: companion\ndataset: rows.json\n")
    assert said in jurybox("run", "suite.yaml").err


def test_dotenv_completes_the_environment_and_overrides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert environment() is os.environ
    Path(".env").write_text(
        "# keys\nexport JURYBOX_REGION = 'here # there'\nA_KEY=sk-1#2 # mine\n"
        'B="two words"\nEMPTY=\nnot a line\nJURYBOX_STORE=from-file\n'
    )
    monkeypatch.setenv("JURYBOX_STORE", "from-environment")
    found = environment()
    assert [found[name] for name in ("A_KEY", "B", "EMPTY")] == ["sk-1#2", "two words", ""]
    stored = setting("JURYBOX_REGION"), setting("JURYBOX_STORE")
    assert stored == ("here # there", "from-environment")
    assert "A_KEY" not in os.environ


def test_a_key_may_be_in_dotenv_and_is_never_stored(jurybox: Call) -> None:
    Path("suite.yaml").write_text(
        "suite: keys\nrubric: general\nrows: [{task: x, response: y}]\n"
        "judge: {model: openai/m@1, base_url: 'http://127.0.0.1:9/v1', api_key_env: MINE}\n"
    )
    assert "MINE is not set" in jurybox("run", "suite.yaml").err
    Path(".env").write_text("MINE=a-key-of-mine\n")
    assert jurybox("run", "suite.yaml").code == 3  # the endpoint is closed, but the key is there
    assert b"a-key-of-mine" not in Path(".jurybox/jurybox.db").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--model", "x", "s.yaml"], "no such option '--model' (see `jurybox run --help`)"),
        (["run", "--limti", "5", "s.yaml"], "no such option '--limti'; did you mean `--limit`?"),
        (
            ["run", "--assert", "x", "s.yaml"],
            "no such option '--assert' (see `jurybox run --help`)",
        ),
        (["gate", "--gate", "x"], "no such option '--gate' (see `jurybox gate --help`)"),
    ],
)
def test_only_an_option_that_may_be_meant_is_suggested(
    arguments: list[str], said: str, jurybox: Call
) -> None:
    done = jurybox(*arguments)
    assert (done.code, said in done.err) == (2, True), done.err


def test_only_a_key_that_may_be_meant_is_suggested(jurybox: Call) -> None:
    Path("s.yaml").write_text("suite: a\nrubric: general\nrows: [{task: x}]\nassert: [contains]\n")
    (line,) = jurybox("run", "s.yaml").err.splitlines()
    assert "the suite has no key `assert`; use one of `suite`, " in line


@pytest.mark.parametrize(("name", "kind"), [("rows.jsonl", "dataset"), ("tone.md", "rubric")])
def test_what_is_no_suite_is_named_for_what_it_is(name: str, kind: str, jurybox: Call) -> None:
    Path(name).write_text('{"task": "x"}\n')
    assert jurybox("run", name).err == (
        f"{name}: this is a {kind}, not a suite; write a suite with a line `{kind}: {name}`, "
        "and run that\n"
    )


@pytest.mark.parametrize(
    "target",
    [
        {"system": "Be kind.\nWrite in a {{tone}} tone."},
        {"prompt": "{{task}}, for {{my readers}}"},
        {"prompt": "{{task}}, {{ tone | upper }}"},
    ],
)
def test_a_column_that_would_not_be_filled_is_refused(
    target: dict[str, str], jurybox: Call
) -> None:
    row = {"task": "x", "tone": "calm", "my readers": "all"}
    model = {"model": "openai/bot@1", "base_url": "http://localhost:9/v1"}
    suite = {"suite": "a", "rubric": "companion", "rows": [row, row], "target": model | target}
    Path("s.yaml").write_text(json.dumps(suite))
    (line,) = jurybox("run", "s.yaml").err.splitlines()
    assert "would be sent unfilled" in line


def test_rubric_models_and_dataset_are_reported_together(jurybox: Call) -> None:
    Path("rows.jsonl").write_text('{"text": "x"}\n')
    Path("s.yaml").write_text(
        "suite: a\nrubric: general\ndataset: rows.jsonl\njudge: openai/unpinned\n"
    )
    lines = jurybox("run", "s.yaml").err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["openai/unpinned", *["rows.jsonl"] * 2]
    Path("s.yaml").write_text(
        "suite: a\nrubric: generl\ndataset: nowhere.jsonl\njudge: openai/one\ntarget: openai/two\n"
    )
    lines = jurybox("run", "s.yaml").err.splitlines()
    named = [line.partition(":")[0] for line in lines]
    assert named == ["openai/one", "openai/two", "generl", "nowhere.jsonl"]


def test_an_option_replaces_the_dataset_and_the_votes_d8(jurybox: Call) -> None:
    Path("judge.py").write_text("def f(prompt):\n    return 'Score: 0.7 | Reasoning: Kind.'\n")
    Path("s.yaml").write_text(
        "suite: a\nrubric: companion\nrows: [{q: x, a: y}]\ncolumns: {task: q, response: a}\n"
        "judge: {model: 'python/judge:f', votes: 3}\n"
    )
    Path("other.jsonl").write_text('{"q": "I feel low.", "a": "I am sorry."}\n' * 2)
    done = jurybox("run", "s.yaml", "--dataset", "other.jsonl", "--votes", "1", "--json")
    metadata = json.loads(done.out)["metadata"]
    assert (metadata["dataset_id"], metadata["dataset_rows"]) == ("other.jsonl", 2)
    assert metadata["votes"] == 1
