"""Gold rows: read from a dataset, and written as files that runs can be made and resumed from."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from jurybox.calibration.cases import usable
from jurybox.calibration.gold import GOLD, GOLD_WINNER, gold_scales, read_gold
from jurybox.calibration.record import GoldFile
from jurybox.calibration.splits import GoldRow
from jurybox.datasets import open_dataset, survey
from jurybox.errors import InputError
from jurybox.reporting.output_file import whole_file
from jurybox.rubric.model import Rubric
from jurybox.sample import Row


class GoldSet(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that people spoke about, and what a person should know about the others."""

    file: GoldFile
    rows: tuple[GoldRow, ...]
    warnings: tuple[str, ...] = ()


def read_gold_set(
    path: Path, rubric: Rubric, *, limit: int | None = None, cluster: str | None = None
) -> GoldSet:
    """Read the rows with gold; others are left out, with a warning.

    Raises:
        InputError: the file can't be read, or no row has gold that its verdict can be held against.
        DatasetError: it has faults.

    """
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
    surveyed = survey(dataset, needs_response=True, limit=limit, check=take)
    if not found:
        problem = "no row says what people think of its response"
        mend = f'add `{GOLD}: {{"{rubric.criteria[0].id}": 4}}`, or `{GOLD_WINNER}` for pairs'
        raise InputError(problem, mend, dataset.origin)
    left = surveyed.used - len(found)
    notes = [f"{dataset.origin}: {_left_out(left)}"] if left else []
    return GoldSet(
        file=GoldFile(name=path.name, sha256=surveyed.sha256, rows=surveyed.rows, used=len(found)),
        rows=tuple(found),
        warnings=(*surveyed.warnings, *notes),
    )


def _left_out(count: int) -> str:
    if count == 1:
        return "1 row without gold is left out"
    return f"{count} rows without gold are left out"


def _cluster(row: Row, field: str | None) -> str | None:
    if field is None:
        return None
    value: object = getattr(row, field) if field in {"scenario", "task"} else None
    value = row.metadata.get(field) if value is None else value
    if value is None:
        raise InputError(f"the row has no `{field}`", "add it, or leave --cluster out")
    return str(value)


def write_rows(path: Path, rows: Iterable[GoldRow]) -> None:
    """Write rows as a dataset, each with its id; what is there already is left as it is."""
    lines = b"".join(msgspec.json.encode(row_record(each.row)) + b"\n" for each in rows)
    if path.is_file() and path.read_bytes() == lines:
        return
    with whole_file(path) as file:
        file.write(lines)


def row_record(row: Row) -> dict[str, Any]:
    """Return a row as a line of a dataset."""
    response, second = row.response, row.response_b
    told: dict[str, Any] = {
        "id": row.id,
        "task": row.task,
        "reference": row.reference,
        "context": row.context,
        "messages": [msgspec.to_builtins(turn) for turn in row.messages] or None,
        "scenario": row.scenario,
        "response_b": None if second is None else second.text,
        "metadata": row.metadata or None,
    }
    if response is not None:
        timing, usage = response.timing, response.usage
        told |= {
            "response": response.text,
            "latency_e2e_ms": timing.latency_e2e_ms,
            "latency_model_ms": timing.latency_model_ms,
            "timed_out": timing.timed_out or None,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }
    return {name: value for name, value in told.items() if value is not None}
