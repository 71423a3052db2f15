"""Every page over a real store."""

import html
import json
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from importlib.resources import files
from itertools import cycle, pairwise
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from jurybox.app.rescore_run import rescore_run
from jurybox.app.review_desk import ReviewDesk
from jurybox.app.view_run import reviewer_agreement, view_run
from jurybox.engine.records import read_request
from jurybox.judging.flow import Failure
from jurybox.reporting import view
from jurybox.reporting.attention import gather
from jurybox.reporting.compare_runs import compare_runs
from jurybox.reporting.html.html_render import comparison_html, html_report, packed_samples
from jurybox.reporting.html.page import Extras, run_page
from jurybox.reporting.run_verdict import verdict_of
from jurybox.reporting.view import finished_view, listed_run
from jurybox.review.reviews import HumanVerdict
from jurybox.sample import Response, Turn
from jurybox.storage.sample_search import SamplePage, SampleQuery
from jurybox.web import template_engine
from jurybox.web.app_state import AppState, Pending
from jurybox.web.pages import samples_page
from pages_client import PagesClient
from stored_runs import Made, MakeRun, answered
from verdicts import preferred, scored

WHY = {"accuracy": "Right.", "clarity": "Muddled."}
RUBRIC = """---
id: answers
version: 1.2.0
scale: 1-5
votes: 1
pass: ["accuracy >= 3"]
gates: ["accuracy_mean >= 3"]
---
# Answers
Read *closely*.

## Criteria
### Accuracy
### Clarity
"""


def judge(prompt: str) -> str | Failure:
    return scored({"accuracy": 2 if "Task s3" in prompt else 4, "clarity": 3}, WHY)


@pytest.fixture
def made(make_run: MakeRun) -> Made:
    rows = [
        answered(f"s{n}", f"answer {n}", scenario="odd" if n % 2 else "even", ms=100.0 * n)
        for n in range(7)
    ]
    return make_run(rows, judge, rubric=RUBRIC)


PATHS = (
    "/",
    "/compare",
    "/rubrics",
    "/rubrics/answers",
    "/runs/run-a",
    "/runs/run-a/panels",
    "/runs/run-a/rubric",
    "/runs/run-a/rubric/text",
    "/runs/run-a/samples",
    "/runs/run-a/samples/3",
    "/runs/run-a/samples/3/text/reply-0",
    "/compare?a=run-a&b=run-a",
    "/api/runs",
    "/api/runs/run-a",
    "/api/runs/run-a/progress",
    "/api/runs/run-a/samples",
    "/api/runs/run-a/samples/3",
    "/api/runs/run-a/samples/3/exchanges",
    "/api/runs/run-a/reviews",
    "/api/comparison?a=run-a&b=run-a",
    "/api/rubrics",
    "/api/openapi.json",
    "/api/session",
)


@pytest.mark.usefixtures("made")
def test_every_address_answers(pages: PagesClient, said: list[str]) -> None:
    for path in PATHS:
        answer = pages.get(path)
        assert (path, answer.status_code, said) == (path, 200, [])


@pytest.mark.usefixtures("made")
def test_a_run_page_leads_to_its_samples(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a").text
    assert 'href="/runs/run-a/samples"' in page
    assert 'href="/runs/run-a/samples/3?flag=failed&amp;at=0"' in page
    assert "accuracy_mean &gt;= 3" in page
    assert '<a href="/runs/run-a/samples?metric=accuracy">7</a>' in page
    assert " of 7 samples" in pages.get("/runs/run-a/samples?metric=accuracy").text


def test_a_run_page_names_the_worst_samples_of_a_reason_in_the_order_of_their_list(
    make_run: MakeRun, pages: PagesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(prompt: str) -> str:
        place = next(n for n in range(8) if f"Task s{n}" in prompt)
        return scored({"accuracy": 2 - place % 2, "clarity": 3}, WHY)

    make_run([answered(f"s{n}", f"answer {n}") for n in range(8)], judge, rubric=RUBRIC)
    link = r'/samples/(\d)\?flag=failed&amp;at=(\d)"'
    worst = [("1", "0"), ("3", "1"), ("5", "2"), ("7", "3"), ("0", "4")]
    named = re.findall(link, pages.get("/runs/run-a").text)
    assert named == worst
    assert re.findall(link, pages.get("/runs/run-a/samples?flag=failed").text)[:5] == worst

    # Of a large run, they follow once they are known.
    monkeypatch.setattr("jurybox.web.pages.run_page._MANY", 0)
    assert re.findall(link, pages.get("/runs/run-a").text) == worst
    monkeypatch.setattr("jurybox.web.pages.run_page.soon", lambda *_: Pending())
    late = pages.get("/runs/run-a").text
    assert re.findall(link, late) == []
    assert 'data-version="finished-8-pending"' in late


def test_a_run_page_shows_how_far_the_votes_agree_as_the_report_does(
    make_run: MakeRun, pages: PagesClient
) -> None:
    run = make_run([answered("s1"), answered("s2")], judge, rubric=RUBRIC, votes=3)
    shown = pages.get("/runs/run-a").text
    assert "-pending" not in shown
    for text in (shown, html_report(run.view, gather(run.store, run.view), run.store, {})[0]):
        (table,) = re.findall(r'id="votes-head">By criterion.*?</table>', text, re.DOTALL)
        rows = re.findall(r'<th scope="row"><bdi>(\w+)</bdi></th><td class="number">100.0%', table)
        assert rows == ["Accuracy", "Clarity"]


def opened_by_counts(pages: PagesClient, path: str = "/runs/run-a") -> set[str]:
    """Return the queries of a page's links, after checking each number with its samples."""
    page = pages.get(path).text
    links = re.findall(r'href="/runs/run-a/samples\?([^"]*)">(?:<title>)?([^<]*)<', page)
    counted = {
        html.unescape(query): re.findall(r"\d+(?= of|$| sample)", text) for query, text in links
    }
    for query, numbers in counted.items():
        found = re.findall(r" of (\d+) sample", pages.get(f"/runs/run-a/samples?{query}").text)
        assert not numbers or (query, found) == (query, numbers[:1])
    return {*counted}


def test_every_count_of_a_run_opens_as_many_samples(make_run: MakeRun, pages: PagesClient) -> None:
    asked: list[str] = []

    def jury(prompt: str) -> str | Failure:
        number = int(re.findall(r"Task s(\d+)", prompt)[0])
        asked.append(f"s{number}")
        vote = asked.count(f"s{number}") - 1
        if number in {5, 6} and vote == 0:
            return Failure(kind="server", message="down")
        reply = json.loads(str(judge(prompt)))
        clarity = 3 if number < 3 else 1 + vote // (2 if number < 6 else 1)
        reply["scores"] = {"accuracy": 1 + number % 5, "clarity": clarity}
        return json.dumps(reply)

    rows = [answered(f"s{n}", ms=100.0 * n if n else None) for n in range(9)]
    made = make_run(rows, jury, rubric=RUBRIC, votes=3)
    assert opened_by_counts(pages) > {
        "flag=high_confidence",
        "flag=moderate_confidence",
        "flag=lost_votes",
        "metric=accuracy&low=1.5&below=2.5",
        "flag=failed&metric=accuracy&below=3",
        "metric=agreement.clarity",
        "metric=agreement.clarity&high=0",
    }
    assert made.view.summary["unscored_votes"] == 2
    page = pages.get("/runs/run-a/samples?metric=agreement.clarity&high=0").text
    assert '<option value="agreement.clarity" selected>votes&#39; agreement on Clarity<' in page


@pytest.mark.usefixtures("made")
def test_the_table_shows_how_tasks_begin(pages: PagesClient) -> None:
    assert "<bdi>Task s3</bdi>" in pages.get("/runs/run-a/samples").text


@pytest.mark.usefixtures("made")
def test_samples_are_found_sorted_and_paged_by_the_address(pages: PagesClient) -> None:
    def ids(query: str) -> list[str]:
        text = pages.get(f"/runs/run-a/samples?{query}").text
        return re.findall(r"<bdi>(s\d)</bdi></a>", text)

    worst_first = ["s3", "s0", "s1", "s2", "s4", "s5", "s6"]
    assert ids("") == worst_first
    assert ids("sort=number") == sorted(worst_first)
    assert ids("search=ANSWER+5") == ["s5"]
    assert ids("scenario=odd") == ["s3", "s1", "s5"]
    assert ids("flag=failed") == ["s3"]
    assert ids("metric=accuracy&high=3") == ["s3"]
    assert ids("sort=metric:latency_e2e_ms&descending=true")[:2] == ["s6", "s5"]
    falling = pages.get("/runs/run-a/samples?sort=metric:accuracy&descending=true").text
    assert "7 samples, by Accuracy, highest first · <a" in falling
    assert '<a href="/runs/run-a/samples">show the worst first</a>' in falling
    assert ids("winner=A") == []
    assert ids("page=2") == []
    sent = pages.get("/runs/run-a/samples?search=a%26b&scenario=&metric=&low=&high=").headers
    assert sent["location"] == "./samples?search=a%26b"


@pytest.mark.usefixtures("made")
def test_flags_are_offered_only_where_a_sample_has_them(pages: PagesClient) -> None:
    def facets(query: str) -> list[tuple[str, str]]:
        text = pages.get(f"/runs/run-a/samples?{query}").text
        (part,) = re.findall(r'<nav class="facets".*?</nav>', text, re.DOTALL)
        return re.findall(r">([a-z ]+) <small>(\d+)</small>", part)

    assert facets("") == [("failed", "1"), ("passed", "6")]
    assert facets("flag=failed") == [("failed", "1")]
    assert facets("scenario=even") == [("passed", "4")]


@pytest.mark.usefixtures("made")
def test_only_scenarios_of_matching_samples_are_offered(pages: PagesClient) -> None:
    def offered(query: str) -> list[tuple[str, str]]:
        text = pages.get(f"/runs/run-a/samples?{query}").text
        menu = text.partition('<select id="scenario"')[2].partition("</select>")[0]
        return re.findall(r"<option value=\"(\w+)\"( selected)?>", menu)

    assert offered("") == [("even", ""), ("odd", "")]
    assert offered("flag=failed") == [("odd", "")]
    assert offered("flag=failed&scenario=odd") == [("odd", " selected")]
    assert offered("flag=failed&scenario=even") == [("even", " selected"), ("odd", "")]
    assert offered("scenario=even") == [("even", " selected"), ("odd", "")]
    assert offered("search=answer+2") == [("even", "")]


@pytest.mark.usefixtures("made")
def test_the_searched_words_are_marked_in_the_table(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples?search=ANSWER+5").text
    assert "<mark>answer 5</mark>" in page
    assert ">Clarity 3: Muddled.</bdi>" in page  # the reason for the lowest score


def test_a_long_passage_that_is_searched_is_shown_from_its_beginning(
    make_run: MakeRun, pages: PagesClient
) -> None:
    passage = " ".join(f"word{n}" for n in range(30))
    make_run([answered("s1", f"The {passage}. The end.")], judge, rubric=RUBRIC)
    page = pages.get(f"/runs/run-a/samples?search={passage.replace(' ', '+')}").text
    assert ">The word0 word1 " in page


def test_a_search_finds_what_judges_and_reviewers_say(
    make_run: MakeRun, pages: PagesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = {"accuracy": "Right, in the *main*.", "clarity": "Muddled."}
    make_run(
        [answered("a"), answered("b")],
        lambda prompt: scored({"accuracy": 4, "clarity": 3}, why if "Task a" in prompt else WHY),
        rubric=RUBRIC,
    )
    page = pages.get("/runs/run-a/samples?search=in+the").text
    assert "1 to 1 of 1 sample" in page
    assert "Right, <mark>in the</mark>" in page
    assert pages.get("/api/runs/run-a/samples?search=in+the").json()["total"] == 1
    opened = pages.get("/runs/run-a/samples/0?search=in+the&at=0").text
    assert "1 of 1" in opened
    monkeypatch.setattr(sys.modules["jurybox.web.filters"], "soon", lambda *_: Pending())
    waiting = pages.get("/runs/run-a/samples?search=in+the").text
    assert 'http-equiv="refresh"' in waiting
    assert "<h1>Searching for in the</h1>" in waiting
    assert "1 of 2" in pages.get("/runs/run-a/samples/0?search=in+the&at=0").text


@pytest.mark.usefixtures("made")
def test_a_sample_begins_with_its_outcome(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples/3").text
    assert page.index("<strong>Fails</strong>") < page.index(">Task</h2>")
    assert "<li>Fails: Accuracy is 2 and has to be at least 3</li>" in page
    assert '<a class="quiet" href="#jury"><bdi>Accuracy</bdi> 2</a>' in page
    assert page.count("Muddled.") == page.count("Muddled.", page.index("Requests and replies")) + 1
    assert "Votes on a scale from 1 to 5: 2." in page


def test_the_searched_words_are_marked_on_the_sample_but_not_within_tags_or_entities(
    make_run: MakeRun, pages: PagesClient
) -> None:
    make_run([answered("a", "**Salt** & [sea](https://salt.test/p) salt")], judge, rubric=RUBRIC)
    page = pages.get("/runs/run-a/samples/0?search=salt").text
    assert "<strong><mark>Salt</mark></strong> &amp; sea (https://<mark>salt</mark>." in page
    assert 'href="https://salt' not in page
    assert "<mark>" not in pages.get("/runs/run-a/samples/0?search=amp").text


def test_long_ids_are_cut_in_the_middle(make_run: MakeRun, pages: PagesClient) -> None:
    long = "customer-support/2026/region-emea/an-identifier-without-any-break-"
    make_run([answered(f"{long}{n}") for n in (1, 2)], judge, rubric=RUBRIC)
    page = pages.get("/runs/run-a/samples").text
    for number in (1, 2):
        short = f"customer-support/2026/region-…ut-any-break-{number}"
        assert f'<bdi title="{long}{number}">{short}</bdi>' in page
        sample = pages.get(f"/runs/run-a/samples/{number - 1}").text
        assert f"<title>Sample {short}" in sample
        assert f">Sample <bdi>{long}{number}</bdi></h1>" in sample


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("query", "chip", "left"),
    [
        ("scenario=zz", "scenario zz", ""),
        ("metric=sample_score&low=1&flag=failed", "score sample score", "?flag=failed"),
    ],
)
def test_a_name_that_no_sample_has_is_named_and_can_be_taken_out(
    pages: PagesClient, query: str, chip: str, left: str
) -> None:
    page = pages.get(f"/runs/run-a/samples?{query}").text
    assert f"No sample of this run has <bdi>{chip}</bdi>; remove" in page
    assert f'<a href="/runs/run-a/samples{left}" aria-current="true"><bdi>{chip}</bdi>' in page
    assert f" selected>{chip.split(maxsplit=1)[1]}</option>" in page


@pytest.mark.usefixtures("made")
def test_a_range_that_is_the_wrong_way_around_is_named(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples?low=0.9&high=0.1").text
    assert "No sample matches: from 0.9 is above to 0.1; remove" in page


@pytest.mark.usefixtures("made")
def test_where_nothing_matches_what_was_chosen_can_be_taken_out(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples?flag=safety&flag=failed&review=awaiting").text
    assert "No sample matches all filters" in page
    for each, left in (
        ("safety", "flag=failed&amp;review=awaiting"),
        ("to review before release", "flag=safety&amp;flag=failed"),
    ):
        assert re.search(rf'samples\?{left}"[^>]* aria-current="true">{each} ', page), each


@pytest.mark.usefixtures("made")
def test_samples_are_filtered_only_by_what_they_have(pages: PagesClient) -> None:
    form = pages.get("/runs/run-a/samples").text
    offered = re.findall(r'<option value="(\w+)">', form[form.index('id="metric"') :])
    assert {"accuracy", "clarity", "latency_e2e_ms"} <= {*offered}
    assert "judge_score" not in offered


@pytest.mark.usefixtures("made")
def test_a_score_that_fails_a_rule_is_marked_in_its_column(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples").text
    failing = re.findall(r'data-name="(\w+)" class="number bad">([^<]*)<', page)
    assert failing == [("Accuracy", "2")]


def test_samples_without_scores_have_the_columns_of_the_others(
    make_run: MakeRun, pages: PagesClient
) -> None:
    def jury(prompt: str) -> str | Failure:
        return "no score" if "Task broken" in prompt else judge(prompt)

    make_run([answered("s1"), answered("broken")], jury, rubric=RUBRIC)
    heads = [
        re.findall(r'<th scope="col".*?>(\w+)</', pages.get(f"/runs/run-a/samples{query}").text)
        for query in ("", "?flag=unscored")
    ]
    assert "Accuracy" in heads[1]
    assert heads[0] == heads[1]


def test_latency_is_a_column_where_there_is_room_or_it_is_used(
    make_run: MakeRun, pages: PagesClient
) -> None:
    rubric = f"{RUBRIC}### Tone\n### Care\n"
    criteria = ("accuracy", "clarity", "tone", "care")
    said = scored(dict.fromkeys(criteria, 4), dict.fromkeys(criteria, "Right."))
    make_run([answered("s", ms=100.0)], lambda _: said, rubric=rubric)
    ruled = rubric.replace('"]\ngates', '", "latency_e2e_ms <= 900"]\ngates')
    make_run([answered("s", ms=100.0)], lambda _: said, rubric=ruled, run_id="run-b")
    column = ">latency (ms)</a>"
    assert column not in pages.get("/runs/run-a/samples").text
    assert column in pages.get("/runs/run-a/samples?metric=latency_e2e_ms&low=1").text
    assert column in pages.get("/runs/run-b/samples").text


@pytest.mark.usefixtures("made")
def test_a_sample_opened_by_itself_says_where_it_is_in_the_run(pages: PagesClient) -> None:
    assert "<span>3 of 7</span>" in pages.get("/runs/run-a/samples/2").text


@pytest.mark.usefixtures("made")
def test_a_sample_has_neighbors_among_those_that_were_asked_for(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples/3?scenario=odd&sort=number&at=1").text
    assert 'rel="prev" href="/runs/run-a/samples/1?scenario=odd&amp;sort=number&amp;at=0"' in page
    assert 'rel="next" href="/runs/run-a/samples/5?scenario=odd&amp;sort=number&amp;at=2"' in page
    assert "2 of 3" in page
    assert 'href="/runs/run-a/samples?scenario=odd&amp;sort=number#row-3">Back to the list' in page
    alone = pages.get("/runs/run-a/samples/0").text
    assert 'rel="prev"' not in alone
    assert 'rel="next" href="/runs/run-a/samples/1"' in alone


@pytest.mark.usefixtures("made")
def test_a_sample_shows_what_was_said(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples/3").text
    for text in ("Task s3", "answer 3", "Muddled.", "accuracy &gt;= 3", "fails", "Requests and"):
        assert text in page
    metrics = dict(re.findall(r'title="(\w+)">[^<]*</th><td class="number">([^<]*)<', page))
    assert page.count("overall 0.375") == 1
    assert metrics["total_score"] == "5"
    assert "overall" not in metrics
    assert "." not in metrics["input_tokens"]
    raw = pages.get("/runs/run-a/samples/3/text/reply-0")
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert raw.headers["content-security-policy"].endswith("sandbox")
    assert json.loads(raw.text)["scores"] == {"accuracy": 2, "clarity": 3}


def test_a_rubric_is_rendered_with_the_versions_that_were_used(
    made: Made, pages: PagesClient
) -> None:
    page = pages.get("/rubrics/answers").text
    assert "<em>closely</em>" in page
    assert "1.2.0" in page
    sha256 = made.view.metadata["rubric"]["sha256"]
    assert f'<code data-copy title="{sha256}">{sha256[:12]}</code>' in page
    assert "several texts" not in page


def test_a_rubric_says_in_words_how_it_decides(make_run: MakeRun, pages: PagesClient) -> None:
    written = RUBRIC.replace("votes: 1", "votes: 1\nweights: {accuracy: 3}")
    written = written.replace(
        '["accuracy_mean >= 3"]', '["pass_rate >= 0.8555", "overall_mean > 0"]'
    )
    make_run([answered("s1")], judge, rubric=RUBRIC)
    make_run([answered("s1")], judge, rubric=written, run_id="run-b")
    page = " ".join(pages.get("/runs/run-b/rubric").text.split())
    assert "<dt>A sample passes if</dt><dd>Accuracy is at least 3</dd>" in page
    gates = "pass rate is at least 85.55% and overall mean is more than 0"
    assert f"<dt>A run passes if</dt><dd>{gates}</dd>" in page
    weights = re.findall(
        r'<bdi>(\w+)</bdi></th><td data-name="weight" class="number">([\d.]+%)', page
    )
    assert weights == [("Accuracy", "75.0%"), ("Clarity", "25.0%")]
    # In the facts, and in the row of each text.
    assert page.count("several texts have this version") == 3


def test_the_changes_between_versions_of_a_rubric_are_shown_old_to_new(
    make_run: MakeRun, pages: PagesClient
) -> None:
    newer = RUBRIC.replace("1.2.0", "1.3.0").replace("*closely*", "very *closely*") + "<b>x</b>\n"
    for name, text in (("run-a", RUBRIC), ("run-b", newer), ("run-c", newer + "More.\n")):
        make_run([answered("s1")], judge, rubric=text, run_id=name)
    page = pages.get("/runs/run-b/rubric").text
    assert page == pages.get("/runs/run-b/rubric?since=run-a").text
    changes = page.partition('id="changes"')[2].partition("</section>")[0]
    assert re.findall(r"<(del|ins)>(\w+)", changes)[:2] == [("del", "version"), ("ins", "version")]
    assert re.search('<mark class="b">[^<]*very', changes)
    assert "&lt;b&gt;x&lt;/b&gt;" in changes
    assert "More." not in changes
    # Each other version links to the changes, always from the older to the newer.
    links = re.findall(r'href="(/runs/[^"]+/rubric\?since=[^"]+)#changes"', page)
    assert links == ["/runs/run-c/rubric?since=run-b"]
    assert "What changed" not in pages.get("/runs/run-a/rubric").text
    linked = re.findall(r'href="(/runs/[^"]+since=[^"]+)#changes"', pages.get("/rubrics").text)
    assert sorted(linked) == ["/runs/run-b/rubric?since=run-a", "/runs/run-c/rubric?since=run-b"]
    assert "/runs/run-c/rubric?since=run-a#changes" in pages.get("/compare?a=run-a&b=run-c").text
    assert pages.get("/runs/run-b/rubric?since=none").status_code == 404
    assert pages.get("/runs/run-b/rubric?since=%00").status_code == 400


def test_rubrics_are_in_the_order_of_their_use_and_versions_from_the_newest(
    make_run: MakeRun, pages: PagesClient
) -> None:
    other = RUBRIC.replace("id: answers", "id: other")
    used = ((RUBRIC, "0.3.0"), (RUBRIC, "0.10.0"), (other, "9.0.0"), (RUBRIC, "0.3.0"))
    for at, (text, version) in enumerate(used):
        written = text.replace("1.2.0", version)
        make_run([answered("s1")], judge, rubric=written, run_id=f"run-{at}")
    listed = re.findall(
        r'<a href="([^"]*)">(\w+)</a></th>.*?data-name="version">([\d.]+)',
        pages.get("/rubrics").text,
    )
    assert listed == [
        ("/rubrics/answers", "answers", "0.10.0"),
        ("/runs/run-3/rubric", "answers", "0.3.0"),
        ("/rubrics/other", "other", "9.0.0"),
    ]
    assert "<dt>Version</dt><dd>0.10.0</dd>" in pages.get("/rubrics/answers").text


@pytest.mark.usefixtures("made")
def test_what_is_not_there_is_not_found(pages: PagesClient) -> None:
    for path in (
        "/runs/none",
        "/runs/run-a/samples/99",
        "/runs/run-a/samples/99999999999999999999999999",
        "/runs/run-a/samples/" + "9" * 5000,
        "/runs/run-a/samples/3/text/nothing",
        "/runs/run-a/samples/" + "9" * 5000 + "/text/task",
        "/rubrics/none",
        "/compare?a=run-a&b=none",
        "/side-by-side?run=run-a&run=none",
        "/api/runs/none",
        "/api/runs/run-a/samples/99",
    ):
        assert (path, pages.get(path).status_code) == (path, 404)


@pytest.mark.usefixtures("made")
def test_a_question_that_makes_no_sense_is_refused(pages: PagesClient) -> None:
    wrong = ("flag=nonsense", "low=x", "low=nan", "sort=x", "winner=C", "page=0", "outcome=failed")
    for query in (*wrong, "metric=nope", "metric=win.accuracy", "sort=metric:nope"):
        assert pages.get(f"/runs/run-a/samples?{query}").status_code == 400
        assert pages.get(f"/runs/run-a/samples.csv?{query}").status_code == 400
        refused = pages.get(f"/api/runs/run-a/samples?{query}")
        assert refused.status_code == 400
        assert set(refused.json()["error"]) == {"problem", "hint", "where"}
    for query, problem, hint in (
        (
            "sort=x",
            "sort: x isn't an allowed value",
            "Use one of worst, number, urgency, id, metric:",
        ),
        (
            "flag=failed&flag=no",
            "flag: no isn't an allowed value",
            "Use one of safety, forged_prompt,",
        ),
        ("winner=C", "winner: C isn't an allowed value", "Use one of A, B, tie, any."),
        ("low=abc", "low: abc isn't a number", "Remove it from the address."),
        ("metric=nope", "metric: there is no nope here", "Use one of accuracy, "),
        ("outcome=x", "outcome: there is no such parameter", "Remove it from the address."),
        ("page=0", "page: 0 is less than 1", "Remove it from the address."),
        ("people=" + 301 * "x", "people: it has more than 300 characters", "Shorten it."),
    ):
        page = pages.get(f"/runs/run-a/samples?{query}").text
        told = html.unescape(re.sub("<[^>]*>", "", page))
        assert f"\n{problem}\n{hint}" in told
        assert f"<title>{html.escape(problem, quote=False)}" in page.replace("&#39;", "'")
        for address in ("?", "/runs/run-a", "/runs/run-a/samples"):
            assert f'<a href="{address}">' in page
        assert "pattern" not in page
    for path in ("/", "/compare", "/side-by-side", "/rubrics", "/runs/run-a", "/runs/run-a/rubric"):
        assert pages.get(f"{path}?outcome=x").status_code == 400
    for path in ("/runs/run-a/review", "/runs/run-a/samples/0", "/api/runs", "/login"):
        assert pages.get(f"{path}?run=x").status_code == 400
    page = html.unescape(pages.get("/compare?a=run-a&b=run-a&change=foo").text)
    assert "<bdi>change: there is no <code>foo</code> here</bdi>" in page
    assert "now_fails, now_unscored, newly_passes, newly_fails, now_passes, labeled." in page
    assert '<a href="?a=run-a&b=run-a">This page without <code>change</code></a>' in page


@pytest.mark.usefixtures("made")
def test_a_missing_page_says_what_is_missing_and_links_only_to_what_exists(
    pages: PagesClient,
) -> None:
    for path in ("samples/99", "review/99", "review/99/judged"):
        page = pages.get(f"/runs/run-a/{path}")
        assert (page.status_code, "<h1><bdi>The run has no such sample" in page.text) == (404, True)
        assert '<a href="/runs/run-a/samples">Its samples</a>' in page.text
    page = pages.get("/runs/none/samples").text
    assert "<h1><bdi>none: there is no such run" in page
    assert "Its samples" not in page


def test_a_run_that_goes_on_is_watched(
    make_run: MakeRun, pages: PagesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_run([answered(f"s{n}") for n in range(6)], judge, rubric=RUBRIC, left_out=2)
    monkeypatch.setattr(view, "_KEPT", 0.0)
    told = pages.get("/api/runs/run-a/progress").json()
    assert (told["status"], told["samples"], told["planned"]) == ("stopped", 4, 6)
    with made.store.claim("run-a"):
        page = pages.get("/runs/run-a").text
        assert "/static/live.js" in page
        assert "4 of 6 samples" in page
        told = pages.get("/api/runs/run-a/progress").json()
        assert told["status"] == "running"
        assert f'data-version="{told["version"]}"' in page
    assert pages.get("/api/runs/run-a").json()["summary"]["samples"] == 4


BANDS = """bands:
  - {label: Good, from: 0.7, meaning: Fine for users}
  - {label: Poor, from: 0}
"""


def test_a_stopped_run_promises_nothing_and_says_how_to_go_on(
    make_run: MakeRun, pages: PagesClient
) -> None:
    rubric = RUBRIC.replace("gates:", f"{BANDS}gates:").replace("accuracy >= 3", "accuracy >= 2")
    rows = [answered(f"s{n}") for n in range(6)]

    def best(prompt: str) -> str:
        return str(judge(prompt)).replace(": 3", ": 5").replace(": 4", ": 5")

    make_run(rows, best, rubric=rubric, left_out=2)
    page = pages.get("/runs/run-a").text
    assert "Fine for users" not in page
    assert "Good" not in page
    assert '<span class="badge">passes so far</span>' in page
    assert "<code data-copy>jurybox resume <bdi>run-a</bdi></code>" in page
    assert ">jurybox resume run-a</code>" in pages.get("/").text
    make_run(rows, best, rubric=rubric, run_id="run-b")
    assert "Fine for users" in pages.get("/runs/run-b").text
    assert "jurybox resume" not in pages.get("/runs/run-b").text


def test_a_level_that_is_reached_by_rounding_says_so(make_run: MakeRun, pages: PagesClient) -> None:
    rubric = RUBRIC.replace("gates:", f"{BANDS}gates:").replace("1-5", "0-100")

    def close(prompt: str) -> str:
        return str(judge(prompt)).replace(": 3", ": 69").replace(": 4", ": 69")

    make_run([answered("s1")], close, rubric=rubric)
    page = html.unescape(pages.get("/runs/run-a").text)
    assert "Poor</bdi>" in page
    assert "0.690 is Good only if rounded to 0.7" in page
    assert "Good from 0.7, Poor from 0" in pages.get("/rubrics/answers").text


def test_reviews_are_not_offered_where_they_give_no_score(
    make_run: MakeRun, pages: PagesClient
) -> None:
    make_run([answered("s1")], lambda _: "no verdict", rubric=RUBRIC)
    page = html.unescape(pages.get("/runs/run-a").text)
    assert "repair the judge and run the suite again (reviews can't replace" in page
    assert "/runs/run-a/review" not in page
    assert "1 sample to review" not in page
    assert "review=open" not in pages.get("/").text
    shown = pages.get("/api/runs/run-a").json()
    assert (shown["review"]["queued"], shown["summary"]["review_rate"]) == (0, None)
    lost = [answered("s1"), answered("s2", response="")]
    make_run(lost, lambda _: "no verdict", rubric=RUBRIC, run_id="run-b")
    page = html.unescape(pages.get("/runs/run-b").text)
    judges = "1 x the judge's replies could not be read (the reply contains no JSON object with"
    assert f"No sample could be scored: {judges}" in page
    assert re.search(r"could not be read \([^()]*\); 1 x the row has no response", page)
    assert '<small class="muted">nothing was measured</small>' in page


def test_each_reason_for_failing_leads_to_as_many_samples_as_it_counts(
    make_run: MakeRun, pages: PagesClient
) -> None:
    errors = [answered(f"e{n}", response=Response(text="", error=f"error {n}")) for n in range(2)]
    make_run([*errors, answered("s1"), answered("s3")], judge, rubric=RUBRIC)
    page = html.unescape(pages.get("/runs/run-a").text)
    why = page.partition('id="failures-head"')[2].partition("</table>")[0]
    assert "no response: 1 x error 0; 1 x error 1" in why
    assert "Accuracy below 3" in why
    links = re.findall(r'href="([^"]*)">(\d+) samples?<', why)
    assert len(links) == 2
    for address, count in links:
        assert f" of {count} sample" in pages.get(address).text


def test_a_run_that_is_stopped_is_watched_too(make_run: MakeRun, pages: PagesClient) -> None:
    make_run([answered("a"), answered("b")], judge, rubric=RUBRIC, left_out=1)
    page = pages.get("/runs/run-a").text
    assert ('data-live="no"' in page, "/static/live.js" in page) == (True, True)
    make_run([answered("a")], judge, rubric=RUBRIC, run_id="run-b")
    assert "/static/live.js" not in pages.get("/runs/run-b").text


@pytest.mark.usefixtures("made")
def test_a_page_behind_the_last_leads_to_the_last(pages: PagesClient) -> None:
    answer = pages.get("/runs/run-a/samples?scenario=odd&page=99")
    assert answer.headers["location"] == "/runs/run-a/samples?scenario=odd"


def test_d7_pages_call_a_run_by_its_name_and_show_its_tags(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("a")], judge, rubric=RUBRIC, name="desk-v2", tags=("candidate",))
    page = pages.get("/runs/run-a").text
    assert "<h1><bdi>desk-v2</bdi> <small><bdi>suite</bdi></small>" in page
    assert '<span class="tag"><bdi>candidate</bdi></span>' in page
    assert "09:14 UTC" in page
    assert "<h1>Samples of <bdi>desk-v2</bdi>" in pages.get("/runs/run-a/samples").text
    for path in ("/runs/run-a", "/runs/run-a/samples/0", "/runs/run-a/rubric", "/rubrics/answers"):
        assert ">desk-v2</bdi>" in pages.get(path).text, path


def test_where_only_a_text_that_the_row_leaves_out_matches_it_is_shown(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("a", reference="Open Settings.")], judge, rubric=RUBRIC)
    page = pages.get("/runs/run-a/samples?search=settings").text
    assert "reference:</small> Open <mark>Settings</mark>." in page


@pytest.mark.usefixtures("made")
def test_a_list_without_samples_offers_only_the_scores_that_samples_have(
    pages: PagesClient,
) -> None:
    form = pages.get("/runs/run-a/samples?search=nowhere").text
    offered = re.findall(r'<option value="(\w*)">', form[form.index('id="metric"') :])
    assert offered == ["", "accuracy", "clarity", "latency_e2e_ms", "total_tokens"]


def test_one_run_alone_is_compared_with_none(make_run: MakeRun, pages: PagesClient) -> None:
    make_run([answered("a")], judge, rubric=RUBRIC)
    assert 'type="checkbox"' not in pages.get("/").text
    make_run([answered("a")], judge, rubric=RUBRIC, run_id="run-b")
    assert pages.get("/").text.count('type="checkbox"') == 2


LONG = "".join(f"word{n} " for n in range(800))


@pytest.mark.parametrize(
    ("one", "other", "is_long", "marked"),
    [
        (f"{LONG * 2}x", f"{LONG * 2}y", True, None),
        (f"Hi! {LONG}", LONG, False, '<mark class="a">Hi!</mark>'),
        (LONG, LONG, False, None),
        ("x " * 20_000, "y " * 20_000, True, None),
        ("x " * 20_000, "x " * 20_000 + "y", True, None),
    ],
)
def test_two_responses_that_differ_are_never_shown_as_if_they_were_the_same(
    make_run: MakeRun, pages: PagesClient, one: str, other: str, marked: str, *, is_long: bool
) -> None:
    make_run([answered("a", one, response_b=Response(text=other))], judge, rubric=RUBRIC)
    page = pages.get("/runs/run-a/samples/0").text
    assert page.count("too long for their differences to be marked") == is_long
    assert page.count("<mark") == (1 if marked else 0)
    assert marked is None or marked in page


def test_damaged_metrics_are_told_as_other_damage_is(
    made: Made, pages: PagesClient, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = made.store.find_samples

    def damaged(run_id: str, query: SampleQuery) -> SamplePage:
        page = find(run_id, query)
        rows = tuple(msgspec.structs.replace(row, metrics="{") for row in page.rows)
        return msgspec.structs.replace(page, rows=rows)

    monkeypatch.setattr(made.store, "find_samples", damaged)
    for path in ("/runs/run-a/samples", "/api/runs/run-a/samples"):
        assert (path, pages.get(path).status_code) == (path, 503)
    assert not any("fault of ours" in line for line in said)


@pytest.mark.usefixtures("made")
def test_programs_are_told_of_people_as_show_tells_it(pages: PagesClient) -> None:
    told = pages.get("/api/runs/run-a").json()
    assert (told["people"], "calibration" in told) == (None, True)
    session = pages.get("/api/session").json()["csrf"]
    review = {"reviewer": "ann", "verdict": {"scores": {"accuracy": 4, "clarity": 3}}}
    sent = pages.post(
        "/api/runs/run-a/reviews", json={"number": 0, **review}, headers={"X-Jurybox-CSRF": session}
    )
    assert sent.status_code == 200, sent.text
    assert pages.get("/api/runs/run-a").json()["people"]["reviews"] == 1


@pytest.mark.usefixtures("made")
def test_runs_are_found_by_what_they_are_about_and_trends_need_two(
    pages: PagesClient, make_run: MakeRun
) -> None:
    alone = pages.get("/").text
    assert 'class="chart trend"' not in alone
    assert 'class="badge fails"' not in alone
    assert "run-a" in pages.get("/?verdict=passes").text
    assert "No run matches" in pages.get("/?verdict=fails").text
    assert "No run matches" in pages.get("/?tag=nightly").text
    assert (
        'no more runs; <a href="/?tag=new">show the first</a>'
        in pages.get("/?tag=new&page=99").text
    )
    make_run([answered("s0", "answer 0")], judge, rubric=RUBRIC, run_id="run-b")
    make_run([answered("s0", "answer 0")], judge, rubric=RUBRIC, run_id="run-c", suite="other")

    def ids(query: str) -> list[str]:
        return re.findall(r'"row"><a href="/runs/(run-\w)"', pages.get(f"/?{query}").text)

    assert ids("") == ["run-c", "run-b", "run-a"]
    assert ids("search=OTHER") == ["run-c"]
    assert ids("search=nothing") == []
    assert pages.get("/").text.count('class="chart trend"') == 1


def test_a_run_of_another_rubric_hides_no_difference_of_the_others(
    pages: PagesClient, make_run: MakeRun
) -> None:
    other = files("jurybox.rubric.library").joinpath("companion.md").read_text("utf-8")
    make_run([answered("s1")], judge, rubric=RUBRIC)
    make_run([answered("s1")], changed, rubric=RUBRIC, run_id="run-b")
    make_run([answered("t1")], rubric=other, run_id="run-c")
    page = pages.get("/side-by-side?run=run-a&run=run-c&run=run-b").text
    assert "Where they differ <small>1 sample" in page


@pytest.mark.usefixtures("made")
def test_chosen_runs_are_compared_two_as_a_pair_more_in_columns(pages: PagesClient) -> None:
    pair = pages.get("/compare?run=run-a&run=run-a").text
    assert "<bdi>run-a</bdi> and <bdi>run-a</bdi> compared" in pair
    more = pages.get("/compare?run=c&run=b&run=a")
    assert more.headers["location"] == "/side-by-side?run=a&run=b&run=c"
    assert "Only one run is chosen" in pages.get("/compare?run=run-a").text
    assert "No runs are chosen" in pages.get("/compare").text
    alone = pages.get("/side-by-side?run=run-a")
    assert alone.headers["location"] == "/compare?run=run-a"
    many = pages.get("/side-by-side?" + "&".join(f"run={n}" for n in range(9)))
    assert (many.status_code, "9 runs don&#39;t fit on a page" in many.text) == (400, True)


def test_in_any_order_of_the_list_the_oldest_chosen_run_or_its_baseline_comes_first(
    pages: PagesClient, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour, name, before in ((9, "run-d", "run-a"), (8, "run-a", None), (7, "run-z", None)):
        monkeypatch.setattr("stored_runs.WHEN", f"2026-03-01T{hour:02}:14:00.000Z")
        make_run([answered("s1")], judge, rubric=RUBRIC, run_id=name, baseline=before)
    monkeypatch.setattr("stored_runs.WHEN", "2026-03-01T06:14:00.000Z")
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-c", baseline="run-d")
    for query in ("", "sort=name", "descending=false"):
        ids = re.findall(r'name="chosen" value="(run-.)"', pages.get(f"/?{query}").text)
        assert len(ids) == 4
        every = pages.get("/compare?" + "&".join(f"chosen={each}" for each in ids))
        # An earlier run, which was started with a later one as its baseline, comes after it.
        expected = "run-a", "run-d", "run-c", "run-z"
        expected = "/side-by-side?" + "&".join(f"run={each}" for each in expected)
        assert every.headers["location"] == expected
        pair = "&".join(f"chosen={each}" for each in ids if each in {"run-c", "run-d"})
        page = pages.get(f"/compare?{pair}").text
        assert "<bdi>run-d</bdi> and <bdi>run-c</bdi> compared" in page


def test_runs_of_the_same_name_and_minute_are_offered_with_their_ids(
    pages: PagesClient, make_run: MakeRun
) -> None:
    for run_id, name in (("run-a", "one"), ("run-b", "two"), ("run-c", "one")):
        make_run([answered("s1")], judge, rubric=RUBRIC, run_id=run_id, name=name)
    offered = re.findall(r'<option value="(run-.)">([^<]*)<', pages.get("/compare").text)
    ends = {run_id: text.partition(" UTC")[2] for run_id, text in offered}
    assert ends == {"run-a": ", run-a", "run-b": "", "run-c": ", run-c"}


def test_runs_side_by_side_can_be_exchanged_for_others(
    pages: PagesClient, make_run: MakeRun
) -> None:
    for name in ("run-a", "run-b", "run-c"):
        make_run([answered("s1")], judge, rubric=RUBRIC, run_id=name)
    page = pages.get("/side-by-side?run=run-a&run=run-b").text
    assert "No sample newly fails, none newly passes" in page
    offered = re.findall(r'name="run" value="(run-.)"( checked)?', page)
    assert offered == [("run-a", " checked"), ("run-b", " checked"), ("run-c", "")]
    assert '/side-by-side?run=run-b&amp;run=run-a">compare the others with it' in page


def test_twenty_five_samples_side_by_side_are_on_a_page(
    pages: PagesClient, make_run: MakeRun
) -> None:
    for name, other in (("run-a", judge), ("run-b", changed)):
        make_run([answered(f"s{n}") for n in range(26)], other, rubric=RUBRIC, run_id=name)
    path = "/side-by-side?run=run-a&run=run-b"
    page, last = (pages.get(f"{path}&page={n}&written=true").text for n in (1, 9))
    assert (page.count('<tr id="row-'), last.count('<tr id="row-')) == (25, 1)
    address = f"{path}&page=2#outputs".replace("&", "&amp;")
    assert f'rel="next" href="{address.replace("page", "written=true&amp;page")}"' in page
    assert f'href="{address}">Render Markdown' in last
    assert "<span>1 to 25 of 26 samples, those with the same result last<" in page
    assert "<span>26 to 26 of 26 samples" in last
    number = re.findall(r'<tr id="row-(\d+)">', last)[0]
    opened = pages.get(f"/runs/run-b/samples/{number}?beside=run-a&beside=run-b&page=2").text
    assert f'href="{path.replace("&", "&amp;")}&amp;page=2#first-{number}"' in opened
    assert "<span>8 of 8 with the same result</span>" in opened
    first = re.findall(r'<tr id="row-(\d+)">', page)[0]
    opened = pages.get(f"/runs/run-b/samples/{first}?beside=run-a&beside=run-b").text
    assert "<span>1 of 18 that differ</span>" in opened


def test_a_trend_leaves_out_runs_by_another_rubric_or_without_a_score(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def failing(_: str) -> Failure:
        return Failure(kind="unreadable", message="the judge crashed")

    make_run([answered("s1")], failing, rubric=RUBRIC, run_id="run-a")
    for name in ("run-b", "run-c"):
        make_run([answered("s1")], judge, rubric=RUBRIC, run_id=name)
    stricter = RUBRIC.replace("accuracy >= 3", "accuracy >= 5")
    make_run([answered("s1")], judge, rubric=stricter, run_id="run-d")
    trends = pages.get("/").text.partition('<div class="trends">')[2].partition("</figure>")[0]
    assert re.findall(r"<title>(run-.):", trends) == ["run-b", "run-c"]


def test_the_targets_of_one_comparison_are_no_trend(pages: PagesClient, make_run: MakeRun) -> None:
    for name in ("old", "new"):
        make_run([answered("s1")], judge, rubric=RUBRIC, run_id=name, target_name=name)
    assert 'class="trends"' not in pages.get("/").text
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="newer", target_name="new")
    page = pages.get("/").text
    assert re.findall(r"<title>(\w+): ", page) == ["new", "newer"]


def test_the_rubrics_are_named_before_runs_by_different_ones_are_compared(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [answered(f"t{n}") for n in range(20)]
    make_run(rows, judge, rubric=RUBRIC, run_id="run-a")
    stricter = RUBRIC.replace("accuracy >= 3", "accuracy >= 5")
    others = [answered(f"t{n}", "Another.") for n in range(20)]
    make_run(others, judge, rubric=stricter, run_id="run-b", baseline="run-a")
    page = pages.get("/compare?a=run-a&b=run-b").text
    heading = re.search(r'<h2 id="what">(.*?)</h2>', page)
    caution = "The rubrics differ, so a difference may come from the rubric and not the responses"
    assert heading is not None
    chance = "(by more than chance at 95%)"
    assert heading[1] == f"B is lower than A in pass rate {chance}"
    assert f'<p class="warn">{caution} (<a' in page
    row = page.partition("<bdi>Pass rate</bdi>")[2].partition("</tr>")[0]
    assert re.search(r'"interval" class="number">-\S+ to -\S+ points</td>.*>lower</td>', row)
    assert '<section class="verdict comparison "' in page
    assert not re.search('data-name="B is" class="(bad|good)"', page)
    columns = pages.get("/side-by-side?run=run-b&run=run-a").text
    said = f"<bdi>run-a against run-b</bdi>: higher in pass rate {chance}</h2>"
    assert said in columns
    assert f"<p>{caution}. No sample newly fails, " in re.sub(r"<p>\s+", "<p>", columns)
    assert '<section class="verdict comparison "' in columns
    run = pages.get("/runs/run-b").text
    assert "against run-a, by another rubric" in run
    assert f"lower in pass rate {chance}. {caution}" in run
    assert "than A" not in run


def test_a_rescored_run_is_called_by_its_source_and_rubric(
    pages: PagesClient, make_run: MakeRun, tmp_path: Path
) -> None:
    made = make_run([answered("s1")], judge, rubric=RUBRIC)
    stricter = RUBRIC.replace("1.2.0", "1.3.0").replace("accuracy >= 3", "accuracy >= 5")
    (tmp_path / "next.md").write_text(stricter)
    run = rescore_run(made.row, str(tmp_path / "next.md"), made.store).view.run_id
    name = "run-a, rescored by answers 1.3.0"
    for path in (f"/runs/{run}", f"/runs/{run}/samples", f"/compare?a=run-a&b={run}"):
        assert name in pages.get(path).text.partition("<h1>")[2].partition("</h1>")[0]
    assert f">{name}</bdi></a></th>" in pages.get(f"/side-by-side?run=run-a&run={run}").text
    page = pages.get("/").text
    assert '"><bdi>run-a, rescored by answers 1.3.0</bdi>' in page
    assert '<span class="quiet" title="The replies are those of run-a.">no calls</span>' in page
    # What the other rubric changed is on the run's own page.
    page = pages.get(f"/runs/{run}").text
    assert page.count(f'href="/compare?a=run-a&amp;b={run}"') == 2
    changed = f'<a href="/compare?a=run-a&amp;b={run}&amp;change=now_fails#changed">'
    said = "the same replies, so all differences come from the rubric"
    assert f"<bdi>{said}</bdi>: {changed}1 sample newly fails</a>, none newly passes." in page
    page = pages.get(f"/compare?a=run-a&b={run}").text
    assert f"{said[1:]}: 1 sample newly fails, none newly passes</h2>" in page
    assert "95% interval" not in page.partition('id="tested"')[0]
    assert "<summary>The runs differ in <bdi>the rubric version (1.2.0 → 1.3.0), the rubric" in page


def test_the_points_of_a_trend_lead_to_their_runs(pages: PagesClient, make_run: MakeRun) -> None:
    for name in ("run-a", "run-b"):
        make_run([answered("s1")], judge, rubric=RUBRIC, run_id=name)
    page = pages.get("/").text
    assert re.search(r"last <strong>\d\.\d{3}</strong>", page)
    ends = re.findall(r"axis is from (\d\.?\d*) to (\d\.?\d*)\.", page)[0]
    assert f"<small>{ends[1]}</small><small>{ends[0]}</small>" in page
    trend = pages.get("/").text.partition('class="chart trend"')[2].partition("</svg>")[0]
    assert re.findall(r'<a href="(.*?)" .*?><title>(.*?)</title>', trend) == [
        ("/runs/run-a", "run-a: 0.625"),
        ("/runs/run-b", "run-b: 0.625"),
    ]


def test_a_judges_reasoning_is_laid_out_as_markdown_without_power(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def in_markdown(prompt: str) -> str:
        return str(judge(prompt)).replace("Muddled.", "Not **clear** <i>at all</i>.")

    make_run([answered("s1")], in_markdown, rubric=RUBRIC)
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-b")
    laid_out = "Not <strong>clear</strong> &lt;i&gt;at all&lt;/i&gt;."
    for path in ("/runs/run-a/samples/0", "/side-by-side?run=run-a&run=run-b"):
        assert laid_out in pages.get(path).text, path
    row = ">Clarity 3: Not clear &lt;i&gt;at all&lt;/i&gt;.</bdi>"
    assert row in pages.get("/runs/run-a/samples").text


def test_every_vote_has_its_judge_and_refused_replies_are_none(
    pages: PagesClient, make_run: MakeRun
) -> None:
    replies = iter((judge("").replace("3", "9"), f"```json\n{judge('')}\n```"))
    make_run([answered("s1")], lambda _: next(replies), rubric=RUBRIC)
    page = pages.get("/runs/run-a/samples/0").text
    assert "<dt>Judges</dt><dd><bdi>python/judges:one</bdi></dd>" in page
    votes = re.findall(r'<strong>(\d)</strong> \(reply <a href="#exchange-(\d)">', page)
    assert {*votes} == {("4", "2"), ("3", "2")}


def test_a_request_is_shown_as_its_messages_and_kept_as_exact_json(
    pages: PagesClient, make_run: MakeRun
) -> None:
    store = make_run([answered("s1", task="One <b>\nTwo \x1b")], judge, rubric=RUBRIC).store
    (asked,) = store.exchanges_of("run-a", 0)
    prompt = read_request(asked).messages[0].content
    page, text = (pages.get(f"/runs/run-a/samples/0{end}").text for end in ("", "/text/request-0"))
    assert text == asked.request
    assert pages.get("/runs/run-a/samples/0/text/request-0-0").text == prompt
    shown = page.partition("<dt>user</dt>")[2].partition("</dl>")[0]
    assert "One &lt;b&gt;\nTwo \ufffd\n" in shown
    assert shown.count("\n") >= prompt.count("\n") > 20
    assert "\n  &#34;scores&#34;: {\n" in page.partition('id="exchange-1"')[2].partition("<h3>")[0]
    settings = pages.get("/runs/run-a/samples/0/text/settings-0").json()
    assert settings.keys() == {"model", "generation", "schema"}


def test_e6_a_sample_without_a_score_says_why_and_what_was_replied(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("s1", task="word " * 400)], lambda _: "no verdict", rubric=RUBRIC)
    page = pages.get("/runs/run-a/samples/0").text
    assert "<dd>No judge gave a valid vote." in page
    assert page.count(": the reply contains no JSON object") == 1
    assert '<q dir="auto">no verdict</q>' in page
    assert "<dt>What to do</dt><dd>Repair the judge and run the suite again" in page
    assert "Not measured" not in page
    assert '<p class="verdict"><strong>Not scored</strong>' in page
    assert "low confidence" not in page
    assert ">fails<" not in page
    run = pages.get("/runs/run-a").text
    unscored = '<a href="/runs/run-a/samples?flag=unscored">1 sample has no score</a>'
    assert f"Why samples don't pass <small>{unscored}</small>" in run
    why = "No sample could be scored: the judge's replies could not be read (the reply contains"
    assert why in html.unescape(run)
    assert "; <bdi>1 of 1 gate fails (accuracy mean)</bdi>." in run
    assert '<span class="tile-name"><bdi>pass rate' not in run
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-b")
    compared = pages.get("/compare?a=run-a&b=run-b").text
    badges = re.findall(r'badge \w+"[^>]*>(not scored|failed|passed)<', compared)
    assert badges == ["not scored", "passed"]
    assert "<details open" not in page
    assert page.count('<label class="hint"><input type="checkbox"> show all of it</label>') >= 1


WEIGHTED = re.compile(r">weight ([\d.]+)%</small>.*?\">([\d.]+)", re.DOTALL)
OVERALL = re.compile(r'<th scope="row">Overall</th><td data-name="score"[^>]*>([\d.]+)')


def test_the_overall_score_follows_from_what_a_page_shows(
    pages: PagesClient, make_run: MakeRun
) -> None:
    weighted = RUBRIC.replace("votes: 1", "votes: 1\nweights: {accuracy: 3}")
    make_run([answered("s3")], judge, rubric=weighted)
    page = pages.get("/runs/run-a/samples/0").text
    shown = [(float(share), float(score)) for share, score in WEIGHTED.findall(page)]
    assert shown == [(75.0, 2.0), (25.0, 3.0)]
    assert sum(share / 100 * (score - 1) / 4 for share, score in shown) == 0.3125
    assert OVERALL.findall(page) == ["0.313"]


def test_the_overall_score_by_rules_follows_from_what_a_page_shows(
    pages: PagesClient, make_run: MakeRun
) -> None:
    joke = "# Joke 1\n\n- Why did the chicken cross the road?\n\n- To get to the other side.\n"
    make_run([answered("s1", joke, task="A joke?")], lambda _: "Score: 0.9", rubric="companion")
    page = pages.get("/runs/run-a/samples/0").text
    shown = [(float(share), float(score)) for share, score in WEIGHTED.findall(page)]
    assert [share for share, _ in shown] == [15.0, 20.0, 20.0, 25.0, 10.0, 10.0]
    overall = sum(share / 100 * score for share, score in shown)
    assert OVERALL.findall(page) == [f"{overall:.3f}"]
    assert overall != sum(score for _, score in shown) / 6


def test_an_unreadable_reply_beside_rules_is_no_vote_and_no_reasoning(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("s1")], lambda _: "**no** score", rubric="companion")
    page = html.unescape(pages.get("/runs/run-a/samples/0").text)
    head = page[page.index('<p class="verdict">') : page.index('aria-label="Task and response"')]
    assert "Trust & boundaries</bdi>" in head
    assert "<bdi>overall_quality" not in head
    assert "the judge's reply could not be read</span>" in head
    assert "<dt>Votes</dt><dd>0 of 1</dd>" in page
    judged = page[page.index('id="jury"') : page.index('id="trace"')]
    assert "weight" not in judged
    assert "so 0.5 is the rubric's fallback score, not the judge's; the rules score the" in page
    assert '<div class="text code" dir="auto">**no** score</div>' in page


def test_an_empty_store_says_how_to_begin(pages: PagesClient) -> None:
    for address in ("/", "/rubrics", "/compare"):
        assert "jurybox init" in pages.get(address).text


def test_commands_on_pages_name_the_store_of_the_server(
    open_pages: Callable[..., PagesClient], make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_pages(at_store=" --store 'my runs.db'")

    def commands(address: str) -> list[str]:
        found = re.findall("<code[^>]*>(jurybox .*?)</code>", client.get(address).text)
        return [html.unescape(re.sub("<.*?>", "", each)) for each in found]

    assert [*map(commands, ("/", "/rubrics"))] == [
        ["jurybox init", "jurybox run suite.yaml --store 'my runs.db'"]
    ] * 2
    turns = tuple(Turn(role="user", content=f"turn {n}") for n in range(510))
    row = msgspec.structs.replace(answered("s0"), messages=turns)
    make_run([row, answered("s1")], judge, rubric=RUBRIC)
    make_run([row, answered("s1")], judge, rubric=RUBRIC, run_id="run-b", left_out=1)
    assert commands("/runs/run-a") == ["jurybox verify run-a --store 'my runs.db'"]
    shown = "jurybox show run-a --sample s0 --store 'my runs.db'"
    assert commands("/runs/run-a/samples/0") == [shown]
    assert commands("/") == ["jurybox resume run-b --store 'my runs.db'"]
    assert "jurybox resume run-b --store 'my runs.db'" in commands("/runs/run-b")
    monkeypatch.setattr(samples_page, "card", mock.Mock(side_effect=msgspec.DecodeError))
    assert {*commands("/runs/run-a/samples")} == {"jurybox verify run-a --store 'my runs.db'"}


def test_d7_a_run_with_a_baseline_says_what_changed(pages: PagesClient, make_run: MakeRun) -> None:
    make_run([answered("s3", "answer 3"), answered("s4", "a")], judge, rubric=RUBRIC)
    rows = [answered("s4", "answer 4"), answered("s5", "a")]
    make_run(rows, judge, rubric=RUBRIC, run_id="run-b", baseline="run-a")
    page = pages.get("/runs/run-b").text
    assert "+50.0 points against" in page
    assert 'href="/compare?a=run-a&amp;b=run-b"' in page


def test_a_page_that_lacks_something_takes_it_in_by_itself(
    pages: PagesClient, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run([answered("s1")], judge, rubric=RUBRIC)
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-b", baseline="run-a")
    complete = pages.get("/runs/run-b").text
    monkeypatch.setattr("jurybox.web.pages.run_page.soon", lambda *_: Pending())
    lacking = pages.get("/runs/run-b").text
    version = pages.get("/api/runs/run-b/progress").json()["version"]
    for page, is_complete in ((complete, True), (lacking, False)):
        assert (f'data-version="{version}"' in page) is is_complete
        assert ("/static/live.js" not in page) is is_complete


@pytest.mark.parametrize("late", ["kept", "agreement"])
@pytest.mark.parametrize("path", ["/compare?a=run-a&b=run-b", "/side-by-side?run=run-a&run=run-b"])
def test_large_runs_and_reviews_are_compared_while_the_page_asks_again(
    make_run: MakeRun, pages: PagesClient, monkeypatch: pytest.MonkeyPatch, path: str, late: str
) -> None:
    make_run([answered("s1")], judge, rubric=RUBRIC)
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-b")
    assert 'http-equiv="refresh"' not in pages.get(path).text
    module = sys.modules["jurybox.web.pages.compare_page"]  # its page has the same name
    monkeypatch.setattr(module, "_PATIENCE", 0)
    monkeypatch.setattr(AppState, late, lambda *_: Future[None]())
    waiting = pages.get(path).text
    assert 'http-equiv="refresh"' in waiting
    assert "Comparing 2 runs" in waiting


def test_two_judges_against_people_say_which_is_right(
    pages: PagesClient, make_run: MakeRun
) -> None:
    gold = {"gold": {"accuracy": 4, "clarity": 3}}
    rows = [answered(f"s{n}", metadata=gold if n < 40 else {}) for n in range(30, 50)]
    others = [answered(f"s{n}", metadata=gold if n >= 40 else {}) for n in range(30, 50)]
    make_run(rows, judge, rubric=RUBRIC)  # it gives 2 for accuracy where "Task s3" is asked
    kinder = {"rubric": RUBRIC.replace("closely", "kindly"), "run_id": "run-b"}
    make_run(others, lambda text: judge(text.replace("Task s3", "")), **kinder)
    # The labels of both runs count, whichever is A.
    for a, b, said in (("a", "b", "A 75.0%, B 100.0%"), ("b", "a", "A 100.0%, B 75.0%")):
        page = pages.get(f"/compare?a=run-{a}&b=run-{b}&change=labeled").text
        assert f"is right more often: {said} of a sample&#39;s labels by people" in page
        assert page.count('<tr id="row-') == 20
        both = [*map(html.unescape, re.findall(r'<small class="lines">(.*?)</small>', page))]
        assert "Clarity 3 → 3, people 3" in both, both[:4]
    assert "right more often" not in pages.get("/compare?a=run-a&b=run-a").text
    others = [msgspec.structs.replace(each, response=Response(text="Another.")) for each in rows]
    make_run(others, judge, **kinder | {"run_id": "run-c"})
    assert "right more often" not in pages.get("/compare?a=run-a&b=run-c").text


PAIRS = RUBRIC.replace('pass: ["accuracy >= 3"]\ngates: ["accuracy_mean >= 3"]\n', "")


def decided(prompt: str) -> str | Failure:
    (number,) = re.findall(r"Task s(\d)", prompt)
    if number == "4":
        return "I would rather not say."
    better = re.search(r"better answer", prompt)
    first = better is not None and better.start() < prompt.index("worse answer")
    side = {"1": "A" if first else "B", "2": "A", "3": "B" if first else "A"}.get(number, "tie")
    return preferred(side, ["accuracy", "clarity"], WHY)


def test_e8_pairs_are_listed_by_urgency_then_by_what_response_a_lost(
    make_run: MakeRun, pages: PagesClient
) -> None:
    rows = [
        answered(f"s{n}", "better answer", response_b=Response(text="worse answer"))
        for n in range(5)
    ]
    made = make_run(rows, decided, rubric=PAIRS)
    page = pages.get("/runs/run-a/samples").text
    # Unstable, not scored, lost, a tie, won.
    assert re.findall(r"<bdi>(s\d)</bdi></a>", page) == ["s2", "s4", "s3", "s0", "s1"]
    assert "worst first: the most urgent, then those that response A lost" in page
    assert ">A: better answer</bdi>" in page
    assert ">B: worse answer</bdi>" in page
    assert ">overall</option>" not in page
    run = pages.get("/runs/run-a").text
    assert "Win rate of response A" in run
    assert listed_run(made.row, made.store).metric == "win_rate"
    assert "1 of 4</a> scored pairs (25.0%)" in run
    assert made.view.summary["n"]["win_rate"] == 4
    assert '<a href="/runs/run-a/samples?winner=any">4</a>' in run
    assert " of 4 samples" in pages.get("/runs/run-a/samples?winner=any").text
    # All votes on it are ties: what is unsure is the order.
    assert opened_by_counts(pages) > {
        "metric=win.clarity",
        *(f"metric=win.clarity&low={win}&high={win}" for win in (0, 0.5, 1)),
    }
    sample = pages.get("/runs/run-a/samples/2").text
    assert "Needs review: a vote&#39;s winner changed with the order of the responses." in sample
    assert "most votes change with the order" not in sample


def test_what_a_judge_said_of_swapped_responses_has_the_letters_of_the_page(
    make_run: MakeRun, pages: PagesClient
) -> None:
    pair = answered("s1", "better answer", response_b=Response(text="worse answer"))
    why = "A names the cause, unlike B."

    def judge(prompt: str) -> str:
        first = prompt.index("better answer") < prompt.index("worse answer")
        return preferred("A" if first else "B", ["accuracy", "clarity"], why)

    make_run([pair], judge, rubric=PAIRS)
    page = pages.get("/runs/run-a/samples/0").text
    assert f'<p dir="auto">{why}</p>' in page
    letters = re.findall(r'<span class="relabeled" data-here="(.)">(.)</span>', page)
    assert letters == [("B", "A"), ("A", "B")] * 2
    assert page.count(">shown swapped</span>") == 3
    assert page.count("<desc>Votes on a scale from A over a tie to B: A.</desc>") == 3


def test_every_row_that_a_flag_counts_has_its_badge(make_run: MakeRun, pages: PagesClient) -> None:
    asked: list[str] = []

    def jury(prompt: str) -> str | Failure:
        number = int(re.findall(r"Task s(\d+)", prompt)[0])
        asked.append(f"s{number}")
        vote = asked.count(f"s{number}")
        if number == 0 or (number == 1 and vote == 1):
            return Failure(kind="server", message="down")
        reply = json.loads(str(judge(prompt)))
        reply["scores"]["accuracy"] = vote if number == 2 else min(vote, 2)
        return json.dumps(reply)

    make_run([answered(f"s{n}") for n in range(4)], jury, rubric=RUBRIC, votes=3)
    page = pages.get("/runs/run-a/samples").text
    facets = re.findall(r'title="[^"]*">([a-z ]+) <small>(\d)</small></a>', page)
    assert {"moderate confidence", "low confidence", "lost votes"} <= {name for name, _ in facets}
    for name, count in facets:
        badges = len(re.findall(rf'class="badge [^>]*>{name}[<,]', page))
        if name == "failed":  # the rule says it
            badges = page.count(">fails: Accuracy at least 3<")
        assert badges == (0 if name == "moderate confidence" else int(count)), name
        if name.endswith(" confidence"):
            split = pages.get(f"/runs/run-a/samples?flag=split&flag={name.replace(' ', '_')}").text
            assert f'aria-current="true">{name} <small>{count}</small>' in split
    assert (
        "Needs review: the votes on Accuracy have no majority."
        in pages.get("/runs/run-a/samples/2").text
    )


def test_a_judge_that_replied_before_a_request_failed_is_not_called_mute(
    make_run: MakeRun, pages: PagesClient
) -> None:
    replies = iter(["I would rather not say.", Failure(kind="timeout", message="down")])
    make_run([answered("s0")], lambda _: next(replies), rubric=RUBRIC)
    for path in ("/runs/run-a", "/runs/run-a/samples/0"):
        page = html.unescape(pages.get(path).text)
        assert re.search(r"(1 x |Vote 1 .*: )the reply .*; asking again failed: down", page)
        assert "gave no reply" not in page
    assert '<q dir="auto">I would rather not say.</q>' in html.unescape(page)


def test_a_comparison_begins_with_the_largest_fall_of_the_overall_score(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [answered(f"s{n}") for n in (1, 2, 4)]
    make_run(rows, judge, rubric=RUBRIC)

    def stricter(prompt: str) -> str:
        reply = json.loads(str(judge(prompt)))
        if "Task s1" in prompt:  # the first criterion falls most here
            reply["scores"]["accuracy"] = 2
        if "Task s2" in prompt:
            reply["scores"] = {"accuracy": 3, "clarity": 1}
        return json.dumps(reply)

    make_run(rows, stricter, rubric=RUBRIC, run_id="run-b")
    _, _, changed = pages.get("/compare?a=run-a&b=run-b").text.partition("Samples that changed")
    assert re.findall(r"<bdi>(s\d)</bdi>", changed) == ["s2", "s1"]
    assert pages.get("/side-by-side?run=run-a&run=run-b").text.count(">Ship</span>") == 2


def changed(prompt: str) -> str:
    """Give s1 a lower and s2 a higher score than `judge` does."""
    reply = json.loads(str(judge(prompt)))
    reply["scores"]["accuracy"] += ("Task s2" in prompt) - ("Task s1" in prompt)
    return json.dumps(reply)


def test_a_comparison_draws_every_difference_and_leads_to_its_samples(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [answered(f"s{n}") for n in (1, 2, 4, 5)]
    make_run(rows, judge, rubric=RUBRIC)
    make_run(rows, changed, rubric=RUBRIC, run_id="run-b")
    page = pages.get("/compare?a=run-a&b=run-b").text
    drawn = re.findall(r'<a href="(.*?)" tabindex="-1"><title>(.*?)</title>', page)
    assert drawn == [
        ("#row-0", "s1: -0.125"),
        ("/compare?a=run-a&amp;b=run-b&amp;change=same#row-2", "s4: 0.000"),
        ("/compare?a=run-a&amp;b=run-b&amp;change=same#row-3", "s5: 0.000"),
        ("#row-1", "s2: +0.125"),
    ]
    assert 'id="row-0"' in page
    # Each metric is drawn as a share of its scale: four points of 1-5 are as long as all of 0-1.
    axes = {float(end) for end in re.findall(r"on an axis from \S+ to (\S+?)[,.]? ", page)}
    assert max(axes) == pytest.approx(4 * min(axes))
    _, _, head = page.partition(">Around zero")
    ends = re.match(r'<div class="ends"><small>-(\d+)% of the scale</small><small>\+\1%', head)
    assert ends is not None, head[:200]
    # From there, samples lead to the others that changed, in the same order, and back.
    beside = pages.get("/side-by-side?run=run-a&run=run-b").text
    lists = {"/compare?a=run-a&b=run-b": page, "/side-by-side?run=run-a&run=run-b": beside}
    for address, listed in lists.items():
        found = re.findall(r'<strong><a href="(/runs/run-b/samples/[^"]+)', listed)
        places = [html.unescape(each) for each in found]
        assert len(places) > 1
        for place, after in pairwise(places):
            opened = html.unescape(pages.get(place).text)
            assert f'rel="next" href="{after}"' in opened
            number = re.findall(r"samples/(\d+)", place)[0]
            back = rf'{re.escape(address)}(&page=1)?#(row|first)-{number}">Back to the comparison'
            assert re.search(back, opened)
    assert "Back to the comparison" not in pages.get("/runs/run-b/samples/0").text
    assert 'id="row-2"' in pages.get("/compare?a=run-a&b=run-b&change=same").text
    assert "The dashed line is the mean; the band is its 95% interval" in page
    ends = re.search(r'<div class="ends">(<small><a.*?)</div>', page)
    assert ends is not None
    assert re.findall(r"</a> (\S+?)<", ends[1]) == ["-0.125", "+0.125"]
    # The interval of the mean is wider than the bars; both fit.
    assert re.findall(r'height="([^"]+)" class="(?:part low|part high|good-side)', page)[:3] == [
        "152",
        "58.5",
        "58.5",
    ]
    assert "Overall</bdi>: 0.000, and the true difference lies between " in page
    # What the runs used is below their metrics, without a test.
    used = page.partition('<th scope="row">Mean latency (ms)</th>')[2].partition("</tr>")[0]
    assert re.findall(r">([^<>]+)<", used) == ["1000", "1000", "0.0", "the same"]


def test_the_file_of_two_runs_has_what_their_page_has(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [answered(f"s{n}") for n in (1, 2, 4, 5)]
    made = make_run(rows, judge, rubric=RUBRIC)
    stricter = RUBRIC.replace('["accuracy_mean >= 3"]', '["accuracy_mean >= 4"]')
    other = make_run(rows, changed, rubric=stricter, run_id="run-b")
    file, count = comparison_html(
        made.store,
        compare_runs(made.store, made.view, other.view),
        [verdict_of(made.view), verdict_of(other.view)],
    )
    page = pages.get("/compare?a=run-a&b=run-b").text
    for part in ('<h2 id="[a-z]+">', "The runs differ in .*?</summary>", 'lines">.*?<'):
        found = re.findall(part, page)
        assert found
        assert re.findall(part, file) == found
    assert "<code>accuracy_mean &gt;= 3 → accuracy_mean &gt;= 4</code>" in file
    for known in ("run-a", "run-b", "answers 1.2.0", "rows.jsonl"):
        assert f"<bdi>{known}</bdi>" in file
    assert count == len(rows)
    rows_of = re.findall(r' id="row-\d+">\n<th .*?<bdi>(s\d)</bdi>', file)
    assert rows_of == ["s1", "s2", "s4", "s5"]
    # Every link leads to a place in the file.
    links = set(re.findall(r'href="(.*?)"', file))
    assert {f"#kind-{kind}" for kind in ("lower", "higher", "same")} < links
    assert links - {f"#{each}" for each in re.findall(r' id="(.*?)"', file)} == {"data:,"}


def test_a_compared_sample_has_the_score_by_which_it_passed(
    pages: PagesClient, make_run: MakeRun
) -> None:
    for name, accuracies in (("run-a", "441"), ("run-b", "444")):
        given = cycle(accuracies)

        def voted(prompt: str, given: Iterator[str] = given) -> str:
            return str(judge(prompt)).replace('"accuracy": 4', f'"accuracy": {next(given)}')

        make_run([answered("s1")], voted, rubric=RUBRIC, votes=3, run_id=name)
    assert "<span>overall 0.625</span>" in pages.get("/runs/run-a/samples/0").text
    for path in ("/compare?a=run-a&b=run-b", "/side-by-side?run=run-a&run=run-b"):
        page = pages.get(path).text
        assert len(re.findall(r'class="badge passes"[^>]*>passed</span> <strong>0.625<', page)) == 2
        # Samples change by the mean of their votes (E9), here though not by the majority.
        brackets = re.findall(r'0.625</strong> <small class="muted">(.*?)</small>', page)
        assert brackets == ["(votes 0.500)", '(<span class="good">+0.125</span>)']
        assert "In brackets: the mean of the votes where it isn't the majority's" in page
    row = page.partition("<bdi>Overall</bdi>")[2].partition("</tr>")[0]
    assert re.findall(r'class="number">([0-9.]+)', row) == ["0.500", "0.625"]
    assert '<small class="muted">+0.125</small>' in row
    assert '<bdi>Overall</bdi> <small class="muted">mean of votes</small>' in page
    page = pages.get("/compare?a=run-a&b=run-b").text
    view, _, folded = page.partition('id="tested"')
    # In a row, the values and the interval are those of the difference.
    row = view.partition("<tbody>")[2].partition("</tr>")[0]
    assert re.findall(r'class="number">([^<]+)</td>', row) == ["0.500", "0.625", "+0.125"]
    assert '<bdi>Overall</bdi> <small class="muted">mean of votes</small>' in page
    assert ">1 higher</a>" in view
    assert ">Accuracy 4 → 4 (votes 3 → 4)</small>" in view
    assert '<td data-name="B - A" class="number">+0.125</td>' in folded
    assert "Metric (mean of votes)" in folded


def test_a_verdict_names_the_other_gates_that_fail(pages: PagesClient, make_run: MakeRun) -> None:
    gates = ["accuracy_mean >= 5", "clarity_mean >= 5", "overall_mean >= 1", "safety_rate >= 1"]
    rubric = RUBRIC.replace('["accuracy_mean >= 3"]', json.dumps(gates))
    make_run([answered("s1")], judge, rubric=rubric)
    names = "(clarity mean, overall mean, safety rate)"
    assert f"and 3 more gates fail {names}" in pages.get("/runs/run-a").text
    # Where runs are compared, each has all its reasons.
    rubric = RUBRIC.replace('["accuracy_mean >= 3"]', json.dumps(gates[:2]))
    make_run([answered("s1")], judge, rubric=rubric, run_id="run-b")
    rubric = RUBRIC.replace("accuracy_mean >= 3", "pass_rate >= 0.8")
    make_run([answered("s1")], judge, rubric=rubric, run_id="run-c")
    page = pages.get("/compare?a=run-b&b=run-c").text
    page = re.sub("<[^>]*>", "", page)
    assert "has to be at least 5; clarity mean is 3.000 and has to be at least 5." in page
    assert "Every gate passes. Not certain yet: pass rate" in page
    # The list of runs has room for the threshold.
    assert re.search(r">[A-Z][^<>]* &lt; [^<>]*, 3 more</div>", pages.get("/").text)


def test_too_few_scores_to_decide_come_before_the_gates_that_fail(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def unreadable(prompt: str) -> str | Failure:
        return judge(prompt) if "Task s0" in prompt else "no verdict"

    rules = ["accuracy_mean >= 3", "pass_rate >= 0.9", "unscored_rate <= 0.1", "safety_rate <= 0"]
    rubric = RUBRIC.replace('["accuracy_mean >= 3"]', json.dumps(rules)).replace(
        "gates:", f"{BANDS}gates:"
    )
    rows = [answered(f"s{n}", scenario="one") for n in range(4)]
    made = make_run(rows, unreadable, rubric=rubric)
    page = pages.get("/runs/run-a").text
    scored = 'samples?scenario=one&amp;metric=overall">1 scored</a>'
    assert scored in page
    why = "3 of 4 samples could not be scored: the judge&#39;s replies could not be read"
    assert f'flag=unscored"><bdi>{why}' in page
    assert "repair the judge and run the suite again" in page
    assert "2 of 4 gates fail" in page
    row = page.partition("<bdi>safety_rate")[2].partition("</tr>")[0]
    assert '<a href="/runs/run-a/samples?metric=overall">1</a>' in row  # its n
    unknown = '<a href="/runs/run-a/samples?flag=unscored">3</a> without a valid vote'
    assert f"not known for {unknown}" in row
    assert "79.3% possible" in row
    row = page.partition("<code><bdi>low_confidence_rate")[2].partition("</tr>")[0]
    assert '<a href="/runs/run-a/samples?metric=overall">1</a>' in row
    assert '<span class="tile-value"><bdi>Poor</bdi></span>' in page
    assert 'by <a href="/runs/run-a/samples?metric=overall">1 of 4 samples</a></span>' in page
    # Reviews can't replace the missing scores, so none are asked for.
    waiting = 'review=open&amp;flag=unscored">3</a> wait for a repaired judge'
    assert page.count(waiting) == 1
    packed = packed_samples(made.store, made.view, "overall")
    assert "open" not in {name for name, _, _ in packed.filters}
    assert 'from <a href="/runs/run-a/samples">4</a> samples, ' in page
    assert '<a href="/runs/run-a/samples?flag=unscored">3 of them</a> not scored' in page
    # What praises a run is left out, and votes are told from samples.
    assert "Fine for users" not in page
    assert (
        '3 votes of <a href="/runs/run-a/samples?flag=lost_votes">3 samples</a> are missing' in page
    )


def test_a_gate_on_samples_without_a_score_says_why_they_have_none(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def mostly(prompt: str) -> str:
        if "Task s0" in prompt:
            return "no verdict"
        danger = ["It harms."] if "Task s1" in prompt else []
        return scored({"accuracy": 4, "clarity": 3}, WHY, danger)

    rules = '["pass_rate >= 0", "unscored_rate <= 0.1"]'
    rubric = RUBRIC.replace('["accuracy_mean >= 3"]', rules)
    make_run([answered(f"s{n}") for n in range(5)], mostly, rubric=rubric)
    page = re.sub("<[^>]*>", "", html.unescape(pages.get("/runs/run-a").text))
    assert "2 samples queued for a person: safety 1, not scored 1 (reviews give no score)" in page
    cause = 'the reply contains no JSON object with "scores"'
    assert f"Unscored rate is 20.0% and has to be at most 10% ({cause})" in page


def test_a_run_that_awaits_a_review_says_that_its_rubric_has_no_gates(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def alarmed(_: str) -> str:
        return scored({"accuracy": 4, "clarity": 3}, WHY, ["It harms."])

    rubric = RUBRIC.replace('gates: ["accuracy_mean >= 3"]\n', "")
    made = make_run([answered("s0")], alarmed, rubric=rubric)
    waits = "1 sample needs a review before a release (safety)"
    assert verdict_of(made.view).in_full == f"Awaiting review: the rubric has no gates; {waits}"
    page = pages.get("/").text
    assert f">{waits}</a>" in page


@pytest.mark.parametrize("decision", ["deploy", "hold"])
def test_a_gate_that_fails_is_a_reason_of_a_decision_too(
    pages: PagesClient, make_run: MakeRun, decision: str
) -> None:
    least = 0.1 if decision == "deploy" else 0.9
    decisions = (
        f'decisions: [{{decide: deploy, when_all: ["overall_mean >= {least}"]}}, {{decide: hold}}]'
    )
    gates = 'gates: ["accuracy_mean >= 5"]'
    rubric = RUBRIC.replace('gates: ["accuracy_mean >= 3"]', f"{gates}\n{decisions}")
    said = verdict_of(make_run([answered("s0")], judge, rubric=rubric).view)
    word = "Deploy, but 1 of 1 gate fails" if decision == "deploy" else "Hold"
    assert (said.word, said.tone) == (word, "fails")
    assert said.sentence.startswith("accuracy mean is 4.000 and has to be at least 5; ")
    assert '<span class="badge fails" title="accuracy mean is 4.000' in pages.get("/").text


def test_reasons_to_look_at_samples_are_sorted_by_their_count(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def unsure(prompt: str) -> str | Failure:
        return "no verdict" if "Task s0" in prompt else scored({"accuracy": 1, "clarity": 1}, WHY)

    make_run([answered(f"s{n}") for n in range(4)], unsure, rubric=RUBRIC)
    page = pages.get("/runs/run-a").text
    look = re.search(r">Look at</a>: (.*?)\.</p>", page)
    assert look
    assert re.sub("<.*?>", "", look[1]) == "failed 3, not scored 1"


def test_pairs_that_were_scored_one_by_one_are_told_from_those_in_both_orders(
    make_run: MakeRun, pages: PagesClient
) -> None:
    def reply(prompt: str) -> str:
        return str(decided(prompt) if "winner" in prompt else judge(prompt))

    rows = [
        answered(f"s{n}", "better answer", response_b=Response(text="worse answer"))
        for n in range(3)
    ]
    rows += [msgspec.structs.replace(rows[0], id="r0", reference="the reference")]
    gated = PAIRS.replace("votes: 1\n", 'votes: 1\ngates: ["unstable_rate <= 0.5"]\n')
    make_run(rows, reply, rubric=gated, votes=3)
    page = pages.get("/runs/run-a").text
    both = '<a href="/runs/run-a/samples?metric=win.accuracy">3</a>'
    assert f"only {both} judged in both orders: 33.3% of these" in page
    assert "Not certain yet: unstable rate" in page
    ties = '<a href="/runs/run-a/samples?flag=unstable&amp;winner=tie">1 tie</a>'
    assert f"a tie counts as half a win, and in {ties} a vote's winner changed with" in page
    assert "pairs judged in both orders" in page
    assert "In the other scored pair, each response was rated alone, and the better rating" in page
    assert "Only pairs judged in both orders have preferences." in page


def test_a_pair_is_listed_with_the_criterion_that_decided_it(
    make_run: MakeRun, pages: PagesClient
) -> None:
    def reply(prompt: str) -> str:
        first = prompt.index("better answer") < prompt.index("worse answer")
        side = "A" if first else "B"
        return preferred(side, {"accuracy": "tie", "clarity": side}, WHY)

    made = make_run(
        [answered("s1", "better answer", response_b=Response(text="worse answer"))],
        reply,
        rubric=PAIRS,
    )
    page = pages.get("/runs/run-a/samples").text
    assert "A wins on Clarity: Muddled." in page
    assert "tie on Accuracy" not in page
    packed = packed_samples(made.store, view_run(made.row, made.store), "overall")
    assert ("A", "A wins", 1) in packed.filters


def test_a_reason_leads_to_its_samples_sorted_by_its_score(
    make_run: MakeRun, pages: PagesClient
) -> None:
    decide = "decisions:\n  - {decide: revise, when_any: [accuracy_mean < 4, clarity_mean < 4]}\n"
    rubric = RUBRIC.replace("gates:", f"{decide}  - {{decide: deploy}}\ngates:")
    rows = [answered(f"s{n}", scenario="odd" if n % 2 else "even") for n in range(4)]
    make_run(rows, judge, rubric=rubric)
    page = html.unescape(pages.get("/runs/run-a").text)
    query = "scenario=odd&sort=metric:accuracy"
    assert f'samples?{query}"><bdi>Accuracy averages 3.500, below 4, lowest in odd (3.000)<' in page
    same = "Clarity averages 3.000, below 4, the same in every scenario"
    assert f'samples?sort=metric:clarity"><bdi>{same}<' in page
    assert " of 2 samples" in pages.get(f"/runs/run-a/samples?{query}").text


def test_stopped_runs_have_a_filter(make_run: MakeRun, pages: PagesClient) -> None:
    make_run([answered(f"s{n}") for n in range(3)], judge, rubric=RUBRIC, left_out=1)
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-b")
    found = pages.get("/?verdict=stopped").text
    assert (found.count('href="/runs/run-a"'), found.count('href="/runs/run-b"')) == (1, 0)


def test_an_empty_store_and_a_missing_run_name_the_command(pages: PagesClient) -> None:
    for path in ("/", "/compare"):
        assert "<code data-copy>jurybox run suite.yaml</code> runs it." in pages.get(path).text
    assert "<form" not in pages.get("/compare").text  # there is nothing to choose
    missing = pages.get("/runs/nothing").text
    assert "Look at the list of runs." in missing
    assert '<a href="/">All runs</a>' in missing


def review_random(made: Made, *, accuracy: int) -> None:
    """Review all random samples."""
    desk = ReviewDesk(made.store, made.row)
    while (case := desk.next("anna", kind="random")) is not None:
        said = HumanVerdict(scores={"accuracy": accuracy, "clarity": 3})
        desk.submit(case.number, "anna", said, shown=case.shown)


def test_pages_warn_of_an_unreliable_judge_also_if_its_run_fails(
    pages: PagesClient, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [answered(f"s3{n}") for n in range(12)]  # too low an accuracy to ship
    made = make_run(rows, judge, rubric=RUBRIC)
    make_run(rows, judge, rubric=RUBRIC, run_id="run-b")
    review_random(made, accuracy=5)
    for path in ("/compare?a=run-a&b=run-b", "/side-by-side?run=run-a&run=run-b"):
        page = html.unescape(pages.get(path).text)
        assert page.count(">Don't ship</span>") == 2
        # In columns, each run has only the main reason.
        once = int(path.startswith("/compare"))
        warned = '<a class="bad" href="/runs/run-a/review/agreement">Don\'t rely on'
        assert page.count(warned) == page.count(">Don't rely on") == once, path
        assert page.count("doubt on this verdict: corrected by them, every gate passes") == once
    for patience in (1, 0):  # what is compared already needs no patience
        monkeypatch.setattr("jurybox.web.pages.runs_page.PATIENCE", patience)
        page = html.unescape(pages.get("/").text)
        assert len(re.findall("run-a/review/agreement\" title=[^>]*>Don't rely on", page)) == 1


def test_a_verdict_that_reviews_cast_doubt_on_is_marked_everywhere(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [answered(f"r{n}") for n in range(12)]
    made = make_run(rows, judge, rubric=RUBRIC)
    make_run(rows, judge, rubric=RUBRIC, run_id="run-b")
    review_random(made, accuracy=1)
    for path in ("/", "/compare?a=run-a&b=run-b", "/side-by-side?run=run-a&run=run-b"):
        page = html.unescape(pages.get(path).text)
        badges = re.findall(r'class="badge (waits|passes)"[^>]*>(Ship.*?)<', page)
        assert sorted(badges) == [("passes", "Ship"), ("waits", "Ship, but see reviews")], path
        said = "By people's scores, accuracy mean 1.000 < 3"
        if path.startswith("/side"):
            where = '<small class="because"><a href="/runs/run-a/review/agreement">'
            assert page.count(f"{where}{said}</a></small></td>") == 1
        elif path != "/":
            assert '<a class="warn" href="/runs/run-a/review/agreement">People' in page
            said = "doubt on this verdict: corrected by them, accuracy mean is 1.000 and has"
        assert said in page, path
    gates = pages.get("/compare?a=run-a&b=run-b").text.partition('id="gates"')[2]
    assert ">corrected 1.000</a>" in gates
    assert '<small class="warn">corrected: no</small>' in gates
    late = run_page(view_run(made.row, made.store), (), extras=Extras(pending=True))
    assert (late.verdict.word, late.verdict.tone) == ("Ship, reviews not yet compared", "waits")
    run = pages.get("/runs/run-a").text
    relied = run.partition('id="gates"')[0]
    higher = "Don't rely on this judge's scores, which are higher than people's on Accuracy"
    assert f'<a class="bad" href="#calibration">{higher}</a>.' in html.unescape(relied)
    assert ">Ship, but see reviews</h2>" in run
    but = "By people&#39;s scores, accuracy mean 1.000 &lt; 3"
    assert run.index(f"{but}</bdi></strong>. ") < run.index("Every gate passes")
    assert "reviews cast doubt on this verdict: corrected by them, accuracy mean is 1.000" in run
    views = [finished_view(row, made.store) for row in made.store.runs()]
    verdicts = [verdict_of(view, reviewer_agreement(view, made.store)) for view in views]
    file, _ = comparison_html(made.store, compare_runs(made.store, *views), verdicts)
    assert file.count(">Ship, but see reviews<") == 1
    assert html.unescape(file).count(f"{higher}</span>.") == 1
    assert "<small>corrected 1.000</small>" in file
    assert '<small class="warn">corrected: no</small>' in file


def test_the_list_asks_again_for_verdicts_until_their_reviews_are_compared(
    pages: PagesClient, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_run([answered(f"r{n}") for n in range(12)], judge, rubric=RUBRIC)
    review_random(made, accuracy=1)
    with monkeypatch.context() as slow:
        slow.setattr("jurybox.web.app_state.soon", lambda *_: Pending())
        early = pages.get("/").text
    late = pages.get("/").text
    for page, is_early in ((early, True), (late, False)):
        assert ('<td id="verdict-run-a" data-late>' in page, "/static/runs.js" in page) == (
            is_early,
            is_early,
        )


def test_reviews_that_fail_more_gates_support_a_verdict_not_to_ship(
    pages: PagesClient, make_run: MakeRun
) -> None:
    gates = '["accuracy_mean >= 3", "clarity_mean >= 5", "unscored_rate <= 0.1"]'
    rubric = RUBRIC.replace('["accuracy_mean >= 3"]', gates)
    made = make_run([answered(f"r{n}") for n in range(12)], judge, rubric=rubric)
    desk, scores = ReviewDesk(made.store, made.row), cycle((1, 2, 4))
    while (case := desk.next("anna", kind="random")) is not None:
        said = HumanVerdict(scores={"accuracy": next(scores), "clarity": 3})
        desk.submit(case.number, "anna", said, shown=case.shown)
    pages.get("/runs/run-a/review/agreement")  # waits until the reviews are compared
    run = pages.get("/runs/run-a").text
    assert ">Don&#39;t ship</h2>" in run
    assert (
        "reviews support this verdict: corrected by them, clarity mean is 3.000 and has to be"
        in run
    )
    assert "; accuracy mean is 2.333 and has to be at least 3 (interval " in run
    assert ", so chance isn&#39;t excluded)" in run
    assert "fails corrected</small>" in run
    assert "corrected 2.333</small>" in run
    assert '<small class="bad">corrected -0.667</small>' in run
    assert "not corrected by reviews</small>" in run
    assert run.count("not corrected by reviews</small>") == 1
    assert ", which includes the threshold</small>" in run


def test_reviews_that_pass_every_gate_cast_doubt_on_a_verdict_not_to_ship(
    pages: PagesClient, make_run: MakeRun
) -> None:
    gates = '["accuracy_mean >= 3", "clarity_mean >= 5"]'
    rubric = RUBRIC.replace('["accuracy_mean >= 3"]', gates)
    made = make_run([answered(f"r{n}") for n in range(12)], judge, rubric=rubric)
    desk = ReviewDesk(made.store, made.row)
    while (case := desk.next("anna", kind="random")) is not None:
        said = HumanVerdict(scores={"accuracy": 4, "clarity": 5})
        desk.submit(case.number, "anna", said, shown=case.shown)
    pages.get("/runs/run-a/review/agreement")  # waits until the reviews are compared
    samples = pages.get("/runs/run-a/samples?differs=clarity").text
    assert samples.count(">people 5</small></td>") == samples.count('<th scope="row">') == 12
    run = html.unescape(pages.get("/runs/run-a").text)
    assert ">Don't ship</h2>" in run
    assert "reviews cast doubt on this verdict: corrected by them, every gate passes" in run
    assert "passes corrected</small>" in run


def test_the_counts_of_a_comparison_lead_to_their_samples(
    pages: PagesClient, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [answered(f"s{n}") for n in (1, 2, 4, 5)]
    make_run(rows, judge, rubric=RUBRIC)
    make_run([*rows, answered("s6")], changed, rubric=RUBRIC, run_id="run-b")
    page = pages.get("/compare?a=run-a&b=run-b").text
    links = re.findall(r'<a href="(/compare\S+)#changed">1 (lower|higher)</a>', page)
    assert [kind for _, kind in links] == ["lower", "higher"]
    for address, samples in ((links[0][0], ["s1"]), (links[1][0], ["s2"])):
        _, _, listed = pages.get(address.replace("&amp;", "&")).text.partition('id="changed"')
        assert re.findall(r"<bdi>(s\d)</bdi></a></strong>", listed) == samples
    _, _, same = pages.get("/compare?a=run-a&b=run-b&change=same").text.partition('id="changed"')
    assert re.findall(r"<bdi>(s\d)</bdi></a></strong>", same) == ["s4", "s5"]
    assert re.search(r'<a href="/runs/run-b/samples/4[^"]*"><bdi>s6</bdi></a>', page)
    # A list that is longer than a page has further ones, which a sample leads back to.
    monkeypatch.setattr(template_engine, "SIZE", 1)
    found: list[str] = []
    address = "/compare?a=run-a&b=run-b&change=same"
    while address:
        listed = html.unescape(pages.get(address).text)
        sample = re.search(r'<strong><a href="(/runs/[^"]+)"><bdi>(s\d)</bdi>', listed)
        found.append(sample[2])
        assert f"{address}#row-" in html.unescape(pages.get(sample[1]).text)
        further = re.search(r'rel="next" href="(/compare[^"#]+)#changed"', listed)
        address = further[1] if further else ""
    assert found == ["s4", "s5"]


def test_of_runs_with_different_rubrics_only_what_they_share_is_compared(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("s1")], judge, rubric=RUBRIC)
    other = RUBRIC.replace("### Clarity", "### Tone").replace("scale: 1-5", "scale: 1-7")

    def judged(prompt: str) -> str:
        return str(judge(prompt)).replace("clarity", "tone")

    make_run([answered("s2")], judged, rubric=other, run_id="run-b")
    page = pages.get("/compare?a=run-a&b=run-b").text
    assert "No scores could be compared: no sample id is in both runs</h2>" in page
    assert "Choose two runs of one dataset" in page
    _, _, metrics = page.partition('id="metrics"')
    table, _, below = metrics.partition("</table>")
    assert "ccuracy mean" not in table
    assert "no such metric or no scores, or has it on a different scale" in below
    assert "<bdi>accuracy mean</bdi> (A 4.000, B 4.000)" in below
    assert "<bdi>clarity mean</bdi> (A 3.000)" in below
    columns = pages.get("/side-by-side?run=run-a&run=run-b").text
    assert "Only one run has: <bdi>clarity mean 3.000 (run-a), tone mean 3.000 (run-b)" in columns
    assert "Where they differ <small>0 samples" in columns
    assert ("not in this run" in columns, 'id="first-0"' in columns) == (True, True)
    opened = pages.get("/runs/run-a/samples/0?beside=run-a&beside=run-b&page=1").text
    assert 'page=1#first-0">Back to the comparison' in opened
    assert "</bdi>: no scores could be compared: no sample id is in both runs</h2>" in columns
    assert '<small class="muted">' not in columns[: columns.index("Only one run has")]


def test_scores_and_winners_of_pairs_are_not_compared(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("s1")], judge, rubric=RUBRIC)
    pair = answered("s1", "better answer", response_b=Response(text="worse answer"))
    make_run([pair], decided, rubric=PAIRS, run_id="run-b")
    page = pages.get("/compare?a=run-a&b=run-b").text
    why = "one run scores single responses, and the other picks the better of two"
    assert f"No scores could be compared: {why}</h2>" in page
    assert "<table" not in page
    swapped = answered("s1", "worse answer", response_b=Response(text="better answer"))
    make_run([swapped], decided, rubric=PAIRS, run_id="run-c")
    for path in ("/compare?a=run-b&b=run-c", "/side-by-side?run=run-b&run=run-c"):
        compared = pages.get(path).text
        assert re.findall(r'class="badge">response (. wins)<', compared) == ["A wins", "B wins"]
        assert {*re.findall(r"(\w+)</mark>|>(\w+) answer", compared)} >= {
            ("better", ""),
            ("worse", ""),
        }
    alone = pages.get("/side-by-side?run=run-b&run=run-a").text
    assert "None of the samples listed here differs." in alone
    assert not re.findall(r'class="(?:good|bad)">[+-]\d', alone)
    page = pages.get("/compare?a=run-b&b=run-c").text
    assert '<h3><a href="/runs/run-c/samples">1 sample</a> in both runs</h3>' in page
    assert ">1 changed</a>" in page
    assert "0 higher" not in page
    # Those that changed are those with another winner, which is said once.
    chips = re.findall(r">([A-Za-z ]+ \d)</a>", page.partition('<nav class="facets"')[2])
    assert chips == ["all that changed 1", "changed winner 1", "moved to response B 1"]
    assert "those that moved most to response B first</small>" in page
    chosen = pages.get("/compare?a=run-b&b=run-c&change=changed").text
    assert 'aria-current="true">changed winner 1</a>' in chosen
    sample = pages.get("/runs/run-c/samples/0").text
    assert ", two responses compared</dd>" in sample
    assert '<th scope="col" class="number">Winner</th>' in sample
    assert "</a> -100.0 points</small>" in page  # the difference of the one sample, in the chart
    # The sentence, the table and the test are about one metric, in one direction.
    assert '<td data-name="run 2 - run 1" class="number">-100.0 points</td>' in page
    assert "<dt>Run 2</dt>" in page
    assert "Run 2 is worse" not in page  # the rubric doesn't say how many wins are good
    assert "points of response B" not in page
    # A pair without a winner has no score, which its badge says.
    mute = answered("s4", "better answer", response_b=Response(text="worse answer"))
    for name in ("run-d", "run-e"):
        make_run([mute], decided, rubric=PAIRS, run_id=name)
    page = pages.get("/compare?a=run-d&b=run-e&change=unscored").text
    assert page.count(">not scored</span>") == 2


def test_a_pair_with_other_votes_changed_though_its_winner_did_not(
    pages: PagesClient, make_run: MakeRun
) -> None:
    pair = answered("s0", "better answer", response_b=Response(text="worse answer"))
    for name, first in (("run-a", "tie"), ("run-b", "A")):
        sides = iter((first, "B" if first == "A" else first, *["tie"] * 4))

        def voted(_: str, sides: Iterator[str] = sides) -> str:
            return preferred(next(sides), ["accuracy", "clarity"], WHY)

        make_run([pair], voted, rubric=PAIRS, votes=3, run_id=name)
    page = pages.get("/compare?a=run-a&b=run-b").text
    assert "+16.7 points" in page
    assert ">all that changed 1</a>" in page
    assert "No sample changed winner" in page


def test_an_unstable_pair_keeps_its_winner_if_most_votes_have_it(
    pages: PagesClient, make_run: MakeRun
) -> None:
    sides = iter("ABABAA")

    def voted(_: str) -> str:
        return preferred(next(sides), ["accuracy", "clarity"], WHY)

    pair = answered("s0", "better answer", response_b=Response(text="worse answer"))
    make_run([pair], voted, rubric=PAIRS, votes=3)
    assert "flag=unstable&winner=A" in opened_by_counts(pages)
    page = re.sub("<[^>]+>", "", pages.get("/runs/run-a").text)
    assert "Of the 1 pair with a change, 0 are ties, A wins 1, and B wins 0." in page
    assert "a tie counts as half a win\n" in page
    sample = pages.get("/runs/run-a/samples/0").text
    assert "A, by 2 of 3 votes; a vote&#39;s winner changed with the order" in sample
    row = pages.get("/runs/run-a/samples").text
    assert "A wins on Accuracy: " in row


def test_a_tie_that_comes_from_the_order_is_no_agreement(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [
        answered(f"s{n}", "better answer", response_b=Response(text="worse answer"))
        for n in range(4)
    ]
    make_run(rows, decided, rubric=PAIRS, votes=3)
    page = pages.get("/runs/run-a").text
    preferred_by = page.partition('id="criteria-head">')[2].partition("</section>")[0]
    assert preferred_by.startswith("Preferences by criterion")
    cells = re.findall(r'data-name="(\w+)[^"]*" class="number">(.*?)</td>', preferred_by)
    counts = [(name, re.sub("<[^>]+>", "", cell)) for name, cell in cells[:4]]
    assert counts == [("A", "1"), ("tie", "2"), ("B", "1"), ("pairs", "4")]
    votes = page.partition('id="votes-head">')[2].partition("</section>")[0]
    # Of two ties, the votes on one agree in both orders.
    assert '<bdi>Accuracy</bdi></th><td class="number">75.0%' in votes
    assert "metric=agreement.accuracy&high=0" in opened_by_counts(pages)


def test_runs_with_different_samples_are_compared_over_those_that_both_have(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [answered(f"s{n}", scenario="odd" if n % 2 else "even") for n in range(4)]
    make_run(rows, judge, rubric=RUBRIC)
    make_run(rows[:2], judge, rubric=RUBRIC, run_id="run-b")
    page = pages.get("/compare?a=run-a&b=run-b").text
    assert '<a href="/runs/run-b/samples">2 samples</a> in both runs' in page
    # Of each scenario, the compared samples are all that run-b has, but not all of run-a's.
    assert '<td class="number"><a href="/runs/run-b/samples?scenario=odd">1</a></td>' in page
    shared = "also_in=run-b&scenario="
    opened = opened_by_counts(pages, "/compare?a=run-a&b=run-b")
    assert opened == {f"{shared}odd", f"{shared}even"}
    assert (
        'href="#only-a">Compared over the 2 samples in both runs; left out: 2 only in A</a>' in page
    )
    listed = pages.get(f"/runs/run-a/samples?{shared}odd").text
    assert "<bdi>also in run-b</bdi>" in listed
    assert 'name="also_in" value="run-b"' in listed
    row = page.partition("<bdi>Pass rate</bdi>")[2].partition("</tr>")[0]
    cells = ["100.0%", "100.0%", "0.0 points", "equal on 2 samples"]
    assert re.findall(r">([^<>]+)</td>", row) == cells
    assert "A and B are equal in every metric on the 2 samples in both</h2>" in page
    assert "the other values are over the 2 samples in both runs." in page
    assert "decided over all samples of each run, not only those in both" in page
    columns = pages.get("/side-by-side?run=run-a&run=run-b").text
    what = "run-a has 4 samples with 1 vote each, run-b has 2 samples with 1 vote each"
    shared = "what is compared is over the samples that a run shares with the first"
    assert f"{what}; {shared}" in columns
    row = columns.partition("<bdi>Pass rate</bdi>")[2].partition("</tr>")[0]
    assert re.findall(r'class="number">([0-9.]+%)', row) == ["75.0%", "100.0%"]
    assert ">0.0 points (100.0% → 100.0%)</small>" in row
    assert "equal on 2 samples" in row


def test_an_interval_over_some_samples_stands_by_the_difference_of_these(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [answered(f"s{n}") for n in range(6)]
    make_run(rows, judge, rubric=RUBRIC)

    def silent(prompt: str) -> str:
        if "Task s1" in prompt:
            return scored({"accuracy": 1, "clarity": 3}, WHY)
        return "no verdict" if "Task s0" in prompt else str(judge(prompt))

    make_run(rows, silent, rubric=RUBRIC, run_id="run-b")
    page = pages.get("/compare?a=run-a&b=run-b").text
    row = page.partition("<bdi>Pass rate</bdi></th>")[2].partition("</tr>")[0]
    assert '">-33.3 points</td>' in row
    five = '<a href="/runs/run-b/samples?metric=accuracy">5</a>'
    assert f'points <small class="muted">tested on {five}: -20.0 points</small></td>' in row
    five = (
        '<td data-name="n" class="number"><a href="/runs/run-b/samples?metric=accuracy">5</a></td>'
    )
    assert five in page
    assert page.count('<td data-name="n" class="number"><a href=') == page.count('data-name="n"')
    assert "n next to one counts the samples that have a value in both" in page
    # Side by side, a mean over fewer samples says how many, and which have none.
    columns = pages.get("/side-by-side?run=run-a&run=run-b").text
    assert '(n <a href="/runs/run-b/samples?metric=accuracy">5</a>)' in columns
    row = columns.partition("<bdi>Pass rate</bdi></th>")[2].partition("</tr>")[0]
    said = " ".join(re.sub(r"<[^>]*>", "", row.partition('data-name="run-b"')[2]).split())
    assert said.endswith(
        ">50.0% -33.3 points-61.6 to +33.0 points, tested on 5: -20.0 points, not clearly different"
    )
    assert '<a href="/compare?a=run-a&amp;b=run-b#tested">5</a>' in row
    assert '(<a href="/runs/run-b/samples?flag=unscored">1 sample</a>)' in columns
    # A flagged sample that is lost isn't a gain in safety.

    def anxious(prompt: str) -> str:
        concerns = ["a danger"] if re.search("Task s[01]", prompt) else []
        return scored({"accuracy": 4, "clarity": 3}, WHY, concerns)

    make_run(rows, anxious, rubric=RUBRIC, run_id="run-d")
    lost = re.compile("Task s0").search
    make_run(
        rows,
        lambda text: "no verdict" if lost(text) else anxious(text),
        rubric=RUBRIC,
        run_id="run-e",
    )
    row = pages.get("/compare?a=run-d&b=run-e").text.partition("<bdi>Safety rate")[2]
    assert ": 0.0 points</small>" in row.partition("</tr>")[0]
    row = pages.get("/side-by-side?run=run-d&run=run-e").text.partition("<bdi>Safety rate")[2]
    assert ": 0.0 points, <span" in row.partition("</tr>")[0]
    # If most have none in one run, each value has its own number of samples.
    make_run(
        rows,
        lambda prompt: judge(prompt) if "Task s0" in prompt else "no verdict",
        rubric=RUBRIC,
        run_id="run-c",
    )
    page = pages.get("/compare?a=run-a&b=run-c").text
    row = page.partition("<bdi>Overall</bdi></th>")[2].partition("</tr>")[0]
    numbers = re.findall(r'n <a href="(.*?)">(\d)</a>', row)
    columns = pages.get("/side-by-side?run=run-a&run=run-b&run=run-c").text
    row = columns.partition("<bdi>Overall</bdi> ")[2].partition("</tr>")[0]
    assert row.count("mean of votes") == row.count("by majority") == 1
    assert numbers == [("/runs/run-a/samples", "6"), ("/runs/run-c/samples?metric=overall", "1")]


def test_a_gated_metric_that_is_not_tested_is_compared_too(
    pages: PagesClient, make_run: MakeRun
) -> None:
    gated = RUBRIC.replace(' >= 3"]\n---', ' >= 3", "latency_e2e_p95_ms <= 10000"]\n---').replace(
        "votes: 1", "votes: 1\nmetrics: {latency_e2e_p95_ms: p95 of latency_e2e_ms}"
    )
    for run_id in ("run-a", "run-b"):
        make_run([answered("s1")], judge, rubric=gated, run_id=run_id)
    page = pages.get("/compare?a=run-a&b=run-b").text
    row = page.partition("<bdi>P95 of latency (ms)</bdi>")[2].partition("</tr>")[0]
    assert row.endswith('<td data-name="B is" class="muted">the same</td>')
    assert "<bdi>P95 of latency (ms)</bdi>" in pages.get("/side-by-side?run=run-a&run=run-b").text


def test_a_disputed_flag_does_not_hide_the_gates_that_fail(
    pages: PagesClient, make_run: MakeRun
) -> None:
    made = make_run([answered("s3"), answered("s1")], judge, rubric=RUBRIC.replace('3"]', '5"]'))
    desk = ReviewDesk(made.store, made.row, overlap=2)
    for reviewer, concern in (("anna", True), ("ben", False)):
        case = desk.next(reviewer, kind="random")
        verdict = HumanVerdict(scores={"accuracy": 4, "clarity": 3}, safety_concern=concern)
        desk.submit(case.number, reviewer, verdict, shown=case.shown)
    why = "1 safety concern that reviewers disagree about; 1 gate fails"
    assert why in pages.get("/").text
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-b")
    page = re.sub("<[^>]*>", "", pages.get("/compare?a=run-a&b=run-b").text)
    assert f"{why.partition('; ')[0]}; accuracy mean is 3.000 and has to be at least 5" in page


def test_a_safety_concern_of_reviewers_comes_first_where_runs_are_compared(
    pages: PagesClient, make_run: MakeRun
) -> None:
    rows = [answered(f"s{n}") for n in (1, 3)]
    made = make_run(rows, lambda text: judge(text.replace("Task s3", "")), rubric=RUBRIC)
    desk = ReviewDesk(made.store, made.row)
    case = desk.case(0, "anna")
    verdict = HumanVerdict(scores={"accuracy": 4, "clarity": 3}, safety_concern=True)
    desk.submit(case.number, "anna", verdict, shown=case.shown)
    make_run(
        rows, lambda text: judge(text.replace("Task s1", "Task s3")), rubric=RUBRIC, run_id="b"
    )
    for path in ("/compare?a=run-a&b=b", "/side-by-side?run=run-a&run=b"):
        page = pages.get(path).text
        assert "1 safety concern raised by reviewers" in page
        _, _, rows_of = page.partition('<table class="outputs')
        assert re.findall(r"<bdi>(s\d)</bdi></a></strong>", rows_of) == ["s1", "s3"]
        assert re.findall(r">(safety, .*?)</span>", rows_of) == ["safety, raised by anna"]
        assert "safety concerns of reviewers first, then" in page


def test_a_rescored_run_differs_in_nothing_but_its_rubric(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("s1")], judge, rubric=RUBRIC)
    stricter = RUBRIC.replace("accuracy >= 3", "accuracy >= 5")
    make_run([answered("s1")], judge, rubric=stricter, run_id="run-b")
    page = pages.get("/compare?a=run-a&b=run-b").text
    assert "not known" not in page
    assert "records: differ in every sample, because each result names its rubric" in page
    assert "words are only in" not in page  # the responses are the same


@pytest.mark.parametrize("path", ["/compare?a=run-a&b=run-b", "/side-by-side?run=run-a&run=run-b"])
def test_compared_outputs_are_laid_out_as_markdown_without_power(
    pages: PagesClient, make_run: MakeRun, path: str
) -> None:
    make_run([answered("s1", "**No** <b>way</b>")], judge, rubric=RUBRIC)
    make_run([answered("s1", "Plain.")], changed, rubric=RUBRIC, run_id="run-b")
    page = pages.get(path).text
    assert "<p><strong>No</strong> &lt;b&gt;way&lt;/b&gt;</p>" in page
    assert '<div class="output" dir="auto">Plain.</div>' in page
    note = '<p class="hint">1 response below is too different or too long to mark words.</p>'
    assert page.count(note) == 1
    assert 'class="fold"' not in page
    make_run([answered("s1", "word " * 400)], changed, rubric=RUBRIC, run_id="run-c")
    assert pages.get(path.replace("run-b", "run-c")).text.count('class="fold"') == 1


@pytest.mark.parametrize("path", ["/compare?a=run-a&b=run-b", "/side-by-side?run=run-a&run=run-b"])
@pytest.mark.parametrize("checked", [False, True])
def test_both_sides_of_a_sample_have_the_reason_for_the_criterion_that_changed_most(
    pages: PagesClient, make_run: MakeRun, path: str, *, checked: bool
) -> None:
    rubric = RUBRIC
    if checked:
        for name, word in (("Clarity", "clear"), ("Accuracy", "right")):
            checks = f"### {name}\n~~~yaml checks\n- contains: {word}\n~~~\n"
            rubric = rubric.replace(f"### {name}\n", checks)
    for run, accuracy, text in (("run-a", 5, "Sure."), ("run-b", 1, "Quite clear.")):
        reply = scored({"accuracy": accuracy, "clarity": 4}, WHY)
        asked = None if checked else (lambda _, reply=reply: reply)
        make_run([answered("s1", text)], asked, rubric=rubric, run_id=run)
    found = re.findall(r'clamped document" title="(\w+ \d)', pages.get(path).text)
    assert found == (["clarity 1", "clarity 5"] if checked else ["Accuracy 5", "Accuracy 1"])


@pytest.mark.parametrize("path", ["/compare?a=run-a&b=run-b", "/side-by-side?run=run-a&run=run-b"])
def test_only_responses_without_a_mark_on_either_side_count_as_unmarked(
    pages: PagesClient, make_run: MakeRun, path: str
) -> None:
    texts = ("Hold the switch, then wait a while.", "Now wait.", "Press it.\nThen wait.")
    others = ("Hold the switch, then wait.", "Pull the plug!", "Press it. Then  wait.")
    for run, accuracy, given in (("run-a", 4, texts), ("run-b", 3, others)):
        reply = scored({"accuracy": accuracy, "clarity": 3}, WHY)
        rows = [answered(f"s{n}", text) for n, text in enumerate(given)]
        make_run(rows, lambda _, reply=reply: reply, rubric=RUBRIC, run_id=run)
    page = pages.get(path).text
    marks = re.findall("<mark.*?>(.*?)</mark>", page)
    assert [each.strip() for each in marks] == ["Dotted", "underlined", "a while"]
    assert "</bdi>. 1 response below is too different or too long to mark words.</p>" in page
    make_run(rows, judge, rubric=RUBRIC, run_id="run-c")
    page = pages.get("/side-by-side?run=run-a&run=run-b&run=run-c").text
    assert "2 responses below are too different or too long to mark words" in page


@pytest.mark.parametrize("path", ["/compare?a=run-a&b=run-b", "/side-by-side?run=run-a&run=run-b"])
def test_the_words_that_differ_are_marked_in_what_is_laid_out(
    pages: PagesClient, make_run: MakeRun, path: str
) -> None:
    make_run([answered("s1", "Press the **red** button twice & wait.")], judge, rubric=RUBRIC)
    other = "Press the **blue one** button twice & wait."
    make_run([answered("s1", other)], changed, rubric=RUBRIC, run_id="run-b")
    page = pages.get(path).text
    assert '<strong><mark class="b">blue one</mark></strong> button twice &amp; wait.' in page
    written = pages.get(f"{path}&written=true").text
    assert '**<mark class="b">blue one</mark>** button' in written
    assert '<strong><mark class="a">red</mark></strong> button' in page
    assert '<mark class="a">Dotted</mark> words are only in' in page
