"""A judge without a model: how far a response overlaps with the reference answer.

It measures overlap in words, not meaning: a good paraphrase gets too little, a wrong answer in the
right words too much. From 0 to 1, the share of the scale is

- 1 where the two are the same in normalised form (case, accents, layout, articles, spelling of
  numbers and units), or the whole reference stands in the response;
- else by the F1 of the content words and numbers: 0.9 at an F1 of 0.8 and above, and in proportion
  below. A number counts as one word, and as the same in another unit.

And it is held down, whatever the words:

- to 0.5 where a number of the reference is left out;
- to 0.2 where the response has another number of the same kind in its place, or denies what the
  reference says, or the other way round;
- to 0 where the response is empty.

Numbers are found wherever they stand, so two that changed places are not noticed; numbers that the
response has besides cost nothing. All of it takes time in proportion to the texts.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from jurybox.judging.asking import Judging
from jurybox.judging.flow import Answer, Unscored
from jurybox.judging.panel import Seat
from jurybox.judging.precautions import Precautions
from jurybox.judging.quantities import Quantity, Shelf
from jurybox.judging.verdict import Remarks, Scores
from jurybox.judging.wording import Wording, denied_against, worded
from jurybox.rubric.model import Criterion
from jurybox.sample import Sample

NOTICE: Final = "This is a measure of overlap in words, not a judgement of meaning."
NO_REFERENCE: Final = "the overlap judge needs a reference answer"
NO_CRITERION: Final = "the overlap judge scores only criteria about the reference, and got none"

_ENOUGH_F1: Final = 0.8
_BY_WORDS: Final = 0.9
_LEFT_OUT: Final = 0.5
_CONTRADICTED: Final = 0.2
_LONGEST_QUOTE: Final = 120
_MOST_QUOTED: Final = 8

_AGAINST: Final = {
    "position": "The response was measured alone, and every word counts alike wherever it stands.",
    "verbosity": (
        "Further words lower the overlap unless the whole reference stands in the response; a long"
        " response that lists many numbers or answers finds the right one among them by chance."
    ),
    "self_enhancement": "No model took part: {judge} counts words and knows no author.",
    "formatting": "Layout, case and punctuation are taken off before anything is compared.",
    "authority": "Titles and claimed sources are words like any others, and earn nothing.",
}
_PRECAUTIONS: Final = Precautions(
    _AGAINST,
    "Not looked into: {judge} compares words, numbers and negations, and can't be moved by anything"
    " else; it can be fooled by a wrong answer in the reference's words.",
)


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """How far up a scale the overlap goes, as a share and as a point of the criterion's scale."""

    share: float
    findings: tuple[str, ...]
    score: float


class _Finding(msgspec.Struct, frozen=True):
    """What was compared, and what the share can't be above because of it."""

    text: str
    most: float = 1.0


def measure(criterion: Criterion, reference: str, response: str) -> Overlap:
    """Measure the overlap of a response with the reference answer."""
    given, wanted = worded(response), worded(reference)
    if not response.strip() or not reference.strip():
        empty = "response" if not response.strip() else "reference"
        return _overlap(criterion, 0.0, [_Finding(f"The {empty} is empty.")])
    if given.form == wanted.form and (given.form or response.strip() == reference.strip()):
        same = _Finding(f"The response is the reference: {_quoted(reference)}.")
        return _overlap(criterion, 1.0, [same])
    whole = given.holds(wanted)
    where = "stands as a whole" if whole else "does not stand as a whole"
    match = _Finding(f"The reference {_quoted(reference)} {where} in {_quoted(response)}.")
    numbers = _numbers(wanted.quantities, given.quantities)
    f1, words = _f1(wanted, given, numbers)
    findings = [match, *numbers.findings(), words, _negation(wanted, given)]
    share = 1.0 if whole else _BY_WORDS * min(1.0, f1 / _ENOUGH_F1)
    return _overlap(criterion, min(share, *(each.most for each in findings)), findings)


def overlap_flow(
    judging: Judging, sample: Sample, response: str, seat: Seat, criteria: Sequence[Criterion]
) -> Answer[Scores] | Unscored:
    """Score the criteria that are about the reference, and no others; nobody is asked."""
    if sample.reference is None or not sample.reference.strip():
        return Unscored(reason=NO_REFERENCE, cause="defect")
    if not criteria:
        return Unscored(reason=NO_CRITERION, cause="defect")
    measured = {each.id: measure(each, sample.reference, response) for each in criteria}
    remarks = Remarks(
        reasoning={name: " ".join(each.findings) for name, each in measured.items()},
        bias_checklist=_PRECAUTIONS.completed(judging.checklist, seat.judge),
    )
    scores = {name: each.score for name, each in measured.items()}
    return Answer(value=Scores(scores=scores, remarks=remarks), replies=())


def _overlap(criterion: Criterion, share: float, findings: Iterable[_Finding]) -> Overlap:
    told = (NOTICE, *(each.text for each in findings))
    return Overlap(share=share, findings=told, score=criterion.scale.at(share))


class _Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the reference beside those of the response."""

    found: tuple[tuple[Quantity, Quantity], ...]
    left_out: tuple[Quantity, ...]
    wrong: tuple[Quantity, ...]
    extra: tuple[Quantity, ...]

    def findings(self) -> list[_Finding]:
        told = (
            ("Numbers of the reference found in the response", _pairs(self.found), 1.0),
            ("Numbers of the reference that the response lacks", _texts(self.left_out), _LEFT_OUT),
            (
                "Numbers of the reference in whose place the response has another",
                _texts(self.wrong),
                _CONTRADICTED,
            ),
            ("Numbers that only the response has", _texts(self.extra), 1.0),
        )
        return [
            _Finding(f"{label}: {_listed(texts)}.", most) for label, texts, most in told if texts
        ]


def _numbers(wanted: Sequence[Quantity], given: Sequence[Quantity]) -> _Numbers:
    """Look for each number of the reference in the response, and for what is there besides."""
    said = Shelf((each, (*each.exact, *each.loose, *each.implied)) for each in given)
    meant = Shelf((each, each.exact) for each in given)
    asked = Shelf((each, (*each.exact, *each.loose, *each.implied)) for each in wanted)
    asked_for = Shelf((each, each.exact) for each in wanted)
    pairs = [(each, said.like(each.exact) or meant.like(each.loose)) for each in wanted]
    extra = [
        each
        for each in given
        if not each.weak
        and asked.like(each.exact) is None
        and asked_for.like((*each.loose, *each.implied)) is None
    ]
    missing = [each for each, other in pairs if other is None and not each.weak]
    kinds = {kind for each in extra for kind in each.kinds}
    # The same figure in another unit, "$40" for "€40", is another number too.
    figures = Shelf((each, each.loose) for each in extra)
    replaced = [
        not kinds.isdisjoint(each.kinds) or figures.like(each.loose) is not None for each in missing
    ]
    return _Numbers(
        found=tuple((each, other) for each, other in pairs if other is not None),
        left_out=tuple(each for each, other in zip(missing, replaced, strict=True) if not other),
        wrong=tuple(each for each, other in zip(missing, replaced, strict=True) if other),
        extra=tuple(extra),
    )


def _texts(quantities: Iterable[Quantity]) -> list[str]:
    return list(dict.fromkeys(f'"{each.text}"' for each in quantities))


def _pairs(pairs: Iterable[tuple[Quantity, Quantity]]) -> list[str]:
    return list(
        dict.fromkeys(
            f'"{one.text}"'
            if one.text.casefold() == other.text.casefold()
            else f'"{one.text}" as "{other.text}"'
            for one, other in pairs
        )
    )


def _f1(wanted: Wording, given: Wording, numbers: _Numbers) -> tuple[float, _Finding]:
    """Return the harmonic mean of recall and precision, as F1 = 2 r p / (r + p)."""
    mine = Counter(word.key for word in wanted.words)
    its = Counter(word.key for word in given.words)
    shared = (mine & its).total()
    found = sum(not one.weak for one, _ in numbers.found)
    all_mine = mine.total() + found + len(numbers.left_out) + len(numbers.wrong)
    its_found = sum(not each.weak for each in given.quantities) - len(numbers.extra)
    all_its = its.total() + its_found + len(numbers.extra)
    recall = (shared + found) / max(all_mine, 1)
    precision = (shared + its_found) / max(all_its, 1)
    f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
    texts = {word.key: f'"{word.text}"' for word in wanted.words}
    missing = [texts[key] for key in mine - its]
    lacks = f"; it lacks {_listed(missing)}" if missing else ""
    counts = (
        f"{shared + found} of the reference's {all_mine} are in the response,"
        f" {shared + its_found} of the response's {all_its} in the reference"
    )
    return f1, _Finding(f"Content words and numbers: {counts}, F1 {f1:.2f}{lacks}.")


def _negation(wanted: Wording, given: Wording) -> _Finding:
    """Compare what the two texts deny."""
    if wanted.opening is not None and given.opening is not None and wanted.opening != given.opening:
        text = "Negation: one of the two begins with yes, the other with no."
        return _Finding(text, _CONTRADICTED)
    for one, other, names in (
        (wanted, given, ("reference", "response")),
        (given, wanted, ("response", "reference")),
    ):
        against = denied_against(one, other)
        if against:
            words = _listed([f'"{word}"' for word in against])
            text = f"Negation: the {names[0]} denies {words}, and the {names[1]} does not."
            return _Finding(text, _CONTRADICTED)
    return _Finding("Negation: nothing that one of the two denies is said by the other.")


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_QUOTED
    listed = ", ".join(texts[:_MOST_QUOTED])
    return f"{listed} and {more} more" if more > 0 else listed


def _quoted(text: str) -> str:
    # Cut first: splitting all of a huge text for its beginning would be a waste.
    shown = " ".join(text[: 4 * _LONGEST_QUOTE].split())
    cut = len(shown) > _LONGEST_QUOTE or len(text) > 4 * _LONGEST_QUOTE
    return f'"{shown[:_LONGEST_QUOTE]}..."' if cut else f'"{shown}"'
