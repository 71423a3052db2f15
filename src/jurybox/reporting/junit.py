"""A run as JUnit XML: its gates and its samples are test cases."""

import re
from collections.abc import Iterator
from typing import BinaryIO, Final
from xml.sax.saxutils import escape, quoteattr

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, SampleRow, read_result
from jurybox.reporting.metric_text import exact
from jurybox.reporting.reasons import cut, in_words, reasoning, unmeasured
from jurybox.reporting.stored import damaged
from jurybox.reporting.view import RunView
from jurybox.scoring.review_reasons import unmet
from jurybox.scoring.sample_result import SampleResult

# XML 1.0 has no way to write these, not even as a reference.
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST_BODY: Final = 2000


class _Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a test case says: an element's name, what kind of it, and why."""

    tag: str
    kind: str
    message: str


_COUNTED: Final = {"failure": "failures", "error": "errors"}


class _Counts:
    def __init__(self) -> None:
        self.tests = 0
        self.by_tag = dict.fromkeys(_COUNTED, 0)
        self.seconds = 0.0

    def add(self, verdict: _Verdict | None, seconds: float = 0.0) -> None:
        self.tests += 1
        self.seconds += seconds
        if verdict is not None:
            self.by_tag[verdict.tag] += 1

    def attributes(self) -> str:
        counts = " ".join(f'{name}="{self.by_tag[tag]}"' for tag, name in _COUNTED.items())
        return f'tests="{self.tests}" {counts} time="{self.seconds:.3f}"'

    def __add__(self, other: "_Counts") -> "_Counts":
        both = _Counts()
        both.tests = self.tests + other.tests
        both.by_tag = {tag: self.by_tag[tag] + other.by_tag[tag] for tag in _COUNTED}
        both.seconds = self.seconds + other.seconds
        return both


def write_junit(file: BinaryIO, view: RunView, run: RunRow, store: Store) -> None:
    """Write a run as JUnit XML, sample by sample.

    A sample has failed where a pass rule fails, or is about something that nobody measured,
    or the system under test gave no response; it is in error where no judge gave a valid vote.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    try:
        file.writelines(line.encode() + b"\n" for line in _document(view, run, store))
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None


def _document(view: RunView, run: RunRow, store: Store) -> Iterator[str]:
    of_gates, of_samples = _Counts(), _Counts()
    gates = list(_gates(view))
    for _, verdict in gates:
        of_gates.add(verdict)
    # The counts come first, so all is looked through twice; what a run that goes on has stored
    # meanwhile is left out.
    seen = bytearray(view.planned)
    for number, _, _, text in store.results(run.id):
        if number < len(seen):
            seen[number] = 1
            result = read_result(text)
            of_samples.add(_verdict(result), _seconds(result))
    name = _attribute(view.suite)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites name={name} {(of_gates + of_samples).attributes()}>"
    stamp = _attribute(view.created_at)
    yield f'<testsuite name="gates" {of_gates.attributes()} timestamp={stamp}>'
    yield from _properties(view)
    for title, verdict in gates:
        yield from _case(f"{view.suite}.gates", title, verdict)
    yield "</testsuite>"
    yield f'<testsuite name="samples" {of_samples.attributes()} timestamp={stamp}>'
    several = view.metadata.get("repeats", 1) != 1
    for sample in store.samples(run.id):
        if sample.number < len(seen) and seen[sample.number]:
            yield from _sample(view.suite, sample, several=several)
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


def _gates(view: RunView) -> Iterator[tuple[str, _Verdict | None]]:
    if view.status != "finished":
        # A run that isn't finished must not look like one that went well.
        message = f"{view.summary['samples']} of {view.planned} samples are there"
        yield "the run is finished", _Verdict(tag="error", kind="unfinished", message=message)
    for gate in view.gates:
        message = f"{gate.gate} fails: the value is {exact(gate.value)}"
        failure = _Verdict(tag="failure", kind="gate", message=message)
        yield gate.gate, None if gate.passed else failure


def _verdict(result: SampleResult) -> _Verdict | None:
    if result.evaluator_error is not None:
        message = f"no judge gave a valid vote ({result.evaluator_error})"
        return _Verdict(tag="error", kind=result.evaluator_error, message=message)
    if result.target_error is not None:
        message = f"the system under test gave no response: {result.target_error}"
        return _Verdict(tag="failure", kind="target_error", message=message)
    if result.passed is False:
        broken, missing = unmet(result), unmeasured(result)
        parts = [f"fails: {in_words(broken)}"] if broken else []
        parts += [f"not measured: {', '.join(rule.rule for rule in missing)}"] if missing else []
        kind = "pass_rule" if broken else "unmeasured"
        return _Verdict(tag="failure", kind=kind, message="; ".join(parts))
    return None


def _seconds(result: SampleResult) -> float:
    return (result.figures.get("latency_e2e_ms") or 0.0) / 1000


def _sample(suite: str, sample: SampleRow, *, several: bool) -> Iterator[str]:
    result = read_result(sample.result)
    name = f"{sample.sample_id} (repeat {sample.repeat})" if several else sample.sample_id
    verdict = _verdict(result)
    body = "" if verdict is None else cut(reasoning(sample), _LONGEST_BODY)
    review = ", ".join(result.review_reasons) if result.needs_review else ""
    said = f"needs review: {review}" if review else ""
    yield from _case(
        f"{suite}.samples", name, verdict, body=body, said=said, seconds=_seconds(result)
    )


def _case(
    group: str,
    name: str,
    verdict: _Verdict | None,
    *,
    body: str = "",
    said: str = "",
    seconds: float = 0.0,
) -> Iterator[str]:
    head = f'testcase classname={_attribute(group)} name={_attribute(name)} time="{seconds:.3f}"'
    if verdict is None and not said:
        yield f"<{head}/>"
        return
    yield f"<{head}>"
    if verdict is not None:
        kind = f" type={_attribute(verdict.kind)}"
        yield (
            f"<{verdict.tag} message={_attribute(verdict.message)}{kind}>"
            f"{_text(body)}</{verdict.tag}>"
        )
    if said:
        yield f"<system-out>{_text(said)}</system-out>"
    yield "</testcase>"


def _attribute(value: str) -> str:
    return quoteattr(_writable(value))


def _text(value: str) -> str:
    return escape(_writable(value))


def _writable(value: str) -> str:
    return _FORBIDDEN.sub("\ufffd", value)
