"""What the engine needs from a store. Calls block; the runner makes them from a thread."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from jurybox.engine.records import (
    BatchRow,
    CalibrationRow,
    ExchangeRow,
    ReviewRow,
    RunRow,
    SampleRow,
)
from jurybox.engine.sample_query import Groups, SamplePage, SampleQuery
from jurybox.scoring.sample_index import Facets

EVERY: Final = range(-(2**63), 2**63)
"""The numbers of all samples that a store could hold, also those that no run has."""


class Store(Protocol):
    """Runs, samples and exchanges, written once and read in order.

    Every method raises `IncompleteError` where the store itself is at fault: damaged, locked by
    somebody for too long, out of space, out of reach. What a call had to write is then not written
    at all.
    """

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

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Hold a run, so that no other process works on it; False where another one does.

        A process that dies lets go of it.
        """
        ...

    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        """Store finished samples and exchanges, all of them or none.

        What a sample is found by is stored with it.
        """
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

    def samples(self, run_id: str, numbers: range = EVERY) -> Iterator[SampleRow]:
        """Yield the samples with these numbers in order, never all at once."""
        ...

    def sample(self, run_id: str, number: int) -> SampleRow | None:
        """Return one sample."""
        ...

    def find_sample(
        self, run_id: str, sample_id: str, repeat: int | None = None
    ) -> SampleRow | None:
        """Return the sample of that id, in the first repeat that is stored unless one is named."""
        ...

    def find_samples(self, run_id: str, query: SampleQuery) -> SamplePage:
        """Return a page of the samples that are asked for, and how many there are in all.

        Raises:
            InputError: the question makes no sense.

        """
        ...

    def groups(self, run_id: str) -> Groups:
        """Return by which scenarios and demographics samples may be found."""
        ...

    def facets(self, run_id: str, numbers: range = EVERY) -> Iterator[Facets]:
        """Yield what these samples are found by, in order, never all at once."""
        ...

    def exchanges(self, run_id: str, numbers: range = EVERY) -> Iterator[ExchangeRow]:
        """Yield the exchanges of these samples in their order, never all at once."""
        ...

    def exchanges_of(self, run_id: str, number: int) -> Sequence[ExchangeRow]:
        """Return the exchanges of one sample, in order."""
        ...

    def unfinished(self, run_id: str) -> Iterator[ExchangeRow]:
        """Yield the exchanges of samples that aren't stored, in order."""
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
        """Store what holding judges against people gave."""
        ...

    def calibrations(self, rubric_id: str | None = None) -> Sequence[CalibrationRow]:
        """Return the calibrations of a rubric, or all of them, the newest first."""
        ...

    def add_review(self, row: ReviewRow) -> None:
        """Store a person's verdict on a sample, or the withdrawal of one.

        Raises:
            InputError: there is no such sample, or no such review of it to be withdrawn.

        """
        ...

    def reviews(self, run_id: str) -> Sequence[ReviewRow]:
        """Return the reviews of a run, in the order in which they were made."""
        ...

    def reviews_of(self, run_id: str, number: int) -> Sequence[ReviewRow]:
        """Return the reviews of one sample, in the order in which they were made."""
        ...

    def close(self) -> None:
        """Let go of the store."""
        ...
