"""Stored replies in the place of models."""

from collections import deque
from collections.abc import Iterable

from jurybox.judging.exchange import Failure, ModelRequest, Outcome
from jurybox.running.records import ExchangeRow, framed
from jurybox.running.transcript import read_outcome, read_request
from jurybox.scoring.result import Role
from jurybox.scoring.uses import Exchanged


class DifferentError(Exception):
    """What is stored isn't what follows from the replies."""


def role_of(row: ExchangeRow) -> Role:
    """Return who was asked."""
    return "target" if row.role == "target" else "judge"


class Exactly:
    """Gives back what was answered, and insists that exactly the same is asked.

    ``told`` is what was asked and answered so far.
    """

    def __init__(self, exchanges: Iterable[ExchangeRow]) -> None:
        self._left = deque(exchanges)
        self.told: list[Exchanged] = []

    def __call__(self, request: ModelRequest) -> Outcome:
        """Answer the next request.

        Raises:
            DifferentError: it isn't the one that was asked then.

        """
        number = len(self.told) + 1
        if not self._left:
            raise DifferentError(f"request {number} was never asked")
        row = self._left.popleft()
        if framed(request) != (row.frame, row.material):
            raise DifferentError(f"request {number} isn't the one that the rubric asks")
        outcome = read_outcome(row)
        self.told.append(Exchanged(role=role_of(row), request=request, outcome=outcome))
        return outcome

    def finish(self) -> None:
        """See that nothing is left over.

        Raises:
            DifferentError: there are replies to questions that the rubric doesn't ask.

        """
        if self._left:
            raise DifferentError(f"{len(self._left)} of the requests are none that the rubric asks")


class ByThread:
    """Gives the replies to the questions that take their place under another rubric.

    The prompts differ, so requests are matched by who was asked for which vote, and in which order;
    a re-ask belongs to the question that it repeats. A narrow question is another one as soon as
    its words differ, so its answer is given to the very same question only.
    """

    def __init__(self, exchanges: Iterable[ExchangeRow]) -> None:
        threads: dict[tuple[str, int, str], deque[Outcome]] = {}
        self._narrow: dict[ModelRequest, deque[Outcome]] = {}
        for row in exchanges:
            request = read_request(row)
            if _is_narrow(request):
                replies = self._narrow.setdefault(request, deque())
            else:
                replies = threads.setdefault(_thread(request), deque())
            replies.append(read_outcome(row))
        self._threads = list(threads.values())
        self._asked: dict[tuple[str, int, str], int] = {}

    def __call__(self, request: ModelRequest) -> Outcome:
        """Answer a request, or say that nobody ever did."""
        if _is_narrow(request):
            replies = self._narrow.get(request)
        else:
            index = self._asked.setdefault(_thread(request), len(self._asked))
            replies = self._threads[index] if index < len(self._threads) else None
        if replies:
            return replies.popleft()
        what = "the stored replies don't answer this rubric; judge the sample anew"
        return Failure(kind="unreadable", message=what)


def _is_narrow(request: ModelRequest) -> bool:
    """Tell whether it is one of many questions for evidence, whose prompts share a beginning."""
    return bool(request.shared)


def _thread(request: ModelRequest) -> tuple[str, int, str]:
    return request.model, request.vote, request.messages[0].content
