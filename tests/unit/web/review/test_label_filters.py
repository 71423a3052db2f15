"""Samples filtered by how labels of people and the judge compare: pages, files and the API."""

import html
import re

import pytest

from jurybox.app.review_desk import ReviewDesk
from jurybox.review.reviews import Circumstances, Queue
from jurybox.sample import Response
from pages_client import PagesClient
from stored_runs import Made, MakeRun, answered
from unit.web.review.test_desk_pages import RUBRIC, judge

RUN = "/runs/run-a"


def review(made: Made, *given: tuple[int, str, int, int], queue: Queue = "random") -> None:
    """Store reviews: a sample's number, who, and the scores of facts and tone."""
    desk = ReviewDesk(made.store, made.row)
    for number, who, facts, tone in given:
        scores = {"scores": {"facts": facts, "tone": tone}}
        desk.submit(number, who, scores, shown=Circumstances(queue=queue))


@pytest.fixture
def made(make_run: MakeRun) -> Made:
    # The judge gives facts 4 and tone 3, and all samples are flagged.
    made = make_run([answered(f"s{number}") for number in range(6)], judge, rubric=RUBRIC)
    review(made, (0, "Anna", 4, 3), (1, "Anna", 3, 3), (2, "Anna", 1, 1), (2, "Ben", 4, 3))
    review(made, (3, "Ben", 4, 3), (4, "Ben", 2, 2), (5, "Ben", 4, 5), queue="flagged")
    return made


@pytest.mark.parametrize(
    ("query", "found"),
    [
        # Farthest apart first: sample 4 by two points, then sample 2 by the mean of 3 and 0.
        ("differs=facts", [4, 2, 1]),
        ("differs=tone", [5, 2, 4]),
        ("differs=any", [4, 5, 2, 1]),
        ("differs=facts&people_differ=true", [2]),
        ("differs=facts&reviewer=Anna", [2, 1]),
        ("differs=facts&review=reviewed", [4, 2, 1]),
        ("differs=facts&flag=passed", []),
        ("differs=facts&search=s2", [2]),
        ("compared=facts", [0, 1, 2, 3, 4, 5]),
        ("compared=facts&people=4&judge=4", [0, 2, 3, 5]),
        ("compared=facts&people=3&judge=3", []),
        ("several=facts", [2]),
        ("reviewer=Ben", [2, 3, 4, 5]),
        ("review=random", [0, 1, 2, 3, 4, 5]),
        ("review=flagged", [0, 1, 2, 3, 4, 5]),
        ("differs=winner", []),
    ],
)
def test_a_filter_finds_the_same_on_the_page_in_files_and_in_the_api(
    made: Made, pages: PagesClient, query: str, found: list[int]
) -> None:
    del made
    rows = re.findall(r'id="row-(\d+)"', pages.get(f"{RUN}/samples?{query}").text)
    assert [*map(int, rows)] == found if "differs" in query else {*map(int, rows)} == {*found}
    answer = pages.get(f"/api{RUN}/samples?{query}").json()
    assert [each["number"] for each in answer["samples"]] == sorted(found)
    assert answer["total"] == len(found)
    lines = pages.get(f"{RUN}/samples.jsonl?{query}").text.splitlines()
    assert len(lines) == len(found)


@pytest.mark.usefixtures("made")
def test_a_name_that_the_run_does_not_have_is_refused(pages: PagesClient) -> None:
    for query in ("differs=x", "compared=x", "several=x", "reviewer=x", "also_in=x"):
        for address in (f"{RUN}/samples?", f"{RUN}/samples.csv?", f"/api{RUN}/samples?"):
            assert pages.get(address + query).status_code == 400
    refused = pages.get(f"{RUN}/review/agreement?criterion=x")
    assert (refused.status_code, "Use one of overall, Facts, " in refused.text) == (400, True)


def test_the_list_of_differences_opens_samples_that_know_their_place(
    made: Made, pages: PagesClient
) -> None:
    review(made, (0, "Ben", 4, 1))
    page = pages.get(f"{RUN}/review/agreement?part=flagged&criterion=Facts").text
    found = re.findall(r'<th scope="row"><a [^>]*href="([^"]*)', page)
    links = [html.unescape(each) for each in found]
    query = "?review=flagged&differs=facts"
    assert links == [
        f"{RUN}/samples/{number}{query}&at={at}&agreement=true"
        for at, number in enumerate((4, 2, 1))
    ]
    sample = html.unescape(pages.get(links[1]).text)
    assert "2 of 3" in re.sub("<[^>]*>", "", sample)
    for near, at in ((4, 0), (1, 2)):
        assert f'href="{RUN}/samples/{near}{query}&agreement=true&at={at}"' in sample
    assert f'href="{RUN}/samples{query}"><bdi>Samples' in sample
    back = re.findall(r'rel="up".*? href="([^"]*)">Back to agreement', sample)[0]
    address, row = back.split("#")
    assert (address[-9:], f'id="{row}"' in pages.get(address).text) == ("&sample=2", True)
    listed = html.unescape(pages.get(f"{RUN}/samples{query}").text)
    assert "people and the judge differ on Facts" in listed
    assert f'href="{RUN}/review/agreement"' in listed
    named = pages.get(f"{RUN}/samples.csv{query}").headers["content-disposition"]
    assert named.endswith("people-and-the-judge-differ-on-Facts-3.csv")


def test_winners_are_compared_too(make_run: MakeRun, pages: PagesClient) -> None:
    second = Response(text="the second text")
    rows = [answered(f"s{number}", response_b=second) for number in range(4)]
    made = make_run(rows, judge, rubric=RUBRIC)
    desk = ReviewDesk(made.store, made.row)
    # The judge prefers whichever is shown first, so every pair is a tie.
    for number, winner in enumerate(("tie", "A", "B")):
        desk.submit(number, "Anna", {"winner": winner}, shown=Circumstances(queue="random"))
    desk.submit(1, "Ben", {"winner": "tie"}, shown=Circumstances(queue="random"))
    for query, found in (
        ("differs=winner", [1, 2]),
        ("compared=winner&people=A&judge=tie", [1]),
        ("compared=winner&people=tie&judge=tie", [0, 1]),
    ):
        answer = pages.get(f"/api{RUN}/samples?{query}").json()
        assert [each["number"] for each in answer["samples"]] == found
    page = pages.get(f"{RUN}/samples?differs=winner").text
    assert "people and the judge differ on the winner" in page
    assert re.findall(r'id="row-(\d+)"', page) == ["2", "1"]  # farthest apart first


def test_every_count_on_the_agreement_page_opens_as_many_samples(
    make_run: MakeRun, pages: PagesClient
) -> None:
    # Two criteria have the same title.
    rubric = RUBRIC.replace("### Facts", "### Tone `facts`")
    rubric = rubric.replace("votes: 1", 'votes: 1\npass: ["facts >= 3"]')
    made = make_run([answered(f"s{number}") for number in range(14)], judge, rubric=rubric)
    desk = ReviewDesk(made.store, made.row, overlap=2)
    for who, count in (("Anna", 12), ("Ben", 7)):
        for turn in range(count):
            case = desk.next(who, kind="random")
            # Both find the facts of a sample unclear, and Ben is stricter on others.
            unclear = turn == (3 if who == "Ben" else 11)
            facts = None if unclear else 2 + turn % 3 - (who == "Ben")
            scores = {"facts": facts, "tone": 1 + turn % 5}
            desk.submit(case.number, who, {"scores": scores}, shown=case.shown)
    page = pages.get(f"{RUN}/review/agreement").text
    links = re.findall(
        rf'<a href="({RUN}/samples\?[^"]*)"(?: aria-label="([^"]*)")?>(.*?)</a>', page
    )
    # The number of samples is the last one: of "3 labels of 2 samples", and of "Anna (12)".
    counts = {
        html.unescape(address): int(re.findall(r"\d+", label or words)[-1])
        for address, label, words in links
    }
    opened = {address: pages.get(f"/api{address}").json()["total"] for address in counts}
    assert opened == counts
    query = f"{RUN}/samples?review=random"
    assert counts[query] == 12
    assert counts[f"{query}&several=facts"] == 6
    assert counts[f"{query}&compared=overall"] == counts[f"{query}&compared=pass_rate"] == 11
    assert counts[f"{query}&differs=any"] >= counts[f"{query}&compared=tone"] - 3
    assert counts[f"{RUN}/samples?reviewer=Ben"] == 7
    assert sum("people=" in address for address in counts) > 8
    assert {"Tone (facts)", "Tone (tone)"} <= {*re.findall(r'"row"><bdi>(.*?)</bdi>', page)}


def test_a_queue_is_offered_only_while_it_has_a_sample(made: Made, pages: PagesClient) -> None:
    def offered() -> list[str]:
        page = pages.get(f"{RUN}/review/agreement").text
        return re.findall(rf'href="{RUN}/review\?queue=(\w+)"', page)

    assert offered() == ["flagged"]  # whose flags no review has decided
    desk = ReviewDesk(made.store, made.row)
    for number in range(6):
        verdict = {"scores": {"facts": 4, "tone": 3}, "safety_concern": False}
        desk.submit(number, "Chris", verdict, shown=Circumstances(queue="flagged"))
    assert offered() == []
