"""Compares two runs, sample by sample and metric by metric.

Single values are only reported as higher or lower. Whether the runs differ significantly is tested
for each metric, over all samples that have the metric in both runs. Scores are compared by the
means of votes, because they show more than the majority's score.
"""

import heapq
import math
import sys
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from itertools import zip_longest
from operator import itemgetter
from typing import Any, Final, cast

import msgspec

from jurybox.calibration.gold import Gold, gold_scales, share_right
from jurybox.documents.numbers import difference, dollars, metric_change, metric_value
from jurybox.engine.plan import Metadata
from jurybox.engine.records import RunRow, read_result
from jurybox.reporting import run_changes
from jurybox.reporting.attention import SamplePlace
from jurybox.reporting.metric_text import RunMetric, headline, metrics_of, plain_words
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.stored import reading
from jurybox.reporting.view import RunView
from jurybox.review.selection import FEWEST
from jurybox.rubric.metrics import LOWEST_MEAN, SAMPLE_SCORE, SAMPLES, WIN_RATE, Comparison
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.scoring.sample_result import JUDGE_SCORE, SampleResult
from jurybox.scoring.summary import Conclusion, GateOutcome, RunTally
from jurybox.scoring.tally import MEASURED
from jurybox.statistics.metric_differences import (
    RIGHT,
    DifferenceTests,
    SampleClusters,
    Wanted,
    comparable_scores,
    passed_of,
    recorded_score,
    rescaled,
    score_of,
    win_of,
)
from jurybox.storage.store import Store

Key = tuple[str, int]
Views = tuple[RunView, RunView]
Summaries = tuple[Mapping[str, Any], Mapping[str, Any]]

# Fields that may differ between any two runs and explain nothing.
_ALWAYS: Final = frozenset(
    {"run_id", "timestamp_utc", "name", "tags", "baseline", "group", "target_name", "max_cost"}
)
_DECIMALS: Final = 6
_LATENCY: Final = "latency_e2e_ms"
_MOST_RANKED: Final = 240
_UNKNOWN: Final = RunMetric(name="", value=None, n=None)


class CompareOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a comparison: which samples to list, and how to test."""

    limit: int | None = 20  # how many samples to list for each kind of change; None for all
    cluster: str | None = None  # the field that groups dependent samples
    level: float = 0.95  # of the intervals
    seed: int = 0  # of the random sign flips behind p values
    # Human labels for responses that both runs judged, by sample id.
    gold: Mapping[str, Gold] = {}


_USUAL: Final = CompareOptions()


class StoredSide(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one sample in one run."""

    key: Key
    sha256: str
    cluster: Hashable
    number: int
    responses: int  # a hash of the responses
    result: SampleResult


Pair = tuple[StoredSide | None, StoredSide | None]


def sample_pairs(
    store: Store, one: RunRow, other: RunRow, clusters: SampleClusters
) -> Iterator[Pair]:
    """Yield each sample's results in both runs; None for a run that doesn't have the sample.

    Both runs are read in parallel. A sample waits for its counterpart, so memory grows with the
    distance between their positions, which is zero for reruns of one dataset.
    """
    waiting: tuple[dict[Key, StoredSide], dict[Key, StoredSide]] = ({}, {})
    for found in zip_longest(_sides(store, one, clusters), _sides(store, other, clusters)):
        for at, side in enumerate(found):
            if side is None:
                continue
            match = waiting[1 - at].pop(side.key, None)
            if match is None and found[1 - at] is not None:
                waiting[at][side.key] = side
            else:
                yield (match, side) if at else (side, match)
    for side in waiting[0].values():
        yield side, None
    for side in waiting[1].values():
        yield None, side


def _sides(store: Store, run: RunRow, clusters: SampleClusters) -> Iterator[StoredSide]:
    with reading(run):
        for sample in store.samples(run.id):
            yield StoredSide(
                key=(sample.sample_id, sample.repeat),
                sha256=sample.record_sha256,
                cluster=clusters.of(sample.sample_id, sample.repeat, sample.inputs),
                number=sample.number,
                responses=hash(sample.responses),
                result=read_result(sample.result),
            )


def compare_runs(
    store: Store, one: RunView, other: RunView, options: CompareOptions = _USUAL
) -> RunDiff:
    """Compare two runs.

    The samples that changed most come first; unchanged ones are only counted.
    """
    views = (one, other)
    clusters = SampleClusters(options.cluster)
    changes = _Changes(views, options)
    changed = changes.changed(sample_pairs(store, one.row, other.row, clusters))
    largest = _largest(changed, changes.size, options.limit)
    clusters.check(one.run_id)
    tested = changes.tests.tested(clustered=clusters.needed, level=options.level, seed=options.seed)
    if changes.counts["labeled"] < FEWEST:  # too few to say which run's judge is right
        tested = tuple(each for each in tested if each.metric != RIGHT)
    whole = one.summary, other.summary
    same = not (changes.counts["only_in_a"] or changes.counts["only_in_b"])
    concluded = (one.conclusion, other.conclusion) if same else _over_shared(store, views)
    shared = concluded[0].summary, concluded[1].summary
    diff = RunDiff(
        a=one,
        b=other,
        identical=None if None in (one.digest, other.digest) else one.digest == other.digest,
        headline=changes.headline,
        fields=tuple(_fields(*views)),
        metrics=tuple(_metrics(views, whole)),
        shared=tuple(_metrics(views, shared)),
        used=tuple(_used(views, concluded, same=same)),
        tested=tested,
        gates=tuple(_gates(*views)),
        counts=run_changes.ChangeCounts(**changes.counts),
        ranked=_ranked(changes.differences),
        samples=largest.pop("any", ()),
        by_kind=largest,
        only_in_a=tuple(changes.only["only_in_a"]),
        only_in_b=tuple(changes.only["only_in_b"]),
        scenarios=tuple(_groups("scenarios", views, shared)),
        demographics=tuple(_groups("demographics", views, shared)),
    )
    if not diff.only_rescored:
        return diff
    return msgspec.structs.replace(diff, tested=tuple(each.without_chance() for each in tested))


def _over_shared(store: Store, views: Views) -> tuple[Conclusion, Conclusion]:
    """Return the conclusions of both runs over the samples that both have."""
    tallies = [RunTally(view.rubric, repeats=1) for view in views]
    for pair in sample_pairs(store, views[0].row, views[1].row, SampleClusters()):
        for tally, side in zip(tallies, pair, strict=True):
            if side is not None and None not in pair:
                tally.add(side.result, side.key[1])
    one, other = (tally.conclude() for tally in tallies)
    return one, other


def _used(
    views: Views, concluded: Iterable[Conclusion], *, same: bool
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield what the runs used in words: its name, both values, and how they differ.

    Times and tokens are means over the shared samples. The cost is that of whole runs, so it needs
    the ``same`` samples.
    """
    one, other = (each.spreads.metrics for each in concluded)
    for name in MEASURED:
        if name in one and name in other:
            a, b = one[name].mean, other[name].mean
            values = metric_value(name, a), metric_value(name, b)
            known = "not tested" if a != b else "the same"
            yield f"mean {plain_words(name)}", *values, metric_change(name, b - a), known
    a, b = (None if view.derived_from else view.cost.get("dollars") for view in views)
    if same and (a or b) and (change := difference(a, b)) is not None:
        sign = "+" if change > 0 else "-" if change else ""
        known = "not tested" if change else "the same"
        yield "cost", dollars(a), dollars(b), sign + dollars(abs(change)), known


def _largest(
    changes: Iterable[run_changes.SampleChange],
    size: Callable[[run_changes.SampleChange], Any],
    limit: int | None,
) -> dict[str, tuple[run_changes.SampleChange, ...]]:
    """Return the largest changes of each kind, and of all kinds under ``any``; ties keep order."""
    most = sys.maxsize if limit is None else limit
    kept: dict[str, list[run_changes.SampleChange]] = {}
    for change in changes:
        is_same = change.change in {"same", "unscored"}
        if is_same and limit is None:
            continue  # without a limit, only changes are listed
        for kind in (*change.kinds(), *(() if is_same else ("any",))):
            some = kept.setdefault(kind, [])
            some.append(change)
            if len(some) > 2 * most:  # so that a large run's samples are never all kept
                some[:] = heapq.nlargest(most, some, key=size)
    return {kind: tuple(heapq.nlargest(most, some, key=size)) for kind, some in kept.items()}


def _ranked(
    differences: Iterable[run_changes.RankedSample],
) -> tuple[run_changes.RankedSample, ...]:
    """Return samples sorted by difference; if there are many, only every n-th and both ends."""
    ordered = sorted(differences, key=itemgetter(0))
    step = max(1, math.ceil(len(ordered) / _MOST_RANKED))
    return (*ordered[:-1:step], *ordered[-1:])


def _headline(views: Views) -> str | None:
    """Return the metric by which samples are higher or lower in one run than in the other."""
    names = {headline(view.summary, view.rubric) for view in views}
    if len(names) == 1:
        return names.pop()
    overall = {view.rubric.overall_name for view in views}
    return overall.pop() if len(overall) == 1 and SAMPLE_SCORE in names else None


class _Changes:
    """Counts and tests the pairs of samples as they come in."""

    def __init__(self, views: Views, options: CompareOptions) -> None:
        rubrics = [view.rubric for view in views]
        self.headline = _headline(views)
        scores = comparable_scores(*rubrics)
        self._ranked_by = self.headline if self.headline in scores else scores[0]
        self.tests = DifferenceTests(scores, _wins_wanted(rubrics))
        self.counts = dict.fromkeys(run_changes.ChangeCounts.__struct_fields__, 0)
        self.differences: list[run_changes.RankedSample] = []
        self.only: dict[str, list[SamplePlace]] = {"only_in_a": [], "only_in_b": []}
        self._concerned = [frozenset(view.release.concerned) for view in views]
        self._gold = options.gold
        self._limit = options.limit
        one, other = map(gold_scales, rubrics)
        self._scales = {name: each for name, each in one.items() if other.get(name) == each}
        self._names = tuple(dict.fromkeys(name for each in rubrics for name in _names(each)))
        self._rescaled = rescaled(*rubrics)

    def changed(self, pairs: Iterable[Pair]) -> Iterator[run_changes.SampleChange]:
        """Yield the changes of each sample that both runs have."""
        for left, right in pairs:
            if left is None or right is None:
                self._add_single("only_in_a" if right is None else "only_in_b", left or right)
                continue
            met = (self._share_right(left), self._share_right(right))
            if left.responses != right.responses:
                met = (None, None)  # a label belongs to one response, and these differ
            self.tests.add(left.result, right.result, left.cluster, met)
            gold = None if None in met else self._gold.get(left.key[0])
            change = self._change(left, right, {} if gold is None else gold.labels)
            for kind in change.kinds():
                self.counts[kind] += 1
            self.counts["identical_records"] += change.identical
            self.counts["pairs"] += None not in change.winner
            self.counts["same_responses"] += left.responses == right.responses
            if change.apart is not None:
                self.differences.append((change.apart, _place(right)))
            yield change

    def size(self, change: run_changes.SampleChange) -> tuple[float, ...]:
        """Return the sort key of a change: reviewers' concerns, changed verdicts, then scores."""
        every = sum(abs(each.difference or 0) for each in change.metrics if each.metric != _LATENCY)
        return any(change.concern), len(change.flips()), abs(change.apart or 0), every

    def _add_single(self, name: str, side: StoredSide | None) -> None:
        listed = self.only[name]
        self.counts[name] += 1
        if side is not None and (self._limit is None or len(listed) < self._limit):
            listed.append(_place(side))

    def _share_right(self, side: StoredSide) -> float | None:
        gold = self._gold.get(side.key[0])
        if gold is None:
            return None
        scores = {name: recorded_score(side.result, name) for name in self._scales}
        return share_right(gold, side.result.winner, scores, self._scales)

    def _change(
        self, left: StoredSide, right: StoredSide, people: dict[str, list[float | str]]
    ) -> run_changes.SampleChange:
        one, other = left.result, right.result
        verdicts: dict[str, Any] = {
            name: (getattr(one, name), getattr(other, name)) for name in run_changes.VERDICTS
        }
        verdicts["passed"] = passed_of(one), passed_of(other)
        verdicts["safety_flag"] = tuple(
            each.safety_flag if each.safety_known else None for each in (one, other)
        )
        change = run_changes.SampleChange(
            id=left.key[0],
            repeat=left.key[1],
            change="changed",
            identical=left.sha256 == right.sha256,
            concern=(left.number in self._concerned[0], right.number in self._concerned[1]),
            labeled=bool(people),
            people=people,
            metrics=tuple(_by_votes(name, one, other, self._rescaled) for name in self._names),
            **verdicts,
        )
        pair = change.pair(self._ranked_by)
        apart = None if pair is None else pair.difference
        if apart is None:
            apart = difference(win_of(one), win_of(other))
        change = msgspec.structs.replace(change, apart=apart)
        return msgspec.structs.replace(change, change=_kind(change, self.headline))


def _wins_wanted(rubrics: Iterable[Rubric]) -> Wanted:
    """Return whether more wins of response A are better, as gates say."""
    gates = (gate for rubric in rubrics for gate in rubric.gates if gate.name == WIN_RATE)
    signs = {gate.operator[0] for gate in gates}
    return "higher" if signs == {">"} else "lower" if signs == {"<"} else "neither"


def _place(side: StoredSide) -> SamplePlace:
    return SamplePlace(id=side.key[0], repeat=side.key[1], number=side.number)


def _pair(
    name: str,
    a: float | None,
    b: float | None,
    without: Container[str],
    *,
    n_a: int | None = None,
    n_b: int | None = None,
) -> run_changes.MetricPair:
    """Return a metric in both runs; metrics in ``without`` get no difference."""
    apart = None if name in without else difference(a, b)
    return run_changes.MetricPair(metric=name, a=a, b=b, difference=apart, n_a=n_a, n_b=n_b)


def _by_votes(
    name: str, one: SampleResult, other: SampleResult, without: Container[str]
) -> run_changes.MetricPair:
    """Return a score in both runs as the mean of its votes, and as recorded if that differs."""
    recorded = recorded_score(one, name), recorded_score(other, name)
    votes = score_of(one, name), score_of(other, name)
    differ = any(_moved(_pair(name, *each, ())) for each in zip(recorded, votes, strict=True))
    pair = _pair(name, *votes, without)
    return msgspec.structs.replace(pair, recorded=recorded) if differ else pair


def _names(rubric: Rubric) -> Iterator[str]:
    yield from (criterion.id for criterion in rubric.criteria)
    yield rubric.overall_name
    if rubric.components:
        yield SAMPLE_SCORE
    yield JUDGE_SCORE
    yield _LATENCY


def _kind(change: run_changes.SampleChange, headline: str | None) -> run_changes.ChangeKind:
    """Return how a sample changed; latency is shown but doesn't count as a change."""
    moved = [each for each in change.metrics if each.metric != _LATENCY and _moved(each)]
    for each in moved:
        if each.metric == headline and each.difference is not None:
            return "higher" if each.difference > 0 else "lower"
    errors = zip(change.evaluator_error, change.target_error, strict=True)
    match [any(each) for each in errors]:
        case [True, True]:
            return "unscored"
        case [False, True]:
            return "no_longer_scored"
        case [True, False]:
            return "newly_scored"
        case _:
            return "changed" if moved or change.flips() or change.apart else "same"


def _moved(pair: run_changes.MetricPair) -> bool:
    if pair.a is None or pair.b is None:
        return pair.a is not pair.b
    return round(pair.difference or 0.0, _DECIMALS) != 0


def _fields(one: RunView, other: RunView) -> Iterator[run_changes.FieldChange]:
    """Yield the metadata fields in which two runs differ, which may explain other differences."""
    a, b = (
        {name: value for name, value in view.metadata.items() if name not in _ALWAYS}
        for view in (one, other)
    )
    rubrics = _rubric_fields(one.rubric), _rubric_fields(other.rubric)
    # The hash is compared only if it is all that differs, such as for another layout of the text.
    hashed = rubrics[0] == rubrics[1]
    for metadata, own in zip((a, b), rubrics, strict=True):
        metadata["rubric"] = {"sha256": metadata["rubric"]["sha256"]} if hashed else own
    return _differing("", a, b)


def _rubric_fields(rubric: Rubric) -> Metadata:
    """Return the content of a rubric, key by key."""
    fields = msgspec.structs.asdict(rubric)
    del fields["sha256"]
    for name, rules in (("pass_rules", rubric.pass_rules), ("gates", rubric.gates)):
        fields[name] = {each.name: str(each).removeprefix(each.name)[1:] for each in rules}
    fields["bands"] = {each.label: each.low for each in rubric.bands}
    fields["criteria"] = {each.id: _criterion_fields(each) for each in rubric.criteria}
    return msgspec.to_builtins(fields | {"scale": str(rubric.scale)})


def _criterion_fields(criterion: Criterion) -> Metadata:
    return msgspec.structs.asdict(criterion) | {
        "scale": str(criterion.scale),
        "levels": {f"{each.low:g}": each.meaning for each in criterion.levels},
        "indicators": {each.label: "; ".join(each.items) for each in criterion.indicators},
    }


def _differing(path: str, a: object, b: object) -> Iterator[run_changes.FieldChange]:
    if path == "not_known" or path.endswith(".not_supported"):
        return  # derived from fields that are compared by themselves
    if isinstance(a, dict) and isinstance(b, dict):
        left, right = cast("Metadata", a), cast("Metadata", b)
        for name in dict.fromkeys((*left, *right)):
            below = f"{path}.{name}" if path else name
            yield from _differing(below, left.get(name), right.get(name))
    elif a != b:
        yield run_changes.FieldChange(field=path, a=a, b=b)


def _metrics(views: Views, summaries: Summaries) -> Iterator[run_changes.MetricPair]:
    left, right = (
        {metric.name: metric for metric in metrics_of(summary, view.rubric)}
        for view, summary in zip(views, summaries, strict=True)
    )
    without = _not_comparable(views)
    for name in dict.fromkeys((*left, *right)):
        one, other = left.get(name, _UNKNOWN), right.get(name, _UNKNOWN)
        yield _pair(name, one.value, other.value, without, n_a=one.n, n_b=other.n)


def _not_comparable(views: Views) -> set[str]:
    """Return the run metrics on different scales, and the pass rate if a run has no scores."""
    one, other = (view.rubric for view in views)
    scales, others = ({each.scale for each in rubric.criteria} for rubric in (one, other))
    means = {rubric.mean_of(name) for rubric in (one, other) for name in rescaled(one, other)}
    lowest = set[str]() if scales == others else {LOWEST_MEAN}
    unknown = {"pass_rate"} if any(view.none_scored for view in views) else set[str]()
    return means | lowest | unknown


def _gates(one: RunView, other: RunView) -> Iterator[run_changes.GatePair]:
    left, right = _gates_by_rule(one), _gates_by_rule(other)
    for rule in dict.fromkeys((*left, *right)):
        a, b = left.get(rule), right.get(rule)
        texts = dict.fromkeys(each.gate for each in (a, b) if each is not None)
        yield run_changes.GatePair(gate=" -> ".join(texts), metric=rule[0], a=a, b=b)


def _gates_by_rule(view: RunView) -> dict[tuple[str, str, int], GateOutcome]:
    """Return the gates by their metric and operator; equal ones are numbered."""
    found: dict[tuple[str, str, int], GateOutcome] = {}
    for gate in view.gates:
        rule = Comparison.parse(gate.gate)
        many = sum((rule.name, rule.operator) == known[:2] for known in found)
        found[rule.name, rule.operator, many] = gate
    return found


def _groups(what: str, views: Views, summaries: Summaries) -> Iterator[run_changes.GroupPair]:
    """Yield each group that a run has, with its key metric and the means of its criteria."""
    left, right = (summary.get(what, {}) for summary in summaries)
    rubrics = [view.rubric for view in views]
    means = (rubric.mean_of(each.id) for rubric in rubrics for each in rubric.criteria)
    names = dict.fromkeys((*(view.key_metric for view in views), *means))
    without = _not_comparable(views)
    for group in dict.fromkeys((*left, *right)):
        a, b = left.get(group, {}), right.get(group, {})
        yield run_changes.GroupPair(
            group=group,
            samples_a=a.get(SAMPLES),
            samples_b=b.get(SAMPLES),
            metrics=tuple(_pair(name, a.get(name), b.get(name), without) for name in names),
        )
