"""A10: the names of models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.errors import InputError
from jurybox.models.providers import PROVIDERS, ModelName


@pytest.mark.parametrize(
    ("text", "provider", "name", "version"),
    [
        ("openai/gpt-4.1-2025-04-14", "openai", "gpt-4.1-2025-04-14", None),
        ("openai/Qwen/Qwen2.5-7B@a09a354", "openai", "Qwen/Qwen2.5-7B", "a09a354"),
        ("anthropic/claude-sonnet-4@20250514", "anthropic", "claude-sonnet-4", "20250514"),
        ("python/my.judges:strict", "python", "my.judges:strict", None),
        ("python/my.judges:strict@2", "python", "my.judges:strict", "2"),
        ("replay/runs/me@home/latest.jsonl", "replay", "runs/me@home/latest.jsonl", None),
        ("local/qwen2.5-coder-1.5b", "local", "qwen2.5-coder-1.5b", None),
        ("local//models/me@home/latest.gguf", "local", "/models/me@home/latest.gguf", None),
        ("openai/llama3:8b", "openai", "llama3:8b", None),
    ],
)
def test_a_name_is_taken_apart(text: str, provider: str, name: str, version: str | None) -> None:
    parsed = ModelName.parse(text)
    assert (parsed.provider, parsed.name, parsed.version) == (provider, name, version)
    assert str(parsed) == text


@pytest.mark.parametrize("text", ["", "gpt-4o", "/gpt-4o", "openai/", "openai", "  "])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="isn't the name of a model; write `provider/name`"):
        ModelName.parse(text)


@pytest.mark.parametrize("text", ["openai/m@", "openai/@1", "openai/@"])
def test_half_a_name_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="lacks a"):
        ModelName.parse(text)


def test_a_slip_in_the_provider_gets_a_hint() -> None:
    with pytest.raises(InputError, match=r"no provider `open-ai`; did you mean `openai`\?"):
        ModelName.parse("open-ai/gpt-4o")
    with pytest.raises(
        InputError, match="there are `anthropic`, `local`, `openai`, `python`, `replay`"
    ):
        ModelName.parse("zzz/gpt-4o")


@pytest.mark.parametrize(
    "text",
    [
        "openai/gpt-4.1-2025-04-14",
        "openai/gpt-4.1@2025-04-14",
        "openai/anything@v1",
        "anthropic/claude-sonnet-4-20250514",
        "openai/gpt-4-0613",
        "openai/gpt-4-1106-preview",
        "openai/mistral-large-2411",
        "openai/gemini-2.0-flash-001",
        "openai/m:sha256:0123456789ab",
        "openai/m-9bb58f26192e4ba00f01e2e7b136bbd8a09a354f",
        "python/m:f@3",
        "replay/runs/one.jsonl",
        "local/smollm2-135m",
    ],
)
def test_a_version_a_date_or_a_digest_pins(text: str) -> None:
    assert ModelName.parse(text).is_pinned


@pytest.mark.parametrize(
    "text",
    [
        "openai/gpt-4o",
        "openai/gpt-4.1",
        "openai/o3",
        "openai/llama3:8b",
        "openai/Qwen/Qwen2.5-72B-Instruct",
        "openai/gpt-oss-120b",
        "anthropic/claude-sonnet-4-5",
        "openai/model-2048",
        "openai/deadbeef",
    ],
)
def test_anything_else_does_not(text: str) -> None:
    assert not ModelName.parse(text).is_pinned
    assert ModelName.parse(text).pin is None


@pytest.mark.parametrize("text", ["python/m:f", "replay/talk.jsonl", "local/./own.gguf"])
def test_what_is_yours_always_means_the_same_and_has_no_version(text: str) -> None:
    assert ModelName.parse(text).is_pinned
    assert ModelName.parse(text).pin is None


@given(st.text(max_size=40))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    for begin in ("", *(f"{provider}/" for provider in PROVIDERS)):
        try:
            parsed = ModelName.parse(begin + text)
        except InputError:
            continue
        assert ModelName.parse(str(parsed)) == parsed
