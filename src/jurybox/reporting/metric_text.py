"""The order of a run's metrics, and the formatting of numbers and texts."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from jurybox.documents.numbers import show_number
from jurybox.rubric.metrics import AGGREGATE_SCORE, SAMPLE_SCORE, SAMPLES, run_metrics
from jurybox.rubric.rubric_model import Rubric

MISSING: Final = "-"
UNITS: Final = {"latency_e2e_ms": "ms", "total_tokens": "tokens"}
"""The units of a sample's measures."""

_DECIMALS: Final = 4
_SHORT: Final = 3
_COMPARED: Final = 6
_LARGE: Final = 1000
_MORE: Final = "..."


class RunMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of a run, and the number of samples it comes from where that is counted."""

    name: str
    value: float | None
    n: int | None


def metrics_of(summary: Mapping[str, Any], rubric: Rubric) -> tuple[RunMetric, ...]:
    """Return the plain metrics of a summary, without those of its repeats and scenarios.

    The key metric comes first, then those that the rubric defines, then the others.
    """
    counts: Mapping[str, int] = summary.get("n", {})
    own = (metric.name for metric in rubric.metrics)
    usual = run_metrics(
        [criterion.id for criterion in rubric.criteria],
        overall=rubric.overall_name,
        components=bool(rubric.components),
    )
    names = dict.fromkeys((SAMPLES, key_metric(rubric), "pass_rate", *own, *usual, *summary))
    return tuple(
        RunMetric(name=name, value=summary[name], n=counts.get(name))
        for name in names
        if name in summary and isinstance(summary[name], int | float | None)
    )


def key_metric(rubric: Rubric) -> str:
    """Return the name of the most informative metric of a run."""
    return AGGREGATE_SCORE if rubric.components else f"{rubric.overall_name}_mean"


def headline(summary: Mapping[str, Any], rubric: Rubric) -> str:
    """Return the name of the metric for a sample's overall quality.

    Where the components of ``sample_score`` weren't measured, no sample has one.
    """
    counts: Mapping[str, int] = summary.get("n", {})
    return SAMPLE_SCORE if counts.get(AGGREGATE_SCORE) else rubric.overall_name


def shown(value: float | None) -> str:
    """Return a number for a table: integers in full, others to four decimals."""
    if value is None:
        return MISSING
    rounded = round(value, 1 if abs(value) >= _LARGE else _DECIMALS)
    # A value too small to show is still no zero.
    return show_number(rounded) if rounded or not value else f"{value:.2g}"


def rounded(value: float) -> float:
    """Return a metric to the precision at which it is shown: three decimals, or 0.1%."""
    return round(value, 1 if abs(value) >= _LARGE else _SHORT)


def metric_value(name: str, value: float | None) -> str:
    """Return a metric for people: a rate as a percentage, others to three decimals."""
    if value is None:
        return MISSING
    if name.endswith("_rate"):
        return f"{show_number(round(100 * rounded(value), 1))}%"
    return show_number(rounded(value)) if rounded(value) or not value else f"{value:.2g}"


def rounding_misleads(value: float, threshold: float) -> bool:
    """Return whether rounding for display moves a value across a threshold."""
    shown_at = rounded(value)
    return (shown_at > threshold, shown_at < threshold) != (value > threshold, value < threshold)


def dollars(value: float | None) -> str:
    """Return a formatted cost."""
    return "unknown" if value is None else f"${value:,.4f}"


def exact(value: float | None) -> str:
    """Return a number at the precision of comparisons: 0.84999 isn't shown as 0.85."""
    return MISSING if value is None else show_number(round(value, _COMPARED))


def difference(one: float | None, other: float | None) -> float | None:
    """Return how much the second is above the first, where both are known."""
    if one is None or other is None:
        return None
    # Rounded: in floats, 0.3 - 0.1 is not quite 0.2.
    return round(other - one, 9)


def signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return f"+{shown(value)}" if value is not None and value > 0 else shown(value)


_CAUSES: Final = {
    "failed_samples": "why samples fail",
    "target_errors": "why the target gave no response",
    "evaluator_errors": "why judges gave no scores",
}


def causes_of(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield why samples failed or have no response or scores, each cause with its count."""
    for name, heading in _CAUSES.items():
        if counts := summary.get(name):
            yield f"{heading}: {listed_counts(counts)}"


def failures_of(summary: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return why samples failed with counts: by pass rule, and by what kept a response away."""
    failed: dict[str, int] = dict(summary.get("failed_samples", {}))
    causes: Mapping[str, int] = summary.get("target_errors", {})
    if failed.pop("no response", 0):
        failed |= {f"no response: {cause}": count for cause, count in causes.items()}
    return sorted(failed.items(), key=lambda each: (-each[1], each[0]))


def listed_counts(counts: Mapping[str, int]) -> str:
    """Return causes with their counts in one line, the most frequent first."""
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return "; ".join(f"{count} x {cause}" for cause, count in ranked)


def cut(text: str, most: int) -> str:
    """Return a text in one line of bounded length."""
    # Only the beginning is put on one line: a text may be very long.
    flat = " ".join(text[: 8 * most].split())
    if len(flat) <= most and len(text) <= 8 * most:
        return flat
    return flat[: most - len(_MORE)].rstrip() + _MORE
