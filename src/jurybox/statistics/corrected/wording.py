"""A corrected estimate in plain words."""

from jurybox.statistics.corrected.result import CorrectedMean
from jurybox.statistics.result import Interval


def sentence(made: CorrectedMean) -> str:
    """Return what the correction says, for people."""
    alone = "" if made.judge.value is None else f"the judge alone says {made.judge.value:.4g}"
    value, interval = made.corrected.value, made.corrected.interval
    if value is None or interval is None:
        return f"nothing is corrected: {made.reason}" + (f"; {alone}" if alone else "")
    said = f"corrected by {made.human.n:,} labels it is {value:.4g} ({_ends(interval)}); {alone}"
    if made.judge.value is not None and not interval.low <= made.judge.value <= interval.high:
        said += ", which the labels contradict"
    if made.effective_labels is not None:
        said += f"; with the judge, the labels are worth {made.effective_labels:,.0f}"
    if made.clusters is not None:
        return said
    if made.labels_to_halve is None:
        return f"{said}; more labels on these samples can't halve the interval"
    return f"{said}; {made.labels_to_halve:,} more would halve the interval"


def _ends(interval: Interval) -> str:
    return f"{100 * interval.level:g}% interval {interval.low:.4g} to {interval.high:.4g}"
