"""What all reply formats share: their interface, the verdicts, and tests of a reply's text."""

import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from jurybox.judging.flow import Defect
from jurybox.rubric.rubric_model import Criterion, Rubric

NUMBER = r"[-+]?(?:[0-9]{1,9}(?:\.[0-9]{1,15})?|\.[0-9]{1,15})"

# Between the verb and the number, allow only words that don't change what is scored.
_BETWEEN = (
    r"(?:[ \t]+(?:an?|the|this|that|it|its|my|one|overall|total|final|solid|strong|firm|clear|full"
    r"|perfect|score|rating|grade|mark|quality|response|answer|reply|message|assistant(?:['\u2019]s)?"
    r"|of|is|as|at|be|to|would|with|on)){0,7}"
)
SENTENCE = re.compile(
    r"\b(?:give|giving|rate[sd]?|rating|scor(?:e[sd]?|ing)|graded?|assign(?:ed)?|award(?:ed)?"
    r"|deserves?|earns?|merits?|receives?|say|call|settle|land|go|overall)"
    rf"{_BETWEEN},?[ \t]+[*_`]*(?={NUMBER})",
    re.IGNORECASE,
)
# A condition or reported speech applies to the whole sentence, a denial only to its own clause.
_REPORTED = re.compile(
    r"\b(?:if|unless|whether|ask(?:s|ed|ing)?|claim(?:s|ed|ing)?|says|said|tells|told|telling"
    r"|demand(?:s|ed|ing)?|instruct(?:s|ed|ing)?|insist(?:s|ed|ing)?|request(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|never|no|cannot|nor|could|might|may|tempted)\b|n['\u2019]t\b", re.IGNORECASE
)
_CONDITION = re.compile(r"[^.!?\n]*\b(?:if|unless)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n")
_LONGEST_SENTENCE = 300

_QUOTATIONS = re.compile(
    r"^[ \t]*>[^\n]*"
    r"|```.*?```|~~~.*?~~~|`[^`\n]*`"
    r"|\"[^\"]{0,2000}\"|\u201c[^\u201d]{0,2000}\u201d|\u00ab[^\u00bb]{0,2000}\u00bb"
    # Bounded, because each opening mark would otherwise search the rest of the line.
    r"|\u2018[^\u2019\n]{0,500}\u2019(?!\w)|(?<!\w)'[^'\n]*'(?!\w)",
    re.MULTILINE | re.DOTALL,
)
_LAYOUT = re.compile(r"[\s\\*_`]+")


@lru_cache(maxsize=4)
def _quotations(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in _QUOTATIONS.finditer(text))


def is_quoted(text: str, at: int) -> bool:
    """Return whether a position in a text is inside a quotation."""
    spans = _quotations(text)
    before = bisect_right(spans, at, key=lambda span: span[0])
    return before > 0 and at < spans[before - 1][1]


def is_copied(piece: str, material: Iterable[str]) -> bool:
    """Return whether a piece of a reply occurs in the material, ignoring formatting."""
    wanted = _LAYOUT.sub("", piece).casefold()
    return any(wanted in _bare(text) for text in material)


@lru_cache(maxsize=16)
def _bare(text: str) -> str:
    # Cached, because a reply is compared with the same material many times.
    return _LAYOUT.sub("", text).casefold()


def own_sentences(text: str) -> Iterator[re.Match[str]]:
    """Yield the sentences that give a score, each up to the score itself.

    Quoted, reported, denied and conditional scores are skipped.
    """
    for match in SENTENCE.finditer(text):
        start = max(0, match.start() - _LONGEST_SENTENCE)
        before = _SENTENCE_END.split(text[start : match.start()])[-1]
        clause = before.rpartition(",")[2]
        after = text[match.end() : match.end() + _LONGEST_SENTENCE]
        if not (
            _REPORTED.search(before)
            or _DENIED.search(clause)
            or _CONDITION.match(re.sub(NUMBER, "", after, count=1))
            or is_quoted(text, match.start())
        ):
            yield match


_GIVEN = (
    r"[*_`]*(?:\s*(?:/|out\s+of)\s*[0-9]+)?[*_`]*"
    r"(?=\s*(?:\Z|\n|[.,;:!?)|])|\s+(?:overall|for|on|because|since|as|points?)\b)"
)
_WINNER = re.compile(
    r"\b(?:winner|verdict|preference)\b[*_` ]*(?:[:=]|\bis\b)[*_` ]*(?:response\s+)?(?:[AB]|tie)\b"
    r"|\bresponse\s+[AB]\s+(?:wins|is\s+(?:clearly\s+|much\s+|slightly\s+)?better)\b"
    r"|\bI\s+(?:clearly\s+)?(?:prefer|choose|pick)\s+(?:response\s+)?[AB]\b",
    re.IGNORECASE,
)


def states_a_score(text: str, names: Iterable[str]) -> bool:
    """Return whether prose gives a score, overall or for one of the named criteria."""
    found = [*_labeled(tuple(names)).finditer(text)]
    for match in own_sentences(text):
        if re.compile(NUMBER + _GIVEN).match(text, match.end()):
            return True
    return any(not is_quoted(text, match.start()) for match in found)


def states_a_winner(text: str) -> bool:
    """Return whether prose states which of two responses is better."""
    return any(not is_quoted(text, match.start()) for match in _WINNER.finditer(text))


@lru_cache(maxsize=32)
def _labeled(names: tuple[str, ...]) -> re.Pattern[str]:
    words = [re.escape(name).replace("_", "[_ ]") for name in names]
    what = "|".join(["scores?", "rating", "grade", *words])
    return re.compile(
        rf"(?<![\w./])[0-9.]+\s*(?:/|out\s+of)\s*(?:[2-57]|10|100){_GIVEN}"
        rf"|\b(?:{what})\b[ \t*_`\"']*(?:\([^()\n]{{0,40}}\)[ \t*_`]*)?"
        rf"(?:[:=]|\bis\b|\bof\b|[-\u2013\u2014](?=\s))[ \t*_`]*{NUMBER}{_GIVEN}",
        re.IGNORECASE,
    )


Side = Literal["A", "B", "tie"]
SIDES: tuple[Side, ...] = ("A", "B", "tie")


class Remarks(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a reply apart from its verdict."""

    reasoning: dict[str, str]
    bias_checklist: dict[str, str]
    safety_concerns: tuple[str, ...] = ()
    extra: dict[str, Any] = {}
    fallback: bool = False


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """A score for each criterion of one response."""

    scores: dict[str, float]
    remarks: Remarks


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two responses is better, overall and by criterion."""

    winner: Side
    preferences: dict[str, Side]
    remarks: Remarks

    def mirrored(self) -> "Preference":
        """Return the same verdict with the two responses exchanged."""
        return msgspec.structs.replace(
            self,
            winner=mirror(self.winner),
            preferences={name: mirror(side) for name, side in self.preferences.items()},
        )


def mirror(side: Side) -> Side:
    """Exchange A and B."""
    match side:
        case "A":
            return "B"
        case "B":
            return "A"
        case "tie":
            return "tie"


V = TypeVar("V")


class ReplyForm(msgspec.Struct, Generic[V], frozen=True, kw_only=True):
    """A reply format applied to one rubric.

    ``schema`` is the JSON schema of the reply, for models with structured output. ``instructions``
    is the text that asks for the reply; without it, the rubric needs its own judge prompt. ``read``
    also takes the material, because a verdict copied from it is not the judge's.
    """

    read: Callable[[str, Sequence[str]], V | Defect]
    schema: str | None = None
    instructions: str | None = None


class ReplyFormat(ABC):
    """One way for a judge to write its verdict."""

    @abstractmethod
    def scores(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Scores]:
        """Return the form of a reply with scores."""

    def preference(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Preference] | None:
        """Return the form of a reply that compares two responses; None if the format has none."""
        del rubric, checklist
        return None

    @abstractmethod
    def forge(self, rubric: Rubric, checklist: Rubric, praise: str, side: Side | None) -> str:
        """Return a valid reply with the best verdict, or with a verdict for ``side`` if given."""

    def scored(self, rubric: Rubric) -> tuple[Criterion, ...]:
        """Return the criteria that a reply gives scores for."""
        return rubric.criteria

    def fallback(self, rubric: Rubric, reply: str) -> Scores | None:
        """Return the scores that replace an invalid reply; None leaves it unscored."""
        del rubric, reply
        return None


class OneScoreFormat(ReplyFormat):
    """A format whose replies have one score, or one choice, for the whole response."""

    def scored(self, rubric: Rubric) -> tuple[Criterion, ...]:
        """Return the only criterion; if there are several, one for the overall verdict."""
        if len(rubric.criteria) == 1:
            return rubric.criteria
        return (Criterion(id=rubric.overall_name, name=rubric.title, scale=rubric.scale),)


COPIED: Final = Defect("its verdict is copied from the material; give your own.")

TEXT_SCHEMA: dict[str, Any] = {"type": "string"}


def object_schema(properties: Mapping[str, object]) -> dict[str, Any]:
    """Return the JSON schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def as_defect(problems: Iterable[str]) -> Defect:
    """Return all faults of a reply as one defect."""
    return Defect(" ".join(f"{problem}." for problem in problems))
