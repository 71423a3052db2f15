"""``openai/NAME``: the chat completions of OpenAI and compatible endpoints."""

import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Annotated, Any, Final, cast
from urllib.parse import quote, urlsplit

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.judging.flow import FailureKind, ModelReply, ModelRequest
from jurybox.models import chat_model as chat
from jurybox.models import http
from jurybox.models.model_errors import Refusal, measured, quoted, read_refusal, status_error
from jurybox.sample import Usage

_PATH: Final = "/chat/completions"
_BATCH_URL: Final = "/v1/chat/completions"
_FILES: Final = "/files"
_ALWAYS_SENT: Final = ("temperature", "top_p", "seed")
# Stop reasons that explain a reply without text: it is kept, not reported as unreadable.
_SAYS_WHY: Final = {"length", "content_filter"}


def openai_client(
    base_url: str, api_key: str | None = None, options: http.HttpOptions | None = None
) -> http.HttpClient:
    """Return the client that an endpoint's models share; a local endpoint may need no key."""
    headers: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    if api_key is not None:
        if "@" in urlsplit(base_url).netloc:
            problem = "the address contains a user name, but there is an API key too"
            raise InputError(problem, "use one of the two")
        key = http.secret_header(api_key, "the API key")
        headers, secrets = {"Authorization": f"Bearer {key}"}, (key,)
    # Users may copy the full address from documentation.
    address = base_url.strip().rstrip("/").removesuffix(_PATH)
    return http.HttpClient(address, headers, secrets=secrets, options=options)


class OpenAIModel(chat.ChatModel):
    """One model at an endpoint."""

    path = _PATH
    batches = "/batches"
    cursor = "after"
    marked = True

    def payload(self, request: ModelRequest, refused: chat.Refused) -> dict[str, object]:
        """Return the request body, without refused parameters."""
        generation = request.generation
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        payload: dict[str, object] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "temperature": generation.temperature,
            "top_p": generation.top_p,
            limit: generation.max_tokens,
            "seed": generation.seed,
        }
        if request.schema is not None and "json_object" not in refused:
            if "json_schema" in refused:
                payload["response_format"] = {"type": "json_object"}
            else:
                payload["response_format"] = _response_format(request.schema)
        if request.logprobs:
            payload["logprobs"] = True
            payload["top_logprobs"] = request.logprobs
        if not refused:
            return payload
        if "logprobs" in refused:
            payload.pop("top_logprobs", None)
        return {name: value for name, value in payload.items() if name not in refused}

    def reply(self, answer: http.HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        """Return the reply in an answer to a payload."""
        completion = http.decode(answer, _Completion)
        if not completion.choices:
            raise _without_choices(completion)
        choice = completion.choices[0]
        refusal = choice.message.refusal
        text = _text(choice.message.content)
        if text is None and refusal is None and choice.finish_reason not in _SAYS_WHY:
            raise ModelError("unreadable", "the answer has no text", retry=True)
        logprobs = bytes(choice.logprobs)
        return ModelReply(
            text=self.client.mask.text(text or refusal or ""),
            usage=_usage(completion.usage),
            sent=chat.sent_generation(payload),
            seed_sent="seed" in payload,
            refused=tuple([name for name in _ALWAYS_SENT if name not in payload]),
            model=_string(completion.model),
            fingerprint=_string(completion.system_fingerprint),
            finish_reason="refusal" if refusal and not text else choice.finish_reason,
            latency_ms=answer.elapsed_ms,
            latency_model_ms=_model_time(answer, completion.timings),
            logprobs=None if logprobs == b"null" else logprobs.decode(),
        )

    def batch_line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as a line of the batch's input file."""
        request = {"custom_id": name, "method": "POST", "url": _BATCH_URL, "body": payload}
        return http.encoded(request) + b"\n"

    async def submit_batch(self, lines: Sequence[bytes], mark: str) -> str:
        """Upload the requests, then create a batch of them."""
        boundary = f"jurybox-{secrets.token_hex(16)}"
        call = http.HttpCall(
            method="POST",
            path=_FILES,
            body=_form(lines, boundary),
            content_type=f"multipart/form-data; boundary={boundary}",
        )
        file = http.decode(await self.client.send(call), _File)
        batch = {
            "input_file_id": file.id,
            "endpoint": _BATCH_URL,
            "completion_window": "24h",
            "metadata": {chat.BATCH_MARK: mark},
        }
        return http.decode(await self.client.post(self.batches, batch), chat.ProviderBatch).id

    def batch_results(self, batch: chat.ProviderBatch) -> tuple[str, ...]:
        """Return the paths of the files of answers and of errors."""
        files = [batch.output_file_id, batch.error_file_id]
        return tuple(f"{_FILES}/{quote(each, safe='')}/content" for each in files if each)

    def batch_answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        result = http.decode_body(line, _OpenAIBatchLine)
        if result.response is None:
            raise _unanswered(result.error or chat.BatchError())
        body = bytes(result.response.body)
        if result.response.status_code >= HTTPStatus.MULTIPLE_CHOICES:
            refusal = read_refusal(body, "application/json", ())
            raise status_error(result.response.status_code, refusal)
        return body


@lru_cache(maxsize=16)
def _response_format(schema: str) -> dict[str, object]:
    described = {"name": "reply", "strict": True, "schema": msgspec.Raw(schema.encode())}
    return {"type": "json_schema", "json_schema": described}


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message = msgspec.field(default_factory=_Message)
    finish_reason: str | None = None
    logprobs: msgspec.Raw = msgspec.Raw(b"null")


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: object = None
    timings: object = None
    model: object = None
    system_fingerprint: object = None
    error: object = None


# The sum of two such numbers doesn't overflow.
_Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class _Timings(msgspec.Struct):
    prompt_ms: _Milliseconds
    predicted_ms: _Milliseconds


def _without_choices(completion: _Completion) -> ModelError:
    # Some gateways report errors with a status of 200.
    match completion.error:
        case {"message": str(message), "code": int(code)} if 400 <= code < 600:  # noqa: PLR2004
            return status_error(code, Refusal(message=message))
        case {"message": str(message)} | str(message):
            return ModelError(
                "unreadable", f"the answer is an error: {quoted(message)}", retry=True
            )
        case _:
            return ModelError("unreadable", "the answer has no choices", retry=True)


def _text(content: str | list[dict[str, Any]] | None) -> str | None:
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content if part.get("type", "text") == "text"]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found else None


def _usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    reported = cast("dict[str, object]", usage)
    details = reported.get("prompt_tokens_details")
    known = cast("dict[str, object]", details) if isinstance(details, dict) else {}
    return Usage(
        input_tokens=http.count_of(reported.get("prompt_tokens")),
        output_tokens=http.count_of(reported.get("completion_tokens")),
        cached_tokens=http.count_of(known.get("cached_tokens")),
    )


def _model_time(answer: http.HttpAnswer, timings: object) -> float | None:
    """Return the model's time in milliseconds, as OpenAI or llama.cpp reports it."""
    reported = measured(answer.headers.get("openai-processing-ms"))
    if reported is not None or timings is None:
        return reported
    try:
        times = msgspec.convert(timings, _Timings)
    except msgspec.ValidationError:
        return None
    return times.prompt_ms + times.predicted_ms


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


class _File(msgspec.Struct):
    id: str


class _BatchResponse(msgspec.Struct):
    status_code: int = HTTPStatus.OK
    body: msgspec.Raw = msgspec.Raw(b"null")


class _OpenAIBatchLine(msgspec.Struct):
    response: _BatchResponse | None = None
    error: chat.BatchError | None = None


def _unanswered(error: chat.BatchError) -> ModelError:
    what = error.shown or "the line has neither an answer nor an error"
    kinds: dict[str | None, FailureKind] = {
        "batch_expired": "timeout",
        "batch_cancelled": "unreachable",
        "request_timeout": "timeout",
    }
    return ModelError(kinds.get(error.code, "unreadable"), what, retry=True)


def _form(lines: Sequence[bytes], boundary: str) -> bytes:
    """Return the multipart form that uploads a batch's file (RFC 7578)."""
    head = (
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="file"; filename="jurybox.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    return b"".join((head.encode(), *lines, f"\r\n--{boundary}--\r\n".encode()))
