"""D3: an endpoint, a key and limits for each model, wherever a suite or an option names one."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import Done, call
from judge_server import JudgeServer
from jurybox.app.prepare import prepare
from jurybox.app.suite_choice import RunOptions
from jurybox.errors import InputError
from jurybox.reporting.stored import plan_of
from jurybox.suite import SuiteError, parse_suite
from jurybox.wiring import find_run, open_run_store

VERDICT = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "The same."}'
HEAD = "suite: own\nrubric: answer-quality\ndataset: rows.jsonl\n"


@pytest.fixture(autouse=True)
def rows(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "task": "2 + 2?", "reference": "4"}\n')


@pytest.fixture
def bot() -> Iterator[JudgeServer]:
    with JudgeServer(lambda *_: "4").running() as server:
        yield server


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(lambda *_: VERDICT).running() as server:
        yield server


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Done]:
    def go(suite: str, *arguments: str, **environment: str) -> Done:
        (tmp_path / "suite.yaml").write_text(HEAD + suite)
        return call(monkeypatch, "run", "suite.yaml", *arguments, **environment)

    return go


def plan() -> dict[str, Any]:
    store = open_run_store()
    try:
        return json.loads(find_run(store, "last").plan)
    finally:
        store.close()


def test_a_bot_and_a_judge_of_one_name_have_an_endpoint_and_a_key_each(
    run: Callable[..., Done], bot: JudgeServer, judge: JudgeServer
) -> None:
    suite = f"""
target: {{model: openai/m@1, base_url: "{bot.url}"}}
judge:
  models:
    - {{model: openai/m@1, base_url: "{judge.url}", api_key_env: JUDGE_KEY, timeout: 300}}
  votes: 1
"""
    done = run(suite, JUDGE_KEY="judges-own-key", OPENAI_API_KEY="the-usual-key")
    assert (done.code, bot.requests, judge.requests) == (0, 1, 1), done.err
    # The usual key was set for another host.
    assert (bot.keys, judge.keys) == ({None}, {"Bearer judges-own-key"})
    stored = plan()
    assert stored["judge_models"] == [
        {"model": "openai/m@1", "base_url": judge.url, "api_key_env": "JUDGE_KEY", "timeout": 300.0}
    ]
    assert stored["target"]["endpoint"]["base_url"] == bot.url
    assert "judges-own-key" not in Path(".jurybox/jurybox.db").read_bytes().decode("latin-1")


def test_a_resumed_run_uses_the_same_endpoint_and_key(
    run: Callable[..., Done], judge: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"task": f"{n}?", "reference": "4", "response": "4"}) for n in range(4)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    judge.refuse_after = 2
    suite = f'judge: {{model: openai/m@1, base_url: "{judge.url}", api_key_env: MINE, votes: 1}}'
    stopped = run(suite, "--concurrency", "1", MINE="first-key")
    assert stopped.code == 3
    assert "check the API key in MINE" in stopped.err
    judge.refuse_after = None
    missing = call(monkeypatch, "resume", "last")
    assert missing.code == 2
    assert missing.err.splitlines()[-1] == (
        "openai/m@1: MINE is not set; set it to your key, or set `base_url` to another endpoint"
    )
    assert call(monkeypatch, "resume", "last", MINE="second-key").code != 2
    assert judge.keys == {"Bearer first-key", "Bearer second-key"}
    assert judge.requests == 4


@pytest.mark.parametrize(
    ("judge_lines", "variable"),
    [
        ("judge: openai/gpt-4.1-2025-04-14", "OPENAI_API_KEY"),
        ("judge: anthropic/claude-sonnet-4-20250514", "ANTHROPIC_API_KEY"),
        ("judge: {model: openai/m@1, base_url: 'http://127.0.0.1:9/v1', api_key_env: K}", "K"),
        ("judge: {model: openai/m@1, base_url: 'https://api.openai.com/v1'}", "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_named_before_any_request(
    run: Callable[..., Done], judge_lines: str, variable: str
) -> None:
    done = run(f"target: python/nowhere:f\n{judge_lines}\n")
    assert done.code == 2
    assert f"{variable} is not set; set it to your key" in done.err
    assert not Path(".jurybox").exists()


def test_a_server_of_ones_own_needs_no_key(run: Callable[..., Done], judge: JudgeServer) -> None:
    rows = '{"task": "2 + 2?", "reference": "4", "response": "4"}\n'
    Path("rows.jsonl").write_text(rows)
    done = run(f"judge: {{models: openai/m@1, base_url: '{judge.url}', votes: 1}}")
    assert (judge.requests, judge.keys) == (1, {None}), done.err


def test_a_jury_has_different_endpoints_and_options_may_name_more(
    run: Callable[..., Done], bot: JudgeServer, judge: JudgeServer
) -> None:
    Path("rows.jsonl").write_text('{"task": "2 + 2?", "reference": "4", "response": "4"}\n')
    suite = f"""
judge:
  models:
    - {{model: openai/a@1, base_url: "{judge.url}"}}
    - openai/b@1
  base_url: "{bot.url}"
  votes: 2
"""
    run(suite)
    assert judge.requests == 1
    assert bot.requests > 1  # it says "4", which is no verdict, so it is asked again
    before = judge.requests
    # A judge that the suite knows keeps its endpoint; another one may have its own in braces.
    run(
        suite, "--judge", "openai/a@1", "--judge", f"{{model: openai/c@1, base_url: '{judge.url}'}}"
    )
    assert judge.requests == before + 2
    assert {each["model"] for each in plan()["judge_models"]} == {"openai/a@1", "openai/c@1"}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("base_url: localhost:8000", "`base_url` must be an http or https URL without a password"),
        ("base_url: 'http://me:secret@host/v1'", "`base_url` must be an http or https URL without"),
        ("api_key_env: sk-secret-key", "`api_key_env` isn't the name of an environment variable"),
        ("max_requests_per_minute: 0", "`max_requests_per_minute` is 0; use at least 1"),
        ("max_tokens_per_minute: many", "`max_tokens_per_minute` is `many`; give a whole number"),
        ("baseurl: 'http://host/v1'", "`target` has no key `baseurl`; did you mean `base_url`?"),
    ],
)
def test_mistakes_are_findings_that_quote_no_secret(lines: str, problem: str) -> None:
    with pytest.raises(SuiteError) as caught:
        parse_suite(f"{HEAD}target:\n  model: openai/m@1\n  {lines}\n".encode(), "suite.yaml")
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


def test_models_that_run_here_have_no_endpoint(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(
        f"{HEAD}target: {{model: 'python/bot:f', base_url: 'http://localhost:1/v1'}}\n"
        "judge: python/bot:f\n"
    )
    (tmp_path / "bot.py").write_text("def f(prompt):\n    return ''\n")
    with pytest.raises(InputError, match="`python` models have no endpoint; leave out `base_url`"):
        prepare("suite.yaml", RunOptions())


def test_limits_are_recorded_for_the_run(run: Callable[..., Done], bot: JudgeServer) -> None:
    suite = (
        f"target: {{model: openai/m@1, base_url: '{bot.url}', max_requests_per_minute: 600,"
        " max_tokens_per_minute: 90000}\njudge: {models: 'python/judge:f', votes: 1}\n"
    )
    Path("judge.py").write_text(f"def f(prompt):\n    return {VERDICT!r}\n")
    run(suite)
    store = open_run_store()
    try:
        target = plan_of(find_run(store, "last")).target
    finally:
        store.close()
    assert target is not None
    assert target.endpoint is not None
    assert target.endpoint.max_requests_per_minute == 600
    assert target.endpoint.max_tokens_per_minute == 90000
