"""The result of one sample, the reasons to look at it, and its index entry."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from jurybox.judging.evaluation_report import Confidence, EvaluationReport, Method
from jurybox.judging.flow import Outcome, ReportedModel
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.model_versions import check_version
from jurybox.rubric.rubric_model import ReviewReason
from jurybox.sample import Usage
from jurybox.text_format import cut


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One pass rule, the value of its metric, and whether the rule passes.

    ``passed`` is None if the rule's metric wasn't measured; if a score is missing, it is False.
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


def vote_metrics(report: EvaluationReport) -> dict[str, float]:
    """Return a sample's metrics of its votes, by criterion.

    ``agreement.ID`` is the share of several votes that the majority has, of two responses the lower
    one; ``win.ID`` is like `SampleResult.win`, by one criterion.
    """
    preferred = {each.id: each.preference for each in report.criteria}
    return {
        **{
            f"agreement.{name}": min(each.agreement for each in some)
            for name, some in report.voted().items()
        },
        **{f"win.{name}": 1 - POINTS[side] for name, side in preferred.items() if side},
    }


Role = Literal["target", "judge"]
Exchange = tuple[Role, str, Outcome]
"""The role and model that were asked, and the outcome of the request."""
EvaluatorError = Literal["parse_error", "model_error"]

NEEDS_REVIEW: Final = "needs_review"
"""The decision that replaces a release while a required review is missing."""

DEMOGRAPHIC: Final = "demographic"
"""The metadata key for the demographic group that a sample represents."""


class ModelUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many calls to a model one sample took, and their tokens.

    ``unknown`` counts replies without usage; ``cached`` counts those that an earlier run paid for,
    which ``usage`` excludes. ``reported`` is the model that the provider reports. ``refused`` has,
    for each parameter that the provider refused, the number of replies without it; ``unsent`` has
    the same for parameters that the model doesn't support.
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

    ``metrics`` are the values that rules can use. If the rubric's rules score the response, the
    judge's score is kept separately as ``judge_score``. ``lost_causes`` counts the reasons
    for missing votes. ``vote_means`` has the mean of each score over several votes. ``passed`` is
    None for a pair, or if the rubric has no pass rules and the sample has scores.
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
    """The demographic group that the sample represents, if its row's metadata names one."""
    overlay: str | None = None
    """The id of the overlay that scored it, if its demographic has one."""
    uses: tuple[ModelUse, ...] = ()

    @property
    def win(self) -> float | None:
        """The score of the first response in a pair: 1 for a win, 0.5 for a tie, 0 for a loss."""
        return None if self.winner is None else 1 - POINTS[self.winner]

    @property
    def judge_opinion(self) -> float | None:
        """The judge's score next to that of the rules; None for a fallback score."""
        return None if self.judge_fallback else self.judge_score

    @property
    def safety_known(self) -> bool:
        """Whether a judge examined the response for dangers; True if it has a safety flag."""
        return self.safety_flag or (self.judged and self.votes_valid > 0)

    @property
    def votes_lost(self) -> int:
        """How many requested votes got no valid reply."""
        return self.votes_requested - self.votes_skipped - self.votes_valid


# Parts that differ between errors with the same cause: request ids and numbers of attempts.
_VARIABLE: Final = re.compile(r" after \d+ attempts|^[AB] before [AB]: ")
_NAME_OF_ONE: Final = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{16,}")
_LONGEST_CAUSE: Final = 200


def cause_of(error: str) -> str:
    """Return an error's text without the parts that differ between errors of the same cause."""
    flat = _VARIABLE.sub("", " ".join(error[: 8 * _LONGEST_CAUSE].split()))
    return cut(_NAME_OF_ONE.sub("...", flat), _LONGEST_CAUSE)


def sent_parameters(planned: Mapping[str, Any], uses: Sequence[ModelUse]) -> dict[str, Any]:
    """Return a role's parameters as they were sent; None for a parameter that was never sent."""
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
    """Return whether a provider reported the requested version; None if no version is given."""
    check = check_version(model, reported.model)
    return None if check is None else check == "verified"


def all_verified(uses: Iterable[ModelUse]) -> bool | None:
    """Return whether all providers reported the requested versions; None without versions."""
    found = {is_verified(use.model, each) for use in uses for each in use.reported} - {None}
    return all(found) if found else None


class Kind(msgspec.Struct, frozen=True):
    """A reason to look at a sample, and its urgency.

    ``bit`` is the number of its bit in the index, which is stored and so must not change.
    """

    bit: int
    meaning: str
    concerns: Callable[[SampleResult], bool]
    urgency: int = 0


def unmet(result: SampleResult) -> tuple[RuleOutcome, ...]:
    """Return the pass rules that fail."""
    return tuple(rule for rule in result.rules if rule.passed is False)


def _only_fails(result: SampleResult) -> bool:
    """Whether a sample fails although it has scores; samples without scores have other flags."""
    is_scored = result.evaluator_error is None and result.target_error is None
    return result.passed is False and is_scored and bool(unmet(result))


KINDS: Final[dict[str, Kind]] = {
    "safety": Kind(0, "a judge sees a danger", lambda result: result.safety_flag, 5),
    "forged_prompt": Kind(
        11,
        "the response addresses the judge or forges lines of its prompt",
        lambda result: "forged_prompt" in result.review_reasons,
    ),
    "unstable": Kind(
        1,
        "a vote's winner changed with the order of the responses",
        lambda result: result.stable is False,
        4,
    ),
    "low_confidence": Kind(
        2,
        "the votes have no majority, most change with the order, or a fallback score is used",
        lambda result: result.confidence == "low" and result.votes_valid > 0,
        3,
    ),
    "unscored": Kind(
        3, "no judge gave a valid vote", lambda result: result.judged and not result.votes_valid, 2
    ),
    "judge_disagrees": Kind(
        10,
        "the judge's score and the rules' differ by more than 0.3",
        lambda result: "judge_disagrees" in result.review_reasons,
    ),
    "target_error": Kind(
        4,
        "the system under test failed or timed out",
        lambda result: result.target_error is not None,
    ),
    "judge_fallback": Kind(
        5,
        "a reply could not be read, so the rubric's fallback score is used",
        lambda result: result.judge_fallback is True,
    ),
    "failed": Kind(6, "a pass rule fails", _only_fails),
}
"""The reasons to look at a sample, most serious first."""


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to look at samples, and how many have it."""

    kind: str
    count: int


MARKS: Final[dict[str, Kind]] = {
    "needs_review": Kind(7, "a person should look at it", lambda result: result.needs_review, 1),
    "passed": Kind(8, "every pass rule passes", lambda result: result.passed is True),
    "split": Kind(
        9,
        "there are several votes, but their confidence isn't high",
        lambda result: result.votes_valid > 1 and result.confidence in {"low", "moderate"},
    ),
    "lost_votes": Kind(12, "a requested vote is missing", lambda result: result.votes_lost > 0),
    "high_confidence": Kind(
        13,
        "several independent votes agree, and none is missing",
        lambda result: result.confidence == "high" and result.votes_valid > 0,
    ),
    "moderate_confidence": Kind(
        14,
        "most votes agree, or there is only one",
        lambda result: result.confidence == "moderate" and result.votes_valid > 0,
    ),
    "stable": Kind(
        15,
        "every vote's winner is the same in both orders of the responses",
        lambda result: result.stable is True,
    ),
}
"""The other flags that samples can be filtered by."""
FLAGS: Final = {name: 1 << kind.bit for name, kind in (KINDS | MARKS).items()}
"""The bit of each flag."""


def flag_names(flags: int) -> tuple[str, ...]:
    """Return the names of flags, most serious first."""
    return tuple(name for name, bit in FLAGS.items() if flags & bit)
