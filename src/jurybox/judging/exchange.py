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
    cache, even where nothing else differs. ``logprobs`` is how many alternatives to every token
    are wanted, with their probabilities. ``shared`` says after which characters of the last
    message other requests may go on differently: a model that reads slowly can read what they
    share once. It changes what a reply costs, never what is asked.
    """

    # What differs between samples stands last, so that requests begin alike as texts too.
    model: str
    generation: Generation
    schema: str | None = None
    vote: int = 0
    logprobs: int = 0
    shared: tuple[int, ...] = ()
    messages: tuple[Turn, ...]


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered, word for word, and what is known of how.

    ``sent`` are the parameters that really went out: some models take no temperature or no seed.
    ``latency_ms`` is from the request to the last byte of the answer, ``latency_model_ms`` what
    the provider says that the model itself took. A ``cached`` reply was made for an earlier run.
    ``logprobs`` is JSON as OpenAI's chat completions have it.
    """

    text: str
    usage: Usage = Usage()
    sent: Generation | None = None
    seed_sent: bool = True
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    latency_ms: float | None = None
    latency_model_ms: float | None = None
    logprobs: str | None = None
    cached: bool = False


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A request that got no reply after all retries; it takes the reply's place.

    ``everybody`` says that no request of the run can fare better: the endpoint is out of reach, or
    it refuses the key or the model. ``latency_ms`` is how long the last attempt took.
    """

    kind: FailureKind
    message: str
    everybody: bool = False
    latency_ms: float | None = None


Outcome = ModelReply | Failure
