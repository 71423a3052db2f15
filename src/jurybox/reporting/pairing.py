"""The samples of two runs side by side, matched by id and repeat, without holding either run."""

from collections.abc import Hashable, Iterator
from typing import TypeVar

import msgspec

from jurybox.reporting.clustering import Clustering
from jurybox.reporting.stored import damaged
from jurybox.running.outcomes import read_result
from jurybox.running.records import RunRow
from jurybox.running.storing import Store
from jurybox.scoring.result import SampleResult

Key = tuple[str, int]
T = TypeVar("T")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run says of one sample."""

    key: Key
    sha256: str
    cluster: Hashable
    result: SampleResult


Pair = tuple[Outcome | None, Outcome | None]


def pairs(store: Store, one: RunRow, other: RunRow, clustering: Clustering) -> Iterator[Pair]:
    """Yield what two runs say of every sample; what only one has comes without the other.

    Both runs are read in step. What has no counterpart yet waits for it, so that memory grows with
    how far apart the same sample is in both, which is nothing for reruns of one dataset.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    waiting: dict[Key, Outcome] = {}
    late: dict[Key, Outcome] = {}
    first, second = _outcomes(store, one, clustering), _outcomes(store, other, clustering)
    left, right = next(first, None), next(second, None)
    while left is not None or right is not None:
        if left is not None:
            found = late.pop(left.key, None)
            if found is not None:
                yield left, found
            elif right is None:
                yield left, None
            else:
                waiting[left.key] = left
        if right is not None:
            found = waiting.pop(right.key, None)
            if found is not None:
                yield found, right
            elif left is None:
                yield None, right
            else:
                late[right.key] = right
        left = None if left is None else next(first, None)
        right = None if right is None else next(second, None)
    for outcome in waiting.values():
        yield outcome, None
    for outcome in late.values():
        yield None, outcome


def _outcomes(store: Store, run: RunRow, clustering: Clustering) -> Iterator[Outcome]:
    try:
        for sample in store.samples(run.id):
            yield Outcome(
                key=(sample.sample_id, sample.repeat),
                sha256=sample.record_sha256,
                cluster=clustering.of(sample),
                result=read_result(sample.result),
            )
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
