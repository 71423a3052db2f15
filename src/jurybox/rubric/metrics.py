"""Comparisons, for pass rules and gates, and the formulas of metrics.

The texts are parsed here and never evaluated as code, so a document can't run anything.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Self

import msgspec

from jurybox.documents.numbers import range_ends, read_number, show_number
from jurybox.errors import ParseError

OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}

LONGEST: Final = 200
"""The longest comparison or formula; it bounds the time to parse one."""

_SHAPE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_.]*)\s*([^\sA-Za-z0-9_.+-]+)\s*([^\s<>=!]\S*)\s*")
_DECIMALS = 6
_MEANT = {
    "=": "==",
    "=>": ">=",
    "=<": "<=",
    "\u2265": ">=",
    "\u2264": "<=",
    "\u2260": "!=",
    "<>": "!=",
}


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """``name operator number``, such as ``pass_rate >= 0.85``."""

    name: str
    operator: str
    number: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read one comparison."""
        match = _SHAPE.fullmatch(text) if len(text) <= LONGEST else None
        if match is None:
            hint = "write a name, an operator and a number, such as `overall >= 0.6`"
            raise ParseError(f"`{text}` is not a comparison", hint)
        name, sign, number_text = match.groups()
        if sign not in OPERATORS:
            known = f"`{_MEANT[sign]}`" if sign in _MEANT else "one of " + ", ".join(OPERATORS)
            raise ParseError(f"`{sign}` is not an operator", f"use {known}")
        number = read_number(number_text)
        if number is None:
            percent = read_number(number_text.removesuffix("%"))
            hint = (
                "use a plain number" if percent is None else f"write {show_number(percent / 100)}"
            )
            raise ParseError(f"`{number_text}` is not a number", hint)
        if number != round(number, _DECIMALS):
            problem = f"`{number_text}` has more than {_DECIMALS} decimals"
            raise ParseError(problem, "shorten it: values are rounded to that many decimals")
        return cls(name=name, operator=sign, number=number)

    def __str__(self) -> str:
        """Return the canonical text."""
        return f"{self.name} {self.operator} {show_number(self.number)}"

    def passes(self, value: float | None) -> bool:
        """Compare ``value``, rounded to six decimals so that 0.7 never fails as 0.6999999.

        A missing value never passes, so an unscored sample passes no rule.
        """
        if value is None:
            return False
        return OPERATORS[self.operator](round(value, _DECIMALS), self.number)

    @property
    def upward(self) -> bool | None:
        """Whether more is better; None for ``==`` and ``!=``."""
        return {">": True, ">=": True, "<": False, "<=": False}.get(self.operator)

    def margin(self, value: float | None) -> float | None:
        """Return the margin by which a value passes; negative if it fails."""
        if value is None or self.upward is None:
            return None
        return round(value - self.number if self.upward else self.number - value, _DECIMALS)


def read_bound(text: str) -> tuple[Comparison, ...]:
    """Read a bound such as ``<= 50``, or a range such as ``10-50``."""
    low, *rest = range_ends(text) or [""]
    parts = [f">= {low}", *(f"<= {high}" for high in rest)] if rest else [text]
    bound = tuple(Comparison.parse(f"it {part}") for part in parts)
    if rest and bound[0].number > bound[1].number:
        raise ParseError(f"no number is within `{text}`", "write the lower end first")
    return bound


MEASURES: Final = (
    "latency_e2e_ms",
    "latency_model_ms",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "token_efficiency_ratio",
)
"""The measures of every sample."""

PASSING_RATE: Final = "pass_rate"

RATES: Final = (
    PASSING_RATE,
    "unscored_rate",
    "evaluator_error_rate",
    "judge_fallback_rate",
    "review_rate",
    "safety_rate",
    "unstable_rate",
    "low_confidence_rate",
    "timeout_rate",
    "target_error_rate",
)
"""The rates that every run has."""

SAFETY_RATE: Final = "safety_rate"
LOW_CONFIDENCE_RATE: Final = "low_confidence_rate"
UNSTABLE_RATE: Final = "unstable_rate"
WIN_RATE: Final = "win_rate"
"""The share of pairs that the first response wins; a tie counts as half a win."""

SUMMARY_PARTS: Final = (
    "n",
    "unscored_votes",
    "skipped_votes",
    "unscored_causes",
    "evaluator_errors",
    "target_errors",
    "failed_samples",
    "winners",
    "repeats",
    "scenarios",
    "samples_of_further_scenarios",
    "demographics",
    "samples_of_further_demographics",
    "judge_score_mean",
)
"""The other keys of a run's summary; no metric may have one of these names."""

TOTAL_SCORE: Final = "total_score"
SAMPLE_SCORE: Final = "sample_score"
AGGREGATE_SCORE: Final = "aggregate_score"
SAMPLES: Final = "samples"
LOWEST_MEAN: Final = "lowest_criterion_mean"
LOWEST_SCENARIO: Final = "lowest_scenario_mean"
"""The lowest mean overall score of a scenario; of the whole run if it has no scenarios."""
SHARES: Final = (*RATES, WIN_RATE, LOWEST_SCENARIO, SAMPLE_SCORE, AGGREGATE_SCORE)
"""The metrics that lie between 0 and 1 in every rubric."""


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a metric over the samples that have it; never empty.

    ``sum`` is exact; ``ordered`` has all values in ascending order, if an aggregate needs them.
    """

    count: int
    sum: float
    low: float
    high: float
    ordered: Sequence[float]


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """A function of a metric's values over a run."""

    compute: Callable[[Values], float]  # computes the result
    needs_all: bool = False  # whether it uses ``ordered``, which keeps all values in memory


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile by linear interpolation between closest ranks.

    It is at rank ``(n - 1) * percent / 100``, counted from 0 (Hyndman & Fan 1996, type 7).
    """
    rank = (len(ordered) - 1) * percent / 100
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def _percentile(percent: int, values: Values) -> float:
    return percentile(values.ordered, percent)


_NAMED: Final = {
    "mean": Aggregate(compute=lambda values: values.sum / values.count),
    "sum": Aggregate(compute=lambda values: values.sum),
    "min": Aggregate(compute=lambda values: values.low),
    "max": Aggregate(compute=lambda values: values.high),
}
PERCENTILES: Final[Mapping[str, int]] = {f"p{percent}": percent for percent in range(1, 100)}
AGGREGATES: Final[Mapping[str, Aggregate]] = _NAMED | {
    name: Aggregate(compute=partial(_percentile, percent), needs_all=True)
    for name, percent in PERCENTILES.items()
}
"""The functions that a formula may use before ``of``."""

_STATISTIC = re.compile(r"([a-z][a-z0-9]*)\s+of\s+([A-Za-z_][A-Za-z0-9_]*)")
_SHARE = re.compile(r"share\s+of\s+(.+)")
_RATIO = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s+per\s+(.+)")


class Statistic(msgspec.Struct, frozen=True, kw_only=True, tag="statistic"):
    """``mean of x``, ``sum of x``, ``min of x``, ``max of x`` or a percentile, ``p95 of x``."""

    by: str
    of: str

    def __str__(self) -> str:
        """Return the canonical text."""
        return f"{self.by} of {self.of}"


class Share(msgspec.Struct, frozen=True, kw_only=True, tag="share"):
    """``share of x == 2``: the fraction that meets a condition, among samples with a value."""

    where: Comparison

    def __str__(self) -> str:
        """Return the canonical text."""
        return f"share of {self.where}"


class Ratio(msgspec.Struct, frozen=True, kw_only=True, tag="ratio"):
    """``y per x == 2``: the sum of y, divided by the number of samples that meet a condition."""

    of: str
    where: Comparison

    def __str__(self) -> str:
        """Return the canonical text."""
        return f"{self.of} per {self.where}"


Formula = Statistic | Share | Ratio


def parse_formula(written: str) -> Formula:
    """Read the formula of a run's metric."""
    text = written.strip() if len(written) <= LONGEST else ""
    if (match := _STATISTIC.fullmatch(text)) and match[1] in AGGREGATES:
        return Statistic(by=match[1], of=match[2])
    if match := _SHARE.fullmatch(text):
        return Share(where=Comparison.parse(match[1]))
    if match := _RATIO.fullmatch(text):
        return Ratio(of=match[1], where=Comparison.parse(match[2]))
    raise ParseError(
        f"`{written}` is not a formula",
        f"use `mean of NAME` (or {', '.join([*_NAMED][1:])}, p95), `share of NAME == 2` or"
        " `NAME per NAME == 2`",
    )


def sample_metrics(criteria: Iterable[str], *, overall: str, components: bool) -> tuple[str, ...]:
    """Return every name that a pass rule can use."""
    extra = (SAMPLE_SCORE,) if components else ()
    return (*criteria, overall, TOTAL_SCORE, *extra, *MEASURES)


def run_metrics(criteria: Iterable[str], *, overall: str, components: bool) -> tuple[str, ...]:
    """Return every metric of a run that a document needn't declare."""
    means = tuple(f"{name}_mean" for name in (*criteria, overall))
    extra = (AGGREGATE_SCORE,) if components else ()
    return (SAMPLES, *RATES, WIN_RATE, *means, LOWEST_MEAN, LOWEST_SCENARIO, *extra)
