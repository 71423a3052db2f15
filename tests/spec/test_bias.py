"""Biases of judges: recorded verdicts in both orders against what their authors published."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jurybox.calibration.bias_metrics import position
from jurybox.calibration.bias_results import BiasMetric
from jurybox.calibration.observations import Observations, ObservedVote

BESIDE = Path(__file__).parents[3] / "shared" / "data"
FILE = Path(os.environ.get("JURYBOX_DATA") or BESIDE) / "llmbar_runs.jsonl"
SIDES = {"1": "A", "2": "B"}

pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason=f"no {FILE.name} in ../shared/data or the folder in JURYBOX_DATA"
)


def recorded() -> Iterator[tuple[dict[str, Any], list[str], list[str]]]:
    with FILE.open(encoding="utf-8") as file:
        for line in file:
            run = json.loads(line)
            orders = (run["winner_order1"], run["winner_order2"])
            straight, swapped = ([SIDES.get(each, each) for each in order] for order in orders)
            yield run, straight, swapped


def order(straight: list[str], swapped: list[str]) -> list[BiasMetric]:
    """Return how often the first position wins, and how often the verdict stays."""
    pairs = enumerate(zip(straight, swapped, strict=True))
    votes = [ObservedVote(sample=str(n), straight=a, swapped=b) for n, (a, b) in pairs]
    return list(position(Observations(voted=votes)))


def test_e8_swap_consistency_is_what_the_authors_of_llmbar_published() -> None:
    """And every first-place rate follows from the inconsistent verdicts."""
    runs = 0
    for run, straight, swapped in recorded():
        assert len(straight) == run["n"]
        favor, found = order(straight, swapped)
        published = float(run["published"]["equal"].rpartition("=")[2].rstrip("%"))
        assert found.value == pytest.approx(published / 100, abs=1e-9)
        assert found.interval is not None
        assert found.interval.low <= found.value <= found.interval.high
        pairs = list(zip(straight, swapped, strict=True))
        decided = sum(each in {"A", "B"} for pair in pairs for each in pair)
        first = sum((a == "A") + (b == "B") for a, b in pairs)
        if favor.value is not None:
            assert favor.value == pytest.approx(first / decided, abs=1e-9)
        runs += 1
    assert runs == 479


def test_e8_judges_known_for_their_position_bias_are_told_so() -> None:
    known = ("CaseStudy/Base_10", "ChatGPT-0301", "Metrics_Reference")
    (found,) = (
        order(straight, swapped)[0]
        for run, straight, swapped in recorded()
        if (run["subset"], run["judge"], run["strategy"]) == known
    )
    assert found.value is not None
    assert found.value > 0.9
    assert found.sentence.endswith("the judge favors the first position.")
