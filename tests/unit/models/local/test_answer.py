"""What the server says, taken for what it is."""

import pytest

from jurybox.models.local.llama import _entry, _refused
from jurybox.models.local.prompt_cache import UnanswerableError


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (b'{"error": {"message": "too\\nmuch"}}', "too much"),
        (b'{"code": 500, "message": "no"}', "no"),
        (b"{}", "it doesn't say why"),
    ],
)
def test_a_complaint_is_one_line(answer: bytes, what: str) -> None:
    assert str(_refused(answer, "the template fails")) == f"the template fails: {what}"


ALIKE = [{"token": each, "logprob": -11.931214332580566} for each in "!#$%&"]


@pytest.mark.parametrize(
    "token",
    [
        {"token": "", "logprob": None, "top_logprobs": []},
        {**ALIKE[0], "top_logprobs": ALIKE},
    ],
    ids=["none", "all alike"],
)
def test_numbers_that_are_none_are_refused(token: dict[str, object]) -> None:
    with pytest.raises(UnanswerableError, match="weights are damaged"):
        _entry(token)
