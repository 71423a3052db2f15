"""Which parameters an endpoint accepts, and what is sent instead.

Endpoints that call themselves compatible differ in their parameters, and none says so beforehand.
So everything is sent, and where the endpoint refuses a parameter by name, the request goes out
again without it. What was sent in the end is in the reply.
"""

import re
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final, Literal, get_args

import msgspec

from jurybox.models.http import HttpAnswer, HttpClient
from jurybox.models.model_errors import Refusal, StatusError

TokenLimit = Literal["max_tokens", "max_completion_tokens"]
ReplyForm = Literal["json_schema", "json_object", "text"]

# Bad request, and what some frameworks send instead.
_NEGOTIABLE: Final = {400, 422}
_OPTIONAL: Final = ("temperature", "top_p", "seed", "top_logprobs", "logprobs", "cache_control")
_FORM = re.compile(r"response.?format|json.?schema|json.?object|structured.output", re.IGNORECASE)
# A value out of range or a prompt that is too long is the user's to fix: a name isn't enough.
_REFUSED = re.compile(
    r"unsupported|n[o']t (?:be )?(?:\w+ )?(?:support|permit|allow|accept|implement|available)|"
    r"unavailable|only .{1,40}(?:allowed|supported)|unknown|unrecogni[sz]ed|unexpected|"
    r"extra (?:input|field)|deprecated|invalid (?:param|arg)|cannot both|no longer",
    re.IGNORECASE,
)


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters that an endpoint accepts for one model, as far as known."""

    form: ReplyForm = "json_schema"
    token_limit: TokenLimit = "max_tokens"  # noqa: S105 - tokens of text, no secret
    without: frozenset[str] = frozenset()


def _both(one: Accepted, other: Accepted) -> Accepted:
    """Return the parameters that both accept."""
    forms: tuple[ReplyForm, ...] = get_args(ReplyForm)
    limits: tuple[TokenLimit, ...] = get_args(TokenLimit)
    return Accepted(
        form=forms[max(forms.index(one.form), forms.index(other.form))],
        token_limit=limits[max(limits.index(one.token_limit), limits.index(other.token_limit))],
        without=one.without | other.without,
    )


def _without_refused(
    accepted: Accepted, error: StatusError, sent: AbstractSet[str]
) -> Accepted | None:
    """Return what to try after a refusal; None where leaving something out wouldn't help.

    Every step leaves out something that was sent, so there is an end to it.
    """
    if error.status not in _NEGOTIABLE:
        return None
    refusal = error.refusal
    if "response_format" in sent and _FORM.search(f"{refusal.param} {refusal.message}"):
        form: ReplyForm = "json_object" if accepted.form == "json_schema" else "text"
        return msgspec.structs.replace(accepted, form=form)
    if not _REFUSED.search(f"{refusal.code} {refusal.message}"):
        return None
    if "max_tokens" in sent and _names(refusal, "max_tokens"):
        return msgspec.structs.replace(accepted, token_limit="max_completion_tokens")  # noqa: S106
    for name in _OPTIONAL:
        if name in sent and _names(refusal, name):
            return msgspec.structs.replace(accepted, without=accepted.without | {name})
    return None


def _names(refusal: Refusal, parameter: str) -> bool:
    if refusal.param:
        return refusal.param == parameter
    return re.search(rf"(?<!\w){parameter}(?!\w)", refusal.message) is not None


Payload = dict[str, object]


class Negotiation:
    """The parameters that one model at an endpoint accepts; learned once, then reused."""

    def __init__(
        self,
        client: HttpClient,
        path: str,
        *,
        needed: frozenset[str] = frozenset(),
        within: frozenset[str] = frozenset(),
    ) -> None:
        """Post to ``path``.

        The parameters in ``needed`` are never left out; those in ``within`` are inside others.
        """
        self._client = client
        self._path = path
        self._needed = needed
        self._within = within
        self._accepted = Accepted()

    @property
    def accepted(self) -> Accepted:
        """The parameters known to be accepted."""
        return self._accepted

    def learn(self, error: StatusError, accepted: Accepted, sent: AbstractSet[str]) -> bool:
        """Note a refusal of what was sent under ``accepted``; return whether to try again.

        Many requests of a batch may be refused for different parts of them.
        """
        less = _without_refused(accepted, error, sent - self._needed)
        if less is None:
            return False
        self._accepted = _both(self._accepted, less)
        return True

    async def post(self, build: Callable[[Accepted], Payload]) -> tuple[HttpAnswer, Payload]:
        """Send what ``build`` returns; return the answer and what was sent."""
        accepted = self._accepted
        started, refusals = time.monotonic(), 0
        while True:
            payload = build(accepted)
            try:
                answer = await self._client.post(self._path, payload)
            except StatusError as error:
                sent = payload.keys() | (self._within - accepted.without)
                less = _without_refused(accepted, error, sent - self._needed)
                if less is None:
                    raise
                accepted = less
                refusals += 1
            else:
                self._accepted = accepted
                if refusals:
                    waited, last = (time.monotonic() - started) * 1000, answer.elapsed_ms
                    answer = msgspec.structs.replace(
                        answer, elapsed_ms=waited, attempts=1 + refusals, attempt_ms=last
                    )
                return answer, payload
