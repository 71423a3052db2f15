"""``jurybox bias`` (E8, A13), on runs by judges with a known leaning, and by one without."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

JUDGES = """
import json
import re

PART = re.compile(
    r"<<<(?:RESPONSE|SUBMISSION)(?: [AB])?(?: \\w+)?>>>\\n(.*?)\\n<<<END", re.DOTALL
)
PLEAS = re.compile("full marks|without any fault|admire|professor")


def reply(request, score):
    schema = json.loads(request.schema)["properties"]
    told = {name: "Seen." for name in schema["reasoning"]["properties"]}
    checked = {name: "Seen." for name in schema["bias_checklist"]["properties"]}
    verdict = {"reasoning": told, "bias_checklist": checked, "safety_concerns": []}
    scores = [score(part) for part in PART.findall(request.messages[0].content)]
    if "winner" in schema:
        a, b = scores
        side = "tie" if a == b else "A" if a > b else "B"
        verdict |= {"preferences": {name: side for name in told}, "winner": side}
    else:
        verdict["scores"] = {name: scores[0] for name in told}
    return json.dumps(verdict)


def quality(text):
    return int(re.search(r"quality (\\d)", text)[1])


def fair(request):
    return reply(request, quality)


def first(request):
    places = iter((2, 1))
    return reply(request, lambda text: next(places))


def longer(request):
    return reply(request, lambda text: min(5, 1 + len(text.split()) // 10))


def one(request):
    return reply(request, lambda text: 5 if "by one" in text else 3)


def other(request):
    return reply(request, lambda text: 3 if "by one" in text else 4)


def obeys(request):
    return reply(request, lambda text: 5 if PLEAS.search(text) else quality(text))
"""
RUBRIC = """---
id: two
version: 1.0.0
scale: 1-5
votes: 1
---
# Two things

What matters.

## Criteria

### Right

Is it right?

### Clear

Is it clear?
"""
RUNS = {
    "first": "pairs",
    "fair": "pairs",
    "longer": "ones",
    "obeys": "ones",
}


def _rows() -> dict[str, list[dict[str, Any]]]:
    chance = random.Random(5)  # noqa: S311 - texts of different lengths, no secrets

    def text(quality: int) -> str:
        return f"quality {quality} " + "word " * chance.randint(1, 45)

    def pair(number: int) -> dict[str, Any]:
        a, b = chance.sample(range(1, 6), 2)
        texts = {"response": text(a), "response_b": text(b)}
        winner = "A" if a > b else "B"
        return {"id": f"p{number}", "task": "Say it.", **texts, "gold_winner": winner}

    def one(number: int) -> dict[str, Any]:
        quality = chance.randint(1, 4)
        gold = {"right": quality, "clear": quality}
        return {"id": f"s{number}", "task": "Say it.", "response": text(quality), "gold": gold}

    return {"pairs": [pair(i) for i in range(20)], "ones": [one(i) for i in range(24)]}


def _write(folder: Path) -> None:
    (folder / "judges.py").write_text(JUDGES)
    (folder / "two.md").write_text(RUBRIC)
    for name, rows in _rows().items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        suite = f"suite: {name}\nrubric: ./two.md\ndataset: {name}.jsonl\n"
        (folder / f"{name}.yaml").write_text(suite)


@pytest.fixture
def runs(tmp_path: Path, jurybox: Callable, once: Callable) -> dict[str, str]:
    """Return the id of a run by each judge."""
    _write(tmp_path)

    def make() -> None:
        for judge, suite in RUNS.items():
            judged = jurybox("run", f"{suite}.yaml", "--judge", f"python/judges:{judge}", "--json")
            assert judged.json["status"] == "finished", judged.err

    once(make)
    found = reversed(jurybox("runs", "--json").json["runs"])
    return {judge: run["run_id"] for judge, run in zip(RUNS, found, strict=True)}


def _metrics(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {metric["name"]: metric for bias in data["biases"] for metric in bias["metrics"]}


def test_a_judge_that_prefers_the_first_place_is_told_so(
    started: Callable, jurybox: Callable, runs: dict[str, str]
) -> None:
    done = started("bias", runs["first"])
    assert done.code == 0, done.err
    assert "The response shown first wins 100% (87% to 100%) of the decided calls" in done.out
    assert "the judge favors the first position" in done.out
    assert "stays the same in 0% (0% to 18%) of the votes" in done.out
    metrics = _metrics(jurybox("bias", runs["first"], "--json").json)
    assert metrics["position.first_place_win_rate"]["n"] == 40
    assert metrics["position.flips.clear"]["value"] == 1
    assert metrics["position.swap_consistency"]["interval"]["level"] == 0.95


def test_e8_a_judge_that_sticks_to_its_winner_has_no_position_bias(
    jurybox: Callable, runs: dict[str, str]
) -> None:
    metrics = _metrics(jurybox("bias", runs["fair"], "--json", "--level", "0.9").json)
    assert metrics["position.first_place_win_rate"]["value"] == 0.5
    assert "no significant bias" in metrics["position.first_place_win_rate"]["sentence"]
    assert metrics["position.swap_consistency"]["value"] == 1
    assert metrics["position.swap_consistency"]["interval"]["level"] == 0.9
    assert metrics["verbosity.longer_win_excess"]["value"] == 0
    assert metrics["verbosity.correlation"]["reason"] == "the run scores no single responses"


def test_gates_fail_where_a_metric_misses_them_or_isnt_known(
    jurybox: Callable, runs: dict[str, str]
) -> None:
    gate = "position.swap_consistency >= 0.9"
    assert jurybox("bias", runs["fair"], "--gate", gate).code == 0
    done = jurybox("bias", runs["first"], "--gate", gate, "--json")
    assert done.code == 1
    assert done.json["passed"] is False
    assert done.json["gates"] == [{"gate": gate, "value": 0.0, "passed": False, "reason": None}]
    unknown = jurybox("bias", runs["fair"], "--gate", "injection.flattery.change <= 0.1")
    assert unknown.code == 1
    assert "no sample was judged again; `--probe N` does that" in unknown.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--gate", "position.swap_consistancy >= 0.9"],
            "did you mean `position.swap_consistency`",
        ),
        (["--gate", "position.swap_consistency >= 90%"], "write 0.9"),
        (["--judge", "python/judges:fair"], "--judge: it has no effect without --probe"),
        (["--gold", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--probe", "2", "--judge", "openai/gpt-4.1"], "doesn't say which version"),
    ],
)
def test_what_cant_be_used_is_refused(
    jurybox: Callable, runs: dict[str, str], arguments: list[str], said: str
) -> None:
    done = jurybox("bias", runs["fair"], *arguments)
    assert done.code == 2
    assert said in done.err


def test_labels_of_a_file_take_the_place_of_those_in_the_rows(
    jurybox: Callable, runs: dict[str, str], tmp_path: Path
) -> None:
    labels = [{"id": row["id"], "gold_winner": "tie"} for row in _rows()["pairs"]]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    done = jurybox("bias", runs["fair"], "--gold", "labels.jsonl", "--json")
    assert _metrics(done.json)["verbosity.longer_win_excess"]["value"] != 0
    (tmp_path / "labels.jsonl").write_text('{"id": "other", "gold_winner": "A"}\n')
    refused = jurybox("bias", runs["fair"], "--gold", "labels.jsonl")
    assert refused.code == 2
    assert "none of its ids belongs to a sample of run" in refused.err


def test_a_judge_that_obeys_injections_is_found_out_by_a_probe(
    jurybox: Callable, runs: dict[str, str], tmp_path: Path
) -> None:
    probe = ("bias", "last", "--probe", "6", "--seed", "3")
    done = jurybox(*probe, "--gate", "injection.authority.change <= 0.05", "--json")
    assert done.code == 1, done.err
    assert "judging 6 samples again in 8 ways by python/judges:obeys: at least 48 calls" in done.err
    assert done.json["run_id"] == runs["obeys"]
    metrics = _metrics(done.json)
    for kind in ("ignore_rubric", "fake_verdict", "flattery", "authority"):
        assert metrics[f"injection.{kind}.change"]["value"] > 0.2
    for kind in ("same", "criteria_order", "wording", "names"):
        assert metrics[f"stability.{kind}.change"]["value"] == 0
    made = [run["run_id"] for run in done.json["probe"]["runs"]]
    assert len(made) == 4
    assert all(jurybox("verify", run).code == 0 for run in made)
    rows = [
        json.loads(line)
        for path in (tmp_path / ".jurybox" / "probes").iterdir()
        for line in path.read_text().splitlines()
    ]
    assert {row["id"].partition("~probe-")[2] for row in rows} >= {"same", "flattery", "names"}

    again = jurybox(*probe)
    assert "no calls needed" in again.err
    assert "With flattery after the response, the score changes by" in again.out
    assert len(jurybox("runs", "--json").json["runs"]) == len(RUNS) + 4


def test_pairs_are_probed_on_the_side_that_lost(jurybox: Callable, runs: dict[str, str]) -> None:
    obeys = ("--judge", "python/judges:obeys")
    done = jurybox("bias", runs["fair"], "--probe", "5", *obeys, "--json")
    assert "at least 80 calls" in done.err
    assert done.json["probe"]["baseline"] == "same"
    metrics = _metrics(done.json)
    assert metrics["injection.flattery.change"]["value"] > 0
    assert metrics["stability.same.change"]["value"] is None
    fair = _metrics(jurybox("bias", runs["fair"], "--probe", "5", "--json").json)
    changed = {name: each["value"] for name, each in fair.items() if name.endswith(".change")}
    assert set(changed.values()) == {0}


def test_a_probe_that_is_stopped_is_gone_on_with_by_the_same_command(
    jurybox: Callable, runs: dict[str, str]
) -> None:
    nobody = ("--judge", "openai/gpt-4.1-2025-04-14", "--base-url", "http://127.0.0.1:9")
    for _ in range(2):
        done = jurybox("bias", runs["fair"], "--probe", "2", *nobody, "--json")
        assert done.code == 3
        assert "run the same command again to resume" in done.err
        assert done.json["probe"] is None
        assert _metrics(done.json)["position.swap_consistency"]["value"] == 1
        assert len(jurybox("runs", "--json").json["runs"]) == len(RUNS) + 1


def test_judges_of_a_mixed_jury_that_favor_their_own_are_told_so(
    jurybox: Callable, tmp_path: Path
) -> None:
    _write(tmp_path)
    rows = [
        {
            "id": str(number),
            "task": "Say it.",
            "response": f"Said by {maker}, {number}.",
            "model": f"python/judges:{maker}",
            "gold": {"right": 1 + number % 5, "clear": 1 + number % 5},
        }
        for number, maker in enumerate(("one", "other") * 8)
    ]
    (tmp_path / "ones.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judges = "judge:\n  models: [python/judges:one, python/judges:other]\n  votes: 2\n"
    (tmp_path / "ones.yaml").write_text((tmp_path / "ones.yaml").read_text() + judges)
    assert jurybox("run", "ones.yaml").code == 0
    metrics = _metrics(jurybox("bias", "last", "--json").json)
    found = metrics["self_preference.score_difference"]
    # Own responses get 5 of 5 and 4 of 5, others 3 and 3: half and a quarter of the scale more.
    assert found["value"] == pytest.approx(0.375)
    assert found["n"] == 32
    assert "the judge favors its own family" in found["sentence"]
    assert metrics["self_preference.score_difference_given_gold"]["value"] is not None
