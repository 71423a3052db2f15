"""JSONL: one JSON object a line."""

from collections.abc import Iterator
from typing import cast

from jurybox.datasets import json_text
from jurybox.datasets.row_reader import Record, Warn
from jurybox.datasets.source import Source
from jurybox.datasets.values import kind_of
from jurybox.documents.findings import Findings, Place


def read_json_lines(source: Source, findings: Findings, _: Warn) -> Iterator[tuple[int, Record]]:
    """Yield every object with the number of its line."""
    first = True
    decode = json_text.decode
    for number, line in source.lines(findings):
        try:
            value = decode(line)
        except json_text.Fault as fault:
            if not line.strip():
                continue
            if first and line.lstrip().startswith(b"["):
                _note_array(findings, number)
                return
            place = Place(number, fault.column)
            findings.add(place, fault.code, fault.problem, fault.mend)
            value = None
        else:
            if type(value) is dict:
                yield number, cast("Record", value)
            elif first and type(value) is list:
                _note_array(findings, number)
                return
            else:
                problem = f"the line is {kind_of(value)}, not an object"
                findings.add(Place(number), "wrong-type", problem, 'write `{"task": "..."}`')
        first = False


def _note_array(findings: Findings, number: int) -> None:
    """Note once what would else be a finding on every line."""
    problem = "the file is a JSON list"
    mend = "write each of its objects on a line of its own, without commas between them"
    findings.add(Place(number), "wrong-type", problem, mend)
