"""Hashes of texts that begin alike are those of any texts."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from jurybox.running.hashing import Hasher

BEGINNINGS = st.sampled_from(["", "a" * 2000, "b" * 2000, "a" * 3000 + "ü", "ab" * 1500])
TEXTS = st.builds(lambda begin, rest: begin + rest, BEGINNINGS, st.text())


def plain(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@given(st.lists(TEXTS | st.text(st.characters(categories=["Cs", "L"])), max_size=30))
def test_every_text_has_its_own_hash_whatever_came_before(texts: list[str]) -> None:
    hasher = Hasher()
    assert [hasher(text) for text in texts] == [plain(text) for text in texts]


def test_what_all_texts_begin_with_is_hashed_once() -> None:
    hasher = Hasher()
    rubric = "rubric " * 1000
    texts = [f"{rubric}task {number}: {'same ' * 300}{number}" for number in range(50)]
    assert [hasher(text) for text in texts] == [plain(text) for text in texts]
    (begun,) = hasher._known
    assert begun.beginning.decode() == f"{rubric}task "


def test_what_is_no_text_has_a_hash_too() -> None:
    assert Hasher()(b"\xff") == plain(str(b"\xff"))  # pyright: ignore[reportArgumentType]
