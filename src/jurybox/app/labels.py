"""Labels for a run: from a file, its reviews, or its own rows."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jurybox.app.estimate_run import RunLabels
from jurybox.app.gold_sets import drawn_at_random
from jurybox.app.review_agreement import labels_of
from jurybox.app.review_desk import ReviewDesk
from jurybox.calibration.gold import GOLD, GOLD_WINNER, Gold, gold_scales, read_gold, row_gold
from jurybox.datasets.dataset import DatasetError
from jurybox.datasets.fields import FieldError, read_id
from jurybox.datasets.open_dataset import reader_of
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import open_source
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.reporting.review_text import waiting_line
from jurybox.reporting.stored import SampleRecord, plan_of, reading, rubric_of
from jurybox.review.reviews import ActiveReviews, Review, by_number, gold_of
from jurybox.review.selection import RandomPart, needed_line
from jurybox.rubric.scale import Scale
from jurybox.storage.store import Store
from jurybox.text_format import counted


def read_labels(path: Path, run: RunRow) -> Mapping[str, Gold]:
    """Read a file of labels, on the scales of the run's rubric."""
    return read_gold_rows(path, gold_scales(rubric_of(run)))


def labels_for_run(store: Store, run: RunRow, path: Path | None) -> RunLabels:
    """Return labels that may correct the metrics of a run: of a file, or of the random part.

    Flagged samples are no random choice of the run, so only reviews of the random part are taken;
    while these are too few, the labels in the run's rows.
    """
    if path is not None:
        gold, left_out = drawn_at_random(path, read_labels(path, run))
        return RunLabels(gold=gold, notes=left_out)
    if not store.reviews(run.id):
        return RunLabels()
    desk = ReviewDesk(store, run)
    found = desk.active_reviews()
    part = desk.part_of(found)
    notes = [*_left_out(found, part)]
    if part.skipped:
        skipped = counted(part.skipped, "sample")
        notes.insert(0, f"{skipped} of the random part skipped by reviewers")
    if part.needed and (not part.labeled or _of_rows(store, run)):
        hint = "review some from the random queue of `jurybox serve`, or give some with --gold"
        if part.waiting:
            hint = "review the samples that were skipped in the random queue"
        return RunLabels(notes=("labels are taken from the run's rows", *notes), hint=hint)
    labeled = counted(len(part.labeled), "sample")
    head = f"labels are taken from reviews: {labeled} of the random part"
    return RunLabels(
        reviewed=labels_of(found.blind, part),
        drawn=part.reviewed | part.missed,
        notes=(head, *notes),
    )


def _left_out(found: ActiveReviews, part: RandomPart) -> Iterator[str]:
    others = {each.number for each in found.blind} - part.reviewed - part.waiting
    if others:
        yield f"left out: {counted(len(others), 'reviewed sample')} not drawn at random"
    if part.unsure:
        yield f"left out: {counted(part.unsure, 'sample')} that no reviewer could judge"
    blind = {each.id for each in found.blind}
    if aside := sum(each.id not in blind for each in found.every):
        yield f"left out: {counted(aside, 'review')} made with the judges' verdict in sight"
    if part.waiting:
        yield waiting_line(len(part.waiting), part.passed)
    elif part.needed:
        yield needed_line(part.needed, part.unsure)


def labels_for_diff(store: Store, one: RunRow, other: RunRow, path: Path | None) -> dict[str, Gold]:
    """Return labels of responses that two runs judged: of a file, or else of reviews and rows.

    Without a file there are none where both runs have the same judge: it can't be right more often.
    """
    plans = [plan_of(one), plan_of(other)]
    if not all(plan.judges and plan.target is None for plan in plans):
        if path is None:
            return {}
        problem = "labels are for recorded responses, and both runs must have judges"
        raise InputError(problem, "leave --gold out", str(path))
    if path is not None:
        return dict(read_labels(path, one))
    if _judge(one) == _judge(other):
        return {}
    found = labels_of_samples(store, one).gold
    return _of_rows(store, one) if found is None else dict(found)


def _judge(run: RunRow) -> list[object]:
    metadata: dict[str, Any] = msgspec.json.decode(run.metadata)
    return [metadata.get("votes"), *(v for name, v in metadata.items() if "evaluator_" in name)]


def labels_of_samples(store: Store, run: RunRow) -> RunLabels:
    """Return labels of single samples, however they were chosen: reviews, else those of the rows.

    Where a target answered in several repeats, an id has several responses, and a review concerns
    only one of them: reviews are left out then.
    """
    if not store.reviews(run.id):
        return RunLabels()
    plan = plan_of(run)
    if plan.repeats > 1 and plan.target is not None:
        return RunLabels(notes=("reviews are left out, since every repeat has its own response",))
    desk = ReviewDesk(store, run)
    named: dict[str, list[Review]] = {}
    for number, reviews in by_number(desk.reviews(blind=True)).items():
        named.setdefault(desk.stored(number).id, []).extend(reviews)
    gold = _of_rows(store, run) | {name: gold_of(each) for name, each in named.items()}
    reviewed = counted(len(named), "sample")
    head = f"labels are taken from the reviews of {reviewed}, of others from their rows"
    return RunLabels(gold=gold, notes=(head,))


def _of_rows(store: Store, run: RunRow) -> dict[str, Gold]:
    scales, found = gold_scales(rubric_of(run)), dict[str, Gold]()
    with reading(run):
        for record in map(SampleRecord, store.samples(run.id)):
            gold = row_gold(record.inputs, scales)
            found |= {} if gold is None else {record.id: gold}
    return found


def read_gold_rows(path: Path, scales: Mapping[str, Scale]) -> dict[str, Gold]:
    """Read a file of labels: rows with an ``id`` and ``gold`` or ``gold_winner``."""
    read = reader_of(path)
    findings, lines, found = Findings(), dict[str, int](), dict[str, Gold]()
    with open_source(path) as source, contextlib.suppress(TooManyError):
        for line, record in read(source, FileContext(findings)):
            try:
                gold = read_gold(record, scales)
                if gold is not None:
                    name = _label_id(record, lines)
                    lines[name], found[name] = line, gold
            except FieldError as error:
                findings.add(Place(line), error.code, error.problem, error.hint)
            except InputError as error:
                findings.add(Place(line), "bad-gold", error.problem, error.hint)
    faults = findings.in_order()
    if faults:
        raise DatasetError(source.origin, faults)
    if not found:
        problem = f"no row has `{GOLD}` or `{GOLD_WINNER}`"
        raise InputError(problem, 'add what people say, as `{"gold": {"clarity": 4}}`', str(path))
    return found


def _label_id(record: Record, lines: Mapping[str, int]) -> str:
    """Return the id of a label's sample; ``lines`` has the line of each id so far."""
    if record.get("id") is None:
        hint = "give the id of the sample that it is of"
        raise FieldError("missing-field", "the label has no `id`", hint)
    name = read_id(record["id"], "id")
    if name in lines:
        problem = f"the id `{name}` is given twice (first on line {lines[name]})"
        hint = "give several people's labels in one row, as a list or by their names"
        raise FieldError("duplicate-id", problem, hint)
    return name
