"""What to try next, by rule, from where judge and people disagree on the tune part.

Nothing here says that a change helps: that is measured, on samples it was not made from.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal

import msgspec

from jurybox.calibration.cases import Case, loss_of
from jurybox.calibration.changing import (
    examples_text,
    with_definition_note,
    with_examples,
    with_guidance,
    with_level_note,
)
from jurybox.calibration.comparison import rounded
from jurybox.calibration.end_proposals import end_changes
from jurybox.calibration.figures import Agreement, Bias, CriterionAgreement
from jurybox.calibration.gold import gold_scales
from jurybox.documents.numbers import show_number
from jurybox.rubric.model import Criterion, Level, Rubric
from jurybox.wording import listed

Kind = Literal["anchors", "levels", "ties", "examples", "model"]

MOST_EXAMPLES: Final = 4
_WORDS: Final = {"higher": "stricter", "lower": "more generous"}
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
    rubric: Rubric,
    cases: Sequence[Case],
    figures: Agreement,
    tried: frozenset[str],
    *,
    narrow: bool = False,
) -> Proposal | None:
    """Return the first change that wasn't tried yet; None where no rule has one left.

    Judges that are asked narrow questions (``narrow``) are told nothing but the levels at the ends,
    so that nothing else is proposed for them.
    """
    found = _for_narrow(rubric, cases) if narrow else _proposals(rubric, cases, figures)
    return next((each for each in found if each.key not in tried), None)


def _for_narrow(rubric: Rubric, cases: Sequence[Case]) -> Iterator[Proposal]:
    for each in end_changes(rubric, cases):
        yield Proposal(
            key=each.key,
            kind="levels",
            criterion=each.criterion,
            hypothesis=each.hypothesis,
            rubric=each.rubric,
        )


def _proposals(rubric: Rubric, cases: Sequence[Case], figures: Agreement) -> Iterator[Proposal]:
    """Yield changes of every kind in turn, so that a few rounds try more than one kind."""
    known = {each.id: each for each in rubric.criteria}
    about = [(known[each.criterion], each) for each in figures.criteria if each.criterion in known]
    about.sort(key=lambda pair: (-_bias_share(pair[1]), pair[0].id))
    kinds = (
        [*_anchors_of_all(rubric, about), *(p for pair in about for p in _anchors(rubric, *pair))],
        list(_ties(rubric, cases)),
        [each for criterion, _ in about for each in _levels(rubric, criterion, cases)],
        list(_examples(rubric, cases)),
    )
    for turn in zip_longest(*kinds):
        yield from (each for each in turn if each is not None)


def _bias_share(figure: CriterionAgreement) -> float:
    """Return the bias as a share of the scale; 0 where it could be chance."""
    bias, scale = figure.bias, figure.scale
    if bias is None or scale is None or bias.direction == "undecided" or bias.value is None:
        return 0.0
    return abs(bias.value) / (scale[1] - scale[0])


def _anchors_of_all(
    rubric: Rubric, about: Sequence[tuple[Criterion, CriterionAgreement]]
) -> Iterator[Proposal]:
    """Ask for the same on several criteria at once where they are off in the same direction."""
    for direction in ("higher", "lower"):
        off = [
            (criterion, bias)
            for criterion, figure in about
            if (bias := figure.bias) is not None and bias.direction == direction
        ]
        if len(off) < 2:  # noqa: PLR2004 - one has a change of its own
            continue
        changed = rubric
        for criterion, bias in off:
            changed = with_definition_note(changed, criterion, _anchor_note(bias))
        names = listed(criterion.id for criterion, _ in off)
        yield Proposal(
            key=f"anchors all {direction}",
            kind="anchors",
            criterion=None,
            hypothesis=f"the judge scores {names} {direction} than people; asked to be"
            f" {_WORDS[direction]} on all of them, it comes nearer to them",
            rubric=changed,
        )


def _anchors(
    rubric: Rubric, criterion: Criterion, figure: CriterionAgreement
) -> Iterator[Proposal]:
    """Ask for stricter or looser scores where the judge is clearly off in one direction."""
    bias = figure.bias
    if bias is None or bias.value is None or bias.direction == "undecided":
        return
    by = show_number(round(abs(bias.value), 2))
    yield Proposal(
        key=f"anchors {criterion.id} {bias.direction}",
        kind="anchors",
        criterion=criterion.id,
        hypothesis=f"the judge scores `{criterion.id}` about {by} {bias.direction} than people;"
        f" asked to be {_WORDS[bias.direction]}, it comes nearer to them",
        rubric=with_definition_note(rubric, criterion, _anchor_note(bias)),
    )


def _anchor_note(bias: Bias) -> str:
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
