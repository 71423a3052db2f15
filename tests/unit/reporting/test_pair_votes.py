"""The votes on a pair, read anew from what was asked and answered."""

import json
import math
from collections.abc import Callable

import msgspec
import pytest

from jurybox.engine.driver import drive_sync
from jurybox.engine.records import ExchangeRow, framed, outcome_text
from jurybox.judging.flow import ModelReply, ModelRequest, Outcome
from jurybox.judging.jury import jury
from jurybox.judging.protocol import Judging
from jurybox.reporting.judge_votes import pair_votes
from jurybox.sample import Response, Sample
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.wiring import load_rubric

PAIR = Sample(
    id="p", task="Say it.", response=Response(text="one"), response_b=Response(text="two")
)
JUDGING = Judging(rubric=load_rubric("general"), checklist=load_rubric("bias-awareness"))


def _asked(
    procedure: Procedure, answer: Callable[[ModelRequest], Outcome]
) -> tuple[ExchangeRow, ...]:
    """Have a pair judged, and return what was asked as it is stored."""
    rows: list[ExchangeRow] = []

    def kept(request: ModelRequest) -> Outcome:
        outcome = answer(request)
        rows.append(
            ExchangeRow(
                run_id="r",
                number=0,
                position=len(rows),
                role="judge",
                key="",
                **framed(request)._asdict(),
                outcome=outcome_text(outcome),
                notes="{}",
            )
        )
        return outcome

    flow = jury(procedure.judging, PAIR, procedure.judges, procedure.votes)
    drive_sync(flow, kept)
    return tuple(rows)


def _says_a(request: ModelRequest) -> ModelReply:
    asked = json.loads(request.schema or "")["properties"]
    told = dict.fromkeys(asked["reasoning"]["properties"], "Seen.")
    verdict = {
        "reasoning": told,
        "bias_checklist": dict.fromkeys(asked["bias_checklist"]["properties"], "Seen."),
        "safety_concerns": [],
        "preferences": dict.fromkeys(told, "A"),
        "winner": "A",
    }
    return ModelReply(text=json.dumps(verdict))


def test_e8_votes_that_were_spared_are_no_votes() -> None:
    decided = msgspec.structs.replace(JUDGING, stop_when_decided=True)
    procedure = Procedure(judging=decided, judges=("openai/x@1",), votes=5)
    rows = _asked(procedure, _says_a)
    found = list(pair_votes(procedure, PAIR, rows))
    assert len(rows) == 6
    assert len(found) == 3
    for vote in found:
        assert (vote.straight, vote.swapped) == ("A", "B")
        assert set(vote.kept.values()) == {False}


def test_replies_are_read_under_another_rubric_as_well() -> None:
    procedure = Procedure(judging=JUDGING, judges=("openai/x@1",), votes=2)
    rows = _asked(procedure, _says_a)
    reworded = msgspec.structs.replace(JUDGING.rubric, description="Other words.")
    other = msgspec.structs.replace(JUDGING, rubric=reworded)
    again = msgspec.structs.replace(procedure, judging=other)
    assert len(list(pair_votes(again, PAIR, rows))) == 2


@pytest.mark.parametrize(
    ("first_of_one", "first_of_two", "orders"),
    [
        (0.9, 0.2, ("A", "A")),
        (0.2, 0.9, ("B", "B")),
        (0.9, 0.8, ("A", "B")),
        (0.3, 0.2, ("B", "A")),
        (0.5, 0.5, ("tie", "tie")),
    ],
)
def test_the_places_of_a_judge_by_evidence_are_in_its_probabilities(
    first_of_one: float, first_of_two: float, orders: tuple[str, str]
) -> None:
    def answer(request: ModelRequest) -> ModelReply:
        asked = request.messages[-1].content
        chance = 0.5
        if "Answer A: " in asked:
            chance = first_of_one if "Answer A: one\n" in asked else first_of_two
        words = asked.rpartition("Reply ")[2].rstrip(".").split(" or ")
        masses = zip(words, (chance, 1 - chance), strict=True)
        top = [{"token": word, "logprob": math.log(mass), "bytes": None} for word, mass in masses]
        tokens = {"content": [{"token": words[0], "logprob": -0.1, "top_logprobs": top}]}
        return ModelReply(text=words[0], logprobs=json.dumps(tokens))

    procedure = Procedure(judging=JUDGING, judges=("local/double",), votes=1)
    rows = _asked(procedure, answer)
    (vote,) = pair_votes(procedure, PAIR, rows)
    assert (vote.straight, vote.swapped) == orders
    assert vote.kept == {}
