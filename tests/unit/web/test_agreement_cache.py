"""What reviews make of a run is worked out beside its page, once for every new review."""

from threading import Event
from typing import Any

import msgspec
import pytest

from jurybox.engine.records import ReviewRow, RunRow
from jurybox.errors import IncompleteError
from jurybox.web.app_state import AppState, Pending, ServeSettings, soon

RUN = RunRow(
    id="run-1",
    suite="s",
    status="finished",
    created_at="",
    finished_at=None,
    plan="",
    metadata="",
    outcome=None,
    digest="d",
)
REVIEW = ReviewRow(
    id="r1",
    run_id="run-1",
    number=0,
    reviewer="ann",
    created_at="",
    action="review",
    of=None,
    record_sha256="",
    verdict="{}",
    comment="",
)


class Reviewed:
    """A store with nothing but reviews."""

    def __init__(self, *rows: ReviewRow) -> None:
        self.rows = rows

    def review_state(self, run_id: str) -> str:
        del run_id
        return " ".join(row.id for row in self.rows)


class Slow:
    """A desk whose metrics take as long as a test likes."""

    go = Event()
    asked = 0
    trouble: Exception | None = None

    def __init__(self, store: object, run: RunRow) -> None:
        del store, run

    def standing(self) -> str:
        Slow.asked += 1
        assert Slow.go.wait(10)
        if Slow.trouble is not None:
            raise Slow.trouble
        return f"standing {Slow.asked}"


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> None:
    Slow.go, Slow.asked, Slow.trouble = Event(), 0, None
    monkeypatch.setattr("jurybox.web.app_state.ReviewDesk", Slow)
    monkeypatch.setattr("jurybox.web.app_state.review_agreement", Slow.standing)


def over(*rows: ReviewRow) -> tuple[AppState, Any]:
    store: Any = Reviewed(*rows)
    return AppState(ServeSettings(store=store)), store


def test_a_page_does_not_wait_and_the_next_one_finds_it_done() -> None:
    made, _ = over(REVIEW)
    assert isinstance(soon(made.agreement(RUN), 0.01), Pending)
    assert isinstance(soon(made.agreement(RUN), 0.01), Pending)
    Slow.go.set()
    assert made.agreement(RUN).result() == "standing 1"
    assert soon(made.agreement(RUN)) == "standing 1"


def test_a_new_review_makes_it_anew() -> None:
    made, store = over(REVIEW)
    Slow.go.set()
    assert made.agreement(RUN).result() == "standing 1"
    store.rows = (REVIEW, msgspec.structs.replace(REVIEW, id="r2"))
    assert made.agreement(RUN).result() == "standing 2"


def test_trouble_is_told_to_whoever_asks_and_tried_again() -> None:
    made, _ = over(REVIEW)
    Slow.go.set()
    Slow.trouble = IncompleteError("out of reach")
    with pytest.raises(IncompleteError):
        made.agreement(RUN).result()
    Slow.trouble = None
    assert made.agreement(RUN).result() == "standing 2"


def test_what_is_known_of_an_unfinished_run_is_soon_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("jurybox.web.app_state.monotonic", lambda: now)
    made, _ = over(REVIEW)
    running = msgspec.structs.replace(RUN, status="running")
    # A page that reloads itself finds what it waited for, however long that took.
    assert isinstance(soon(made.agreement(running), 0.01), Pending)
    now += 60
    assert isinstance(soon(made.agreement(running), 0.01), Pending)
    Slow.go.set()
    assert made.agreement(running).result() == "standing 1"
    now += 1
    assert made.agreement(running).result() == "standing 1"
    now += 60
    assert made.agreement(running).result() == "standing 2"
