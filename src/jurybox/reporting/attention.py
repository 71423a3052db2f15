"""What a reader of a run has to see first (E15), gathered in one pass and bounded memory."""

import heapq
from collections.abc import Callable
from typing import Any, Final

import msgspec

from jurybox.reporting.reasons import cut, reasoning, unmet
from jurybox.reporting.stored import damaged
from jurybox.running.deriving import read_result
from jurybox.running.records import RunRow, SampleRow
from jurybox.running.storing import Store
from jurybox.sample import Row
from jurybox.scoring.result import SampleResult

LATENCY: Final = "latency_e2e_ms"
_LONGEST_REASONING: Final = 300
_LONGEST_TASK: Final = 160
_ROW: Final = msgspec.json.Decoder(Row)

Concerns = Callable[[SampleResult], bool]


class _Kind(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    meaning: str
    concerns: Concerns


_KINDS: Final = (
    _Kind(
        name="safety",
        meaning="a judge sees a danger",
        concerns=lambda result: result.safety_flag,
    ),
    _Kind(
        name="unstable",
        meaning="the winner changed with the order of the responses",
        concerns=lambda result: result.stable is False,
    ),
    _Kind(
        name="low_confidence",
        meaning="the votes have no majority",
        concerns=lambda result: result.confidence == "low" and result.votes_valid > 0,
    ),
    _Kind(
        name="unscored",
        meaning="no judge gave a valid vote",
        concerns=lambda result: result.judged and not result.votes_valid,
    ),
    _Kind(
        name="target_error",
        meaning="the system under test failed or was too late",
        concerns=lambda result: result.target_error is not None,
    ),
    _Kind(
        name="judge_fallback",
        meaning="a reply could not be read, and the rubric's fallback score stands in",
        concerns=lambda result: result.judge_fallback is True,
    ),
    _Kind(
        name="failed",
        meaning="a pass rule does not hold",
        # Who has no scores at all is named above, by what is the matter.
        concerns=lambda result: (
            result.passed is False
            and result.evaluator_error is None
            and result.target_error is None
            and bool(unmet(result))
        ),
    ),
)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A sample in a repeat."""

    id: str
    repeat: int


class Concern(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to look at samples: how many there are, and the first of them."""

    kind: str
    meaning: str
    count: int
    samples: tuple[Place, ...]


class Extreme(msgspec.Struct, frozen=True, kw_only=True):
    """One of the worst or the slowest samples, with what the judges say of it."""

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
        """Return plain data, ready for JSON."""
        return {
            "attention": msgspec.to_builtins(self.concerns),
            "worst": msgspec.to_builtins(self.worst),
            "slowest": msgspec.to_builtins(self.slowest),
        }


def gather(
    store: Store, run: RunRow, headline: str, *, listed: int = 20, ranked: int = 10
) -> Attention:
    """Look through a run's samples; each reason names as many as ``listed``.

    The worst samples are those with the lowest ``headline``, a figure.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    gathering = _Gathering(headline, listed, ranked)
    look = _Look(store, run)
    try:
        for number, _, _, result in store.results(run.id):
            gathering.add(number, read_result(result))
        return gathering.told(look)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None


class _Gathering:
    def __init__(self, headline: str, listed: int, ranked: int) -> None:
        self._listed = listed
        self._samples = 0
        self._counts = dict.fromkeys(_KINDS, 0)
        self._numbers: dict[_Kind, list[int]] = {kind: [] for kind in _KINDS}
        self._worst = _Ranking(headline, ranked, sign=-1)
        self._slowest = _Ranking(LATENCY, ranked, sign=1)

    def add(self, number: int, result: SampleResult) -> None:
        self._samples += 1
        for kind in _KINDS:
            if kind.concerns(result):
                self._counts[kind] += 1
                if len(self._numbers[kind]) < self._listed:
                    self._numbers[kind].append(number)
        self._worst.add(number, result)
        self._slowest.add(number, result)

    def told(self, look: "_Look") -> Attention:
        concerns = tuple(
            Concern(
                kind=kind.name,
                meaning=kind.meaning,
                count=count,
                samples=tuple(map(look.place, self._numbers[kind])),
            )
            for kind, count in self._counts.items()
            if count
        )
        return Attention(
            samples=self._samples,
            concerns=concerns,
            worst=tuple(look.extreme(*each) for each in self._worst.told()),
            slowest=tuple(look.extreme(*each) for each in self._slowest.told()),
        )


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

    def place(self, number: int) -> Place:
        sample = self._sample(number)
        return Place(id=sample.sample_id, repeat=sample.repeat)

    def extreme(self, number: int, figure: str, value: float) -> Extreme:
        sample = self._sample(number)
        return Extreme(
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
