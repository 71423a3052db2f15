"""Two scores a reply, as GPT-4 gave them in 2023 (lm-sys/vicuna-blog-eval, Apache-2.0).

The recordings stay outside the repository: they are looked for beside it, in ``shared/data``, or in
the folder that JURYBOX_DATA names.
"""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from jurybox.judging.flow import Defect
from jurybox.judging.replies.two_scores import read_two_scores
from jurybox.judging.verdict import Preference
from jurybox.rubric.scale import Scale
from readers import CONTINUOUS_TEN

# Read when this file is imported: no test sees the variables of the user.
_BESIDE = Path(__file__).parents[4].parent / "shared" / "data"
_FILE = Path(os.environ.get("JURYBOX_DATA") or _BESIDE) / "vicuna_blog_gpt4_raw.jsonl"

pytestmark = pytest.mark.skipif(
    not _FILE.is_file(), reason=f"no {_FILE.name} in ../shared/data or the folder in JURYBOX_DATA"
)

# The judge was asked for 1 to 10 and gave four silent answers a 0.
SCALE = Scale(low=0.0, high=10.0, continuous=True)
RUN = "vicuna-13b_20230322-clean-lang/"
# By pair: what the reader makes of the run, and what its authors published.
TOTALS = {
    "review_llama-13b_vicuna-13b": ((501, 683), (513, 694)),
    "review_alpaca-13b_vicuna-13b": ((580, 688), (583, 704)),
    "review_bard_vicuna-13b": ((634, 648.5), (664, 655.5)),
    "review_gpt35_vicuna-13b": ((663, 627), (693, 638)),
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in _FILE.read_text(encoding="utf-8").splitlines()]


def scores(row: dict[str, Any], scale: Scale = SCALE) -> list[float] | None:
    outcome = read_two_scores(row["raw"], scale)
    return None if isinstance(outcome, Defect) else outcome.remarks.extra["scores"]


def test_what_is_read_is_what_the_authors_recorded(rows: list[dict[str, Any]]) -> None:
    read = [(row, given) for row in rows if (given := scores(row)) is not None]
    assert len(read) == 1001
    assert [row for row, given in read if given != row["score"]] == []


def test_the_winner_is_the_one_with_the_higher_recorded_score(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        outcome = read_two_scores(row["raw"], SCALE)
        if isinstance(outcome, Preference):
            first, second = row["score"]
            expected = "tie" if first == second else "A" if first > second else "B"
            assert outcome.winner == expected


def test_39_replies_give_their_scores_only_in_a_sentence(rows: list[dict[str, Any]]) -> None:
    unread = [row for row in rows if scores(row) is None]
    assert len(unread) == 39
    for row in unread:
        outcome = read_two_scores(row["raw"], SCALE)
        assert isinstance(outcome, Defect)
        assert "neither its first nor its last line" in outcome.problem
        assert row["raw"].startswith("First, ")


def test_a_zero_is_no_score_from_1_to_10(rows: list[dict[str, Any]]) -> None:
    lost = [row for row in rows if scores(row) and not scores(row, CONTINUOUS_TEN)]
    assert [row["score"] for row in lost] == [[0, 9]] * 4


def test_the_totals_are_the_published_ones(rows: list[dict[str, Any]]) -> None:
    read: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    unread: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    for row in rows:
        if row["run"].startswith(RUN):
            given = scores(row)
            # The authors read the scores in a sentence themselves; the reader won't guess.
            total, adds = (unread, row["score"]) if given is None else (read, given)
            for side, score in enumerate(adds):
                total[row["run"].removeprefix(RUN)][side] += score
    assert {pair: tuple(total) for pair, total in read.items()} == {
        pair: alone for pair, (alone, _) in TOTALS.items()
    }
    assert {
        pair: tuple(one + other for one, other in zip(total, unread[pair], strict=True))
        for pair, total in read.items()
    } == {pair: published for pair, (_, published) in TOTALS.items()}
