"""An agent as the judge: its prompts, and its replies checked by the protocol (E16)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from jurybox.app.evaluate_once import outcome_report, single_procedure
from jurybox.errors import CombinedError, InputError
from jurybox.judging.flow import Defect, ModelReply, ModelRequest
from jurybox.judging.protocol import Judging
from jurybox.rubric import Rubric
from jurybox.sample import Row, Sample, Turn
from jurybox.scoring.by_rules import SingleReport
from jurybox.scoring.evaluate_sample import evaluate_sample

AGENT: Final = "agent"


class AgentPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that waits for a reply.

    ``asks`` says what it is about where there are several: an order of a pair, or a response.
    ``defect`` is why the last reply to it can't be used.
    """

    asks: str
    messages: tuple[Turn, ...]
    defect: str | None

    @property
    def text(self) -> str:
        """The new text: the full prompt, or the request to reply again."""
        return self.messages[-1].content


class InvalidReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that can't be used, by its number from 1 on."""

    number: int
    asks: str
    defect: str


class AgentTurn(msgspec.Struct, frozen=True, kw_only=True):
    """It is the agent's turn: ``prompts`` wait for the replies from ``number`` on."""

    number: int
    prompts: tuple[AgentPrompt, ...]
    invalid: tuple[InvalidReply, ...]

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        prompts = [{**msgspec.to_builtins(each), "text": each.text} for each in self.prompts]
        return {"complete": False, "invalid": self.invalid, "prompts": prompts}

    def error(self) -> InputError:
        """Return why the replies aren't a vote yet: their defects, or a missing reply."""
        following = "answer the next prompt, and give that reply after these"
        if not self.invalid:
            asks = f" ({self.prompts[0].asks})" if self.prompts[0].asks else ""
            return InputError(f"reply {self.number} is missing{asks}", following)
        errors: list[InputError] = []
        for each in self.invalid:
            where = f"reply {each.number}" + (f" ({each.asks})" if each.asks else "")
            errors.append(InputError(each.defect.removesuffix("."), following, where))
        return errors[0] if len(errors) == 1 else CombinedError(errors)


def judge_by_agent(
    rubric: Rubric, row: Row, replies: Sequence[str], judge: str = AGENT
) -> SingleReport | AgentTurn:
    """Return the report that follows from an agent's replies, or what it is asked next.

    ``replies`` are all of them so far, in the order in which they were asked for, the invalid ones
    too. The agent gives one vote; for a pair that is two replies, one for each order.
    """
    sample = None if row.response is None else row.sample(row.response)
    if sample is None or sample.failure is not None:
        problem = "there is no response" if sample is None else str(sample.failure)
        raise InputError(problem, "give a response to judge")
    pair = row.response_b is not None
    procedure = single_procedure(rubric, (judge,), votes=1, pair=pair, way="verdict")
    asking = _Asking(procedure.judging, sample)
    flow = evaluate_sample(procedure, row)
    used = 0
    try:
        asked = next(flow)
        while True:
            given = replies[used : used + len(asked)]
            asking.read(asked, given, used)
            if len(given) < len(asked):
                return asking.turn(asked[len(given) :], used + len(given) + 1)
            used += len(given)
            asked = flow.send(tuple(ModelReply(text=text) for text in given))
    except StopIteration as done:
        if used < len(replies):
            problem = f"there are {len(replies)} replies, and the protocol asks for {used}"
            raise InputError(problem, "give those that were asked for") from None
        return outcome_report(procedure, row, done.value)
    finally:
        flow.close()


class _Asking:
    """The agent's prompts, and the defects of its replies."""

    def __init__(self, judging: Judging, sample: Sample) -> None:
        self._names = dict(_names(judging, sample))
        pair = sample.response_b is not None and sample.reference is None
        form = judging.pair_form if pair else judging.score_form
        self._read: Callable[[str, Sequence[str]], object] = form.read
        self._material = sample.texts
        self._defects: dict[str, str] = {}
        self._invalid: tuple[InvalidReply, ...] = ()

    def read(self, asked: Sequence[ModelRequest], given: Sequence[str], before: int) -> None:
        """Note which replies of a round are invalid."""
        invalid: list[InvalidReply] = []
        for number, (request, text) in enumerate(zip(asked, given, strict=False), start=before + 1):
            found = self._read(text, self._material)
            if isinstance(found, Defect):
                self._defects[_first(request)] = found.problem
                asks = self._names.get(_first(request), "")
                invalid.append(InvalidReply(number=number, asks=asks, defect=found.problem))
        if given:
            self._invalid = tuple(invalid)

    def turn(self, asked: Sequence[ModelRequest], number: int) -> AgentTurn:
        """Return the prompts that the agent has to answer now."""
        prompts = [
            AgentPrompt(
                asks=self._names.get(_first(each), ""),
                messages=each.messages,
                defect=self._defects.get(_first(each)),
            )
            for each in asked
        ]
        return AgentTurn(number=number, prompts=tuple(prompts), invalid=self._invalid)


def _first(request: ModelRequest) -> str:
    """Return the question itself, which every request to reply again begins with."""
    return request.messages[0].content


def _names(judging: Judging, sample: Sample) -> Iterator[tuple[str, str]]:
    """Yield the questions about two responses, each with what it is about."""
    if sample.response_b is None:
        return
    a, b = sample.response.text, sample.response_b.text
    if sample.reference is None:
        yield judging.pair_question(sample, a, b).text, "A before B"
        yield judging.pair_question(sample, b, a).text, "B before A"
    else:
        yield judging.score_question(sample, a).text, "response A"
        yield judging.score_question(sample, b).text, "response B"
