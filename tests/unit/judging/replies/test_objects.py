"""Finding JSON objects in a reply: the quick way finds what the careful one does, or nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.judging.flow import Defect
from jurybox.judging.formats.reply_text import FoundObject, find_objects, plain_object, read_object

TEXTS = st.text(st.sampled_from('ab:,{}[]" \\\n\x01é\u2028\U0001f600\ud83d'), max_size=6)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from([True, None])
VALUES = st.recursive(
    TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> str:
    """Write an object whose keys may be given twice, at any level."""
    pieces: list[str] = []
    for _ in range(draw(st.integers(0, 3))):
        value = draw(objects(depth - 1)) if depth and draw(st.booleans()) else _json(draw(VALUES))
        colon = draw(st.sampled_from([":", " :", ": ", "\n:\t"]))
        pieces.append(f"{_json(draw(st.sampled_from(['a', 'b', ':'])))}{colon}{value}")
    return "{" + draw(st.sampled_from([",", ", ", " ,\n"])).join(pieces) + "}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@given(objects() | TEXTS.map(lambda text: "{" + text + "}"))
def test_e5_the_quick_way_reads_the_same_or_leaves_it_to_the_careful_one(text: str) -> None:
    quick = plain_object(text)
    if quick is not None:
        careful = read_object(text)
        assert repr(quick) == repr(careful)
        assert find_objects(text) == (careful,)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "a" :2}',
        '{"a": {"b": ":", "b" : ":"}}',
        '{"a": [{"b": 1, "b": 1}]}',
        '{"a": 0.1}',
        '{"a": 5.000000000000000000001}',
        '{"a": 1e400}',
        '{"a": NaN}',
        '{"a": ' + "1" * 5000 + "}",
        '{"a": "\\ud83d"}',
        '{"a": "\ud83d"}',
        '{"a": "\\u0041"}',
        '{"a": "x\ny"}',
        '{"a": 1} {"b": 2}',
        '{"a": ' * 5000 + "1" + "}" * 5000,
        "{a: 1}",
        "",
        "{",
    ],
)
def test_what_might_be_at_fault_is_left_to_the_careful_way(text: str) -> None:
    assert plain_object(text) is None


def test_what_is_plain_is_read_at_once() -> None:
    text = '{"a": [1, "b", {"c": null, "d": true}], "": ""}'
    assert plain_object(text) == FoundObject(json.loads(text), 0, len(text))


def test_e7_a_key_that_is_given_twice_is_a_defect_however_it_is_written() -> None:
    (found,) = find_objects('{"scores": {"a": 5, "a" : 1}}')
    assert found == Defect('the key "a" is given twice.')
