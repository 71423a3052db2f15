"""What a reader of a run has to see first (E15), gathered in one pass and bounded memory."""

import heapq
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, SampleRow, read_result
from jurybox.reporting.reasons import cut, reasoning
from jurybox.reporting.stored import damaged
from jurybox.sample import Row
from jurybox.scoring.review_reasons import FIRST, KINDS, Noted, Notice
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import Conclusion

LATENCY: Final = "latency_e2e_ms"
_LONGEST_REASONING: Final = 300
_LONGEST_TASK: Final = 160
_ROW: Final = msgspec.json.Decoder(Row)


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sample in a repeat; ``number`` is its place in the run, where that is known."""

    id: str
    repeat: int
    number: int | None = None


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to look at samples: how many there are, and the first of them."""

    kind: str
    meaning: str
    count: int
    samples: tuple[Place, ...]


class Extreme(msgspec.Struct, frozen=True, kw_only=True):
    """One of the worst or the slowest samples, with what the judges say of it."""

    number: int
    id: str
    repeat: int
    figure: str
    value: float
    task: str
    reasoning: str


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader has to see first, and the ends of the run."""

    samples: int
    concerns: tuple[Concern, ...]
    worst: tuple[Extreme, ...]
    slowest: tuple[Extreme, ...]

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; samples go by their ids, as everywhere outside."""
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
    """Look through a run's samples; each reason names as many as ``listed``.

    The worst samples are those with the lowest ``headline``, a figure.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    notice = Notice(listed)
    worst, slowest = _Ranking(headline, ranked, sign=-1), _Ranking(LATENCY, ranked, sign=1)
    samples = 0
    look = _Look(store, run)
    try:
        for number, _, _, text in store.results(run.id):
            result = read_result(text)
            samples += 1
            notice.add(number, result)
            worst.add(number, result)
            slowest.add(number, result)
        return Attention(
            samples=samples,
            concerns=look.concerns(notice.told()),
            worst=tuple(look.extreme(*each) for each in worst.told()),
            slowest=tuple(look.extreme(*each) for each in slowest.told()),
        )
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None


def concerns_of(store: Store, run: RunRow, conclusion: Conclusion) -> tuple[Concern, ...]:
    """Return the reasons to look at a run's samples, each with the first few of them.

    They are noted with the run; only where an older jurybox made it, all samples are looked at.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    if conclusion.attention is None:
        return gather(store, run, "", listed=FIRST, ranked=0).concerns
    return _Look(store, run).concerns(conclusion.attention)


class _Ranking:
    """The few samples with the highest value, or with the lowest where the sign is turned."""

    def __init__(self, figure: str, most: int, *, sign: int) -> None:
        self._figure = figure
        self._most = most
        self._sign = sign
        self._heap: list[tuple[float, int]] = []

    def add(self, number: int, result: SampleResult) -> None:
        value = result.figures.get(self._figure)
        if value is None:
            return
        # Of equals the one that comes first in the run stays.
        entry = (self._sign * value, -number)
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, entry)
        elif self._most:
            heapq.heappushpop(self._heap, entry)

    def told(self) -> list[tuple[int, str, float]]:
        ordered = sorted(self._heap, reverse=True)
        return [(-number, self._figure, self._sign * value) for value, number in ordered]


class _Look:
    """Looks samples up again, to name those that are shown."""

    def __init__(self, store: Store, run: RunRow) -> None:
        self._store = store
        self._run = run

    def concerns(self, noted: Iterable[Noted]) -> tuple[Concern, ...]:
        return tuple(
            Concern(
                kind=each.kind,
                meaning=KINDS[each.kind].meaning,
                count=each.count,
                samples=tuple(map(self.place, each.first)),
            )
            for each in noted
            if each.kind in KINDS
        )

    def place(self, number: int) -> Place:
        sample = self._sample(number)
        return Place(id=sample.sample_id, repeat=sample.repeat, number=number)

    def extreme(self, number: int, figure: str, value: float) -> Extreme:
        sample = self._sample(number)
        return Extreme(
            number=number,
            id=sample.sample_id,
            repeat=sample.repeat,
            figure=figure,
            value=value,
            task=cut(_ROW.decode(sample.inputs).task, _LONGEST_TASK),
            reasoning=cut(reasoning(sample), _LONGEST_REASONING),
        )

    def _sample(self, number: int) -> SampleRow:
        sample = self._store.sample(self._run.id, number)
        if sample is None:
            raise damaged(self._run, f"sample number {number} is gone")
        return sample
