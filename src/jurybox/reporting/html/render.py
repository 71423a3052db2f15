"""From a page's data to HTML; Jinja2 is loaded by nobody else."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, cast

from jurybox.reporting.html.page import RunPage

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment, Template

_PACKAGE: Final = "jurybox.reporting.html"
_TEMPLATES: Final = "templates"
STYLE: Final = "style.css"


def environment(loaders: "Sequence[BaseLoader]" = ()) -> "Environment":
    """Return what renders pages: everything is escaped, and a name that isn't there is an error.

    ``loaders`` are looked into before the templates of this room.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    from jurybox.reporting.figures import exact, shown, signed
    from jurybox.reporting.html import charts
    from jurybox.reporting.html.axes import WHOLE
    from jurybox.reporting.html.text import prose, seen, visible, whole
    from jurybox.reporting.html.wording import counted, dollars, moment, percent, span

    made = Environment(
        # Whatever a template is called: what isn't escaped is a hole.
        autoescape=True,
        undefined=StrictUndefined,
        loader=ChoiceLoader([*loaders, PackageLoader(_PACKAGE, _TEMPLATES)]),
        finalize=_finalized,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = cast("dict[str, Any]", made.filters)
    filters |= {
        "counted": counted,
        "dollars": dollars,
        "exact": exact,
        "moment": moment,
        "percent": percent,
        "prose": prose,
        "seen": seen,
        "shown": shown,
        "signed": signed,
        "span": span,
        "visible": visible,
        "whole": whole,
    }
    cast("dict[str, Any]", made.globals)["charts"] = {
        name: getattr(charts, name) for name in charts.__all__
    } | {"whole": WHOLE}
    return made


def _finalized(value: object) -> object:
    """Show what can't be seen in every text that no filter has looked at."""
    from markupsafe import Markup

    from jurybox.reporting.html.text import visible

    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def style_sheet() -> str:
    """Return the style sheet of all pages."""
    path = resources.files(_PACKAGE) / _TEMPLATES / STYLE
    return path.read_text(encoding="utf-8")


def report_html(page: RunPage) -> str:
    """Return a run's page as one file that asks for nothing else."""
    from markupsafe import Markup

    style = "\n" + style_sheet()
    made = hashlib.sha256(style.encode()).digest()
    return _own().render(
        page=page,
        sample_url=None,
        style=Markup(style),  # noqa: S704 - our own file
        style_hash=f"sha256-{base64.b64encode(made).decode()}",
    )


@cache
def _own() -> "Template":
    # Reading the templates takes longer than filling them in.
    return environment().get_template("report.html")
