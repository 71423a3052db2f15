"""Bars that lie: one for a cell of a table, one for the parts of a whole."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from jurybox.reporting.figures import shown
from jurybox.reporting.html.axes import Axis
from jurybox.reporting.html.charts.drawing import box, element, picture
from jurybox.reporting.html.jury import Part

_CELL: Final = (56.0, 8.0)
_WHOLE: Final = (320.0, 18.0)


def bar(value: float | None, axis: Axis) -> Markup:
    """Return a bar for a cell whose number stands beside it: it is nothing to read aloud."""
    width, height = _CELL
    filled = 0.0 if value is None else axis.share(value) * width
    return element(
        "svg",
        box(0, 0, width, height, "track"),
        box(0, 0, filled, height, "fill"),
        class_="cell-bar",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        aria_hidden="true",
    )


def shares(title: str, parts: Sequence[Part]) -> Markup:
    """Return the parts of a whole as one bar, each as long as its share."""
    width, height = _WHOLE
    drawn: list[Markup] = [box(0, 0, width, height, "track")]
    at = 0.0
    for part in parts:
        drawn.append(box(at, 0, part.share * width, height, f"part {part.kind}"))
        at += part.share * width
    told = ", ".join(f"{part.label} {part.count}" for part in parts)
    n = parts[0].n if parts else 0
    return picture(title, f"Of {shown(n)}: {told}.", _WHOLE, *drawn, kind="shares")
