"""What a valid reply says."""

from typing import Any, Literal

import msgspec

Side = Literal["A", "B", "tie"]
SIDES: tuple[Side, ...] = ("A", "B", "tie")


class Remarks(msgspec.Struct, frozen=True, kw_only=True):
    """What a reply says next to its verdict."""

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
    """Which of two responses is better, as a whole and by criterion."""

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
