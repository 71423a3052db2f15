"""The batches of a run in its store, and the names that requests have in them."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import BatchRow, sealed

_OPEN: Final = ("submitting", "submitted")

# Providers take names of at most 64 characters: the request's key, the batch's tag, a number.
KEY_LENGTH: Final = 40
_TAG_LENGTH: Final = 12


class BatchLog:
    """The batches of one run in its store."""

    def __init__(self, store: Store, run_id: str, now: Callable[[], str]) -> None:
        self._store = store
        self._run_id = run_id
        self._now = now
        self._rows = {row.number: row for row in store.batches(run_id)}
        self._next = 1 + max(self._rows, default=-1)

    def draft(self, model: str, endpoint: str, terms: str, requests: int) -> BatchRow:
        """Return the row of the next batch, which isn't stored yet."""
        number, self._next = self._next, self._next + 1
        return BatchRow(
            run_id=self._run_id,
            number=number,
            model=model,
            endpoint=endpoint,
            state="submitting",
            batch_id="",
            requests=requests,
            terms=terms,
            submitted_at=self._now(),
        )

    async def write(self, row: BatchRow, state: str, batch_id: str | None = None) -> BatchRow:
        """Store a batch in a new state."""
        named = row.batch_id if batch_id is None else batch_id
        row = sealed(msgspec.structs.replace(row, state=state, batch_id=named))
        known = row.number in self._rows
        self._rows[row.number] = row
        save = self._store.update_batch if known else self._store.add_batch
        await asyncio.to_thread(save, row)
        return row

    def open_rows(self, model: str) -> Sequence[BatchRow]:
        """Return the batches of a model that were submitted and may hold answers."""
        rows = self._rows.values()
        return [row for row in rows if row.model == model and row.state in _OPEN]

    def knows(self, batch_id: str) -> bool:
        """Say whether a batch of the run has this id."""
        return any(row.batch_id == batch_id for row in self._rows.values())

    async def stored(self, rows: Sequence[BatchRow]) -> dict[str, set[str]]:
        """Return the names of requests of these batches whose replies are stored, by tag."""
        return await asyncio.to_thread(self._stored, {tag_of(row): set() for row in rows})

    def _stored(self, names: dict[str, set[str]]) -> dict[str, set[str]]:
        for exchange in self._store.exchanges(self._run_id):
            name = _NOTES.decode(exchange.notes).reference.partition("/")[2]
            if (tag := tag_in(name)) in names:
                names[tag].add(name)
        return names


class _Notes(msgspec.Struct):
    reference: str = ""


_NOTES: Final = msgspec.json.Decoder(_Notes)


def mark_of(row: BatchRow) -> str:
    """Return what tells a batch from all others, also from those of other runs."""
    return f"{row.run_id}.{row.number}"


def name_of(row: BatchRow, key: str, index: int) -> str:
    """Return the name of a request in a batch; the index keeps equal requests apart."""
    return f"{key}-{tag_of(row)}-{index}"


def tag_of(row: BatchRow) -> str:
    """Return the part of a request's name that says in which batch it is."""
    return hashlib.sha256(mark_of(row).encode()).hexdigest()[:_TAG_LENGTH]


def tag_in(name: str) -> str:
    """Return the tag in a request's name."""
    return name.partition("-")[2].partition("-")[0]
