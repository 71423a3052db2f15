"""What a reply says in words: every string once, in its order, apart from the others."""

import json
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from jurybox.judging.formats.json_format import spoken

WORDS = st.text(st.sampled_from('abc "\\{}[]:,\n\té'), max_size=5)
LEAVES = WORDS | st.none() | st.booleans() | st.integers(-9, 9) | st.just(0.5)
JSON = st.recursive(
    LEAVES,
    lambda held: st.lists(held, max_size=3) | st.dictionaries(WORDS, held, max_size=3),
    max_leaves=12,
)


def strings(value: object) -> Iterator[str]:
    """Walk any JSON level by level."""
    level = [value]
    while level:
        yield from [each for each in level if isinstance(each, str)]
        lists = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [inner for each in lists if isinstance(each, list) for inner in each]


@given(st.lists(st.dictionaries(WORDS, JSON, max_size=4), max_size=3))
def test_every_string_is_returned_and_all_prose(objects: list[dict[str, object]]) -> None:
    reply = "Well. " + " And: ".join(map(json.dumps, objects)) + " Done."
    said = ["Well. "] if objects else ["Well.  Done."]
    for number, each in enumerate(objects, start=1):
        said += [*strings(each), " And: " if number < len(objects) else " Done."]
    assert spoken(reply) == said


def test_a_reply_that_cannot_be_taken_apart_is_one_text() -> None:
    assert spoken('{"a": "b"} {"c": }') == ['{"a": "b"} {"c": }']


def test_an_object_alone_has_no_prose_and_no_words_are_no_text() -> None:
    assert spoken('{"a": ["b", {"c": "d"}], "e": 1}') == ["b", "d"]
    assert spoken("") == []
