"""How far the votes on a run's samples agree, by criterion and by judge; one pass, counts only."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.judging.verdict import Side
from jurybox.reporting.stored import damaged, plan_of, procedure_of
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import wilson

_REPORT: Final = msgspec.json.Decoder(EvaluationReport)
_SEVERAL: Final = 2

Vote = float | Side


class Dissent(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a judge's ``votes`` are for something else than the majority's."""

    judge: str
    votes: int
    differs: int


class VotesOn(msgspec.Struct, frozen=True, kw_only=True):
    """The votes on one criterion.

    Attributes:
        criterion: its id.
        n: how many samples have several valid votes on it.
        agree: on how many of them all votes are the same.
        interval: where that share probably lies, by Wilson; the repeats of a sample count once.
        undecided: on how many no score has more than half of the votes.
        dissent: who differs from the majority, where there is one; empty with one judge.

    """

    criterion: str
    n: int
    agree: int
    interval: Interval
    undecided: int
    dissent: tuple[Dissent, ...] = ()

    @property
    def share(self) -> float:
        """The share of the samples on which all votes are the same."""
        return self.agree / self.n


class JuryAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far the votes agree; ``judges`` are those who differ in ``dissent``, in that order."""

    criteria: tuple[VotesOn, ...]
    judges: tuple[str, ...] = ()


def jury_agreement(store: Store, run: RunRow) -> JuryAgreement | None:
    """Return how far the votes on a run's samples agree; None where no sample has several.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    procedure = procedure_of(run)
    if not procedure.judges or procedure.votes < _SEVERAL:
        return None
    count = _Count(procedure, plan_of(run).repeats)
    try:
        for sample in store.samples(run.id):
            if sample.report is not None:
                count.add(_REPORT.decode(sample.report))
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    return count.told()


class _Count:
    def __init__(self, procedure: Procedure, repeats: int) -> None:
        self._repeats = repeats
        self._panel = procedure.judging.seats(procedure.judges, procedure.votes)
        self._judges = tuple(dict.fromkeys(seat.judge for seat in self._panel))
        self._order = [each.id for each in procedure.judging.rubric.criteria]
        self._several: Counter[str] = Counter()
        self._agree: Counter[str] = Counter()
        self._undecided: Counter[str] = Counter()
        self._votes: Counter[tuple[str, str]] = Counter()
        self._differs: Counter[tuple[str, str]] = Counter()

    def add(self, report: EvaluationReport) -> None:
        """Count one sample; on two responses the votes agree where they do on either."""
        sides = [report.criteria]
        if report.responses is not None:
            sides = [side.criteria for side in report.responses.values()]
        given: dict[str, list[CriterionReport]] = {}
        for side in sides:
            for each in side:
                if len(each.votes) >= _SEVERAL:
                    given.setdefault(each.id, []).append(each)
        valid = self._valid(report) if given else []
        for name, reports in given.items():
            self._several[name] += 1
            self._agree[name] += all(len(set(each.votes)) == 1 for each in reports)
            leaders: list[Vote | None] = [_majority(each.votes) for each in reports]
            self._undecided[name] += None in leaders
            for each, leader in zip(reports, leaders, strict=True):
                # A vote may be lost on one of two responses; whose votes are left isn't known then.
                if leader is not None and len(each.votes) == len(valid):
                    self._blame(name, leader, valid, each.votes)

    def _valid(self, report: EvaluationReport) -> list[str]:
        """Return whose votes a report has, in their order."""
        lost = {each.vote for each in report.lost_votes}
        asked = self._panel[: len(self._panel) - report.votes_skipped]
        return [seat.judge for seat in asked if seat.vote not in lost]

    def _blame(self, name: str, leader: Vote, valid: list[str], votes: Sequence[Vote]) -> None:
        for judge, vote in zip(valid, votes, strict=True):
            self._votes[name, judge] += 1
            self._differs[name, judge] += vote != leader

    def told(self) -> JuryAgreement | None:
        """Return what was counted."""
        if not self._several:
            return None
        several = len(self._judges) > 1
        names = dict.fromkeys((*self._order, *self._several))
        return JuryAgreement(
            judges=self._judges if several else (),
            criteria=tuple(
                VotesOn(
                    criterion=name,
                    n=self._several[name],
                    agree=self._agree[name],
                    interval=self._interval(name),
                    undecided=self._undecided[name],
                    dissent=self._dissent(name) if several else (),
                )
                for name in names
                if self._several[name]
            ),
        )

    def _interval(self, name: str) -> Interval:
        return wilson(self._agree[name] / self._repeats, self._several[name] / self._repeats)

    def _dissent(self, name: str) -> tuple[Dissent, ...]:
        return tuple(
            Dissent(judge=judge, votes=self._votes[name, judge], differs=self._differs[name, judge])
            for judge in self._judges
        )


def _majority(votes: Sequence[Vote]) -> Vote | None:
    """Return what more than half of the votes say."""
    return next((vote for vote in votes if 2 * votes.count(vote) > len(votes)), None)
