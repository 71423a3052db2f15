"""Computes results from stored replies, without calling models."""

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from jurybox.engine.driver import drive_sync
from jurybox.engine.plan import Plan
from jurybox.engine.records import (
    ExchangeRow,
    SampleRow,
    Work,
    framed,
    read_outcome,
    read_request,
    sample_row,
)
from jurybox.judging.flow import Failure, ModelRequest, Outcome
from jurybox.sample import Response, Row
from jurybox.scoring.evaluate_sample import Procedure, evaluate_sample, model_uses
from jurybox.scoring.sample_result import Role


class DifferentError(Exception):
    """The stored result doesn't follow from the stored replies."""


def role_of(row: ExchangeRow) -> Role:
    """Return the role of the model that was asked."""
    return "target" if row.role == "target" else "judge"


class Exactly:
    """Returns stored replies; raises if a request differs from the stored one."""

    def __init__(self, exchanges: Iterable[ExchangeRow]) -> None:
        self._left = deque(exchanges)
        self._number = 0

    def __call__(self, request: ModelRequest) -> Outcome:
        """Answer the next request.

        Raises:
            DifferentError: the request differs from the stored one, or none is left.

        """
        self._number += 1
        if not self._left:
            raise DifferentError(f"request {self._number} of the rubric isn't stored")
        row = self._left.popleft()
        if framed(request) != (row.frame, row.material):
            raise DifferentError(f"stored request {self._number} differs from the rubric's")
        return read_outcome(row)

    def finish(self) -> None:
        """Check that every stored reply was used.

        Raises:
            DifferentError: some replies belong to no request of the rubric.

        """
        if self._left:
            raise DifferentError(f"{len(self._left)} stored requests don't follow from the rubric")


class ByThread:
    """Answers the questions of a different rubric with the stored replies.

    The prompts differ, so questions are matched by their order: the first question, including its
    repetitions, gets the replies to the first stored question. Evidence questions are matched by
    their text.
    """

    def __init__(self, exchanges: Iterable[ExchangeRow]) -> None:
        threads: dict[tuple[str, int, str], deque[Outcome]] = {}
        self.outcomes: list[Outcome] = []
        """The stored outcomes, in the order of the exchanges."""
        self._narrow: dict[ModelRequest, deque[Outcome]] = {}
        for row in exchanges:
            request = read_request(row)
            if _is_narrow(request):
                replies = self._narrow.setdefault(request, deque())
            else:
                replies = threads.setdefault(_thread(request), deque())
            self.outcomes.append(read_outcome(row))
            replies.append(self.outcomes[-1])
        self._threads = list(threads.values())
        self._asked: dict[tuple[str, int, str], int] = {}

    def __call__(self, request: ModelRequest) -> Outcome:
        """Return the stored answer to a request, or a failure if there is none."""
        if _is_narrow(request):
            replies = self._narrow.get(request)
        else:
            index = self._asked.setdefault(_thread(request), len(self._asked))
            replies = self._threads[index] if index < len(self._threads) else None
        if replies:
            return replies.popleft()
        what = "the stored replies don't answer this rubric; judge the sample again"
        return Failure(kind="unreadable", message=what)


def _is_narrow(request: ModelRequest) -> bool:
    """Return whether a request is an evidence question; only these have ``shared`` positions."""
    return bool(request.shared)


def _thread(request: ModelRequest) -> tuple[str, int, str]:
    return request.model, request.vote, request.messages[0].content


class StoredResponses(msgspec.Struct, frozen=True, kw_only=True):
    """The stored responses of a sample."""

    response: Response
    response_b: Response | None = None


_RESPONSES = msgspec.json.Decoder(StoredResponses)
_INPUTS = msgspec.json.Decoder(Row)


def derive(
    plan: Plan,
    procedure: Procedure,
    sample: SampleRow,
    exchanges: Sequence[ExchangeRow],
) -> SampleRow:
    """Return the row derived from a sample's inputs and replies, without its hashes.

    Raises:
        DifferentError: the stored requests differ from the rubric's.
        msgspec.DecodeError: something stored can't be read.

    """
    stored = _RESPONSES.decode(sample.responses)
    row = _INPUTS.decode(sample.inputs)
    row = msgspec.structs.replace(
        row,
        response=stored.response if procedure.target is None else None,
        response_b=stored.response_b,
    )
    if plan.derived_from is None:
        exactly = Exactly(exchanges)
        outcome = drive_sync(evaluate_sample(procedure, row), exactly)
        exactly.finish()
    else:
        outcome = drive_sync(evaluate_sample(procedure, row), ByThread(exchanges))
        # All replies were paid for, no matter which of them the new rubric uses.
        uses = model_uses(
            (role_of(each), read_request(each).model, read_outcome(each)) for each in exchanges
        )
        result = msgspec.structs.replace(outcome.result, uses=uses)
        outcome = msgspec.structs.replace(outcome, result=result)
    work = Work(number=sample.number, repeat=sample.repeat, row=row)
    return sample_row(sample.run_id, work, outcome, sample.notes)
