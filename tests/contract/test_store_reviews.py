"""Both stores keep what people say of samples, in order, and lose none of it."""

import itertools
from collections.abc import Iterator

import msgspec
import pytest

from jurybox.engine.records import ReviewRow
from jurybox.errors import IncompleteError, InputError
from jurybox.storage import open_store
from jurybox.storage.store import Store
from stores import in_process, review_row, run_row, sample_row

SAMPLES = [sample_row(number) for number in range(3)]
REVIEW = """
from stores import review_row
store = open_store(url)
for number in range(20):
    store.add_review(review_row(f"{rest[0]}-{number:02}", created_at=f"{number:02}"))
store.close()
"""


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url, patience=10)
    opened.create_run(run_row())
    opened.append(SAMPLES, [])
    opened.create_run(run_row("other"))
    opened.append([sample_row(0, "other")], [])
    yield opened
    opened.close()


def withdrawal(name: str, of: str | None, **changes: object) -> ReviewRow:
    later = {"created_at": "2026-02-02T03:04:05Z", "verdict": "{}"}
    return review_row(name, action="withdrawal", of=of, **later, **changes)


def test_reviews_come_back_in_the_order_in_which_they_were_made(store: Store) -> None:
    rows = [
        review_row("z", SAMPLES[0], created_at="2026-01-01T00:00:00.000001Z"),
        review_row("a", SAMPLES[2], created_at="2026-01-01T00:00:00.000002Z", reviewer="Bo"),
        review_row("b", SAMPLES[0], created_at="2026-01-01T00:00:00.000003Z", comment="hm"),
        withdrawal("c", "b"),
    ]
    other = review_row("d", sample_row(0, "other"))
    for row in (*rows, other):
        store.add_review(row)
    assert store.reviews("run-1") == rows
    assert store.reviews("other") == [other]
    assert store.reviews("nobody's") == []
    assert store.reviews_of("run-1", 0) == [rows[0], rows[2], rows[3]]
    assert store.reviews_of("run-1", 1) == []


OF_NOTHING = [
    review_row("x", sample_row(7)),
    review_row("x", sample_row(0, "nobody's")),
    review_row("x", record_sha256="0" * 63 + "1"),
    withdrawal("x", "nobody's"),
    withdrawal("x", "of another sample"),
    withdrawal("x", "of another run"),
    withdrawal("x", "taken back"),
    withdrawal("x", None),
    review_row("x", of="good"),
    review_row("x", action="else"),
]


def test_a_review_must_be_of_what_is_there(store: Store) -> None:
    store.add_review(review_row("good"))
    store.add_review(review_row("of another sample", SAMPLES[1]))
    store.add_review(review_row("of another run", sample_row(0, "other")))
    store.add_review(withdrawal("taken back", "good"))
    before = store.reviews("run-1")
    for row in OF_NOTHING:
        with pytest.raises(InputError):
            store.add_review(row)
    assert store.reviews("run-1") == before


def test_a_review_is_added_once(store: Store) -> None:
    store.add_review(review_row())
    with pytest.raises(IncompleteError, match="already stored"):
        store.add_review(review_row(comment="other"))
    assert store.reviews("run-1") == [review_row()]


def test_what_cant_be_stored_is_refused(store: Store) -> None:
    fields = ("id", "reviewer", "verdict", "comment", "of")
    for field, text in itertools.product(fields, ("a\0b", "\ud800")):
        with pytest.raises(InputError):
            store.add_review(msgspec.structs.replace(review_row(), **{field: text}))
        assert store.reviews("run-1") == []
        assert store.reviews(text) == []


def test_hostile_texts_come_back_as_they_are(store: Store) -> None:
    text = "'; DROP TABLE reviews; -- \" <script> ? %s \U0001f600 \u202e" * 1000
    row = review_row(reviewer=text[:50], verdict=text, comment=text)
    store.add_review(row)
    assert store.reviews("run-1") == [row]


def test_several_people_review_at_once(store: Store, url: str) -> None:
    with in_process(REVIEW, url, "a") as one, in_process(REVIEW, url, "b") as other:
        for process in (one, other):
            _, said = process.communicate(timeout=60)
            assert process.returncode == 0, said
    assert len(store.reviews("run-1")) == 40
