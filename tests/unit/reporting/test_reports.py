"""Which form of report a file's name asks for, and the one for programs."""

import io
import json
from collections.abc import Callable

import pytest

from jurybox.errors import InputError
from jurybox.reporting.reports import report_format, write_report

GOOD = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."}'


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.html", "html"),
        ("a.HTM", "html"),
        ("a.md", "md"),
        ("a/B.JSON", "json"),
        ("a.xml", "junit"),
        ("a.junit.xml", "junit"),
    ],
)
def test_the_ending_says_the_form(name: str, form: str) -> None:
    assert report_format(name) == form


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.md.bak"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"\.html, \.md, \.json or \.junit\.xml, or use"):
        report_format(name)


def test_the_json_report_is_the_run_with_what_needs_attention(
    make_run: Callable, row: Callable
) -> None:
    made = make_run([row("a"), row("b", late=True)], lambda _: GOOD)
    file = io.BytesIO()
    write_report(file, "json", made.view, made.store)
    data = json.loads(file.getvalue())
    assert data["run_id"] == "run-a"
    assert data["summary"]["samples"] == 2
    assert data["release_ready"] is False
    assert [(each["kind"], each["count"]) for each in data["attention"]] == [("target_error", 1)]
    assert data["attention"][0]["samples"] == [{"id": "b", "repeat": 0}]
    assert [each["id"] for each in data["worst"]] == ["b", "a"]
