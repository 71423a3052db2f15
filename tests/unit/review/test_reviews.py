"""Which reviews stand, and what they are as gold."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.review.reviews import (
    REVIEW,
    WITHDRAWAL,
    HumanVerdict,
    Review,
    latest_reviews,
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    number: int = 0
    reviewer: str = "anna"
    created_at: str = "2026-01-02T03:04:05.000Z"
    action: str = REVIEW
    of: str | None = None
    record_sha256: str = "0" * 64
    verdict: str = '{"scores":{"clarity":4}}'
    comment: str = ""


def ids(reviews: tuple[Review, ...]) -> list[str]:
    return [each.id for each in reviews]


def taken_back(row: Entry) -> Entry:
    return Entry(
        id=f"not {row.id}", number=row.number, reviewer=row.reviewer, action=WITHDRAWAL, of=row.id
    )


def test_metrics_go_by_what_was_said_before_the_judges_verdict_was_seen() -> None:
    seen = '{"scores":{"clarity":5},"blind":false}'
    rows = [Entry(id="1"), Entry(id="2", verdict=seen), Entry(id="3", number=1, verdict=seen)]
    assert ids(latest_reviews(rows)) == ["2", "3"]
    assert ids(latest_reviews(rows, blind=True)) == ["1"]
    assert latest_reviews([rows[0], taken_back(rows[0]), rows[1]], blind=True) == ()


def test_a_verdict_that_cant_be_read_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        latest_reviews([Entry(id="1", verdict='{"winner": "C"}')])


def test_a_pair_that_was_shown_the_other_way_round_is_turned_back() -> None:
    verdict = HumanVerdict(winner="A")
    turned = verdict.in_order("BA")
    assert turned.winner == "B"
    assert turned.in_order("BA") == verdict
    assert verdict.in_order("AB") is verdict
    assert HumanVerdict(winner=None).in_order("BA").winner is None


steps = st.lists(
    st.tuples(st.sampled_from(["anna", "ben"]), st.integers(0, 3), st.booleans()), max_size=30
)


def played(moves: list[tuple[str, int, bool]]) -> list[Entry]:
    """Review, or where it says so undo the newest that stands."""
    rows: list[Entry] = []
    for place, (who, number, undo) in enumerate(moves):
        mine = [each for each in latest_reviews(rows) if each.reviewer == who]
        if undo and mine:
            taken = next(row for row in rows if row.id == mine[-1].id)
            rows.append(msgspec.structs.replace(taken_back(taken), id=f"{place}"))
        elif not undo:
            rows.append(Entry(id=f"{place}", number=number, reviewer=who))
    return rows


@given(steps)
def test_one_persons_reviews_dont_depend_on_anothers(moves: list[tuple[str, int, bool]]) -> None:
    rows = played(moves)
    for who in ("anna", "ben"):
        alone = latest_reviews([row for row in rows if row.reviewer == who])
        assert alone == tuple(each for each in latest_reviews(rows) if each.reviewer == who)
    for number in range(4):
        alone = latest_reviews([row for row in rows if row.number == number])
        assert alone == tuple(each for each in latest_reviews(rows) if each.number == number)


@given(steps, st.integers(0, 3))
def test_undo_is_the_opposite_of_a_review(moves: list[tuple[str, int, bool]], number: int) -> None:
    before = played(moves)
    row = Entry(id="new", number=number)
    after = latest_reviews([*before, row])
    assert after[-1].id == "new"
    assert latest_reviews([*before, row, taken_back(row)]) == latest_reviews(before)
