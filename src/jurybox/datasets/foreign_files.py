"""Reads files of other tools as rows, verdicts on pairs and ratings."""

import contextlib
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from jurybox.datasets.dataset import DatasetError
from jurybox.datasets.fields import Columns, FieldError
from jurybox.datasets.foreign_suite import (
    ForeignSuite,
    asked,
    content_of,
    is_number,
    listing,
    mapping,
    read_openai_graders,
    read_promptfoo_config,
    read_promptfoo_results,
)
from jurybox.datasets.open_dataset import reader_or_lines
from jurybox.datasets.ratings import verdicts_of
from jurybox.datasets.row_reader import FileContext, Needs, Record, RowReader
from jurybox.datasets.source import Source, open_source
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.documents.findings import decode as decode_text
from jurybox.documents.plain_yaml import read_yaml, value_of
from jurybox.errors import InputError
from jurybox.text_format import as_text

_GRADES: Final = {"C": 1, "P": 0.5, "I": 0, "N": 0}
_WINNERS: Final = {"model_1": "a", "model_a": "a", "model_2": "b", "model_b": "b"}
_TIE: Final = 1.5
_MISFITS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_DAMAGED: Final = (EOFError, KeyError, OSError, RuntimeError, TypeError, ValueError)
# A log with a higher compression ratio is probably an attack on memory.
_BOMB: Final = 1000


def read_foreign(path: Path) -> ForeignSuite:
    """Read a file of another tool, recognized by the keys of its first object."""
    with open_source(path) as source:
        value = _value_of(path, source)
    found = {*mapping(next(iter(listing(value)), None))}
    fitting = (
        (name, reader)
        for name, (reader, forms) in FORMATS.items()
        if any(found.issuperset(keys.split()) for keys in forms.split("|"))
    )
    name, reader = next(fitting, ("", None))
    if reader is None:
        raise InputError("no known format", f"known formats: {', '.join(FORMATS)}", source.origin)
    read = ForeignSuite(format=name)
    try:
        reader(value, read)
    except (*_MISFITS, RecursionError):
        hint = "write the file again with a current version of the tool that wrote it"
        where = source.origin
        if read.at is not None:
            where, hint = f"{where}: item {read.at}", "correct this item, or leave it out"
        raise InputError(f"{name} in an unknown form", hint, where) from None
    _keep_readable(read)
    if not (read.rows or read.verdicts or read.ratings or read.rubric):
        problem = "; ".join([f"{name} without usable data", *read.losses()])
        raise InputError(problem, "check the file", source.origin)
    if not read.ratings:
        _rate_by_verdicts(read)
    bare = sum("checks" not in row for row in read.rows)
    if 0 < bare < len(read.rows):
        read.lose("row", "without a check", "it gets no score", bare)
    return read


def _keep_readable(read: ForeignSuite) -> None:
    """Leave out rows and verdicts that jurybox would refuse, and list why."""
    recorded = not read.targets and any("response" in row for row in read.rows)
    rows: list[dict[str, Any]] = []
    for row in read.rows:
        findings = Findings()
        reader = RowReader(FileContext(findings), Needs(responses=recorded))
        reader.read(1, row)
        reader.finish()
        for each in findings.in_order()[:1]:
            read.lose("row", "that jurybox would refuse", f"{each.problem}; {each.hint}")
        rows += [] if findings.in_order() else [row]
    # If jurybox would refuse all rows, they are kept: reading them reports the missing fields.
    read.rows = rows or read.rows
    verdicts, read.verdicts = read.verdicts, []
    for verdict in verdicts:
        try:
            verdicts_of(verdict)
            read.verdicts.append(verdict)
        except FieldError as error:
            read.lose("verdict", "left out", error.problem)


def _value_of(path: Path, source: Source) -> Any:  # noqa: ANN401 - whatever a tool wrote
    """Return the objects of a line-based or table file, or its only value."""
    ending = path.suffix.lower()
    if zipfile.is_zipfile(path):
        return _zipped_log(path, source.origin)
    findings = Findings()
    value: object = None
    if ending in {".csv", ".jsonl", ".ndjson"}:
        with contextlib.suppress(TooManyError):
            value = [each for _, each in reader_or_lines(path)(source, FileContext(findings))]
    else:
        data = b"\n".join(line for _, line in source.lines(findings))
        if ending in {".yaml", ".yml"}:
            text = decode_text(data, findings)
            node = None if text is None else read_yaml(text, Place(1), findings)
            value = None if node is None else value_of(node)
        else:
            value = _json_value(data, source.origin)
    if findings.in_order():
        raise DatasetError(source.origin, findings.in_order())
    return value


def _json_value(data: bytes, origin: str) -> Any:  # noqa: ANN401 - whatever a tool wrote
    """Return the value of JSON, allowing NaN as in logs; a lone surrogate is an error."""
    try:
        value = json.loads(data)
        if b"\\ud" in data.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(f"not valid JSON ({error})", "correct the file", origin) from None
    return value


def _zipped_log(path: Path, origin: str) -> object:
    """Return the log in an Inspect `.eval` file, in the form of its JSON."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(each.file_size for each in archive.infolist()) > _BOMB * path.stat().st_size:
                raise zipfile.BadZipFile  # noqa: TRY301 - it gets the same message
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples = [_json_value(archive.read(name), name) for name in names]
            return {**_json_value(archive.read("header.json"), origin), "samples": samples}
    except (*_DAMAGED, zipfile.BadZipFile, zlib.error):
        problem = "not a complete Inspect log, or compressed in a way that this Python can't read"
        hint = "convert it with `inspect log convert FILE --to json --output-dir FOLDER`"
        raise InputError(problem, hint, origin) from None


def row_of(item: Mapping[str, Any], read: ForeignSuite) -> dict[str, Any]:
    """Return an object as a row: columns with usual names become fields; empty values are dropped.

    If the task is an object, its keys become columns.
    """
    row: dict[str, Any] = {}
    for key, value in item.items():
        field = Columns().field(key) or key
        if value in (None, "", [], {}):
            continue
        if field in row:
            read.lose("value", f"of `{key}`", f"another column is the `{field}`")
        elif field == "task":
            row |= mapping(value) or asked(value) or {"task": value}
        elif field == "reference":
            row[field] = as_text(listing(value)[0])
            if len(listing(value)) > 1:
                read.lose("row", "with several right answers", "only the first is the reference")
        elif field != "metadata" or isinstance(value, dict):
            row[field] = value
    return row


def _read_rows(items: object, read: ForeignSuite) -> None:
    read.rows = [row_of(item, read) for item in read.each(items)]


def _read_inspect(log: Mapping[str, Any], read: ForeignSuite) -> None:
    """Read samples with their outputs and scores; each scorer is a rater."""
    read.name = as_text(log["eval"].get("task") or "")
    ids = Counter(as_text(sample["id"]) for sample in read.each(log["samples"]))
    for sample in read.each(log["samples"]):
        item = as_text(sample["id"])
        item = item if ids[item] == 1 else f"{item}-{sample.get('epoch', 1)}"
        row = row_of({key: sample.get(key) for key in ("input", "target", "metadata")}, read)
        answer = as_text(mapping(sample.get("output")).get("completion") or "")
        read.rows.append({**row, "id": item, "response": answer})
        if sample.get("error"):
            read.lose("sample", "that ended with an error", "carried over up to the error")
        roles = [mapping(turn).get("role") for turn in listing(sample.get("messages"))]
        if roles.count("assistant") > 1:
            read.lose("sample", "with several turns of the model", "only the last is carried over")
        for rater, score in mapping(sample.get("scores")).items():
            value = score.get("value")
            value = _GRADES.get(value, value) if isinstance(value, str) else value
            if is_number(value):
                read.rate(item, rater, float(value))
            else:
                read.lose("score", f"of `{rater}` that isn't a number", "left out")
    for scorer in listing(log["eval"].get("scorers")):
        read.lose("scorer", f"`{scorer['name']}`", "write a criterion; its scores are ratings")


def _read_alpaca(annotations: list[Record], read: ForeignSuite) -> None:
    """Read preferences: 1 means the first output, 2 the second, and 1.5 or 0 a tie."""
    items: dict[object, str] = {}
    seen: set[tuple[object, ...]] = set()
    for each in read.each(annotations):
        item = items.setdefault(each["instruction"], str(len(items) + 1))
        names = {"a": as_text(each["generator_1"]), "b": as_text(each["generator_2"])}
        preference: Any = each.get("preference")
        winner = None
        if is_number(preference) and (1 <= preference <= 2 or preference == 0):  # noqa: PLR2004
            winner = "tie" if preference in (0, _TIE) else "a" if preference < _TIE else "b"
            if preference not in (0, 1, _TIE, 2):
                read.lose("preference", "between 1 and 2", "the nearer output wins")
        elif preference is not None:
            read.lose("preference", "other than 0 and 1 to 2", "the verdict has no winner")
        verdict = {**names, "winner": winner, "item": item, "judge": each.get("annotator")}
        read.verdicts.append(verdict)
        pair = (item, each["output_1"], each["output_2"])
        if pair not in seen:
            seen.add(pair)
            row = {"id": str(len(seen)), "task": each["instruction"], "metadata": names}
            read.rows.append({**row, "response": pair[1], "response_b": pair[2]})


def _read_mt_bench(judgments: list[Record], read: ForeignSuite) -> None:
    """Read judgments of single answers as ratings, and of pairs as one verdict per order."""
    read.scale = "1-10"
    for each in read.each(judgments):
        item = f"{each['question_id']}-{each.get('turn', 1)}"
        judge = as_text(listing(each["judge"])[0])
        if "model" in each:
            # FastChat writes -1 if it found no score in the reply.
            score = each["score"] if each["score"] != -1 else None
            read.rate(f"{item}-{each['model']}", judge, score)
            continue
        one, other = ("model_1", "model_2") if "model_1" in each else ("model_a", "model_b")
        names = {"a": as_text(each[one]), "b": as_text(each[other])}
        for game in ("g1_winner", "g2_winner", "winner"):
            if game in each:
                said = as_text(each[game])
                winner = "tie" if said.startswith("tie") else _WINNERS.get(said)
                verdict = {**names, "winner": winner, "item": item, "judge": judge}
                # The second game swaps the answers.
                read.verdicts.append(_turned(verdict) if game == "g2_winner" else verdict)
    read.lose("judgment", "without the answers", "no suite is written", len(judgments))


def _turned(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict with the answers swapped."""
    winner = {"a": "b", "b": "a"}.get(verdict["winner"], verdict["winner"])
    return {**verdict, "a": verdict["b"], "b": verdict["a"], "winner": winner}


def _rate_by_verdicts(read: ForeignSuite) -> None:
    """Turn several judges' verdicts into ratings: how often the alphabetically first model wins."""
    shares: dict[tuple[str, str], list[float]] = {}
    for each in read.verdicts:
        first = each if each["a"] <= each["b"] else _turned(each)
        share = {"a": 1.0, "b": 0.0, "tie": 0.5}.get(first["winner"])
        if share is not None:
            item = f"{each['item']}: {first['a']} or {first['b']}"
            shares.setdefault((item, as_text(each["judge"])), []).append(share)
    if len({judge for _, judge in shares}) > 1:
        read.scale = "0-1"
        for (item, judge), given in shares.items():
            read.rate(item, judge, sum(given) / len(given))


def _read_langfuse(exported: object, read: ForeignSuite) -> None:
    for item in read.each(mapping(exported).get("data", exported)):
        if item.get("status") == "ARCHIVED":
            read.lose("item", "that is archived", "left out")
            continue
        keys = ("id", "input", "expectedOutput", "expected_output", "metadata")
        read.rows.append(row_of({key: _parsed(item.get(key)) for key in keys}, read))


def _read_openai_items(lines: list[dict[str, Any]], read: ForeignSuite) -> None:
    """Read the items of an eval's data, with their recorded responses."""
    for number, line in enumerate(read.each(lines), start=1):
        answer = mapping(line.get("sample")).get("output_text")
        recorded = {} if answer is None else {"response": as_text(answer)}
        item = {**line["item"]}
        if recorded:
            # The recorded response is used; columns of the item that would also be read as the
            # response go into its metadata.
            own = {key: item.pop(key) for key in [*item] if Columns().field(key) == "response"}
            item |= {"metadata": {**mapping(item.get("metadata")), **own}} if own else {}
        read.rows.append({"id": str(number), **item, **recorded})


def _read_openai_results(listed: Mapping[str, Any], read: ForeignSuite) -> None:
    """Read the output items of an eval's run: rows with responses, and graders as raters."""
    for each in read.each(listed["data"]):
        item = as_text(each["datasource_item_id"])
        turns = listing(mapping(each.get("sample")).get("output"))
        said = [content_of(mapping(turn).get("content")) for turn in turns]
        answer = {"response": (said and said[-1]) or ""}
        read.rows.append({**mapping(each["datasource_item"]), "id": item, **answer})
        for result in listing(each["results"]):
            read.rate(item, as_text(result["name"]), result.get("score"))


def _parsed(value: object) -> object:
    """Return the value of a cell with JSON; other values are returned unchanged."""
    if isinstance(value, str) and value[:1] in {"{", "[", '"'}:
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value


_Reader = Callable[[Any, ForeignSuite], None]
FORMATS: Final[dict[str, tuple[_Reader, str]]] = {
    "promptfoo results": (read_promptfoo_results, "evalId results"),
    "promptfoo config": (read_promptfoo_config, "prompts tests"),
    "Inspect log": (_read_inspect, "eval samples"),
    "AlpacaEval annotations": (_read_alpaca, "instruction output_1 output_2 generator_1"),
    "MT-Bench judgments": (_read_mt_bench, "question_id judge"),
    "OpenAI graders": (
        read_openai_graders,
        "testing_criteria | type input | type graders | type source",
    ),
    "OpenAI eval results": (_read_openai_results, "object data"),
    "OpenAI eval items": (_read_openai_items, "item"),
    "OpenAI evals samples": (_read_rows, "input ideal"),
    "Langfuse dataset": (_read_langfuse, "input expectedOutput | data meta"),
    "DeepEval dataset": (_read_rows, "input actual_output expected_output"),
}
"""The reader of each format, and the keys of its object or of its first row."""
