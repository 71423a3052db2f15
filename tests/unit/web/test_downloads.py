"""The files that pages offer: the same rows and report as the commands write."""

import csv
import io
import json
from contextlib import closing

import msgspec
import pytest

from jurybox.engine.records import SampleRow
from jurybox.reporting.export_rows import exported_rows
from pages_client import PagesClient
from stored_runs import Made, MakeRun, answered
from verdicts import scored

RUBRIC = """---
id: answers
version: 1.2.0
scale: 1-5
votes: 1
pass: ["accuracy >= 3"]
---
# Answers

## Criteria
### Accuracy
"""


@pytest.fixture
def made(make_run: MakeRun) -> Made:
    def judge(prompt: str) -> str:
        return scored({"accuracy": 2 if "Task s3" in prompt else 1 if "Task s5" in prompt else 4})

    return make_run([answered(f"s{n}", f"answer {n}") for n in range(7)], judge, rubric=RUBRIC)


def test_the_samples_on_a_page_are_downloaded_as_export_writes_them_in_the_pages_order(
    made: Made, pages: PagesClient
) -> None:
    listed = pages.get("/runs/run-a/samples?flag=failed").text
    assert 'download these 2 as <a href="/runs/run-a/samples.jsonl?flag=failed">JSON' in listed
    sent = pages.get("/runs/run-a/samples.jsonl?flag=failed")
    assert sent.headers["content-disposition"] == 'attachment; filename="run-a.jsonl"'
    rows = [json.loads(line) for line in sent.text.splitlines()]
    with closing(exported_rows(made.store, made.row)) as every:
        written = {each["id"]: json.loads(msgspec.json.encode(each)) for each in every}
    assert rows == [written["s5"], written["s3"]]

    sent = pages.get("/runs/run-a/samples.csv?search=ANSWER+4").text
    assert [each["id"] for each in csv.DictReader(io.StringIO(sent))] == ["s4"]
    assert len(pages.get("/runs/run-a/samples.jsonl").text.splitlines()) == 7
    assert pages.get("/runs/run-a/samples.parquet").status_code == 404
    assert pages.get("/runs/run-a/samples.csv?flag=none").status_code == 400


def test_a_sample_that_cannot_be_read_is_an_error_and_not_a_shorter_file(
    made: Made, pages: PagesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = made.store.sample

    def damaged(run_id: str, number: int) -> SampleRow | None:
        return None if number == 3 else read(run_id, number)

    monkeypatch.setattr(made.store, "sample", damaged)
    assert pages.get("/runs/run-a/samples.jsonl").status_code == 503


@pytest.mark.usefixtures("made")
def test_the_report_on_a_run_is_downloaded(pages: PagesClient) -> None:
    assert '<a href="/runs/run-a/report.html">' in pages.get("/runs/run-a").text
    sent = pages.get("/runs/run-a/report.html")
    assert sent.headers["content-disposition"] == 'attachment; filename="run-a.html"'
    assert int(sent.headers["content-length"]) == len(sent.content)
    assert sent.text.startswith("<!DOCTYPE html>")
    assert "data-samples>" in sent.text
