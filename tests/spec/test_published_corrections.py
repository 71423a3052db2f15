"""A biased judge's win rate, corrected by a few of people's votes (recorded arena battles)."""

import json
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from jurybox.statistics.corrected import LabeledScores, corrected_mean, corrected_rate
from jurybox.statistics.intervals import wilson

DATA = Path(os.environ.get("JURYBOX_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
FILE = DATA / "arena_human_vs_judge.jsonl"
PUBLISHED = ("claude-opus-4-20250514_vs_gemini-2.5-pro", "gpt-4o-mini")
DRAWS = 150
LABELS = 60

pytestmark = pytest.mark.skipif(
    not FILE.exists(), reason=f"the recorded arena battles are not at {FILE}"
)

Wins = NDArray[np.float64]


def battles() -> dict[tuple[str, str], tuple[Wins, Wins]]:
    """Return by match-up and judge whether the first model won, by people and by the judge."""
    found: dict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        # One reply of either judge could not be read; it is no vote for anybody.
        if row["judge_pick"] is None:
            continue
        first = row["matchup"].split("_vs_")[0]
        human = row[row["human"]] == first
        judge = row[f"model_{row['judge_pick'].lower()}"] == first
        found[row["matchup"], row["judge"]].append((human, judge))
    return {key: tuple(np.array(wins, dtype=float).T) for key, wins in found.items()}


def test_the_published_rates() -> None:
    human, judge = battles()[PUBLISHED]
    assert len(human) == 276
    assert human.mean() == pytest.approx(0.236, abs=5e-4)
    assert judge.mean() == pytest.approx(0.159, abs=5e-4)


def test_the_judge_alone_misses_the_human_rate() -> None:
    human, judge = battles()[PUBLISHED]
    interval = wilson(int(judge.sum()), len(judge))
    assert not interval.low <= human.mean() <= interval.high


def test_the_corrected_rate_is_right_on_average_and_its_interval_covers_the_human_one() -> None:
    """60 labels drawn at random, 150 times over, for each match-up and judge.

    The human rate of all battles includes the labeled ones, so that it is covered a little more
    often than the true one would be.
    """
    rng = np.random.default_rng(8)
    for key, (human, judge) in battles().items():
        covered = {"ppi": 0, "rogan-gladen": 0}
        values = []
        for _ in range(DRAWS):
            order = rng.permutation(len(human))
            some, rest = order[:LABELS], order[LABELS:]
            data = LabeledScores(human[some], judge[some], judge[rest])
            mean = corrected_mean(data)
            values.append(mean.corrected.value)
            for name, made in (("ppi", mean), ("rogan-gladen", corrected_rate(data))):
                interval = made.corrected.interval
                inside = interval is not None and interval.low <= human.mean() <= interval.high
                # Where the judge might as well guess, no rate is claimed, and none is missed.
                covered[name] += inside or (interval is None and name != "ppi")
        assert 0.94 <= covered["ppi"] / DRAWS <= 0.995, key
        assert covered["rogan-gladen"] / DRAWS >= 0.93, key
        assert np.mean(values) == pytest.approx(human.mean(), abs=0.015), key
