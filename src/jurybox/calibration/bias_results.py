"""Describes bias metrics in words, checks gates, and builds the bias report."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.calibration.probes import KINDS, ProbeKind
from jurybox.errors import InputError, ParseError
from jurybox.rubric.metrics import Comparison
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import mean_of, proportion
from jurybox.text_format import nearest

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
    """Return a share as percent, with its interval if it has one."""
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
    """Return on which side of the fair value an interval lies; 0 if it contains it."""
    if interval is None or interval.low <= fair <= interval.high:
        return 0
    return 1 if interval.low > fair else -1


STABILITY_METRICS: Final = ("change", "changed", "largest")
"""The mean change, the share of scores that changed, and the largest change."""

# Rounded, because sums of equal fractions may differ in the last digit.
_ROUNDING: Final = 1e-9


def changes(
    before: Sequence[float], after: Sequence[float], kind: ProbeKind, *, level: float = 0.95
) -> tuple[BiasMetric, BiasMetric, BiasMetric]:
    """Return how scores change when samples are judged again with a change.

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
        return "an irrelevant change affects the score"
    return f"the judge gives {'more' if side > 0 else 'less'} for it"


_GATE: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*([^\w\s.].*)", re.DOTALL)
_STAND_IN: Final = "metric"
_HOW: Final = "write a metric, an operator and a number, such as `position.swap_consistency >= 0.9`"
_NOT_PROBED: Final = "no sample was judged again; `--probe N` does that"


class BiasGate(msgspec.Struct, frozen=True, kw_only=True):
    """One gate and its metric, and whether it passes; ``reason`` may say why not."""

    gate: str
    value: float | None
    passed: bool
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
    except ParseError as error:
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
