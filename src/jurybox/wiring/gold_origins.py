"""How the samples of a file of gold were chosen, where `export --gold` has written it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from jurybox.calibration.drawing import too_many_missing
from jurybox.calibration.gold import Gold
from jurybox.datasets.opening import reader_of
from jurybox.datasets.source import open_source
from jurybox.documents.findings import Findings
from jurybox.errors import InputError
from jurybox.wiring.review_gold import RANDOM_PART, REVIEWS


def drawn_at_random(
    path: Path, gold: Mapping[str, Gold]
) -> tuple[Mapping[str, Gold], tuple[str, ...]]:
    """Return the labels of a file that may correct a run's figures, and what to say of the others.

    Rows that were reviewed are taken where they are of a random part. What more than one in ten of
    that part have no label for is left out as well: what people leave out is no random choice.
    Rows that don't tell of reviews are taken as they are.

    Raises:
        InputError: the file can't be read, or none of its rows are left.

    """
    reviewed = {name: drawn for name, drawn in _origins(path) if name in gold}
    chosen = {name for name, drawn in reviewed.items() if not drawn}
    left = {name: each for name, each in gold.items() if name not in chosen}
    if not left:
        problem = "its labels are of samples that were flagged or picked, not drawn at random"
        raise InputError(problem, "review samples of the random queue", str(path))
    notes: list[str] = []
    if chosen:
        rows = "1 row" if len(chosen) == 1 else f"{len(chosen)} rows"
        notes.append(f"left out: {rows} of samples that were flagged or picked")
    drawn = max(reviewed.values(), default=0)
    part = {name: left[name] for name in left if name in reviewed}
    for what, have in _counts(part).items():
        if too_many_missing(drawn - have, drawn):
            notes.append(
                f"left out: {what}, since people gave {drawn - have} of the {drawn} samples drawn"
                " at random no label for it"
            )
            left |= {name: _without(left[name], what) for name in part}
    return left, tuple(notes)


_WINNER = "winner"


def _counts(part: Mapping[str, Gold]) -> dict[str, int]:
    """Return how many rows have a label for what any of them has one for."""
    counts: dict[str, int] = {}
    for each in part.values():
        for name in (*each.scores, *((_WINNER,) if each.winners else ())):
            counts[name] = counts.get(name, 0) + 1
    return counts


def _without(gold: Gold, what: str) -> Gold:
    scores = {name: each for name, each in gold.scores.items() if name != what}
    return Gold(scores=scores, winners={} if what == _WINNER else gold.winners)


def _origins(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the rows that tell of reviews, each with how many samples its random part had."""
    read = reader_of(path)
    with open_source(path) as source:
        for _, record in read(source, Findings(), lambda _: None):
            metadata = _unpacked(record.get("metadata"))
            reviews = metadata.get(REVIEWS)
            if isinstance(reviews, list):
                yield str(record.get("id")), _drawn(metadata, cast("list[object]", reviews))


def _drawn(metadata: Mapping[str, Any], reviews: list[object]) -> int:
    told = metadata.get(RANDOM_PART)
    if isinstance(told, int):
        return told
    # An older jurybox only told the queues.
    queues = (cast("dict[str, Any]", each) for each in reviews if isinstance(each, dict))
    return int(any(each.get("queue") == "random" for each in queues))


def _unpacked(value: object) -> Mapping[str, Any]:
    """Return metadata as they are in JSON; in a table they are a text of it."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
