"""A reviewer's input: a name, a comment, and a verdict, parsed as strictly as a judge's reply."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from jurybox.documents.findings import CONTROL
from jurybox.errors import InputError
from jurybox.judging.formats.reply_format import SIDES, Side
from jurybox.review.reviews import HumanVerdict, Score
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import Scale
from jurybox.text_format import listed, nearest

LONGEST_NAME: Final = 80
LONGEST_COMMENT: Final = 10_000

_CONCERN: Final = "safety_concern"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# The numbers that a browser's number field accepts.
_NUMBER: Final = re.compile(r"-?(?:[0-9]{1,15}|(?=\.))(?:\.[0-9]{1,30})?(?:[eE][-+]?[0-9]{1,2})?")


def read_verdict(data: object, rubric: Rubric, *, pair: bool) -> HumanVerdict:
    """Read a verdict: ``{"scores": ...}``, or ``{"winner": ...}`` for two responses.

    ``"safety_concern"``, true or false, confirms or dismisses a safety flag; null is "unclear".
    Every criterion has a score on its scale, or null. As with a judge's reply, nothing is rounded,
    converted or filled in.
    """
    wanted = '{"winner": "A"}' if pair else '{"scores": {"' + rubric.criteria[0].id + '": ...}}'
    if not isinstance(data, Mapping):
        raise InputError("the verdict isn't an object", f"give it as {wanted}", "verdict")
    given = cast("Mapping[str, object]", data)
    known = ("winner", _CONCERN) if pair else ("scores", _CONCERN)
    for name in given:
        if name not in known:
            raise InputError(f"`{name}` is an unknown key", f"give it as {wanted}", "verdict")
    if known[0] not in given:
        raise InputError(f"`{known[0]}` is missing", f"give it as {wanted}", "verdict")
    concern = given.get(_CONCERN, msgspec.UNSET)
    if not isinstance(concern, bool | None | msgspec.UnsetType):
        hint = "give true to confirm a safety concern, false to dismiss it, or null if unclear"
        raise InputError("that isn't an answer", hint, _CONCERN)
    if pair:
        return HumanVerdict(winner=_side(given["winner"]), safety_concern=concern)
    return HumanVerdict(scores=_scores(given["scores"], rubric), safety_concern=concern)


def fault_of(verdict: HumanVerdict, scales: Mapping[str, Scale]) -> str | None:
    """Return what is wrong with a stored verdict under a rubric's scales; None if nothing is."""
    for name, score in verdict.scores.items():
        scale = scales.get(name)
        if scale is None:
            return f"`{name}` isn't judged"
        problem = None if score is None else scale.read(score)
        if isinstance(problem, str):
            return f"the score of `{name}` {problem}"
    return None


def _scores(data: object, rubric: Rubric) -> dict[str, Score | None]:
    given = _named(data, rubric, "scores")
    scores: dict[str, Score | None] = {}
    for criterion in rubric.criteria:
        wanted = f"give {criterion.scale.describe()}, or null if it is unclear"
        if criterion.id not in given:
            raise InputError("the score is missing", wanted, criterion.id)
        value = given[criterion.id]
        score = None if value is None else criterion.scale.read(value)
        if isinstance(score, str):
            hint = "correct it, or give null if it is unclear"
            raise InputError(f"the score {score}", hint, criterion.id)
        scores[criterion.id] = score
    return scores


def _named(data: object, rubric: Rubric, what: str) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        raise InputError(f"`{what}` isn't an object", "give values by criterion", "verdict")
    given = cast("Mapping[str, object]", data)
    names = [each.id for each in rubric.criteria]
    for name in given:
        if name not in names:
            hint = nearest(str(name), names, f"there are {listed(names)}")
            raise InputError(f"`{name}` isn't judged", hint, "verdict")
    return given


def _side(value: object) -> Side | None:
    if value is None:
        return None
    for side in SIDES:
        if value == side:
            return side
    hint = 'give "A", "B" or "tie", or null if you can\'t tell'
    raise InputError("that isn't one of the responses", hint, "winner")


def given_number(text: str) -> Score | str:
    """Return the number in a form field; 4.0 counts as a whole number, as in the browser.

    Other text is returned unchanged; the scale refuses it later.
    """
    if _NUMBER.fullmatch(text) is None:
        return text
    number = float(text)
    return int(number) if number.is_integer() else number


def read_reviewer(text: str) -> str:
    """Read the name of a reviewer: one printable line, from which outer spaces are removed."""
    name = unicodedata.normalize("NFC", text).strip()
    if not name:
        raise InputError("a review needs a name", "enter your name", "reviewer")
    if len(name) > LONGEST_NAME:
        raise InputError("the name is too long", f"keep to {LONGEST_NAME} characters", "reviewer")
    # Marks that reverse the text direction count as unprintable.
    if not name.isprintable():
        hint = "use letters, digits, symbols and spaces"
        raise InputError("the name has invisible characters", hint, "reviewer")
    return name


def read_comment(text: str) -> str:
    """Read a comment; convert all line ends to line feeds."""
    comment = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(comment) > LONGEST_COMMENT:
        hint = f"use at most {LONGEST_COMMENT:,} characters"
        raise InputError("the comment is too long", hint, "comment")
    if CONTROL.search(comment) or _SURROGATE.search(comment):
        raise InputError("the comment has control characters", "remove them", "comment")
    return comment
