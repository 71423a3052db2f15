"""What a runtime does for a model: one question after the other, on one loaded file."""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from jurybox.rubric.model import Generation
from jurybox.sample import Turn

Foreign = Any
"""What comes from a library that has no types."""

UNKNOWN_FILE: Final = "it is damaged, or of a kind that the runtime doesn't know"
NO_NUMBERS: Final = "its weights are damaged: they give no numbers"


class Stopped(Exception):  # noqa: N818 - somebody wished it; it is no error
    """Nobody waits for the answer any more."""


class Unanswerable(Exception):  # noqa: N818 - it reads as what it is: `except Unanswerable`
    """This question can't be answered, whenever it is asked."""


class LoadingFailed(Exception):  # noqa: N818 - it reads as what it is
    """The runtime refuses the file."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One question to an engine.

    Attributes:
        messages: the conversation.
        generation: how to choose words, and how many.
        schema: the JSON schema of the answer, as text.
        grammar: the grammar of the answer in GBNF; used where there is no schema.
        logprobs: how many alternatives to every token are wanted.
        shared: after which characters of the last message other questions may go on differently.

    """

    messages: tuple[Turn, ...]
    generation: Generation = Generation()
    schema: str | None = None
    grammar: str | None = None
    logprobs: int = 0
    shared: tuple[int, ...] = ()


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """An answer; ``logprobs`` is JSON as OpenAI's chat completions have it."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    logprobs: str | None = None


class Engine(Protocol):
    """A loaded model. It is used by one thread at a time."""

    @property
    def version(self) -> str:
        """The runtime and its version: other builds give other last digits, and other texts."""
        ...

    def complete(self, job: Job, stopped: Callable[[], bool]) -> Completion:
        """Answer; the same job gets the same answer, whatever was asked before.

        Raises:
            Stopped: ``stopped`` said so in the middle.
            Unanswerable: the question is too long, or asks for what can't be done.

        """
        ...

    def close(self) -> None:
        """Free the memory; nothing may be asked any more."""
        ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is loaded.

    Attributes:
        context: how many tokens a question and its answer may have together.
        threads: how many cores work on it.
        batch: so many tokens are read at once; in between, a wish to stop is heard.

    """

    context: int = 8192
    threads: int = 2
    batch: int = 128
