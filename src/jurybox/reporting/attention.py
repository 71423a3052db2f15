"""What needs attention in a run (E15), gathered in one pass and bounded memory."""

import heapq
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, SampleRow, read_result
from jurybox.reporting.metric_text import cut
from jurybox.reporting.reasons import reasoning
from jurybox.reporting.stored import SampleRecord, damaged, reading
from jurybox.scoring.review_reasons import KINDS, Noted, Notice
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import Conclusion

LATENCY: Final = "latency_e2e_ms"
_LONGEST_REASONING: Final = 300
_LONGEST_TASK: Final = 160


class SamplePlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sample in a repeat; ``number`` is its place in the run, where known."""

    id: str
    repeat: int
    number: int | None = None


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to look at samples: how many there are, and the first of them."""

    kind: str
    meaning: str
    count: int
    samples: tuple[SamplePlace, ...]


class ExtremeSample(msgspec.Struct, frozen=True, kw_only=True):
    """One of the worst or the slowest samples, with the judges' reasoning."""

    number: int
    id: str
    repeat: int
    figure: str
    value: float
    task: str
    reasoning: str


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """What needs attention, and the worst and slowest samples."""

    samples: int
    concerns: tuple[Concern, ...]
    worst: tuple[ExtremeSample, ...]
    slowest: tuple[ExtremeSample, ...]

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; samples are identified by their ids."""
        concerns: list[dict[str, Any]] = msgspec.to_builtins(self.concerns)
        return {
            "attention": [{**each, "samples": _unnumbered(each["samples"])} for each in concerns],
            "worst": _unnumbered(msgspec.to_builtins(self.worst)),
            "slowest": _unnumbered(msgspec.to_builtins(self.slowest)),
        }


def _unnumbered(samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in each.items() if key != "number"} for each in samples]


def gather(
    store: Store, run: RunRow, headline: str, *, listed: int = 20, ranked: int = 10
) -> Attention:
    """Look through a run's samples; each concern names at most ``listed`` of them.

    The worst samples are those with the lowest ``headline``, a metric.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    notice = Notice(listed)
    worst, slowest = _Ranked(headline, ranked, sign=-1), _Ranked(LATENCY, ranked, sign=1)
    samples = 0
    with reading(run):
        for number, _, _, text in store.results(run.id):
            result = read_result(text)
            samples += 1
            notice.add(number, result)
            worst.add(number, result)
            slowest.add(number, result)
        return Attention(
            samples=samples,
            concerns=_concerns(store, run, notice.describe()),
            worst=worst.samples(store, run),
            slowest=slowest.samples(store, run),
        )


def concerns_of(store: Store, run: RunRow, conclusion: Conclusion) -> tuple[Concern, ...]:
    """Return the reasons to look at a run's samples, each with the first few of them.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    return _concerns(store, run, conclusion.attention)


def numbered_sample(store: Store, run: RunRow, number: int) -> SampleRow:
    """Return the sample with a number.

    Raises:
        IncompleteError: it is missing.

    """
    sample = store.sample(run.id, number)
    if sample is None:
        raise damaged(run, f"sample number {number} is missing")
    return sample


class _Ranked:
    """The samples with the highest values of a metric, or the lowest with a negative sign."""

    def __init__(self, metric: str, most: int, *, sign: int) -> None:
        self._metric = metric
        self._most = most
        self._sign = sign
        self._heap: list[tuple[float, int]] = []

    def add(self, number: int, result: SampleResult) -> None:
        value = result.figures.get(self._metric)
        if value is None:
            return
        # Of equals the first in the run stays.
        entry = (self._sign * value, -number)
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, entry)
        elif self._most:
            heapq.heappushpop(self._heap, entry)

    def samples(self, store: Store, run: RunRow) -> tuple[ExtremeSample, ...]:
        found: list[ExtremeSample] = []
        for value, place in sorted(self._heap, reverse=True):
            record = SampleRecord(numbered_sample(store, run, -place))
            found.append(
                ExtremeSample(
                    number=-place,
                    id=record.row.sample_id,
                    repeat=record.row.repeat,
                    figure=self._metric,
                    value=self._sign * value,
                    task=cut(record.inputs.task, _LONGEST_TASK),
                    reasoning=cut(reasoning(record), _LONGEST_REASONING),
                )
            )
        return tuple(found)


def _concerns(store: Store, run: RunRow, noted: Iterable[Noted]) -> tuple[Concern, ...]:
    def place(number: int) -> SamplePlace:
        sample = numbered_sample(store, run, number)
        return SamplePlace(id=sample.sample_id, repeat=sample.repeat, number=number)

    return tuple(
        Concern(
            kind=each.kind,
            meaning=KINDS[each.kind].meaning,
            count=each.count,
            samples=tuple(map(place, each.first)),
        )
        for each in noted
        if each.kind in KINDS
    )
