"""A model's reply as OpenAI's chat completions have it, whole or as a stream."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from jurybox.judging.exchange import ModelReply
from jurybox.web.model_server.requests import Asked

END: Final = b"data: [DONE]\n\n"


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What tells one answer from another: its name, and the second it was made in."""

    id: str
    created: int


def completion(asked: Asked, reply: ModelReply, stamp: Stamp) -> dict[str, Any]:
    """Return the answer as a whole."""
    message = {"role": "assistant", "content": reply.text, "refusal": None}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs(asked, reply),
        "finish_reason": reply.finish_reason,
    }
    return {
        **_head("chat.completion", reply, stamp),
        "choices": [choice],
        "usage": _usage(reply),
    }


def events(asked: Asked, reply: ModelReply, stamp: Stamp) -> Iterator[bytes]:
    """Return the answer as the events of a stream; all of the text is in the first."""
    head = _head("chat.completion.chunk", reply, stamp)
    if asked.include_usage:
        # Every event but the last has none then.
        head["usage"] = None
    said = {"role": "assistant", "content": reply.text}
    choice = {"index": 0, "delta": said, "logprobs": _logprobs(asked, reply), "finish_reason": None}
    yield _event({**head, "choices": [choice]})
    nothing: dict[str, str] = {}
    end = {"index": 0, "delta": nothing, "logprobs": None, "finish_reason": reply.finish_reason}
    yield _event({**head, "choices": [end]})
    if asked.include_usage:
        yield _event({**head, "choices": [], "usage": _usage(reply)})
    yield END


def _event(data: object) -> bytes:
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


def _head(kind: str, reply: ModelReply, stamp: Stamp) -> dict[str, Any]:
    return {
        "id": stamp.id,
        "object": kind,
        "created": stamp.created,
        "model": reply.model,
        "system_fingerprint": reply.fingerprint,
    }


def _usage(reply: ModelReply) -> dict[str, Any]:
    read, written = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": reply.usage.cached_tokens or 0},
    }


def _logprobs(asked: Asked, reply: ModelReply) -> dict[str, Any] | None:
    if asked.logprobs is None or reply.logprobs is None:
        return None
    content = msgspec.json.decode(reply.logprobs)["content"]
    return {"content": [_entry(each, asked.logprobs) for each in content], "refusal": None}


def _entry(token: dict[str, Any], alternatives: int) -> dict[str, Any]:
    # A runtime that is asked for none would give no probabilities at all.
    others = token["top_logprobs"][:alternatives]
    return _probability(token) | {"top_logprobs": [_probability(each) for each in others]}


def _probability(token: dict[str, Any]) -> dict[str, Any]:
    # The bytes of a token aren't known where it is a part of a character.
    return {"token": token["token"], "logprob": token["logprob"], "bytes": None}
