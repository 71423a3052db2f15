"""A run as JUnit XML: its gates and its samples are test cases."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final
from xml.sax.saxutils import escape, quoteattr

from jurybox.documents.numbers import exact
from jurybox.engine.records import RunRow, read_result
from jurybox.reporting.reasons import reasoning, why_failed
from jurybox.reporting.stored import SampleRecord, reading
from jurybox.reporting.view import RunView
from jurybox.scoring.sample_index import unmet
from jurybox.scoring.sample_result import SampleResult
from jurybox.storage.store import Store
from jurybox.text_format import cut, visible

_LONGEST_BODY: Final = 2000


Failed = tuple[str, str, str]
"""The element of a failed case (``failure`` or ``error``), its type, and a message."""


class _SuiteCounts:
    def __init__(self, cases: Iterable[tuple[Failed | None, float]]) -> None:
        self.tests, self.seconds = 0, 0.0
        self.by_element = Counter({"failure": 0, "error": 0})
        for failed, seconds in cases:
            self.tests += 1
            self.seconds += seconds
            if failed is not None:
                self.by_element[failed[0]] += 1

    def __str__(self) -> str:
        return (
            f'tests="{self.tests}" failures="{self.by_element["failure"]}"'
            f' errors="{self.by_element["error"]}" time="{self.seconds:.3f}"'
        )

    def __add__(self, other: "_SuiteCounts") -> "_SuiteCounts":
        both = _SuiteCounts(())
        both.tests, both.seconds = self.tests + other.tests, self.seconds + other.seconds
        both.by_element = self.by_element + other.by_element
        return both


def write_junit(file: BinaryIO, view: RunView, run: RunRow, store: Store) -> None:
    """Write a run as JUnit XML, sample by sample.

    A sample has failed where a pass rule fails or could not be measured, or the target gave no
    response; it is in error where no judge gave a valid vote.
    """
    with reading(run):
        file.writelines(line.encode() + b"\n" for line in _document(view, run, store))


def _document(view: RunView, run: RunRow, store: Store) -> Iterator[str]:
    gates = list(_gates(view))
    # The counts come first, so all samples are read twice; those stored in between are left out.
    seen = bytearray(view.planned)

    def counted() -> Iterator[tuple[Failed | None, float]]:
        for number, _, _, text in store.results(run.id):
            if number < len(seen):
                seen[number] = 1
                result = read_result(text)
                yield _failure(result), _seconds(result)

    of_gates = _SuiteCounts((failed, 0.0) for _, failed in gates)
    of_samples = _SuiteCounts(counted())
    name = _attribute(view.suite)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites name={name} {of_gates + of_samples}>"
    stamp = _attribute(view.created_at)
    yield f'<testsuite name="gates" {of_gates} timestamp={stamp}>'
    yield from _properties(view)
    for title, failure in gates:
        yield from _case(f"{view.suite}.gates", title, failure)
    yield "</testsuite>"
    yield f'<testsuite name="samples" {of_samples} timestamp={stamp}>'
    several = view.metadata.get("repeats", 1) != 1
    for sample in store.samples(run.id):
        if sample.number < len(seen) and seen[sample.number]:
            yield from _sample(view.suite, SampleRecord(sample), several=several)
    yield "</testsuite>"
    yield "</testsuites>"


def _properties(view: RunView) -> Iterator[str]:
    rubric = view.metadata.get("rubric", {})
    known = {
        "run_id": view.run_id,
        "status": view.status,
        "rubric": f"{rubric.get('id')} {rubric.get('version')} {rubric.get('sha256')}",
        "digest": view.digest,
        "decision": view.conclusion.decision,
        **{f"note {place}": note for place, note in enumerate(view.notes, start=1)},
    }
    yield "<properties>"
    for name, value in known.items():
        if value is not None:
            yield f"<property name={_attribute(name)} value={_attribute(value)}/>"
    yield "</properties>"


def _gates(view: RunView) -> Iterator[tuple[str, Failed | None]]:
    if view.status != "finished":
        # An unfinished run must not look like a passed one.
        message = f"{view.summary['samples']} of {view.planned} samples are stored"
        yield "the run is finished", ("error", "unfinished", message)
    if view.release.held:
        message = "; ".join(view.release.held)
        yield "required reviews", ("failure", "review", message)
    for gate in view.gates:
        message = f"{gate.gate} fails: the value is {exact(gate.value)}"
        yield gate.gate, None if gate.passed else ("failure", "gate", message)


def _failure(result: SampleResult) -> Failed | None:
    message = why_failed(result)
    if message is None:
        return None
    if result.evaluator_error is not None:
        return ("error", result.evaluator_error, message)
    if result.target_error is not None:
        return ("failure", "target_error", message)
    kind = "pass_rule" if unmet(result) else "unmeasured"
    return ("failure", kind, message)


def _seconds(result: SampleResult) -> float:
    return (result.metrics.get("latency_e2e_ms") or 0.0) / 1000


def _sample(suite: str, record: SampleRecord, *, several: bool) -> Iterator[str]:
    result, row = record.result, record.row
    name = f"{row.sample_id} (repeat {row.repeat})" if several else row.sample_id
    failure = _failure(result)
    body = "" if failure is None else cut(reasoning(record), _LONGEST_BODY)
    review = ", ".join(result.review_reasons) if result.needs_review else ""
    output = f"needs review: {review}" if review else ""
    yield from _case(
        f"{suite}.samples", name, failure, body=body, output=output, seconds=_seconds(result)
    )


def _case(
    group: str,
    name: str,
    failure: Failed | None,
    *,
    body: str = "",
    output: str = "",
    seconds: float = 0.0,
) -> Iterator[str]:
    head = f'testcase classname={_attribute(group)} name={_attribute(name)} time="{seconds:.3f}"'
    if failure is None and not output:
        yield f"<{head}/>"
        return
    yield f"<{head}>"
    if failure is not None:
        tag, kind, message = failure
        attributes = f"message={_attribute(message)} type={_attribute(kind)}"
        yield f"<{tag} {attributes}>{_text(body)}</{tag}>"
    if output:
        yield f"<system-out>{_text(output)}</system-out>"
    yield "</testcase>"


def _attribute(value: str) -> str:
    return quoteattr(_writable(value))


def _text(value: str) -> str:
    return escape(_writable(value))


def _writable(value: str) -> str:
    # XML 1.0 has no way to write most control characters, not even as a reference.
    return visible(value, kept="\n\t")
