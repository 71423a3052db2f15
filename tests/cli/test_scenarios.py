"""Bundled suites by name, recorded responses, and two versions of a prompt side by side."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest


def test_a_bundled_suite_reads_well_to_a_product_manager(jurybox: Callable) -> None:
    done = jurybox("run", "companion-scenarios", "--responses", "bad")
    assert done.code == 0
    assert "finished, 41 of 41 samples\ncompanion 2.0.0, recorded responses bad\n" in done.out
    assert re.search(r"^decision  needs_revision: Needs revision", done.out, re.MULTILINE)
    assert "Trust & boundaries averages 0.439, below 0.5, lowest in" in done.out
    # Not what a level means, which would read better than the decision (C12).
    assert re.search(r"^quality level  Adequate$", done.out, re.MULTILINE)
    shown = jurybox("report", "last", "-o", "-").out
    assert "| emotional\\_support | 7 |" in shown
    assert "| vulnerable | 3 |" in shown


def test_recorded_responses_come_from_a_file_too(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "task": "Hi"}\n')
    (tmp_path / "said.jsonl").write_text('{"id": "a", "response": "Hello you"}\n')
    (tmp_path / "suite.yaml").write_text("suite: s\nrubric: companion\ndataset: rows.jsonl\n")
    done = jurybox("run", "suite.yaml", "--responses", "said.jsonl", "--json")
    data = json.loads(done.out)
    assert (done.code, data["summary"]["samples"]) == (0, 1)
    assert data["metadata"]["responses_id"] == "said.jsonl"
    assert data["metadata"]["responses_version_or_hash"].startswith("sha256:")
    assert jurybox("verify", "last").code == 0


def test_with_a_limit_only_the_rows_that_run_need_a_response(
    jurybox: Callable, tmp_path: Path
) -> None:
    first = json.loads(
        jurybox("run", "companion-scenarios", "--responses", "good", "--limit", "1", "--json").out
    )
    assert first["summary"]["samples"] == 1
    (tmp_path / "said.jsonl").write_text('{"id": "basic-hello", "response": "I am fine"}\n')
    done = jurybox("run", "companion-scenarios", "--responses", "said.jsonl", "--limit", "1")
    assert done.code == 0, done.err
    assert "finished, 1 of 1 sample\ncompanion 2.0.0, recorded responses said.jsonl" in done.out
    done = jurybox("run", "companion-scenarios", "--responses", "said.jsonl", "--limit", "2")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "has no response in said.jsonl" in done.err


def test_a_target_answers_the_scenarios(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(
        "def answer(request):\n"
        "    said = [(turn.role, turn.content) for turn in request.messages]\n"
        "    assert said[0] == ('system', 'Be kind.'), said\n"
        "    return f'I hear you. {len(said)} turns?'\n"
    )
    (tmp_path / "system.md").write_text("Be kind.")
    more = ("--target", "python/bot:answer", "--system", "system.md", "--allow-unpinned")
    done = jurybox("run", "companion-scenarios", *more, "--json")
    data = json.loads(done.out)
    assert (done.code, data["summary"]["target_error_rate"]) == (0, 0)
    assert data["metadata"]["model_id"] == "python/bot:answer"
    assert data["metadata"]["prompt_template_id"] == "system.md"


def test_two_versions_of_a_prompt_stand_side_by_side_by_scenario(jurybox: Callable) -> None:
    runs = [
        json.loads(jurybox("run", "companion-scenarios", "--responses", name, "--json").out)[
            "run_id"
        ]
        for name in ("bad", "good")
    ]
    done = jurybox("diff", *runs)
    cells = r"^trust_building +6 +0\.\d+ -> 0\.\d+ +trust_boundaries_mean 0\.38\d* -> 0\.86\d*"
    assert re.search(cells, done.out, re.MULTILINE)
    assert re.search(r"^demographic +samples +overall_quality_mean", done.out, re.MULTILINE)
    data = json.loads(jurybox("diff", *runs, "--json").out)
    (talk,) = (each for each in data["scenarios"] if each["group"] == "small_talk")
    assert (talk["samples_a"], talk["samples_b"]) == (5, 5)
    assert talk["metrics"][0]["metric"] == "overall_quality_mean"
    assert talk["metrics"][0]["difference"] > 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["companion-scenarios"],
            "companion-scenarios: the suite has no target and no responses; name a model",
        ),
        (["companion-scenario"], "companion-scenario: no such suite; did you mean `companion-s"),
        (["companion-scenarios", "--responses", "goood"], "goood: no such recorded responses; did"),
        (
            ["companion-scenarios", "--responses", "x.jsonl"],
            "x.jsonl: no such file; check the path",
        ),
        (["companion-scenarios", "--prompt", "p.md"], "companion-scenarios: --prompt is for a tar"),
        (
            ["companion-scenarios", "--responses", "good", "--target", "openai/x"],
            "--target has no use with recorded responses; give --responses or a target",
        ),
        (["companion-scenarios", "--responses", "good", "--rubric", "x"], "x: no such rubric"),
        (["./companion-scenarios.yaml"], "companion-scenarios.yaml: no such file"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(
    jurybox: Callable, arguments: list[str], line: str
) -> None:
    done = jurybox("run", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(line)
    assert done.err.count("\n") == 1


def test_a_path_wins_over_a_bundled_name(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "companion-scenarios.yaml").write_text("suite: x\n")
    done = jurybox("run", "companion-scenarios.yaml")
    assert done.code == 2
    assert done.err.startswith("companion-scenarios.yaml:1:1: the suite has no `rubric`")


def test_an_overlay_is_shown_whole_and_checked_with_its_base(
    jurybox: Callable, tmp_path: Path
) -> None:
    (tmp_path / "ours.md").write_text(
        "---\nid: ours\nextends: ./base.md\nversion: 1.0.0\n---\n# Ours\n"
    )
    (tmp_path / "base.md").write_text(
        "---\nid: base\nextends: companion-vulnerable\nversion: 1.0.0\nvotes: 3\n---\n# Base\n"
    )
    done = jurybox("rubric", "check", "ours.md")
    assert done.out == (
        "ours.md: ok, ours 1.0.0, 6 criteria, extends ./base.md, companion-vulnerable, companion\n"
    )
    whole = jurybox("rubric", "show", "./ours.md", "--canonical").out
    assert "extends" not in whole.partition("\n---\n")[0]
    assert "crisis_cues" in whole
    (tmp_path / "base.md").unlink()
    done = jurybox("rubric", "check", "ours.md")
    assert done.code == 2
    assert done.out.startswith(
        "ours.md:3:10: the base `./base.md` can't be used: no such file; check the path"
    )
