"""D6: pairs decide; the win rate is a metric to gate on, and runs can be ranked."""

import json
from functools import partial
from pathlib import Path

import pytest

from commands import call

RUBRIC = """---
id: ours
version: 1.0.0
scale: 1-5
votes: 1
{front}
---
# Ours

## Criteria

### Tone
Friendly.
"""
JUDGE = """
from verdicts import preferred


def judge(prompt):
    good = [line for line in prompt.splitlines() if line in {"kind", "rude", "same"}]
    first, second = good[-2:]
    winner = "tie" if first == second else "A" if first == "kind" else "B"
    return preferred(winner, ["tone"])
"""
PAIRS = [("kind", "rude")] * 5 + [("same", "same")] * 2 + [("rude", "kind")]


@pytest.fixture
def suite() -> None:
    Path("judge.py").write_text(JUDGE)
    rows = [
        json.dumps({"id": str(number), "task": "Hi", "response": a, "response_b": b})
        for number, (a, b) in enumerate(PAIRS)
    ]
    Path("rows.jsonl").write_text("\n".join(rows))
    Path("suite.yaml").write_text(
        "suite: s\nrubric: ours.md\ndataset: rows.jsonl\njudge: {models: ['python/judge:judge']}\n"
    )


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(("gate", "code"), [("win_rate >= 0.7", 0), ("win_rate >= 0.8", 1)])
def test_d6_the_win_rate_is_a_gate(monkeypatch: pytest.MonkeyPatch, gate: str, code: int) -> None:
    jurybox = partial(call, monkeypatch)
    Path("ours.md").write_text(RUBRIC.format(front=f'gates: ["{gate}"]'))
    run = jurybox("run", "suite.yaml", "--allow-unpinned", "--json")
    assert (run.code, run.json["summary"]["winners"]) == (code, {"A": 5, "B": 1, "tie": 2})
    assert run.json["summary"]["win_rate"] == 0.75
    assert run.json["gates"][0]["value"] == 0.75
    ends = run.json["win_rate_interval"]
    assert 0.3 < ends["low"] < 0.6
    assert 0.85 < ends["high"] < 1
    assert "win rate of A 75" in jurybox("show", "last").out
    assert jurybox("verify", "last").code == 0


@pytest.mark.usefixtures("suite")
def test_d6_rank_reads_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    jurybox = partial(call, monkeypatch)
    Path("ours.md").write_text(RUBRIC.format(front="generation: {seed: 1}"))
    jurybox("run", "suite.yaml", "--allow-unpinned")
    ranked = jurybox("rank", "last", "--json").json
    assert (ranked["n"], ranked["models"][0]["name"]) == (8, "response")
    assert ranked["models"][0]["win_rate"] == 0.75
    twice = jurybox("rank", "last", "last", "--json").json
    assert twice == ranked
    assert jurybox("rank", "nothing").code == 2


@pytest.mark.usefixtures("suite")
def test_d6_pass_rules_cannot_apply_to_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ours.md").write_text(RUBRIC.format(front='pass: ["tone >= 3"]'))
    refused = call(monkeypatch, "run", "suite.yaml", "--allow-unpinned")
    assert refused.code == 2
    assert (
        "the row is a pair, but the `pass` rules of `ours` are for single responses" in refused.err
    )
    assert 'gates: ["win_rate >= 0.5"]' in refused.err
