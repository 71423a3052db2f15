"""What the page of one sample explains by itself."""

import re
from itertools import cycle

import pytest

from jurybox.app.review_desk import ReviewDesk
from jurybox.review.reviews import HumanVerdict
from jurybox.sample import Response
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
