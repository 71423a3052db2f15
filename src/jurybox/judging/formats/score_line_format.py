"""The ``score-line`` reply format: ``Score: 0.8 | Reasoning: ...`` (C15)."""

import re
from collections.abc import Iterator
from typing import Final

from jurybox.documents.numbers import read_number, show_number
from jurybox.judging.flow import Defect
from jurybox.judging.formats.reply_format import ReplyForm, ReplyFormat
from jurybox.judging.verdict import Remarks, Scores, Side
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.rubric.scale import Scale

# On the line of the label: a number further down may count something else.
_DECORATION = r"[ \t*_`\"']*"
# A dash is a separator only with a space behind it; "Score -0.7" has a sign.
# What stands in brackets behind the label is the scale, as the prompt itself writes it.
_LABEL = re.compile(
    rf"\bscore\b{_DECORATION}(?:\([^()\n]{{0,40}}\){_DECORATION})?"
    rf"(?:[:=]|[-\u2013\u2014](?=\s)){_DECORATION}",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,9}(?:\.[0-9]{1,15})?|\.[0-9]{1,15})")
_OUT_OF = re.compile(r"[*_`]*\s*(?:/|out of)\s*[*_`]*([0-9]+(?:\.[0-9]+)?)", re.IGNORECASE)
# What may not follow a score: anything that makes another number of it, a range or a choice.
_SPOILT = re.compile(
    r"[*_`\"'\u2019)]*(?:\w|[.,:;]\S|[^\S\n]*[^\w\s|.,:;!?()\"'*_`\[-]|[^\S\n]*-+\s*>?\s*\.?\d"
    r"|[ \t\u00a0,;:.\u2026(]*"
    r"(?:\d|\.\d|(?:out\s+of|of|or|and|to|per|percent|minus|plus)\b))",
    re.IGNORECASE,
)
_BARE = re.compile(rf"\s*{_NUMBER.pattern}\s*")
_THINK = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_REASONING = re.compile(r"\breasoning\b[*_`\s]*:[*_`]*\s*(.*)", re.IGNORECASE | re.DOTALL)


class ScoreLineFormat(ReplyFormat):
    """One score for the response as a whole, asked for by the rubric's own judge prompt."""

    def scored(self, rubric: Rubric) -> tuple[Criterion, ...]:
        """Return the only criterion, or the response as a whole."""
        if len(rubric.criteria) == 1:
            return rubric.criteria
        return (Criterion(id=rubric.overall_name, name=rubric.title, scale=rubric.scale),)

    def scores(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Scores]:
        """Return the form of a reply with a score."""
        del checklist  # the rubric's prompt says what is asked for
        (whole,) = self.scored(rubric)
        return ReplyForm(read=lambda text: read_score_line(text, whole.id, whole.scale))

    def forge(self, rubric: Rubric, checklist: Rubric, praise: str, side: Side | None) -> str:
        """Return a reply with the best score."""
        del checklist, side
        (whole,) = self.scored(rubric)
        return f"Score: {show_number(whole.scale.high)} | Reasoning: {praise}"

    def fallback(self, rubric: Rubric, reply: str) -> Scores | None:
        """Return the rubric's ``fallback_score``, where it has one (C15)."""
        score = rubric.protocol.fallback_score
        if score is None:
            return None
        (whole,) = self.scored(rubric)
        remarks = Remarks(reasoning={whole.id: reply}, bias_checklist={}, fallback=True)
        return Scores(scores={whole.id: score}, remarks=remarks)


FORMAT: Final = ScoreLineFormat()


def read_score_line(text: str, name: str, scale: Scale) -> Scores | Defect:
    """Read the one score that a reply gives behind the word "Score"; ``name`` is what it scores.

    A reply that is a number and nothing else is that score. What a model thinks aloud before it
    replies is left out: a score in there was weighed, not given.
    """
    said = _without_thoughts(text, scale)
    if isinstance(said, Defect):
        return said
    if _BARE.fullmatch(said):
        return _bare_score(said.strip(), name, scale)
    text = said
    found: set[float] = set()
    for score in _scores_in(text, scale):
        if isinstance(score, Defect):
            return score
        found.add(score)
    if not found:
        return Defect('it has no line of the form "Score: X.X | Reasoning: ...".')
    if len(found) > 1:
        return Defect("it gives more than one score, and they differ; give exactly one.")
    reasoning = match[1] if (match := _REASONING.search(text)) else text
    remarks = Remarks(reasoning={name: reasoning.strip()}, bias_checklist={})
    return Scores(scores={name: found.pop()}, remarks=remarks)


def _without_thoughts(text: str, scale: Scale) -> str | Defect:
    """Return a reply without the block from ``<think>`` to ``</think>`` that it begins with.

    Only that one is known to be the model's own. Marks anywhere else may be quoted from the
    response, which would like to choose what counts; with a score among them nothing is certain.
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
    if next(_scores_in(text[start:end], scale), None) is not None:
        return Defect("its thoughts can't be told from its score; reply with the score alone.")
    return text


def _bare_score(written: str, name: str, scale: Scale) -> Scores | Defect:
    score = read_number(written)
    if score is None or isinstance(scale.read(score), str):
        return Defect(f"the score {written} is not {scale.describe()}.")
    return Scores(scores={name: score}, remarks=Remarks(reasoning={name: ""}, bias_checklist={}))


def _scores_in(text: str, scale: Scale) -> Iterator[float | Defect]:
    for label in _LABEL.finditer(text):
        score = _score_at(text, label.end(), scale)
        if score is not None:
            yield score


def _score_at(text: str, at: int, scale: Scale) -> float | Defect | None:
    """Read the number at a place; None where there is none, as in a repeated "Score: X.X"."""
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
    # "0.8/1" says what the scale says; "8/10" speaks of another scale and is never converted.
    if whole is not None and float(whole[1]) == scale.high:
        end = whole.end()
    if _SPOILT.match(text, end):
        return Defect(f"the score is not a plain number: give {scale.describe()}.")
    score = read_number(number[0])
    if score is None or isinstance(scale.read(score), str):
        return Defect(f"the score {number[0]} is not {scale.describe()}.")
    return score
