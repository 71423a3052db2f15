"""E9: judges give equal numbers of votes, and comparisons use the mean of the votes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Done, call

RUBRIC = """---
id: tone
version: 1.0.0
scale: 1-5
votes: 3
weights: {tone: 3, length: 1}
gates: ["overall_mean >= 0"]
---
# Tone
## Criteria
### Tone
Polite.
### Length
Short.
"""
# The seed is 42 for the first vote, and one more for each further vote.
JUDGES = """
from verdicts import preferred, scored


def verdict(tone, length=3):
    return scored({"tone": tone, "length": length})


def split(request):
    return verdict(2 if request.generation.seed == 42 else 5)


def steady(request):
    return verdict(4)


def leaning(request):
    # Two votes for the response "better" and one for the other, in whichever order.
    shown = request.messages[-1].content
    first = shown.index("better") < shown.index("poorer")
    side = "A" if first == (request.generation.seed != 43) else "B"
    return preferred(side, ("tone", "length"))


def fair(request):
    # Right about every response, which say themselves what people think of them.
    return verdict(int(request.messages[-1].content.partition("worth ")[2][0]))
"""
Jurybox = Callable[..., Done]


@pytest.fixture
def jurybox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jurybox:
    (tmp_path / "tone.md").write_text(RUBRIC)
    (tmp_path / "judges.py").write_text(JUDGES)
    rows = [
        {
            "id": f"q{n}",
            "task": f"Task {n}",
            "response": f"It is worth {1 + n % 5} points",
            "gold": {"tone": 1 + n % 5},
        }
        for n in range(20)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "suite.yaml").write_text("suite: s\nrubric: tone.md\ndataset: rows.jsonl\n")

    def run(*arguments: str) -> Done:
        return call(monkeypatch, *arguments)

    return run


def run(jurybox: Jurybox, *judges: str) -> dict[str, Any]:
    named = [part for judge in judges for part in ("--judge", f"python/judges:{judge}")]
    done = jurybox("run", "suite.yaml", *named, "--json")
    assert done.code == 0, done.err
    data: dict[str, Any] = json.loads(done.out)
    assert jurybox("verify", "last").code == 0
    return data


def test_every_judge_gives_the_same_number_of_votes(jurybox: Jurybox) -> None:
    data = run(jurybox, "split", "steady")
    assert (data["metadata"]["votes"], data["metadata"]["votes_raised_from"]) == (4, 3)
    assert "votes raised from 3 to 4: each of 2 judges gives 2" in data["notes"]
    row = json.loads(jurybox("export", "last", "-o", "-").out.splitlines()[0])
    assert (row["votes_requested"], len(row["criteria"][0]["votes"])) == (4, 4)
    asked = ("--rubric", "tone.md", "--task", "Ask.", "--response", "Salt?", "--votes", "1")
    both = ("--judge", "python/judges:split", "--judge", "python/judges:steady")
    done = jurybox("evaluate", *asked, *both, "--json")
    assert json.loads(done.out)["votes_requested"] == 2
    assert "votes raised from 1 to 2" in done.err


def test_each_criterion_has_the_mean_of_its_votes(jurybox: Jurybox) -> None:
    run(jurybox, "split")
    row = json.loads(jurybox("export", "last", "-o", "-").out.splitlines()[0])
    tone, length = row["criteria"]
    assert (tone["votes"], tone["score"], tone["vote_mean"]) == ([2, 5, 5], 5, 4.0)
    assert length["vote_mean"] == 3.0
    # (3 * 0.75 + 1 * 0.5) / 4, next to the overall score of the majorities.
    assert row["overall_by_votes"] == 0.6875
    assert row["overall"] == 0.875


def test_diff_compares_the_means_of_votes(jurybox: Jurybox) -> None:
    # By the majority 5 against 4, by the mean of the votes 4 against 4.
    one, other = run(jurybox, "split")["run_id"], run(jurybox, "steady")["run_id"]
    data = json.loads(jurybox("diff", one, other, "--json").out)
    tone = next(each for each in data["tested"] if each["metric"] == "tone")
    assert (tone["mean_a"], tone["mean_b"], tone["difference"]) == (4.0, 4.0, 0.0)
    assert data["counts"]["same"] == 20


def test_diff_lists_recorded_scores_next_to_the_means_of_votes(jurybox: Jurybox) -> None:
    one, other = run(jurybox, "split")["run_id"], run(jurybox, "fair")["run_id"]
    sample = json.loads(jurybox("diff", one, other, "--json").out)["samples"][0]
    tone = next(each for each in sample["metrics"] if each["metric"] == "tone")
    assert (tone["a"], tone["b"], tone["difference"], tone["recorded"]) == (4, 1, -3, [5, 1])
    listed = jurybox("diff", one, other).out
    assert "difference by votes" in listed
    assert "0.875 -> 0.125 (votes 0.688 -> 0.125)" in listed
    assert "tone 5 -> 1 (votes 4 -> 1)" in listed


def test_diff_says_which_judge_is_right_more_often(jurybox: Jurybox, tmp_path: Path) -> None:
    one, other = run(jurybox, "steady")["run_id"], run(jurybox, "fair")["run_id"]
    labels = "of a sample's labels by people, on average over 20 samples"
    line = f"the judge of B is right more often: A 20.0%, B 100.0% {labels}"
    assert line in jurybox("diff", one, other).out
    judges = json.loads(jurybox("diff", one, other, "--json").out)["judges"]
    assert judges == f"{line} (a score is right within half a point)"
    swapped = json.loads(jurybox("diff", other, one, "--json").out)
    assert swapped["judges"].startswith("the judge of A is right more often: A 100.0%, B 20.0%")
    # Labels that came with the runs say nothing where one judge is compared with itself.
    assert json.loads(jurybox("diff", one, one, "--json").out)["judges"] is None
    given = "".join(json.dumps({"id": f"q{n}", "gold": {"tone": 4}}) + "\n" for n in range(20))
    (tmp_path / "labels.jsonl").write_text(given)
    by_file = json.loads(jurybox("diff", one, other, "--gold", "labels.jsonl", "--json").out)
    assert by_file["judges"].startswith("the judge of A is right more often: A 100.0%, B 20.0%")
    (tmp_path / "few.jsonl").write_text("".join(given.splitlines(keepends=True)[:9]))
    few = jurybox("diff", one, other, "--gold", "few.jsonl").out
    assert "people labeled 9 samples: too few to say which judge is right more often" in few
    same = json.loads(jurybox("diff", one, one, "--gold", "labels.jsonl", "--json").out)
    assert same["judges"] is None
    # The score that is recorded has to be right, 5 by two votes of three, and not the votes' mean.
    (tmp_path / "labels.jsonl").write_text(given.replace("4}", "5}"))
    split = run(jurybox, "split")["run_id"]
    found = json.loads(jurybox("diff", split, other, "--gold", "labels.jsonl", "--json").out)
    assert found["judges"].startswith("the judge of A is right more often: A 100.0%, B 20.0%")


def test_the_votes_on_a_winner_are_reported_and_ranked(jurybox: Jurybox, tmp_path: Path) -> None:
    names = {"a": "new", "b": "old"}
    rows = [
        {
            "id": f"q{n}",
            "task": f"Task {n}",
            "response": "better",
            "response_b": "poorer",
            "metadata": names,
        }
        for n in range(4)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "tone.md").write_text(RUBRIC.replace("overall_mean >= 0", "unscored_rate <= 0"))
    run(jurybox, "leaning")
    jurybox("export", "last", "-o", "pairs.jsonl")
    row = json.loads(Path("pairs.jsonl").read_text().splitlines()[0])
    assert (row["winner"], row["winner_votes"]) == ("A", ["A", "B", "A"])
    jurybox("export", "last", "-o", "pairs.csv")
    for name in ("pairs.jsonl", "pairs.csv"):
        ranked = json.loads(jurybox("rank", name, "--json").out)
        assert (ranked["n"], ranked["items"]) == (12, 4)
        assert ranked["matrix"]["new"]["old"] == pytest.approx(2 / 3)
    other = run(jurybox, "leaning")["run_id"]
    (tested,) = json.loads(jurybox("diff", other, other, "--json").out)["tested"][:1]
    assert tested["mean_a"] == pytest.approx(2 / 3, abs=1e-6)


def test_calibration_compares_the_means_of_votes(jurybox: Jurybox) -> None:
    judge = ("--judge", "python/judges:split", "--rubric", "tone.md", "--gold", "rows.jsonl")
    data = json.loads(jurybox("calibrate", *judge, "--json").out)
    (tone,) = [each for each in data["metrics"]["criteria"] if each["criterion"] == "tone"]
    # People's mean is 3, that of the votes 4, the majority 5.
    assert tone["bias"]["value"] == pytest.approx(1.0)
