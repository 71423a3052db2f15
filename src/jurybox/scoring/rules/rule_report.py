"""The results of automated scoring as plain data: scores, and how each was computed."""

from typing import Final

import msgspec

from jurybox.rubric.checks import CheckOutcome
from jurybox.rubric.rules import Source
from jurybox.text_format import counted

MOST_QUOTES: Final = 3
"""The maximum number of quotes per condition; a long text may have thousands of matches."""

# These values have no reference cycles: `gc=False` spares the garbage collector from visiting them.


class Quote(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The words that triggered a rule, as in the text, and where they start.

    ``source`` is the lexicon (empty for phrases listed in place) or the signal that found them.
    Safety findings are quoted as in the scan: masked, with a few words around them. The
    ``earlier`` text is the user's earlier messages with an empty line between them.
    """

    text: Source
    words: str
    start: int
    source: str


class FiredRule(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An adjustment whose conditions are met; ``index`` is its position from 0."""

    index: int
    rule: str
    """The adjustment in the words of a document: ``add 0.2 when response_words 10-30``."""
    why: str
    amount: float
    """The points it added; negative if it subtracted."""
    quotes: tuple[Quote, ...] = ()


class CriterionScore(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The score of one criterion: its base plus the fired rules' points, limited to the scale."""

    id: str
    score: float
    band: str | None
    base: float
    trace: tuple[FiredRule, ...] = ()


class CheckedCriterion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The score of one criterion by its checks; None if a check could not be measured."""

    id: str
    score: float | None
    band: str | None
    checks: tuple[CheckOutcome, ...]

    @property
    def in_words(self) -> str:
        """The results of the checks; if any fails, passing ones are only counted."""
        if not self.checks:
            return "the row has no checks"
        others = [str(each) for each in self.checks if each.passed is not True]
        passing = len(self.checks) - len(others)
        if passing and others:
            others.append(f"{counted(passing, 'other')} pass{'es' if passing == 1 else ''}")
        return "; ".join(others or map(str, self.checks))


class AutomatedReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The scores by rules (``criteria``) and by checks (``checks``).

    ``overall`` is None if a weighted criterion has no score. ``measures`` has the word counts and
    signal values that the rules use.
    """

    criteria: tuple[CriterionScore, ...]
    overall: float | None
    band: str | None
    measures: dict[str, int | float]
    checks: tuple[CheckedCriterion, ...] = ()

    @property
    def scores(self) -> dict[str, float]:
        """All scores."""
        checked = {each.id: each.score for each in self.checks if each.score is not None}
        return {each.id: each.score for each in self.criteria} | checked
