"""Writing small datasets and reading them back."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from jurybox.datasets import Dataset, DatasetError, open_dataset, survey
from jurybox.sample import Row

JSONL = "rows.jsonl"
CSV = "rows.csv"


def jsonl(*rows: Mapping[str, object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def dataset(content: str | bytes, name: str = JSONL) -> Dataset:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_dataset(Path(name))


def read(content: str | bytes, name: str = JSONL, *, needs_response: bool = False) -> list[Row]:
    """The rows of a dataset that has no fault, neither for a survey nor for a run."""
    opened = dataset(content, name)
    found = survey(opened, needs_response=needs_response)
    rows = [row for _, row in opened.rows(needs_response=needs_response, expected=found)]
    assert len(rows) == found.rows
    return rows


def refusal(
    content: str | bytes, name: str = JSONL, *, needs_response: bool = False
) -> DatasetError:
    opened = dataset(content, name)
    with pytest.raises(DatasetError) as caught:
        survey(opened, needs_response=needs_response)
    return caught.value


def findings(content: str | bytes, name: str = JSONL, *, needs_response: bool = False) -> list[str]:
    """Every finding as `line:column code`."""
    error = refusal(content, name, needs_response=needs_response)
    return [f"{each.line}:{each.column} {each.code}" for each in error.findings]


def only_finding(content: str | bytes, name: str = JSONL, *, needs_response: bool = False) -> str:
    (finding,) = refusal(content, name, needs_response=needs_response).findings
    return str(finding)


def warnings(content: str | bytes, name: str = JSONL, *, needs_response: bool = False) -> list[str]:
    return list(survey(dataset(content, name), needs_response=needs_response).warnings)
