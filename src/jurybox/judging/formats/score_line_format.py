"""The ``score-line`` reply format: ``Score: 0.8 | Reasoning: ...``."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from jurybox.documents.numbers import read_number, show_number
from jurybox.judging.flow import Defect
from jurybox.judging.formats.reply_format import (
    NUMBER,
    OneScoreFormat,
    Remarks,
    ReplyForm,
    Scores,
    Side,
    is_copied,
    is_quoted,
    own_sentences,
)
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import Scale

# The score must be on its label's line: a number further down may mean something else.
_DECORATION = r"[ \t*_`\"']*"
# A dash is a separator only if a space follows; "Score -0.7" has a sign.
# Text in brackets after the label is the scale, as in the prompt.
_LABEL = re.compile(
    rf"\bscore\b{_DECORATION}(?:\([^()\n]{{0,40}}\){_DECORATION})?"
    rf"(?:[:=]|[-\u2013\u2014](?=\s)){_DECORATION}",
    re.IGNORECASE,
)
_NUMBER = re.compile(NUMBER)
_OUT_OF = re.compile(r"[*_`]*\s*(?:/|out of)\s*[*_`]*([0-9]+(?:\.[0-9]+)?)", re.IGNORECASE)
# Text that must not follow a score: with it, the number would mean something else, or a range.
_SPOILT = re.compile(
    r"[*_`\"'\u2019)]*(?:\w|[.,:;]\S|[^\S\n]*[^\w\s|.,:;!?()\"'*_`\[-]|[^\S\n]*-+\s*>?\s*\.?\d"
    r"|[ \t\u00a0,;:.\u2026(]*"
    r"(?:\d|\.\d|(?:out\s+of|of|or|and|to|per|percent|minus|plus)\b))",
    re.IGNORECASE,
)
_BARE = re.compile(rf"\s*{NUMBER}\s*")
_DECIMAL = re.compile(r"(?<![\w.])[0-9]*\.[0-9]+(?![\w.]*\w)")
# A score that also occurs in the material counts only in the format that the prompt asks for.
_OPENING = re.compile(r"(?:[\W_]*\b(?:my|the|overall|final|total|quality)\b)*[\W_]*", re.IGNORECASE)
_CLOSING = re.compile(
    rf"\[?{NUMBER}(?:\s*(?:/|out of)\s*[0-9.]+)?[\]*_`\s]*"
    r"(?:(?P<alone>[.!]?[*_`\s]*\Z)|\||reasoning\b)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?][\W_]*\s")
_NAMED = rf"{_DECORATION}(?:\([^()\n]{{0,40}}\){_DECORATION})?[:=]{_DECORATION}"
_OVERALL = re.compile(rf"\b(?:overall|final)\b{_NAMED}", re.IGNORECASE)
_OTHER_LABEL = re.compile(rf"\b(?:overall|final|rating|grade|verdict)\b{_NAMED}", re.IGNORECASE)
# "0.7/1.0" at the beginning of a reply names the scale, so it can only be the score.
_SHARE = re.compile(rf"\A[\s*_`]*(?={NUMBER}[*_`]*\s*(?:/|out of)\s*[0-9])", re.IGNORECASE)
_QUOTE = re.compile(r"[ \t]*>")
# Bounded, because each label is searched for in the material.
_MOST_LABELS = 50
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_REASONING = re.compile(r"\breasoning\b[*_`\s]*:[*_`]*\s*(.*)", re.IGNORECASE | re.DOTALL)


class ScoreLineFormat(OneScoreFormat):
    """One overall score for the response, requested by the rubric's own judge prompt."""

    def scores(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Scores]:
        """Return the form of a reply with one score."""
        del checklist  # the rubric's own prompt describes the reply
        (whole,) = self.scored(rubric)
        return ReplyForm(
            read=lambda text, material: read_score_line(text, whole.id, whole.scale, material)
        )

    def forge(self, rubric: Rubric, checklist: Rubric, praise: str, side: Side | None) -> str:
        """Return a reply with the best score."""
        del checklist, side
        (whole,) = self.scored(rubric)
        return f"Score: {show_number(whole.scale.high)} | Reasoning: {praise}"

    def fallback(self, rubric: Rubric, reply: str) -> Scores | None:
        """Return the rubric's ``fallback_score``, if it has one."""
        score = rubric.fallback_score
        if score is None:
            return None
        (whole,) = self.scored(rubric)
        remarks = Remarks(reasoning={whole.id: reply}, bias_checklist={}, fallback=True)
        return Scores(scores={whole.id: score}, remarks=remarks)


FORMAT: Final = ScoreLineFormat()


def read_score_line(
    text: str, name: str, scale: Scale, material: Sequence[str] = ()
) -> Scores | Defect:
    """Read the only score in a reply; ``name`` is the criterion that it scores.

    The score follows the word "Score", or a sentence gives exactly one. A reply that is only a
    number is that score. A model's thoughts before its reply are ignored, since a score in them
    isn't the verdict. A score in a quotation is not the judge's own.
    """
    said = _without_thoughts(text, scale)
    if isinstance(said, Defect):
        return said
    if _BARE.fullmatch(said):
        return _bare_score(said.strip(), name, scale)
    text = said
    given = dict(_scores_at(text, _LABEL.finditer(text), scale))
    if len(given) > _MOST_LABELS:
        return Defect(f"it gives a score {len(given)} times; give exactly one.")
    score = _only_score(given.values())
    if score is None:
        score = _sentence_score(text, scale, material)
    elif not isinstance(score, Defect):
        score = _own_score(text, given, score, scale, material)
    if isinstance(score, Defect):
        return score
    reasoning = match[1] if (match := _REASONING.search(text)) else text
    remarks = Remarks(reasoning={name: reasoning.strip()}, bias_checklist={})
    return Scores(scores={name: score}, remarks=remarks)


def _only_score(given: Iterable[float | Defect]) -> float | Defect | None:
    found: set[float] = set()
    for score in given:
        if isinstance(score, Defect):
            return score
        found.add(score)
    if len(found) > 1:
        return Defect("it gives more than one score, and they differ; give exactly one.")
    return found.pop() if found else None


def _sentence_score(text: str, scale: Scale, material: Sequence[str]) -> float | Defect:
    """Read the decimal of a reply without a label: "I'd give it 0.7 overall"."""
    labels = [each for each in _OVERALL.finditer(text) if not is_quoted(text, each.start())]
    sentences = [
        match
        for match in (*own_sentences(text), *labels, *_SHARE.finditer(text))
        if not is_copied(text[match.start() : _number_end(text, match.end())], material)
    ]
    score = _only_score([each for _, each in _scores_at(text, sentences, scale)])
    # On a scale of whole numbers, a number in a sentence may count something else.
    if score is None or not scale.continuous:
        return Defect('it has no line of the form "Score: X.X | Reasoning: ...".')
    # The ends of the scale may be named next to the score.
    others = {float(each[0]) for each in _DECIMAL.finditer(text)} - {score, *scale.ends}
    if others and not isinstance(score, Defect):
        return Defect("it states more than one number that could be the score; give exactly one.")
    return score


def _number_end(text: str, at: int) -> int:
    number = _NUMBER.match(text, at)
    return at if number is None else number.end()


def _own_score(
    text: str, given: Iterable[int], score: float, scale: Scale, material: Sequence[str]
) -> float | Defect:
    """Return a labeled score unless it occurs only in quotations."""
    doubtful = any(
        (number := _NUMBER.match(each, label.end())) and read_number(number[0]) == score
        for each in material
        for label in _LABEL.finditer(each)
    )
    if not any(_is_own(text, at, material, doubtful=doubtful) for at in given):
        return Defect("its score is in a quotation; give your own.")
    if doubtful:
        other = [*own_sentences(text), *_OTHER_LABEL.finditer(text)]
        stated = [each for _, each in _scores_at(text, other, scale)]
        if any(each != score for each in stated):
            return Defect("it gives more than one score, and they differ; give exactly one.")
    return score


def _is_own(text: str, at: int, material: Sequence[str], *, doubtful: bool) -> bool:
    """Return whether the number at a position is the judge's own and not quoted."""
    start = text.rfind("\n", 0, at) + 1
    if _QUOTE.match(text, start):
        return False
    if not doubtful:
        return True
    line = text[start:].partition("\n")[0]
    closing = _CLOSING.match(line, at - start)
    if closing is None or is_quoted(text, at):
        return False
    label = max(match.start() for match in _LABEL.finditer(line) if start + match.end() <= at)
    alone = closing["alone"] is not None
    opening = line[:label] if alone else _SENTENCE_END.split(line[:label])[-1]
    if not _OPENING.fullmatch(opening):
        return False
    if not is_copied(line, material):
        return True
    before, after = text[:start].rstrip(), text[start + len(line) :].strip()
    ends_the_reply = not after or _REASONING.match(after) is not None
    return alone and ends_the_reply and not before.endswith(":")


def _without_thoughts(text: str, scale: Scale) -> str | Defect:
    """Return a reply without the block from ``<think>`` to ``</think>`` that it begins with.

    Only that block is certain to be the model's own. Tags elsewhere may be quoted from a response
    that tries to manipulate the score; a reply with a score between such tags is ambiguous.
    """
    marks = list(_THINK.finditer(text))
    if not marks:
        return text
    closing = [mark for mark in marks if mark[1]]
    start = 0 if marks[0][1] else marks[0].start()
    end = closing[-1].end() if closing else len(text)
    own = not marks[0][1] and not text[:start].strip() and len(closing) == 1
    if own:
        return text[end:]
    thoughts = text[start:end]
    labels = chain(_LABEL.finditer(thoughts), own_sentences(thoughts))
    if next(_scores_at(thoughts, labels, scale), None) is not None:
        return Defect("its thoughts can't be separated from its score; reply with the score alone.")
    return text


def _bare_score(written: str, name: str, scale: Scale) -> Scores | Defect:
    score = read_number(written)
    if score is None or isinstance(scale.read(score), str):
        return Defect(f"the score {written} is not {scale.describe()}.")
    return Scores(scores={name: score}, remarks=Remarks(reasoning={name: ""}, bias_checklist={}))


def _scores_at(
    text: str, labels: Iterable[re.Match[str]], scale: Scale
) -> Iterator[tuple[int, float | Defect]]:
    """Yield the position of each number that follows a label, with its score or defect."""
    for label in labels:
        score = _score_at(text, label.end(), scale)
        if score is not None:
            yield label.end(), score


def _score_at(text: str, at: int, scale: Scale) -> float | Defect | None:
    """Read the number at a position; None if there isn't one, as in a repeated "Score: X.X"."""
    bracketed = text.startswith("[", at)
    number = _NUMBER.match(text, at + bracketed)
    if number is None:
        return None
    end = number.end()
    if bracketed:
        if not text.startswith("]", end):
            return Defect(f"the score is not a plain number: give {scale.describe()}.")
        end += 1
    whole = _OUT_OF.match(text, end)
    # "0.8/1" matches the scale; "8/10" is on a different scale and is never converted.
    if whole is not None and float(whole[1]) == scale.high:
        end = whole.end()
    if _SPOILT.match(text, end):
        return Defect(f"the score is not a plain number: give {scale.describe()}.")
    score = read_number(number[0])
    if score is None or isinstance(scale.read(score), str):
        return Defect(f"the score {number[0]} is not {scale.describe()}.")
    return score
