"""What llama.cpp's server says, bit by bit, until it is an answer."""

from collections.abc import Callable

import msgspec

from jurybox.models.local.engine import NO_NUMBERS, Completion, Foreign, Stopped, Unanswerable


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


class _Said(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None


class Answer:
    """An answer that grows with everything that is heard."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._was_stopped = False
        self._trouble: str | None = None
        self._texts: list[str] = []
        self._tokens: list[_Token] = []
        self._finish: str | None = None
        self._read = 0
        self.written = 0
        self.kept = 0

    def hear(self, said: bytes) -> bool:
        """Take in what is said; True ends it."""
        try:
            self._take(said)
        except Exception as error:  # noqa: BLE001 - a fault can't pass through the server's code
            self._trouble = f"{type(error).__name__}: {error}"
        self._was_stopped = self._was_stopped or self._stopped()
        return self._was_stopped or self._trouble is not None

    def check(self) -> None:
        """Raise what ended it before its time."""
        if self._was_stopped and self._finish is None:
            raise Stopped
        if self._trouble is not None:
            raise Unanswerable(f"the runtime refuses: {self._trouble}")
        if self._finish is None:
            raise Unanswerable("the runtime ended in the middle of the answer")

    def completion(self, kept: int, *, with_logprobs: bool) -> Completion:
        """Return all of it.

        Raises:
            Unanswerable: there are no probabilities in it, because the model gives no numbers.

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

    def _take(self, said: bytes) -> None:
        heard = msgspec.json.decode(said, type=_Said)
        if not heard.choices:
            self._trouble = complaint(msgspec.json.decode(said))
            return
        choice = heard.choices[0]
        self._texts.append(choice.text)
        self._tokens += [] if choice.logprobs is None else choice.logprobs.content
        self._finish = choice.finish_reason or self._finish
        if heard.usage is not None:
            self._read, self.written = heard.usage.prompt_tokens, heard.usage.completion_tokens
        if heard.timings is not None:
            self.kept = heard.timings.cache_n


def complaint(said: Foreign) -> str:
    """Return what the server complains of, in one line."""
    match said:
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
