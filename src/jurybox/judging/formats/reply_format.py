"""The interface of a reply format, and the values of a valid reply."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from jurybox.judging.flow import Defect, ReaskPolicy
from jurybox.rubric.rubric_model import Criterion, Rubric

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
        """Return the format of a reply that compares two responses; None if there isn't one."""
        del rubric, checklist
        return None

    @abstractmethod
    def forge(self, rubric: Rubric, checklist: Rubric, praise: str, side: Side | None) -> str:
        """Return a valid reply with the best verdict; with a side, one in its favor."""

    def scored(self, rubric: Rubric) -> tuple[Criterion, ...]:
        """Return the criteria that a reply gives scores for."""
        return rubric.criteria

    def reask_policy(self, rubric: Rubric) -> ReaskPolicy:
        """Return how to ask again after an invalid reply."""
        return ReaskPolicy(reasks=rubric.reasks, reask_with=rubric.reask_with)

    def fallback(self, rubric: Rubric, reply: str) -> Scores | None:
        """Return the scores that replace an invalid reply; None leaves it unscored."""
        del rubric, reply
        return None


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
