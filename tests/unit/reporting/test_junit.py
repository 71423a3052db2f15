"""A run as JUnit XML, for the pages of build servers."""

import io
import json
from collections.abc import Callable
from xml.etree import ElementTree as ET

from jurybox.reporting.reports import write_junit

GOOD = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."}'
WRONG = '{"accuracy_score": 0, "faithfulness_score": 2, "rationale": "It is <wrong> & so on."}'


def junit(made: object) -> ET.Element:
    file = io.BytesIO()
    write_junit(file, made.view, made.store)
    return ET.fromstring(file.getvalue())  # noqa: S314 - our own document


def case(root: ET.Element, name: str) -> ET.Element:
    (found,) = [each for each in root.iter("testcase") if each.get("name") == name]
    return found


def test_gates_and_samples_are_test_cases(make_run: Callable, row: Callable) -> None:
    rows = [row("good", "good"), row("wrong", "wrong"), row("mute", "mute"), row("late", late=True)]
    replies = {"good": GOOD, "wrong": WRONG, "mute": "no"}
    root = junit(
        make_run(rows, lambda prompt: next(replies[name] for name in replies if name in prompt))
    )
    gates, samples = root.findall("testsuite")
    assert (gates.get("name"), samples.get("name")) == ("gates", "samples")
    assert [each.get("name") for each in samples.iter("testcase")] == [
        "good",
        "wrong",
        "mute",
        "late",
    ]
    assert list(case(root, "good")) == []
    failure = case(root, "wrong").find("failure")
    assert failure.get("message") == "fails: accuracy_score >= 1 (is 0)"
    assert "It is <wrong> & so on." in failure.text
    error = case(root, "mute").find("error")
    assert error.get("type") == "parse_error"
    assert case(root, "mute").find("system-out").text == "needs review: unscored"
    late = case(root, "late").find("failure")
    assert late.get("type") == "target_error"
    assert "timed out" in late.get("message")
    gate = case(root, "pass_rate >= 0.85").find("failure")
    assert gate.get("message") == "pass_rate >= 0.85 fails: the value is 0.25"


def test_counts_are_those_of_the_cases(make_run: Callable, row: Callable) -> None:
    rows = [row("good", "good"), row("mute", "mute"), row("late", late=True), row("no", ms=None)]
    made = make_run(rows, lambda prompt: "no" if "mute" in prompt else GOOD, repeats=2)
    root = junit(made)
    for suite in [root, *root.findall("testsuite")]:
        assert int(suite.get("tests")) == len(list(suite.iter("testcase")))
        for tag, name in (("failure", "failures"), ("error", "errors")):
            assert int(suite.get(name)) == len(list(suite.iter(tag)))
    assert root.findall("testsuite")[1].get("failures") == "4"
    assert case(root, "good (repeat 1)").get("time") == "1.000"


def test_a_sample_that_was_not_measured_fails_and_says_so_a5(
    make_run: Callable, row: Callable
) -> None:
    root = junit(make_run([row("a", ms=None)], lambda _: GOOD))
    assert case(root, "a").find("failure").get("message") == "not measured: latency_e2e_ms <= 8000"


def test_a_rubric_without_pass_rules_fails_nobody(make_run: Callable, row: Callable) -> None:
    root = junit(make_run([row("a")], rubric="companion"))
    assert list(case(root, "a")) == []
    assert root.get("tests") == "1"


def test_an_unfinished_run_does_not_look_like_a_good_one(make_run: Callable, row: Callable) -> None:
    root = junit(make_run([row("a"), row("b")], lambda _: GOOD, left_out=1))
    assert case(root, "the run is finished").find("error").get("message") == (
        "1 of 2 samples are stored"
    )
    assert len(list(root.findall("testsuite")[1])) == 1


def test_the_run_is_named(make_run: Callable, row: Callable) -> None:
    made = make_run([row("a")], lambda _: GOOD)
    known = {each.get("name"): each.get("value") for each in junit(made).iter("property")}
    assert known["run_id"] == "run-a"
    assert known["digest"] == made.row.digest
    assert known["rubric"].startswith("answer-quality 1.0.0 ")


def test_what_xml_cannot_hold_or_nobody_sees_is_replaced(make_run: Callable, row: Callable) -> None:
    hidden = "\0\x1b\ufffe\uffff\u202e\u200b"
    reply = WRONG.replace("<wrong>", json.dumps(hidden)[1:-1])
    root = junit(make_run([row("a")], lambda _: reply))
    assert f"It is {len(hidden) * chr(0xFFFD)} & so on." in case(root, "a").find("failure").text
