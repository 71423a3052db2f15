"""E9 in rounds: votes that can't change the outcome are not asked for, and nothing else changes."""

import json
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox import load_rubric, parse_rubric
from jurybox.engine.driver import drive_sync
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.flow import Failure, Flow, ModelReply, ModelRequest, Outcome
from jurybox.judging.jury import all_at_once, jury, run_until_decided
from jurybox.judging.protocol import Judging
from jurybox.sample import Response, Sample

RUBRIC = parse_rubric("""---
id: two
version: 1.0.0
scale: 1-3
---
# Two criteria
## Criteria
### Correctness
Facts are right.
### Tone
Friendly.
""")
CHECKLIST = load_rubric("bias-awareness")
NAMES = tuple(criterion.id for criterion in RUBRIC.criteria)
ONE = Sample(task="What is 2 + 2?", response=Response(text="It is 4."))
TWO = msgspec.structs.replace(ONE, response_b=Response(text="It is five."))
REFERENCED = msgspec.structs.replace(TWO, reference="4")

Vote = Sequence[object]
LOST = Failure(kind="refused", message="no")


def _reply(verdict: Mapping[str, object]) -> ModelReply:
    said = {
        "reasoning": dict.fromkeys(NAMES, "It is so."),
        "bias_checklist": {item.id: "Not at work." for item in CHECKLIST.criteria},
        "safety_concerns": [],
        **verdict,
    }
    return ModelReply(text=json.dumps(said))


def _scores(vote: Vote | None) -> Outcome:
    return LOST if vote is None else _reply({"scores": dict(zip(NAMES, vote, strict=True))})


def _sides(vote: Vote | None) -> Outcome:
    if vote is None:
        return LOST
    preferences = dict(zip(NAMES, vote[1:], strict=True))
    return _reply({"preferences": preferences, "winner": vote[0]})


def judge(
    sample: Sample, votes: Sequence[Outcome], *, stop: bool, on_unstable: str = "tie"
) -> tuple[EvaluationReport, list[int]]:
    """Return the report, and which votes were asked for, call by call."""
    asked: list[int] = []

    def answer(request: ModelRequest) -> Outcome:
        asked.append(request.vote)
        return votes[request.vote]

    rubric = msgspec.structs.replace(RUBRIC, on_unstable=on_unstable)
    judging = Judging(rubric=rubric, checklist=CHECKLIST, stop_when_decided=stop)
    flow = jury(judging, sample, ["openai/a-1"], len(votes))
    return drive_sync(flow, answer), asked


@pytest.mark.parametrize(
    ("votes", "asked"),
    [
        ([(3, 2)], 1),
        ([(3, 2), (3, 2)], 2),
        ([(3, 2), (3, 2), (1, 1)], 2),
        ([(3, 2), (3, 1), (3, 1)], 3),
        ([(3, 2), None, (3, 2)], 3),
        ([(3, 2)] * 4, 3),
        ([(3, 2), (3, 2), (1, 2), (3, 1), (1, 1)], 4),
        ([(3, 2), (2, 2), (1, 2), (3, 1), (3, 1)], 5),
        ([None, None, None], 3),
    ],
)
def test_only_as_many_votes_are_asked_for_as_settle_it(
    votes: list[Vote | None], asked: int
) -> None:
    report, calls = judge(ONE, [_scores(vote) for vote in votes], stop=True)
    assert calls == list(range(asked))
    assert report.votes_requested == len(votes)
    assert report.votes_skipped == len(votes) - asked
    assert report.votes_valid == sum(vote is not None for vote in votes[:asked])


def test_for_pairs_by_review_all_votes_have_a_say() -> None:
    tie = [_sides(("tie", "tie", "tie"))] * 3
    assert len(judge(TWO, tie, stop=True, on_unstable="review")[1]) == 6
    assert len(judge(TWO, tie, stop=True, on_unstable="tie")[1]) == 4


def test_of_two_responses_each_stops_when_it_is_decided() -> None:
    report, calls = judge(REFERENCED, [_scores((3, 2))] * 3, stop=True)
    assert sorted(calls) == [0, 0, 1, 1]
    assert report.votes_skipped == 1
    assert report.winner == "tie"


@pytest.mark.parametrize(
    ("first", "second", "skipped", "lost"),
    [
        ([None, (3, 2), (3, 2)], [(3, 2)] * 3, 0, 1),
        ([(1, 2), (3, 2), (3, 2)], [(3, 2)] * 3, 1, 0),
        ([None, None, (3, 2)], [(3, 2)] * 3, 0, 2),
        ([(3, 2)] * 3, [(3, 2)] * 3, 1, 0),
    ],
)
def test_e6_of_two_responses_no_lost_vote_passes_for_one_that_was_not_asked_for(
    first: list[Vote | None], second: list[Vote | None], skipped: int, lost: int
) -> None:
    def answer(request: ModelRequest) -> Outcome:
        shown = request.messages[0].content
        return _scores((first if "It is 4." in shown else second)[request.vote])

    judging = Judging(rubric=RUBRIC, checklist=CHECKLIST, stop_when_decided=True)
    report = drive_sync(jury(judging, REFERENCED, ["openai/a-1"], 3), answer)
    assert report.votes_skipped == skipped
    assert report.votes_requested - report.votes_skipped - report.votes_valid == lost


SCORES = st.tuples(st.integers(1, 3), st.integers(1, 3))
SIDE = st.sampled_from(["A", "B", "tie"])


@given(st.lists(SCORES | st.none(), min_size=1, max_size=7))
def test_no_score_depends_on_the_votes_that_were_not_asked_for(votes: list[Vote | None]) -> None:
    given_all, _ = judge(ONE, [_scores(vote) for vote in votes], stop=False)
    stopped, calls = judge(ONE, [_scores(vote) for vote in votes], stop=True)
    assert calls == list(range(len(calls)))
    assert [each.score for each in stopped.criteria] == [each.score for each in given_all.criteria]
    assert stopped.overall == given_all.overall
    assert stopped.total_score == given_all.total_score
    if stopped.votes_skipped:
        assert given_all.confidence in {"moderate", "high"}
        assert stopped.confidence == "moderate"
    else:
        assert stopped == given_all


@given(st.lists(st.tuples(SIDE, SIDE, SIDE) | st.none(), min_size=1, max_size=5))
def test_no_winner_depends_on_the_votes_that_were_not_asked_for(votes: list[Vote | None]) -> None:
    given_all, _ = judge(TWO, [_sides(vote) for vote in votes], stop=False)
    stopped, _ = judge(TWO, [_sides(vote) for vote in votes], stop=True)
    assert stopped.winner == given_all.winner
    assert [each.preference for each in stopped.criteria] == [
        each.preference for each in given_all.criteria
    ]


@pytest.mark.parametrize("votes", [1, 2])
def test_whoever_stops_a_jury_stops_each_of_its_votes(votes: int) -> None:
    closed: list[int] = []

    def vote(number: int) -> Flow[int]:
        try:
            yield ()
        finally:
            closed.append(number)
        return number

    flow = run_until_decided([vote(number) for number in range(votes)], all_at_once)
    assert next(flow) == ()
    flow.close()
    assert closed == list(range(votes))
