"""Which batches a run has given to a provider, written down before the provider is told."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, Literal

import msgspec

from jurybox.running.records import BatchRow, sealed_batch
from jurybox.running.storing import Store

BatchState = Literal["submitting", "submitted", "read", "gone"]
OPEN: Final = ("submitting", "submitted")

# A name may have 64 characters at the providers: of the request's key, of the batch, a number.
_KEY: Final = 40
_TAG: Final = 12


class Ledger:
    """The batches of one run in its store."""

    def __init__(self, store: Store, run_id: str, now: Callable[[], str]) -> None:
        self._store = store
        self._run_id = run_id
        self._now = now
        self._next = 0
        self.names: set[str] = set()
        """What providers call the batches of the run."""

    async def open_rows(self) -> Sequence[BatchRow]:
        """Return what was submitted and not read yet."""
        rows = await asyncio.to_thread(self._store.batches, self._run_id)
        self._next = 1 + max((row.number for row in rows), default=-1)
        self.names |= {row.batch_id for row in rows if row.batch_id}
        return [row for row in rows if row.state in OPEN]

    def draft(self, model: str, endpoint: str, terms: str) -> BatchRow:
        """Return the row of the next batch, which nobody knows of yet."""
        number, self._next = self._next, self._next + 1
        return BatchRow(
            run_id=self._run_id,
            number=number,
            model=model,
            endpoint=endpoint,
            state="submitting",
            batch_id="",
            requests=0,
            terms=terms,
            submitted_at="",
        )

    async def intend(self, draft: BatchRow, requests: int) -> BatchRow:
        """Write down that a batch is about to be submitted."""
        row = sealed_batch(
            msgspec.structs.replace(draft, requests=requests, submitted_at=self._now())
        )
        await asyncio.to_thread(self._store.add_batch, row)
        return row

    async def note(self, row: BatchRow, state: BatchState, batch_id: str | None = None) -> BatchRow:
        """Write down what became of a batch."""
        named = row.batch_id if batch_id is None else batch_id
        changed = sealed_batch(msgspec.structs.replace(row, state=state, batch_id=named))
        await asyncio.to_thread(self._store.update_batch, changed)
        self.names |= {named} - {""}
        return changed


def mark_of(row: BatchRow) -> str:
    """Return what tells a batch from all others, also from those of other runs."""
    return f"{row.run_id}.{row.number}"


def short_key(key: str) -> str:
    """Return as much of a request's key as fits into its name."""
    return key[:_KEY]


def name_of(row: BatchRow, key: str, index: int) -> str:
    """Return the name of a request in a batch: what is asked, in which batch, and a number.

    The number keeps equal requests apart; the batch makes a provider's list of batches, which says
    nothing else, enough to find one again.
    """
    return f"{key[:_KEY]}-{_tag(mark_of(row))}-{index}"


def key_in(name: str, row: BatchRow) -> str | None:
    """Return the short key in a name; None where the name isn't one of this batch."""
    key, _, rest = name.partition("-")
    tag, _, index = rest.partition("-")
    return key if tag == _tag(mark_of(row)) and index.isdecimal() else None


@lru_cache(maxsize=64)
def _tag(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()[:_TAG]
