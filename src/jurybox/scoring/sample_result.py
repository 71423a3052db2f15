"""The result of one sample: scores, measures, pass or fail, flags and usage."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from jurybox.judging.evaluation_report import (
    Confidence,
    EvaluationReport,
    Method,
)
from jurybox.judging.flow import Outcome, ReportedModel
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.model_versions import check_version
from jurybox.rubric.rubric_model import (
    ReviewReason,
)
from jurybox.sample import Usage
from jurybox.text_format import cut


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One pass rule, the value it was checked against, and whether it passes.

    ``passed`` is None where the rule is about something that wasn't measured; a missing score
    fails.
    """

    rule: str
    value: float | None
    passed: bool | None


def whole_score(judge: EvaluationReport) -> float | None:
    """Return a judge's overall score of the response."""
    return judge.criteria[0].score if len(judge.criteria) == 1 else judge.overall


JUDGE_SCORE: Final = "judge_score"
POINTS_OF_B: Final = "points_of_b"
POINTS: Final = {"A": 0.0, "tie": 0.5, "B": 1.0}
WIN: Final = "win"

Role = Literal["target", "judge"]
Exchange = tuple[Role, str, Outcome]
"""Who was asked, which model it is, and what came of the request."""
EvaluatorError = Literal["parse_error", "model_error"]

NEEDS_REVIEW: Final = "needs_review"
"""The decision in place of a release while a required review is missing."""

DEMOGRAPHIC: Final = "demographic"
"""The metadata key for the demographic group that a sample represents."""


class ModelUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many calls to a model one sample took, and their tokens.

    ``unknown`` counts the replies that didn't say what they used, ``cached`` those that were paid
    for by an earlier run and are not in ``usage``. ``reported`` is what the provider says it used.
    ``refused`` counts the replies without a parameter that the provider wouldn't take, ``unsent``
    those without one that it doesn't have.
    """

    model: str
    role: Role
    calls: int = 0
    cached: int = 0
    failed: int = 0
    unknown: int = 0
    usage: Usage = Usage()
    reported: tuple[ReportedModel, ...] = ()
    refused: dict[str, int] = {}
    unsent: dict[str, int] = {}


class SampleResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one sample in one repeat.

    ``metrics`` are the values that rules may name. Where the rubric's own rules score the response,
    the judge's score is next to them as ``judge_score`` and is never mixed in (C15).
    ``lost_causes`` counts why votes are missing. ``vote_means`` has, where there are several votes,
    the mean of each score that judges gave.
    ``passed`` is None where the rubric has no pass rules.
    """

    metrics: dict[str, float | None]
    components: dict[str, float | None] = {}
    rules: tuple[RuleOutcome, ...] = ()
    passed: bool | None = None
    decision: str | None = None
    evaluator_error: EvaluatorError | None = None
    target_error: str | None = None
    timed_out: bool = False
    judged: bool = False
    method: Method | None = None
    votes_independent: bool = True
    by_rules: bool = False
    judge_score: float | None = None
    judge_fallback: bool | None = None
    vote_means: dict[str, float | None] = {}
    votes_valid: int = 0
    votes_requested: int = 0
    votes_skipped: int = 0
    lost_causes: dict[str, int] = {}
    confidence: Confidence | None = None
    stable: bool | None = None
    winner: Side | None = None
    safety_flag: bool = False
    needs_review: bool = False
    review_reasons: tuple[ReviewReason, ...] = ()
    scenario: str | None = None
    demographic: str | None = None
    """The demographic group that the sample represents, if its row's metadata names one (C13)."""
    overlay: str | None = None
    """The id of the overlay that scored it, where its demographic has one."""
    uses: tuple[ModelUse, ...] = ()

    @property
    def win(self) -> float | None:
        """The score of the first response in a pair: 1 for a win, 0.5 for a tie, 0 for a loss."""
        return None if self.winner is None else 1 - POINTS[self.winner]


# Parts that differ between errors with the same cause: request ids and numbers of attempts.
_VARIABLE: Final = re.compile(r" after \d+ attempts|^[AB] before [AB]: ")
_NAME_OF_ONE: Final = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{16,}")
_LONGEST_CAUSE: Final = 200


def cause_of(error: str) -> str:
    """Return the text of an error without what differs between errors of one cause."""
    flat = _VARIABLE.sub("", " ".join(error[: 8 * _LONGEST_CAUSE].split()))
    return cut(_NAME_OF_ONE.sub("...", flat), _LONGEST_CAUSE)


def sent_parameters(planned: Mapping[str, Any], uses: Sequence[ModelUse]) -> dict[str, Any]:
    """Return a role's parameters as they were sent; null for those that were not (A11)."""
    replies = sum(use.calls - use.failed for use in uses)
    refused: dict[str, dict[str, int]] = {}
    unsent: dict[str, dict[str, int]] = {}
    missing = Counter[str]()
    for use in uses:
        for counts, found in ((use.refused, refused), (use.unsent, unsent)):
            missing.update(counts)
            for name, count in counts.items():
                found.setdefault(name, {})[use.model] = count
    never = {name for name, count in missing.items() if count == replies > 0}
    sent = {name: None if name in never else planned[name] for name in planned}
    overrides = {name: each for name, each in planned["overrides"].items() if name not in never}
    return {**sent, "overrides": overrides, "refused": refused, "not_supported": unsent}


def is_verified(model: str, reported: ReportedModel) -> bool | None:
    """Return whether a provider reported the version that was asked for; None without one."""
    check = check_version(model, reported.model)
    return None if check is None else check == "verified"


def all_verified(uses: Iterable[ModelUse]) -> bool | None:
    """Return whether every provider reported the version that was asked for (A10)."""
    found = {is_verified(use.model, each) for use in uses for each in use.reported} - {None}
    return all(found) if found else None
