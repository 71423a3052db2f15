"""From a stored run to what it tells about its judges; sample by sample, and only numbers kept."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from jurybox.calibration.gold import Gold, gold_scales, read_gold
from jurybox.calibration.observations import (
    GradedResponse,
    Observations,
    ObservedVote,
    ScoredResponse,
    family_of,
    marks_in,
    words_in,
)
from jurybox.engine.plan import Plan
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, SampleRow, in_order
from jurybox.engine.replay import StoredResponses
from jurybox.errors import InputError
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.reporting.pair_votes import both_orders, kept_preferences, pair_votes
from jurybox.reporting.stored import damaged, plan_of, procedure_of
from jurybox.rubric.model import Rubric
from jurybox.sample import Row
from jurybox.scoring.evaluate_sample import Procedure

MODEL: Final = "model"
MODEL_A: Final = "model_a"
MODEL_B: Final = "model_b"
"""The keys of a row's metadata that say who made its responses."""

_INPUTS: Final = msgspec.json.Decoder(Row)
_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)
_REPORT: Final = msgspec.json.Decoder(EvaluationReport)


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A judged sample as it is stored."""

    row: Row
    responses: StoredResponses
    report: EvaluationReport


def read_stored(sample: SampleRow) -> Stored | None:
    """Read a sample; None where no judge was asked about it.

    Raises:
        msgspec.DecodeError: it can't be read.

    """
    if sample.report is None:
        return None
    return Stored(
        row=_INPUTS.decode(sample.inputs),
        responses=_RESPONSES.decode(sample.responses),
        report=_REPORT.decode(sample.report),
    )


def observe(store: Store, run: RunRow, gold: Mapping[str, Gold] | None = None) -> Observations:
    """Return what a run tells about its judges.

    ``gold`` is what people say, by the samples' ids, in place of what the rows carry.

    Raises:
        InputError: what a row carries as gold can't be that.
        IncompleteError: something stored can't be read.

    """
    plan, procedure = plan_of(run), procedure_of(run)
    reading = _Reading(store, plan, procedure, gold)
    try:
        for sample in store.samples(run.id):
            stored = read_stored(sample)
            if stored is not None:
                reading.add(sample, stored)
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None
    return reading.seen


class _Reading:
    def __init__(
        self, store: Store, plan: Plan, procedure: Procedure, gold: Mapping[str, Gold] | None
    ) -> None:
        self._store = store
        self._plan = plan
        self._procedure = procedure
        self._gold = gold
        self._rubric = procedure.judging.rubric
        self._scales = gold_scales(self._rubric)
        self._families = {name: family_of(name) for name in plan.judges}
        criteria = tuple(each.id for each in self._rubric.criteria)
        self.seen = Observations(criteria=criteria)

    def add(self, sample: SampleRow, stored: Stored) -> None:
        gold = self._gold_of(stored.row)
        if stored.report.method == "pairwise":
            self._add_votes(sample, stored, gold)
        else:
            self._add_scores(sample.sample_id, stored, gold)

    def _gold_of(self, row: Row) -> Gold | None:
        if self._gold is not None:
            return self._gold.get(row.id)
        try:
            return read_gold(row.metadata, self._scales)
        except InputError as error:
            raise InputError(error.problem, error.hint, f"sample {row.id}") from None

    def _add_votes(self, sample: SampleRow, stored: Stored, gold: Gold | None) -> None:
        responses = stored.responses
        if responses.response_b is None:
            return
        row = msgspec.structs.replace(stored.row, response_b=responses.response_b)
        exchanges = in_order(sample, self._store.exchanges_of(sample.run_id, sample.number))
        texts = (responses.response.text, responses.response_b.text)
        a, b = self._makers(row)
        whole = row.sample(responses.response)
        for seat, vote in pair_votes(self._procedure, whole, exchanges):
            straight, swapped = both_orders(seat, vote)
            self.seen.voted.append(
                ObservedVote(
                    sample=sample.sample_id,
                    straight=straight,
                    swapped=swapped,
                    winner=vote.winner,
                    kept=kept_preferences(seat, vote),
                    words=(words_in(texts[0]), words_in(texts[1])),
                    marks=(marks_in(texts[0]), marks_in(texts[1])),
                    judge=self._families[seat.judge],
                    makers=None if a is None or b is None else (a, b),
                    gold=None if gold is None else gold.winner,
                )
            )

    def _add_scores(self, sample_id: str, stored: Stored, gold: Gold | None) -> None:
        report, responses = stored.report, stored.responses
        makers = self._makers(stored.row)
        if report.responses is None:
            told = None if gold is None else whole_gold(gold, self._rubric)
            sides = [(responses.response.text, report.overall, report.criteria, makers[0], told)]
        else:
            # Gold scores are of one response; a row with two doesn't say of which.
            texts = (responses.response, responses.response_b or responses.response)
            sides = [
                (text.text, side.overall, side.criteria, maker, None)
                for text, side, maker in zip(texts, report.responses.values(), makers, strict=True)
            ]
        for text, overall, criteria, maker, told in sides:
            if overall is None:
                continue
            self.seen.scored.append(
                ScoredResponse(
                    sample=sample_id,
                    score=overall,
                    words=words_in(text),
                    marks=marks_in(text),
                    gold=told,
                )
            )
            if maker is None:
                continue
            for judge, score in self._by_family(report, overall, criteria):
                self.seen.graded.append(
                    GradedResponse(
                        sample=sample_id, score=score, judge=judge, maker=maker, gold=told
                    )
                )

    def _makers(self, row: Row) -> tuple[str | None, str | None]:
        """Return the families of who made the responses."""
        target = self._plan.target
        first = None if target is None else target.model
        names = (first or _named(row, MODEL_A) or _named(row, MODEL), _named(row, MODEL_B))
        a, b = (None if name is None else family_of(name) for name in names)
        return a, b

    def _by_family(
        self, report: EvaluationReport, overall: float, criteria: Sequence[CriterionReport]
    ) -> Iterator[tuple[str, float]]:
        """Yield what the judges of each family gave."""
        families = set(self._families.values())
        if len(families) == 1:
            yield families.pop(), overall
            return
        panel = self._procedure.judging.seats(self._procedure.judges, self._procedure.votes)
        lost = {each.vote for each in report.lost_votes}
        valid = [
            seat for seat in panel[: len(panel) - report.votes_skipped] if seat.vote not in lost
        ]
        if any(len(each.votes) != len(valid) for each in criteria):
            # Whose votes they are can't be told.
            return
        for family in sorted(families):
            mine = [at for at, seat in enumerate(valid) if self._families[seat.judge] == family]
            if mine:
                yield family, sum(_given(criteria, at) for at in mine) / len(mine)


def _given(criteria: Sequence[CriterionReport], at: int) -> float:
    """Return what one vote gave overall, as a share of the scale."""
    total = 0.0
    for each in criteria:
        vote = each.votes[at]
        total += 0.0 if isinstance(vote, str) else each.weight * each.normalize(vote)
    return total / sum(each.weight for each in criteria)


def _named(row: Row, key: str) -> str | None:
    value = row.metadata.get(key)
    return value if isinstance(value, str) and value.strip() else None


def whole_gold(gold: Gold, rubric: Rubric) -> float | None:
    """Return people's score of a response as a whole, as a share of the scale.

    What they gave overall, or the weighted mean of all criteria, where they gave all of them.
    """
    overall = gold.score(rubric.overall_name)
    if overall is not None:
        return overall
    total = 0.0
    for each in rubric.criteria:
        score = gold.score(each.id)
        if score is None:
            return None
        total += each.weight * each.scale.normalize(score)
    return total / sum(each.weight for each in rubric.criteria)
