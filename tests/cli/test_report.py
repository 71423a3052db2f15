"""``jurybox report`` (section I of the specification), on runs that the command itself has made."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from jurybox.reporting.html import html_render

ROWS = [
    {"id": "kind", "task": "I feel sad", "response": "I'm sorry. Do you want to talk about it?"},
    {"id": "late", "task": "Hello", "response": "", "timed_out": True, "latency_e2e_ms": 9000},
]
SUITE = """
suite: talk
rubric: companion
dataset: rows.jsonl
"""


@pytest.fixture(autouse=True)
def _run(tmp_path: Path, jurybox: Callable, once: Callable) -> None:
    def make() -> None:
        (tmp_path / "suite.yaml").write_text(SUITE)
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        done = jurybox("run", "suite.yaml", "--json")
        assert done.json["status"] == "finished", done.err

    once(make)


def test_an_html_report_is_one_file_with_the_verdict_first(
    jurybox: Callable, tmp_path: Path
) -> None:
    done = jurybox("report", "last", "-o", "x.html")
    assert (done.code, done.out, done.err) == (0, "", "wrote x.html: 2 samples\n")
    assert [path.name for path in tmp_path.glob("x*")] == ["x.html"]
    text = (tmp_path / "x.html").read_text()
    assert text.startswith("<!DOCTYPE html>\n")
    places = [text.index(f'<section id="{name}"') for name in ("decision", "attention", "criteria")]
    assert places == sorted(places)
    assert "no response" in text[places[1] : places[2]]
    assert "http://" not in text
    assert "https://" not in text


def test_commands_for_the_samples_that_a_report_leaves_out_name_its_store(
    jurybox: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_render, "LARGEST", 1)
    own = (tmp_path / ".jurybox/jurybox.db").rename(tmp_path / "own.db")
    done = jurybox("report", "last", "-o", "x.html", "--store", str(own))
    assert "only the worst 1 of 2 samples fit" in done.err
    assert f"`jurybox serve --store {own}` shows all of them" in done.err
    assert re.search(rf"`jurybox export \S+ --store {own}` with `-o FILE` writes them", done.err)


def test_a_markdown_report_shows_the_verdict_and_why_before_what_needs_attention(
    started: Callable, tmp_path: Path
) -> None:
    done = started("report", "last", "-o", "x.md")
    assert (done.code, done.out, done.err) == (0, "", "wrote x.md: 2 samples\n")
    text = (tmp_path / "x.md").read_text()
    heading, _, why, _, run, *_ = text.splitlines()
    assert heading == "# talk: Needs revision"
    assert why.startswith("**Overall quality averages 0.363, below 0.6; ")
    assert run.startswith("Run `")
    assert text.index("`target_error`") < text.index("## Metrics")


def test_a_json_report_is_the_run_and_more(jurybox: Callable, tmp_path: Path) -> None:
    done = jurybox("report", "last", "-o", "x.json", "--json")
    assert done.json == {"written": "x.json", "rows": 2}
    report = json.loads((tmp_path / "x.json").read_text())
    shown = jurybox("show", "last", "--json").json
    assert {name: report[name] for name in shown} == shown
    assert report["attention"][0]["samples"] == [{"id": "late", "repeat": 0}]


def test_a_junit_report_has_a_case_for_every_sample(jurybox: Callable, tmp_path: Path) -> None:
    assert jurybox("report", "last", "-o", "x.junit.xml").code == 0
    root = ET.parse(tmp_path / "x.junit.xml").getroot()  # noqa: S314 - our own document
    assert [each.get("name") for each in root.iter("testcase")] == ["kind", "late"]
    assert (root.get("tests"), root.get("failures")) == ("2", "1")


def test_a_report_can_go_to_standard_output(jurybox: Callable) -> None:
    done = jurybox("report", "last", "-o", "-")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("# talk")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("last", "-o", "x.pdf"), "x.pdf: `.pdf` isn't a report format"),
        (("nosuch", "-o", "x.md"), "nosuch: no such run"),
        (("last", "-o", "-", "--json"), "exclude each other"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_2(
    jurybox: Callable, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = jurybox("report", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not list(tmp_path.glob("x.*"))
