"""Reads files of other tools as rows, verdicts on pairs and ratings."""

import contextlib
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from jurybox.datasets.dataset import DatasetError
from jurybox.datasets.foreign_suite import (
    ForeignSuite,
    asked,
    is_number,
    listing,
    mapping,
    read_promptfoo_config,
    read_promptfoo_results,
)
from jurybox.datasets.openai_graders import (
    read_openai_graders,
    read_openai_items,
    read_openai_results,
)
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import Source, open_source
from jurybox.datasets.text_rows import read_csv, read_json_lines
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
    """Read a file of another tool, recognized by its contents."""
    with open_source(path) as source:
        value, lines = _value_of(path, source)
        known = next((each for each in FORMATS if each.fits(value)), None)
        if known is None:
            raise _unknown(value, source.origin, lines)
        read = ForeignSuite(format=known.name)
        try:
            known.read(value, read)
        except (*_MISFITS, RecursionError):
            problem = f"{known.name} of an unknown shape"
            hint = "correct this one, or leave it out"
            hint = "write the file again with a current version" if read.at is None else hint
            raise InputError(problem, hint, _where(source.origin, lines, read.at)) from None
        read.keep_readable()
        if not (read.rows or read.verdicts or read.ratings or read.rubric):
            problem = "; ".join([f"{known.name} without usable data", *read.losses()])
            raise InputError(problem, "check the file", source.origin)
        if not read.ratings:
            _rate_by_verdicts(read)
        bare = sum("checks" not in row for row in read.rows)
        if 0 < bare < len(read.rows):
            read.lose("row", "without a check", "it gets no score", bare)
        return read


def _where(origin: str, lines: list[int], part: int | None) -> str:
    """Return where a part is: its line in a file of lines, else its number."""
    if part is None:
        return origin
    return f"{origin}:{lines[part]}" if lines else f"{origin}: item {part + 1}"


def _unknown(value: object, origin: str, lines: list[int]) -> InputError:
    """Return the error for an unknown format, or for the first different part of a list."""
    parts = listing(value)
    if value in ([], {}):
        return InputError("the file is empty", "export it again", origin)
    for known in FORMATS:
        odd = [index for index, part in enumerate(parts) if not known.fits(part)]
        if odd and 2 * len(odd) < len(parts):
            has = {*mapping(parts[odd[0]])}
            lacks = min((keys - has for keys in known.keys), key=len)
            names = ", ".join(f"`{key}`" for key in sorted(lacks))
            problem = f"{known.name}, but this one lacks {names}"
            hint = "add what is missing, or leave this one out"
            return InputError(problem, hint, _where(origin, lines, odd[0]))
    names = ", ".join(each.name for each in FORMATS)
    return InputError("no known format", f"known are: {names}", origin)


def _value_of(path: Path, source: Source) -> tuple[Any, list[int]]:
    """Return the objects of a line-based or table file with their lines, or its only value."""
    ending = path.suffix.lower()
    findings = Findings()
    if zipfile.is_zipfile(path):
        return _zipped_log(path, source.origin), []
    value: object = None
    lines: list[int] = []
    if ending in {".csv", ".jsonl", ".ndjson"}:
        read = read_csv if ending == ".csv" else read_json_lines
        with contextlib.suppress(TooManyError):
            found = [*read(source, FileContext(findings))]
            value, lines = [record for _, record in found], [line for line, _ in found]
    else:
        data = b"\n".join(line for _, line in source.lines(findings))
        if ending in {".yaml", ".yml"}:
            text = decode_text(data, findings)
            node = None if text is None else read_yaml(text, Place(1), findings)
            value = None if node is None else value_of(node)
        else:
            value = _json_value(data, ending, source.origin)
    if findings.in_order():
        raise DatasetError(source.origin, findings.in_order())
    return value, lines


def _json_value(data: bytes, ending: str, origin: str) -> object:
    """Return the value of JSON, allowing NaN as in logs; None for another extension."""
    try:
        return _decoded(data)
    except (ValueError, RecursionError) as error:
        if ending != ".json":
            return None
        raise InputError(f"not valid JSON ({error})", "correct it there", origin) from None


def _decoded(data: bytes) -> Any:  # noqa: ANN401 - whatever a tool wrote
    """Return the value of JSON; a lone surrogate is an error."""
    value = json.loads(data)
    if b"\\ud" in data.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _zipped_log(path: Path, origin: str) -> object:
    """Return the log in an Inspect `.eval` file, in the form of its JSON."""
    hint = "convert it with `inspect log convert FILE --to json --output-dir FOLDER`"
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(each.file_size for each in archive.infolist()) > _BOMB * path.stat().st_size:
                raise zipfile.BadZipFile  # noqa: TRY301 - the same words will do
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples = [_decoded(archive.read(name)) for name in names]
            return {**_decoded(archive.read("header.json")), "samples": samples}
    except NotImplementedError:
        problem = "the log is compressed in a way that this Python can't read"
    except (*_DAMAGED, zipfile.BadZipFile, zlib.error):
        problem = "no whole Inspect log"
    raise InputError(problem, hint, origin)


def _read_inspect(log: Mapping[str, Any], read: ForeignSuite) -> None:
    """Read samples with their outputs and scores; each scorer is a rater."""
    read.name = as_text(log["eval"].get("task") or "")
    includes = _includes_check(log["eval"])
    ids = Counter(as_text(sample["id"]) for sample in read.each(log["samples"]))
    for sample in read.each(log["samples"]):
        question = asked(sample["input"])
        if question is None:
            read.lose("sample", "whose input isn't text that ends with the user's turn", "left out")
            continue
        item = as_text(sample["id"])
        item = item if ids[item] == 1 else f"{item}-{sample.get('epoch', 1)}"
        row: dict[str, Any] = {"id": item, **question, **_reference(sample.get("target"), read)}
        row["response"] = as_text(mapping(sample.get("output")).get("completion") or "")
        # Inspect accepts any of several targets, which no check expresses.
        if includes is not None and "reference" in row and len(listing(sample["target"])) == 1:
            row["checks"] = [includes]
        if sample.get("metadata"):
            row["metadata"] = sample["metadata"]
        if sample.get("error"):
            read.lose("sample", "that ended with an error", "carried over up to the error")
        roles = [mapping(turn).get("role") for turn in listing(sample.get("messages"))]
        if roles.count("assistant") > 1:
            read.lose("sample", "with several turns of the model", "only the last is carried over")
        read.rows.append(row)
        _add_scores(read, item, mapping(sample.get("scores")))
    for scorer in listing(log["eval"].get("scorers")):
        if includes is None or scorer["name"] != "includes":
            read.lose("scorer", f"`{scorer['name']}`", "no counterpart; write a criterion")


def _includes_check(evaluation: Mapping[str, Any]) -> Record | None:
    """Return the equivalent check if the task has the scorer `includes`."""
    for scorer in listing(evaluation.get("scorers")):
        if scorer["name"] == "includes":
            ignore_case = mapping(scorer.get("options")).get("ignore_case", True)
            return {"contains": "{{reference}}", "ignore_case": bool(ignore_case)}
    return None


def _add_scores(read: ForeignSuite, item: str, scores: Mapping[str, Any]) -> None:
    for rater, score in scores.items():
        value = score.get("value")
        value = _GRADES.get(value, value) if isinstance(value, str) else value
        if is_number(value):
            read.ratings.append({"item": item, "rater": rater, "score": float(value)})
        else:
            read.lose("score", f"of `{rater}` that isn't a number", "left out")


def _reference(target: object, read: ForeignSuite) -> Record:
    """Return the right answer, or the first of several, as the reference."""
    targets = listing(target)
    if len(targets) > 1:
        read.lose("sample", "with several right answers", "only the first is the reference")
    return {} if targets[:1] in ([], [""]) else {"reference": as_text(targets[0])}


def _read_openai_evals(samples: list[Record], read: ForeignSuite) -> None:
    for number, sample in enumerate(read.each(samples), start=1):
        question = asked(sample["input"])
        if question is None:
            read.lose("sample", "whose input doesn't end with the user's turn", "left out")
            continue
        read.rows.append({"id": str(number), **question, **_reference(sample.get("ideal"), read)})
    read.lose("eval class", "in another file", "write a criterion or checks")


def _read_deepeval(goldens: list[Record], read: ForeignSuite) -> None:
    names = Counter(golden.get("name") for golden in read.each(goldens))
    for number, golden in enumerate(read.each(goldens), start=1):
        name = golden.get("name")
        row: dict[str, Any] = {"id": name if name and names[name] == 1 else str(number)}
        row |= asked(golden.get("input")) or {}
        if "task" not in row:
            read.lose("golden", "without an input", "left out")
            continue
        row |= _reference(golden.get("expected_output"), read)
        context = golden.get("retrieval_context") or golden.get("context")
        row |= {"context": context} if context else {}
        answer = golden.get("actual_output")
        row |= {"response": as_text(answer)} if answer else {}
        if golden.get("additional_metadata"):
            row["metadata"] = {"additional_metadata": golden["additional_metadata"]}
        if golden.get("context") and golden.get("retrieval_context"):
            read.lose("golden", "with two contexts", "only `retrieval_context` is carried over")
        for key in ("tools_called", "expected_tools", "expectations"):
            if golden.get(key):
                read.lose("golden", f"with `{key}`", "no counterpart")
        read.rows.append(row)
    answered = [row for row in read.rows if "response" in row]
    if 0 < len(answered) < len(read.rows):
        count = len(read.rows) - len(answered)
        what = "left out, because others have one"
        read.lose("golden", "without an `actual_output`", what, count)
        read.rows = answered


def _read_alpaca(annotations: list[Record], read: ForeignSuite) -> None:
    """Read preferences: 1 is the first output, 2 the second, halfway between them a tie."""
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
        judge = each["judge"]
        judge = as_text(cast("list[object]", judge)[0] if isinstance(judge, list) else judge)
        score: Any = each.get("score")
        if "model" in each:
            # FastChat writes -1 if it found no score in the reply.
            score = score if is_number(score) and score >= 0 else None
            row = {"item": f"{item}-{each['model']}", "rater": judge, "score": score}
            read.ratings.append(row)
            continue
        first, second = _either(each, "model_1", "model_a"), _either(each, "model_2", "model_b")
        names = {"a": as_text(first), "b": as_text(second)}
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
    """Rate pairs that several judges saw by the share of the first model, by name."""
    shares: dict[tuple[str, str], list[float]] = {}
    for each in read.verdicts:
        first = each if each["a"] <= each["b"] else _turned(each)
        share = {"a": 1.0, "b": 0.0, "tie": 0.5}.get(first["winner"])
        if share is not None:
            item = f"{each['item']}: {first['a']} or {first['b']}"
            shares.setdefault((item, as_text(each["judge"])), []).append(share)
    if len({judge for _, judge in shares}) > 1:
        read.scale = "0-1"
        read.ratings = [
            {"item": item, "rater": judge, "score": sum(given) / len(given)}
            for (item, judge), given in shares.items()
        ]


def _either(record: Record, *keys: str) -> object:
    return next((record[key] for key in keys if key in record), None)


def langfuse_row(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as a row of a dataset; if the input is an object, its keys become columns."""
    row: dict[str, Any] = {"id": item["id"]}
    given = item["input"]
    match given:
        case None:
            pass
        case dict():
            row = {**mapping(cast("object", given)), **row}
        case list():
            row["messages"] = given
        case other:
            row["task"] = as_text(other)
    expected = item["expected_output"]
    if expected is not None:
        row["reference"] = as_text(expected)
    if isinstance(item["metadata"], dict):
        row["metadata"] = item["metadata"]
    return row


def _read_langfuse(exported: object, read: ForeignSuite) -> None:
    items = mapping(exported).get("data", exported)
    for number, item in enumerate(read.each(items), start=1):
        if item.get("status") == "ARCHIVED":
            read.lose("item", "that is archived", "left out")
            continue
        parts = {key: _parsed(item.get(key)) for key in ("input", "metadata")}
        expected = _parsed(_either(item, "expectedOutput", "expected_output"))
        name = item.get("id") or str(number)
        read.rows.append(langfuse_row({"id": name, **parts, "expected_output": expected}))


def _parsed(value: object) -> object:
    """Return a cell that is JSON as its value."""
    if isinstance(value, str) and value[:1] in {"{", "[", '"'}:
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value


class ForeignFormat(NamedTuple):
    """A format of another tool, recognized by the keys of its object or of all its rows."""

    name: str
    read: Callable[[Any, ForeignSuite], None]
    keys: tuple[set[str], ...]

    def fits(self, value: object) -> bool:
        """Return whether a file's value has one of the sets of keys."""
        found = [{*mapping(each)} for each in listing(value)]
        return bool(found) and any(all(keys <= each for each in found) for keys in self.keys)


FORMATS: Final = (
    ForeignFormat("promptfoo results", read_promptfoo_results, ({"evalId", "results"},)),
    ForeignFormat("promptfoo config", read_promptfoo_config, ({"prompts", "tests"},)),
    ForeignFormat("Inspect log", _read_inspect, ({"eval", "samples"},)),
    ForeignFormat(
        "AlpacaEval annotations",
        _read_alpaca,
        ({"instruction", "output_1", "output_2", "generator_1", "generator_2"},),
    ),
    ForeignFormat(
        "MT-Bench judgments",
        _read_mt_bench,
        (
            {"question_id", "judge", "model", "score"},
            {"question_id", "judge", "model_1", "model_2", "g1_winner"},
            {"question_id", "judge", "model_a", "model_b", "winner"},
        ),
    ),
    ForeignFormat(
        "OpenAI graders",
        read_openai_graders,
        (
            {"testing_criteria"},
            {"type", "input", "reference"},
            {"type", "input", "model"},
            {"type", "graders", "calculate_output"},
            {"type", "source"},
        ),
    ),
    ForeignFormat("OpenAI eval results", read_openai_results, ({"object", "data"},)),
    ForeignFormat("OpenAI eval items", read_openai_items, ({"item"},)),
    ForeignFormat("OpenAI evals samples", _read_openai_evals, ({"input", "ideal"},)),
    ForeignFormat(
        "Langfuse dataset", _read_langfuse, ({"input", "expectedOutput"}, {"data", "meta"})
    ),
    ForeignFormat(
        "DeepEval dataset", _read_deepeval, ({"input", "actual_output", "expected_output"},)
    ),
)
