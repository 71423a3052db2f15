"""A paired comparison in one plain sentence, which claims nothing without its interval."""

from jurybox.statistics.paired.result import POWER, PairedComparison
from jurybox.statistics.result import Interval

_SMALLEST_P = 0.0001


def sentence(made: PairedComparison) -> str:
    """Return what the comparison says, for people."""
    if made.difference is None:
        return f"no difference can be told: {made.reason}"
    if not made.differing:
        return f"no difference can be told: A and B are equal on {_samples(made)}"
    if made.interval is None:
        seen = f"B minus A is {_number(made.difference)} on {_samples(made)}"
        return f"no difference can be told: {seen}, and there is no interval ({made.reason})"
    basis = f"{_interval(made.interval)}, {_p(made)}, {_samples(made)}"
    if made.verdict != "undecided":
        size = _number(abs(made.difference))
        return f"B is {made.verdict} than A by {size} ({basis})"
    seen = f"no difference can be told: B minus A is {_number(made.difference)} ({basis})"
    if made.detectable is None:
        return seen
    return (
        f"{seen}; a true difference of {_number(made.detectable)} would be found"
        f" with probability {POWER}"
    )


def _interval(interval: Interval) -> str:
    level = f"{100 * interval.level:g}%"
    return f"{level} interval {_number(interval.low)} to {_number(interval.high)}"


def _p(made: PairedComparison) -> str:
    p = made.p_value if made.p_adjusted is None else made.p_adjusted
    if p is None:
        return "not tested"
    value = f"p < {_SMALLEST_P}" if p < _SMALLEST_P else f"p = {p:.2g}"
    return value if made.p_adjusted is None else f"{value} after Holm's correction"


def _samples(made: PairedComparison) -> str:
    samples = "1 sample" if made.n == 1 else f"{made.n:,} samples"
    if made.clusters is None:
        return samples
    return f"{samples} in {made.clusters:,} cluster{'' if made.clusters == 1 else 's'}"


def _number(value: float) -> str:
    # Four digits; adding zero keeps what is nothing from being shown as minus nothing.
    return f"{value + 0.0:.4g}"
