"""A report on a run, in the form that a file's name asks for."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import BinaryIO, Final, Literal, cast

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.reporting.attention import gather
from jurybox.reporting.junit import write_junit
from jurybox.reporting.markdown import markdown_report
from jurybox.reporting.metric_text import headline
from jurybox.reporting.stored import rubric_of
from jurybox.reporting.view import RunView

Form = Literal["html", "md", "json", "junit"]
FORMS: Final[tuple[Form, ...]] = ("html", "md", "json", "junit")

_ENDINGS: Final[dict[str, Form]] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
    ".xml": "junit",
}
# People look at some; a program may want all, and memory has to end somewhere.
_LISTED: Final[dict[Form, int]] = {"html": 20, "md": 20, "json": 1000}

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


def report_form(name: str) -> Form:
    """Return the form of report that a file's name asks for.

    Raises:
        InputError: there is none of that kind.

    """
    ending = PurePath(name).suffix.lower()
    if ending not in _ENDINGS:
        problem = f"`{ending}` is no form of report" if ending else "the name has no ending"
        hint = "end it with .html, .md, .json or .junit.xml, or use --format"
        raise InputError(problem, hint, name)
    return _ENDINGS[ending]


def write_report(
    file: BinaryIO,
    form: Form,
    view: RunView,
    run: RunRow,
    store: Store,
    more: Mapping[str, object] = _NOTHING,
) -> None:
    """Write the report on a run.

    ``more`` is what JSON says beside it: HTML takes ``calibration`` and ``people`` from it,
    Markdown ``people``.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    if form == "junit":
        write_junit(file, view, run, store)
        return
    rubric = rubric_of(run)
    attention = gather(store, run, headline(view.summary, rubric), listed=_LISTED[form])
    if form == "md":
        file.write(markdown_report(view, attention, rubric, _lines(more)).encode())
        return
    if form == "html":
        # Only here, for it takes a while to load.
        from jurybox.reporting.html.html_render import html_report

        file.write(html_report(view, rubric, attention, run, store, more).encode())
        return
    data = {**view.as_data(), **attention.as_data(), **more}
    file.write(msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n")


def _lines(more: Mapping[str, object]) -> Sequence[str]:
    """Return what people say so far, in lines."""
    people = more.get("people")
    return cast("dict[str, Sequence[str]]", people)["lines"] if people else ()
