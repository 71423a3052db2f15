"""What may stand in an address."""

import pytest

from jurybox.web.filters import FILTERS, PAGE, read_filter
from jurybox.web.parameters import Parameter, read_query
from jurybox.web.refusals import Refusal

WHOLE = Parameter(
    name="n", schema={"type": "integer", "minimum": 0, "maximum": 9}, about="", needed=True
)
REAL = Parameter(name="x", schema={"type": "number"}, about="")
MANY = Parameter(name="w", schema={"type": "string", "enum": ["a", "b"]}, about="", many=True)


@pytest.mark.parametrize("text", ["", "x", "10", "-1", "1.0", "1_0", "\uff10", "1" * 50])
def test_a_whole_number_is_nothing_else(text: str) -> None:
    with pytest.raises(Refusal):
        read_query([WHOLE], [("n", text)], form=False)


@pytest.mark.parametrize(
    "text", ["nan", "inf", "1e999", "0x1", "1_0", "--1", "1" * 60, " 1", ".", "1.", "-"]
)
def test_a_number_is_finite_and_plain(text: str) -> None:
    with pytest.raises(Refusal):
        read_query([REAL], [("x", text)], form=False)


@pytest.mark.parametrize(("text", "value"), [(".5", 0.5), ("-.5e1", -5.0), ("007.50", 7.5)])
def test_a_number_is_read_as_a_browser_lets_it_be_typed(text: str, value: float) -> None:
    assert read_query([REAL], [("x", text)], form=True) == {"x": value}


def test_values_are_read_by_their_types() -> None:
    pairs = [("n", "7"), ("x", "-2.5e1"), ("w", "a"), ("w", "b")]
    assert read_query([WHOLE, REAL, MANY], pairs, form=False) == {
        "n": 7,
        "x": -25.0,
        "w": ("a", "b"),
    }


def test_what_is_unknown_missing_or_doubled_is_refused() -> None:
    for pairs in ([("n", "1"), ("y", "1")], [], [("n", "1"), ("n", "1")]):
        with pytest.raises(Refusal):
            read_query([WHOLE], pairs, form=False)


def test_a_form_sends_empty_fields_and_those_of_others() -> None:
    assert read_query([WHOLE, REAL], [("n", "1"), ("x", ""), ("y", "1")], form=True) == {"n": 1}


def test_a_filter_can_be_written_into_an_address_again() -> None:
    pairs = [("search", "a&b=c"), ("flag", "split"), ("flag", "failed"), ("low", "0.5")]
    asked = read_filter([*pairs, ("page", "3")], (PAGE,), form=True)
    assert asked.address() == "?search=a%26b%3Dc&flag=split&flag=failed&low=0.5"
    assert asked.address(search=None, flag=None, low=None, page=2) == "?page=2"
    query = asked.query("overall", offset=10)
    assert (query.figure, query.low, query.flags, query.offset) == (
        "overall",
        0.5,
        ("split", "failed"),
        10,
    )
    assert read_filter([], form=False).address() == ""


def test_every_parameter_is_described() -> None:
    for each in FILTERS:
        assert each.document()["description"].endswith(".")
