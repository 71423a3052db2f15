"""Two runs held against each other, sample by sample and figure by figure (A13).

Single values are said to be higher or lower and no more than that; whether the runs differ by more
than chance is tested for each figure over all samples that have it in both.
"""

import heapq
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from jurybox.engine.plan import Metadata
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, read_result
from jurybox.reporting.attention import LATENCY, Place
from jurybox.reporting.clusters import Clustering
from jurybox.reporting.difference_tests import JUDGE_SCORE, Differences, comparable_scores
from jurybox.reporting.metric_text import difference, figures_of, headline, key_figure
from jurybox.reporting.run_diff import (
    VERDICTS,
    Change,
    ChangeKind,
    Counts,
    FieldChange,
    GateValues,
    GroupValues,
    RunDiff,
    RunValues,
    Values,
)
from jurybox.reporting.stored import damaged, rubric_of
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import SAMPLE_SCORE, SAMPLES
from jurybox.rubric.model import Rubric
from jurybox.scoring.sample_result import SampleResult
from jurybox.statistics.bootstrap import DEFAULT, Resampling

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


Summary = Mapping[str, Any]


def group_values(
    what: str, summaries: tuple[Summary, Summary], rubrics: tuple[Rubric, Rubric]
) -> tuple[GroupValues, ...]:
    """Return each group that a run has, with its figure as a whole and those of its criteria."""
    left, right = (_groups(summary, what) for summary in summaries)
    names = dict.fromkeys(
        (
            *(key_figure(rubric) for rubric in rubrics),
            *(f"{criterion.id}_mean" for rubric in rubrics for criterion in rubric.criteria),
        )
    )
    return tuple(
        _group(group, left.get(group, {}), right.get(group, {}), tuple(names))
        for group in dict.fromkeys((*left, *right))
    )


def _groups(summary: Summary, what: str) -> Mapping[str, Summary]:
    return summary.get(what, {})


def _group(group: str, a: Summary, b: Summary, names: tuple[str, ...]) -> GroupValues:
    figures = tuple(
        Values(figure=name, a=one, b=other, difference=difference(one, other))
        for name in names
        for one, other in ((a.get(name), b.get(name)),)
    )
    return GroupValues(
        group=group, samples_a=a.get(SAMPLES), samples_b=b.get(SAMPLES), figures=figures
    )


# What tells two runs apart anyway.
_ALWAYS: Final = frozenset({"run_id", "timestamp_utc"})
_DECIMALS: Final = 6


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs: as it is stored, and as it is shown."""

    row: RunRow
    view: RunView


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison shall tell.

    Attributes:
        limit: how many changed samples are listed; None for all.
        same: whether those that are the same are listed too.
        cluster: the field by which samples belong together, where they aren't independent.
        resampling: how intervals and p values are made.

    """

    limit: int | None = 20
    same: bool = False
    cluster: str | None = None
    resampling: Resampling = DEFAULT


_USUAL: Final = Wish()


def compare(store: Store, one: Side, other: Side, wish: Wish = _USUAL) -> RunDiff:
    """Hold two runs against each other.

    The samples that changed come first, those that changed most before the others; those that are
    the same follow where they are asked for.

    Raises:
        InputError: no sample has the field to cluster by.
        IncompleteError: what is stored can't be read.

    """
    rubrics = (rubric_of(one.row), rubric_of(other.row))
    comparing = _Comparing(rubrics, _headline((one.view, other.view), rubrics), wish)
    clustering = Clustering(wish.cluster)
    for left, right in pairs(store, one.row, other.row, clustering):
        comparing.add(left, right)
    clustering.check(one.row.id)
    digests = (one.row.digest, other.row.digest)
    return RunDiff(
        a=one.view,
        b=other.view,
        identical=None if None in digests else digests[0] == digests[1],
        headline=comparing.headline,
        fields=tuple(_fields(one.view, other.view)),
        figures=tuple(_figures((one.view, other.view), rubrics)),
        tested=comparing.testing.tested(wish.resampling, clustered=clustering.needed),
        gates=tuple(_gates(one.view, other.view)),
        counts=comparing.counts(),
        samples=comparing.samples(),
        only_in_a=tuple(comparing.only_in_a),
        only_in_b=tuple(comparing.only_in_b),
        scenarios=group_values("scenarios", (one.view.summary, other.view.summary), rubrics),
        demographics=group_values("demographics", (one.view.summary, other.view.summary), rubrics),
    )


def _headline(views: tuple[RunView, RunView], rubrics: tuple[Rubric, Rubric]) -> str | None:
    """Return the figure by which samples are higher or lower in one run than in the other."""
    names = {headline(view.summary, rubric) for view, rubric in zip(views, rubrics, strict=True)}
    if len(names) == 1:
        return names.pop()
    overall = {rubric.overall_name for rubric in rubrics}
    return overall.pop() if len(overall) == 1 and SAMPLE_SCORE in names else None


class _Comparing:
    """Counts changes as the samples come in, and keeps the largest."""

    def __init__(
        self,
        rubrics: tuple[Rubric, Rubric],
        headline: str | None,
        wish: Wish,
    ) -> None:
        one, other = rubrics
        self.headline = headline
        self.testing = Differences(comparable_scores(one, other))
        self._names = tuple(dict.fromkeys((*_names(one), *_names(other))))
        self._largest = _Largest(wish.limit)
        self._same: list[Change] | None = [] if wish.same else None
        self._limit = wish.limit
        self._counts = dict.fromkeys(Counts.__struct_fields__, 0)
        self.only_in_a: list[Place] = []
        self.only_in_b: list[Place] = []

    def add(self, left: Outcome | None, right: Outcome | None) -> None:
        if left is not None and right is not None:
            self._add_pair(left, right)
        elif left is not None:
            self._add_single("only_in_a", self.only_in_a, left)
        elif right is not None:
            self._add_single("only_in_b", self.only_in_b, right)

    def _add_single(self, name: str, listed: list[Place], outcome: Outcome) -> None:
        self._counts[name] += 1
        if self._limit is None or len(listed) < self._limit:
            listed.append(Place(id=outcome.key[0], repeat=outcome.key[1]))

    def _add_pair(self, left: Outcome, right: Outcome) -> None:
        change = self._change(left, right)
        self.testing.add(left.result, right.result, left.cluster)
        self._counts[change.change] += 1
        self._counts["identical_records"] += change.identical
        if change.change != "same":
            self._largest.add(_size(change, self.headline), change)
        elif self._same is not None and (self._limit is None or len(self._same) < self._limit):
            self._same.append(change)

    def _change(self, left: Outcome, right: Outcome) -> Change:
        one, other = left.result, right.result
        figures = tuple(
            Values(figure=name, a=a, b=b, difference=difference(a, b))
            for name in self._names
            for a, b in ((_value(one, name), _value(other, name)),)
        )
        change = Change(
            id=left.key[0],
            repeat=left.key[1],
            change="changed",
            identical=left.sha256 == right.sha256,
            figures=figures,
            **{name: (getattr(one, name), getattr(other, name)) for name in VERDICTS},
        )
        return msgspec.structs.replace(change, change=_kind(change, self.headline))

    def counts(self) -> Counts:
        return Counts(**self._counts)

    def samples(self) -> tuple[Change, ...]:
        changed = self._largest.told()
        room = None if self._limit is None else self._limit - len(changed)
        return (*changed, *(self._same or ())[:room])


class _Largest:
    """The largest changes, the largest first; of equals the one that came first."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._heap: list[tuple[tuple[float, ...], int, Change]] = []
        self._order = 0

    def add(self, size: tuple[float, ...], change: Change) -> None:
        self._order -= 1
        entry = (size, self._order, change)
        if self._limit is None or len(self._heap) < self._limit:
            heapq.heappush(self._heap, entry)
        elif self._limit:
            heapq.heappushpop(self._heap, entry)

    def told(self) -> list[Change]:
        return [change for _, _, change in sorted(self._heap, reverse=True)]


def _names(rubric: Rubric) -> Iterator[str]:
    yield from (criterion.id for criterion in rubric.criteria)
    yield rubric.overall_name
    if rubric.components:
        yield SAMPLE_SCORE
    yield JUDGE_SCORE
    yield LATENCY


def _value(result: SampleResult, name: str) -> float | None:
    return result.judge_score if name == JUDGE_SCORE else result.figures.get(name)


def _kind(change: Change, headline: str | None) -> ChangeKind:
    """Tell where a sample went; how long it took is shown, and is no change of the verdict."""
    moved = [each for each in change.figures if each.figure != LATENCY and _moved(each)]
    if not moved and not change.flips():
        return "same"
    for each in moved:
        if each.figure == headline and each.difference is not None:
            return "higher" if each.difference > 0 else "lower"
    return "changed"


def _moved(values: Values) -> bool:
    if values.a is None or values.b is None:
        return values.a is not values.b
    return round(values.a, _DECIMALS) != round(values.b, _DECIMALS)


def _size(change: Change, headline: str | None) -> tuple[float, ...]:
    """Return how large a change is: another verdict first, then the score, then its parts."""
    score = parts = 0.0
    for each in change.figures:
        if each.figure == LATENCY or each.difference is None:
            continue
        parts += abs(each.difference)
        if each.figure == headline:
            score = abs(each.difference)
    return (len(change.flips()), score, parts)


def _fields(one: RunView, other: RunView) -> Iterator[FieldChange]:
    """Yield the fields of the metadata in which two runs differ: they may explain the rest."""
    a, b = (
        {name: value for name, value in view.metadata.items() if name not in _ALWAYS}
        for view in (one, other)
    )
    return _differing("", a, b)


def _differing(path: str, a: object, b: object) -> Iterator[FieldChange]:
    if isinstance(a, dict) and isinstance(b, dict):
        left, right = cast("Metadata", a), cast("Metadata", b)
        for name in dict.fromkeys((*left, *right)):
            below = f"{path}.{name}" if path else name
            yield from _differing(below, left.get(name), right.get(name))
    elif a != b:
        yield FieldChange(field=path, a=a, b=b)


def _figures(views: tuple[RunView, RunView], rubrics: tuple[Rubric, Rubric]) -> Iterator[RunValues]:
    left, right = (
        {figure.name: figure for figure in figures_of(view.summary, rubric)}
        for view, rubric in zip(views, rubrics, strict=True)
    )
    for name in dict.fromkeys((*left, *right)):
        a, b = left.get(name), right.get(name)
        values = (None if a is None else a.value, None if b is None else b.value)
        yield RunValues(
            figure=name,
            a=values[0],
            b=values[1],
            difference=difference(*values),
            n_a=None if a is None else a.n,
            n_b=None if b is None else b.n,
        )


def _gates(one: RunView, other: RunView) -> Iterator[GateValues]:
    left = {gate.gate: gate for gate in one.gates}
    right = {gate.gate: gate for gate in other.gates}
    for name in dict.fromkeys((*left, *right)):
        yield GateValues(gate=name, a=left.get(name), b=right.get(name))
