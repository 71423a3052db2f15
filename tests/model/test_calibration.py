"""E14 on real gold with real models, minutes each: these run with ``make test-model`` only."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import real_models
from jurybox.cli.app import run
from jurybox.storage.audit import audit
from jurybox.wiring import find_run, open_run_store

pytestmark = pytest.mark.judge_model

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("JURYBOX_DATA", ROOT.parent / "shared" / "data"))
FOLDER = real_models._FOLDER
ROWS = 30
RUBRIC = """---
id: chat-reply
version: 1.0.0
scale: 1-3
votes: 1
---
# A reply in a conversation

## Criteria

### Engagingness

Whether the reply is interesting to read and gives the conversation somewhere to go.

| Score | Meaning |
| --- | --- |
| 1 | Dull: it is generic, or says what was said before |
| 2 | Moderately interesting: it moves the conversation on a little |
| 3 | Interesting: it says something new, surprising or worth answering |
"""


def write_gold() -> None:
    """Write the first replies of the recorded conversations with what people gave them."""
    path = DATA / "topicalchat_human_unieval.jsonl"
    if not path.is_file():
        pytest.skip(f"the recorded conversations aren't there: {path}")
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(ROWS), strict=False)]
    lines = [
        {
            "id": f"d{number}",
            "task": row["context_tail"],
            "response": row["response"],
            "gold": {"engagingness": row["human"]["engagingness"]},
        }
        for number, row in enumerate(rows)
    ]
    Path("gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("name", [real_models.SMALL, real_models.JUDGE])
def test_rounds_on_real_gold_keep_nothing_that_is_not_shown_to_help(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gold()
    real_models.path_of(name)
    monkeypatch.setenv("JURYBOX_MODELS", str(FOLDER))
    Path("chat.md").write_text(RUBRIC)
    options = ("--rubric", "chat.md", "--gold", "gold.jsonl", "--judge", f"local/{name}")
    assert run(["calibrate", *options, "--rounds", "3", "--json"]) == 0
    made: dict[str, Any] = json.loads(capfd.readouterr().out)
    tuning = made["tuning"]
    assert tuning["rounds"] or tuning["ended"]
    for each in tuning["rounds"]:
        assert each["hypothesis"]
        assert each["change"]
        assert each["kept"] == (each["select"] is not None and each["select"]["gain"]["clear"])
    kept = [each for each in tuning["rounds"] if each["kept"]]
    assert (tuning["written"] is not None) == bool(kept)
    (metrics,) = made["metrics"]["criteria"]
    assert metrics["n"] + metrics["unscored"] == tuning["parts"]["report"]
    store = open_run_store()
    for each in made["runs"]:
        assert audit(store, find_run(store, each["run_id"])).difference is None
    store.close()
