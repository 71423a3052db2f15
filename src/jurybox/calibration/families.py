"""Which family a model belongs to: models of one family may favour each other's words."""

import re
from typing import Final

# By the names that providers give their models; the first that fits.
_FAMILIES: Final[tuple[tuple[str, str], ...]] = (
    ("claude", r"claude"),
    ("gemini", r"gemini|gemma|palm|\bbard"),
    ("llama", r"llama"),
    ("qwen", r"qwen|qwq"),
    ("mistral", r"mistral|mixtral|ministral|codestral|magistral|devstral|pixtral"),
    ("deepseek", r"deepseek"),
    ("gpt", r"gpt|davinci|\bo[134](?:-|$)"),
    ("phi", r"\bphi-?\d"),
    ("grok", r"grok"),
    ("command", r"\bcommand-|\bc4ai|\baya\b"),
    ("glm", r"\bglm|chatglm"),
    ("kimi", r"kimi|moonshot"),
    ("yi", r"\byi-"),
    ("falcon", r"falcon"),
    ("nova", r"\bnova-"),
    ("olmo", r"olmo"),
    ("smollm", r"smollm"),
    ("granite", r"granite"),
    ("nemotron", r"nemotron"),
    ("vicuna", r"vicuna"),
)
_PATTERNS: Final = tuple((name, re.compile(pattern)) for name, pattern in _FAMILIES)
_PROVIDERS: Final = {"openai": "gpt", "anthropic": "claude", "google": "gemini", "meta": "llama"}
# A function, a recording or a script may be called anything.
_OWN: Final = ("python/", "replay/", "command/")


def family_of(model: str) -> str:
    """Return the family of a model by its name, with or without a provider before it.

    The stem of the name counts, not who serves it: ``openai/qwen2.5-7b`` is of ``qwen``. A name
    without a known stem is a family of its own, without its version.
    """
    text = model.strip().casefold()
    if text.startswith(_OWN):
        return text
    name = text.partition("@")[0]
    stem = next((family for family, pattern in _PATTERNS if pattern.search(name)), None)
    return stem or _PROVIDERS.get(name, name.rpartition("/")[2] or name)
