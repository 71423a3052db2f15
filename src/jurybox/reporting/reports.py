"""Renders a run as a Markdown, JUnit or JSON report."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, cast

import msgspec

from jurybox.documents.numbers import exact
from jurybox.engine.records import read_result
from jurybox.errors import InputError
from jurybox.reporting.attention import (
    Attention,
    every_concern,
    gather,
    quality_level,
    worst_samples,
)
from jurybox.reporting.metric_text import causes_of, key_metric, metrics_of
from jurybox.reporting.reasons import reasoning, why_failed
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.run_verdict import verdict_of
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


def markdown_report(
    view: RunView, attention: Attention, people: ReviewAgreement | None = None
) -> str:
    """Return the report on a run, with the judges' agreement with people."""
    rubric = view.rubric
    causes = list(causes_of(view.summary))
    passing = ("pass_rate",) if rubric.pass_rules else ()
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    text = _template().render(
        view=view,
        verdict=verdict_of(view, people),
        rubric=rubric,
        attention=attention,
        causes=causes,
        calm=not (view.notes or attention.concerns or causes) and all(g.passed for g in view.gates),
        metrics=metrics_of(view.summary, rubric),
        columns=(SAMPLES, key_metric(rubric), *passing, *means),
        level=quality_level(view, people),
        people=() if people is None else people.lines,
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

    made = environment()
    filters = cast("dict[str, Any]", made.filters)
    filters |= {"plain": written, "code": as_code}
    return made.get_template("report.md")


_LONGEST_BODY: Final = 2000


def write_junit(file: BinaryIO, view: RunView, store: Store) -> None:
    """Write a run as JUnit XML, sample by sample.

    A sample is a failure if a pass rule fails or could not be measured, or if the target gave no
    response; it is an error if no judge gave a valid vote.
    """
    from jurybox.reporting.html.html_render import own_template

    gates = list(_gate_cases(view))
    with reading(view.row):
        # The counts come first in the file, so the results are read twice.
        results = (read_result(row.result) for row in store.samples(view.run_id))
        samples = _counted((_seconds(each), _failed(each)) for each in results)
        counts = _counted((0.0, failed) for _, failed in gates)
        pieces = own_template("report.junit.xml").stream(
            view=view,
            gates=gates,
            counts={"gates": counts, "samples": samples, "all": counts + samples},
            properties={name: value for name, value in _properties(view).items() if value},
            samples=_sample_cases(view, store),
        )
        pieces.enable_buffering(_PIECES)
        pieces.dump(file, encoding="utf-8")


_PIECES: Final = 500
Failed = tuple[str, str, str]
"""The JUnit element for a case that didn't pass, its type, and why."""


def _counted(cases: Iterable[tuple[float, Failed | None]]) -> Counter[str]:
    """Count test cases, their milliseconds, failures and errors."""
    counts = Counter[str]()
    for seconds, failed in cases:
        counts.update(tests=1, ms=round(1000 * seconds))
        counts.update([] if failed is None else [failed[0]])
    return counts


def _properties(view: RunView) -> dict[str, str | None]:
    rubric = view.metadata.get("rubric", {})
    return {
        "run_id": view.run_id,
        "status": view.status,
        "rubric": f"{rubric.get('id')} {rubric.get('version')} {rubric.get('sha256')}",
        "digest": view.digest,
        "decision": view.conclusion.decision,
        **{f"note {place}": note for place, note in enumerate(view.notes, start=1)},
    }


def _gate_cases(view: RunView) -> Iterator[tuple[str, Failed | None]]:
    if view.status != "finished":
        # An unfinished run must not look like a passed one.
        message = f"{view.summary['samples']} of {view.planned} samples are stored"
        yield "the run is finished", ("error", "unfinished", message)
    if view.release.blockers:
        yield "required reviews", ("failure", "review", "; ".join(view.release.blockers))
    for gate in view.gates:
        message = f"{gate.gate} fails: the value is {exact(gate.value)}"
        yield gate.gate, None if gate.passed else ("failure", "gate", message)


def _sample_cases(view: RunView, store: Store) -> Iterator[dict[str, Any]]:
    several = view.metadata.get("repeats", 1) != 1
    for record in map(SampleRecord, store.samples(view.run_id)):
        result, failed = record.result, _failed(record.result)
        yield {
            "name": f"{record.id} (repeat {record.repeat})" if several else record.id,
            "seconds": _seconds(result),
            "failed": failed,
            "body": "" if failed is None else cut(reasoning(record), _LONGEST_BODY),
            "reasons": result.review_reasons if result.needs_review else (),
        }


def _seconds(result: SampleResult) -> float:
    return (result.metrics.get("latency_e2e_ms") or 0.0) / 1000


def _failed(result: SampleResult) -> Failed | None:
    """Return why a sample didn't pass."""
    message = why_failed(result)
    if message is None:
        return None
    if result.evaluator_error is not None:
        return "error", result.evaluator_error, message
    if result.target_error is not None:
        return "failure", "target_error", message
    return "failure", "pass_rule" if unmet(result) else "unmeasured", message


ReportFormat = Literal["html", "md", "json", "junit"]

_ENDINGS: Final[dict[str, ReportFormat]] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".json": "json",
    ".xml": "junit",
}


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
    more: Mapping[str, object] = {},
) -> int:
    """Write the report on a run, and return how many samples it is about, or in HTML contains.

    ``more`` may have ``calibration`` (a `CalibrationStatus`), ``people`` (a `ReviewAgreement`) and
    ``baseline`` (a `RunDiff`). HTML shows all three, Markdown only ``people``; JSON has all of
    ``more``.
    """
    count: int = view.summary[SAMPLES]
    match form:
        case "html":
            # Slow to import, so imported only when needed.
            from jurybox.reporting.html.html_render import html_report

            text, count = html_report(view, gather(store, view), store, more)
        case "md":
            people = cast("ReviewAgreement | None", more.get("people"))
            text = markdown_report(view, gather(store, view), people)
        case "json":
            # A program may want many samples, but memory must stay bounded.
            found = Attention(
                concerns=every_concern(store, view, 1000), worst=worst_samples(store, view, 10)
            )
            data = {**view.as_data(), **found.as_data(), **more}
            text = visible_json(msgspec.json.format(msgspec.json.encode(data).decode())) + "\n"
        case "junit":
            write_junit(file, view, store)
            return count
    file.write(text.encode())
    return count
