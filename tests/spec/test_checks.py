"""D4: checks, deterministic criteria in the rubric document and in the rows."""

import json
import re
import time
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from commands import call
from jurybox import evaluate
from jurybox.rubric import check_rubric, parse_rubric, render_rubric
from jurybox.rubric.check_kinds import CheckedAnswer
from jurybox.rubric.checks import read_check, run_check

FRONT = """---
id: facts
version: 1.0.0
scale: 0.0-1.0
pass: ["overall >= 1"]
---
# Facts

## Criteria
"""
ROW: dict[str, Any] = {
    "reference": "Paris",
    "metadata.must_mention": ["Seine", "river"],
    "metadata.amount": "1,200",
    "metadata.schema": {"type": "object", "required": ["city"]},
}


def rubric(*checks: str, front: str = FRONT) -> str:
    lines = "\n".join(f"- {each}" for each in checks)
    return f"{front}\n### Answer\n\n```yaml checks\n{lines}\n```\n"


def outcome(entry: dict[str, Any], text: str, **measures: float) -> tuple[bool | None, str, str]:
    check, faults = read_check(entry)
    assert check is not None, faults
    done = run_check(check, ROW.get, CheckedAnswer(text, measures))
    return done.passed, done.found, done.where


@pytest.mark.parametrize(
    ("entry", "text", "expected"),
    [
        ({"equals": "{{reference}}"}, " Paris\n", (True, "“Paris”", "")),
        ({"equals": "Paris"}, "Pa ris", (False, "“Pa ris”", "differs at line 1, column 3")),
        ({"contains": "{{reference}}"}, "In\nParis", (True, "“Paris”", "line 2, column 1")),
        (
            {"contains": "{{metadata.must_mention}}"},
            "The Seine",
            (False, "no “river” in “The Seine”", ""),
        ),
        (
            {"not_contains": ["SORRY"], "ignore_case": True},
            "I am sorry",
            (False, "“SORRY”", "line 1, column 6"),
        ),
        ({"one_of": ["yes", "no"]}, "No", (False, "“No”", "")),
        ({"one_of": ["yes", "no"], "ignore_case": True}, "No", (True, "“No”", "")),
        ({"regex": r"\d{4}"}, "in 1889", (True, "“1889”", "line 1, column 4")),
        ({"regex": "^{{reference}}$"}, "Lyon", (False, "“Lyon”", "")),
        ({"number": 42}, "6 x 7 is 42.", (True, "42", "line 1, column 10")),
        (
            {"number": "{{metadata.amount}}", "tolerance": "5%"},
            "1250",
            (True, "1250", "line 1, column 1"),
        ),
        ({"number": 3, "tolerance": 0.1}, "5-3.1", (True, "3.1", "line 1, column 3")),
        ({"number": 3}, "three", (False, "no number in “three”", "")),
        ({"json": "valid"}, "{}", (True, "valid JSON", "")),
        (
            {"json_schema": {"properties": {"a": {"items": {"type": "integer"}}}}},
            '{"a": [1, "x"]}',
            (False, '"x" is not of type "integer"', "at /a/1"),
        ),
        ({"json_schema": "{{metadata.schema}}"}, '{"city": 1}', (True, "JSON that fits", "")),
        ({"words": "2-3"}, "one", (False, "1 word", "")),
        ({"characters": "<= 3"}, "one", (True, "3 characters", "")),
        ({"latency_e2e_ms": "<= 10"}, "x", (None, "no value for `latency_e2e_ms`", "")),
        ({"cost": "< 0.01"}, "x", (None, "no value for `cost`", "")),
        (
            {"similarity": "{{reference}}", "at_least": 0.8},
            "Pariss",
            (True, "0.909091 in “Pariss”", ""),
        ),
        ({"contains": "{{metadata.none}}"}, "x", (None, "no `metadata.none` in the row", "")),
        ({"number": "{{reference}}"}, "3", (None, "it is `Paris`", "")),
    ],
)
def test_d4_a_check_says_what_it_found_and_where(
    entry: dict[str, Any], text: str, expected: tuple[bool | None, str, str]
) -> None:
    assert outcome(entry, text) == expected


def test_d4_measures_are_checked_as_they_were_measured() -> None:
    assert outcome({"latency_e2e_ms": "<= 10"}, "x", latency_e2e_ms=12.5) == (False, "12.5", "")
    assert outcome({"cost": "<= 0.01"}, "x", cost=0.01) == (True, "0.01", "")


def test_d4_no_response_makes_a_check_slow() -> None:
    hostile = "a" * 200_000 + "!"
    schema = {"json_schema": {"pattern": "^(a+)+$"}}
    begin = time.perf_counter()
    assert outcome({"regex": "(a+)+$"}, hostile)[0] is False
    assert outcome(schema, json.dumps(hostile))[0] is False
    assert outcome({"number": 1}, "1" * 200_000)[0] is False
    assert outcome({"similarity": "a", "at_least": 0.5}, hostile)[0] is None
    assert time.perf_counter() - begin < 5
    assert outcome({"json": "valid"}, "[" * 200_000)[0] is False


def test_d4_a_schema_fetches_nothing() -> None:
    check, (fault,) = read_check({"json_schema": {"$ref": "http://localhost/schema"}})
    assert check is None
    assert "can't load `http://localhost/schema`" in fault.problem


def test_d4_bad_checks_are_refused_all_at_once_with_their_lines() -> None:
    document = rubric(
        "contain: Paris",
        'regex: "(?=a)"',
        "json_schema: {type: objekt}",
        'contains: "{{referense}}"',
        "{similarity: x}",
        "{words: 10, at_least: 1}",
        "{equals: a, one_of: [b]}",
    )
    found = [(each.line, each.code, each.problem) for each in check_rubric(document).findings]
    assert [line for line, _, _ in found] == [14, 15, 16, 17, 18, 19, 19, 20]
    assert found[0][2] == "there is no check `contain`"
    assert "invalid perl operator" in found[1][2]
    assert "isn't a JSON schema" in found[2][2]
    assert found[3][2] == "`contains` can't be used: there is no placeholder `referense`"
    assert found[4][2] == "`similarity` has no `at_least`"
    assert {problem for _, _, problem in found[5:7]} == {
        "`words` can't be used: it is `10`",
        "`words` has no option `at_least`",
    }
    assert found[7][2] == "a check is both `equals` and `one_of`"


def test_d4_the_document_says_that_checks_score_a_criterion() -> None:
    stated = FRONT.replace("pass:", "sources: {answer: judge}\npass:")
    (found,) = check_rubric(rubric("json: valid", front=stated)).findings
    assert (
        found.problem
        == "`sources` says that `judge` scores `answer`, but it has a `yaml checks` block"
    )
    both = rubric("json: valid") + "\n```yaml rules\nbase: 1\n```\n"
    (found,) = check_rubric(both).findings
    assert found.code == "ambiguous-source"
    read = parse_rubric(rubric('equals: "1.10"', "equals: 1.10", '"{{checks}}"'))
    assert parse_rubric(render_rubric(read)) == read
    first, second, _ = read.criteria[0].checks
    assert first == second  # a number keeps the zero that it is written with


def test_d4_a_rubric_that_extends_another_has_its_checks_or_its_own() -> None:
    Path("base.md").write_text(rubric("json: valid"))
    kept = "---\nid: ours\nextends: base.md\nversion: 1.0.0\n---\n# Ours\n"
    Path("kept.md").write_text(kept)
    own = kept + "\n## Criteria\n\n### Answer\n\n```yaml checks\n- equals: x\n```\n"
    Path("own.md").write_text(own)
    texts = {"task": "t", "response": "x"}
    assert evaluate(rubric=Path("kept.md"), **texts).passed is False
    assert evaluate(rubric=Path("own.md"), **texts).passed is True


def test_d4_checks_alone_need_no_judge_and_read_as_assertions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jurybox = partial(call, monkeypatch)
    Path("facts.md").write_text(
        rubric('contains: "{{reference}}"', 'latency_e2e_ms: "<= 100"', '"{{checks}}"')
    )
    rows: list[dict[str, Any]] = [
        {"id": "fr", "reference": "Paris", "response": "Paris", "latency_e2e_ms": 50},
        {"id": "de", "reference": "Berlin", "response": "Bonn", "latency_e2e_ms": 50},
        {"id": "it", "reference": "Rome", "response": "Rome"},
    ]
    rows[0]["checks"] = [{"words": "== 1"}, {"not_contains": "{{metadata.wrong}}"}]
    rows[0]["wrong"] = "Lyon"
    lines = [json.dumps({"task": "Capital?", **row}) for row in rows]
    Path("rows.jsonl").write_text("\n".join(lines))
    Path("suite.yaml").write_text("suite: s\nrubric: facts.md\ndataset: rows.jsonl\n")
    done = jurybox("run", "suite.yaml", "--json")
    assert "1 unscored" in done.err
    run = done.json
    assert run["summary"]["pass_rate"] == pytest.approx(1 / 3)
    # What can't be measured has no score, and is counted as such.
    assert (run["summary"]["n"]["answer_mean"], run["summary"]["unscored_rate"]) == (2, 1 / 3)
    rule = run["summary"]["failed_samples"]
    assert {count for name, count in rule.items() if name.endswith(" (not measured)")} == {1}
    shown = jurybox("show", "last", "--sample", "de", "--json").json
    assert (shown["method"], shown["answer"], shown["passed"]) == ("rules", 0.5, False)
    assert shown["criteria"][0]["checks"][0] == {
        "check": "contains",
        "passed": False,
        "expected": "“Berlin”",
        "found": "“Bonn”",
        "where": "",
    }
    table = jurybox("show", "last", "--sample", "de").out
    assert re.search("answer +0.5 +contains +fails +“Berlin” +“Bonn”", table)
    assertion = "contains fails: expected “Berlin”, found “Bonn”; 1 other passes"
    for name in ("r.md", "r.html", "r.junit.xml"):
        assert jurybox("report", "last", "-o", name).code == 0
        text = Path(name).read_text()
        if name == "r.junit.xml":
            failures = ET.fromstring(text).iter("failure")  # noqa: S314 - our own
            text = "\n".join(each.text or "" for each in failures)
        assert assertion in text
    assert "no value for `latency_e2e_ms`" in text
    assert jurybox("verify", "last").code == 0
    stricter = rubric('equals: "{{reference}}"', '"{{checks}}"').replace("1.0.0", "1.1.0")
    Path("facts.md").write_text(stricter)
    assert jurybox("rescore", "last", "--rubric", "facts.md", "--json").json["summary"][
        "pass_rate"
    ] == pytest.approx(2 / 3)
    assert jurybox("verify", "last").code == 0


def test_d4_the_cost_of_a_response_is_that_of_the_price_at_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jurybox = partial(call, monkeypatch)
    Path("facts.md").write_text(rubric('cost: "<= 0.001"'))
    Path("bot.py").write_text("def bot(prompt):\n    return 'Paris'\n")
    Path("rows.jsonl").write_text('{"id": "1", "task": "Capital?"}')
    Path("suite.yaml").write_text(
        "suite: s\nrubric: facts.md\ndataset: rows.jsonl\ntarget: {model: 'python/bot:bot'}\n"
    )
    done = jurybox("run", "suite.yaml", "--allow-unpinned", "--json")
    assert (done.code, done.json["summary"]["unscored_rate"]) == (3, 1)
    Path("prices.json").write_text('{"python/bot:bot": {"input": 0, "output": 0}}')
    monkeypatch.setenv("JURYBOX_PRICES", "prices.json")
    assert jurybox("run", "suite.yaml", "--allow-unpinned").code == 0
    Path("prices.json").write_text('{"python/bot:bot": {"input": 1, "output": 1}}')
    assert jurybox("verify", "last").code == 0


def test_d4_nothing_is_silently_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    jurybox = partial(call, monkeypatch)
    Path("facts.md").write_text(rubric("json: valid"))
    suite = "suite: s\nrubric: facts.md\ndataset: rows.jsonl\n"
    Path("suite.yaml").write_text(suite)
    row = {"task": "t", "response": "x"}
    Path("rows.jsonl").write_text(json.dumps({**row, "checks": [{"words": "== 1"}]}))
    refused = jurybox("run", "suite.yaml")
    assert refused.code == 2
    assert "the row has `checks`, but no criterion of `facts` uses them" in refused.err
    Path("rows.jsonl").write_text(json.dumps({**row, "checks": [{"word": "== 1"}]}))
    assert (
        "rows.jsonl:1:1: `checks[0]`: there is no check `word`" in jurybox("run", "suite.yaml").err
    )
    Path("rows.jsonl").write_text(json.dumps({**row, "response_b": "y"}))
    assert "checks score one response at a time" in jurybox("run", "suite.yaml").err
    Path("suite.yaml").write_text(suite + "judge: {models: ['python/x:y']}\n")
    Path("rows.jsonl").write_text(json.dumps(row))
    assert "checks score everything" in jurybox("run", "suite.yaml", "--allow-unpinned").err
