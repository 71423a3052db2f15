"""Writes a run's samples to a file, one row per sample, streamed from the store.

A format is a function and a row in `_WRITERS`.
"""

import csv
import importlib
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, Literal

import msgspec

from jurybox.engine.records import (
    ExchangeRow,
    RunRow,
    SampleRow,
    facets_of,
    in_order,
    text_hash,
)
from jurybox.errors import InputError
from jurybox.reporting.metric_text import plain_words
from jurybox.reporting.output_file import whole_folder
from jurybox.reporting.reasons import failed_rules, main_reason
from jurybox.reporting.release import is_settled, read_reviews, sample_decision
from jurybox.reporting.stored import SampleRecord, metadata_of, numbered, reading, rubric_of
from jurybox.review.reviews import Review, by_number, gold_of
from jurybox.rubric.metrics import SAMPLE_SCORE, TOTAL_SCORE
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Response, Row
from jurybox.scoring.sample_result import SampleResult, flag_names, sent_parameters
from jurybox.storage.store import Store
from jurybox.text_format import visible_json

ColumnType = Literal["text", "integer", "number", "boolean", "json"]
ExportedRow = dict[str, Any]
Parameters = dict[str, dict[str, Any] | None]

Columns = dict[str, ColumnType]
_TEXTS: Final = (str, str | None, Response | None)
_INPUTS: Final[Columns] = {
    "id": "text",
    "repeat": "integer",
    **{
        each.name: "text" if each.type in _TEXTS else "json" for each in msgspec.structs.fields(Row)
    },
}
_MEASURES: Final[Columns] = {
    TOTAL_SCORE: "number",
    SAMPLE_SCORE: "number",
    "latency_e2e_ms": "number",
    "latency_model_ms": "number",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "total_tokens": "integer",
    "token_efficiency_ratio": "number",
}
_JUDGED: Final[Columns] = {
    "attempts": "integer",
    "latency_attempt_ms": "number",
    "timed_out": "boolean",
    "method": "text",
    "generation_params": "json",
    "criteria": "json",
    "responses": "json",
    "overall_by_votes": "number",
    "confidence": "text",
    "votes_independent": "boolean",
    "votes_valid": "integer",
    "votes_requested": "integer",
    "votes_skipped": "integer",
    "vote_judges": "json",
    "lost_votes": "json",
    "bias_checklist": "json",
    "stable": "boolean",
    "winner": "text",
    "winner_votes": "json",
    "safety_flag": "boolean",
    "safety_findings": "json",
    "response_findings": "json",
    "needs_review": "boolean",
    "reviewed": "boolean",
    "review_reasons": "json",
    "reviews": "json",
    "comments": "text",
    "people.winner": "text",
    "passed": "boolean",
    "outcome": "text",
    "failed_rules": "text",
    "reason": "text",
    "rules": "json",
    "decision": "text",
    "recorded_decision": "text",
    "overlay": "text",
    "evaluator_error": "text",
    "target_error": "text",
    "judge_score": "number",
    "judge_criteria": "json",
    "judge_fallback": "boolean",
    "run_id": "text",
    "rubric": "text",
    "record_sha256": "text",
}
_RAW: Final[Columns] = {"exchanges": "json"}
_FIXED: Final = frozenset(_INPUTS | _MEASURES | _JUDGED | _RAW)

_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])
_PARTS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
# Default values aren't stored.
_DEFAULTS: Final[ExportedRow] = msgspec.to_builtins(
    msgspec.structs.asdict(SampleResult(metrics={}))
)
_OUTCOMES: Final = ("target_error", "unscored", "failed", "passed")
_REPORTED: Final = (
    "overall_by_votes",
    "winner_votes",
    "responses",
    "lost_votes",
    "bias_checklist",
    "safety_findings",
    "response_findings",
)


class ExportShape:
    """The columns of a run's rows, which depend on its rubric.

    A score is a column under its own name. If a row already has a field of that name, such as
    `confidence`, the score is called `criterion.confidence`. What people scored, and which of two
    responses the judges prefer, are columns next to it.
    """

    def __init__(self, rubric: Rubric, params: Parameters, *, raw: bool = False) -> None:
        """Set the rubric and the planned parameters by role; ``raw`` adds the exchanges."""
        self._params = params
        self._rubric = rubric
        criteria = {each.id: _free("criterion", each.id) for each in rubric.criteria}
        overall = {rubric.overall_name: _free("overall", rubric.overall_name)}
        self._scores = criteria | overall
        self._components = {name: _free("component", name) for name in rubric.components}
        scores = (*self._scores.values(), *self._components.values())
        numbers: Columns = dict.fromkeys(scores, "number")
        people: Columns = dict.fromkeys((f"people.{each}" for each in criteria), "number")
        preferred: Columns = dict.fromkeys((f"preference.{each}" for each in criteria), "text")
        own = numbers | people | preferred
        self.columns = _INPUTS | own | _MEASURES | _JUDGED | (_RAW if raw else {})
        self.raw = raw

    def row(
        self,
        sample: SampleRow,
        exchanges: Sequence[ExchangeRow] = (),
        reviews: Sequence[Review] = (),
        blind: Sequence[Review] = (),
    ) -> ExportedRow:
        """Return a sample as a row, its fields in the order of the columns.

        The decision takes the reviews of the sample into account; the ``blind`` ones give labels.
        """
        gold, record = gold_of(blind), SampleRecord(sample)
        # Exported numbers keep their stored form, 2 and not 2.0.
        result = record.result
        values: ExportedRow = _DEFAULTS | _OBJECT.decode(sample.result)
        metrics, components = values["metrics"], values["components"]
        values |= _inputs(record) | _judged(sample, result)
        values["generation_params"] = self._sent(result)
        if not result.judged:
            values["votes_independent"] = None
        values |= {name: metrics.get(name) for name in _MEASURES}
        values |= {new: metrics.get(name) for name, new in self._scores.items()}
        values |= {new: components.get(name) for name, new in self._components.items()}
        criteria: list[dict[str, Any]] = values["criteria"] or []
        preferred = {each["id"]: each.get("preference") for each in criteria}
        for each in self._rubric.criteria:
            values[f"people.{each.id}"] = gold.score(each.id)
            values[f"preference.{each.id}"] = preferred.get(each.id)
        values["people.winner"] = gold.winner
        values["reviews"] = [_review(each) for each in reviews]
        flags = flag_names(facets_of(sample).flags)
        values["outcome"] = next((plain_words(each) for each in _OUTCOMES if each in flags), None)
        values["failed_rules"] = failed_rules(record, self._rubric) or None
        values["reason"] = main_reason(record, self._rubric, reviews) or None
        said = (f"{each.reviewer}: {each.comment}" for each in reviews if each.comment)
        values["comments"] = "\n".join(said) or None
        values["reviewed"] = is_settled(flags, reviews)
        values["recorded_decision"] = result.decision
        values["decision"] = sample_decision(self._rubric, result, reviews)
        values["run_id"] = sample.run_id
        values["rubric"] = f"{self._rubric.id} {self._rubric.version}"
        values["record_sha256"] = sample.record_sha256
        if self.raw:
            values["exchanges"] = [_exchange(each) for each in in_order(sample, exchanges)]
        return {name: values[name] for name in self.columns}

    def _sent(self, result: SampleResult) -> dict[str, Any]:
        """Return the parameters that were sent to a sample's models, by role."""
        roles: Parameters = {}
        for role in ("target", "judge"):
            planned = self._params.get(role)
            uses = [use for use in result.uses if use.role == role]
            roles[role] = None if planned is None or not uses else sent_parameters(planned, uses)
        return roles


def export_shape(run: RunRow, *, raw: bool = False) -> ExportShape:
    """Return the columns of a run's rows."""
    params = metadata_of(run).get("generation_params", {})
    return ExportShape(rubric_of(run), params, raw=raw)


def record_as_data(
    record: SampleRecord, run: RunRow, store: Store, *, raw: bool = True
) -> ExportedRow:
    """Return a sample as `jurybox export` writes it, with the run's id."""
    with reading(run):
        found = read_reviews(run, store.reviews_of(run.id, record.row.number))
        shape = export_shape(run, raw=raw)
        row = shape.row(record.row, record.exchanges, found.every, found.blind)
    return {"run_id": run.id, **row}


def _free(what: str, name: str) -> str:
    """Return a unique column name for a score; names in rubrics can't contain the added dot."""
    return f"{what}.{name}" if name in _FIXED else name


def _inputs(record: SampleRecord) -> ExportedRow:
    row, second = record.inputs, record.responses.response_b
    timing = record.responses.response.timing
    return {
        **msgspec.to_builtins(row),
        "checks": row.checks or None,
        "id": record.id,
        "repeat": record.repeat,
        "response": record.responses.response.text,
        "response_b": None if second is None else second.text,
        "attempts": None if timing.cached else timing.attempts,
        "latency_attempt_ms": None if timing.cached else timing.latency_attempt_ms,
    }


def _judged(sample: SampleRow, result: SampleResult) -> ExportedRow:
    """Return the criteria, as scored by rules or, without rules, by the jury, and its report."""
    report = {} if sample.report is None else _OBJECT.decode(sample.report)
    automated = {} if sample.automated is None else _OBJECT.decode(sample.automated)
    by_jury = report.get("criteria")
    by_rules = [*automated["criteria"], *automated["checks"]] if result.by_rules else None
    return {
        "criteria": by_jury if by_rules is None else by_rules,
        "judge_criteria": None if by_rules is None else by_jury,
        "vote_judges": _vote_judges(report),
        **{name: report.get(name) for name in _REPORTED},
    }


def _vote_judges(report: Mapping[str, Any]) -> list[str] | None:
    """Return the judge of each valid vote, in order; None if two responses lost different votes."""
    judges, lost = report.get("judges"), report.get("lost_votes", [])
    if not judges or (lost and report.get("responses")):
        return None  # a lost vote doesn't say on which of two responses it was
    asked = range(report["votes_requested"] - report.get("votes_skipped", 0))
    missing = {each["vote"] for each in lost}
    return [judges[vote % len(judges)] for vote in asked if vote not in missing]


def _review(review: Review) -> dict[str, Any]:
    """Return a review, which names two responses as in the run."""
    return {
        "reviewer": review.reviewer,
        "created_at": review.created_at,
        **review.verdict.as_data(),
        "comment": review.comment,
        **msgspec.structs.asdict(review.shown),
    }


def _exchange(row: ExchangeRow) -> dict[str, Any]:
    """Return a request, as the text that was hashed, and its outcome."""
    return {
        "role": row.role,
        "request_sha256": text_hash(row.request),
        "request": row.request,
        **_PARTS.decode(row.outcome),
    }


# Follows OWASP's rules on CSV injection; the last four are full-width characters.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")

Write = Callable[[BinaryIO, Columns, Iterable[ExportedRow]], int]
"""Writes rows with these columns, and returns how many there were."""

_ENCODER: Final = msgspec.json.Encoder()
_CELLS: Final = msgspec.json.Decoder(list[str])
_EMPTY: Final[tuple[Any, ...]] = (None, "", (), [], {})
_ALWAYS: Final = {*_MEASURES} - {TOTAL_SCORE} | {
    *("id", "repeat", "timed_out", "criteria", "confidence", "stable", "winner", "safety_flag"),
    *("needs_review", "review_reasons", "passed", "evaluator_error", "record_sha256"),
}
"""The columns that each CSV file has, also without a value."""


def export_writer(name: str) -> Write:
    """Return the writer for the format of a file's name."""
    ending = PurePath(name).suffix.lower()
    if ending not in _WRITERS:
        problem = f"`{ending}` isn't a format of rows" if ending else "the name has no ending"
        raise InputError(problem, f"end it with one of {', '.join(_WRITERS)}", name)
    if ending == ".parquet":
        try:
            importlib.import_module("pyarrow.parquet")
        except ImportError:
            hint = "install it with: pip install 'jurybox[parquet]'"
            raise InputError("Parquet needs pyarrow", hint, name) from None
    return _WRITERS[ending]


def export_run(
    store: Store, run: RunRow, file: BinaryIO, write: Write, *, raw: bool = False
) -> int:
    """Write a run's samples, and count them; ``raw`` adds every request and reply."""
    shape = export_shape(run, raw=raw)
    return write(file, shape.columns, exported_rows(store, run, shape))


def export_parts(store: Store, run: RunRow, folder: Path, *, raw: bool = False) -> int:
    """Write a run's samples to a folder of Parquet files, in order."""
    export_writer(f"{folder}/part-0.parquet")  # reports a missing pyarrow
    shape = export_shape(run, raw=raw)
    rows = exported_rows(store, run, shape)
    written = 0
    with whole_folder(folder) as draft:
        for part, first in enumerate(rows):
            others = itertools.islice(rows, _ROWS_PER_FILE - 1)
            with (draft / f"part-{part}.parquet").open("wb") as file:
                written += write_parquet(file, shape.columns, itertools.chain([first], others))
    return written


def exported_rows(
    store: Store,
    run: RunRow,
    shape: ExportShape | None = None,
    numbers: Iterable[int] | None = None,
) -> Iterator[ExportedRow]:
    """Yield a run's samples, or those with these numbers, as rows."""
    shape = shape or export_shape(run)
    found = read_reviews(run, store.reviews(run.id))
    reviews = by_number(found.every), by_number(found.blind)

    def row(sample: SampleRow, exchanges: Sequence[ExchangeRow] = ()) -> ExportedRow:
        return shape.row(sample, exchanges, *(each.get(sample.number, ()) for each in reviews))

    with reading(run):
        if shape.raw:
            for each in store.stored_rows(run.id):
                if each.sample is not None:
                    yield row(each.sample, each.exchanges)
        else:
            some = (numbered(store, run, number) for number in numbers or ())
            yield from map(row, store.samples(run.id) if numbers is None else some)


def write_json_lines(file: BinaryIO, columns: Columns, rows: Iterable[ExportedRow]) -> int:
    """Write one JSON object per line, with invisible characters escaped."""
    del columns
    count = 0
    for count, row in enumerate(rows, start=1):  # noqa: B007 - the last count is returned
        file.write(visible_json(_ENCODER.encode(row).decode()).encode() + b"\n")
    return count


def write_csv(file: BinaryIO, columns: Columns, rows: Iterable[ExportedRow]) -> int:
    """Write comma-separated values with a heading; lists and objects are JSON, nulls are empty.

    An apostrophe is put before a text that a spreadsheet would read as a formula. Columns without
    a value in any row are left out, except those that scripts rely on.
    """
    empty, count = [name for name in columns if name not in _ALWAYS], 0
    with TemporaryFile() as draft:
        for count, row in enumerate(rows, start=1):  # noqa: B007 - the last count is returned
            empty = [name for name in empty if row[name] in _EMPTY]
            draft.write(_ENCODER.encode([_cell(value) for value in row.values()]) + b"\n")
        draft.seek(0)
        used = [not count or name not in empty for name in columns]
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        # With `\r\n`, the writer also quotes cells that contain only one of the two.
        writer = csv.writer(text, lineterminator="\r\n")
        for cells in itertools.chain([columns], map(_CELLS.decode, draft)):
            writer.writerow(itertools.compress(cells, used))
    # The caller closes the file.
    text.detach()
    return count


def _cell(value: Any) -> str:  # noqa: ANN401 - any value of a row
    if value is None:
        return ""
    if not isinstance(value, str):
        return _ENCODER.encode(value).decode()
    return f"'{value}" if value.startswith(_FORMULA) else value


Arrow = Any  # The library has no types, and is an optional extra.

# A group is kept in memory until it is written, and a single row may be very large.
_MOST_ROWS: Final = 5000
_ROWS_PER_FILE: Final = 1_000_000
_MOST_CHARACTERS: Final = 16_000_000
_ARROW_TYPES: Final[dict[ColumnType, str]] = {
    "text": "string",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool_",
    "json": "string",
}


def write_parquet(file: BinaryIO, columns: Columns, rows: Iterable[ExportedRow]) -> int:
    """Write rows with fixed types; lists and objects are JSON strings."""
    arrow: Arrow = importlib.import_module("pyarrow")
    parquet: Arrow = importlib.import_module("pyarrow.parquet")
    types = {name: getattr(arrow, _ARROW_TYPES[kind])() for name, kind in columns.items()}
    schema = arrow.schema(list(types.items()))
    count = 0
    with parquet.ParquetWriter(file, schema) as writer:
        for group in _groups(columns, rows):
            count += len(group["id"])
            writer.write_table(arrow.table(group, schema=schema))
    return count


def _groups(columns: Columns, rows: Iterable[ExportedRow]) -> Iterator[dict[str, list[Any]]]:
    """Yield columns in groups of rows that fit into memory."""
    group: dict[str, list[Any]] = {name: [] for name in columns}
    count = characters = 0
    for row in rows:
        for name, kind in columns.items():
            value = row[name]
            if kind == "json" and value is not None:
                value = _ENCODER.encode(value).decode()
            characters += len(value) if isinstance(value, str) else 0
            group[name].append(value)
        count += 1
        if count >= _MOST_ROWS or characters >= _MOST_CHARACTERS:
            yield group
            group = {name: [] for name in columns}
            count = characters = 0
    if count:
        yield group


_WRITERS: Final[dict[str, Write]] = {
    ".jsonl": write_json_lines,
    ".csv": write_csv,
    ".parquet": write_parquet,
}
