"""A chat model at an HTTP endpoint: the parameters it accepts, and its batch interface.

Compatible endpoints accept different parameters and don't announce them. So everything is sent, and
if the endpoint refuses a parameter by name, the request is repeated without it. The reply records
what was sent.
"""

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, ClassVar, Final, Literal
from urllib.parse import quote, urlencode

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.http import HttpAnswer, HttpCall, HttpClient, decode
from jurybox.models.model_errors import Refusal, StatusError, quoted
from jurybox.rubric.rubric_model import Generation

Payload = dict[str, object]
_PAGE: Final = 100
_MOST_PAGES: Final = 100
# The allowed difference between the provider's clock and ours, in seconds.
_SKEW: Final = 600.0
Refused = frozenset[str]
"""The parameters, and the forms of a schema, that an endpoint refuses for one model."""

# Bad request, and the status that some frameworks use instead.
_NEGOTIABLE: Final = {400, 422}
_NEGOTIATED: Final = (
    *("max_tokens", "temperature", "top_p", "seed"),
    *("top_logprobs", "logprobs", "cache_control"),
)
_FORM = re.compile(r"response.?format|json.?schema|json.?object|structured.output", re.IGNORECASE)
# Words of a refusal. A message that names a parameter without them isn't a refusal: the user has to
# fix a value that is out of range, or a prompt that is too long.
_REFUSED = re.compile(
    r"unsupported|n[o']t (?:be )?(?:\w+ )?(?:support|permit|allow|accept|implement|available)|"
    r"unavailable|only .{1,40}(?:allowed|supported)|unknown|unrecogni[sz]ed|unexpected|"
    r"extra (?:input|field)|deprecated|invalid (?:param|arg)|cannot both|no longer",
    re.IGNORECASE,
)


def _newly_refused(refused: Refused, error: StatusError, sent: AbstractSet[str]) -> str | None:
    """Return what a retry after a refusal leaves out or replaces; None if a retry can't help.

    It is left out for good, so retries end.
    """
    refusal = error.refusal
    if error.status not in _NEGOTIABLE:
        return None
    if "response_format" in sent and _FORM.search(f"{refusal.param} {refusal.message}"):
        return "json_object" if "json_schema" in refused else "json_schema"
    if not _REFUSED.search(f"{refusal.code} {refusal.message}"):
        return None
    return next((name for name in _NEGOTIATED if name in sent and _names(refusal, name)), None)


def _names(refusal: Refusal, parameter: str) -> bool:
    if refusal.param:
        return refusal.param == parameter
    return re.search(rf"(?<!\w){parameter}(?!\w)", refusal.message) is not None


BatchState = Literal["open", "ended", "refused"]
"""A batch is ``refused`` if none of its requests will be tried."""
# The states of all providers.
_STATES: Final[Mapping[str, BatchState]] = {
    **dict.fromkeys(("validating", "in_progress", "finalizing"), "open"),
    **dict.fromkeys(("cancelling", "canceling"), "open"),
    **dict.fromkeys(("completed", "expired", "cancelled", "ended"), "ended"),
    "failed": "refused",
}
# Counts of requests that aren't done.
_NOT_DONE: Final = {"total", "processing"}
BATCH_MARK: Final = "jurybox_batch"
"""The key of a batch's mark in its metadata."""


class BatchError(msgspec.Struct):
    """Why a provider refused a batch or one of its requests."""

    code: str | None = None
    message: str | None = None

    @property
    def shown(self) -> str:
        """The reason in words; empty if the provider gave none."""
        return quoted(self.message or self.code or "")


class _BatchErrors(msgspec.Struct):
    data: list[BatchError] | None = None


class ProviderBatch(msgspec.Struct):
    """A batch as its provider describes it; without a creation time, it counts as new."""

    id: str
    status: str = ""
    processing_status: str = ""  # instead of `status`
    created_at: float | str = math.inf  # in seconds, or as ISO 8601
    metadata: dict[str, str] | None = None
    request_counts: dict[str, int] = {}
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _BatchErrors | None = None

    @property
    def state(self) -> BatchState | None:
        """Its state; None if it is unknown."""
        return _STATES.get(self.status or self.processing_status)

    @property
    def answered(self) -> int:
        """How many requests are done."""
        return sum(n for name, n in self.request_counts.items() if name not in _NOT_DONE)

    @property
    def error(self) -> BatchError:
        """Why it was refused."""
        return ((self.errors and self.errors.data) or [BatchError()])[0]

    @property
    def seconds(self) -> float:
        """When it was created, in seconds since 1970."""
        at = self.created_at
        return datetime.fromisoformat(at).timestamp() if isinstance(at, str) else at


class _Page(msgspec.Struct):
    data: list[ProviderBatch]
    has_more: bool = False


class ChatModel(ABC):
    """One model at an endpoint; calls raise `ModelError` on failure.

    Attributes:
        path: where requests are posted.
        batches: where batches are listed and created.
        cursor: the parameter of the list that names the last batch of the page before.
        marked: whether a batch can have a mark, by which it is found again.
        needed: required parameters.
        within: parameters nested in others.
        refused: the parameters known to be refused; learned once, then reused.

    """

    path: ClassVar[str]
    batches: ClassVar[str]
    cursor: ClassVar[str]
    marked: ClassVar[bool]
    needed: ClassVar[frozenset[str]] = frozenset()
    within: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, name: str, client: HttpClient) -> None:
        self.name = name
        self.client = client
        self.refused: Refused = frozenset()

    @property
    def endpoint(self) -> str:
        """The address."""
        return self.client.address

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Send a request; parameters that the endpoint refuses are left out from then on."""
        refused = self.refused
        started, attempts = time.monotonic(), 1
        while True:
            payload = self.payload(request, refused)
            try:
                answer = await self.client.post(self.path, payload)
            except StatusError as error:
                refused |= self._also_refused(error, refused, payload)
                attempts += 1
            else:
                self.refused = refused
                reply = self.reply(answer, payload)
                if attempts == 1:
                    return reply
                return reply.retried(attempts, (time.monotonic() - started) * 1000)

    def learn(self, error: StatusError, refused: Refused, payload: Payload) -> None:
        """Learn from a refused request of a batch; raise the error if a retry can't help.

        Requests of one batch may be refused for different parameters.
        """
        self.refused |= refused | self._also_refused(error, refused, payload)

    def _also_refused(self, error: StatusError, refused: Refused, payload: Payload) -> set[str]:
        sent = payload.keys() | (self.within - refused)
        name = _newly_refused(refused, error, sent - self.needed)
        if name is None:
            raise error
        return {name}

    async def aclose(self) -> None:
        """Close connections."""
        await self.client.aclose()

    @abstractmethod
    def payload(self, request: ModelRequest, refused: Refused) -> Payload:
        """Return the request body, without refused parameters."""

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
    def batch_results(self, batch: ProviderBatch) -> tuple[str, ...]:
        """Return the paths of a batch's results."""

    @abstractmethod
    def batch_answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""

    async def find_batches(self, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the ids of the batches that were possibly submitted with ``mark``.

        If the provider has no marks, these are the batches with this number of ``requests`` that
        were created after ``since``.
        """
        listed = await self._list_batches(since)
        if self.marked:
            return [each.id for each in listed if (each.metadata or {}).get(BATCH_MARK) == mark]
        return [each.id for each in listed if sum(each.request_counts.values()) == requests]

    async def _list_batches(self, since: str) -> list[ProviderBatch]:
        oldest = datetime.fromisoformat(since).timestamp() - _SKEW
        found: list[ProviderBatch] = []
        after: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            query = urlencode({"limit": _PAGE, **after})
            page = decode(await self.client.send(HttpCall(path=f"{self.batches}?{query}")), _Page)
            recent = [each for each in page.data if each.seconds >= oldest]
            found += recent
            # The list begins with the newest batch.
            if not page.has_more or not recent:
                break
            after = {self.cursor: page.data[-1].id}
        return found

    async def batch_status(self, batch_id: str) -> ProviderBatch:
        """Return a batch in its current state."""
        path = f"{self.batches}/{quote(batch_id, safe='')}"
        batch = decode(await self.client.send(HttpCall(path=path)), ProviderBatch)
        if batch.state is None:
            status = quoted(batch.status or batch.processing_status)
            what = f"batch {quoted(batch_id)} has the unknown status `{status}`"
            raise ModelError("unreadable", what, retry=False)
        return batch


def sent_generation(payload: Mapping[str, Any]) -> Generation:
    """Return the parameters in a payload; one that isn't sent has the default of the APIs."""
    sent: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, **payload}
    limit: int = sent.get("max_completion_tokens") or sent["max_tokens"]
    names = [name for name in ("temperature", "top_p", "seed") if name in sent]
    return Generation(max_tokens=limit, **{name: sent[name] for name in names})
