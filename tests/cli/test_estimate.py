"""``jurybox estimate`` (section I of the specification), on a run that the command has made."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

JUDGE = """
def generous(prompt):
    return '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Seen."}'
"""
SUITE = """
suite: sums
rubric: answer-quality
dataset: rows.jsonl
judge:
  models: [python/judges:generous]
"""


def label(number: int) -> dict[str, object]:
    gold = {"accuracy_score": number % 3, "faithfulness_score": 2 - number % 2}
    return {"id": f"s{number}", "gold": gold}


def write(file: Path, rows: list[dict[str, object]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def run(tmp_path: Path, jurybox: Callable, once: Callable) -> Path:
    """Make a run of sixty samples in this folder, and labels for twenty of them."""
    write(tmp_path / "gold.jsonl", [label(number) for number in range(20)])

    def make() -> None:
        (tmp_path / "judges.py").write_text(JUDGE)
        (tmp_path / "suite.yaml").write_text(SUITE)
        rows = [{"id": f"s{n}", "task": "?", "response": "x"} for n in range(60)]
        write(tmp_path / "rows.jsonl", rows)
        done = jurybox("run", "suite.yaml", "--allow-unpinned", "--json")
        assert done.json["status"] == "finished", done.err

    once(make)
    return tmp_path


def test_the_judge_people_and_both_together_are_shown(started: Callable, run: Path) -> None:
    assert run.is_dir()
    done = started("estimate", "last", "--gold", "gold.jsonl")
    assert done.code == 0
    assert "60 samples, 20 of them with labels" in done.out
    assert "accuracy_score  corrected by 20 labels it is 0.950 (95% interval" in done.out
    assert "the judge alone says 2.000, which the labels contradict" in done.out
    # The other formula is about other samples, so it names them and the judge's rate there.
    where = "pass_rate  by sensitivity and specificity, over the 40 samples without labels: "
    assert where in done.out
    assert "(the judge alone says 0.0% (0.0% to 8.8%), sensitivity " in done.out


def test_the_json_form_has_everything(jurybox: Callable, run: Path) -> None:
    with (run / "gold.jsonl").open("a") as file:
        file.write('{"id": "elsewhere", "gold": {"accuracy_score": 1}}\n')
    done = jurybox("estimate", "last", "--gold", "gold.jsonl", "--level", "0.9", "--json")
    data = done.json
    assert (data["samples"], data["labeled"], data["strangers"]) == (60, 20, 1)
    assert [each["metric"] for each in data["estimates"]] == [
        "overall",
        "accuracy_score",
        "faithfulness_score",
        "pass_rate",
    ]
    assert {"mean", "rate", "unscored"} <= data["estimates"][1].keys()
    accuracy = data["estimates"][1]["mean"]
    assert accuracy["judge"]["value"] == 2
    assert accuracy["human"] == {**accuracy["human"], "value": 0.95, "n": 20}
    assert accuracy["corrected"]["interval"]["level"] == 0.9
    assert accuracy["bias"] == pytest.approx(1.05)
    assert {"tuning", "effective_labels", "labels_to_halve"} <= accuracy.keys()
    assert done.err == "warning: 1 label for samples that the run doesn't have\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no row has `gold`"),
        (b'{"id": "s1", "gold": {"accuracy_score": 3}}\n', "gold.jsonl:1:1: `gold` gives"),
        (b'{"id": "s1", "gold": {"accuracy": 1}}\n', "names `accuracy`, which isn't judged"),
        (b'{"id": "other", "gold": {"accuracy_score": 1}}\n', "check that the ids"),
        (b"\xff\xfe", "UTF-16"),
    ],
)
def test_labels_that_cannot_be_used_are_one_line_and_2(
    jurybox: Callable, run: Path, content: bytes, says: str
) -> None:
    (run / "gold.jsonl").write_bytes(content)
    done = jurybox("estimate", "last", "--gold", "gold.jsonl")
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert len(done.err.splitlines()) == 1
