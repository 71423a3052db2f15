"""Suite files: which rubric, dataset, target and judge a run uses."""

import contextlib
from collections.abc import Iterator
from typing import Final

import msgspec

from jurybox.documents.document_text import decode
from jurybox.documents.field_reader import Fields, kind_of, parse_at
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.documents.plain_yaml import Pairs, Scalar, read_yaml
from jurybox.errors import DocumentError, Unreadable
from jurybox.sample import Row
from jurybox.suite.model_spec import ENDPOINT_KEYS, ModelSpec, read_endpoint, read_models
from jurybox.suite.target_spec import (
    LANGFUSE,
    TargetSpec,
    parse_label,
    parse_path,
    read_target,
    read_targets,
)


class JudgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges; where `votes` or `stop_when_decided` is None, the rubric decides.

    ``batch``: judges are asked in their providers' batches, later and for less.
    """

    models: tuple[ModelSpec, ...]
    votes: int | None = None
    stop_when_decided: bool | None = None
    batch: bool = False


class LangfuseSpec(msgspec.Struct, frozen=True, kw_only=True):
    """That finished runs are sent to Langfuse; flagged samples also to an annotation queue."""

    queue: str | None = None


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """A run's ingredients.

    Attributes:
        rubric: the name of a rubric, or its path.
        dataset: a path, or ``langfuse:NAME``.
        rows: how many rows the suite file itself has, in place of a dataset.
        columns: the dataset's column of a field, where it has another name than usual (D1).
        overlays: documents that extend the rubric for the rows of a demographic (C13).
        unused: fields of the rows that the target's prompt leaves out on purpose (C13).
        target: None where the dataset carries the responses.
        targets: several systems under test, each with a run of its own (D5).
        repeats: how often every sample is run.
        variance_sensitive: whether results vary too much for a single run (A12).
        limit: how many rows to use, from the first.
        cache: whether a request that was answered before may be answered from the store.
        langfuse: None where nothing is sent to Langfuse.

    """

    suite: str
    rubric: str
    dataset: str
    overlays: dict[str, str] = {}
    rows: int = 0
    columns: dict[str, str] = {}
    unused: tuple[str, ...] = ()
    target: TargetSpec | None = None
    targets: tuple[TargetSpec, ...] = ()
    judge: JudgeSpec | None = None
    repeats: int | None = None
    variance_sensitive: bool = False
    limit: int | None = None
    concurrency: int | None = None
    cache: bool = False
    langfuse: LangfuseSpec | None = None
    description: str = ""


def parse_dataset(text: str) -> str:
    """Read where a dataset is: a path, or ``langfuse:NAME``.

    Raises:
        Unreadable: it is neither.

    """
    if text.startswith(LANGFUSE) and not text.removeprefix(LANGFUSE).strip():
        raise Unreadable(f"`{text}` names no dataset", f"write `{LANGFUSE}NAME`")
    return parse_path(text)


SUITE_KEYS: Final = (
    "suite",
    "description",
    "rubric",
    "overlays",
    "dataset",
    "rows",
    "columns",
    "unused",
    "target",
    "targets",
    "judge",
    "repeats",
    "variance_sensitive",
    "limit",
    "concurrency",
    "cache",
    "langfuse",
)
"""Every key of a suite file, in the order to write them in."""

LANGFUSE_KEYS: Final = ("queue",)
"""Every key of `langfuse`."""

JUDGE_KEYS: Final = ("models", "model", "votes", "stop_when_decided", "batch", *ENDPOINT_KEYS)
"""Every key of `judge`."""

ROW_FIELDS: Final = (
    *Row.__struct_fields__,
    "latency_e2e_ms",
    "latency_model_ms",
    "timed_out",
    "input_tokens",
    "output_tokens",
)
"""Every field of a dataset's row."""

_MOST_VOTES = 99
_MOST_REPEATS = 1000
_MOST_AT_ONCE = 10_000


class SuiteError(DocumentError):
    """A suite file is refused."""


def parse_suite(data: bytes, origin: str) -> Suite:
    """Read a suite file; ``origin`` is what to call it in an error.

    Raises:
        SuiteError: the file has faults; the error holds all of them.

    """
    findings = Findings()
    suite = None
    with contextlib.suppress(TooManyError):
        suite = _read(data, findings)
    found = findings.in_order()
    if suite is None or found:
        raise SuiteError(origin, found)
    return suite


def _read(data: bytes, findings: Findings) -> Suite | None:
    fields = _open(data, findings)
    if fields is None:
        return None
    fields.require("suite", "add a line such as `suite: support-bot`")
    fields.require("rubric", "add a line such as `rubric: answer-quality`")
    rows = _read_rows(fields)
    if not rows:
        fields.require("dataset", "add a line such as `dataset: data/questions.jsonl`")
    return Suite(
        suite=fields.parsed("suite", "bad-name", parse_label) or "",
        description=fields.text("description") or "",
        rubric=fields.parsed("rubric", "bad-path", parse_path) or "",
        overlays=dict(_read_overlays(fields)),
        dataset=fields.parsed("dataset", "bad-path", parse_dataset) or "",
        rows=rows,
        columns=_read_columns(fields),
        unused=tuple(_read_unused(fields)),
        target=read_target(fields),
        targets=read_targets(fields),
        judge=_read_judge(fields),
        repeats=fields.whole("repeats", 1, _MOST_REPEATS),
        variance_sensitive=fields.flag("variance_sensitive") or False,
        limit=fields.whole("limit", 1),
        concurrency=fields.whole("concurrency", 1, _MOST_AT_ONCE),
        cache=fields.flag("cache") or False,
        langfuse=_read_langfuse(fields),
    )


def _open(data: bytes, findings: Findings) -> Fields | None:
    """Read the file's YAML and refuse unknown keys."""
    text = decode(data, findings)
    node = None if text is None else read_yaml(text, Place(1), findings)
    if node is None:
        return None
    if not isinstance(node, Pairs):
        problem = f"the suite is {kind_of(node)}, not `key: value` lines"
        findings.add(node.place, "wrong-type", problem, "write `suite: my-suite` and so on")
        return None
    # What is missing is missing from the file, wherever its first key is.
    whole = msgspec.structs.replace(node, place=Place(1))
    return Fields(whole, "the suite", SUITE_KEYS, findings)


def _read_overlays(fields: Fields) -> Iterator[tuple[str, str]]:
    wanted = "a mapping such as `{vulnerable: companion-vulnerable}`"
    for demographic, node in fields.pairs("overlays", wanted):
        if not demographic.text.strip():
            problem = "an overlay is for no demographic"
            fields.findings.add(demographic.place, "bad-name", problem, f"write {wanted}")
        elif isinstance(node, Scalar):
            name = parse_at(node, "bad-path", parse_path, fields.findings)
            yield demographic.text, name or ""
        else:
            problem = f"an overlay is {kind_of(node)}, not a rubric's name or path"
            fields.findings.add(node.place, "wrong-type", problem, f"write {wanted}")


def _read_unused(fields: Fields) -> Iterator[str]:
    for node in fields.items("unused", "a list such as `[context]`"):
        if isinstance(node, Scalar) and node.text == "context":
            yield node.text
        else:
            problem = f"a prompt can't leave out {kind_of(node)}"
            fields.findings.add(node.place, "unknown-choice", problem, "write `[context]`")


def _read_rows(fields: Fields) -> int:
    """Count the rows of the file itself; their values are read like those of a dataset."""
    rows = list(fields.items("rows", "a list of rows, each with `task: ...`"))
    if rows and "dataset" in fields:
        place = fields.key_place("rows")
        problem = "the suite has both `rows` and a `dataset`"
        fields.findings.add(place, "two-datasets", problem, "keep one of them")
    return len(rows)


def _read_langfuse(fields: Fields) -> LangfuseSpec | None:
    """Read `langfuse`: true, or a mapping with the name of a `queue`."""
    if isinstance(fields.node("langfuse"), Scalar):
        return LangfuseSpec() if fields.flag("langfuse") else None
    inner = fields.mapping("langfuse", LANGFUSE_KEYS)
    return None if inner is None else LangfuseSpec(queue=inner.text("queue"))


def _read_columns(fields: Fields) -> dict[str, str]:
    inner = fields.mapping("columns", ROW_FIELDS)
    if inner is None:
        return {}
    named = {field: inner.text(field) for field in ROW_FIELDS}
    return {field: column for field, column in named.items() if column is not None}


def _read_judge(fields: Fields) -> JudgeSpec | None:
    """Read `judge`: a model, a list of models, or a mapping; None where there is none."""
    node = fields.node("judge")
    if node is None:
        return None
    if not isinstance(node, Pairs):
        return JudgeSpec(models=read_models(node, fields.findings, {}))
    inner = Fields(node, "`judge`", JUDGE_KEYS, fields.findings)
    if "model" not in inner:
        inner.require("models", "add a line such as `models: [openai/gpt-4.1-2025-04-14]`")
    elif "models" in inner:
        place = inner.key_place("model")
        problem = "`judge` has both `model` and `models`"
        inner.findings.add(place, "two-names", problem, "keep one of them")
    named = inner.node("models") or inner.node("model")
    shared = read_endpoint(inner)
    return JudgeSpec(
        models=() if named is None else read_models(named, inner.findings, shared),
        votes=inner.whole("votes", 1, _MOST_VOTES),
        stop_when_decided=inner.flag("stop_when_decided"),
        batch=inner.flag("batch") or False,
    )
