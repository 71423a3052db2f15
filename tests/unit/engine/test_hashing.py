"""The hashes that a run is sealed by, and the two parts in which a request is stored."""

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.engine.records import ENCODER, columns_hash, framed, text_hash
from jurybox.judging.flow import Frame, ModelRequest
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn

OWN = st.text() | st.text(st.characters(categories=["Cs", "L"]))
COLUMNS = st.lists(st.none() | OWN | st.integers(-(2**63), 2**63), max_size=4)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = ModelRequest(
    model="m", generation=Generation(), messages=(Turn(role="user", content="How good?"),)
)


@given(TEXT, TEXT, TEXT, st.integers(0, 3))
def test_a_request_is_stored_in_two_parts(
    before: str, material: str, after: str, vote: int
) -> None:
    frame = Frame(before, after)
    turn = Turn(role="user", content=frame.around(material))
    request = msgspec.structs.replace(PLAIN, messages=(turn,), vote=vote, frame=frame)
    parts = framed(request)
    begin, end = parts.frame.split("\n")
    text = begin + parts.material + end
    whole = msgspec.structs.replace(request, frame=None)
    assert text == ENCODER.encode(whole).decode()
    assert framed(whole) == ("", text)
    assert text_hash(text) == hashlib.sha256(text.encode()).hexdigest()


def test_a_whole_number_and_a_decimal_have_frames_of_their_own() -> None:
    frame = Frame("Rubric. ", " Checklist.")
    turn = Turn(role="user", content=frame.around("one"))
    frames = {
        framed(
            ModelRequest(
                model="m", generation=Generation(temperature=each), messages=(turn,), frame=frame
            )
        ).frame
        for each in (1, 1.0)
    }
    assert len(frames) == 2


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
