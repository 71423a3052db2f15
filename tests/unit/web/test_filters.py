"""Which samples an address asks for."""

from typing import Any

import pytest
from pydantic import ValidationError

from jurybox.web.filters import ListFilter, PageFilter


@pytest.mark.parametrize(
    "given",
    [
        {"low": "nan"},
        {"low": "1e999"},
        {"high": "0x1"},
        {"limit": "0"},
        {"limit": "1.5"},
        {"offset": "-1"},
        {"flag": ["split", "nonsense"]},
        {"sort": "metric:"},
        {"search": "x\x00"},
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ListFilter.model_validate(given)


def test_a_filter_can_be_written_into_an_address_again() -> None:
    given = {"search": "a&b=c", "flag": ["split", "failed"], "low": ".5", "page": "3"}
    asked = PageFilter.model_validate(given)
    assert asked.address() == "?search=a%26b%3Dc&flag=split&flag=failed&low=0.5"
    assert asked.address(search=None, flag=None, low=None, page=2) == "?page=2"
    assert asked.address(at=0, low=0.0, flag=[]) == "?search=a%26b%3Dc&low=0.0&at=0"
    query = asked.query("overall", offset=10, limit=5)
    assert (query.metric, query.low, query.flags, query.offset) == (
        "overall",
        0.5,
        ("split", "failed"),
        10,
    )
    assert PageFilter().address() == ""
