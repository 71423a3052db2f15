"""How far the votes of a jury agree, by criterion and by judge."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.protocol import Seat
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.sample_result import POINTS, WIN
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import wilson

_SIDES: Final[dict[float, Side]] = {1 - POINTS[side]: side for side in ("A", "tie", "B")}


class JudgeDissent(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a judge's ``votes`` differ from the majority."""

    judge: str
    votes: int
    differs: int


class CriterionVotes(msgspec.Struct, frozen=True, kw_only=True):
    """The votes on one criterion, on ``n`` samples with several valid votes.

    All votes are the same on ``agree`` of these samples; on ``undecided`` of them, no score has
    more than half of the votes, or most votes change with the order of two responses. The interval
    of ``share`` is Wilson's, with the repeats of a sample counted once. ``dissent`` is empty with
    one judge.
    """

    criterion: str
    n: int
    agree: int
    interval: Interval
    undecided: int
    dissent: tuple[JudgeDissent, ...] = ()

    @property
    def share(self) -> float:
        """The share of the samples on which all votes are the same."""
        return self.agree / self.n


class JuryAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far the votes agree; ``judges`` lists the judges in the order of each ``dissent``.

    ``preferences`` has, by criterion, on how many pairs the jury prefers which response.
    """

    criteria: tuple[CriterionVotes, ...]
    judges: tuple[str, ...] = ()
    preferences: dict[str, dict[Side, int]] = {}


def voters(panel: Sequence[Seat], report: EvaluationReport) -> list[str]:
    """Return the judges of a report's valid votes, in order."""
    lost = {each.vote for each in report.lost_votes}
    asked = panel[: len(panel) - report.votes_skipped]
    return [seat.judge for seat in asked if seat.vote not in lost]


class JuryCounter:
    """Counts agreeing votes sample by sample."""

    def __init__(self, procedure: Procedure, repeats: int) -> None:
        """Count the votes of a procedure's judges, in all repeats."""
        self._repeats = repeats
        self._panel = procedure.judging.panel(procedure.judges, procedure.votes).seats
        judges = tuple(dict.fromkeys(seat.judge for seat in self._panel))
        # Of two judges, neither differs from a majority that both belong to.
        self.judges = judges if len(judges) > 2 else ()  # noqa: PLR2004
        self._order = [each.id for each in procedure.judging.rubric.criteria]
        self._values: Counter[tuple[str, float]] = Counter()
        self._votes: Counter[tuple[str, str]] = Counter()
        self._differs: Counter[tuple[str, str]] = Counter()

    def add(self, samples: Iterable[Mapping[str, float]]) -> None:
        """Count samples by their `vote_metrics`, which may be among others."""
        self._values.update(
            each for metrics in samples for each in metrics.items() if "." in each[0]
        )

    def add_judges(self, report: EvaluationReport) -> None:
        """Count whose votes on one sample differ from the majority."""
        given = report.voted()
        judges = voters(self._panel, report) if given else []
        for name, reports in given.items():
            for each in reports:
                # If a vote on one of two responses is lost, it is unknown whose votes remain.
                if each.majority is not None and len(each.votes) == len(judges):
                    for judge, vote in zip(judges, each.votes, strict=True):
                        self._votes[name, judge] += 1
                        self._differs[name, judge] += vote != each.majority

    def agreement(self) -> JuryAgreement | None:
        """Return the counts; None if no sample has several votes or a preference."""
        several, preferences = Counter[str](), dict[str, dict[Side, int]]()
        for (metric, value), count in self._values.items():
            kind, _, name = metric.partition(".")
            if kind == WIN:
                preferences.setdefault(name, {})[_SIDES[value]] = count
            else:
                several[name] += count
        if not (several or preferences):
            return None
        names = dict.fromkeys((*self._order, *several, *preferences))
        preferences = {name: preferences[name] for name in names if name in preferences}
        criteria = [self._criterion(name, several[name]) for name in names if several[name]]
        return JuryAgreement(judges=self.judges, criteria=tuple(criteria), preferences=preferences)

    def _criterion(self, name: str, n: int) -> CriterionVotes:
        agree, undecided = (self._values[f"agreement.{name}", share] for share in (1.0, 0.0))
        return CriterionVotes(
            criterion=name,
            n=n,
            agree=agree,
            interval=wilson(agree / self._repeats, n / self._repeats),
            undecided=undecided,
            dissent=tuple(
                JudgeDissent(
                    judge=each, votes=self._votes[name, each], differs=self._differs[name, each]
                )
                for each in self.judges
            ),
        )
