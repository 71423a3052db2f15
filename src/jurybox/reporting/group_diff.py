"""The scenarios, or the demographics, of two runs side by side."""

from collections.abc import Mapping
from typing import Any

from jurybox.reporting.figures import difference, key_figure
from jurybox.reporting.run_diff import GroupValues, Values
from jurybox.rubric.figures import SAMPLES
from jurybox.rubric.model import Rubric

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
