"""A model whose probabilities are chosen, and the samples that it is asked about."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from jurybox import load_rubric
from jurybox.judging.evidence_votes import Answers, Inquiry
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.judging.protocol import Judging, Seat
from jurybox.rubric.rubric_model import Criterion, Generation, Rubric
from jurybox.rubric.scale import Scale
from jurybox.sample import Response, Sample

JUDGE = "local/double"
CHECKLIST = load_rubric("bias-awareness")
SCALES = {text: Scale.parse(text) for text in ("0-2", "1-5", "0.0-1.0")}


def logprobs(masses: Mapping[str, float]) -> str:
    """Return token probabilities as OpenAI's chat completions have them."""
    top = [
        {"token": token, "logprob": math.log(mass) if mass else -9999.0, "bytes": None}
        for token, mass in masses.items()
    ]
    return json.dumps({"content": [{"token": "?", "logprob": -0.1, "top_logprobs": top}]})


def reply(masses: Mapping[str, float]) -> ModelReply:
    return ModelReply(text=next(iter(masses), ""), logprobs=logprobs(masses))


def text_of(request: ModelRequest) -> str:
    return request.messages[-1].content


def answering(chance: Callable[[str], float]) -> Callable[[ModelRequest], ModelReply]:
    """Return a model that gives the first of the two words this chance, by what it is asked."""

    def answer(request: ModelRequest) -> ModelReply:
        asked = text_of(request)
        found = re.search(r"Reply (\w+) or (\w+)\.$", asked)
        assert found is not None
        probability = chance(asked)
        return reply({found[1]: probability, found[2]: 1 - probability})

    return answer


def seat(vote: int = 0, **more: Any) -> Seat:  # noqa: ANN401
    return Seat(vote=vote, judge=JUDGE, generation=Generation(**more))


def sample(response: str = "Paris.", response_b: str | None = None, **more: Any) -> Sample:  # noqa: ANN401
    other = None if response_b is None else Response(text=response_b)
    task = more.pop("task", "What is the capital of France?")
    return Sample(task=task, response=Response(text=response), response_b=other, **more)


def criterion(name: str = "correctness", scale: str = "1-5", **more: Any) -> Criterion:  # noqa: ANN401
    return Criterion(id=name, name=name.title(), scale=SCALES[scale], **more)


def judging(rubric: Rubric) -> Judging:
    return Judging(rubric=rubric, checklist=CHECKLIST)


def answers(inquiry: Inquiry, chance: Callable[[str], float]) -> Answers:
    """Answer by what is asked, with the material before it."""
    asked = (*inquiry.good, *inquiry.bad)
    return {probe: chance(f"{''.join(probe.parts)}{probe.question}") for probe in asked}
