"""The interfaces that the engine needs: a model, a clock, a store."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

import msgspec

from jurybox.engine.records import (
    BatchRow,
    CalibrationRow,
    ExchangeRow,
    OutboxRow,
    ReviewRow,
    RunRow,
    SampleRow,
)
from jurybox.errors import InputError
from jurybox.judging.flow import FailureKind, ModelReply, ModelRequest
from jurybox.scoring.sample_index import FLAGS, Facets
from jurybox.text_format import nearest


class ModelError(Exception):
    """One attempt at a request came to nothing.

    Attributes:
        kind: what went wrong, as a failure would say it.
        retry: whether the same request may succeed later.
        retry_after: how many seconds the endpoint asked to wait, if it did.
        fatal: whether every other request to this model would fare the same; trouble that may
            pass counts as such only while the endpoint has never answered.

    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retry: bool,
        retry_after: float | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.retry = retry
        self.retry_after = retry_after
        self.fatal = fatal


class Model(Protocol):
    """A model; retries and limits are the engine's."""

    @property
    def endpoint(self) -> str:
        """The key of a shared limit: the address for a remote model, the name for a local one."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make one attempt.

        Raises:
            ModelError: the attempt failed.

        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


class Clock(Protocol):
    """Time as an argument, so that waits can be tested without waiting."""

    def now(self) -> float:
        """Return seconds that only ever grow."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


MOST: Final = 1000
"""The most samples on a page."""
MOST_GROUPS: Final = 200
"""The most scenarios, and the most demographics, that are listed."""
LONGEST_SEARCH: Final = 1000
_FARTHEST: Final = 2**62
_METRIC: Final = "metric:"
_ORDERS: Final = ("number", "urgency", "id")


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which samples to return; every condition has to be met.

    Attributes:
        search: a text in the sample's id, task, context, reference, messages or responses. Case
            counts for nothing; where the text has only ASCII in it, that is so for A to Z.
        flags: names of `FLAGS`, all of which a sample has.
        any_flags: names of `FLAGS`, at least one of which a sample has.
        metric: the name of a metric that a sample has, from ``low`` to ``high``, ends included.
        sort: ``number``, ``urgency``, ``id`` or ``metric:NAME``. Samples without the metric come
            last in either direction, and of equals the one that comes first in the run.
        queued: only samples in the review queue.

    """

    search: str = ""
    flags: tuple[str, ...] = ()
    any_flags: tuple[str, ...] = ()
    scenario: str | None = None
    demographic: str | None = None
    winner: str | None = None
    metric: str | None = None
    low: float | None = None
    high: float | None = None
    sort: str = "number"
    descending: bool = False
    queued: bool = False
    offset: int = 0
    limit: int = 50

    @property
    def sort_metric(self) -> str | None:
        """The name of the metric by which samples are sorted."""
        return self.sort.removeprefix(_METRIC) if self.sort.startswith(_METRIC) else None

    def check(self) -> None:
        """Validate the query.

        Raises:
            InputError: it makes no sense.

        """
        if not 1 <= self.limit <= MOST:
            raise InputError(f"a page can't have {self.limit} samples", f"ask for 1 to {MOST}")
        if not 0 <= self.offset <= _FARTHEST:
            raise InputError(f"a page can't begin at {self.offset}", "begin at 0 or later")
        if self.sort not in _ORDERS and not self.sort_metric:
            hint = f"sort by {', '.join(_ORDERS)} or {_METRIC}NAME"
            raise InputError(f"samples can't be sorted by `{self.sort[:80]}`", hint)
        for name in (*self.flags, *self.any_flags):
            if name not in FLAGS:
                hint = nearest(name[:80], FLAGS, f"give some of {', '.join(FLAGS)}")
                raise InputError(f"there is no flag `{name[:80]}`", hint)
        if len(self.search) > LONGEST_SEARCH:
            problem = f"the text to search for has {len(self.search)} characters"
            raise InputError(problem, f"search for at most {LONGEST_SEARCH}")
        for end in (self.low, self.high):
            if end is not None and not math.isfinite(end):
                raise InputError(f"{end} is no end of a range", "give a number")
        if self.metric is None and (self.low, self.high) != (None, None):
            raise InputError("a range needs a metric", "name the metric")


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the samples that match, and how many match in all."""

    rows: tuple[Facets, ...]
    total: int


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """The first scenarios and demographics of a run in the order of their names."""

    scenarios: tuple[str, ...]
    demographics: tuple[str, ...]


EVERY: Final = range(-(2**63), 2**63)
"""The numbers of all samples that a store could hold, also those that no run has."""


class Sink(Protocol):
    """Takes what a run produces."""

    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        """Store finished samples and exchanges, all of them or none.

        The facets of a sample are stored with it.
        """
        ...


class Store(Sink, Protocol):
    """Runs, samples and exchanges, written once and read in order.

    Calls block. Every method raises `IncompleteError` where the store itself fails: damaged, locked
    for too long, out of space, out of reach. What a call had to write is then not written at all.
    """

    @property
    def address(self) -> str:
        """The path of its file, or the URL of its server, with the password if it has one."""
        ...

    def create_run(self, row: RunRow) -> None:
        """Store a new run."""
        ...

    def update_run(self, row: RunRow) -> None:
        """Replace the row of a run: its status, outcome and digest become known later."""
        ...

    def run(self, run_id: str) -> RunRow | None:
        """Return a run."""
        ...

    def runs(self, limit: int | None = None) -> Sequence[RunRow]:
        """Return runs, the newest first."""
        ...

    def find_runs(self, prefix: str) -> Sequence[RunRow]:
        """Return the runs whose ids begin so, the newest first."""
        ...

    def labeled_runs(self, label: str) -> Sequence[RunRow]:
        """Return the runs whose metadata may have a text as a value, the newest first."""
        ...

    def delete_run(self, run_id: str) -> None:
        """Remove a run and all that belongs to it."""
        ...

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Lock a run so that no other process works on it; False if another process does.

        A process that dies lets go of it.
        """
        ...

    def replace_sample(
        self, row: RunRow, sample: SampleRow, exchanges: Sequence[ExchangeRow]
    ) -> None:
        """Replace the row of a run and a sample of it that was done again, with new exchanges.

        Its exchanges so far stay: replies were used again, and what failed is never forgotten.
        """
        ...

    def transient_failures(self, run_id: str) -> Sequence[int]:
        """Return the numbers of samples with a request that failed for a transient reason."""
        ...

    def numbers(self, run_id: str) -> Iterator[int]:
        """Yield the numbers of the stored samples, in order."""
        ...

    def results(self, run_id: str, numbers: range = EVERY) -> Iterator[tuple[int, int, str, str]]:
        """Yield number, repeat, record hash and result of these samples, in order, not the rest."""
        ...

    def hashes(self, run_id: str) -> Iterator[str]:
        """Yield the hashes of the records, sorted as plain text, never all at once."""
        ...

    def samples(self, run_id: str) -> Iterator[SampleRow]:
        """Yield the samples in order, never all at once."""
        ...

    def sample(self, run_id: str, number: int) -> SampleRow | None:
        """Return one sample."""
        ...

    def find_sample(
        self, run_id: str, sample_id: str, repeat: int | None = None
    ) -> SampleRow | None:
        """Return the sample of that id, in the first repeat that is stored unless one is named."""
        ...

    def count_flags(self, run_id: str, query: SampleQuery) -> Mapping[str, int]:
        """Return how many of the samples that are asked for have each flag; a search is ignored.

        Raises:
            InputError: the query makes no sense.
            IncompleteError: the store failed.

        """
        ...

    def find_samples(self, run_id: str, query: SampleQuery) -> SamplePage:
        """Return a page of the samples that match, and how many match in all.

        Raises:
            InputError: the query makes no sense.

        """
        ...

    def groups(self, run_id: str) -> Groups:
        """Return the scenarios and demographics of the samples."""
        ...

    def facets(self, run_id: str, numbers: range = EVERY) -> Iterator[Facets]:
        """Yield the facets of these samples, in order, never all at once."""
        ...

    def exchanges(self, run_id: str) -> Iterator[ExchangeRow]:
        """Yield the exchanges of all samples in their order, never all at once."""
        ...

    def exchanges_of(self, run_id: str, number: int) -> Sequence[ExchangeRow]:
        """Return the exchanges of one sample, in order."""
        ...

    def unfinished(self, run_id: str, numbers: range = EVERY) -> Iterator[ExchangeRow]:
        """Yield the exchanges of those of these samples that aren't stored, in order."""
        ...

    def find_exchange(self, key: str) -> ExchangeRow | None:
        """Return the newest exchange with that key, in whichever run."""
        ...

    def add_batch(self, row: BatchRow) -> None:
        """Store that a batch is about to be submitted."""
        ...

    def update_batch(self, row: BatchRow) -> None:
        """Replace the row of a batch: its name and its state become known later."""
        ...

    def batches(self, run_id: str) -> Sequence[BatchRow]:
        """Return the batches of a run, in order."""
        ...

    def add_calibration(self, row: CalibrationRow) -> None:
        """Store a calibration."""
        ...

    def calibrations(self, rubric_id: str | None = None) -> Sequence[CalibrationRow]:
        """Return the calibrations of a rubric, or all of them, the newest first."""
        ...

    def add_review(self, row: ReviewRow) -> None:
        """Store a person's verdict on a sample, or the withdrawal of one.

        Raises:
            InputError: the sample, or the review to withdraw, doesn't exist.

        """
        ...

    def claim_sample(
        self, run_id: str, number: int, reviewer: str, *, now: str, since: str, most: int
    ) -> bool:
        """Give a reviewer a sample instead of the one before, unless ``most`` others have it.

        Counts reviewers who were given the sample at or after ``since``, or have reviewed it.
        """
        ...

    def reviews(self, run_id: str) -> Sequence[ReviewRow]:
        """Return the reviews of a run, in the order in which they were made."""
        ...

    def reviews_of(self, run_id: str, number: int) -> Sequence[ReviewRow]:
        """Return the reviews of one sample, in the order in which they were made."""
        ...

    def put_out(self, rows: Sequence[OutboxRow]) -> None:
        """Put rows into the outbox; an existing row is replaced only if its version changed."""
        ...

    def update_outbox(self, rows: Sequence[OutboxRow]) -> None:
        """Replace the state and the error of rows."""
        ...

    def outbox(
        self, state: str, part: str, run_id: str | None = None, limit: int | None = None
    ) -> Sequence[OutboxRow]:
        """Return rows of a part in that state, of one run or all, in order."""
        ...

    def outbox_counts(self) -> Sequence[tuple[str, str, str, str, int]]:
        """Return run, part, state, one of the errors, and how many rows there are of those."""
        ...

    def close(self) -> None:
        """Close the store."""
        ...
