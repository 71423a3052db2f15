"""A run as a Markdown report: what needs a person first, then the decision, then the rest."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from jurybox.reporting.attention import Attention
from jurybox.reporting.metric_text import causes_of, key_metric, metrics_of
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import SAMPLES
from jurybox.text_format import visible

if TYPE_CHECKING:
    from jinja2 import Template

_SPACES: Final = re.compile(r"\s+")
_MARKS: Final = re.compile(r"[\\`*_\[\]{}|~#!$^]")
# Many pages make a link of everything that looks like an address.
_ADDRESS: Final = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_GAPS: Final = re.compile(r"\n{3,}")


def plain(text: str) -> str:
    """Return text escaped for one line or one table cell."""
    line = visible(_SPACES.sub(" ", text)).strip()
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ADDRESS.sub(r"\\\g<0>", _MARKS.sub(r"\\\g<0>", line))


def code(name: str) -> str:
    """Return a name of the program's own as code; whatever could end the code is text instead."""
    return f"`{name}`" if re.fullmatch(r"[\w .:<>=!/%+-]+", name, re.ASCII) else plain(name)


def markdown_report(view: RunView, attention: Attention, people: Sequence[str] = ()) -> str:
    """Return the report on a run; ``people`` has lines on the judges' agreement with people."""
    rubric = view.rubric
    causes = list(causes_of(view.summary))
    passing = ("pass_rate",) if rubric.pass_rules else ()
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    text = _template().render(
        view=view,
        rubric=rubric,
        attention=attention,
        causes=causes,
        calm=not (view.notes or attention.concerns or causes) and all(g.passed for g in view.gates),
        metrics=metrics_of(view.summary, rubric),
        columns=(SAMPLES, key_metric(rubric), *passing, *means),
        people=people,
        metadata={
            **view.metadata,
            "digest": view.digest,
            "finished_at": view.finished_at,
            "elapsed_s": view.elapsed_s,
        },
    )
    return _GAPS.sub("\n\n", text).strip() + "\n"


@cache
def _template() -> "Template":
    from markupsafe import Markup

    from jurybox.reporting.html.html_render import environment

    def written(text: str) -> Markup:
        return Markup(plain(text))  # noqa: S704 - escaped for Markdown

    def as_code(name: str) -> Markup:
        return Markup(code(name))  # noqa: S704 - the same

    def as_json(value: object) -> str:
        return msgspec.json.encode(value).decode()

    made = environment()
    filters = cast("dict[str, Any]", made.filters)
    filters |= {"plain": written, "code": as_code, "json": as_json}
    return made.get_template("report.md")
