"""The hashes that a run is sealed by: every text has its own, whatever came before it."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.running.hashing import RequestHasher, columns_hash, text_hash

SHARED = st.sampled_from(["", "a" * 2000, "b" * 2000, "a" * 3000 + "ü", "ab" * 1500])
OWN = st.text() | st.text(st.sampled_from("<>ab")) | st.text(st.characters(categories=["Cs", "L"]))
REQUESTS = st.builds("{}{}{}".format, SHARED, OWN, SHARED)
COLUMNS = st.lists(st.none() | OWN | st.integers(-(2**63), 2**63), max_size=4)


def plain(text: str) -> str:
    """Hash a request as the format says: the end, the rest, and where the end began."""
    data = text.encode("utf-8", "surrogatepass")
    end = max(data.rfind(b">>>"), 0)
    return hashlib.sha256(data[end:] + data[:end] + str(end).encode()).hexdigest()


@given(st.lists(REQUESTS, max_size=30))
def test_every_request_has_its_own_hash_whatever_came_before(texts: list[str]) -> None:
    hasher = RequestHasher()
    assert [hasher(text) for text in texts] == [plain(text) for text in texts]


def test_what_all_requests_share_is_hashed_once() -> None:
    hasher = RequestHasher()
    rubric, checklist = "rubric " * 1000, "item " * 1000
    texts = [f"{rubric}<<<{number} {'same ' * 300}{number}>>>{checklist}" for number in range(50)]
    assert [hasher(text) for text in texts] == [plain(text) for text in texts]
    (shared,) = hasher._known
    assert (shared.head.decode(), shared.tail.decode()) == (f"{rubric}<<<", f">>>{checklist}")


def test_each_vote_of_a_jury_has_its_own_end() -> None:
    hasher = RequestHasher()
    rubric = "rubric " * 1000
    texts = [
        f"{rubric}<<<{number}>>>{'item ' * 100}{vote}" for number in range(9) for vote in "abc"
    ]
    assert [hasher(text) for text in texts] == [plain(text) for text in texts]
    assert [shared.tail[-1:] for shared in hasher._known] == [b"a", b"b", b"c"]


def test_a_beginning_that_reaches_into_the_end_is_none() -> None:
    hasher = RequestHasher()
    end = ">>>" + "c" * 1000
    begin = "a" * 1000 + end
    texts = [f"{begin}1{end}", f"{begin}2{end}", begin, f"{begin}{end}"]
    assert [hasher(text) for text in texts] == [plain(text) for text in texts]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a>>>bc", "ca>>>b"),
        ("a>>>b", ">>>ba"),
        ("a>>>b", "b>>>a"),
        ("a>>>>b", "a>>>b>"),
        ("x", "x>>>"),
    ],
)
def test_no_request_turns_into_another(one: str, other: str) -> None:
    assert RequestHasher()(one) != RequestHasher()(other)


@given(COLUMNS, COLUMNS)
def test_only_equal_columns_have_equal_hashes(
    one: list[str | int | None], other: list[str | int | None]
) -> None:
    assert (columns_hash("x", one) == columns_hash("x", other)) == (one == other)
    assert columns_hash("x", one) != columns_hash("y", one)


@pytest.mark.parametrize(
    ("one", "other"),
    [(("\ud800", 1), ("\ud800", "1")), ((2**70,), (str(2**70),)), (("",), (None,))],
)
def test_no_kind_passes_for_another(
    one: tuple[str | int | None, ...], other: tuple[str | int | None, ...]
) -> None:
    assert columns_hash("x", one) != columns_hash("x", other)


def test_what_is_no_text_has_a_hash_too() -> None:
    assert text_hash(b"\xff") == text_hash(str(b"\xff"))  # pyright: ignore[reportArgumentType]
    assert RequestHasher()(b"\xff") == plain(str(b"\xff"))  # pyright: ignore[reportArgumentType]
