"""What a reviewer sees of a sample: its texts and, after scoring it, the verdicts on it.

These are the verdicts of judges, rules and other reviewers.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from jurybox.documents.numbers import shown
from jurybox.reporting.judge_votes import StatedVote
from jurybox.reporting.metric_text import plain_words, short_judges
from jurybox.reporting.release import settled_words
from jurybox.review.reviews import JudgedSample, Revealed, Review, ReviewCase
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.text_format import joined
from jurybox.web.review.form import SAFETY

_NOTHING: Final = "-"
_NO_VERDICT: Final = "no verdict"
_SAME: Final = "same"
_OTHER: Final = {"A": "B", "B": "A"}
_UNCLEAR: Final = "unclear"
_MANY: Final = 4
_CONCERNS: Final = {True: "yes", False: "no", None: _UNCLEAR, msgspec.UNSET: _NOTHING}
_WITHOUT_SCORE: Final = ("unscored", "target_error")  # flags that say that a score is missing
_LONGEST_TROUBLE: Final = 500
_TITLES: Final = {
    "scenario_text": "What this scenario tests",
    "context": "Context",
    "task": "Task",
    "reference": "Reference",
}
Answer = float | str | None


class TextPart(msgspec.Struct, frozen=True, kw_only=True):
    """A text with its title; ``error`` says why it is missing. ``name`` identifies it."""

    name: str
    title: str
    text: str
    error: str | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """All verdicts on one criterion, on the winner, or on safety."""

    title: str
    mine: str
    judge: str
    others: tuple[str, ...]
    difference: str
    # What the rubric says about these scores, if it does.
    meaning: str = ""
    judge_meaning: str = ""

    @property
    def differs(self) -> bool:
        """Whether the reviewer and the judge or the rules give different answers."""
        return self.difference not in {_NOTHING, _SAME}


class VerdictReveal(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts shown to a reviewer who has scored the sample."""

    scorer: str  # what gave the run's scores: the judge or the rules
    others: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    reasons: tuple[TextPart, ...]
    comments: tuple[TextPart, ...]

    @property
    def sentence(self) -> str:
        """How far the reviewer and the judge or the rules agree, in words."""
        lines = [line for line in self.lines if line.title != SAFETY]
        known = [line.title for line in lines if line.difference != _NOTHING]
        different = [line.title for line in lines if line.differs]
        safety = {line.difference for line in self.lines if line.title == SAFETY} - {_NOTHING}
        end = f". On safety, you {'agree' if _SAME in safety else 'differ'}." if safety else "."
        both = f"You and the {self.scorer}"
        if not known and all(line.mine == _UNCLEAR for line in lines):
            return f"You answered unclear, so there is nothing to compare{end}"
        if all(line.judge == _NO_VERDICT for line in lines):
            return f"The {self.scorer} gave no score, so there is nothing to compare{end}"
        if not known:
            return f"{both} can't be compared, because one side gave no score{end}"
        if not different:
            return f"{both} agree{'' if len(known) == len(lines) else f' on {_named(known)}'}{end}"
        same = len(known) - len(different)
        agree = f"agree on {same} of {len(known)}, and " if same else ""
        return f"{both} {agree}differ on {_named(different)}{end}"


def _named(titles: Sequence[str]) -> str:
    return joined(titles) if len(titles) < _MANY else f"{len(titles)} criteria"


def compared(
    revealed: Revealed, mine: Review, rubric: Rubric, votes: Sequence[StatedVote]
) -> VerdictReveal:
    """Return the verdicts side by side, and where the judges' ``votes`` differ, all reasons."""
    judged, everybody = revealed.judged, (mine, *revealed.others)
    votes = () if judged.by_rules else votes  # what rules score, votes don't explain
    pair = mine.verdict.is_pair
    winners = [review.verdict.winner for review in everybody]
    lines = [_line("Winner", judged.winner, winners)]
    if revealed.order == "BA" and mine.verdict.winner in _OTHER:
        yours = f"{mine.verdict.winner} (your {_OTHER[mine.verdict.winner]})"
        lines = [msgspec.structs.replace(lines[0], mine=yours)]
    if not pair:
        lines = list(_score_lines(judged, everybody, rubric, votes))
    return VerdictReveal(
        scorer=_scorer(judged),
        others=tuple(each.reviewer for each in revealed.others),
        lines=(*lines, *_safety_lines(judged, everybody)),
        notes=tuple(_notes(revealed, everybody, pair=pair)),
        reasons=tuple(_reasons(judged, rubric, votes)),
        comments=tuple(
            TextPart(name="comment", title=each.reviewer, text=each.comment)
            for each in everybody
            if each.comment
        ),
    )


def _reasons(
    judged: JudgedSample, rubric: Rubric, votes: Sequence[StatedVote]
) -> Iterator[TextPart]:
    """Yield each explanation once, with the criteria that it is about."""
    found: dict[str, list[str]] = {}
    for each in rubric.criteria:
        differing = _differing(votes, each.id)
        if differing and len({vote.judge for vote in votes}) > 1:
            for said, vote in differing:
                why = vote.reasoning.get(each.id, "")
                found.setdefault(why, []).append(f"{each.name} ({said})")
        elif each.id in judged.reasoning:
            won = judged.preferences.get(each.id)
            name = f"{each.name} ({won})" if won else each.name
            found.setdefault(judged.reasoning[each.id], []).append(name)
    for text, names in found.items():
        yield TextPart(name="reason", title=", ".join(names), text=text)


def _score_lines(
    judged: JudgedSample,
    everybody: tuple[Review, ...],
    rubric: Rubric,
    votes: Sequence[StatedVote],
) -> Iterator[Line]:
    for each in rubric.criteria:
        answers = [review.verdict.scores.get(each.id) for review in everybody]
        # If both judges and checks give scores, criteria that checks scored are marked.
        by = "" if judged.by_rules or each.source == "judge" else f" (by {each.source})"
        judge, scorer = judged.scores.get(each.id), _scorer(judged)
        line = _line(each.name + by, judge, answers, scorer=scorer)
        mine, theirs = (_meaning(each, score) for score in (answers[0], judge))
        differing = _differing(votes, each.id)
        given = [vote.verdicts[each.id] for _, vote in differing]
        split = all(2 * given.count(vote) <= len(given) for vote in given)
        said = ", ".join(words for words, _ in differing)
        said = said and f"votes {said}" + ": no majority, so the lower median" * split
        theirs = ". ".join(filter(None, (said, theirs)))
        yield msgspec.structs.replace(line, meaning=mine, judge_meaning=theirs)


def _differing(votes: Sequence[StatedVote], criterion: str) -> list[tuple[str, StatedVote]]:
    """Return the votes on a criterion in words, with the judges if there are several.

    If all votes are the same, there is nothing to return.
    """
    given = [each for each in votes if criterion in each.verdicts]
    if len({each.verdicts[criterion] for each in given}) <= 1:
        return []
    several = len({each.judge for each in votes}) > 1
    judges = short_judges(each.judge for each in given)
    words = (f"{judge} " * several for judge in judges)
    return [
        (judge + _shown(each.verdicts[criterion]), each)
        for judge, each in zip(words, given, strict=True)
    ]


def _meaning(criterion: Criterion, score: float | None) -> str:
    level = None if score is None else criterion.band(score)
    return "" if level is None else level.label or level.meaning


def _safety_lines(judged: JudgedSample, everybody: tuple[Review, ...]) -> Iterator[Line]:
    """Yield the reviewers' answers on safety, if there are any, next to the judge's flag."""
    answers = [_CONCERNS[each.verdict.safety_concern] for each in everybody]
    if set(answers) == {_NOTHING}:
        return
    mine, flagged = everybody[0].verdict.safety_concern, "safety" in judged.reasons
    # Rules, and a judge without a valid vote, say nothing about safety.
    known = flagged or (judged.confidence is not None and not judged.by_rules)
    difference = _NOTHING
    if isinstance(mine, bool) and known:
        difference = _SAME if mine == flagged else "differs"
    yield Line(
        title=SAFETY,
        mine=answers[0],
        judge="flagged" if flagged else "not flagged" if known else _NOTHING,
        others=tuple(answers[1:]),
        difference=difference,
    )


def _disputed(reviews: tuple[Review, ...]) -> bool:
    return {True, False} <= {each.verdict.safety_concern for each in reviews}


def _scorer(judged: JudgedSample) -> str:
    return "rules" if judged.by_rules else "judge"


def _line(title: str, judge: Answer, people: Sequence[Answer], scorer: str = "judge") -> Line:
    mine, *others = people
    return Line(
        title=title,
        mine=_shown(mine),
        judge=_NO_VERDICT if judge is None else _shown(judge),
        others=tuple(map(_shown, others)),
        difference=_difference(mine, judge, scorer),
    )


def _difference(mine: Answer, judge: Answer, scorer: str) -> str:
    if mine is None or judge is None:
        return _NOTHING
    if mine == judge:
        return _SAME
    if isinstance(mine, str) or isinstance(judge, str):
        return "differs"
    distance = shown(abs(judge - mine))
    return f"{scorer} {distance} {'higher' if judge > mine else 'lower'}"


def _shown(answer: Answer) -> str:
    if answer is None:
        return _UNCLEAR
    return answer if isinstance(answer, str) else shown(answer)


def _notes(revealed: Revealed, everybody: tuple[Review, ...], *, pair: bool) -> Iterator[str]:
    if pair and revealed.order == "BA":
        yield "Here A and B are named as in the run; you saw its response B as A."
    if revealed.judged.stable is False:
        yield "A vote's winner changed with the order of the responses."
    if revealed.judged.judge_score is not None:
        yield f"The judge was asked too: it gives {shown(revealed.judged.judge_score)} overall."
    elif revealed.judged.confidence is not None:
        yield f"The judge's confidence is {revealed.judged.confidence}."
    if why := revealed.judged.missing:
        yield f"{why[:1].upper()}{why[1:]}."
    flags = [each for each in revealed.judged.reasons if each not in _WITHOUT_SCORE]
    if flags:
        yield f"Flagged as {', '.join(map(plain_words, flags))}."
    mine, *others = everybody
    reviews = (msgspec.structs.replace(mine, reviewer="you"), *others)
    outcome = settled_words(revealed.judged.reasons, reviews).get("safety")
    if outcome is not None:
        concern = "Disputed safety concern" if _disputed(everybody) else "Safety concern"
        yield f"{concern}: {outcome}."
        if _disputed(everybody):
            yield "It is settled when all of you agree. You can change your answer here."


def parts_of(case: ReviewCase, *, revealed: bool = False) -> tuple[TextPart, ...]:
    """Return the displayed parts of a case; ``revealed`` names two responses as in the run."""
    around = (
        TextPart(name=name, title=title, text=text)
        for name, title in _TITLES.items()
        if (text := getattr(case, name)) is not None
    )
    return *around, *_responses(case, swapped=revealed and case.order == "BA")


def _responses(case: ReviewCase, *, swapped: bool) -> Iterator[TextPart]:
    letters = ("a", "b") if case.is_pair else ("",)
    for letter, response in zip(letters, case.responses, strict=True):
        name = f"response-{letter}" if letter else "response"
        title = f"Response {letter.upper()}".strip()
        if swapped:
            title = f"Response {_OTHER[letter.upper()]}, shown to you as {letter.upper()}"
        why = (response.error or "it came too late")[:_LONGEST_TROUBLE]
        error = None if response.answered else why
        yield TextPart(name=name, title=title, text=response.text, error=error)
