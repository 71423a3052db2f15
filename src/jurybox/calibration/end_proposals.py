"""What to try with judges that are asked narrow questions: is the best level true, is the worst?

They are never shown definitions, notes or examples, so the only words to change are those of the
two levels at the ends. A level that is asked to be true throughout is found less often, one that
may be true in part more often.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal

import msgspec

from jurybox.calibration.cases import Case
from jurybox.calibration.changing import replaced
from jurybox.documents.numbers import show_number
from jurybox.rubric.model import Criterion, Level, Rubric

Direction = Literal["higher", "lower"]

THROUGHOUT: Final = "Clearly and throughout: "
IN_PART: Final = "At least in part: "
# Best and worst level: who scores too high shall find the best one less often, the worst one more.
_OPENINGS: Final[dict[Direction, tuple[str, str]]] = {
    "higher": (THROUGHOUT, IN_PART),
    "lower": (IN_PART, THROUGHOUT),
}


class EndChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change to the words of a criterion's best level, its worst level, or both."""

    key: str
    criterion: str
    hypothesis: str
    rubric: Rubric


def end_changes(rubric: Rubric, cases: Sequence[Case]) -> Iterator[EndChange]:
    """Yield changes, the criteria that are furthest off first, one change of each in turn."""
    off = [(criterion, _difference(criterion, cases)) for criterion in rubric.criteria]
    known = [(criterion, by) for criterion, by in off if by and len(criterion.levels) > 1]
    known.sort(key=lambda pair: (-abs(pair[1]) / _width(pair[0]), pair[0].id))
    for turn in zip_longest(*(list(_of_criterion(rubric, *pair)) for pair in known)):
        yield from (each for each in turn if each is not None)


def _difference(criterion: Criterion, cases: Sequence[Case]) -> float:
    """Return by how much the judge is above people on average."""
    apart: list[float] = []
    for case in cases:
        people, judge = case.gold.score(criterion.id), case.verdict.scores.get(criterion.id)
        if people is not None and judge is not None:
            apart.append(judge - people)
    return sum(apart) / len(apart) if apart else 0.0


def _width(criterion: Criterion) -> float:
    return criterion.scale.high - criterion.scale.low


def _of_criterion(rubric: Rubric, criterion: Criterion, by: float) -> Iterator[EndChange]:
    direction: Direction = "higher" if by > 0 else "lower"
    best, worst = _OPENINGS[direction]
    for ends, what in (
        ((best, None), "the best level"),
        ((None, worst), "the worst level"),
        ((best, worst), "both ends"),
    ):
        changed = _with_ends(rubric, criterion, *ends)
        if changed == rubric:
            continue  # a round before has done so
        asked = " and ".join(f"`{each.strip(' :').lower()}`" for each in ends if each is not None)
        yield EndChange(
            key=f"ends {criterion.id} {direction} {what}",
            criterion=criterion.id,
            hypothesis=f"the judge scores `{criterion.id}` about {show_number(round(abs(by), 2))}"
            f" {direction} than people; asked whether {what} holds {asked}, it comes nearer to"
            " them",
            rubric=changed,
        )


def _with_ends(rubric: Rubric, criterion: Criterion, best: str | None, worst: str | None) -> Rubric:
    ordered = sorted(criterion.levels, key=lambda level: level.low)
    openings = {ordered[-1]: best, ordered[0]: worst}
    levels = tuple(_opened(level, openings.get(level)) for level in criterion.levels)
    return replaced(rubric, msgspec.structs.replace(criterion, levels=levels))


def _opened(level: Level, opening: str | None) -> Level:
    if opening is None:
        return level
    bare = level.meaning.removeprefix(THROUGHOUT).removeprefix(IN_PART)
    return msgspec.structs.replace(level, meaning=f"{opening}{bare}")
