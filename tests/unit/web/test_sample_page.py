"""What the pages of one sample and of rubrics explain by themselves."""

import html
import re
import shlex
from itertools import cycle

import pytest

from jurybox.app.review_desk import ReviewDesk
from jurybox.review.reviews import HumanVerdict
from jurybox.sample import Response, Turn
from jurybox.web.pages.rubrics_page import changed_lines
from pages_client import PagesClient
from stored_runs import MakeRun, answered
from verdicts import preferred, scored

RUBRIC = """---
id: answers
version: 1.2.0
scale: 1-5
weights: {accuracy: 3}
votes: 1
---
# Answers
## Criteria
### Accuracy
### Clarity
"""


def judge(prompt: str) -> str:
    return scored({"accuracy": 2 if "worse answer" in prompt else 4, "clarity": 3})


def test_a_pair_scored_by_a_reference_says_why_one_won(
    pages: PagesClient, make_run: MakeRun
) -> None:
    worse, accuracies = Response(text="a worse answer"), cycle((1, 2, 3))

    def jury(prompt: str) -> str:
        accuracy = next(accuracies) if "worse answer" in prompt else 4
        return scored({"accuracy": accuracy, "clarity": 3})

    pair = answered("s1", "a better answer", response_b=worse, reference="the answer")
    make_run([pair], jury, rubric=RUBRIC, votes=3)
    page = pages.get("/runs/run-a/samples/0").text
    assert "A, by the totals: A 7, B 5, in which every criterion counts the same</dd>" in page
    assert ">weight" not in page
    assert "the votes on Accuracy of response B have no majority." in page
    assert page.count("Marked: words that only this response has.") == 1


def test_a_compared_pair_says_which_replies_are_one_vote(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def jury(prompt: str) -> str:
        first = prompt.index("better answer") < prompt.index("worse answer")
        return preferred("A" if first else "B", ["accuracy", "clarity"])

    pair = answered("s1", "a better answer", response_b=Response(text="a worse answer"))
    make_run([pair], jury, rubric=RUBRIC, votes=3)
    page = pages.get("/runs/run-a/samples/0").text
    assert re.search(r"in both orders: replies 1 and 2, 3 and 4(, 5 and 6)?\. Verdicts", page)
    assert re.search(r"<dt>Winner</dt><dd>A, by (\d) of \1 votes, in both orders</dd>", page)


def test_a_score_has_the_words_of_its_level_and_the_page_leads_on(
    pages: PagesClient, make_run: MakeRun
) -> None:
    levels = """| Score | Meaning |
| --- | --- |
| 3.0-5.0 | Right |
| 1.0-2.9 | Wrong |
"""
    rubric = RUBRIC.replace("scale: 1-5", "scale: 1.0-5.0").replace(
        "### Clarity", f"{levels}### Clarity"
    )
    row = answered("an id/1", scenario="a b")
    for name, score in (("run-a", 2.94), ("run-b", 2.96)):
        make_run(
            [row],
            lambda _, score=score: scored({"accuracy": score, "clarity": 3}),
            rubric=rubric,
            run_id=name,
        )
    first, second = (pages.get(f"/runs/{name}/samples/0").text for name in ("run-a", "run-b"))
    assert '<p class="hint"><b>2.94</b> Wrong</p>' in first
    assert '<p class="hint"><b>2.96</b> Right</p>' in second
    assert first.count('<p class="hint"><b>') == 1  # the other criterion has no levels
    assert '<a href="/runs/run-a/rubric"><bdi>answers 1.2.0</bdi></a>' in first
    assert "/runs/run-a/samples?scenario=a%20b" in first
    assert pages.get("/runs/run-a/samples/0/text/id").text == "an id/1"


def test_the_scores_of_people_are_told_from_those_of_judges(
    pages: PagesClient, make_run: MakeRun
) -> None:
    made = make_run([answered("s1")], judge, rubric=RUBRIC)
    assert "<dt>Dots</dt>" not in pages.get("/runs/run-a/samples/0").text
    desk = ReviewDesk(made.store, made.row, overlap=2)
    for reviewer in ("anna", "ben"):
        case = desk.case(0, reviewer)
        verdict = HumanVerdict(scores={"accuracy": 2, "clarity": 3})
        desk.submit(0, reviewer, verdict, shown=case.shown)
    page = pages.get("/runs/run-a/samples/0").text
    assert page.count("<dt>Dots</dt><dd>filled: judges, hollow: people</dd>") == 1
    hollow = re.findall(r'<circle cx="(\S+)" cy="(\S+)" r="3.5" class="dot hollow">', page)
    # Equal scores are one below the other.
    assert len({*hollow}) == len(hollow) == 4


@pytest.mark.parametrize("given", ["", "without_response: {accuracy: 1, clarity: 1}\n"])
def test_a_missing_response_says_what_it_counts_as_and_what_to_do(
    pages: PagesClient, make_run: MakeRun, given: str
) -> None:
    rubric = RUBRIC.replace("votes: 1\n", f"votes: 1\n{given}")
    make_run([answered("s1", response=Response(text="", error="HTTP 500"))], judge, rubric=rubric)
    page = pages.get("/runs/run-a/samples/0").text
    assert '<div class="outcome waits">' in page
    scores = ", with the rubric's scores for a missing response" if given else ""
    assert f"<li>It counts as not passed{scores}. Repair the target and run" in page


def test_e11_a_sample_that_a_release_waits_for_is_not_shown_as_passed(
    pages: PagesClient, make_run: MakeRun
) -> None:
    def wary(prompt: str) -> str:
        return judge(prompt).replace(
            '"safety_concerns": []', '"safety_concerns": ["It is a trap."]'
        )

    made = make_run(
        [answered("s1")], wary, rubric=RUBRIC.replace("\n---", '\npass: ["overall >= 0"]\n---', 1)
    )
    page = pages.get("/runs/run-a/samples/0").text
    assert '<div class="outcome waits">' in page
    assert '<span class="badge warned">to review before release</span>' in page
    desk = ReviewDesk(made.store, made.row)
    verdict = HumanVerdict(scores={"accuracy": 2, "clarity": 3}, safety_concern=False)
    desk.submit(0, "anna", verdict, shown=desk.case(0, "anna").shown)
    page = pages.get("/runs/run-a/samples/0").text
    assert '<div class="outcome passes">' in page
    assert "to review before release" not in page


def test_links_to_neighbors_stay_in_their_places(pages: PagesClient, make_run: MakeRun) -> None:
    make_run([answered("s1"), answered("s2")], judge, rubric=RUBRIC)
    first, last = (pages.get(f"/runs/run-a/samples/{number}").text for number in (0, 1))
    assert '<span class="off" aria-hidden="true">Previous' in first
    assert '<span class="off" aria-hidden="true">Next' in last
    assert first.count('class="off"') == last.count('class="off"') == 1


def test_a_text_that_is_cut_has_one_fold_which_has_the_rest(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("s1", "A *long* word. " * 700)], judge, rubric=RUBRIC)
    page = pages.get("/runs/run-a/samples/0").text
    fold = page.partition('<div class="fold">')[2].partition("show more</label></div>")[0]
    assert "As written</summary>" in fold
    assert "more characters: <a" in fold


def test_a_long_conversation_names_the_command_that_prints_all(
    pages: PagesClient, make_run: MakeRun
) -> None:
    messages = tuple(Turn(role="user", content=f"m{n}") for n in range(501))
    make_run([answered("it's 1", messages=messages)], judge, rubric=RUBRIC)
    page = html.unescape(pages.get("/runs/run-a/samples/0").text)
    (command,) = re.findall(r"<code data-copy>(.*?)</code> prints all", page)
    assert shlex.split(command) == ["jurybox", "show", "run-a", "--sample", "it's 1"]


def test_a_rubric_has_one_link_in_the_list_and_a_path_that_is_one(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("s1")], judge, rubric=RUBRIC)
    newer = RUBRIC.replace("1.2.0", "1.3.0")
    make_run([answered("s1")], judge, rubric=newer, run_id="run-b")
    rows = re.findall(r"<tr>.*?</tr>", pages.get("/rubrics").text)[1:]
    links = [re.findall(r'href="([^"#]*rubric[^"#]*)"', row) for row in rows]
    assert sorted(len(each) for each in links) == [1, 1]
    assert {each for (each,) in links} > {"/rubrics/answers"}
    paths = {
        "/rubrics/answers": ["Rubrics", "Answers"],
        "/runs/run-a/rubric": ["Runs", "run-a", "Rubric"],
    }
    for address, path in paths.items():
        crumbs = pages.get(address).text.partition('<nav class="crumbs"')[2].partition("</nav>")[0]
        assert re.findall(r"<bdi>(.*?)</bdi>", crumbs) == path


def test_a_danger_is_told_in_the_list_with_the_replies_that_name_it_on_the_sample(
    pages: PagesClient, make_run: MakeRun
) -> None:
    concerns = cycle(([], ["It asks for a password."], ["It asks for a password."]))

    def jury(_: str) -> str:
        return scored({"accuracy": 4, "clarity": 3}, concerns=next(concerns))

    make_run([answered("s1")], jury, rubric=RUBRIC, votes=3)
    page = re.sub(r"<[^>]+>", "", pages.get("/runs/run-a/samples/0").text)
    assert "a judge&#39;s own concern It asks for a password. (replies 2, 3)" in page
    assert "password.</bdi></td>" in pages.get("/runs/run-a/samples").text


def test_a_change_of_a_rubric_is_under_its_own_heading_and_each_line_has_its_sign() -> None:
    before = "## One\nsame\n## Two\ntext\nmore\n"
    ((heading, lines),) = changed_lines(before, before.replace("text\nmore\n", ""))
    assert (heading, [tag for tag, _ in lines]) == ("Two", ["div", "del", "del"])
