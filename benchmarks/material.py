"""What every driver is given: the same recorded responses, and a place for its files.

Only the standard library is imported here, because drivers run in environments of their own.
"""

import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUESTION = "Is the response right, by the reference?"
ANSWER = (
    " It was measured more than once, by people who did not know of each other, and all of them"
    " came to the same number; who wants to see for himself can do it with a ruler and patience."
)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One recorded response, with its question and the right answer."""

    id: str
    task: str
    reference: str
    response: str


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a driver has to do: judge so many responses, one call each."""

    base_url: str
    count: int
    concurrency: int
    folder: Path
    variant: str = ""
    body: Path | None = None
    again: bool = False

    def samples(self) -> Iterator[Sample]:
        """Yield the responses; all differ, so that no cache can stand for a call."""
        for number in range(self.count):
            yield Sample(
                id=f"s{number}",
                task=f"How many steps are there in staircase {number}, and how do you know?",
                reference=f"Staircase {number} has {number % 97 + 3} steps.",
                response=f"There are {number % 97 + 3} steps in staircase {number}.{ANSWER}",
            )


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a driver did: how many were judged, by the tool's own result.

    ``checking`` is how many seconds it took to find that out where the tool itself had ended.
    """

    judged: int
    calls_each: int = 1
    notes: str = ""
    checking: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Peer:
    """How one tool is installed, driven and looked into.

    Attributes:
        package: the distribution whose version is reported.
        install: the packages to install; empty for this repository itself.
        replies: what the endpoint says, by the names of models that the driver asks it by.
        judge: does the work.
        survey: counts the judged samples that its files hold.
        starts: what starting is: a statement of Python, or a command.
        keeps: what is on disk afterwards, in words.
        again: how a second invocation goes on, in words.
        environment: variables that turn telemetry off.
        commands: the work is done by processes that it starts, and theirs alone is the time.
        node: it comes from the registry of Node.
        variants: rows of the same tool; "" is the plain one.

    """

    package: str
    install: tuple[str, ...]
    replies: dict[str, str | dict[str, Any]]
    judge: Callable[[Job], Done]
    survey: Callable[[Job], int]
    starts: str | tuple[str, ...]
    keeps: str = "nothing"
    again: str = "from the beginning"
    environment: tuple[tuple[str, str], ...] = ()
    commands: bool = False
    node: bool = False
    variants: tuple[str, ...] = ("",)


def nothing(job: Job) -> int:
    """Survey a tool that keeps nothing."""
    del job
    return 0


def ask(url: str, *, post: bool = False) -> Any:  # noqa: ANN401 - whatever JSON it is
    """Ask the endpoint about itself."""
    address = url.removesuffix("/v1")
    request = urllib.request.Request(address, data=b"{}" if post else None)  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - our own endpoint
        return json.loads(answer.read())


def count(base_url: str) -> dict[str, Any]:
    """Return what the endpoint has counted."""
    return ask(f"{base_url.removesuffix('/v1')}/count")


def reset(base_url: str) -> None:
    """Reset the endpoint's counters."""
    ask(f"{base_url.removesuffix('/v1')}/reset", post=True)


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(
        os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - there are very many of them
        for place, _, names in os.walk(folder)
        for name in names
    )
