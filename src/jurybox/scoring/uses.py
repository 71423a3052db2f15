"""What the exchanges of one sample used, by model."""

from collections.abc import Iterable, Sequence

import msgspec

from jurybox.judging.exchange import ModelReply, ModelRequest, Outcome
from jurybox.sample import added_usage
from jurybox.scoring.sample_result import ModelUse, Role, SampleResult


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """A request and what came of it."""

    role: Role
    request: ModelRequest
    outcome: Outcome


def with_uses(result: SampleResult, exchanges: Iterable[Exchanged]) -> SampleResult:
    """Return the result with what its exchanges used."""
    outcomes: dict[tuple[Role, str], list[Outcome]] = {}
    for each in exchanges:
        outcomes.setdefault((each.role, each.request.model), []).append(each.outcome)
    if not outcomes:
        return result
    uses = [_use(role, model, of_it) for (role, model), of_it in outcomes.items()]
    return msgspec.structs.replace(result, uses=tuple(uses))


def _use(role: Role, model: str, outcomes: Sequence[Outcome]) -> ModelUse:
    replies = [each for each in outcomes if isinstance(each, ModelReply)]
    paid = [each.usage for each in replies if not each.cached]
    known = [each for each in paid if None not in (each.input_tokens, each.output_tokens)]
    versions = dict.fromkeys([reported_version(reply) for reply in replies])
    return ModelUse(
        model=model,
        role=role,
        calls=len(outcomes),
        cached=len(replies) - len(paid),
        failed=len(outcomes) - len(replies),
        unknown=len(paid) - len(known),
        usage=added_usage(known),
        versions=tuple([each for each in versions if each is not None]),
    )


def reported_version(reply: ModelReply) -> str | None:
    """Return the model and build that the provider says it used (A10)."""
    parts = [part for part in (reply.model, reply.fingerprint) if part is not None]
    return " ".join(parts) or None
