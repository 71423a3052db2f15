"""A chat model at an HTTP endpoint: the parameters it accepts, and its batch interface.

Compatible endpoints accept different parameters and don't announce them. So everything is sent, and
if the endpoint refuses a parameter by name, the request is repeated without it. The reply records
what was sent.
"""

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, get_args
from urllib.parse import urlencode

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.http import HttpAnswer, HttpCall, HttpClient, decode
from jurybox.models.model_errors import Refusal, StatusError

Payload = dict[str, object]
_PAGE: Final = 100
_MOST_PAGES: Final = 100
# The allowed difference between the provider's clock and ours, in seconds.
_SKEW: Final = 600.0
TokenLimit = Literal["max_tokens", "max_completion_tokens"]
ReplyForm = Literal["json_schema", "json_object", "text"]

# Bad request, and the status that some frameworks use instead.
_NEGOTIABLE: Final = {400, 422}
_OPTIONAL: Final = ("temperature", "top_p", "seed", "top_logprobs", "logprobs", "cache_control")
_FORM = re.compile(r"response.?format|json.?schema|json.?object|structured.output", re.IGNORECASE)
# Naming a parameter isn't enough: a value out of range or a long prompt is the user's to fix.
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
    """Return the parameters for a retry after a refusal; None if a retry can't help.

    Every retry sends fewer parameters, so retries end.
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


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a batch, as reported by its provider."""

    # ``refused`` if none of its requests will be tried.
    state: Literal["open", "ended", "refused"]
    answered: int | None = None  # how many requests are done, if the provider reports it
    problem: str = ""  # why it was refused
    too_large: bool = False  # whether a smaller batch might have been accepted
    paths: tuple[str, ...] = ()  # where the results are


class ChatModel(ABC):
    """One model at an endpoint; calls raise `ModelError` on failure.

    Attributes:
        path: where requests are posted.
        needed: required parameters.
        within: parameters nested in others.
        accepted: the parameters known to be accepted; learned once, then reused.

    """

    path: ClassVar[str]
    needed: ClassVar[frozenset[str]] = frozenset()
    within: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, name: str, client: HttpClient) -> None:
        self.name = name
        self.client = client
        self.accepted = Accepted()

    @property
    def endpoint(self) -> str:
        """The address."""
        return self.client.address

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask once; parameters that the endpoint refuses are left out from then on."""
        return await self.ask(lambda accepted: self.payload(request, accepted))

    async def ask(self, build: Callable[[Accepted], Payload]) -> ModelReply:
        """Send the payload that ``build`` returns, and return the reply."""
        accepted = self.accepted
        started, refusals = time.monotonic(), 0
        while True:
            payload = build(accepted)
            try:
                answer = await self.client.post(self.path, payload)
            except StatusError as error:
                sent = payload.keys() | (self.within - accepted.without)
                less = _without_refused(accepted, error, sent - self.needed)
                if less is None:
                    raise
                accepted = less
                refusals += 1
            else:
                self.accepted = accepted
                if refusals:
                    waited, last = (time.monotonic() - started) * 1000, answer.elapsed_ms
                    answer = msgspec.structs.replace(
                        answer, elapsed_ms=waited, attempts=1 + refusals, attempt_ms=last
                    )
                return self.reply(answer, payload)

    def learn(self, error: StatusError, accepted: Accepted, sent: AbstractSet[str]) -> bool:
        """Learn from a refused request; return whether to try again.

        Requests of one batch may be refused for different parameters.
        """
        less = _without_refused(accepted, error, sent - self.needed)
        if less is None:
            return False
        self.accepted = _both(self.accepted, less)
        return True

    async def aclose(self) -> None:
        """Close connections."""
        await self.client.aclose()

    @abstractmethod
    def payload(self, request: ModelRequest, accepted: Accepted) -> Payload:
        """Return the request body, limited to accepted parameters."""

    @abstractmethod
    def reply(self, answer: HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        """Return the reply in an answer to a payload."""

    @abstractmethod
    def batch_line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request in the format of a batch."""

    @abstractmethod
    async def submit_batch(self, lines: Sequence[bytes], mark: str) -> str:
        """Submit a batch, with ``mark`` if the provider supports it; return its id."""

    @abstractmethod
    async def find_batches(self, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the ids of batches that may be the one with that mark."""

    @abstractmethod
    async def batch_status(self, batch_id: str) -> BatchStatus:
        """Return the state of a batch."""

    @abstractmethod
    def batch_answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""


class _Page(msgspec.Struct):
    data: list[Any]
    has_more: bool = False


async def listed_batches(
    client: HttpClient, path: str, cursor: str, since: str
) -> list[dict[str, Any]]:
    """Return a provider's batches since a time, and those without a time.

    Rows may have any form, since other programs create batches too.
    """
    oldest = datetime.fromisoformat(since).timestamp() - _SKEW
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        query = urlencode({"limit": _PAGE, **after})
        page = decode(await client.send(HttpCall(path=f"{path}?{query}")), _Page)
        batches = [each for each in page.data if _is_batch(each)]
        if page.data and not batches:
            raise ModelError("unreadable", "the list of batches can't be read", retry=True)
        recent = [each for each in batches if _created(each.get("created_at")) >= oldest]
        found += recent
        # The newest come first.
        if not page.has_more or not recent:
            break
        after = {cursor: batches[-1]["id"]}
    return found


def _is_batch(row: object) -> bool:
    match row:
        case {"id": str()}:
            return True
        case _:
            return False


def _created(value: object) -> float:
    """Return a time given in seconds or as ISO 8601; in the future if unknown."""
    if isinstance(value, int | float):
        return value
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return math.inf
