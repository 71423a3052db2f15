"""``anthropic/NAME``: the Messages API."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models import http
from jurybox.models.chat_model import ChatModel, ProviderBatch, Refused, sent_generation
from jurybox.models.model_errors import quoted, read_refusal, status_error
from jurybox.sample import Usage

VERSION: Final = "2023-06-01"
_PATH: Final = "/v1/messages"
# The HTTP status of each error type, because errors in a batch have only a type.
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
_DEFAULT_TOP_P: Final = 1.0

_REASONS: Final[Mapping[str, str]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
# Stop reasons that explain a reply without text: it is kept, not reported as unreadable.
_SAYS_WHY: Final = {"length", "refusal"}

# The key of a cache mark, and the maximum number of marks that the provider accepts.
_MARK: Final = "cache_control"
_MOST_MARKS: Final = 4


def anthropic_client(
    base_url: str, api_key: str | None, options: http.HttpOptions | None = None
) -> http.HttpClient:
    """Return the client that an endpoint's models share; a local endpoint may need no key."""
    headers, secrets = {"anthropic-version": VERSION}, ()
    if api_key is not None:
        key = http.secret_header(api_key, "the API key")
        headers, secrets = {**headers, "x-api-key": key}, (key,)
    # Removes the version, because users write addresses with and without it.
    address = base_url.strip().rstrip("/").removesuffix(_PATH).removesuffix("/v1")
    return http.HttpClient(address, headers, secrets=secrets, options=options)


class AnthropicModel(ChatModel):
    """A model of the Messages API."""

    path = _PATH
    batches = "/v1/messages/batches"
    cursor = "after_id"
    marked = False
    # The token limit is required, and has no other name to try.
    needed = frozenset({"max_tokens"})
    within = frozenset({_MARK})

    def reply(self, answer: http.HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        """Return the reply in an answer to a payload."""
        reply = http.decode(answer, _Answer)
        reason = _REASONS.get(reply.stop_reason or "", reply.stop_reason)
        blocks = [block.get("text") for block in reply.content or () if block.get("type") == "text"]
        texts = [text for text in blocks if isinstance(text, str)]
        if not texts and reason not in _SAYS_WHY:
            raise ModelError("unreadable", "the answer has no text", retry=True)
        return ModelReply(
            text=self.client.mask.text("".join(texts)),
            usage=_usage(reply.usage),
            sent=sent_generation(payload),
            # The API has no seed.
            seed_sent=False,
            refused=tuple([name for name in _OPTIONAL if name in self.refused]),
            model=reply.model if isinstance(reply.model, str) else None,
            finish_reason=reason,
            latency_ms=answer.elapsed_ms,
        )

    def payload(self, request: ModelRequest, refused: Refused) -> dict[str, object]:
        """Return the request body, without refused parameters."""
        generation = request.generation
        payload: dict[str, object] = {
            "model": self.name,
            "max_tokens": generation.max_tokens,
            "temperature": generation.temperature,
            "messages": _messages(request, marks=_MARK not in refused),
        }
        system = [turn.content for turn in request.messages if turn.role == "system"]
        if system:
            payload["system"] = "\n\n".join(system)
        # Left out if it has no effect, since newer models refuse it together with temperature.
        if generation.top_p != _DEFAULT_TOP_P:
            payload["top_p"] = generation.top_p
        return {name: value for name, value in payload.items() if name not in refused}

    def batch_line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as an item of the batch's list of requests."""
        return http.encoded({"custom_id": name, "params": payload})

    async def submit_batch(self, lines: Sequence[bytes], mark: str) -> str:
        """Submit the requests; ``mark`` isn't sent, because the API has no field for it."""
        del mark
        body = b"".join((b'{"requests":[', b",".join(lines), b"]}"))
        answer = await self.client.send(http.HttpCall(method="POST", path=self.batches, body=body))
        return http.decode(answer, ProviderBatch).id

    def batch_results(self, batch: ProviderBatch) -> tuple[str, ...]:
        """Return the path of the results; the address in the batch isn't trusted with the key."""
        return (f"{self.batches}/{quote(batch.id, safe='')}/results",)

    def batch_answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        result = http.decode_body(line, _AnthropicBatchLine).result
        match result.type:
            case "succeeded":
                return bytes(result.message)
            case "errored":
                refusal = read_refusal(bytes(result.error), "application/json", ())
                raise status_error(_STATUSES.get(refusal.code, _INTERNAL), refusal)
            case "expired":
                what = "the batch expired before the request was tried"
                raise ModelError("timeout", what, retry=True)
            case "canceled":
                what = "the batch was canceled before the request was tried"
                raise ModelError("unreachable", what, retry=True)
            case kind:
                what = f"the answer has the unknown type `{quoted(kind)}`"
                raise ModelError("unreadable", what, retry=True)


def _messages(request: ModelRequest, *, marks: bool) -> list[dict[str, object]]:
    """Return the turns, with a cache mark at each position after which requests differ."""
    turns: list[dict[str, object]] = [
        {"role": turn.role, "content": turn.content}
        for turn in request.messages
        if turn.role != "system"
    ]
    text = request.messages[-1].content
    ends = [end for end in request.shared_ends if 0 < end < len(text)][:_MOST_MARKS]
    if marks and ends:
        *before, last = (text[start:end] for start, end in pairwise((0, *ends, len(text))))
        mark = {_MARK: {"type": "ephemeral"}}
        blocks = [{"type": "text", "text": each, **mark} for each in before]
        turns[-1]["content"] = [*blocks, {"type": "text", "text": last}]
    return turns


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
        return http.count_of(counts.get(name))

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


class _BatchResult(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _AnthropicBatchLine(msgspec.Struct):
    result: _BatchResult
