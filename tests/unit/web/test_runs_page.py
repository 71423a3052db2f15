"""The list of runs: its columns, order and trends."""

import html
import re
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

import stored_runs
from jurybox.app.rescore_run import rescore_run
from jurybox.app.review_desk import ReviewDesk
from jurybox.engine.records import sealed
from jurybox.judging.flow import Failure
from jurybox.reporting.stored import outcome_of
from jurybox.review.reviews import HumanVerdict
from jurybox.sample import Response
from jurybox.web.pages import runs_page
from pages_client import PagesClient
from stored_runs import MakeRun, answered
from verdicts import preferred, scored

RUBRIC = """---
id: answers
version: 1.2.0
scale: 1-5
votes: 1
pass: ["accuracy >= 3"]
gates: ["accuracy_mean >= 3"]
---
# Answers

## Criteria
### Accuracy
### Clarity
"""


def judge(_: str) -> str:
    """Score every response alike."""
    return scored({"accuracy": 4, "clarity": 3})


def ids(pages: PagesClient, address: str) -> list[str]:
    """Return the runs of the list, in its order."""
    return re.findall(r'"row"><a href="/runs/([^"]*)"', pages.get(address).text)


@pytest.fixture
def three(make_run: MakeRun) -> None:
    """Store three finished runs, each better than the one before, and one that stopped."""
    rows = [answered(f"s{n}") for n in range(4)]
    names = {"run-a": ("Zebra", 0), "run-b": ("apple", 2), "run-c": ("Mango", 4)}
    for place, (run_id, (name, good)) in enumerate(names.items(), 1):

        def jury(prompt: str, good: int = good) -> str:
            number = int(prompt.partition("Task s")[2][0])
            return scored({"accuracy": 4 if number < good else 2, "clarity": 3})

        made = make_run(rows, jury, rubric=RUBRIC, run_id=run_id, name=name)
        seconds = None if run_id == "run-b" else 50.0 * place
        outcome = msgspec.structs.replace(outcome_of(made.row), elapsed_s=seconds)
        text = msgspec.json.encode(outcome).decode()
        made.store.update_run(sealed(msgspec.structs.replace(made.row, outcome=text)))
    make_run(rows, judge, rubric=RUBRIC, run_id="run-d", left_out=1)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("", "dcba"),
        ("?descending=false", "abcd"),
        ("?sort=name", "bcda"),
        ("?sort=name&descending=true", "adcb"),
        ("?sort=overall", "cbad"),
        ("?sort=pass_rate&descending=false", "abcd"),
        ("?sort=duration", "cadb"),  # runs without a value are last, the newest first
        ("?sort=cost&search=nothing", ""),
        ("?sort=overall&verdict=passes", "cb"),
    ],
)
def test_the_list_is_sorted_by_its_address(pages: PagesClient, query: str, order: str) -> None:
    assert "".join(each[-1] for each in ids(pages, f"/{query}")) == order


@pytest.mark.usefixtures("three")
def test_a_head_says_how_the_list_is_sorted_and_keeps_the_filter(pages: PagesClient) -> None:
    page = html.unescape(pages.get("/?search=rows&sort=overall").text)
    assert re.findall(r'aria-sort="(\w+)"><a href="([^"]*)">([^<]*)<', page) == [
        ("descending", "/?search=rows&sort=overall&descending=false", "Overall\xa0↓")
    ]
    assert '<a href="/?search=rows&sort=name">Run</a>' in page
    assert '<a href="/?search=rows">Started</a>' in page
    assert '<input type="hidden" name="sort" value="overall">' in page
    assert pages.get("/?sort=nothing").status_code == 400
    words = re.findall(r"<option[^>]*>(\w+)</option>", page)[1:]
    assert f"Use one of {', '.join(words)}." in pages.get("/?verdict=waits").text


@pytest.mark.usefixtures("three")
def test_a_trend_says_the_interval_of_its_last_run_as_the_list_does(pages: PagesClient) -> None:
    page = pages.get("/").text
    trend = page[page.index("<figcaption>") :].partition("<svg")[0]
    row = page[page.index('"row"><a href="/runs/run-c"') :].partition("</tr>")[0]
    mean = r"<small[^>]*>([\d.]+ to [\d.]+)</small>"
    assert re.findall(mean, trend) == re.findall(mean, row) != []


def test_a_row_has_what_tells_its_run_from_others(pages: PagesClient, make_run: MakeRun) -> None:
    judges = ["python/judges:good", "openai/m:8b", "python/judges:lenient, openai/m:8b"]
    for name, judge_name in zip(("one", "two", "both"), judges, strict=True):
        named = judge_name.split(", ")
        made = make_run(
            [answered("s1")], judge, rubric=RUBRIC, run_id=name, name=name, judges=named
        )
        outcome = msgspec.structs.replace(outcome_of(made.row), cost={"dollars": None})
        text = msgspec.json.encode(outcome).decode()
        made.store.update_run(sealed(msgspec.structs.replace(made.row, outcome=text)))
    page = pages.get("/").text
    assert re.findall(r'<bdi class="quiet" title="([^"]*)">([^<]*)<', page) == [
        (judges[1], "m:8b"),
        (judges[0], "good"),
        (judges[2], "2 judges"),
    ]
    assert page.count(">Cost<") == 0
    assert ">Cost" in pages.get("/?sort=cost").text
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-x", name="new")
    page = pages.get("/").text
    assert page.count(">Cost<") == 1
    assert 'title="run-x, suite, rows.jsonl"><bdi>suite, rows.jsonl</bdi></small>' in page


def test_trends_of_a_suite_are_told_apart_and_say_what_they_leave_out(
    pages: PagesClient, make_run: MakeRun
) -> None:
    for at, name in enumerate(("good", "good", "lenient", "lenient", "unreadable")):
        judges = [f"python/judges:{name}"]
        make_run([answered("s1")], judge, rubric=RUBRIC, run_id=f"run-{at}", judges=judges)
    make_run([answered("s1")], judge, rubric=RUBRIC, run_id="run-x", suite="other")
    trends = pages.get("/").text.partition('<div class="trends">')[2].partition("</div>\n<form")[0]
    assert re.findall(r"<bdi>(Overall[^<]*)</bdi>([^<]*)<", trends) == [
        ("Overall mean by lenient, answers 1.2.0", "; 2 of 5 finished runs; 3 by another judge"),
        ("Overall mean by good, answers 1.2.0", "; 2 of 5 finished runs; 3 by another judge"),
    ]


@pytest.mark.usefixtures("three")
def test_a_stopped_run_shows_what_it_has_so_far_and_is_sorted_last(
    pages: PagesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = pages.get("/?sort=pass_rate").text
    row = page[page.index('"/runs/run-d"') :].partition("</tr>")[0]
    assert "jurybox resume run-d</code>" in row
    assert re.findall(r"so far</small> <strong>(.*?)<", row) == ["100.0%", "0.625"]
    assert 'href="/runs/run-d/samples">3</a> of 4' in row
    monkeypatch.setattr(runs_page, "_SO_FAR", 2)
    assert "see the run" in pages.get("/?search=run-d").text


def test_a_trend_is_in_the_order_of_the_responses(
    pages: PagesClient, make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_runs, "WHEN", "2026-01-01T09:14:00.000Z")
    made = make_run([answered("s1")], judge, rubric=RUBRIC)
    monkeypatch.undo()
    newer = RUBRIC.replace("1.2.0", "1.3.0")
    make_run([answered("s1")], judge, rubric=newer, run_id="run-b", tags=("new",))
    (tmp_path / "next.md").write_text(newer)
    rescored = rescore_run(made.row, str(tmp_path / "next.md"), made.store).view.run_id
    assert ids(pages, "/")[0] == rescored
    assert ids(pages, "/?search=rescored by answers 1.3.0") == [rescored]
    assert ids(pages, "/?search=ANSWERS 1.3.0") == [rescored, "run-b"]
    hint, _, trends = pages.get("/").text.partition('<div class="trends">')
    assert "newest; a rescored run is where the run with its replies is</p>" in hint
    trend = trends.partition("</figure>")[0]
    assert "Overall mean by one, answers 1.3.0</bdi>; 2 of 3 finished runs; 1 by another" in trend
    points = re.findall(r'<a href="/runs/([^"]*)" tabindex', trend)
    assert points == [quote(rescored), "run-b"]
    ends = re.findall(
        r'<a href="([^"]*)"[^>]*>(?:<bdi>)?(.*?)<', trend.partition('class="ends"')[2]
    )
    assert [text for _, text in ends] == ["run-a, rescored", "compare 2", "new"]
    page = html.unescape(pages.get(html.unescape(ends[1][0])).text)
    assert "<bdi>run-a, rescored by answers 1.3.0</bdi> and <bdi>run-b</bdi> compared" in page


def test_a_list_names_the_gate_that_fails_by_the_scores_of_people(
    pages: PagesClient, make_run: MakeRun
) -> None:
    two = RUBRIC.replace('mean >= 3"]', 'mean >= 3", "clarity_mean >= 2"]')
    made = make_run([answered(f"r{n}") for n in range(12)], judge, rubric=two)
    desk = ReviewDesk(made.store, made.row)
    while (case := desk.next("anna", kind="random")) is not None:
        said = HumanVerdict(scores={"accuracy": 1, "clarity": 1})
        desk.submit(case.number, "anna", said, shown=case.shown)
    said = "By people's scores, accuracy mean 1.000 < 3"
    assert f"{said}, 1 more<" in html.unescape(pages.get("/").text)
    page = pages.get("/compare?a=run-a&b=run-a").text
    both = "accuracy mean is 1.000 and has to be at least 3; clarity mean is 1.000 and has"
    assert f"corrected by them, {both}" in html.unescape(page)


def test_few_scores_are_counted_and_a_win_rate_sorts_apart(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def better(prompt: str) -> str:
        side = "A" if prompt.index("best answer") < prompt.index("worst answer") else "B"
        return preferred(side, ["accuracy", "clarity"])

    pair = answered("s1", "best answer", response_b=Response(text="worst answer"))
    wins = RUBRIC.replace('["accuracy >= 3"]', "[]").replace("accuracy_mean >= 3", "win_rate >= 0")
    make_run([pair], better, rubric=wins, run_id="run-p")

    def some(prompt: str) -> str | Failure:
        return judge(prompt) if "Task s0" in prompt else "no verdict"

    make_run([answered(f"s{n}") for n in range(4)], some, rubric=RUBRIC, run_id="run-s")
    page = html.unescape(pages.get("/?sort=overall").text)
    assert '<a href="/runs/run-s/samples?flag=unscored">3 not scored</a>' in page
    found = re.search(r'from <a href="([^"]*)">1</a> of 4', page)
    assert found
    assert " of 1 sample" in pages.get(found[1]).text
    assert ids(pages, "/?sort=overall") == ["run-s", "run-p"]
    make_run([answered(f"s{n}") for n in range(4)], some, rubric=RUBRIC, run_id="run-t")
    trend = pages.get("/").text.partition("<figcaption>")[2].partition("</figcaption>")[0]
    assert trend.endswith('samples?metric=overall">1</a> of 4</small>')


def test_what_waits_for_a_repaired_judge_is_not_counted_as_to_review(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def unreadable(prompt: str) -> str | Failure:
        return judge(prompt) if "Task s0" in prompt else "no verdict"

    make_run([answered(f"s{n}") for n in range(4)], unreadable, rubric=RUBRIC)
    page = html.unescape(pages.get("/").text)
    query = "/runs/run-a/samples?review=open&flag=unscored"
    assert f'<a href="{query}">3 for a repaired judge</a>' in page
    assert "to review</a>" not in page
    assert " of 3 samples" in pages.get(query).text
