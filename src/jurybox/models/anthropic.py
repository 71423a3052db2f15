"""``anthropic/NAME``: the Messages API."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.chat_model import Accepted, BatchStatus, ChatModel, listed_batches
from jurybox.models.http import (
    HttpAnswer,
    HttpCall,
    HttpClient,
    HttpOptions,
    count_of,
    decode,
    decode_body,
    encoded,
    secret_header,
)
from jurybox.models.model_errors import quoted, read_refusal, status_error
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Usage

VERSION: Final = "2023-06-01"
_PATH: Final = "/v1/messages"
_BATCHES: Final = "/v1/messages/batches"
# The HTTP status of the same error outside a batch.
_STATUSES: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_INTERNAL: Final = 500

_OPTIONAL: Final = ("temperature", "top_p")
# A provider's own defaults.
_DEFAULT_TEMPERATURE: Final = 1.0
_DEFAULT_TOP_P: Final = 1.0

_REASONS: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
# Stop reasons for an empty text: the reply is kept, and its parser rejects it.
_SAYS_WHY: Final = {"length", "refusal"}

# The maximum number of cache marks that the provider accepts.
_MARK: Final = "cache_control"
_MOST_MARKS: Final = 4
_MOST_BEGUN: Final = 100


def anthropic_client(
    base_url: str, api_key: str | None, options: HttpOptions | None = None
) -> HttpClient:
    """Return a client for one endpoint, shared by its models; a local one may need no key."""
    headers, secrets = {"anthropic-version": VERSION}, ()
    if api_key is not None:
        key = secret_header(api_key, "the API key")
        headers, secrets = {**headers, "x-api-key": key}, (key,)
    # With and without the version, because users write addresses both ways.
    address = base_url.strip().rstrip("/").removesuffix(_PATH).removesuffix("/v1")
    return HttpClient(address, headers, secrets=secrets, options=options)


class AnthropicModel(ChatModel):
    """One model."""

    path = _PATH
    # The token limit has only one name, and is required.
    needed = frozenset({"max_tokens"})
    within = frozenset({_MARK})

    def __init__(self, name: str, client: HttpClient) -> None:
        super().__init__(name, client)
        self._begun: set[str] = set()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask once; a beginning shared by many requests is marked for the prompt cache."""
        again = self._comes_again(request)
        return await self.ask(lambda accepted: self._marked(request, accepted, again=again))

    def reply(self, answer: HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        """Return the reply in an answer to a payload."""
        reply = decode(answer, _Answer)
        reason = _REASONS.get(reply.stop_reason or "", reply.stop_reason)
        blocks = [block.get("text") for block in reply.content or () if block.get("type") == "text"]
        texts = [text for text in blocks if isinstance(text, str)]
        if not texts and reason not in _SAYS_WHY:
            raise ModelError("unreadable", "the answer has no text", retry=True)
        return ModelReply(
            text=self.client.mask.text("".join(texts)),
            usage=_usage(reply.usage),
            sent=Generation(
                temperature=cast("float", payload.get("temperature", _DEFAULT_TEMPERATURE)),
                top_p=cast("float", payload.get("top_p", _DEFAULT_TOP_P)),
                max_tokens=cast("int", payload["max_tokens"]),
            ),
            # The API doesn't support it.
            seed_sent=False,
            refused=tuple([name for name in _OPTIONAL if name in self.accepted.without]),
            model=reply.model if isinstance(reply.model, str) else None,
            finish_reason=reason,
            latency_ms=answer.elapsed_ms,
            attempts=answer.attempts,
            attempt_ms=answer.attempt_ms,
        )

    def _comes_again(self, request: ModelRequest) -> bool:
        """Return whether an earlier request had the same beginning.

        The prompt cache keeps the text before a mark. Writing to it costs extra, so text is marked
        only when it is sent again.
        """
        if not request.shared_ends:
            return False
        beginning = request.messages[-1].content[: request.shared_ends[0]]
        known = beginning in self._begun
        if len(self._begun) < _MOST_BEGUN:
            self._begun.add(beginning)
        return known

    def _marked(
        self, request: ModelRequest, accepted: Accepted, *, again: bool
    ) -> dict[str, object]:
        payload = self.payload(request, accepted)
        if again and _MARK not in accepted.without:
            *earlier, last = cast("list[dict[str, object]]", payload["messages"])
            payload["messages"] = [*earlier, {**last, "content": _blocks(request)}]
        return payload

    def payload(self, request: ModelRequest, accepted: Accepted) -> dict[str, object]:
        """Return the request body, limited to accepted parameters."""
        generation = request.generation
        payload: dict[str, object] = {
            "model": self.name,
            "max_tokens": generation.max_tokens,
            "temperature": generation.temperature,
            "messages": [
                {"role": turn.role, "content": turn.content}
                for turn in request.messages
                if turn.role != "system"
            ],
        }
        system = [turn.content for turn in request.messages if turn.role == "system"]
        if system:
            payload["system"] = "\n\n".join(system)
        # Newer models refuse temperature together with top_p, and this value has no effect.
        if generation.top_p != _DEFAULT_TOP_P:
            payload["top_p"] = generation.top_p
        return {name: value for name, value in payload.items() if name not in accepted.without}

    def batch_line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as an item of the list of requests."""
        return encoded({"custom_id": name, "params": payload})

    async def submit_batch(self, lines: Sequence[bytes], mark: str) -> str:
        """Submit the requests; only their names can contain the mark."""
        del mark
        body = b"".join((b'{"requests":[', b",".join(lines), b"]}"))
        answer = await self.client.send(HttpCall(method="POST", path=_BATCHES, body=body))
        return decode(answer, _AnthropicBatch).id

    async def find_batches(self, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the batches since then that have as many requests."""
        del mark
        listed = await listed_batches(self.client, _BATCHES, "after_id", since)
        return [each["id"] for each in listed if _requests(each) == requests]

    async def batch_status(self, batch_id: str) -> BatchStatus:
        """Return the state of a batch."""
        path = f"{_BATCHES}/{quote(batch_id, safe='')}"
        batch = decode(await self.client.send(HttpCall(path=path)), _AnthropicBatch)
        answered = batch.request_counts.answered
        match batch.processing_status:
            case "in_progress" | "canceling":
                return BatchStatus(state="open", answered=answered)
            case "ended":
                # Not the address in the answer, because the key is sent to the endpoint only.
                return BatchStatus(state="ended", answered=answered, paths=(f"{path}/results",))
            case status:
                what = f"batch {quoted(batch_id)} has the unknown status `{quoted(status)}`"
                raise ModelError("unreadable", what, retry=False)

    def batch_answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        result = decode_body(line, _AnthropicBatchLine).result
        match result.type:
            case "succeeded":
                return bytes(result.message)
            case "errored":
                refusal = read_refusal(bytes(result.error), "application/json", ())
                raise status_error(_STATUSES.get(refusal.code, _INTERNAL), refusal)
            case "expired":
                what = "the batch expired before it was tried"
                raise ModelError("timeout", what, retry=True)
            case "canceled":
                what = "the batch was cancelled before it was tried"
                raise ModelError("unreachable", what, retry=True)
            case kind:
                what = f"the answer has the unknown type `{quoted(kind)}`"
                raise ModelError("unreadable", what, retry=True)


def _blocks(request: ModelRequest) -> list[dict[str, object]]:
    """Return the last message, with a cache mark after the beginning that requests share."""
    text = request.messages[-1].content
    ends = request.shared_ends[:_MOST_MARKS]
    *before, last = (text[start:end] for start, end in pairwise((0, *ends, len(text))))
    marked: list[dict[str, object]] = [
        {"type": "text", "text": each, _MARK: {"type": "ephemeral"}} for each in before
    ]
    return [*marked, {"type": "text", "text": last}]


class _Answer(msgspec.Struct):
    content: list[dict[str, Any]] | None = None
    stop_reason: str | None = None
    model: object = None
    usage: object = None


def _usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    counts = cast("dict[str, object]", usage)

    def count(name: str) -> int | None:
        return count_of(counts.get(name))

    fresh, cached = count("input_tokens"), count("cache_read_input_tokens")
    written = count("cache_creation_input_tokens")
    # Anthropic's input tokens exclude cached ones; ours include them, as with other providers.
    whole = None if fresh is None else fresh + (cached or 0) + (written or 0)
    return Usage(
        input_tokens=whole,
        output_tokens=count("output_tokens"),
        cached_tokens=cached,
        written_tokens=written or msgspec.UNSET,
    )


class _AnthropicCounts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def answered(self) -> int:
        return self.succeeded + self.errored + self.canceled + self.expired


class _AnthropicBatch(msgspec.Struct):
    id: str
    processing_status: str = ""
    request_counts: _AnthropicCounts = msgspec.field(default_factory=_AnthropicCounts)


class _BatchResult(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _AnthropicBatchLine(msgspec.Struct):
    result: _BatchResult


def _requests(batch: dict[str, Any]) -> int | None:
    try:
        counts = msgspec.convert(batch.get("request_counts"), _AnthropicCounts)
    except msgspec.ValidationError:
        return None
    return counts.processing + counts.answered
