"""Proposes the next change by rule, from disagreements of judge and people on the tune part.

Whether a change helps is measured later, on samples that it wasn't derived from.

Evidence judges are asked whether the best or the worst level is true, and never see definitions,
notes or examples, so for them only the wording of these two levels can change. Requiring a level to
be true throughout makes it rarer; allowing it to be true in part makes it more frequent.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal

import msgspec

from jurybox.calibration import rubric_changes
from jurybox.calibration.calibration_record import Agreement, CriterionAgreement, JudgeBias
from jurybox.calibration.gold import GoldCase, gold_scales, loss_of
from jurybox.documents.numbers import show_number
from jurybox.rubric.rubric_model import Criterion, Level, Rubric
from jurybox.text_format import listed

ChangeKind = Literal["anchors", "levels", "examples", "model"]

MOST_EXAMPLES: Final = 4
_WORDS: Final = {"higher": "stricter", "lower": "more generous"}
_FEWEST_CONFUSED: Final = 3


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change worth trying.

    ``key`` identifies it, so that a refused change is not tried again; ``criterion`` is None if it
    concerns all criteria; ``rubric`` includes the change.
    """

    key: str
    kind: ChangeKind
    criterion: str | None
    hypothesis: str
    rubric: Rubric


def propose(
    rubric: Rubric,
    cases: Sequence[GoldCase],
    metrics: Agreement,
    tried: frozenset[str],
    *,
    narrow: bool = False,
) -> Proposal | None:
    """Return the first change that wasn't tried yet; None if there are none left.

    With ``narrow``, judges see only the best and worst levels, so only these are changed.
    """
    found = _end_changes(rubric, metrics) if narrow else _proposals(rubric, cases, metrics)
    return next((each for each in found if each.key not in tried), None)


def _proposals(rubric: Rubric, cases: Sequence[GoldCase], metrics: Agreement) -> Iterator[Proposal]:
    """Yield changes of every kind in turn, so that a few rounds try more than one kind."""
    known = {each.id: each for each in rubric.criteria}
    about = [(known[each.criterion], each) for each in metrics.criteria if each.criterion in known]
    about.sort(key=lambda pair: (-_bias_share(pair[1]), pair[0].id))
    kinds = (
        list(_anchors(rubric, about)),
        [each for criterion, _ in about for each in _levels(rubric, criterion, cases)],
        list(_examples(rubric, cases)),
    )
    for turn in zip_longest(*kinds):
        yield from (each for each in turn if each is not None)


def _bias_share(metric: CriterionAgreement) -> float:
    """Return the bias as a share of the scale; 0 if it isn't significant."""
    bias, scale = metric.bias, metric.scale
    if bias is None or scale is None or bias.direction == "undecided" or bias.value is None:
        return 0.0
    return abs(bias.value) / (scale[1] - scale[0])


def _anchors(
    rubric: Rubric, about: Sequence[tuple[Criterion, CriterionAgreement]]
) -> Iterator[Proposal]:
    """Yield changes that ask a clearly biased judge for stricter or more generous scores.

    Criteria with the same direction of bias are changed together first, then separately.
    """
    off = [
        (criterion, bias)
        for criterion, metric in about
        if (bias := metric.bias) is not None and bias.direction != "undecided"
    ]
    for direction in _WORDS:
        alike = [(criterion, bias) for criterion, bias in off if bias.direction == direction]
        if len(alike) > 1:
            names = listed(criterion.id for criterion, _ in alike)
            yield _anchor(rubric, alike, "all", names, " on all of them")
    for criterion, bias in off:
        by = show_number(round(abs(bias.value or 0.0), 2))
        yield _anchor(rubric, [(criterion, bias)], criterion.id, f"`{criterion.id}` about {by}", "")


def _anchor(
    rubric: Rubric,
    off: Sequence[tuple[Criterion, JudgeBias]],
    key: str,
    names: str,
    where: str,
) -> Proposal:
    direction = off[0][1].direction
    changed = rubric
    for criterion, bias in off:
        changed = rubric_changes.with_guidance(changed, criterion.id, _anchor_note(bias))
    return Proposal(
        key=f"anchors {key} {direction}",
        kind="anchors",
        criterion=off[0][0].id if len(off) == 1 else None,
        hypothesis=f"the judge scores {names} {direction} than people; asked to be"
        f" {_WORDS[direction]}{where}, it comes closer to them",
        rubric=changed,
    )


def _anchor_note(bias: JudgeBias) -> str:
    by = show_number(round(abs(bias.value or 0.0), 2))
    if bias.direction == "higher":
        end, last = "lower", "the highest only where nothing at all is missing"
    else:
        end, last = "higher", "the lowest only where nothing at all is right"
    return (
        f"be {_WORDS[bias.direction]} than you would be by yourself. Judges have scored this about"
        f" {by} {bias.direction} than people do. Where you hesitate between two scores give the"
        f" {end} one, and {last}."
    )


def _levels(rubric: Rubric, criterion: Criterion, cases: Sequence[GoldCase]) -> Iterator[Proposal]:
    """Yield notes on levels that the judge often gives where people give a different level."""
    counts: dict[tuple[int, int], int] = {}
    for case in cases:
        people, judge = case.gold.score(criterion.id), case.verdict.scores.get(criterion.id)
        if people is None or judge is None:
            continue
        theirs, its = _level_of(criterion, people), _level_of(criterion, judge)
        if theirs is not None and its is not None and theirs != its:
            counts[theirs, its] = counts.get((theirs, its), 0) + 1
    for (theirs, its), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count < _FEWEST_CONFUSED:
            return
        right, wrong = criterion.levels[theirs], criterion.levels[its]
        about, meaning = f"{criterion.id}, level {_ends(wrong)}", " ".join(right.meaning.split())
        note = (
            f"Judges often give this where people give {_ends(right)} ({meaning.rstrip('.')});"
            f" give {_ends(right)} where that describes the response as well."
        )
        yield Proposal(
            key=f"levels {criterion.id} {theirs} {its}",
            kind="levels",
            criterion=criterion.id,
            hypothesis=f"on `{criterion.id}` the judge gives {_ends(wrong)} where people give"
            f" {_ends(right)} ({count} samples); with the difference between the two levels spelled"
            " out, it confuses them less",
            rubric=rubric_changes.with_guidance(rubric, about, note),
        )


def _level_of(criterion: Criterion, score: float) -> int | None:
    level = criterion.band(criterion.scale.nearest(score))
    return None if level is None else criterion.levels.index(level)


def _ends(level: Level) -> str:
    return " to ".join(dict.fromkeys([show_number(level.low), show_number(level.high)]))


def _examples(rubric: Rubric, cases: Sequence[GoldCase]) -> Iterator[Proposal]:
    scales = gold_scales(rubric)
    apart = [(loss_of(case, scales), case) for case in cases]
    wrong = sorted((pair for pair in apart if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].id))
    names = [*(criterion.id for criterion in rubric.criteria), rubric.overall_name]
    # The largest disagreements first; if these examples don't help, the next may.
    for start in range(0, len(wrong), MOST_EXAMPLES):
        chosen = [case for _, case in wrong[start : start + MOST_EXAMPLES]]
        count = "1 sample" if len(chosen) == 1 else f"{len(chosen)} samples"
        yield Proposal(
            key=f"examples {' '.join(case.id for case in chosen)}",
            kind="examples",
            criterion=None,
            hypothesis=f"shown {count} on which judge and people are far apart, with people's"
            " scores and comments, the judge learns what people look for",
            rubric=rubric_changes.with_examples(
                rubric, rubric_changes.examples_text(chosen, names)
            ),
        )


THROUGHOUT: Final = "Clearly and throughout: "
IN_PART: Final = "At least in part: "
# A judge that scores too high should find the best level less often and the worst more often.
_OPENINGS: Final[dict[str, tuple[str, str]]] = {
    "higher": (THROUGHOUT, IN_PART),
    "lower": (IN_PART, THROUGHOUT),
}


def _end_changes(rubric: Rubric, metrics: Agreement) -> Iterator[Proposal]:
    """Yield changes to the best and worst levels, for the criteria that are furthest off first."""
    off = {each.criterion: each.bias.value for each in metrics.criteria if each.bias is not None}
    known = [
        (criterion, by)
        for criterion in rubric.criteria
        if (by := off.get(criterion.id)) and len(criterion.levels) > 1
    ]
    known.sort(key=lambda pair: (-abs(pair[1]) / pair[0].scale.span, pair[0].id))
    for criterion, by in known:
        direction = "higher" if by > 0 else "lower"
        changed = _with_ends(rubric, criterion, *_OPENINGS[direction])
        if changed == rubric:
            continue  # an earlier round made this change
        asked = " and ".join(f"`{each.strip(' :').lower()}`" for each in _OPENINGS[direction])
        yield Proposal(
            key=f"ends {criterion.id} {direction}",
            kind="levels",
            criterion=criterion.id,
            hypothesis=f"the judge scores `{criterion.id}` about {show_number(round(abs(by), 2))}"
            f" {direction} than people; asked whether the best and the worst level hold {asked}, it"
            " comes closer to them",
            rubric=changed,
        )


def _with_ends(rubric: Rubric, criterion: Criterion, best: str, worst: str) -> Rubric:
    ordered = sorted(criterion.levels, key=lambda level: level.low)
    openings = {ordered[-1]: best, ordered[0]: worst}
    levels = tuple(
        _opened(level, openings[level]) if level in openings else level
        for level in criterion.levels
    )
    return rubric_changes.replaced(rubric, msgspec.structs.replace(criterion, levels=levels))


def _opened(level: Level, opening: str) -> Level:
    bare = level.meaning.removeprefix(THROUGHOUT).removeprefix(IN_PART)
    return msgspec.structs.replace(level, meaning=f"{opening}{bare}")
