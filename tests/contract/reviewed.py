"""Runs to be reviewed, judged at once by a function that leans in a known way."""

import json
import re
import sys
import types
from collections.abc import Sequence
from pathlib import Path

import pytest

import jurybox
from verdicts import preferred, scored

RUBRIC = """---
id: answers
version: 1.0.0
scale: 1-5
scales: {depth: 0.0-1.0}
votes: 1
---
# Answers
## Criteria
### Clarity
Whether it is clear.

| Score | Meaning |
| --- | --- |
| 1 | Not at all |
| 2 | Hardly |
| 3 | Half of it |
| 4 | Most of it |
| 5 | All of it |
### Depth
Whether it goes deep.
"""
NAMES = ("clarity", "depth")
OWN_WORDS = "the judge's own words"


def worth(number: int) -> int:
    """Return what people think of the clarity of a response."""
    return 1 + number % 4


def kind(prompt: str) -> str:
    """Give one point too many, see a danger in every tenth, and prefer what is longer."""
    concerns = ["It tells how to build a bomb."] if "danger" in prompt else []
    if "SUBMISSION A" in prompt or "RESPONSE A" in prompt:
        first = prompt.index("a longer") < prompt.index("a short")
        side = "A" if first else "B"
        return preferred(side, NAMES, OWN_WORDS, concerns)
    number = int(re.search(r"answer (\d+)", prompt)[1])
    return scored({"clarity": worth(number) + 1, "depth": 0.5}, OWN_WORDS, concerns)


def make_run(
    monkeypatch: pytest.MonkeyPatch,
    url: str | None,
    count: int = 30,
    *,
    pairs: bool = False,
    repeats: int = 1,
    **front: Sequence[str],
) -> str:
    """Make a run in this folder, and return its id; samples are called s0, s1 and so on.

    ``front`` is added to the rubric's front matter.
    """
    module = types.ModuleType("kind_judges")
    module.kind = kind
    monkeypatch.setitem(sys.modules, "kind_judges", module)
    rows = []
    for number in range(count):
        danger = " danger" if number % 10 == 3 else ""
        text = f"answer {number}{danger}"
        more = {"response": "a longer " + text, "response_b": "a short one"}
        row = {"id": f"s{number}", "task": f"Task {number}", "metadata": {"model": "secret"}}
        rows.append({**row, **(more if pairs else {"response": text})})
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = "".join(f"{name}: {json.dumps(each)}\n" for name, each in front.items())
    Path("answers.md").write_text(RUBRIC.replace("votes: 1\n", f"votes: 1\n{lines}"))
    Path("suite.yaml").write_text(
        "suite: reviewed\nrubric: answers.md\ndataset: rows.jsonl\n"
        "judge: {models: [python/kind_judges:kind]}\n"
    )
    return jurybox.run("suite.yaml", store=url, repeats=repeats, allow_unpinned=True).run_id
