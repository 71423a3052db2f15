"""A run's votes and scores as numbers, for bias metrics; no text is kept."""

import re
from typing import Final

import msgspec

from jurybox.judging.formats.reply_format import Side

# Lists, headings, bold text, code, tables and emoji.
_LAYOUT: Final = re.compile(
    r"^[ \t]{0,8}(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+\S"
    r"|^ {0,3}#{1,6}[ \t]+\S"
    r"|\*\*[^*\s][^*\n]{0,400}\*\*|__[^_\s][^_\n]{0,400}__"
    r"|^ {0,3}(?:```|~~~)|`[^`\n]{1,400}`"
    r"|^[ \t]*\|?[ \t]*:?-{3,}:?[ \t]*\|[-|: \t]*$"
    "|[\u2600-\u26ff\u2705\u2728\u274c\u2753-\u2757\u2764\U0001f300-\U0001faff]",
    re.MULTILINE,
)


def is_formatted(text: str) -> bool:
    """Return whether a text has formatting: lists, headings, bold text, code, tables or emoji."""
    return _LAYOUT.search(text) is not None


def words_in(text: str) -> int:
    """Return the number of words in a text."""
    return len(text.split())


# Each family with a pattern for the names of its models; the first match counts.
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
_FAMILY_PATTERNS: Final = tuple((name, re.compile(pattern)) for name, pattern in _FAMILIES)
_PROVIDERS: Final = {"openai": "gpt", "anthropic": "claude", "google": "gemini", "meta": "llama"}
# The name of a function, a recording or a script says nothing about its family.
_OWN_NAMES: Final = ("python/", "replay/", "command/")


def family_of(model: str) -> str:
    """Return the family of a model by its name, with or without a provider before it.

    The stem of the name counts, not the provider: ``openai/qwen2.5-7b`` belongs to ``qwen``. A name
    without a known stem is its own family, without the version.
    """
    text = model.strip().casefold()
    if text.startswith(_OWN_NAMES):
        return text
    name = text.partition("@")[0]
    stem = next((family for family, pattern in _FAMILY_PATTERNS if pattern.search(name)), None)
    return stem or _PROVIDERS.get(name, name.rpartition("/")[2] or name)


HALF: Final = 0.5


class ScoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A scored response: its score from 0 to 1, its length, and whether it is formatted.

    ``judge`` is the family of the judges, or empty for all judges together; ``maker`` is the family
    of the model that wrote the response, if known. ``gold`` is the human score, from 0 to 1.
    """

    sample: str
    score: float
    words: int = 0
    formatted: bool = False
    judge: str = ""
    maker: str = ""
    gold: float | None = None


class ObservedVote(msgspec.Struct, frozen=True, kw_only=True):
    """One vote on a pair."""

    sample: str
    straight: Side  # the winner with A shown first
    swapped: Side  # the winner with B shown first, mapped back
    winner: Side = "tie"  # the result of the vote: a tie if the two orders differ
    kept: dict[str, bool] = {}  # by criterion, whether both orders have the same preference
    words: tuple[int, int] = (0, 0)  # how long the two responses are
    formatted: tuple[bool, bool] = (False, False)  # whether they have formatting
    judge: str = ""  # the family of the judge
    makers: tuple[str, str] | None = None  # the families of the models that wrote the responses
    gold: Side | None = None  # which response people prefer


class Observations(msgspec.Struct, kw_only=True):
    """All observations of a run; ``criteria`` are the ids of its rubric's criteria."""

    criteria: tuple[str, ...] = ()
    scored: list[ScoredResponse] = []  # by all judges together
    graded: list[ScoredResponse] = []  # by the judges of each family, for known makers
    voted: list[ObservedVote] = []


def share_of(side: Side, of: Side) -> float:
    """Return one side's share of a vote: 1, 0, or 0.5 for a tie."""
    return HALF if side == "tie" else float(side == of)
