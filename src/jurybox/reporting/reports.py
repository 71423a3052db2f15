"""Writes the report on a run in the format that a file's name asks for.

A format is a function and a row in `_FORMATS`.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import BinaryIO, Final, Literal, cast

import msgspec

from jurybox.errors import InputError
from jurybox.reporting.attention import gather
from jurybox.reporting.junit import write_junit
from jurybox.reporting.markdown import markdown_report
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.view import RunView
from jurybox.storage.store import Store
from jurybox.text_format import visible_json

ReportFormat = Literal["html", "md", "json", "junit"]

_ENDINGS: Final[dict[str, ReportFormat]] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
    ".xml": "junit",
}
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


def report_format(name: str) -> ReportFormat:
    """Return the format that a file's name asks for.

    Raises:
        InputError: there is no such format.

    """
    ending = PurePath(name).suffix.lower()
    if ending not in _ENDINGS:
        problem = f"`{ending}` is no format of report" if ending else "the name has no ending"
        hint = "end it with .html, .md, .json or .junit.xml, or use --format"
        raise InputError(problem, hint, name)
    return _ENDINGS[ending]


def write_report(
    file: BinaryIO,
    form: ReportFormat,
    view: RunView,
    store: Store,
    more: Mapping[str, object] = _NOTHING,
) -> None:
    """Write the report on a run.

    ``more`` is added to JSON; HTML shows its `CalibrationStatus` as ``calibration``, its
    `ReviewAgreement` as ``people`` and the `RunDiff` from its ``baseline``, Markdown the people.
    """
    _FORMATS[form](file, view, store, more)


def _html(file: BinaryIO, view: RunView, store: Store, more: Mapping[str, object]) -> None:
    # Slow to import, so only where it is needed.
    from jurybox.reporting.html.html_render import html_report

    file.write(html_report(view, gather(store, view), store, more).encode())


def _markdown(file: BinaryIO, view: RunView, store: Store, more: Mapping[str, object]) -> None:
    people = cast("ReviewAgreement | None", more.get("people"))
    lines = () if people is None else people.lines
    file.write(markdown_report(view, gather(store, view), lines).encode())


def _json(file: BinaryIO, view: RunView, store: Store, more: Mapping[str, object]) -> None:
    # People look at some samples; a program may want all, within bounded memory.
    attention = gather(store, view, listed=1000)
    data = {**view.as_data(), **attention.as_data(), **more}
    text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    file.write(visible_json(text).encode() + b"\n")


def _junit(file: BinaryIO, view: RunView, store: Store, _: Mapping[str, object]) -> None:
    write_junit(file, view, store)


_FORMATS: Final[
    dict[ReportFormat, Callable[[BinaryIO, RunView, Store, Mapping[str, object]], None]]
] = {
    "html": _html,
    "md": _markdown,
    "json": _json,
    "junit": _junit,
}
