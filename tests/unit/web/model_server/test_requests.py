import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.rubric.model import Generation
from jurybox.sample import Turn
from jurybox.web.model_server.refusals import Refused
from jurybox.web.model_server.requests import Asked, read_request

HELLO = [{"role": "user", "content": "Hello"}]
SEED = 7


def read(**fields: Any) -> Asked:  # noqa: ANN401 - whatever a client may say
    return read_request(msgspec.json.encode({"model": "m", "messages": HELLO, **fields}), SEED)


def refused(body: bytes) -> Refused:
    with pytest.raises(Refused) as caught:
        read_request(body, SEED)
    return caught.value


def test_a_request_that_says_little_means_what_openai_means() -> None:
    assert read() == Asked(
        model="m",
        messages=(Turn(role="user", content="Hello"),),
        generation=Generation(temperature=1.0, top_p=1.0, max_tokens=1024, seed=SEED),
    )


def test_a_request_that_says_all_is_read_to_the_letter() -> None:
    asked = read(
        temperature=0,
        top_p=0.5,
        max_tokens=3,
        seed=-1,
        logprobs=True,
        top_logprobs=20,
        stream=True,
        stream_options={"include_usage": True},
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "x", "strict": True, "schema": {"type": "integer"}},
        },
    )
    assert asked.generation == Generation(temperature=0, top_p=0.5, max_tokens=3, seed=-1)
    assert (asked.logprobs, asked.stream, asked.include_usage) == (20, True, True)
    assert asked.schema == '{"type":"integer"}'


def test_parts_of_a_text_are_joined_and_developers_speak_for_the_system() -> None:
    parts = [{"type": "text", "text": "Be"}, {"type": "text", "text": " brief."}]
    asked = read(messages=[{"role": "developer", "content": parts}, *HELLO])
    assert asked.messages[0] == Turn(role="system", content="Be brief.")


def test_an_answer_can_be_sent_back_with_all_its_fields() -> None:
    answer = {"role": "assistant", "content": "Hi", "refusal": None, "annotations": []}
    assert read(messages=[*HELLO, answer, *HELLO]).messages[1].content == "Hi"


def test_either_name_limits_the_tokens() -> None:
    assert read(max_completion_tokens=5).generation.max_tokens == 5
    assert read(max_tokens=5, max_completion_tokens=5).generation.max_tokens == 5


@pytest.mark.parametrize(("count", "wanted"), [(None, 0), (0, 0), (3, 3)])
def test_probabilities_may_be_wanted_without_alternatives(count: int | None, wanted: int) -> None:
    assert read(logprobs=True, top_logprobs=count).logprobs == wanted


def test_an_object_of_any_kind_is_a_schema_too() -> None:
    assert read(response_format={"type": "json_object"}).schema == '{"type":"object"}'
    assert read(response_format={"type": "text"}).schema is None


@pytest.mark.parametrize(
    "neutral",
    [
        {"n": 1, "presence_penalty": 0.0, "frequency_penalty": 0, "stop": None, "tools": []},
        {"logit_bias": {}, "tool_choice": "none", "modalities": ["text"], "stream": None},
        {"user": "me", "store": False, "metadata": {"a": "b"}, "service_tier": "auto"},
    ],
)
def test_what_changes_nothing_is_let_through(neutral: dict[str, Any]) -> None:
    assert read(**neutral) == read()


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"temperature": 2.1}, "temperature", "invalid_value"),
    ({"temperature": "hot"}, "temperature", "invalid_value"),
    ({"temperature": True}, "temperature", "invalid_value"),
    ({"top_p": -0.1}, "top_p", "invalid_value"),
    ({"max_tokens": 0}, "max_tokens", "invalid_value"),
    ({"max_tokens": 2**31}, "max_tokens", "invalid_value"),
    ({"max_tokens": 1, "max_completion_tokens": 2}, "max_completion_tokens", "invalid_value"),
    ({"seed": 1.5}, "seed", "invalid_value"),
    ({"logprobs": 5}, "logprobs", "invalid_value"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "invalid_value"),
    ({"top_logprobs": 1}, "top_logprobs", "invalid_value"),
    ({"n": 2}, "n", "unsupported_value"),
    ({"n": True}, "n", "unsupported_value"),
    ({"stop": ["x"]}, "stop", "unsupported_value"),
    ({"tools": [{"type": "function"}]}, "tools", "unsupported_value"),
    ({"presence_penalty": 0.5}, "presence_penalty", "unsupported_value"),
    ({"temprature": 1}, "temprature", "unknown_parameter"),
    ({"messages": []}, "messages", "invalid_value"),
    ({"messages": HELLO * 2049}, "messages", "invalid_value"),
    ({"messages": "Hello"}, "messages", "invalid_value"),
    ({"messages": ["Hello"]}, "messages[0]", "invalid_value"),
    ({"messages": None}, "messages", "missing_required_parameter"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
    ({"messages": [{"role": "tool", "content": ""}]}, "messages[0].role", "invalid_value"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "text": ""}]}]},
        "messages[0].content[0].type",
        "invalid_value",
    ),
    ({"messages": [{**HELLO[0], "name": "x"}]}, "messages[0].name", "unknown_parameter"),
    ({"response_format": {"type": "xml"}}, "response_format.type", "invalid_value"),
    (
        {"response_format": {"type": "json_schema"}},
        "response_format.json_schema",
        "missing_required_parameter",
    ),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": 5}}},
        "response_format.json_schema.schema",
        "invalid_value",
    ),
]


@pytest.mark.parametrize(("fields", "param", "code"), BAD, ids=str)
def test_a_bad_field_is_named(fields: dict[str, Any], param: str, code: str) -> None:
    with pytest.raises(Refused, match=r"^`") as caught:
        read(**fields)
    refusal = caught.value
    assert (refusal.status, refusal.param, refusal.code) == (400, param, code)
    assert f"`{param}`" in str(refusal)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"model": NaN}',
        b"[" * 100_000,
        b'{"model": "\\ud800"}',
        b"\xef\xbb\xbf{}",
    ],
    ids=repr,
)
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    refusal = refused(body)
    assert (refusal.status, refusal.code, refusal.param) == (400, "invalid_json", None)


def schema_of(schema: object) -> str | None:
    return read(response_format={"type": "json_schema", "json_schema": {"schema": schema}}).schema


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (msgspec.Raw(b'{"not":' * 65 + b"{}" + b"}" * 65), "nested deeper than 64 levels"),
        (msgspec.Raw(b'{"not":' * 900 + b"{}" + b"}" * 900), "nested deeper than 64 levels"),
        ({"enum": ["x" * 300_000]}, "longer than 256 KiB"),
        ({"items": {"maxItems": 1001}}, "repeats something more than 1000 times"),
        ({"anyOf": [{"minLength": 1e9}]}, "repeats something more than 1000 times"),
        ({"pattern": "^a{1001}$"}, "repeats something more than 1000 times"),
        ({"pattern": "(a|b){2, 99999999999999999999}"}, "repeats something more than 1000 times"),
    ],
    ids=["deep", "very deep", "long", "items", "letters", "pattern", "large pattern"],
)
def test_a_schema_that_could_choke_a_runtime_is_refused(schema: object, problem: str) -> None:
    with pytest.raises(Refused, match=f"^`response_format.json_schema.schema`: {problem}$"):
        schema_of(schema)


def test_a_schema_may_repeat_within_reason() -> None:
    schema = {"properties": {"maxItems": {"pattern": "a{2,1000}"}}, "maxItems": 1000}
    assert schema_of(schema) == msgspec.json.encode(schema).decode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
NAMES = ["model", "messages", "n", "seed", "logprobs", "response_format", "stream_options", "stop"]


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(), json_values))
def test_any_object_is_read_or_refused(fields: dict[str, Any]) -> None:
    body = msgspec.json.encode({"model": "m", "messages": HELLO, **fields})
    with contextlib.suppress(Refused):
        assert read_request(body, SEED).messages


@given(st.binary())
def test_any_bytes_are_refused(body: bytes) -> None:
    assert refused(body).status == 400
