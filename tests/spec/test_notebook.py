"""D9: the cells that a user writes, run by Jupyter's own kernel, whose event loop is running."""

from pathlib import Path
from typing import Any

import pytest

from commands import call
from lazily import Lazily

nbclient = Lazily("nbclient")
nbformat = Lazily("nbformat")

RUBRIC = """\
---
id: tone
version: 1.0.0
scale: 1-5
votes: 1
pass: ["kindness >= 4"]
gates: ["pass_rate >= 0.5"]
---
# Tone
## Criteria
### Kindness
The words are kind.
"""
JUDGE = """\
import asyncio
import json
import os
import jurybox

asyncio.get_running_loop()  # it raises where no loop is running

def judge(prompt):
    score = 5 if "Hello, dear." in prompt else 1
    checklist = jurybox.load_rubric("bias-awareness").criteria
    reply = {
        "reasoning": {"kindness": f"Its greeting is worth {score}."},
        "bias_checklist": {each.id: f"{each.id} is not at work." for each in checklist},
        "safety_concerns": [],
        "scores": {"kindness": score},
    }
    return json.dumps(reply)
"""
MISTAKE = """\
suite = {
    "suite": "tones",
    "rubric": "tne.md",
    "rows": [
        {"id": "a", "task": "Greet me.", "response": "Hello, dear."},
        {"id": "b", "task": "Greet me.", "response": "What <do> you want?"},
    ],
}
try:
    jurybox.run(suite, judges=judge)
except jurybox.InputError as error:
    print(error, os.listdir(".jurybox"))
"""
RUN = """\
suite["rubric"] = "tone.md"
run = jurybox.run(suite, judges=judge)
run
"""
TABLE = 'run.to_dataframe()[["id", "kindness", "passed"]]'
AGAIN = "print((await jurybox.arun(suite, judges=judge)).passed, jurybox.load_run('last~1') == run)"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    Path("tone.md").write_text(RUBRIC)


def executed(*cells: str) -> list[list[dict[str, Any]]]:
    """Return the outputs of each cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": "."}})
    client.execute()
    return [cell.outputs for cell in notebook.cells]


def test_d9_a_notebook_runs_a_suite_of_its_own_and_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, (mistake,), (run,), (table,), (again,) = executed(JUDGE, MISTAKE, RUN, TABLE, AGAIN)
    # No store, so no empty run either.
    assert mistake["text"] == "tne.md: no such file; check the path ['suites']\n"
    page = run["data"]["text/html"]
    assert "tones: passed" in page
    assert "pass_rate &gt;= 0.5" in page
    head, *rows = (line.split() for line in table["data"]["text/plain"].splitlines())
    assert head == ["id", "kindness", "passed"]
    assert rows == [["0", "a", "5", "True"], ["1", "b", "1", "False"]]
    assert again["text"] == "True True\n"
    assert call(monkeypatch, "verify", "last").code == 0
