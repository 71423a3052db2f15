"""One sample that people and judges have both spoken about, and how far apart they are."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from jurybox.calibration.gold import Gold
from jurybox.judging.evaluation_report import EvaluationReport, Method
from jurybox.judging.verdict import Side
from jurybox.rubric.model import Rubric
from jurybox.rubric.scale import Scale
from jurybox.sample import Row

GOLD_REASONING: Final = "gold_reasoning"
COMMENT: Final = "comment"
WHOLE: Final = ""
"""The name of a comment on a sample as a whole."""

WINNER: Final = "winner"
"""What pairs are compared by, where a criterion would be named."""

WORST: Final = 1.0


class JudgeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the judges say of one sample; None where they gave nothing that counts."""

    scores: dict[str, float | None] = {}
    reasoning: dict[str, str] = {}
    winner: Side | None = None
    stable: bool | None = None
    method: Method | None = None


class GoldCase(msgspec.Struct, frozen=True, kw_only=True):
    """A sample with what people and judges say of it.

    Attributes:
        id: the sample's.
        gold: what people say.
        verdict: what the judges say.
        task: what was asked, for whoever looks at a disagreement.
        response: what was answered.
        response_b: what another one answered, where two are compared.
        comments: why people say so, by criterion, or on the whole.
        cluster: what the sample belongs together with, where that was said.
        words: the digest of what was read by the judge; None where it is like no other.

    """

    id: str
    gold: Gold
    verdict: JudgeVerdict
    task: str = ""
    response: str = ""
    response_b: str | None = None
    comments: dict[str, str] = {}
    cluster: str | None = None
    words: str | None = None

    @property
    def is_pair(self) -> bool:
        """Whether two responses are compared."""
        return self.response_b is not None

    def comment(self, criterion: str) -> str:
        """Return why people say so; empty where they don't tell."""
        return self.comments.get(criterion) or self.comments.get(WHOLE, "")


def read_comments(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return why people say so, from ``gold_reasoning`` or else ``comment`` of a row's metadata.

    A text is about the sample as a whole; an object has texts by criterion.
    """
    given: object = metadata.get(GOLD_REASONING) or metadata.get(COMMENT)
    if isinstance(given, str):
        return {WHOLE: given} if given.strip() else {}
    if not isinstance(given, Mapping):
        return {}
    texts = cast("Mapping[str, object]", given).items()
    return {name: text for name, text in texts if isinstance(text, str) and text.strip()}


def read_verdict(report: EvaluationReport | None, rubric: Rubric) -> JudgeVerdict:
    """Return what a report says on the rubric's criteria, and on the response as a whole."""
    if report is None:
        return JudgeVerdict()
    scores: dict[str, float | None] = {rubric.overall_name: report.overall}
    known = {criterion.id for criterion in rubric.criteria}
    scores |= {each.id: each.score for each in report.criteria if each.id in known}
    reasoning = {each.id: each.reasoning for each in report.criteria if each.reasoning}
    return JudgeVerdict(
        scores=scores,
        reasoning=reasoning,
        winner=report.winner,
        stable=report.stable,
        method=report.method,
    )


def usable(row: Row, gold: Gold | None) -> Gold | None:
    """Return the part of a row's gold that its verdict can be held against; None without any.

    Two responses are compared, so that only a winner says something about them; a single response
    has scores and no winner.
    """
    if gold is None:
        return None
    if row.response_b is not None:
        return Gold(winners=gold.winners) if gold.winners else None
    return Gold(scores=gold.scores) if gold.scores else None


def loss_of(case: GoldCase, scales: Mapping[str, Scale]) -> float:
    """Return how far the judges are from the people on one sample, from 0 to 1.

    The mean over the criteria that people scored of ``|judge - people|`` as a share of the scale;
    for two responses 0 where the winner is the same, else 1. What wasn't scored counts as the
    worst, so that no change wins by keeping a judge silent.
    """
    if case.gold.winners:
        return 0.0 if case.verdict.winner == case.gold.winner else WORST
    apart = [
        distance(case.gold.score(name), case.verdict.scores.get(name), scales[name])
        for name in case.gold.scores
    ]
    return sum(apart) / len(apart)


def distance(people: float | None, judge: float | None, scale: Scale) -> float:
    """Return how far two scores are apart, as a share of the scale."""
    if people is None or judge is None:
        return WORST
    return scale.distance(judge, people)


def losses(cases: Iterable[GoldCase], scales: Mapping[str, Scale]) -> dict[str, float]:
    """Return the loss of every sample by its id."""
    return {case.id: loss_of(case, scales) for case in cases}
