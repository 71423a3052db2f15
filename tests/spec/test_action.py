"""The GitHub Action: the scripts of its steps, executed here with GitHub's files in a folder."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from commands import call

ROOT = Path(__file__).parents[2]


class Workflow:
    """Runs the steps one after the other, as a runner does, until one fails."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        self.log = ""
        self.values = {f"inputs.{name}": value for name, value in inputs.items()}
        self.values["github.event.pull_request.html_url"] = "https://example.test/pull/1"
        self.action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
        for name, each in self.action["inputs"].items():
            self.values.setdefault(f"inputs.{name}", each.get("default", ""))

    def run(self, *, comments: bool = False) -> int:
        for step in self.action["runs"]["steps"]:
            done = f"steps.{step.get('id')}.outputs.code" in self.values
            code = 0 if done or ("if" in step and not comments) else self._run(step)
            if code:
                return code
        return 0

    def did_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Do in this process what the step `run` does, which takes it three."""
        done = call(
            monkeypatch, "run", "suite.yaml", "--name", self.values["inputs.name"], "--json"
        )
        call(monkeypatch, "report", "last", "-o", "report.md")
        (self.folder / "run.json").write_text(done.out)
        self.values["steps.run.outputs.folder"] = str(self.folder)
        self.values["steps.run.outputs.code"] = str(done.code)

    def _run(self, step: dict[str, Any]) -> int:
        output = self.folder / "output"
        output.write_text("")
        done = subprocess.run(
            ["/bin/bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "PATH": f"{self.folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.folder / "temp"),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
                **{name: self._filled(value) for name, value in step.get("env", {}).items()},
            },
        )
        self.log += done.stdout + done.stderr
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode

    def _filled(self, value: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: self.values[found[1]], value)


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert call(monkeypatch, "init").code == 0
    return tmp_path


def test_a_failed_gate_fails_the_job_and_the_report_is_the_only_comment(suite: Path) -> None:
    rows = suite / "questions.jsonl"
    rows.write_text(rows.read_text().replace('"task": "', '"task": "@octocat, '))
    stub = suite / "gh"
    stub.write_text('#!/bin/sh\necho "$@" > gh.txt\ncp "$5" gh-body.md\n')
    stub.chmod(0o755)
    workflow = Workflow(suite, suite="suite.yaml", name="v1", token="t")  # noqa: S106 - no secret
    assert workflow.run(comments=True) == 1
    assert "::error title=gate fails::pass_rate >= 0.85 (0.666" in workflow.log
    summary = (suite / "summary.md").read_text()
    assert "pass_rate" in summary
    assert "Compared with the baseline" not in summary
    files = {path.name for path in (suite / "temp" / "jurybox").iterdir()}
    assert {"run.json", "report.md", "results.junit.xml"} <= files
    asked = (suite / "gh.txt").read_text()
    assert "pr comment https://example.test/pull/1" in asked
    assert "--edit-last --create-if-none" in asked
    body = (suite / "gh-body.md").read_text()
    assert "pass_rate" in body
    assert "@\u200boctocat" in body
    assert "@octocat" not in body


def test_a_suite_that_cannot_run_fails_at_once(suite: Path) -> None:
    workflow = Workflow(suite, suite="none.yaml", name="v1")
    assert workflow.run() == 2
    assert "::error title=jurybox::the suite could not be run (exit code 2)" in workflow.log


def test_an_unknown_baseline_fails_the_job(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = Workflow(suite, suite="suite.yaml", name="v1", baseline="nothing")
    workflow.did_run(monkeypatch)
    assert workflow.run() == 2


def test_a_regression_fails_the_job_and_the_same_results_do_not(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(good: str) -> None:
        rows = [
            {
                "id": f"q{number}",
                "task": "Capital of Australia?",
                "context": "Canberra is the capital of Australia.",
                "reference": "Canberra",
                "response": "Canberra" if good == "right" else "Sydney, by the sea",
                "latency_e2e_ms": 900,
                "input_tokens": 30,
                "output_tokens": 3,
            }
            for number in range(30)
        ]
        (suite / "questions.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    answers("right")
    assert call(monkeypatch, "run", "suite.yaml", "--name", "v1").code == 0
    workflow = Workflow(suite, suite="suite.yaml", name="again", baseline="v1")
    workflow.did_run(monkeypatch)
    assert workflow.run() == 0
    assert workflow.values["steps.compare.outputs.code"] == "0"
    assert "::error title=regression" not in workflow.log
    assert "## Compared with the baseline" in (suite / "summary.md").read_text()
    answers("wrong")
    workflow = Workflow(suite, suite="suite.yaml", name="v2", baseline="v1")
    workflow.did_run(monkeypatch)
    assert workflow.run() == 1
    assert workflow.values["steps.compare.outputs.code"] == "1"
    assert "::error title=regression::" in workflow.log


def test_the_example_workflow_uses_the_inputs_that_there_are() -> None:
    page = (ROOT / "docs" / "guide" / "ci.md").read_text(encoding="utf-8")
    example = yaml.safe_load(page.split("```text prompts.yml\n")[1].split("```")[0])
    steps = example["jobs"]["evaluate"]["steps"]
    (used,) = [step for step in steps if "jurybox" in step.get("uses", "")]
    assert set(used["with"]) <= set(Workflow(ROOT).action["inputs"])
