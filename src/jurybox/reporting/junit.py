"""A run as JUnit XML: its gates and its samples are test cases."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import IO, BinaryIO, Final
from xml.etree import ElementTree as ET
from xml.sax.saxutils import quoteattr

from jurybox.documents.numbers import exact
from jurybox.reporting.reasons import reasoning, why_failed
from jurybox.reporting.stored import SampleRecord, reading
from jurybox.reporting.view import RunView
from jurybox.scoring.sample_index import unmet
from jurybox.scoring.sample_result import SampleResult
from jurybox.storage.store import Store
from jurybox.text_format import cut, visible

_LONGEST_BODY: Final = 2000


def write_junit(file: BinaryIO, view: RunView, store: Store) -> None:
    """Write a run as JUnit XML, sample by sample.

    A sample has failed where a pass rule fails or could not be measured, or the target gave no
    response; it is in error where no judge gave a valid vote.
    """
    several = view.metadata.get("repeats", 1) != 1
    records = map(SampleRecord, store.samples(view.run_id))
    samples = (_sample(view.suite, each, several=several) for each in records)
    # The counts come first, so the cases are kept aside until they are counted.
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
    if view.release.held:
        failed = ("failure", "review", "; ".join(view.release.held))
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
    """Return the element of a sample that didn't pass, its type, and why."""
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
