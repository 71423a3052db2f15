"""What a suite file says, as values. Paths and models stay the texts they were written as."""

from typing import Literal

import msgspec

TargetInput = Literal["text", "json"]


class TargetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The system under test: either a model or a command.

    Attributes:
        command: the program and its arguments; no shell reads them.
        prompt: the path of a template, or ``langfuse:NAME@VERSION``.
        system: the path of a system prompt.
        generation: the sampling parameters that differ from the defaults on purpose (A9).
        timeout: seconds, after which a response counts as timed out.
        input: what a command gets on standard input: the task, or the whole sample as JSON.

    """

    model: str | None = None
    command: tuple[str, ...] | None = None
    prompt: str | None = None
    system: str | None = None
    generation: dict[str, float] = {}
    timeout: float = 60.0
    input: TargetInput = "text"


class JudgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges; where the rest is None the rubric says it.

    ``batch`` says that they are asked in their providers' batches: later, and for less.
    """

    models: tuple[str, ...]
    votes: int | None = None
    stop_when_decided: bool | None = None
    batch: bool = False


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """A run's ingredients.

    Attributes:
        rubric: the name of a rubric, or its path.
        dataset: a path, or ``langfuse:NAME``.
        target: None where the dataset carries the responses.
        repeats: how often every sample is run.
        variance_sensitive: whether one run is too few to tell (A12).
        limit: how many rows to use, from the first.
        cache: whether a request that was answered before may be answered from the store.

    """

    suite: str
    rubric: str
    dataset: str
    target: TargetSpec | None = None
    judge: JudgeSpec | None = None
    repeats: int | None = None
    variance_sensitive: bool = False
    limit: int | None = None
    concurrency: int | None = None
    cache: bool = False
    description: str = ""
