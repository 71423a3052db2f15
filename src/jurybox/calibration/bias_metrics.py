"""Bias metrics of a run's judges."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.calibration.observations import (
    MARKS,
    GradedResponse,
    Observations,
    ObservedVote,
    share_of,
)
from jurybox.calibration.probes import KINDS, ProbeKind
from jurybox.errors import InputError, Unreadable
from jurybox.judging.formats.reply_format import Side
from jurybox.rubric.conditions import Comparison
from jurybox.statistics.bias_estimates import (
    LONGER,
    LONGER_EXCESS,
    OWN,
    OWN_EXCESS,
    BiasMetric,
    ResponseKind,
    difference_by_mark,
    first_place_win_rate,
    flip_rate,
    formatted,
    own_against_others,
    percent,
    score_by_length,
    side_of,
    signed,
    swap_consistency,
    unmeasured,
    win_excess,
    win_rate,
    win_rate_at_equal,
)
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import mean_of, proportion
from jurybox.text_format import nearest

_HUNDRED = 100
_NO_PAIRS = "the run compares no pairs"
_NO_SCORES = "the run scores no single responses"
_NO_GOLD = (
    "no row says what people think of it: `gold` for all criteria or the overall score, or"
    " `gold_winner`"
)
_ANONYMOUS = (
    "the rows don't say which models made the responses (`model`, or `model_a` and `model_b`)"
)

Which = Callable[[ObservedVote], Side | None]
"""Says which side of a pair is of some kind, where exactly one is."""


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of bias and its metrics."""

    bias: str
    metrics: tuple[BiasMetric, ...]


def measure(seen: Observations, level: float = 0.95) -> tuple[Bias, ...]:
    """Return all metrics of the stored votes; those that aren't measurable give a reason."""
    return (
        Bias(bias="position", metrics=tuple(_position(seen, level))),
        Bias(bias="verbosity", metrics=tuple(_verbosity(seen, level))),
        Bias(bias="self_preference", metrics=tuple(_self_preference(seen, level))),
        Bias(bias="formatting", metrics=tuple(_formatting(seen, level))),
    )


def _because(reason: str | None, *metrics: BiasMetric) -> Iterator[BiasMetric]:
    """Yield the metrics, or the reason why none of them can be measured."""
    for each in metrics:
        yield each if reason is None else unmeasured(each.name, reason)


def _position(seen: Observations, level: float) -> Iterator[BiasMetric]:
    straight = [vote.straight for vote in seen.voted]
    swapped = [vote.swapped for vote in seen.voted]
    samples = [vote.sample for vote in seen.voted]
    kept: dict[str, list[tuple[bool, str]]] = {name: [] for name in seen.criteria}
    for vote in seen.voted:
        for name, same in vote.kept.items():
            kept.setdefault(name, []).append((same, vote.sample))
    yield from _because(
        None if seen.voted else _NO_PAIRS,
        first_place_win_rate(straight, swapped, samples, level=level),
        swap_consistency(straight, swapped, samples, level=level),
        *(
            flip_rate(name, [same for same, _ in of], [sample for _, sample in of], level=level)
            for name, of in kept.items()
        ),
    )


def _verbosity(seen: Observations, level: float) -> Iterator[BiasMetric]:
    rows = seen.scored
    no_scores = None if rows else _NO_SCORES
    found = score_by_length(
        [each.score for each in rows],
        [each.words for each in rows],
        [each.sample for each in rows],
        level=level,
    )
    yield from _because(no_scores, found)
    known = [(each, each.gold) for each in rows if each.gold is not None]
    found = score_by_length(
        [each.score for each, _ in known],
        [each.words for each, _ in known],
        [each.sample for each, _ in known],
        [gold for _, gold in known],
        level=level,
    )
    yield from _because(no_scores or (None if known else _NO_GOLD), found)
    yield from _of_kind(seen.voted, _longer, (LONGER, LONGER_EXCESS), level)


def _self_preference(seen: Observations, level: float) -> Iterator[BiasMetric]:
    why = _NO_SCORES if not seen.scored else _one_family({each.maker for each in seen.graded})
    known = [(each, each.gold) for each in seen.graded if each.gold is not None]
    yield from _because(why, _own_difference([(each, 0.0) for each in seen.graded], level))
    why = why or (None if known else _NO_GOLD)
    yield from _because(why, _own_difference(known, level, given_gold=True))
    makers = {maker for vote in seen.voted for maker in vote.makers or ()}
    why = _one_family(makers) if seen.voted else None
    yield from _because(why, *_of_kind(seen.voted, _own, (OWN, OWN_EXCESS), level))


def _one_family(makers: set[str]) -> str | None:
    if not makers:
        return _ANONYMOUS
    if len(makers) == 1:
        return f"all responses come from one family (`{min(makers)}`)"
    return None


def _own_difference(
    graded: Sequence[tuple[GradedResponse, float]], level: float, *, given_gold: bool = False
) -> BiasMetric:
    return own_against_others(
        [each.score - people for each, people in graded],
        [each.judge == each.maker for each, _ in graded],
        [each.judge for each, _ in graded],
        [each.sample for each, _ in graded],
        given_gold=given_gold,
        level=level,
    )


def _formatting(seen: Observations, level: float) -> Iterator[BiasMetric]:
    samples = [each.sample for each in seen.scored]
    scores, words = [each.score for each in seen.scored], [each.words for each in seen.scored]
    for bit, mark in enumerate(MARKS):
        has = [bool(each.marks >> bit & 1) for each in seen.scored]
        found = difference_by_mark(mark, scores, has, words, samples, level=level)
        yield from _because(None if seen.scored else _NO_SCORES, found)
        won = _marked(seen.voted, bit, formatted(mark), level)
        yield from _because(None if seen.voted else _NO_PAIRS, won)


def _marked(
    votes: Sequence[ObservedVote], bit: int, kind: ResponseKind, level: float
) -> BiasMetric:
    found: list[tuple[float, float, str]] = []
    for vote in votes:
        a, b = (bool(marks >> bit & 1) for marks in vote.marks)
        if a != b:
            longer = (vote.words[0] - vote.words[1]) / _HUNDRED
            side: Side = "A" if a else "B"
            found.append((share_of(vote.winner, side), longer if a else -longer, vote.sample))
    shares, apart = [each for each, _, _ in found], [each for _, each, _ in found]
    return win_rate_at_equal(shares, apart, [each for _, _, each in found], kind, level=level)


def _longer(vote: ObservedVote) -> Side | None:
    a, b = vote.words
    return None if a == b else "A" if a > b else "B"


def _own(vote: ObservedVote) -> Side | None:
    if vote.makers is None:
        return None
    a, b = (vote.judge == maker for maker in vote.makers)
    return None if a == b else "A" if a else "B"


def _of_kind(
    votes: Sequence[ObservedVote],
    which: Which,
    kinds: tuple[ResponseKind, ResponseKind],
    level: float,
) -> Iterator[BiasMetric]:
    """Yield how often one kind of response wins, and how much more often than with people."""
    plain, excess = kinds
    known: list[tuple[ObservedVote, Side]] = []
    for vote in votes:
        side = which(vote)
        if side is not None:
            known.append((vote, side))
    shares = [share_of(vote.winner, side) for vote, side in known]
    samples = [vote.sample for vote, _ in known]
    no_pairs = None if votes else _NO_PAIRS
    yield from _because(no_pairs, win_rate(shares, samples, plain, level=level))
    judged = [
        (share_of(vote.winner, side), share_of(vote.gold, side), vote.sample)
        for vote, side in known
        if vote.gold is not None
    ]
    found = win_excess(
        [share for share, _, _ in judged],
        [people for _, people, _ in judged],
        [sample for _, _, sample in judged],
        excess,
        level=level,
    )
    no_gold = None if any(vote.gold for vote in votes) else _NO_GOLD
    yield from _because(no_pairs or no_gold, found)


STABILITY_METRICS: Final = ("change", "changed", "largest")
"""The mean change, the share of scores that changed, and the largest change."""

# Sums of decimal fractions differ in the last digit where the fractions don't.
_ROUNDING: Final = 1e-9


def changes(
    before: Sequence[float], after: Sequence[float], kind: ProbeKind, *, level: float = 0.95
) -> tuple[BiasMetric, BiasMetric, BiasMetric]:
    """Return how far scores move where a sample is judged again with something changed.

    Scores are shares of the judge's scale, one row per sample. The largest change is the one
    furthest from zero, with its sign.
    """
    apart = [round(b - a, 9) for a, b in zip(before, after, strict=True)]
    names = [f"{kind.name}.{each}" for each in STABILITY_METRICS]
    n = len(apart)
    if not n:
        why = "no sample was scored both before and after"
        one, two, three = (unmeasured(name, why) for name in names)
        return one, two, three
    mean = mean_of(apart, ends=(-1.0, 1.0), level=level)
    moved = [abs(each) > _ROUNDING for each in apart]
    share = proportion(moved, level=level)
    largest = Estimate(value=max(apart, key=abs), n=n, reason="an extreme has no interval")
    most = signed(largest.value or 0.0)
    shown = percent(share.value or 0.0, share.interval)
    counted = "1 sample" if n == 1 else f"{n} samples"
    if any(moved):
        sentence = (
            f"the score changes by {signed(mean.value or 0.0, mean.interval)} of the scale on"
            f" average, in {sum(moved)} of {counted}, by {most} at the most:"
            f" {_drift(mean.interval, kind)}."
        )
    else:
        top = "" if share.interval is None else f" (at most {percent(share.interval.high)} would)"
        sentence = f"no score of {counted} changes{top}."
    sentences = (
        sentence,
        f"{shown} of the scores change.",
        f"the largest change is {most}.",
    )
    one, two, three = (
        BiasMetric(
            name=name,
            value=found.value,
            n=n,
            samples=n,
            interval=found.interval,
            reason=found.reason,
            sentence=f"With {kind.what}, {each}",
        )
        for name, found, each in zip(names, (mean, share, largest), sentences, strict=True)
    )
    return one, two, three


def _drift(interval: Interval | None, kind: ProbeKind) -> str:
    side = side_of(interval, 0.0)
    if not side:
        return "no significant drift, but scores aren't stable"
    if kind.group == "stability":
        return "what shouldn't matter does"
    return f"the judge gives {'more' if side > 0 else 'less'} for it"


_GATE: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*([^\w\s.].*)", re.DOTALL)
_STAND_IN: Final = "metric"
_HOW: Final = "write a metric, an operator and a number, such as `position.swap_consistency >= 0.9`"
_NOT_PROBED: Final = "no sample was judged again; `--probe N` does that"


class BiasGate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate, its metric, whether it passes; else ``reason`` may say why."""

    gate: str
    value: float | None
    passed: bool
    reason: str | None = None


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in which samples were judged again, and the kinds of changes in it."""

    run_id: str
    kinds: tuple[str, ...]


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """How samples were judged again; ``baseline`` is what their scores are compared with."""

    samples: int
    judges: tuple[str, ...]
    baseline: str
    runs: tuple[ProbeRun, ...]


class BiasReport(msgspec.Struct, frozen=True, kw_only=True):
    """The bias metrics of one run."""

    run_id: str
    suite: str
    status: str
    judges: tuple[str, ...]
    level: float
    seed: int
    samples: int
    pairs: int
    biases: tuple[Bias, ...]
    probe: Probed | None = None
    gates: tuple[BiasGate, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether all gates pass."""
        return all(gate.passed for gate in self.gates)

    def metrics(self) -> dict[str, BiasMetric]:
        """Return all metrics by name."""
        return {metric.name: metric for bias in self.biases for metric in bias.metrics}

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {**data, "passed": self.passed if self.gates else None}


def read_gates(texts: Iterable[str]) -> tuple[Comparison, ...]:
    """Read gates on bias metrics, whose names have dots."""
    return tuple(_read_gate(text) for text in texts)


def _read_gate(text: str) -> Comparison:
    match = _GATE.fullmatch(text)
    if match is None:
        raise InputError(f"`{text}` is not a comparison", _HOW, "--gate")
    try:
        # The rubric's reader knows operators and numbers; its names have no dots.
        comparison = Comparison.parse(f"{_STAND_IN} {match[2]}")
    except Unreadable as error:
        problem = error.problem.replace(f"`{_STAND_IN} ", f"`{match[1]} ")
        hint = _HOW if "comparison" in problem else error.hint
        raise InputError(problem, hint, "--gate") from None
    return msgspec.structs.replace(comparison, name=match[1])


def check_gates(gates: Sequence[Comparison], criteria: Iterable[str], known: Iterable[str]) -> None:
    """Refuse gates on unknown metrics."""
    names = {*known, *probe_names()} | {f"position.flips.{each}" for each in criteria}
    for gate in gates:
        if gate.name not in names:
            otherwise = "see the names that `jurybox bias RUN` prints"
            hint = nearest(gate.name, sorted(names), otherwise)
            raise InputError(f"there is no metric `{gate.name}`", hint, "--gate")


def probe_names() -> tuple[str, ...]:
    """Return the names of all metrics that need a probe."""
    return tuple(f"{kind.name}.{metric}" for kind in KINDS for metric in STABILITY_METRICS)


def check_bias_gates(
    gates: Sequence[Comparison], metrics: Mapping[str, BiasMetric]
) -> tuple[BiasGate, ...]:
    """Check metrics against gates; an unknown metric fails."""
    held: list[BiasGate] = []
    for gate in gates:
        metric = metrics.get(gate.name)
        value = None if metric is None else metric.value
        reason = None
        if value is None:
            reason = _NOT_PROBED if metric is None else metric.reason
        held.append(BiasGate(gate=str(gate), value=value, passed=gate.passes(value), reason=reason))
    return tuple(held)
