"""The figures of a run by scenario and by demographic."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from jurybox.reporting.figures import key_figure
from jurybox.reporting.html.axes import Axis, axis_of
from jurybox.rubric.figures import SAMPLES
from jurybox.rubric.model import Rubric

MOST: Final = 100
"""So many groups are shown."""

_UNSTABLE: Final = "unstable_rate"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a group, and the ends between which it is drawn."""

    value: float | None
    axis: Axis


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The samples with one label."""

    label: str
    samples: int
    cells: tuple[Cell, ...]


class Grouping(msgspec.Struct, frozen=True, kw_only=True):
    """A run by one of its samples' labels.

    Attributes:
        name: what the label is: ``scenario`` or ``demographic``.
        figures: the names of the columns.
        groups: the rows, in the order of their labels.
        left_out: how many groups aren't shown.
        further: how many samples are of groups that weren't counted.

    """

    name: str
    figures: tuple[str, ...]
    groups: tuple[Group, ...]
    left_out: int = 0
    further: int = 0


def groupings(summary: Mapping[str, Any], rubric: Rubric) -> tuple[Grouping, ...]:
    """Return a run by scenario and by demographic, where its samples say them."""
    every = (_grouping(name, summary, rubric) for name in ("scenario", "demographic"))
    return tuple(each for each in every if each.groups)


def _grouping(name: str, summary: Mapping[str, Any], rubric: Rubric) -> Grouping:
    groups: Mapping[str, Mapping[str, Any]] = summary.get(f"{name}s") or {}
    figures = _columns(groups, rubric)
    return Grouping(
        name=name,
        figures=figures,
        groups=tuple(
            Group(
                label=label,
                samples=known.get(SAMPLES, 0),
                cells=tuple(
                    Cell(value=known.get(figure), axis=axis_of(figure, rubric, known.get(figure)))
                    for figure in figures
                ),
            )
            for label, known in list(groups.items())[:MOST]
        ),
        left_out=max(0, len(groups) - MOST),
        further=summary.get(f"samples_of_further_{name}s", 0),
    )


def _columns(groups: Mapping[str, Mapping[str, Any]], rubric: Rubric) -> tuple[str, ...]:
    """Return the figures that any group has, the one that says most first."""
    means = (f"{criterion.id}_mean" for criterion in rubric.criteria)
    overall = f"{rubric.overall_name}_mean"
    wanted = dict.fromkeys((key_figure(rubric), "pass_rate", overall, *means))
    found = [
        name for name in wanted if any(known.get(name) is not None for known in groups.values())
    ]
    # Worth a column only where there is one to be seen.
    if any(known.get(_UNSTABLE) for known in groups.values()):
        found.append(_UNSTABLE)
    return tuple(found)
