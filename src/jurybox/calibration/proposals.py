"""What to try next, by rule, from where judge and people disagree on the tune part.

Nothing here says that a change helps: that is measured, on samples it was not made from.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from jurybox.calibration.cases import WINNER, Case, loss_of
from jurybox.calibration.changing import (
    examples_text,
    with_definition_note,
    with_examples,
    with_guidance,
    with_level_note,
)
from jurybox.calibration.comparison import rounded
from jurybox.calibration.figures import Agreement, CriterionAgreement
from jurybox.calibration.gold import gold_scales
from jurybox.documents.numbers import show_number
from jurybox.rubric.model import Criterion, Level, Rubric

Kind = Literal["anchors", "levels", "ties", "examples", "model"]

MOST_EXAMPLES: Final = 4
_FEWEST_CONFUSED: Final = 3
# Ties are too many or too few where their shares differ by this much.
_TIES_APART: Final = 0.15


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change worth trying.

    Attributes:
        key: what tells it from others; a change that was refused is not tried again.
        kind: what is changed.
        criterion: on which criterion; None where it is about all of them.
        hypothesis: why it could help, in words.
        rubric: the rubric with the change made.

    """

    key: str
    kind: Kind
    criterion: str | None
    hypothesis: str
    rubric: Rubric


def propose(
    rubric: Rubric, cases: Sequence[Case], figures: Agreement, tried: frozenset[str]
) -> Proposal | None:
    """Return the first change that wasn't tried yet; None where no rule has one left."""
    return next(
        (each for each in _proposals(rubric, cases, figures) if each.key not in tried), None
    )


def _proposals(rubric: Rubric, cases: Sequence[Case], figures: Agreement) -> Iterator[Proposal]:
    known = {each.id: each for each in rubric.criteria}
    about = [(known[each.criterion], each) for each in figures.criteria if each.criterion in known]
    about.sort(key=lambda pair: (-_bias_share(pair[1]), pair[0].id))
    for criterion, figure in about:
        yield from _anchors(rubric, criterion, figure)
    for figure in figures.criteria:
        if figure.criterion == WINNER:
            yield from _ties(rubric, cases)
    for criterion, _ in about:
        yield from _levels(rubric, criterion, cases)
    yield from _examples(rubric, cases)


def _bias_share(figure: CriterionAgreement) -> float:
    """Return the bias as a share of the scale; 0 where it could be chance."""
    bias, scale = figure.bias, figure.scale
    if bias is None or scale is None or bias.direction == "undecided" or bias.value is None:
        return 0.0
    return abs(bias.value) / (scale[1] - scale[0])


def _anchors(
    rubric: Rubric, criterion: Criterion, figure: CriterionAgreement
) -> Iterator[Proposal]:
    """Ask for stricter or looser scores where the judge is clearly off in one direction."""
    bias = figure.bias
    if bias is None or bias.value is None or bias.direction == "undecided":
        return
    by = show_number(round(abs(bias.value), 2))
    if bias.direction == "higher":
        word, way, end = "stricter", "higher", "lower"
        top = "the highest only where nothing at all is missing"
    else:
        word, way, end = "more generous", "lower", "higher"
        top = "the lowest only where nothing at all is right"
    note = (
        f"be {word} than you would be by yourself. Judges have scored this about {by} {way} than"
        f" people do. Where you hesitate between two scores give the {end} one, and {top}."
    )
    yield Proposal(
        key=f"anchors {criterion.id} {bias.direction}",
        kind="anchors",
        criterion=criterion.id,
        hypothesis=f"the judge scores `{criterion.id}` about {by} {way} than people; asked to be"
        f" {word}, it comes nearer to them",
        rubric=with_definition_note(rubric, criterion, note),
    )


def _ties(rubric: Rubric, cases: Sequence[Case]) -> Iterator[Proposal]:
    pairs = [case for case in cases if case.gold.winners and case.verdict.winner is not None]
    if not pairs:
        return
    people = sum(case.gold.winner == "tie" for case in pairs) / len(pairs)
    judge = sum(case.verdict.winner == "tie" for case in pairs) / len(pairs)
    if abs(judge - people) < _TIES_APART:
        return
    often = judge > people
    word = "more often" if often else "less often"
    note = (
        "say `tie` only where no reader would prefer either; people decide for one of the two in"
        f" {1 - people:.0%} of the comparisons."
        if often
        else "say `tie` where the difference would matter to no reader; people do so in"
        f" {people:.0%} of the comparisons."
    )
    yield Proposal(
        key=f"ties {word}",
        kind="ties",
        criterion=None,
        hypothesis=f"the judge says `tie` {word} than people ({judge:.0%}, people {people:.0%});"
        " told how often they do, it decides as they would",
        rubric=with_guidance(rubric, "tie", note),
    )


def _levels(rubric: Rubric, criterion: Criterion, cases: Sequence[Case]) -> Iterator[Proposal]:
    """Say at the level that is given too often what people give in its place."""
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
        note = (
            f"Judges often give this where people give {_ends(right)} ({_meaning(right)});"
            f" give {_ends(right)} where that describes the response as well."
        )
        yield Proposal(
            key=f"levels {criterion.id} {theirs} {its}",
            kind="levels",
            criterion=criterion.id,
            hypothesis=f"on `{criterion.id}` the judge gives {_ends(wrong)} where people give"
            f" {_ends(right)} ({count} samples); told what tells the two levels apart, it keeps"
            " them apart",
            rubric=with_level_note(rubric, criterion, its, note),
        )


def _level_of(criterion: Criterion, score: float) -> int | None:
    level = criterion.band(rounded(score, criterion.scale))
    return None if level is None else criterion.levels.index(level)


def _ends(level: Level) -> str:
    return " to ".join(dict.fromkeys([show_number(level.low), show_number(level.high)]))


def _meaning(level: Level) -> str:
    meaning = " ".join(level.meaning.split())
    # What calibration added to it before would make the next addition a tangle.
    return meaning.partition(" Judges often give this")[0].rstrip(".")


def _examples(rubric: Rubric, cases: Sequence[Case]) -> Iterator[Proposal]:
    scales = gold_scales(rubric)
    apart = [(loss_of(case, scales), case) for case in cases]
    wrong = sorted((pair for pair in apart if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].id))
    names = [*(criterion.id for criterion in rubric.criteria), rubric.overall_name]
    # The worst first; where these don't help, the next ones may.
    for start in range(0, len(wrong), MOST_EXAMPLES):
        chosen = [case for _, case in wrong[start : start + MOST_EXAMPLES]]
        count = "1 sample" if len(chosen) == 1 else f"{len(chosen)} samples"
        yield Proposal(
            key=f"examples {' '.join(case.id for case in chosen)}",
            kind="examples",
            criterion=None,
            hypothesis=f"shown {count} with what people said of them, on which judge and people are"
            " far apart, the judge sees what people go by",
            rubric=with_examples(rubric, examples_text(chosen, names)),
        )
