"""What the page and the file of two compared runs share: axes, and the words for each change."""

from collections.abc import Sequence
from typing import Any, Final

from jurybox.reporting.run_changes import TURNS, settings_of
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.run_metrics import Axis
from jurybox.reporting.run_verdict import Verdict
from jurybox.rubric.metrics import WIN_RATE
from jurybox.statistics.metric_differences import MetricDifference
from jurybox.statistics.paired_comparison import PairedComparison
from jurybox.text_format import counted, joined

_LEAST_SHOWN: Final = 0.25  # of a scale, so that bars of small differences stay small


def comparison_data(diff: RunDiff, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return the data of a comparison of two runs with these verdicts."""
    spans = list(_spans(diff).values())
    far = [max(map(abs, _ends(each.comparison))) for each in diff.tested]
    reach = max((end / span for end, span in zip(far, spans, strict=True)), default=0.0) or 1.0
    charted = diff.leading
    scored = charted is None or charted.metric != WIN_RATE
    return {
        "diff": diff,
        "settings": settings_of(diff.fields),
        "verdicts": verdicts,
        "reach": reach,
        "axes": [Axis(low=-reach * span, high=reach * span, bounded=False) for span in spans],
        "charted": charted,
        "axis": _axis(diff, charted) if charted and diff.ranked else None,
        "scored": scored,
        "kinds": diff.counts.names,
        "turns": TURNS | {"labeled": "people labeled"},
        "methods": methods_used(diff, titled=True),
    }


def methods_used(diff: RunDiff, *, titled: bool = False) -> str:
    """Return by which tests and intervals the metrics were compared; empty if none was tested."""
    found: dict[str, list[str]] = {}
    for each in diff.tested:
        made = each.comparison
        if made.test is None or not diff.comparable(each):
            continue
        test, _, how = made.test.partition(", ")
        with_interval = "" if made.interval is None else made.interval.method.partition(",")[0]
        over = "" if made.clusters is None else f" over {counted(made.clusters, 'cluster')}"
        method = f"{test} ({how})"
        method += f" with {with_interval} intervals{over}" if with_interval else ""
        found.setdefault(method, []).append(diff.name_of(each, titled=titled))
    parts = [f"{method} for {joined(names)}" for method, names in found.items()]
    count = sum(each.comparison.p_adjusted is not None for each in diff.tested)
    holm = [f"p by Holm's correction for {counted(count, 'test')}"] if count > 1 else []
    return "; ".join([*parts, *holm]) if parts else ""


def _spans(diff: RunDiff) -> dict[str, float]:
    """Return how long the scale of each tested metric is."""
    known = {each.id: each.scale.span for each in diff.a.rubric.criteria}
    return {each.metric: known.get(each.metric, 1.0) for each in diff.tested}


def _ends(made: PairedComparison) -> tuple[float, ...]:
    """Return a difference and the ends of its interval, as far as they are known."""
    ends = () if made.interval is None else (made.interval.low, made.interval.high)
    return (made.difference or 0.0, *ends)


def _axis(diff: RunDiff, charted: MetricDifference) -> Axis:
    """Return the axis of the samples' differences; it is longer if all of them are small."""
    every = (0.0, diff.ranked[0][0], diff.ranked[-1][0], *_ends(charted.comparison))
    low, high = min(every), max(every)
    room = max(0.0, _LEAST_SHOWN * _spans(diff)[charted.metric] - (high - low)) / 2
    return Axis(low=low - room, high=high + room, bounded=False)
