"""What the server says, put together."""

from typing import Any

import msgspec
import pytest

from jurybox.models.local.llama import AnswerStream, RequestCancelledError
from jurybox.models.local.prompt_cache import UnanswerableError


def said(text: str, **more: Any) -> bytes:  # noqa: ANN401 - whatever JSON has
    choice = {"text": text, "index": 0, **more.pop("choice", {})}
    return msgspec.json.encode({"choices": [choice], **more})


END = said(
    "",
    choice={"finish_reason": "stop"},
    usage={"prompt_tokens": 5, "completion_tokens": 2},
    timings={"cache_n": 3},
)


def heard(*parts: bytes) -> AnswerStream:
    answer = AnswerStream(lambda: False)
    for part in parts:
        answer.add(part)
    return answer


def test_the_parts_make_an_answer() -> None:
    token = {"id": 1, "token": "yes", "logprob": -0.5, "bytes": []}
    entry = {**token, "top_logprobs": [token]}
    answer = heard(said("", prompt_progress={}), said("ye"), said("s"), END)
    answer.check()
    completion = answer.completion(3, with_logprobs=False)
    assert (completion.text, completion.finish_reason) == ("yes", "stop")
    assert (completion.prompt_tokens, completion.completion_tokens, answer.kept) == (5, 2, 3)
    assert completion.logprobs is None
    answer = heard(said("yes", choice={"logprobs": {"content": [entry]}}), END)
    plain = {"token": "yes", "logprob": -0.5}
    found = answer.completion(0, with_logprobs=True).logprobs
    assert msgspec.json.decode(found or "") == {"content": [plain | {"top_logprobs": [plain]}]}


def test_who_wants_no_more_ends_it() -> None:
    answer = AnswerStream(lambda: True)
    assert answer.add(said("y"))
    with pytest.raises(RequestCancelledError):
        answer.check()


@pytest.mark.parametrize(
    ("part", "what"),
    [
        (b'{"error": {"message": "too\\nmuch"}}', "too much"),
        (b'{"code": 500, "message": "no"}', "no"),
        (b"{}", "doesn't say why"),
        (b"nonsense", "DecodeError"),
        (b'{"choices": 5}', "ValidationError"),
    ],
)
def test_a_complaint_ends_it_in_one_line(part: bytes, what: str) -> None:
    answer = AnswerStream(lambda: False)
    assert answer.add(part)
    with pytest.raises(UnanswerableError, match=what):
        answer.check()


def test_an_answer_without_an_end_is_none() -> None:
    with pytest.raises(UnanswerableError, match="in the middle"):
        heard(said("y")).check()


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
    answer = heard(said("", choice={"logprobs": {"content": [token]}}), END)
    with pytest.raises(UnanswerableError, match="weights are damaged"):
        answer.completion(0, with_logprobs=True)
