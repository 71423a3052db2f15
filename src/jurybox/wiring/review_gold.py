"""Reviews as gold: rows of a dataset, as `calibrate` reads them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, Final

import msgspec

from jurybox.calibration.cases import COMMENT, GOLD_REASONING
from jurybox.calibration.drawing import RandomPart
from jurybox.calibration.gold import GOLD, GOLD_WINNER
from jurybox.calibration.reviews import Review, by_number, gold_of
from jurybox.errors import InputError
from jurybox.wiring.gold_files import row_record
from jurybox.wiring.review_cases import Stored
from jurybox.wiring.reviewing import ReviewDesk

REVIEWS: Final = "reviews"
SAMPLE: Final = "sample"
RANDOM_PART: Final = "random_part"
"""In a row's metadata: how many samples the random part had that it is of; 0 if it is of none."""

_OWN: Final = (GOLD, GOLD_WINNER, GOLD_REASONING, COMMENT, REVIEWS, SAMPLE, RANDOM_PART)


class GoldRows(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that people have labels for, and what there is beside.

    ``open`` counts reviews that are left out since they were made with the judges' verdict in
    sight, ``unlabelled`` the samples of which nobody could tell anything, ``unanswered`` those
    without a response.
    """

    rows: tuple[dict[str, Any], ...]
    open: int = 0
    unlabelled: int = 0
    unanswered: int = 0


def gold_rows(desk: ReviewDesk) -> GoldRows:
    """Return the reviewed samples as rows of a dataset, with what people say as gold.

    Repeats of a sample with the same responses are one row; those with others have one each, the
    later ones under names of their own.

    Raises:
        InputError: there is nothing to return.
        IncompleteError: the run can't be read.

    """
    found = desk.said()
    counted = {each.id for each in found.blind}
    aside = sum(each.id not in counted for each in found.every)
    unlabelled = unanswered = 0
    rows: list[dict[str, Any]] = []
    groups = tuple(_grouped(desk, by_number(found.blind)))
    part = desk.part_of(found)
    random = {name for name, _, reviews in groups if _is_random(reviews, part)}
    # One row may be of several repeats, so that it is rows that are counted.
    answered = (each for each in groups if each[1].responses.response.answered)
    drawn = sum(name in random for name, _, _ in answered) + part.skipped
    for name, stored, reviews in groups:
        gold = gold_of(reviews)
        if not stored.responses.response.answered:
            unanswered += 1
        elif gold.scores or gold.winners:
            rows.append(_row(name, stored, reviews, drawn if name in random else 0))
        else:
            unlabelled += 1
    if not rows:
        problem = "no sample of the run has a label by a reviewer"
        if aside:
            problem += f"; {aside} given with the judges' verdict in sight don't count"
        raise InputError(problem, "review some with `jurybox serve`", desk.run.id)
    return GoldRows(rows=tuple(rows), open=aside, unlabelled=unlabelled, unanswered=unanswered)


def _grouped(
    desk: ReviewDesk, reviews: Mapping[int, Sequence[Review]]
) -> Iterator[tuple[str, Stored, Sequence[Review]]]:
    """Yield what becomes a row: its name, the sample, and each person's newest review of it."""
    groups: dict[tuple[str, ...], tuple[Stored, dict[str, Review]]] = {}
    for number in sorted(reviews):
        stored = desk.stored(number)
        shown = (stored.responses.response, stored.responses.response_b)
        texts = (each.text for each in shown if each is not None)
        key = (stored.sample.sample_id, *texts)
        _, people = groups.setdefault(key, (stored, {}))
        for each in reviews[number]:
            known = people.get(each.reviewer)
            if known is None or (known.created_at, known.id) < (each.created_at, each.id):
                people[each.reviewer] = each
    taken: set[str] = set()
    for (name, *_), (stored, people) in groups.items():
        row_name = name if name not in taken else _new_name(desk, stored, taken)
        taken.add(row_name)
        yield row_name, stored, tuple(people.values())


def _new_name(desk: ReviewDesk, stored: Stored, taken: Collection[str]) -> str:
    """Return a name that no row and no sample of the run has: any text may be a sample's id."""
    first = f"{stored.sample.sample_id} (repeat {stored.sample.repeat})"
    names = chain([first], (f"{first} ({step})" for step in count(2)))
    return next(
        name
        for name in names
        if name not in taken and desk.store.find_sample(desk.run.id, name) is None
    )


def _is_random(reviews: Sequence[Review], part: RandomPart) -> bool:
    return any(each.number in part.reviewed for each in reviews)


def _row(name: str, stored: Stored, reviews: Sequence[Review], drawn: int) -> dict[str, Any]:
    told = {key: value for key, value in stored.row.metadata.items() if key not in _OWN}
    told[SAMPLE] = stored.sample.sample_id
    told[REVIEWS] = [_told(each) for each in reviews]
    told[RANDOM_PART] = drawn
    row = msgspec.structs.replace(stored.row, id=name, metadata=told)
    gold = gold_of(reviews)
    comments = [f"{each.reviewer}: {each.comment}" for each in reviews if each.comment]
    labels = {
        GOLD: gold.scores or None,
        GOLD_WINNER: gold.winners or None,
        GOLD_REASONING: "\n".join(comments) or None,
    }
    record = row_record(row)
    metadata = record.pop("metadata")
    given = {key: value for key, value in labels.items() if value is not None}
    return {**record, **given, "metadata": metadata}


def _told(review: Review) -> dict[str, Any]:
    more = {"preferences": review.verdict.preferences} if review.verdict.preferences else {}
    return {
        "reviewer": review.reviewer,
        "created_at": review.created_at,
        "queue": review.shown.queue,
        "comment": review.comment,
        **more,
    }
