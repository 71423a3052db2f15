"""The elements of a drawing, and how much room words take in it."""

import unicodedata
from typing import Final

from markupsafe import Markup, escape

from jurybox.documents.numbers import show_number
from jurybox.reporting.html.text import visible

FONT: Final = 11
"""The size of words in a chart, in pixels; the style sheet says the same."""

_CHARACTER: Final = 0.62
_WIDE: Final = 1.05


def element(name: str, *content: Markup | str, **attributes: str | float) -> Markup:
    """Return an element; content that isn't markup is escaped, and so is every attribute.

    ``text_anchor`` stands for ``text-anchor``, and ``class_`` for ``class``.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
    )
    inside = "".join(
        each if isinstance(each, Markup) else escape(visible(each)) for each in content
    )
    return Markup(f"<{name}{written}>{inside}</{name}>")  # noqa: S704 - every part is escaped


def _written(value: str | float) -> str:
    return visible(value) if isinstance(value, str) else show_number(round(value, 2))


def picture(
    title: str, description: str, size: tuple[float, float], *content: Markup | str, kind: str
) -> Markup:
    """Return a drawing that can be read aloud."""
    width, height = size
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *content,
        role="img",
        class_=f"chart {kind}",
        viewBox=f"0 0 {_written(width)} {_written(height)}",
        width=width,
        height=height,
    )


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Return a rectangle."""
    return element("rect", x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=kind)


def line(start: tuple[float, float], end: tuple[float, float], kind: str) -> Markup:
    """Return a line."""
    return element("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=kind)


def words(text: str, x: float, y: float, kind: str, anchor: str = "middle") -> Markup:
    """Return words at a place."""
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=kind)


def room_for(text: str) -> float:
    """Return how many pixels a text takes at most, more or less."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return FONT * (_CHARACTER * (len(text) - wide) + _WIDE * wide)


def within(text: str, x: float, width: float) -> tuple[float, str]:
    """Return where a text goes that should be centred at ``x`` but must not leave the drawing."""
    half = room_for(text) / 2
    if x - half < 0:
        return 0.0, "start"
    return (width, "end") if x + half > width else (x, "middle")
