"""What `--json` prints and `export` writes has no key that the page on commands doesn't name."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jurybox.cli.app import run

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"

Data = dict[str, Any]


def section(command: str) -> str:
    match = re.search(
        rf"^## jurybox {command}\b.*?$(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert match is not None, command
    return match[1]


def unnamed(names: list[str], command: str) -> list[str]:
    text = section(command)
    return [name for name in names if not re.search(rf"[`\"]{re.escape(name)}[`\"]", text)]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Data]:
    """Run every command that works on runs once, and return what it prints with `--json`."""

    def call(*arguments: str) -> Data:
        run([*arguments, "--json"])
        return json.loads(capsys.readouterr().out)

    known = {"init": call("init"), "run": call("run", "suite.yaml")}
    known["runs"] = call("runs")
    known["gate"] = call("gate", "last")
    known["verify"] = call("verify", "last")
    known["report"] = call("report", "last", "-o", "report.json")
    known["export"] = call("export", "last", "-o", "samples.jsonl", "--raw")
    known["diff"] = call("diff", "last", "last")
    known["bias"] = call("bias", "last")
    return known


def test_every_key_is_documented(printed: dict[str, Data]) -> None:
    for command, data in printed.items():
        assert unnamed(list(data), command) == [], command
    assert unnamed(list(printed["runs"]["runs"][0]), "runs") == []
    assert unnamed(list(printed["diff"]["counts"]), "diff") == []


def test_every_part_of_a_report_is_documented(printed: dict[str, Data]) -> None:
    report: Data = json.loads(Path("report.json").read_text())
    assert unnamed([name for name in report if name not in printed["run"]], "report") == []


def test_every_column_of_an_export_is_documented(printed: dict[str, Data]) -> None:
    assert printed["export"]["rows"] > 0
    row: Data = json.loads(Path("samples.jsonl").read_text().splitlines()[0])
    # These are named by the rubric.
    scores = {"accuracy_score", "faithfulness_score", "overall"}
    parts = {"accuracy_norm", "faithfulness_norm", "latency_norm", "token_efficiency_norm"}
    own = {f"{kind}.{name}" for kind in ("people", "preference") for name in scores}
    assert unnamed([name for name in row if name not in scores | parts | own], "export") == []
