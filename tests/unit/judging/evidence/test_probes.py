"""Narrow questions: what is sent, and what becomes of the replies."""

from collections.abc import Callable
from itertools import accumulate

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answering import JUDGE, answering, seat, text_of
from jurybox.engine.driver import drive_sync
from jurybox.judging.evidence_votes import ALTERNATIVES, Probe, inquire
from jurybox.judging.flow import Answer, ModelRequest, Outcome

PROBE = Probe(role="You judge.", parts=("Question: q\n", "Answer: a\n"), question="Is it so?")
OTHER = Probe(role="You judge.", parts=("Question: q\n", "Answer: b\n"), question="Is it so?")


class Recorder:
    """Keeps what it was asked."""

    def __init__(self, answer: Callable[[ModelRequest], Outcome]) -> None:
        self.asked: list[ModelRequest] = []
        self._answer = answer

    def __call__(self, request: ModelRequest) -> Outcome:
        self.asked.append(request)
        return self._answer(request)


def test_a_question_is_asked_for_one_word_and_its_alternatives() -> None:
    request = PROBE.request(seat(2, temperature=0.9, max_tokens=700, seed=44, top_p=0.5))
    assert (request.model, request.vote, request.logprobs) == (JUDGE, 2, ALTERNATIVES)
    assert (request.generation.temperature, request.generation.max_tokens) == (0.0, 1)
    assert (request.generation.seed, request.generation.top_p) == (44, 0.5)
    assert [turn.role for turn in request.messages] == ["system", "user"]
    assert request.messages[0].content == "You judge."
    assert text_of(request).startswith("Question: q\nAnswer: a\n")
    assert text_of(request).endswith("Is it so? Reply yes or no.")
    assert request.schema is None


@given(st.lists(st.text(max_size=30), max_size=4), st.text(max_size=30))
def test_what_is_shared_ends_where_the_parts_do(parts: list[str], question: str) -> None:
    request = Probe(role="r", parts=tuple(parts), question=question).request(seat())
    text = text_of(request)
    starts = [text[:end] for end in request.shared]
    assert starts == [part for part in dict.fromkeys(accumulate(parts)) if part]
    assert text.endswith(f"{question} Reply yes or no.")


def test_braces_in_the_material_are_only_text() -> None:
    probe = Probe(role="r", parts=("{}", "{0} {x}"), question="Is it {y}?", words=("A", "B"))
    assert text_of(probe.request(seat())) == "{}{0} {x}\nIs it {y}? Reply A or B."


def test_a_question_is_asked_once_however_many_want_to_know() -> None:
    model = Recorder(answering(lambda text: 0.8 if "Answer: a" in text else 0.3))
    readings = drive_sync(inquire(seat(), [PROBE, OTHER, PROBE]), model)
    assert isinstance(readings, Answer)
    assert len(model.asked) == len(readings.replies) == 2
    assert readings.value == {PROBE: pytest.approx(0.8), OTHER: pytest.approx(0.3)}


def test_questions_go_out_together_with_those_about_the_same_answer_next_to_each_other() -> None:
    again = [msgspec.structs.replace(each, question="Why?") for each in (PROBE, OTHER)]
    flow = inquire(seat(), [PROBE, OTHER, *again])
    answers = [text_of(each).splitlines()[1] for each in next(flow)]
    assert answers == ["Answer: a", "Answer: a", "Answer: b", "Answer: b"]
    flow.close()
