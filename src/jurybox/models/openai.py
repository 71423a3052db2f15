"""``openai/NAME``: the chat completions of OpenAI, and of everything that is compatible with it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final, cast

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.models.http import (
    HttpAnswer,
    HttpClient,
    HttpOptions,
    count_of,
    decode,
    secret_header,
)
from jurybox.models.model_errors import Refusal, measured, quoted, status_error
from jurybox.models.negotiation import Negotiation
from jurybox.models.parameter_fallback import Accepted
from jurybox.rubric.model import Generation
from jurybox.sample import Usage

BASE_URL: Final = "https://api.openai.com/v1"
_PATH: Final = "/chat/completions"

# What a provider does where it is told nothing.
_DEFAULT_TEMPERATURE: Final = 1.0
_DEFAULT_TOP_P: Final = 1.0

# Reasons to stop that explain why there is no text: the reply stands, and its reader will object.
_SAYS_WHY: Final = {"length", "content_filter"}


def openai_client(
    base_url: str = BASE_URL, api_key: str | None = None, options: HttpOptions | None = None
) -> HttpClient:
    """Return a client for one endpoint; the models there share it. A local one may need no key."""
    headers: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    if api_key is not None:
        key = secret_header(api_key, "the API key")
        headers, secrets = {"Authorization": f"Bearer {key}"}, (key,)
    # The full address is what people copy from a page about it.
    address = base_url.strip().rstrip("/").removesuffix(_PATH)
    return HttpClient(address, headers, secrets=secrets, options=options)


class OpenAIModel:
    """One model at an endpoint."""

    def __init__(self, name: str, client: HttpClient) -> None:
        self._name = name
        self.client = client
        self.negotiation = Negotiation(client, _PATH)

    @property
    def endpoint(self) -> str:
        """The address."""
        return self.client.address

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask once; a parameter that the endpoint won't have is left out and not tried again."""
        answer, payload = await self.negotiation.post(
            lambda accepted: self.payload(request, accepted)
        )
        return self.reply(answer, payload)

    def reply(self, answer: HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        """Return the reply that an answer to a payload holds.

        Raises:
            ModelError: there is none.

        """
        return _reply(answer, payload)

    async def aclose(self) -> None:
        """Let go of connections."""
        await self.client.aclose()

    def payload(self, request: ModelRequest, accepted: Accepted) -> dict[str, object]:
        """Return what is sent, as far as it is accepted."""
        generation = request.generation
        payload: dict[str, object] = {
            "model": self._name,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "temperature": generation.temperature,
            "top_p": generation.top_p,
            accepted.token_limit: generation.max_tokens,
            "seed": generation.seed,
        }
        if request.schema is not None and accepted.form != "text":
            payload["response_format"] = _response_format(request.schema, accepted)
        if request.logprobs:
            payload["logprobs"] = True
            payload["top_logprobs"] = request.logprobs
        if "logprobs" in accepted.without:
            payload.pop("top_logprobs", None)
        if not accepted.without:
            return payload
        return {name: value for name, value in payload.items() if name not in accepted.without}


@lru_cache(maxsize=16)
def _response_format(schema: str, accepted: Accepted) -> dict[str, object]:
    if accepted.form == "json_object":
        return {"type": "json_object"}
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


# A sum of two such numbers is a number too.
_Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e15)]


class _Timings(msgspec.Struct):
    prompt_ms: _Milliseconds
    predicted_ms: _Milliseconds


def _reply(answer: HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
    completion = decode(answer, _Completion)
    if not completion.choices:
        raise _without_choices(completion)
    choice = completion.choices[0]
    refusal = choice.message.refusal
    text = _text(choice.message.content)
    if text is None and refusal is None and choice.finish_reason not in _SAYS_WHY:
        raise ModelError("unreadable", "the answer has no text", retry=True)
    logprobs = bytes(choice.logprobs)
    return ModelReply(
        text=text or refusal or "",
        usage=_usage(completion.usage),
        sent=_sent(payload),
        seed_sent="seed" in payload,
        model=_string(completion.model),
        fingerprint=_string(completion.system_fingerprint),
        finish_reason="refusal" if refusal and not text else choice.finish_reason,
        latency_ms=answer.elapsed_ms,
        latency_model_ms=_model_time(answer, completion.timings),
        logprobs=None if logprobs == b"null" else logprobs.decode(),
    )


def _without_choices(completion: _Completion) -> ModelError:
    # Some gateways report trouble with a status of 200.
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


def _sent(payload: Mapping[str, object]) -> Generation:
    limit = payload.get("max_tokens", payload.get("max_completion_tokens"))
    return Generation(
        temperature=cast("float", payload.get("temperature", _DEFAULT_TEMPERATURE)),
        top_p=cast("float", payload.get("top_p", _DEFAULT_TOP_P)),
        max_tokens=cast("int", limit),
        seed=cast("int", payload.get("seed", Generation().seed)),
    )


def _usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    told = cast("dict[str, object]", usage)
    details = told.get("prompt_tokens_details")
    known = cast("dict[str, object]", details) if isinstance(details, dict) else {}
    return Usage(
        input_tokens=count_of(told.get("prompt_tokens")),
        output_tokens=count_of(told.get("completion_tokens")),
        cached_tokens=count_of(known.get("cached_tokens")),
    )


def _model_time(answer: HttpAnswer, timings: object) -> float | None:
    """Return the milliseconds that the model took, as OpenAI or else llama.cpp tells them."""
    told = measured(answer.headers.get("openai-processing-ms"))
    if told is not None or timings is None:
        return told
    try:
        times = msgspec.convert(timings, _Timings)
    except msgspec.ValidationError:
        return None
    return times.prompt_ms + times.predicted_ms


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
