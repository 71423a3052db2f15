"""E14: metrics that others published, from the ratings that they recorded.

The recordings stay outside the repository: they are looked for beside it, in ``shared/data``, or in
the folder that JURYBOX_DATA names.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement import Ratings, agree, agree_all
from jurybox.statistics.intervals import proportion

FOLDER = Path(
    os.environ.get("JURYBOX_DATA") or Path(__file__).parents[2].parent / "shared" / "data"
)


def recorded(name: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"no {path.name} in ../shared/data or the folder in JURYBOX_DATA")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_pandalms_three_people_agree_as_published() -> None:
    rows = recorded("pandalm_human3")
    ratings = Ratings(
        criterion=None,
        raters=("1", "2", "3"),
        table=np.array([row["human"] for row in rows], dtype=np.float64),
    )
    made = agree_all(ratings, Scale.parse("0-2"))
    kappas = [pair.agreement["kappa"] for pair in made.pairs]
    assert [round(each.value or 0, 4) for each in kappas] == [0.8520, 0.8789, 0.8617]
    assert round(made["fleiss_kappa"].value or 0, 4) == 0.8642
    for metric in (*kappas, made["fleiss_kappa"]):
        assert metric.value is not None
        assert metric.interval is not None
        assert metric.interval.low < metric.value < metric.interval.high
        assert metric.interval.high - metric.interval.low < 0.08
    majority = Counter(Counter(row["human"]).most_common(1)[0][0] for row in rows)
    assert [majority[k] for k in (0, 1, 2)] == [105, 422, 472]


@pytest.mark.parametrize(
    ("quality", "pearson", "spearman"),
    [
        ("naturalness", 0.444, 0.514),
        ("coherence", 0.595, 0.613),
        ("engagingness", 0.557, 0.605),
        ("groundedness", 0.536, 0.575),
    ],
)
def test_unieval_correlates_with_people_as_published(
    quality: str, pearson: float, spearman: float
) -> None:
    rows = recorded("topicalchat_human_unieval")
    people = [float(row["human"][quality]) for row in rows]
    judge = [float(row["unieval"][quality]) for row in rows]
    top = max(*people, *judge)
    scale = Scale(low=0.0, high=top, continuous=True)
    made = agree(people, judge, scale)
    for name, published in (("pearson", pearson), ("spearman", spearman)):
        metric = made[name]
        assert round(metric.value or 0, 3) == published
        assert metric.interval is not None
        assert metric.interval.low < published < metric.interval.high


def test_an_unparsed_reply_counted_as_zero_changes_a_correlation() -> None:
    rows = recorded("topicalchat_human_unieval")
    people = [float(row["human"]["coherence"]) for row in rows]
    judge = [float(row["unieval"]["coherence"]) for row in rows]
    lost = set(range(0, len(rows), 12))
    zeros = [0.0 if i in lost else score for i, score in enumerate(judge)]
    left = [i for i in range(len(rows)) if i not in lost]
    scale = Scale(low=0.0, high=max(*people, *judge), continuous=True)
    whole = agree(people, judge, scale)["pearson"].value or 0
    missing = agree([people[i] for i in left], [judge[i] for i in left], scale)["pearson"].value
    zeroed = agree(people, zeros, scale)["pearson"].value
    assert missing == pytest.approx(whole, abs=0.03)
    assert zeroed is not None
    assert zeroed < whole - 0.08


def _percent(text: str) -> float:
    """Read the share from ``10 / 54 = 18.5%`` or ``18.5%``."""
    return float(text.rpartition("= ")[-1].removesuffix("%")) / 100


def test_all_runs_of_llmbar_have_their_published_accuracy_and_agreement() -> None:
    runs = recorded("llmbar_runs")
    assert len(runs) == 479
    codes = {"1": 1.0, "2": 2.0, "-": 0.0}
    for run in runs:
        labels, one, two = (run[key] for key in ("labels", "winner_order1", "winner_order2"))
        right = sum((a == w) + (b == w) for a, b, w in zip(one, two, labels, strict=True)) / 2
        published = run["published"]
        assert _percent(published["correct_average"]) == pytest.approx(right / run["n"], abs=1e-12)
        # What can't be parsed is an answer of its own here, as the authors count it.
        made = agree(
            [codes[each] for each in one],
            [codes[each] for each in two],
            Scale.parse("0-2"),
        )
        assert made.n == run["n"]
        assert made["exact"].value == pytest.approx(_percent(published["equal"]), abs=1e-12)
        # For their kappa, though, they count what can't be parsed as the second answer.
        firsts = [[2.0 - (each == "1") for each in order] for order in (one, two)]
        kappa = agree(*firsts, Scale.parse("1-2"))["kappa"].value
        assert kappa == pytest.approx(published["kappa_agreement"], abs=1e-9)


def _scores(text: str, k: int) -> list[int]:
    return [10 if each == "A" else int(each) for each in text[:k] if each != "-"]


@pytest.mark.parametrize(
    ("run", "k", "accuracy", "n"),
    [("base", 1, 71.7, 1729), ("base", 8, 81.5, None), ("criteria", 8, 83.6, None)],
)
def test_composos_accuracies_come_out_with_an_interval(
    run: str, k: int, accuracy: float, n: int | None
) -> None:
    outcomes: list[bool] = []
    for row in recorded("composo_rb2_k8"):
        if row["run"].split("_")[0] != run:
            continue
        scores = [_scores(text, k) for text in row["full"]]
        if all(scores):
            best, *others = (float(np.mean(each)) for each in scores)
            outcomes.append(best > max(others))
    made = proportion(outcomes)
    assert made.value is not None
    assert round(100 * made.value, 1) == accuracy
    assert n is None or made.n == n
    assert made.interval is not None
    assert made.interval.low < made.value < made.interval.high
