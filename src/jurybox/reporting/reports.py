"""Renders a run as a Markdown, JUnit or JSON report."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, Literal, cast
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

import msgspec

from jurybox.documents.numbers import exact
from jurybox.errors import InputError
from jurybox.reporting.attention import Attention, every_concern, gather, worst_samples
from jurybox.reporting.metric_text import causes_of, key_metric, metrics_of
from jurybox.reporting.reasons import reasoning, why_failed
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.stored import SampleRecord, reading
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import SAMPLES
from jurybox.scoring.sample_result import SampleResult, unmet
from jurybox.storage.store import Store
from jurybox.text_format import cut, visible, visible_json

if TYPE_CHECKING:
    from jinja2 import Template


_SPACES: Final = re.compile(r"\s+")
_MARKS: Final = re.compile(r"[\\`*_\[\]{}|~#!$^]")
# Many sites turn everything that looks like an address into a link.
_ADDRESS: Final = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_GAPS: Final = re.compile(r"\n{3,}")


def plain(text: str) -> str:
    """Return text escaped for one line or one table cell."""
    line = visible(_SPACES.sub(" ", text)).strip()
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ADDRESS.sub(r"\\\g<0>", _MARKS.sub(r"\\\g<0>", line))


def code(name: str) -> str:
    """Return a name as inline code, or as escaped text if it has unusual characters."""
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


_LONGEST_BODY: Final = 2000


def write_junit(file: BinaryIO, view: RunView, store: Store) -> None:
    """Write a run as JUnit XML, sample by sample.

    A sample is a failure if a pass rule fails or could not be measured, or if the target gave no
    response; it is an error if no judge gave a valid vote.
    """
    several = view.metadata.get("repeats", 1) != 1
    records = map(SampleRecord, store.samples(view.run_id))
    samples = (_sample(view.suite, each, several=several) for each in records)
    # The counts come first, so the cases are buffered until they are counted.
    with reading(view.row), TemporaryFile() as gate_cases, TemporaryFile() as sample_cases:
        suites = {
            "gates": (_write_cases(gate_cases, _gates(view)), gate_cases),
            "samples": (_write_cases(sample_cases, samples), sample_cases),
        }
        total = suites["gates"][0] + suites["samples"][0]
        name, stamp = _attribute(view.suite), _attribute(view.created_at)
        _write(file, '<?xml version="1.0" encoding="UTF-8"?>')
        _write(file, f"<testsuites name={name} {_counts(total)}>")
        for title, (counts, cases) in suites.items():
            _write(file, f'<testsuite name="{title}" {_counts(counts)} timestamp={stamp}>')
            if title == "gates":
                _write(file, ET.tostring(_properties(view), "unicode"))
            cases.seek(0)
            shutil.copyfileobj(cases, file)
            _write(file, "</testsuite>")
        _write(file, "</testsuites>")


def _write(file: IO[bytes], line: str) -> None:
    file.write(line.encode() + b"\n")


def _write_cases(draft: IO[bytes], cases: Iterable[ET.Element]) -> Counter[str]:
    """Write test cases, and count them, their milliseconds, failures and errors."""
    counts = Counter[str]()
    for case in cases:
        counts.update(tests=1, ms=round(1000 * float(case.get("time", 0))))
        counts.update(each.tag for each in case)
        _write(draft, ET.tostring(case, "unicode"))
    return counts


def _counts(counts: Counter[str]) -> str:
    return (
        f'tests="{counts["tests"]}" failures="{counts["failure"]}" errors="{counts["error"]}"'
        f' time="{counts["ms"] / 1000:.3f}"'
    )


def _properties(view: RunView) -> ET.Element:
    rubric = view.metadata.get("rubric", {})
    known = {
        "run_id": view.run_id,
        "status": view.status,
        "rubric": f"{rubric.get('id')} {rubric.get('version')} {rubric.get('sha256')}",
        "digest": view.digest,
        "decision": view.conclusion.decision,
        **{f"note {place}": note for place, note in enumerate(view.notes, start=1)},
    }
    made = ET.Element("properties")
    for name, value in known.items():
        if value is not None:
            ET.SubElement(made, "property", name=name, value=_writable(value))
    return made


def _gates(view: RunView) -> Iterator[ET.Element]:
    group = f"{view.suite}.gates"
    if view.status != "finished":
        # An unfinished run must not look like a passed one.
        message = f"{view.summary['samples']} of {view.planned} samples are stored"
        yield _case(group, "the run is finished", ("error", "unfinished", message))
    if view.release.blockers:
        failed = ("failure", "review", "; ".join(view.release.blockers))
        yield _case(group, "required reviews", failed)
    for gate in view.gates:
        message = f"{gate.gate} fails: the value is {exact(gate.value)}"
        yield _case(group, gate.gate, None if gate.passed else ("failure", "gate", message))


def _sample(suite: str, record: SampleRecord, *, several: bool) -> ET.Element:
    result, row = record.result, record.row
    name = f"{row.sample_id} (repeat {row.repeat})" if several else row.sample_id
    seconds = (result.metrics.get("latency_e2e_ms") or 0.0) / 1000
    failed = _failed(result)
    body = "" if failed is None else cut(reasoning(record), _LONGEST_BODY)
    case = _case(f"{suite}.samples", name, failed, body, seconds)
    if result.needs_review and result.review_reasons:
        output = f"needs review: {', '.join(result.review_reasons)}"
        ET.SubElement(case, "system-out").text = _writable(output)
    return case


def _failed(result: SampleResult) -> tuple[str, str, str] | None:
    """Return the JUnit element for a sample that didn't pass, its type, and why."""
    message = why_failed(result)
    if message is None:
        return None
    if result.evaluator_error is not None:
        return "error", result.evaluator_error, message
    if result.target_error is not None:
        return "failure", "target_error", message
    return "failure", "pass_rule" if unmet(result) else "unmeasured", message


def _case(
    group: str,
    name: str,
    failed: tuple[str, str, str] | None,
    body: str = "",
    seconds: float = 0.0,
) -> ET.Element:
    attributes = {"classname": _writable(group), "name": _writable(name), "time": f"{seconds:.3f}"}
    case = ET.Element("testcase", attributes)
    if failed is not None:
        tag, kind, message = failed
        made = ET.SubElement(case, tag, message=_writable(message), type=_writable(kind))
        made.text = _writable(body)
    return case


def _attribute(value: str) -> str:
    return quoteattr(_writable(value))


def _writable(value: str) -> str:
    # XML 1.0 has no way to write most control characters, not even as a reference.
    return visible(value, kept="\n\t")


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
    """Return the report format for a file's extension."""
    ending = PurePath(name).suffix.lower()
    if ending not in _ENDINGS:
        problem = f"`{ending}` isn't a report format" if ending else "the name has no ending"
        hint = "end it with .html, .md, .json or .junit.xml"
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

    ``more`` may have ``calibration`` (a `CalibrationStatus`), ``people`` (a `ReviewAgreement`) and
    ``baseline`` (a `RunDiff`). HTML shows all three, Markdown only ``people``; JSON has all of
    ``more``.
    """
    _FORMATS[form](file, view, store, more)


def _html(file: BinaryIO, view: RunView, store: Store, more: Mapping[str, object]) -> None:
    # Slow to import, so imported only when needed.
    from jurybox.reporting.html.html_render import html_report

    file.write(html_report(view, gather(store, view), store, more).encode())


def _markdown(file: BinaryIO, view: RunView, store: Store, more: Mapping[str, object]) -> None:
    people = cast("ReviewAgreement | None", more.get("people"))
    lines = () if people is None else people.lines
    file.write(markdown_report(view, gather(store, view), lines).encode())


def _json(file: BinaryIO, view: RunView, store: Store, more: Mapping[str, object]) -> None:
    # People look at a few samples; a program may want many, but memory must stay bounded.
    attention = Attention(
        concerns=every_concern(store, view, 1000), worst=worst_samples(store, view, 10)
    )
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
