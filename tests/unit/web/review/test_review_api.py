"""Programs review at the same desk."""

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from jurybox.app.review_desk import ReviewDesk
from jurybox.web.app_state import ServeSettings
from jurybox.web.site import application
from lazily import Lazily
from pages_client import PagesClient
from stored_runs import Made, MakeRun, answered

schemathesis = Lazily("schemathesis")

RUBRIC = """---
id: answers
version: 1.0.0
scale: 1-5
votes: 1
---
# Answers

## Criteria
### Facts
"""
KINDS = ("authority", "formatting", "position", "self_enhancement", "verbosity")
LISTED = ", ".join(f'"{kind}": "had no effect"' for kind in KINDS)
SAID = (
    f'{{"reasoning": {{"facts": "Right."}}, "bias_checklist": {{{LISTED}}},'
    ' "safety_concerns": ["a danger"], "scores": {"facts": 4}}'
)
BASE = "/api/runs/run-a"
BOUNDED = settings(max_examples=6, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
TOKEN = "a-token-of-this-test-alone"  # noqa: S105


@pytest.fixture
def made(make_run: MakeRun) -> Made:
    rows = [answered(f"s{number}") for number in range(3)]
    return make_run(rows, lambda _: SAID, rubric=RUBRIC)


def send(pages: PagesClient, path: str, body: object) -> httpx.Response:
    mark = pages.get("/api/session").json()["csrf"]
    return pages.post(BASE + path, json=body, headers={"X-Jurybox-CSRF": mark})


def review(number: object = 0, reviewer: str = "Anna", facts: object = 2, **more: object) -> object:
    verdict = {"scores": {"facts": facts}}
    return {"number": number, "reviewer": reviewer, "verdict": verdict, **more}


def test_a_program_is_given_the_next_sample_without_the_verdict(
    made: Made, pages: PagesClient
) -> None:
    del made
    answer = pages.get(f"{BASE}/review/next?reviewer=Anna")
    told = answer.json()
    assert told["case"]["id"] == "s0"
    assert told["case"]["criteria"][0]["high"] == 5
    assert told["progress"]["queued"] == 3
    assert "Right." not in answer.text
    assert "danger" not in answer.text
    after = pages.get(f"{BASE}/review/next?reviewer=Anna&queue=flagged&after=0").json()
    assert after["case"]["id"] == "s1"


def test_a_review_is_taken_told_and_taken_back(made: Made, pages: PagesClient) -> None:
    taken = send(pages, "/reviews", review(1, comment="so so", queue="random"))
    assert taken.status_code == 200
    assert taken.json()["verdict"] == {"scores": {"facts": 2}}
    (stored,) = ReviewDesk(made.store, made.row).reviews()
    assert (stored.id, stored.comment, stored.shown.queue) == (
        taken.json()["id"],
        "so so",
        "random",
    )
    assert pages.get(f"{BASE}/agreement").json()["agreement"]["reviews"] == 1
    undone = send(pages, "/reviews/undo", {"reviewer": "Anna"}).json()
    assert undone == {"withdrawn": taken.json()["id"], "number": 1}
    assert send(pages, "/reviews/undo", {"reviewer": "Anna"}).json()["withdrawn"] is None
    assert ReviewDesk(made.store, made.row).reviews() == ()


def test_nobody_has_reviewed_yet(made: Made, pages: PagesClient) -> None:
    del made
    assert pages.get(f"{BASE}/agreement").json() == {"agreement": None}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (review(99), 404),
        (review(-1), 400),
        (review("0"), 400),
        (review(2**60), 400),
        (review(reviewer=""), 400),
        (review(reviewer="a\u202eb"), 400),
        (review(facts=9), 400),
        (review(facts="2"), 400),
        (review(queue="elsewhere"), 400),
        (review(order="BB"), 400),
        (review(more=1), 400),
        ({"number": 0, "reviewer": "Anna", "verdict": {"winner": "A"}}, 400),
        ([], 400),
    ],
)
def test_what_is_no_review_is_refused(
    made: Made, pages: PagesClient, body: object, status: int
) -> None:
    answer = send(pages, "/reviews", body)
    assert answer.status_code == status
    assert answer.json()["error"]["problem"]
    assert ReviewDesk(made.store, made.row).reviews() == ()


def test_a_write_needs_what_only_our_pages_know(made: Made, pages: PagesClient) -> None:
    del made
    assert pages.post(f"{BASE}/reviews", json=review()).status_code == 403


@pytest.mark.parametrize("name", ["%20", "a%E2%80%AEb"])
def test_nobody_has_a_name_that_is_none(made: Made, pages: PagesClient, name: str) -> None:
    del made
    assert pages.get(f"{BASE}/review/next?reviewer={name}").status_code == 404


def test_whatever_the_document_allows_to_be_sent_is_answered_as_it_says(
    made: Made, said: list[str]
) -> None:
    app = application(ServeSettings(store=made.store, say=said.append, token=TOKEN))
    headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {TOKEN}"}
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app, headers=headers)
    asked: list[int] = []
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.method.upper() != "POST":
            continue

        @given(case=operation.as_strategy())
        @BOUNDED
        def ask(case: schemathesis.Case) -> None:
            case.path_parameters["run"] = made.row.id
            response = case.call(headers=headers)
            assert response.json().keys()
            asked.append(response.status_code)

        ask()
    assert len(asked) >= 6
    assert set(asked) <= {200, 400, 404}
    assert said == []
