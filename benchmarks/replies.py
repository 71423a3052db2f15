"""What the fake endpoint says, encoded as the bytes of whole HTTP answers."""

import json
from typing import Any

KINDS = {b"completions": "chat", b"responses": "responses", b"messages": "messages"}
"""The kind of an answer by the last part of the path."""
EVERYBODY = "*"
INPUT_TOKENS, OUTPUT_TOKENS = 900, 60
NO_TIME = 1_700_000_000
NUMBER = "#NUMBER#"
"""Stands in a reply for the number of the call, in as many digits: no two replies are alike."""


def http(status: str, body: bytes, *headers: str) -> bytes:
    """Return an answer that keeps the connection."""
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode() + body


class Answers:
    """The answers of every model, made when they are first asked for."""

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said
        self._made: dict[tuple[str, str], bytes] = {}

    def of(self, kind: str, model: str) -> bytes:
        """Return the whole answer of a model."""
        found = self._made.get((kind, model))
        if found is None:
            said = self._said.get(model, self._said.get(EVERYBODY, "OK"))
            said = {"content": said} if isinstance(said, str) else said
            body = {"chat": chat, "responses": responses, "messages": messages}[kind](model, said)
            found = http("200 OK", json.dumps(body).encode())
            self._made[kind, model] = found
        return found

    def models(self) -> bytes:
        """Return the list of the models that there are."""
        names = [name for name in self._said if name != EVERYBODY]
        rows = [{"id": n, "object": "model", "created": NO_TIME, "owned_by": "us"} for n in names]
        return json.dumps({"object": "list", "data": rows}).encode()


def chat(model: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return a chat completion."""
    calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": each["name"], "arguments": json.dumps(each["arguments"])},
        }
        for number, each in enumerate(said.get("tool_calls", ()))
    ]
    message: dict[str, Any] = {"role": "assistant", "content": said.get("content")}
    message |= {"tool_calls": calls} if calls else {}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if calls else "stop",
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": NO_TIME,
        "model": model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def responses(model: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of OpenAI's newer interface."""
    output: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": each["name"],
            "arguments": json.dumps(each["arguments"]),
            "status": "completed",
        }
        for number, each in enumerate(said.get("tool_calls", ()))
    ]
    if said.get("content") is not None:
        text = {"type": "output_text", "text": said["content"], "annotations": []}
        message = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
        output.append(message)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": NO_TIME,
        "status": "completed",
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "usage": {
            "input_tokens": INPUT_TOKENS,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


def messages(model: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of Anthropic's."""
    blocks: list[dict[str, Any]] = []
    if said.get("content") is not None:
        blocks.append({"type": "text", "text": said["content"]})
    blocks += [
        {"type": "tool_use", "id": f"toolu_{n}", "name": each["name"], "input": each["arguments"]}
        for n, each in enumerate(said.get("tool_calls", ()))
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if said.get("tool_calls") else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
    }
