"""Which family a model belongs to."""

import pytest

from jurybox.calibration.observations import family_of


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai/gpt-4.1-2025-04-14", "gpt"),
        ("gpt-4o-mini", "gpt"),
        ("ChatGPT-0301", "gpt"),
        ("openai/o3-2025-04-16", "gpt"),
        ("anthropic/claude-opus-4-20250514", "claude"),
        ("claude-2", "claude"),
        ("gemini-2.5-pro", "gemini"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama"),
        ("openai/qwen2.5-7b-instruct@1", "qwen"),
        ("local/qwen2.5-1.5b", "qwen"),
        ("mixtral-8x7b", "mistral"),
        ("openai/deepseek-r1-distill-llama", "llama"),
        ("anthropic", "claude"),
    ],
)
def test_the_stem_of_the_name_tells_the_family_whoever_serves_it(model: str, family: str) -> None:
    assert family_of(model) == family


def test_an_unknown_model_is_a_family_of_its_own() -> None:
    assert family_of("acme/Zeta-9@3") == family_of("zeta-9") == "zeta-9"
    assert family_of("python/judges:gpt") == "python/judges:gpt"
