"""What is said between a judge's flow and a model: requests, replies, failures."""

from typing import Literal

import msgspec

from jurybox.rubric.model import Generation
from jurybox.sample import Turn, Usage

FailureKind = Literal["timeout", "unreachable", "rate-limit", "refused", "unreadable"]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to one model.

    ``schema`` is the JSON schema of the reply, as text; a model that can't be held to one ignores
    it, since every reply is validated anyway. ``vote`` keeps the requests of two votes apart in a
    cache, even where nothing else differs.
    """

    model: str
    messages: tuple[Turn, ...]
    generation: Generation
    schema: str | None = None
    vote: int = 0


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered, word for word, and what is known of how.

    ``sent`` are the parameters that really went out: some models take no temperature or no seed.
    """

    text: str
    usage: Usage = Usage()
    sent: Generation | None = None
    seed_sent: bool = True
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    latency_ms: float | None = None
    logprobs: str | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A request that got no reply after all retries; it takes the reply's place."""

    kind: FailureKind
    message: str


Outcome = ModelReply | Failure
