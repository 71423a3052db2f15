"""E16: jurybox for agents, asked by the official MCP client, in this process and over stdio."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from commands import JURYBOX, call
from lazily import Lazily

if TYPE_CHECKING:
    from mcp.client.client import Client

mcp = Lazily("mcp")
served = Lazily("jurybox.mcp_server")
clients = Lazily("mcp.client.client")

JUDGE = """
import json, re

def fair(prompt):
    ids = re.findall(r"^### .*\\(`(\\w+)`:", prompt, re.MULTILINE)
    items = re.findall(r"^## (\\w+)$", prompt[prompt.index("# Bias checklist"):], re.MULTILINE)
    reply = {
        "reasoning": dict.fromkeys(ids, "It is as it should be."),
        "bias_checklist": {name: f"Not at work: {name}." for name in items},
        "safety_concerns": [],
    }
    if "<<<RESPONSE B" in prompt:
        side = "A" if prompt.index("Four.") < prompt.index("Five.") else "B"
        return json.dumps(reply | {"preferences": dict.fromkeys(ids, side), "winner": side})
    return json.dumps(reply | {"scores": dict.fromkeys(ids, 4)})
"""
T = TypeVar("T")
Answer = dict[str, Any]
ASKED = {"rubric": "general", "task": "What is 2 + 2?", "response": "Four."}
PAIR = {**ASKED, "response_b": "Five."}
JUDGED = {"judges": ["python/mcp_judges:fair"]}


def asked(work: Callable[["Client"], Awaitable[T]], server: Any = None) -> T:  # noqa: ANN401
    async def ask() -> T:
        async with clients.Client(server or served.mcp_server(None)) as client:
            return await work(client)

    return asyncio.run(ask())


def tools(*calls: tuple[str, dict[str, Any]]) -> list[Answer]:
    """Call tools; what each says is the same as text and as data."""

    async def work(client: "Client") -> list[Any]:
        return [await client.call_tool(*each) for each in calls]

    return [_answer(each) for each in asked(work)]


def _answer(result: Any) -> Answer:  # noqa: ANN401 - the library's
    (content,) = result.content
    if result.is_error:
        return {"error": content.text}
    assert json.loads(content.text) == result.structured_content
    return result.structured_content


@pytest.fixture(autouse=True)
def _judges(tmp_path: Path) -> None:
    (tmp_path / "mcp_judges.py").write_text(JUDGE)


def test_the_tools_are_these_and_each_says_what_it_does() -> None:
    listed = asked(lambda client: client.list_tools()).tools
    names = ["evaluate", "compare", "run", "show", "list_rubrics", "check_rubric", "prompt"]
    assert [each.name for each in listed] == [*names, "check_reply"]
    assert all(each.description for each in listed)
    rubric = listed[0].input_schema["properties"]["rubric"]
    assert "a rubric's name or path" in rubric["description"]


def test_a_response_is_judged_and_a_pair_compared() -> None:
    one, two = tools(
        ("evaluate", {**ASKED, **JUDGED, "votes": 1}), ("compare", {**PAIR, **JUDGED, "votes": 1})
    )
    assert (one["total_score"], one["passed"]) == (20, True)
    assert (two["winner"], two["stable"]) == ("A", True)


def test_a_run_reports_its_progress_and_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, "init").code == 0
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def work(client: "Client") -> tuple[Any, Any, Any]:
        ran = await client.call_tool("run", {"suite": "suite.yaml"}, progress_callback=hear)
        shown = await client.call_tool("show", {"run": "last"})
        sample = await client.call_tool("show", {"run": "last", "sample": "novel"})
        return ran.structured_content, shown.structured_content, sample.structured_content

    command = mcp.StdioServerParameters(command=str(JURYBOX), args=["mcp"], cwd=Path.cwd())
    ran, shown, sample = asked(work, command)
    assert heard[-1][:2] == (6, 6)
    assert [each["passed"] for each in ran["gates"]] == [True, False, False, True]
    assert ran["release_ready"] is False
    assert shown["run_id"] == ran["run_id"]
    assert (
        sample["response"] == "Mary Shelley wrote Frankenstein in 1795, at the request of Napoleon."
    )
    again = call(monkeypatch, "show", "last", "--json").json
    assert {**shown, "elapsed_s": 0} == {**again, "elapsed_s": 0}


def test_rubrics_are_listed_and_checked(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("# No front matter\n")
    listed, checked = tools(("list_rubrics", {}), ("check_rubric", {"rubric": "bad.md"}))
    names = [each["name"] for each in listed["rubrics"]]
    assert {"general", "code-review", "companion", "answer-quality"} <= set(names)
    (document,) = checked["documents"]
    assert document["ok"] is False
    assert document["findings"][0]["line"] == 1


def test_an_agent_judges_itself() -> None:
    judge: dict[str, Any] = {}
    exec(JUDGE, judge)  # noqa: S102 - the judge of this test, as the agent

    async def work(client: "Client") -> list[Any]:
        first = await client.call_tool("prompt", ASKED)
        (prompt,) = _answer(first)["prompts"]
        replies = ["Good.", judge["fair"](prompt["text"])]
        wrong = await client.call_tool("check_reply", {**ASKED, "replies": replies[:1]})
        right = await client.call_tool("check_reply", {**ASKED, "replies": replies})
        return [wrong, right]

    turn, report = map(_answer, asked(work))
    assert turn["complete"] is False
    assert "no JSON object" in turn["prompts"][0]["defect"]
    assert (report["total_score"], report["judges"]) == (20, ["agent"])


def test_errors_are_those_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**ASKED, "rubric": "generel", **JUDGED}
    judge = "--judge python/mcp_judges:fair"
    same = {
        f"evaluate --rubric generel --task x --response y {judge}": ("evaluate", wrong),
        "show last": ("show", {"run": "last"}),
        "run none.yaml": ("run", {"suite": "none.yaml"}),
        "prompt --rubric general --task x --response=": ("prompt", {**ASKED, "response": ""}),
    }
    expected = [call(monkeypatch, *command.split()) for command in same]
    assert [each.code for each in expected] == [2, 2, 2, 2]
    assert tools(*same.values()) == [{"error": each.err.strip()} for each in expected]


def test_an_argument_that_would_be_ignored_is_refused() -> None:
    """E16: a slip in `response_b` must not judge one response instead of a pair."""
    (answer,) = tools(("prompt", {**ASKED, "respons_b": "5"}))
    assert answer == {"error": "there is no argument `respons_b`; did you mean `response_b`?"}
