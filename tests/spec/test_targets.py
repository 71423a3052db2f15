"""D5: several targets in one suite, one run each, compared side by side."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands import Done, call
from judge_server import JudgeServer
from jurybox.suite import SuiteError, parse_suite
from jurybox.wiring import open_run_store
from pages_client import pages_of

Jurybox = Callable[..., Done]
VERDICT = '{{"accuracy_score": {0}, "faithfulness_score": {0}, "rationale": "So it is."}}'
HEAD = "suite: bots\nrubric: answer-quality\ndataset: rows.jsonl\n"
SUITE = """
targets:
  - {name: short, model: openai/bot@1, prompt: "In short, for {{audience}}: {{task}}"}
  - {name: long, model: openai/bot@1, prompt: "At length: {{task}}"}
  - {name: before, responses: before.jsonl}
judge: {models: [openai/judge@1], votes: 1}
"""


def reply(request: dict[str, Any], number: int) -> str:
    """Answer well when asked for a short answer; judge by whether that was so."""
    del number
    text = str(request["messages"][-1]["content"])
    if text.startswith(("In short", "At length")):
        return "BRIEF" if text.startswith("In short, for children") else "A long story"
    return VERDICT.format(2 if "BRIEF" in text else 0)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(reply).running() as running:
        running.model = None
        yield running


@pytest.fixture
def jurybox(monkeypatch: pytest.MonkeyPatch, server: JudgeServer, tmp_path: Path) -> Jurybox:
    rows = [
        {"id": f"q{n}", "task": f"Task {n}", "reference": "A short one", "audience": "children"}
        for n in range(12)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = [{"id": f"q{n}", "response": f"<b>Old {n}</b>"} for n in range(12)]
    (tmp_path / "before.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    (tmp_path / "suite.yaml").write_text(HEAD + SUITE)
    return partial(call, monkeypatch, OPENAI_BASE_URL=server.url)


def test_each_target_has_a_run_and_they_are_compared(jurybox: Jurybox) -> None:
    done = jurybox("run", "suite.yaml", "--name", "try", "--json")
    assert done.code == 1, done.err
    data = json.loads(done.out)
    runs = data["runs"]
    assert [each["metadata"]["target_name"] for each in runs] == ["short", "long", "before"]
    assert [each["metadata"]["name"] for each in runs] == ["try-short", "try-long", "try-before"]
    assert len({each["metadata"]["group"] for each in runs}) == 1
    assert [each["summary"]["accuracy_mean"] for each in runs] == [2, 0, 0]
    compared = data["comparison"]
    assert compared["against"] == "short"
    assert [each["target"] for each in compared["differences"]] == ["long", "before"]
    first = compared["differences"][0]
    assert "accuracy_score" in first["regressions"]
    assert {"metric", "p_adjusted"} <= first["tested"][0].keys()
    for name in ("try-short", "try-long", "try-before"):
        assert jurybox("verify", name).code == 0
    assert [jurybox("gate", name).code for name in ("try-short", "try-long")] == [0, 1]
    listed = jurybox("runs", "--json").json["runs"]
    assert [each["target"] for each in listed] == ["before", "long", "short"]


def test_the_terminal_shows_them_side_by_side(jurybox: Jurybox) -> None:
    done = jurybox("run", "suite.yaml")
    lines = done.out.splitlines()
    head = next(line for line in lines if line.startswith("metric"))
    assert head.split() == ["metric", "short", "long", "before"]
    row = next(line for line in lines if line.startswith("accuracy_mean"))
    assert row.split() == ["accuracy_mean", "2.000", "0.000", "0.000"]
    assert any(line.startswith("long against short  worse in ") for line in lines)
    assert "jurybox diff" in done.out
    assert done.code == 1


def test_the_table_says_how_many_samples_a_mean_lacks(jurybox: Jurybox) -> None:
    said = [{"id": f"q{n}", "response": "" if n < 3 else "Old"} for n in range(12)]
    Path("before.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said))
    lines = jurybox("run", "suite.yaml").out.splitlines()
    assert ["target_error_rate", "0.0%", "0.0%", "25.0%"] in [line.split() for line in lines]


def test_the_report_has_the_outputs_in_columns(jurybox: Jurybox) -> None:
    jurybox("run", "suite.yaml", "--name", "try")
    names = ("try-short", "try-long", "try-before")
    done = jurybox("diff", *names, "-o", "side.html")
    assert done.code == 0, done.err
    page = Path("side.html").read_text()
    for text in ("BRIEF", "A long story", "&lt;b&gt;Old 3&lt;/b&gt;", "short", "before", "q11"):
        assert text in page
    assert "<b>Old" not in page
    assert "Where they differ <small>12 samples" in page
    assert re.search("</bdi>: worse in [^<]*accuracy", page)
    table = jurybox("diff", *names)
    assert (table.code, table.out.startswith("metric")) == (0, True)
    data = json.loads(jurybox("diff", *names, "--json").out)
    assert [each["target"] for each in data["differences"]] == ["long", "before"]
    assert data["samples"][0]["outputs"][0]["response"] == "BRIEF"


def test_the_web_page_has_the_outputs_in_columns(jurybox: Jurybox) -> None:
    runs = json.loads(jurybox("run", "suite.yaml", "--json").out)["runs"]
    query = "&".join(f"run={run['run_id']}" for run in runs)
    with contextlib.closing(open_run_store()) as store:
        page = pages_of(store).get(f"/side-by-side?{query}")
        alone = pages_of(store).get(f"/side-by-side?run={runs[0]['run_id']}")
    assert page.status_code == 200
    for text in ("BRIEF", "A long story", "&lt;b&gt;Old 3&lt;/b&gt;", "Where they differ"):
        assert text in page.text
    assert f'href="/runs/{runs[0]["run_id"]}/samples/0?beside=' in page.text
    assert (alone.status_code, alone.headers["location"][:12]) == (303, "/compare?run")


def test_a_run_that_is_stopped_keeps_the_others_and_can_be_resumed(
    jurybox: Jurybox, server: JudgeServer
) -> None:
    server.refuse_after = 30
    done = jurybox("run", "suite.yaml", "--name", "try", "--json")
    assert done.code == 3
    statuses = [each["status"] for each in json.loads(done.out)["runs"]]
    assert statuses[0] == "finished"
    assert "stopped" in statuses
    server.refuse_after = None
    assert jurybox("resume", "try-long").code == 1


def test_a_column_that_no_row_has_is_refused_before_any_call(
    jurybox: Jurybox, server: JudgeServer
) -> None:
    Path("suite.yaml").write_text(HEAD + SUITE.replace("{{audience}}", "{{audienc}}"))
    done = jurybox("run", "suite.yaml")
    assert (done.code, done.out, server.requests) == (2, "", 0)
    assert "`audienc`" in done.err
    for name in ("reference", "response"):
        Path("suite.yaml").write_text(HEAD + SUITE.replace("{{audience}}", f"{{{{{name}}}}}"))
        assert jurybox("run", "suite.yaml").code == 2


@pytest.mark.parametrize(
    ("targets", "why"),
    [
        ("targets: [{model: openai/a@1}, {model: openai/a@1}]", "two targets are called"),
        (
            "targets: [{name: a, responses: x.jsonl, model: openai/a@1}]",
            "`responses` and a `model`",
        ),
        ("targets: [{name: two words, model: openai/a@1}]", "can't be a name"),
        ("target: openai/a@1\ntargets: [openai/b@1]", "both a `target` and `targets`"),
        ("targets: []", "`targets` is empty"),
    ],
)
def test_targets_that_can_not_be_told_apart_are_refused(targets: str, why: str) -> None:
    with pytest.raises(SuiteError, match=why):
        parse_suite(f"{HEAD}{targets}\n".encode(), "suite.yaml")


def test_options_that_name_a_target_contradict_targets(jurybox: Jurybox) -> None:
    done = jurybox("run", "suite.yaml", "--target", "openai/bot@1")
    assert done.code == 2
    assert "the suite has `targets`" in done.err
