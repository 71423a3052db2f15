"""The ``verdict-text`` reply format: prose with a verdict in the notation of other benchmarks.

Accepted are ``[[A]]``, ``Output (a) is better``, a last line that is a letter or a digit, ``Rating:
[[7]]``, and two scores in a line. If a reply has several of them, they must agree.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from jurybox.documents.numbers import read_number, show_number
from jurybox.judging.flow import Defect
from jurybox.judging.formats.reply_format import (
    COPIED,
    NUMBER,
    OneScoreFormat,
    Preference,
    Remarks,
    ReplyForm,
    Scores,
    Side,
    is_copied,
    is_quoted,
)
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.rubric.scale import Scale

T = TypeVar("T")

_SIDES: Final[dict[str, Side]] = {
    "a": "A", "1": "A", "b": "B", "2": "B", "c": "tie", "tie": "tie", "draw": "tie"
}  # fmt: skip
_THING: Final = r"(?:output|response|answer|assistant|summary|option|model|candidate|text)"
_NAMED: Final = rf"{_THING}\s*[*_`\"']*\(?\[?(?P<side>[ab12])\b\]?\)?[*_`\"']*"
_BRACKETS: Final = re.compile(r"\[\[\s*(?P<side>[abc12]|tie)\s*\]\]", re.IGNORECASE)
_OTHER: Final = rf"(?:than|to)\s+(?:the\s+other|{_THING}|[(\[]?[ab12]\b)"
# Only an overall preference: not "better written", and not "better than expected".
_BETTER: Final = re.compile(
    rf"\b{_NAMED}\s+(?:is|was|does|performs|wins)\s+"
    r"(?:(?:clearly|slightly|overall|much|significantly|marginally|definitely|the)\s+)*"
    r"(?:better|best|preferred|superior|winner)\b(?:\s+(?:one|choice|option|output|response|answer)\b)?"
    r"(?=[*_`\"')\]]*\s*(?:\Z|\n|[.;:!]|,(?!\s*(?:but|yet|though|however)\b)"
    rf"|(?:overall|because|since|as\s+it|due\s+to|and)\b|{_OTHER}))(?![^.!;\n]{{0,300}}\?)",
    re.IGNORECASE,
)
# Denied or set aside in its own clause, or conditional or reported anywhere in the sentence.
_DENIED: Final = re.compile(
    r"(?:\b(?:not|never|neither|nor|either|which|doubt|disagree|deny|false|wrong|hardly"
    r"|although|though|while|whereas|despite)\b|n['\u2019]t\b)[^.,;!?\n]*\Z"
    r"|\b(?:if|whether|unless|would|could|might|argue|says?|said|claims?|thinks?|why)\b[^.!?\n]*\Z",
    re.IGNORECASE,
)
# "It is not [[A]]", "I can't give it a [[7]]".
_REFUSED: Final = re.compile(
    r"(?:\b(?:not|never|cannot)\b|n['\u2019]t\b|\binstead\s+of\b|\brather\s+than\b)"
    r"(?:\s+(?:an?|the|it|be|give|rate|say|choose|pick|assign|award|rating|of))*[\s*_]*\Z",
    re.IGNORECASE,
)
# A digit after "the answer is" may be the answer to the task.
_ALONE: Final = re.compile(
    rf"(?:(?:(?:my|the|final|overall)\s+)*(?:verdict|answer(?!\W+(?:is\s+)?[*_`\"'(\[]*[12]\b)"
    rf"|choice|winner|decision|preference)"
    rf"\s*(?:is|:)?\s*)?(?:{_THING}\s*)?(?:[*_`\"'(\[]*)(?P<side>[ab12]|tie|draw)[*_`\"')\].]*",
    re.IGNORECASE,
)
_LONGEST_SENTENCE: Final = 300
_RATING: Final = re.compile(rf"\[\[\s*(?P<score>{NUMBER})\s*\]\]")
_LAST_SCORE: Final = re.compile(
    rf"(?:(?:(?:my|the|final|overall)\s+)*(?:score|rating|grade)\s*(?:is|:|=)?\s*)?"
    rf"[*_`\"'(\[]*(?P<score>{NUMBER})(?:\s*/\s*(?P<most>[0-9]{{1,9}}))?[*_`\"')\].]*",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"^\s*1[.)]\s", re.MULTILINE)
_END: Final = r"(?:\s*/\s*10)?(?![\w.]*\w)"
_NO_UNIT: Final = r"(?![*_ ]+\w)"
_A, _B = (rf"(?P<{side}>{NUMBER}){_END}" for side in "ab")
_TWO_SCORES: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        # "9 8.5" on the first line.
        rf"\A\s*{_A}(?:[ \t]*,[ \t]*|[ \t]+){_B}[ \t]*$",
        # "the scores are (1, 5)", "Output: (1, 5)" in a line of its own.
        (
            r"(?:\b(?:tuple|scores)\b[^.\n(]{0,40}\b(?:is|are)|^(?:output|scores|ratings)[ ]*):?"
            rf"[ ]*\(\s*{_A}\s*,\s*{_B}\s*\)"
        ),
        # "Assistant 1: 10", and below it "Assistant 2: 4".
        (
            rf"^[ \t*_#-]*{_THING}[ ]1[*_ ]*:[*_ ]*{_A}{_NO_UNIT}(?:[^\n]*\n){{1,3}}?"
            rf"[ \t*_#-]*{_THING}[ ]2[*_ ]*:[*_ ]*{_B}{_NO_UNIT}"
        ),
        # "Assistant 1 a score of 10 and Assistant 2 a score of 1".
        (
            rf"{_THING}[ ]1\b[^.\n0-9]{{0,30}}\bscores?[ ]of[ ]{_A}[^.\n0-9]{{1,40}}"
            rf"{_THING}[ ]2\b[^.\n0-9]{{0,30}}\bscores?[ ]of[ ]{_B}"
        ),
    )
)


class VerdictTextFormat(OneScoreFormat):
    """One overall verdict on the response or the pair."""

    def scores(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Scores]:
        """Return the form of a reply that rates one response."""
        del checklist
        (whole,) = self.scored(rubric)
        example = f"Rating: [[{show_number(whole.scale.high)}]]"

        def read(text: str, material: Sequence[str]) -> Scores | Defect:
            score = _verdict(text, _score_forms(text, whole.scale), material)
            if isinstance(score, Defect):
                return score
            return Scores(scores={whole.id: score}, remarks=_remarks(whole, text))

        asked = f"Reason first. End with your rating, {whole.scale.describe()}, as `{example}`."
        return ReplyForm(read=read, instructions=asked)

    def preference(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Preference] | None:
        """Return the form of a reply with a choice; None if there are several criteria."""
        del checklist
        if len(rubric.criteria) > 1:
            return None
        (whole,) = self.scored(rubric)

        def read(text: str, material: Sequence[str]) -> Preference | Defect:
            side = _verdict(text, _side_forms(text), material)
            if isinstance(side, Defect):
                return side
            remarks = _remarks(whole, text)
            return Preference(winner=side, preferences={whole.id: side}, remarks=remarks)

        asked = "Reason first. End with `[[A]]`, `[[B]]`, or `[[C]]` for a tie."
        return ReplyForm(read=read, instructions=asked)

    def forge(self, rubric: Rubric, checklist: Rubric, praise: str, side: Side | None) -> str:
        """Return a reply with the best verdict."""
        del checklist
        if side is not None:
            return f"{praise}\n[[{'C' if side == 'tie' else side}]]"
        (whole,) = self.scored(rubric)
        return f"{praise}\nRating: [[{show_number(whole.scale.high)}]]"


FORMAT: Final = VerdictTextFormat()


def _remarks(whole: Criterion, text: str) -> Remarks:
    return Remarks(reasoning={whole.id: text.strip()}, bias_checklist={})


def _verdict(
    text: str, forms: Sequence[Iterable[tuple[re.Match[str], T | None]]], material: Sequence[str]
) -> T | Defect:
    """Return the verdict that all matches agree on; a score off the scale is given as None."""
    found = [each for form in forms for each in form if not is_quoted(text, each[0].start())]
    own = [value for match, value in found if _is_own(text, match, material)]
    if found and not own:
        return COPIED
    values = {*own}
    if len(values) > 1:
        return Defect("it gives more than one verdict, and they differ; give exactly one.")
    verdict = values.pop() if values else None
    if verdict is None:
        return Defect("it states no verdict in the form and on the scale that was asked for.")
    return verdict


def _is_own(text: str, match: re.Match[str], material: Sequence[str]) -> bool:
    """Return whether a verdict is the judge's own: at the end, or not in the material."""
    ends = not text[match.end() :].strip(" \t\n.*_`\"')")
    return ends or len(match[0]) == len(text.strip()) or not is_copied(match[0], material)


def _side_forms(text: str) -> tuple[Iterable[tuple[re.Match[str], Side]], ...]:
    def sides(matches: Iterable[re.Match[str]]) -> Iterator[tuple[re.Match[str], Side]]:
        for match in matches:
            yield match, _SIDES[match["side"].lower()]

    better = _without(_DENIED, _BETTER, text)
    pairs = (match for pattern in _TWO_SCORES for match in pattern.finditer(text))
    compared: Iterator[tuple[re.Match[str], Side]] = ((match, _greater(match)) for match in pairs)
    brackets = _without(_REFUSED, _BRACKETS, text)
    return sides(brackets), sides(better), sides(_last(_ALONE, text)), compared


def _without(
    denial: re.Pattern[str], pattern: re.Pattern[str], text: str
) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern without a denial directly before them."""
    for match in pattern.finditer(text):
        if not denial.search(text, max(0, match.start() - _LONGEST_SENTENCE), match.start()):
            yield match


def _greater(match: re.Match[str]) -> Side:
    a, b = float(match["a"]), float(match["b"])
    return "tie" if a == b else "A" if a > b else "B"


def _score_forms(
    text: str, scale: Scale
) -> tuple[Iterable[tuple[re.Match[str], float | None]], ...]:
    def scores(matches: Iterable[re.Match[str]]) -> Iterator[tuple[re.Match[str], float | None]]:
        for match in matches:
            score = read_number(match["score"])
            most = match.groupdict().get("most")
            # A score on a different scale, such as "8/10", is never converted.
            fits = most is None or int(most) == scale.high
            on_scale = score is not None and fits and not isinstance(scale.read(score), str)
            yield match, score if on_scale else None

    return scores(_without(_REFUSED, _RATING, text)), scores(_last(_LAST_SCORE, text))


def _last(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the last line if it matches the pattern entirely.

    A digit below a numbered list is skipped, since it may be the number of an unfinished item.
    """
    bare = text.rstrip()
    if bare[-1:].isdigit() and _NUMBERED.search(bare):
        return
    match = pattern.fullmatch(bare, len(bare) - len(bare.rpartition("\n")[2].lstrip()))
    if match is not None:
        yield match
