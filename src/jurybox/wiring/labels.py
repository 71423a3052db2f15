"""Where labels for a run come from: a file, its reviews, or its own rows."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from jurybox.calibration.gold import Gold, gold_scales, read_gold
from jurybox.calibration.reviews import Review, by_number, gold_of
from jurybox.datasets.gold_rows import read_gold_rows
from jurybox.errors import InputError
from jurybox.reporting.stored import damaged, plan_of, rubric_of
from jurybox.rubric.scale import Scale
from jurybox.running.records import RunRow, SampleRow
from jurybox.running.storing import Store
from jurybox.sample import Row
from jurybox.wiring.review_figures import labels_of
from jurybox.wiring.reviewing import ReviewDesk

_ROW = msgspec.json.Decoder(Row)


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """What people say of a run's samples.

    Attributes:
        gold: by the samples' ids, from a file; None where their own rows are asked.
        reviewed: by the samples' numbers, from reviews; None where there are none to be used.
        notes: what to say of where they come from, and of what is left out.

    """

    gold: Mapping[str, Gold] | None = None
    reviewed: Mapping[int, Gold] | None = None
    notes: tuple[str, ...] = ()


def read_labels(path: Path, run: RunRow) -> Mapping[str, Gold]:
    """Read a file of labels, on the scales of the run's rubric.

    Raises:
        InputError: it can't be read, or a label can't be one.
        IncompleteError: the run can't be read.

    """
    return read_gold_rows(path, gold_scales(rubric_of(run))).gold


def labels_for_run(store: Store, run: RunRow, path: Path | None) -> Labels:
    """Return labels that may correct the figures of a run: of a file, or of the random part.

    Flagged samples are no random choice of the run, and a figure that is corrected by them is off;
    so only reviews of the random part are taken, and where there is none, what the rows carry.

    Raises:
        InputError: the file can't be read.
        IncompleteError: the run can't be read.

    """
    if path is not None:
        return Labels(gold=read_labels(path, run))
    if not store.reviews(run.id):
        return Labels()
    desk = ReviewDesk(store, run)
    part, blind = desk.random_part(), desk.reviews(blind=True)
    others = len({each.number for each in blind} - part.labelled)
    counted = {each.id for each in blind}
    aside = sum(each.id not in counted for each in desk.reviews())
    notes = [*_left_out(others, aside)]
    if part.needed:
        notes.append(f"{part.needed} more reviews from the random queue are needed")
    if not part.labelled:
        return Labels(notes=("labels are taken from the run's rows", *notes))
    head = f"labels are taken from reviews: {_samples(len(part.labelled))} of the random part"
    if part.skipped:
        notes.insert(0, f"{_samples(part.skipped)} of the random part skipped by people")
    return Labels(reviewed=labels_of(blind, part), notes=(head, *notes))


def _left_out(others: int, aside: int) -> Iterator[str]:
    if others:
        reviewed = "1 reviewed sample" if others == 1 else f"{others} reviewed samples"
        yield f"left out: {reviewed} not drawn at random"
    if aside:
        reviews = "1 review" if aside == 1 else f"{aside} reviews"
        yield f"left out: {reviews} made with the judges' verdict in sight"


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count} samples"


def labels_of_samples(store: Store, run: RunRow) -> Labels:
    """Return labels of single samples, however these were chosen: reviews, and else the rows'.

    Where a target was asked in several repeats, an id has several responses, and what people say of
    one of them isn't true of the others: reviews are left out then.

    Raises:
        InputError: what a row carries as gold can't be that.
        IncompleteError: the run can't be read.

    """
    if not store.reviews(run.id):
        return Labels()
    plan = plan_of(run)
    if plan.repeats > 1 and plan.target is not None:
        return Labels(notes=("reviews are left out, since every repeat has its own response",))
    desk = ReviewDesk(store, run)
    named: dict[str, list[Review]] = {}
    for number, reviews in by_number(desk.reviews(blind=True)).items():
        named.setdefault(desk.stored(number).sample.sample_id, []).extend(reviews)
    gold = _of_rows(store, run) | {name: gold_of(each) for name, each in named.items()}
    head = f"labels are taken from the reviews of {_samples(len(named))}, of others from their rows"
    return Labels(gold=gold, notes=(head,))


def _of_rows(store: Store, run: RunRow) -> dict[str, Gold]:
    scales = gold_scales(rubric_of(run))
    try:
        found = {sample.sample_id: _gold_of(sample, scales) for sample in store.samples(run.id)}
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    return {name: gold for name, gold in found.items() if gold is not None}


def _gold_of(sample: SampleRow, scales: Mapping[str, Scale]) -> Gold | None:
    try:
        return read_gold(_ROW.decode(sample.inputs).metadata, scales)
    except InputError as error:
        raise InputError(error.problem, error.mend, f"sample {sample.sample_id}") from None
