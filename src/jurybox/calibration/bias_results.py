"""Describes bias metrics in words, checks gates, and builds the bias report."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.calibration.probes import KINDS, ProbeKind
from jurybox.errors import InputError, ParseError
from jurybox.rubric.metrics import Comparison
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import mean_of
from jurybox.text_format import counted, nearest

_NARROW: Final = 0.02
_NARROWER: Final = 0.002


class BiasMetric(Estimate, frozen=True, kw_only=True):
    """One measurement of bias, from ``n`` votes, calls or responses of ``samples`` samples.

    ``name`` is its name in gates, such as ``position.swap_consistency``.
    """

    name: str
    samples: int
    sentence: str = ""


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of bias and its metrics."""

    bias: str
    metrics: tuple[BiasMetric, ...]


def unmeasured(name: str, reason: str, *, n: int = 0, samples: int = 0) -> BiasMetric:
    """Return a metric that could not be measured, and why."""
    sentence = f"Not measurable: {reason}."
    return BiasMetric(name=name, value=None, n=n, samples=samples, reason=reason, sentence=sentence)


def percent(value: float, interval: Interval | None = None) -> str:
    """Return a share as a percentage, with its interval if it has one."""
    digits = _digits(interval)
    shown = f"{100 * value:.{digits}f}%"
    if interval is None:
        return shown
    return f"{shown} ({100 * interval.low:.{digits}f}% to {100 * interval.high:.{digits}f}%)"


def signed(value: float, interval: Interval | None = None) -> str:
    """Return a number with its sign, with its interval if it has one."""
    digits = 2 + _digits(interval)

    def shown(value: float) -> str:
        return f"{round(value, digits) + 0.0:+.{digits}f}"

    if interval is None:
        return shown(value)
    return f"{shown(value)} ({shown(interval.low)} to {shown(interval.high)})"


def _digits(interval: Interval | None) -> int:
    """Return how many digits to show, so that the ends of an interval differ."""
    width = 1.0 if interval is None else interval.high - interval.low
    if width >= _NARROW:
        return 0
    return 1 if width >= _NARROWER else 2


def side_of(interval: Interval | None, fair: float) -> int:
    """Return 1 for an interval above the fair value, -1 below it, 0 if it contains the value."""
    if interval is None or interval.low <= fair <= interval.high:
        return 0
    return 1 if interval.low > fair else -1


CHANGE: Final = "change"
"""The last part of the name of a probe's metric, which is the mean change of the scores."""


def change_of(
    before: Sequence[float], after: Sequence[float], kind: ProbeKind, *, level: float = 0.95
) -> BiasMetric:
    """Return how scores change on average when changed samples are judged again.

    Scores range from 0 to 1, with one per sample in both lists.
    """
    # Rounded, because sums of equal fractions may differ in the last digit.
    apart = [round(b - a, 9) for a, b in zip(before, after, strict=True)]
    name, n = f"{kind.name}.{CHANGE}", len(apart)
    if not n:
        return unmeasured(name, "no sample was scored both before and after")
    mean = mean_of(apart, ends=(-1.0, 1.0), level=level)
    moved = sum(each != 0 for each in apart)
    sentence = f"no score of {counted(n, 'sample')} changes"
    if moved:
        by = signed(mean.value or 0.0, mean.interval)
        where = f"in {moved} of {counted(n, 'sample')}"
        drift = _drift(mean.interval, kind)
        sentence = f"the score changes by {by} of the scale on average, {where}: {drift}"
    return BiasMetric(
        name=name,
        value=mean.value,
        n=n,
        samples=n,
        interval=mean.interval,
        reason=mean.reason,
        sentence=f"With {kind.what}, {sentence}.",
    )


def _drift(interval: Interval | None, kind: ProbeKind) -> str:
    side = side_of(interval, 0.0)
    if not side:
        return "no significant drift, but scores aren't stable"
    if kind.group == "stability":
        return "an irrelevant change affects the score"
    return f"the judge gives {'more' if side > 0 else 'less'} for it"


_NOT_PROBED: Final = "no sample was judged again; `--probe N` does that"


class BiasGate(GateOutcome, frozen=True, kw_only=True):
    """One gate on a bias metric; ``reason`` may say why it fails."""

    reason: str | None = None


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in which samples were judged again, and the kinds of changes in it."""

    run_id: str
    kinds: tuple[str, ...]


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a probe; ``baseline`` is what their scores are compared with."""

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
        """Return the report as plain data for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {**data, "passed": self.passed if self.gates else None}


def read_gates(texts: Iterable[str]) -> tuple[Comparison, ...]:
    """Read gates on bias metrics."""
    try:
        return tuple(map(Comparison.parse, texts))
    except ParseError as error:
        raise ParseError(error.problem, error.hint, "--gate") from None


def check_gates(gates: Sequence[Comparison], criteria: Iterable[str], known: Iterable[str]) -> None:
    """Refuse gates on unknown metrics."""
    names = {*known, *(f"{kind.name}.{CHANGE}" for kind in KINDS)}
    names |= {f"position.flips.{each}" for each in criteria}
    for gate in gates:
        if gate.name not in names:
            otherwise = "see the names that `jurybox bias RUN` prints"
            hint = nearest(gate.name, sorted(names), otherwise)
            raise InputError(f"there is no metric `{gate.name}`", hint, "--gate")


def check_bias_gates(
    gates: Sequence[Comparison], metrics: Mapping[str, BiasMetric]
) -> tuple[BiasGate, ...]:
    """Check metrics against gates; a gate fails if its metric has no value."""
    found: list[BiasGate] = []
    for gate in gates:
        metric = metrics.get(gate.name)
        value = None if metric is None else metric.value
        reason = None
        if value is None:
            reason = _NOT_PROBED if metric is None else metric.reason
        found.append(
            BiasGate(gate=str(gate), value=value, passed=gate.passes(value), reason=reason)
        )
    return tuple(found)
