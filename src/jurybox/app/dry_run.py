"""Estimates the calls and the cost of a run without calling a model."""

import math
from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from jurybox.app.prepare import Prepared
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.sample import Row, Usage
from jurybox.scoring.evaluate_sample import Procedure, evaluate_sample
from jurybox.scoring.prices import cost
from jurybox.scoring.sample_result import Role
from jurybox.wiring import read_prices

_CHARACTERS_PER_TOKEN: Final = 4
# Replaces a missing response in requests to judges.
_RESPONSE: Final = "x" * 400
_NOTES: Final = (
    "input: 4 characters per token, 400 characters for a missing response",
    "output: at most the token limit of each reply; requests after invalid replies aren't counted",
)


class ModelEstimate(msgspec.Struct, kw_only=True):
    """The calls to one model in one role, with the range of their tokens and cost.

    The cost is None if the price is unknown.
    """

    model: str
    role: Role
    calls: int = 0
    input_tokens: int = 0
    most_output_tokens: int = 0
    dollars: float | None = None
    most_dollars: float | None = None


class CostEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """A run's estimated calls, and its cost: from all replies empty to all of maximum length."""

    samples: int
    calls: int
    dollars: float | None
    most_dollars: float | None
    models: tuple[ModelEstimate, ...]
    notes: tuple[str, ...] = _NOTES


def _sum(parts: list[float | None]) -> float | None:
    known = [each for each in parts if each is not None]
    return round(math.fsum(known), 9) if len(known) == len(parts) else None


def estimate_cost(prepared: Prepared) -> CostEstimate:
    """Count every sample's requests, except those that depend on the replies of judges."""
    plan, procedure = prepared.plan, prepared.plan.procedure()
    models: dict[tuple[Role, str], ModelEstimate] = {}
    rows = prepared.dataset.rows(needs_response=plan.target is None)
    for _, row in islice(rows, plan.dataset.used):
        for role, request in _requests(procedure, row):
            key = (role, request.model)
            made = models.setdefault(key, ModelEstimate(model=request.model, role=role))
            letters = sum(len(message.content) for message in request.messages)
            made.calls += plan.repeats
            made.input_tokens += plan.repeats * math.ceil(letters / _CHARACTERS_PER_TOKEN)
            made.most_output_tokens += plan.repeats * request.generation.max_tokens
    prices = read_prices()
    for made in models.values():
        batched = plan.batch and made.role == "judge"
        for field, output in (("dollars", 0), ("most_dollars", made.most_output_tokens)):
            usage = Usage(input_tokens=made.input_tokens, output_tokens=output)
            setattr(made, field, cost(made.model, usage, prices, batched=batched))
    found = [models[key] for key in sorted(models)]
    return CostEstimate(
        samples=plan.samples,
        calls=sum(each.calls for each in found),
        dollars=_sum([each.dollars for each in found]),
        most_dollars=_sum([each.most_dollars for each in found]),
        models=tuple(found),
    )


def _requests(procedure: Procedure, row: Row) -> Iterator[tuple[Role, ModelRequest]]:
    """Yield the requests for a row, up to those that depend on the judges' replies."""
    flow = evaluate_sample(procedure, row)
    try:
        requests = next(flow)
        if procedure.target is not None:
            yield "target", requests[0]
            reply = ModelReply(text=_RESPONSE, sent=requests[0].generation, model=None)
            requests = flow.send((reply,))
        for request in requests:
            yield "judge", request
    except StopIteration:
        return
    finally:
        flow.close()
