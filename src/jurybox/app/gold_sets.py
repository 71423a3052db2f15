"""Reads human labels from files, rows and reviews, and writes reviewed samples as gold rows."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from jurybox.app.estimate_run import RunLabels, labels_of
from jurybox.app.review_desk import ReviewDesk, StoredSample
from jurybox.calibration.calibration_record import GoldSource
from jurybox.calibration.gold import (
    COMMENT,
    GOLD,
    GOLD_REASONING,
    GOLD_WINNER,
    Gold,
    GoldRow,
    gold_scales,
    read_gold,
    row_gold,
    unpacked,
    usable,
)
from jurybox.datasets import open_dataset, survey
from jurybox.datasets.dataset import take_all
from jurybox.datasets.fields import FieldError, read_id
from jurybox.datasets.open_dataset import reader_of
from jurybox.datasets.row_reader import FileContext, Record, record_of
from jurybox.datasets.source import open_source
from jurybox.documents.findings import Findings
from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.reporting.release import reviews_elsewhere
from jurybox.reporting.review_text import skipped_line, waiting_line
from jurybox.reporting.stored import SampleRecord, metadata_of, plan_of, reading, rubric_of
from jurybox.review.reviews import ActiveReviews, Review, by_number, gold_of
from jurybox.review.selection import RandomSubset, needed_line
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import Scale
from jurybox.sample import Row
from jurybox.storage.store import Store
from jurybox.text_format import counted, verb


class GoldSet(msgspec.Struct, frozen=True, kw_only=True):
    """The rows with labels, and warnings about the others."""

    file: GoldSource
    rows: tuple[GoldRow, ...]
    warnings: tuple[str, ...] = ()


def read_gold_set(
    path: Path, rubric: Rubric, *, limit: int | None = None, cluster: str | None = None
) -> GoldSet:
    """Read the rows that have labels; the others are left out, with a warning."""
    scales = gold_scales(rubric)
    found: list[GoldRow] = []
    seen = 0

    def take(row: Row) -> None:
        nonlocal seen
        seen += 1
        if limit is not None and seen > limit:
            return
        gold = usable(row, read_gold(row.metadata, scales))
        if gold is not None:
            found.append(GoldRow(row=row, gold=gold, cluster=_cluster(row, cluster)))

    dataset = open_dataset(path, limit=limit)
    surveyed = survey(dataset, needs_response=True, check=take)
    if not found:
        problem = "no row has a label for its response"
        hint = f'add `{GOLD}: {{"{rubric.criteria[0].id}": 4}}`, or `{GOLD_WINNER}` for pairs'
        raise InputError(problem, hint, dataset.origin)
    used = surveyed.rows if limit is None else min(surveyed.rows, limit)
    left = used - len(found)
    rows = f"{counted(left, 'row')} without gold {verb(left, 'are')} left out"
    notes = [f"{dataset.origin}: {rows}"] if left else []
    return GoldSet(
        file=GoldSource(
            name=path.name, sha256=surveyed.sha256, rows=surveyed.rows, used=len(found)
        ),
        rows=tuple(found),
        warnings=(*surveyed.warnings, *notes),
    )


def _cluster(row: Row, field: str | None) -> str | None:
    if field is None:
        return None
    value: object = getattr(row, field) if field in {"scenario", "task"} else None
    value = row.metadata.get(field) if value is None else value
    if value is None:
        raise InputError(f"the row has no `{field}`", "add it, or leave --cluster out")
    return str(value)


REVIEWS: Final = "reviews"
SAMPLE: Final = "sample"

_OWN: Final = (GOLD, GOLD_WINNER, GOLD_REASONING, COMMENT, REVIEWS, SAMPLE)


def gold_rows(desk: ReviewDesk) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the reviewed samples as rows of a dataset, and notes on what is left out.

    The reviews are the gold. Later repeats of a sample are rows of their own, named like
    `q1 (repeat 1)`.
    """
    found = desk.active_reviews()
    blind = {each.id for each in found.blind}
    aside = sum(each.id not in blind for each in found.every)
    reviewed = [(desk.stored(number), each) for number, each in by_number(found.blind).items()]
    answered = [each for each in reviewed if each[0].responses.response.answered]
    labeled = [each for each in answered if (gold := gold_of(each[1])).scores or gold.winners]
    if not labeled:
        problem = "no sample of the run has a label from a reviewer"
        if aside:
            problem += (
                f"; {counted(aside, 'review')} made after seeing the judges' verdict can't be used"
            )
        raise InputError(problem, "review some with `jurybox serve`", desk.run.id)
    left_out = (
        (aside, "review", "made after seeing the judges' verdict"),
        (len(answered) - len(labeled), "sample", "that no reviewer could judge"),
        (len(reviewed) - len(answered), "sample", "without a response"),
    )
    notes = [f"left out: {counted(count, noun)} {why}" for count, noun, why in left_out if count]
    labeled.sort(key=lambda each: each[0].row.number)
    return [_row(*each) for each in labeled], notes


def _row(stored: StoredSample, reviews: Sequence[Review]) -> dict[str, Any]:
    name = f"{stored.id} (repeat {stored.repeat})" if stored.repeat else stored.id
    metadata = {key: value for key, value in stored.inputs.metadata.items() if key not in _OWN}
    metadata[SAMPLE] = stored.id
    metadata[REVIEWS] = [_review_record(each) for each in reviews]
    record = record_of(msgspec.structs.replace(stored.answered, id=name, metadata={}))
    gold = gold_of(reviews)
    comments = [f"{each.reviewer}: {each.comment}" for each in reviews if each.comment]
    labels = {
        GOLD: gold.scores or None,
        GOLD_WINNER: gold.winners or None,
        GOLD_REASONING: "\n".join(comments) or None,
    }
    given = {key: value for key, value in labels.items() if value is not None}
    return {**record, **given, "metadata": metadata}


def _review_record(review: Review) -> dict[str, Any]:
    return {
        "reviewer": review.reviewer,
        "created_at": review.created_at,
        "queue": review.shown.queue,
        "comment": review.comment,
    }


def labels_for_run(store: Store, run: RunRow, path: Path | None) -> RunLabels:
    """Return labels to correct the metrics of a run: from a file, from reviews or from its rows.

    Flagged samples aren't a random sample of the run, so only reviews of the random subset are
    used; if there are too few of these, the labels in the run's rows are used.
    """
    if path is not None:
        return RunLabels(gold=read_labels(path, gold_scales(rubric_of(run)), reviews=False))
    if not store.review_state(run.id):
        gold = row_labels(store, run)
        source = None if gold else next(reviews_elsewhere(plan_of(run).derived_from, store), None)
        if source is None:
            return RunLabels(gold=gold)
        hint = f"the same replies are reviewed in another run: `jurybox estimate {source.run_id}`"
        return RunLabels(hint=hint)
    desk = ReviewDesk(store, run)
    found = desk.active_reviews()
    part = desk.subset_of(found)
    notes = [*_left_out(found, part, desk.repair)]
    if part.skipped:
        notes.insert(0, skipped_line(part.skipped))
    gold = row_labels(store, run) if part.needed else {}
    if part.needed and (gold or not part.labeled):
        hint = "review some from the random queue of `jurybox serve`, or give some with --gold"
        hint = desk.repair or hint
        if part.waiting:
            hint = "review the earlier samples of the random queue"
        head = "labels are taken from the run's rows"
        return RunLabels(gold=gold, notes=(head, *notes), hint=hint)
    labeled = counted(len(part.labeled), "sample")
    head = f"labels are taken from reviews: {labeled} of the random subset"
    return RunLabels(
        reviewed=labels_of(found.blind, part),
        drawn=part.reviewed | part.missed,
        notes=(head, *notes),
    )


def _left_out(found: ActiveReviews, part: RandomSubset, repair: str) -> Iterator[str]:
    others = {each.number for each in found.blind} - part.reviewed - part.waiting
    if others:
        yield f"left out: {counted(len(others), 'reviewed sample')} not drawn at random"
    if part.unsure:
        yield f"left out: {counted(part.unsure, 'sample')} that no reviewer could judge"
    if part.unscored:
        yield f"left out: {counted(len(part.unscored), 'reviewed sample')} without a judge's score"
    blind = {each.id for each in found.blind}
    if aside := sum(each.id not in blind for each in found.every):
        yield f"left out: {counted(aside, 'review')} made after seeing the judges' verdict"
    if repair:
        yield repair
    elif part.waiting:
        yield waiting_line(len(part.waiting), len(part.passed))
    elif part.needed:
        yield needed_line(part.needed, part.unsure, others=bool(others))


def labels_for_diff(store: Store, one: RunRow, other: RunRow, path: Path | None) -> dict[str, Gold]:
    """Return labels of responses that two runs judged: from a file, or from reviews and rows.

    Those of both runs count, whichever is first. Without a file, runs with the same judge get no
    labels, since there is nothing to compare.
    """
    plans = [plan_of(one), plan_of(other)]
    if not all(plan.judges and plan.target is None for plan in plans):
        if path is None:
            return {}
        problem = "labels need recorded responses, and a judge in both runs"
        raise InputError(problem, "leave --gold out", str(path))
    if path is not None:
        return read_labels(path, gold_scales(rubric_of(one)))
    if _judge(one) == _judge(other):
        return {}
    runs = sorted((one, other), key=lambda run: run.created_at)
    return row_labels(store, *runs) | _reviewed(store, *runs)


def _judge(run: RunRow) -> list[object]:
    metadata = metadata_of(run)
    return [metadata.get("votes"), *(v for name, v in metadata.items() if "evaluator_" in name)]


def labels_of_samples(store: Store, run: RunRow, path: Path | None = None) -> RunLabels:
    """Return labels of samples, drawn at random or not: from a file, else from reviews and rows.

    If a target answered in several repeats, reviews are left out, because an id then has several
    responses and a review concerns only one.
    """
    if path is not None:
        return RunLabels(gold=read_labels(path, gold_scales(rubric_of(run))))
    gold = row_labels(store, run)
    if not store.review_state(run.id):
        return RunLabels(gold=gold)
    plan = plan_of(run)
    if plan.repeats > 1 and plan.target is not None:
        left_out = "reviews are left out, since every repeat has its own response"
        return RunLabels(gold=gold, notes=(left_out,))
    named = _reviewed(store, run)
    reviewed = counted(len(named), "sample")
    head = f"labels are taken from the reviews of {reviewed}, and from the rows of others"
    return RunLabels(gold=gold | named, notes=(head,))


def _reviewed(store: Store, *runs: RunRow) -> dict[str, Gold]:
    """Return the labels of blind reviews by sample id; of a person's labels, the newest."""
    named: dict[str, list[Review]] = {}
    for run in runs:
        desk = ReviewDesk(store, run)
        for number, reviews in by_number(desk.reviews(blind=True)).items():
            named.setdefault(desk.stored(number).id, []).extend(reviews)
    return {
        name: gold_of(sorted(each, key=lambda review: (review.created_at, review.id)))
        for name, each in named.items()
    }


def row_labels(store: Store, *runs: RunRow) -> dict[str, Gold]:
    """Return the labels in the rows of runs, by sample id; of several, those of the last run."""
    scales = {name: each for run in runs for name, each in gold_scales(rubric_of(run)).items()}
    found = dict[str, Gold]()
    for run in runs:
        with reading(run):
            for record in map(SampleRecord, store.samples(run.id)):
                gold = row_gold(record.inputs, scales)
                found |= {} if gold is None else {record.id: gold}
    return found


def read_labels(
    path: Path, scales: Mapping[str, Scale], *, reviews: bool = True
) -> dict[str, Gold]:
    """Read a file of labels: rows with an ``id`` and ``gold`` or ``gold_winner``.

    Without ``reviews``, a file of reviewed samples is refused.
    """
    read = reader_of(path)
    findings, lines, found = Findings(), dict[str, int](), dict[str, Gold]()

    def take(line: int, record: Record) -> None:
        try:
            gold = read_gold(record, scales)
        except InputError as error:
            raise FieldError("bad-gold", error.problem, error.hint) from None
        if gold is None:
            return
        name = _label_id(record, lines)
        lines[name], found[name] = line, gold
        match unpacked(record.get("metadata")):
            case {"reviews": list()} if not reviews:
                problem = "its labels are reviews, of which only those of the random queue count"
                hint = "use `jurybox estimate RUN` without --gold on the run that was reviewed"
                raise InputError(problem, hint, str(path))
            case _:
                pass

    with open_source(path) as source:
        take_all(read(source, FileContext(findings)), take, findings, source.origin)
    if not found:
        problem = f"no row has `{GOLD}` or `{GOLD_WINNER}`"
        raise InputError(problem, 'add human labels, such as `{"gold": {"clarity": 4}}`', str(path))
    return found


def _label_id(record: Record, lines: Mapping[str, int]) -> str:
    """Return the id of a label's sample; ``lines`` maps each id so far to its line."""
    if record.get("id") is None:
        hint = "give the id of its sample"
        raise FieldError("missing-field", "the label has no `id`", hint)
    name = read_id(record["id"], "id")
    if name in lines:
        problem = f"the id `{name}` is given twice (first on line {lines[name]})"
        hint = "give several people's labels in one row, as a list or by their names"
        raise FieldError("duplicate-id", problem, hint)
    return name
