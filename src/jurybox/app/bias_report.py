"""Measure the biases of a stored run's judges."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from jurybox.app.estimate_run import human_value
from jurybox.app.gold_sets import labels_of_samples
from jurybox.calibration.bias_metrics import measure
from jurybox.calibration.bias_results import BiasReport
from jurybox.calibration.gold import Gold
from jurybox.calibration.observations import (
    Observations,
    ObservedVote,
    ScoredResponse,
    family_of,
    is_formatted,
    words_in,
)
from jurybox.datasets.ratings import read_verdicts
from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.judging.formats.reply_format import Side, mirror
from jurybox.reporting.judge_votes import stored_votes
from jurybox.reporting.stored import SampleRecord, plan_of, procedure_of, reading
from jurybox.sample import Row
from jurybox.statistics.jury_agreement import voters
from jurybox.storage.store import Store
from jurybox.wiring import HELPER_RUN

PROBE: Final = f"{HELPER_RUN}probe"
"""The suffix of a suite's name in runs of a probe."""
_WITHOUT_TEXTS: Final = ("position", "self_preference")
_SIDES: Final[Mapping[str, Side]] = {"a": "A", "b": "B", "tie": "tie"}


def measure_bias(
    store: Store,
    row: RunRow,
    gold: Path | None = None,
    note: Callable[[str], None] = lambda _: None,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> BiasReport:
    """Return the bias metrics of the stored votes; no model is called.

    Without a ``gold`` file, labels come from reviews and rows; ``note`` is called with notices.
    """
    plan, labels = plan_of(row), labels_of_samples(store, row, gold)
    for each in labels.notes:
        note(each)
    if gold is not None and not any(
        each.sample_id in labels.gold for each in store.samples(row.id)
    ):
        problem = f"none of its ids belongs to a sample of run {row.id}"
        raise InputError(problem, "give the ids of the run's samples", str(gold))
    seen = observe(store, row, labels.gold)
    return BiasReport(
        run_id=row.id,
        suite=row.suite,
        status=row.status,
        judges=plan.judges,
        level=level,
        seed=seed,
        samples=len({each.sample for each in seen.scored} | {each.sample for each in seen.voted}),
        pairs=len({each.sample for each in seen.voted}),
        biases=measure(seen, level),
    )


def measure_verdicts(
    path: Path, note: Callable[[str], None] = lambda _: None, *, level: float = 0.95
) -> BiasReport:
    """Return the bias metrics of recorded verdicts on pairs that were shown in both orders."""
    orders: dict[tuple[object, ...], dict[tuple[str, str], list[Side]]] = {}
    rows = read_verdicts(path).rows
    for row in rows:
        pair = (row.item, row.judge, *sorted((row.a, row.b)))
        orders.setdefault(pair, {}).setdefault((row.a, row.b), []).append(_SIDES[row.winner])
    votes = [vote for pair, sides in orders.items() for vote in _both_orders(pair, sides)]
    if not votes:
        hint = "give each pair in both orders; `a` is the model whose answer was shown first"
        raise InputError("no judge compared two answers in both orders", hint, str(path))
    if 2 * len(votes) < len(rows):
        note(f"{len(rows) - 2 * len(votes)} verdicts are left out: the other order is missing")
    found = measure(Observations(voted=votes), level)
    items = {vote.sample for vote in votes}
    return BiasReport(
        run_id=str(path),
        suite="",
        status="finished",
        judges=tuple(sorted({row.judge for row in rows if row.judge is not None})),
        level=level,
        seed=0,
        samples=len(items),
        pairs=len(items),
        biases=tuple(each for each in found if each.bias in _WITHOUT_TEXTS),
    )


def _both_orders(
    pair: tuple[object, ...], sides: Mapping[tuple[str, str], Sequence[Side]]
) -> Iterator[ObservedVote]:
    """Yield a judge's votes on a pair; each vote joins two verdicts, one in each order."""
    item, judge, *_ = pair
    (a, b), straight = next(iter(sides.items()))
    for one, other in zip(straight, sides.get((b, a), ()), strict=False):
        swapped = mirror(other)
        yield ObservedVote(
            sample=str(item),
            straight=one,
            swapped=swapped,
            winner=one if one == swapped else "tie",
            judge="" if judge is None else family_of(str(judge)),
            makers=(family_of(a), family_of(b)),
        )


MODEL: Final = "model"
MODEL_A: Final = "model_a"
MODEL_B: Final = "model_b"
"""The metadata keys that name the models that wrote a row's responses."""


def observe(store: Store, run: RunRow, gold: Mapping[str, Gold]) -> Observations:
    """Collect the observations from which the bias of a run's judges is estimated.

    ``gold`` maps sample ids to human labels.
    """
    observer = _Observer(store, run, gold)
    with reading(run):
        for row in store.samples(run.id):
            if row.report is not None:
                observer.add(SampleRecord(row))
    return observer.seen


class _Observer:
    def __init__(self, store: Store, run: RunRow, gold: Mapping[str, Gold]) -> None:
        self._store = store
        self._plan = plan_of(run)
        self._procedure = procedure_of(run)
        self._gold = gold
        self._rubric = self._procedure.judging.rubric
        self._families = {name: family_of(name) for name in self._plan.judges}
        criteria = tuple(each.id for each in self._rubric.criteria)
        self.seen = Observations(criteria=criteria)

    def add(self, record: SampleRecord) -> None:
        report = record.report
        if report is None:
            return
        gold = self._gold.get(record.id)
        if report.method == "pairwise":
            self._add_votes(record, gold)
        else:
            self._add_scores(record, report, gold)

    def _add_votes(self, record: SampleRecord, gold: Gold | None) -> None:
        responses = record.responses
        if responses.response_b is None:
            return
        texts = (responses.response.text, responses.response_b.text)
        a, b = self._makers(record.inputs)
        for vote in stored_votes(self._procedure, record, self._store):
            self.seen.voted.append(
                msgspec.structs.replace(
                    vote,
                    words=(words_in(texts[0]), words_in(texts[1])),
                    formatted=(is_formatted(texts[0]), is_formatted(texts[1])),
                    judge=self._families[vote.judge],
                    makers=None if a is None or b is None else (a, b),
                    gold=None if gold is None else gold.winner,
                )
            )

    def _add_scores(
        self, record: SampleRecord, report: EvaluationReport, gold: Gold | None
    ) -> None:
        responses, makers = record.responses, self._makers(record.inputs)
        if report.responses is None:
            name = self._rubric.overall_name
            whole = None if gold is None else human_value(self._rubric, gold, name)
            sides = [(responses.response.text, report.overall, report.criteria, makers[0], whole)]
        else:
            # Gold scores rate one response; in a pair, it is unknown which one they rate.
            texts = (responses.response, responses.response_b or responses.response)
            sides = [
                (text.text, side.overall, side.criteria, maker, None)
                for text, side, maker in zip(texts, report.responses.values(), makers, strict=True)
            ]
        sample = record.row.sample_id
        for text, overall, criteria, maker, human in sides:
            if overall is None:
                continue
            self.seen.scored.append(
                ScoredResponse(
                    sample=sample,
                    score=overall,
                    words=words_in(text),
                    formatted=is_formatted(text),
                    gold=human,
                )
            )
            if maker is None:
                continue
            for judge, score in self._by_family(report, overall, criteria):
                self.seen.graded.append(
                    ScoredResponse(sample=sample, score=score, judge=judge, maker=maker, gold=human)
                )

    def _makers(self, row: Row) -> tuple[str | None, str | None]:
        """Return the model families that wrote the responses."""
        target = self._plan.target
        first = None if target is None else target.model
        names = (first or _named(row, MODEL_A) or _named(row, MODEL), _named(row, MODEL_B))
        a, b = (None if name is None else family_of(name) for name in names)
        return a, b

    def _by_family(
        self, report: EvaluationReport, overall: float, criteria: Sequence[CriterionReport]
    ) -> Iterator[tuple[str, float]]:
        """Yield each family of judges with the mean score that its judges gave."""
        families = set(self._families.values())
        if len(families) == 1:
            yield families.pop(), overall
            return
        panel = self._procedure.judging.panel(self._procedure.judges, self._procedure.votes).seats
        valid = voters(panel, report)
        if any(len(each.votes) != len(valid) for each in criteria):
            # It is unknown which judge gave which vote.
            return
        for family in sorted(families):
            mine = [at for at, judge in enumerate(valid) if self._families[judge] == family]
            if mine:
                yield family, sum(_given(criteria, at) for at in mine) / len(mine)


def _given(criteria: Sequence[CriterionReport], at: int) -> float:
    """Return the overall score of one vote, normalized to the range from 0 to 1."""
    total = 0.0
    for each in criteria:
        vote = each.votes[at]
        total += 0.0 if isinstance(vote, str) else each.weight * each.normalize(vote)
    return total / sum(each.weight for each in criteria)


def _named(row: Row, key: str) -> str | None:
    value = row.metadata.get(key)
    return value if isinstance(value, str) and value.strip() else None
