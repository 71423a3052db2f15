"""The files that pages offer: the same rows and report as the commands write."""

import csv
import io
import json
from contextlib import closing
from urllib.parse import unquote

import msgspec
import pytest

from jurybox.app.review_desk import ReviewDesk
from jurybox.engine.records import SampleRow
from jurybox.reporting.compare_runs import CompareOptions, compare_runs
from jurybox.reporting.export_rows import exported_rows
from jurybox.reporting.html.html_render import comparison_html, side_by_side_html
from jurybox.reporting.run_verdict import verdict_of
from jurybox.reporting.side_by_side import side_by_side
from jurybox.reporting.view import finished_view
from jurybox.review.reviews import Circumstances
from jurybox.sample import Response, Row
from pages_client import PagesClient
from stored_runs import Made, MakeRun, answered
from verdicts import preferred, scored

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
    assert sent.headers["content-disposition"].endswith("''run-a-failed-2.jsonl")
    rows = [json.loads(line) for line in sent.text.splitlines()]
    with closing(exported_rows(made.store, made.row)) as every:
        written = {each["id"]: json.loads(msgspec.json.encode(each)) for each in every}
    assert rows == [written["s5"], written["s3"]]

    sent = pages.get("/runs/run-a/samples.csv?search=ANSWER+4").text
    assert [each["id"] for each in csv.DictReader(io.StringIO(sent))] == ["s4"]
    sent = pages.get("/runs/run-a/samples.csv?flag=failed").text
    said = [(one["failed_rules"], one["reason"]) for one in csv.DictReader(io.StringIO(sent))]
    rule = "Accuracy at least 3"
    assert said == [(rule, "Accuracy 1: So it is."), (rule, "Accuracy 2: So it is.")]
    assert all(f'<bdi class="bad" title="fails: {failed}">' in listed for failed, _ in said)
    assert all(f'<bdi title="{why}">' in listed for _, why in said)
    assert len(pages.get("/runs/run-a/samples.jsonl").text.splitlines()) == 7
    assert pages.get("/runs/run-a/samples.parquet").status_code == 404
    assert pages.get("/runs/run-a/samples.csv?flag=none").status_code == 400


def test_a_file_counts_outcomes_and_samples_to_review_as_the_page_does(
    make_run: MakeRun, pages: PagesClient
) -> None:
    def judge(prompt: str) -> str:
        if "Task s2" in prompt:
            return "no verdict"
        concerns = ["a danger"] if "Task s4" in prompt or "Task s5" in prompt else []
        return scored({"accuracy": 2 if "Task s1" in prompt else 4}, concerns=concerns)

    lost = Row(id="s3", task="Task s3", response=Response(text="", error="HTTP 500"))
    rows = [lost if n == 3 else answered(f"s{n}", f"answer {n}") for n in range(6)]
    made = make_run(rows, judge, rubric=RUBRIC, suite="dé/mo", name="Wärme: neu?")
    given = {"scores": {"accuracy": 4}, "safety_concern": False}
    ReviewDesk(made.store, made.row).submit(4, "Anna", given, shown=Circumstances())

    sent = pages.get("/runs/run-a/samples.csv?sort=number")
    assert unquote(sent.headers["content-disposition"]).endswith("''Wärme-neu-6.csv")
    found = [*csv.DictReader(io.StringIO(sent.text))]
    outcomes = ["passed", "failed", "not scored", "no response", "passed", "passed"]
    assert [each["outcome"] for each in found] == outcomes
    assert [each["passed"] for each in found] == ["true", *["false"] * 3, "true", "true"]
    assert [each["reviewed"] for each in found] == [*["false"] * 4, "true", "false"]
    still = sum(each["needs_review"] == "true" != each["reviewed"] for each in found)
    listed = pages.get("/runs/run-a/samples").text
    assert f">to review <small>{still}</small>" in listed
    sent = pages.get("/runs/run-a/samples.csv?review=open&flag=unscored&search=s2")
    name = unquote(sent.headers["content-disposition"])
    assert name.endswith("''Wärme-neu-not-scored-to-review-s2-1.csv")


def test_rows_have_what_people_scored(made: Made, pages: PagesClient) -> None:
    desk = ReviewDesk(made.store, made.row)
    for name, score, blind in (("Anna", 4, True), ("Ben", 1, True), ("Carl", 1, False)):
        given = {"scores": {"accuracy": score}, "safety_concern": False}
        desk.submit(4, name, given, f"by {name}", shown=Circumstances(blind=blind))
    rows = pages.get("/runs/run-a/samples.csv?sort=number").text
    first, *_, one, _, _ = csv.DictReader(io.StringIO(rows))
    assert (first["people.accuracy"], first["reviews"]) == ("", "[]")
    assert (one["id"], one["accuracy"], one["people.accuracy"]) == ("s4", "4", "2.5")
    reviews = json.loads(one["reviews"])
    assert [(each["reviewer"], each["comment"], each["blind"]) for each in reviews] == [
        *(("Anna", "by Anna", True), ("Ben", "by Ben", True), ("Carl", "by Carl", False))
    ]
    assert reviews[1]["scores"] == {"accuracy": 1}
    assert one["comments"] == "Anna: by Anna\nBen: by Ben\nCarl: by Carl"
    given = pages.get("/api/runs/run-a/samples/4").json()
    assert given["people.accuracy"] == 2.5
    assert given["reviews"] == reviews


def test_rows_of_pairs_have_the_preferred_response_of_judges_and_people(
    make_run: MakeRun, pages: PagesClient
) -> None:
    def judge(prompt: str) -> str:
        swapped = prompt.index("old") < prompt.index("new")
        return preferred("B" if swapped else "A", ["accuracy"])

    row = msgspec.structs.replace(answered("s0", "new"), response_b=Response(text="old"))
    made = make_run([row], judge, rubric=RUBRIC.replace('pass: ["accuracy >= 3"]\n', ""))
    given = {"winner": "A", "safety_concern": False}  # of those shown, which is B in the run
    ReviewDesk(made.store, made.row).submit(0, "Anna", given, shown=Circumstances(order="BA"))

    (one,) = map(json.loads, pages.get("/runs/run-a/samples.jsonl").text.splitlines())
    assert (one["winner"], one["preference.accuracy"], one["people.winner"]) == ("A", "A", "B")
    assert one["reviews"][0]["winner"] == "B"
    assert (one["accuracy"], one["people.accuracy"]) == (None, None)
    (cells,) = csv.DictReader(io.StringIO(pages.get("/runs/run-a/samples.csv").text))
    assert (cells["winner"], cells["preference.accuracy"], cells["people.winner"]) == (
        "A",
        "A",
        "B",
    )
    assert not {"accuracy", "people.accuracy", "reference", "rules"} & {*cells}


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
    assert sent.headers["content-disposition"] == "attachment; filename*=UTF-8''run-a-report.html"
    assert int(sent.headers["content-length"]) == len(sent.content)
    assert sent.text.startswith("<!DOCTYPE html>")
    assert "data-samples>" in sent.text


def test_compared_runs_are_downloaded_as_diff_writes_them(
    make_run: MakeRun, pages: PagesClient
) -> None:
    made = [
        make_run([answered("s", "Yes.")], run_id=f"run-{name}", rubric=RUBRIC) for name in "abc"
    ]
    store, views = made[0].store, [finished_view(each.row, made[0].store) for each in made]
    options, verdicts = CompareOptions(), [verdict_of(view) for view in views]
    files = {
        "/compare?a=run-a&b=run-b": comparison_html(
            store, compare_runs(store, views[0], views[1], options), verdicts
        )[0],
        "/side-by-side?run=run-a&run=run-b&run=run-c": side_by_side_html(
            side_by_side(store, views, options, most=200), verdicts
        ),
    }
    for path, written in files.items():
        runs = ["run-a", "run-b", "run-c"][: 2 if path.startswith("/compare") else 3]
        address = f"/compare/report.html?{'&'.join(f'run={run}' for run in runs)}"
        assert (
            f'<a href="{address}">Report as a file</a>'.replace("&", "&amp;")
            in pages.get(path).text
        )
        sent = pages.get(address)
        name = f"filename*=UTF-8''{'-'.join(runs)}-compared.html"
        assert sent.headers["content-disposition"] == f"attachment; {name}"
        assert sent.text == written
    assert pages.get("/compare/report.html?run=run-a").status_code == 400
    assert pages.get("/compare/report.html?run=run-a&run=none").status_code == 404
