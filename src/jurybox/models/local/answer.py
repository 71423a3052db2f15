"""What llama.cpp's server says, piece by piece, until it is an answer."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

NO_NUMBERS: Final = "its weights are damaged: they give no numbers"


class Stopped(Exception):  # noqa: N818 - the caller asked for it; it is no error
    """The caller doesn't wait for the answer any more."""


class Unanswerable(Exception):  # noqa: N818 - it reads as what it is: `except Unanswerable`
    """This question can't be answered, whenever it is asked."""


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """An answer; ``logprobs`` is JSON as OpenAI's chat completions have it."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    logprobs: str | None = None


class _Token(msgspec.Struct):
    token: str
    logprob: float | None
    top_logprobs: list["_Token"] = []


class _Tokens(msgspec.Struct):
    content: list[_Token] = []


class _Choice(msgspec.Struct):
    text: str
    logprobs: _Tokens | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int


class _Timings(msgspec.Struct):
    cache_n: int


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None


class Answer:
    """Collects the events of one streamed answer."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._was_stopped = False
        self._error: str | None = None
        self._texts: list[str] = []
        self._tokens: list[_Token] = []
        self._finish: str | None = None
        self._read = 0
        self.written = 0
        self.kept = 0

    def hear(self, event: bytes) -> bool:
        """Take in an event; return True to end the answer."""
        try:
            self._take(event)
        except Exception as error:  # noqa: BLE001 - none can pass through the server's code
            self._error = f"{type(error).__name__}: {error}"
        self._was_stopped = self._was_stopped or self._stopped()
        return self._was_stopped or self._error is not None

    def check(self) -> None:
        """Raise what ended the answer early, if anything did."""
        if self._was_stopped and self._finish is None:
            raise Stopped
        if self._error is not None:
            raise Unanswerable(f"the runtime refuses: {self._error}")
        if self._finish is None:
            raise Unanswerable("the runtime ended in the middle of the answer")

    def completion(self, kept: int, *, with_logprobs: bool) -> Completion:
        """Return the whole answer.

        Raises:
            Unanswerable: it has no probabilities, because the model gives no numbers.

        """
        entries = [_entry(token) for token in self._tokens]
        return Completion(
            text="".join(self._texts),
            finish_reason=self._finish or "stop",
            prompt_tokens=self._read,
            completion_tokens=self.written,
            cached_tokens=kept,
            logprobs=msgspec.json.encode({"content": entries}).decode() if with_logprobs else None,
        )

    def _take(self, data: bytes) -> None:
        event = msgspec.json.decode(data, type=_Event)
        if not event.choices:
            self._error = complaint(msgspec.json.decode(data))
            return
        choice = event.choices[0]
        self._texts.append(choice.text)
        self._tokens += [] if choice.logprobs is None else choice.logprobs.content
        self._finish = choice.finish_reason or self._finish
        if event.usage is not None:
            self._read, self.written = event.usage.prompt_tokens, event.usage.completion_tokens
        if event.timings is not None:
            self.kept = event.timings.cache_n


def complaint(answer: Any) -> str:  # noqa: ANN401 - whatever JSON the server sends
    """Return what the server complains of, in one line."""
    match answer:
        case {"error": {"message": str(message)}} | {"message": str(message)}:
            return " ".join(message.split())
        case _:
            return "it doesn't say why"


def _entry(token: _Token) -> dict[str, object]:
    """Return a token as OpenAI writes it."""
    # The server makes equal chances of what are no numbers; no model has five best words.
    if len(token.top_logprobs) > 1 and len({each.logprob for each in token.top_logprobs}) == 1:
        raise Unanswerable(NO_NUMBERS)
    return _probability(token) | {
        "top_logprobs": [_probability(each) for each in token.top_logprobs]
    }


def _probability(token: _Token) -> dict[str, object]:
    if token.logprob is None:
        raise Unanswerable(NO_NUMBERS)
    return {"token": token.token, "logprob": token.logprob}
