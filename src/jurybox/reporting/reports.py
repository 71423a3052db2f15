"""Writes the report on a run in the format that a file's name asks for.

A format is a function and a row in `_FORMATS`.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import BinaryIO, Final, Literal, cast

import msgspec

from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.reporting.attention import Attention, gather
from jurybox.reporting.junit import write_junit
from jurybox.reporting.markdown import markdown_report
from jurybox.reporting.metric_text import headline
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.stored import rubric_of
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


class ReportSource(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a report, with what is known around the run."""

    view: RunView
    run: RunRow
    store: Store
    more: Mapping[str, object]

    def attention(self, listed: int) -> Attention:
        """Return the samples that need attention, up to this many for each concern."""
        name = headline(self.view.summary, rubric_of(self.run))
        return gather(self.store, self.run, self.view.conclusion, name, listed=listed)


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
    run: RunRow,
    store: Store,
    more: Mapping[str, object] = _NOTHING,
) -> None:
    """Write the report on a run.

    ``more`` is added to JSON; HTML shows its `CalibrationStatus` as ``calibration``, its
    `ReviewAgreement` as ``people`` and the `RunDiff` from its ``baseline``, Markdown the people.
    """
    _FORMATS[form](file, ReportSource(view=view, run=run, store=store, more=more))


def _html(file: BinaryIO, source: ReportSource) -> None:
    # Slow to import, so only where it is needed.
    from jurybox.reporting.html.html_render import html_report

    run = source.run
    attention = source.attention(listed=20)
    page = html_report(source.view, rubric_of(run), attention, run, source.store, source.more)
    file.write(page.encode())


def _markdown(file: BinaryIO, source: ReportSource) -> None:
    people = cast("ReviewAgreement | None", source.more.get("people"))
    lines = () if people is None else people.lines
    attention, rubric = source.attention(listed=20), rubric_of(source.run)
    file.write(markdown_report(source.view, attention, rubric, lines).encode())


def _json(file: BinaryIO, source: ReportSource) -> None:
    # People look at some samples; a program may want all, within bounded memory.
    attention = source.attention(listed=1000)
    data = {**source.view.as_data(), **attention.as_data(), **source.more}
    text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    file.write(visible_json(text).encode() + b"\n")


def _junit(file: BinaryIO, source: ReportSource) -> None:
    write_junit(file, source.view, source.run, source.store)


_FORMATS: Final[dict[ReportFormat, Callable[[BinaryIO, ReportSource], None]]] = {
    "html": _html,
    "md": _markdown,
    "json": _json,
    "junit": _junit,
}
REPORT_FORMATS: Final = tuple(_FORMATS)
