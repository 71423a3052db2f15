"""Suite files: which rubric, dataset, target and judge a run uses."""

import contextlib
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from jurybox.documents.field_reader import FieldReader, key_place, node_at
from jurybox.documents.findings import Findings, Place, TooManyError, decode
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml
from jurybox.errors import DocumentError
from jurybox.sample import Row
from jurybox.suite.model_spec import EndpointFields, ModelSpec, read_models
from jurybox.suite.target_spec import Label, PathText, TargetSpec, read_target, read_targets


class JudgeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The judges; if `votes` or `stop_when_decided` is None, the rubric decides.

    ``batch`` sends requests through the providers' batch APIs, which is slower and cheaper.
    """

    models: tuple[ModelSpec, ...]
    votes: Annotated[int, Meta(ge=1, le=99)] | None = None
    stop_when_decided: bool | None = None
    batch: bool = False


class LangfuseSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Sends finished runs to Langfuse, and flagged samples to an annotation queue."""

    queue: str | None = None


ROW_FIELDS: Final = (
    *Row.__struct_fields__,
    "latency_e2e_ms",
    "latency_model_ms",
    "timed_out",
    "input_tokens",
    "output_tokens",
)
"""Every field of a dataset's row."""


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """A suite: everything that defines a run.

    Attributes:
        rubric: the name of a rubric, or its path.
        dataset: a path, ``langfuse:NAME``, or ``hf://OWNER/NAME/SPLIT``.
        rows: the number of rows in the suite file itself, instead of a dataset.
        columns: the column names of fields, if they differ from the defaults.
        overlays: the rubric overlay for each demographic.
        unused: row fields that the target's prompt omits on purpose.
        target: None if the dataset contains the responses.
        targets: several systems under test; each gets its own run.
        repeats: how many times every sample is run.
        variance_sensitive: whether results vary too much for a single run.
        limit: how many rows to use, starting with the first.
        cache: whether the stored reply to an identical request may be reused.
        langfuse: None if nothing is sent to Langfuse.

    """

    suite: Label = ""
    rubric: PathText = ""
    dataset: PathText = ""
    overlays: Annotated[
        dict[str, PathText], Meta(examples=["{vulnerable: companion-vulnerable}"])
    ] = {}
    columns: Annotated[dict[str, str], Meta(examples=["{task: prompt}"])] = {}
    unused: Annotated[tuple[Literal["context"], ...], Meta(examples=["[context]"])] = ()
    repeats: Annotated[int, Meta(ge=1, le=1000)] | None = None
    variance_sensitive: bool = False
    limit: Annotated[int, Meta(ge=1)] | None = None
    concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    cache: bool = False
    description: str = ""
    rows: int = 0
    target: TargetSpec | None = None
    targets: tuple[TargetSpec, ...] = ()
    judge: JudgeSpec | None = None
    langfuse: LangfuseSpec | None = None


_READ_APART: Final = ("rows", "target", "targets", "judge", "langfuse")
_REQUIRED: Final = {
    "suite": "support-bot",
    "rubric": "answer-quality",
    "dataset": "data/questions.jsonl",
}
SUITE_KEYS: Final = Suite.__struct_fields__
"""Every key of a suite file."""
JUDGE_KEYS: Final = ("model", *JudgeSpec.__struct_fields__, *EndpointFields.__struct_fields__)
"""Every key of `judge`."""


class SuiteError(DocumentError):
    """A suite file is refused."""


def parse_suite(data: bytes, origin: str) -> Suite:
    """Read a suite file; errors name it by ``origin``."""
    findings = Findings()
    suite = None
    with contextlib.suppress(TooManyError):
        suite = _read(data, findings)
    found = findings.in_order()
    if suite is None or found:
        raise SuiteError(origin, found)
    return suite


def _read(data: bytes, findings: Findings) -> Suite | None:
    text = decode(data, findings)
    given = None if text is None else read_yaml(text, Place(1), findings)
    reader = FieldReader(findings)
    node = reader.open(Pairs, given, "the suite", "write `key: value` lines")
    if node is None:
        return None
    if node_at(node, "suite") is None and node_at(node, "providers") is not None:
        hint = "convert it to a suite: `jurybox import FILE`"
        findings.add(Place(1), "not-a-suite", "this is a promptfoo config, not a suite", hint)
        return None
    # A missing key is reported for the whole file, not at its first key.
    node = msgspec.structs.replace(node, place=Place(1))
    reader.note_unknown(node, "the suite", SUITE_KEYS)
    rows = _count_rows(node, reader)
    for key, example in _REQUIRED.items():
        if key != "dataset" or node_at(node, "rows") is None:
            reader.require(node, "the suite", key, example)
    columns = node_at(node, "columns")
    if isinstance(columns, Pairs):
        reader.note_unknown(columns, "`columns`", ROW_FIELDS)
    return Suite(
        **reader.fields(Suite, node, _READ_APART),
        rows=rows,
        target=read_target(node_at(node, "target"), reader),
        targets=read_targets(node, reader),
        judge=_read_judge(node_at(node, "judge"), reader),
        langfuse=_read_langfuse(node_at(node, "langfuse"), reader),
    )


def _count_rows(node: Pairs, reader: FieldReader) -> int:
    """Count the suite's own `rows`, which are read later like a dataset's."""
    hint = "give a list of rows, each with `task: ...`"
    rows = reader.open(Items, node_at(node, "rows"), "`rows`", hint)
    if rows is None:
        return 0
    place = key_place(node, "rows")
    if node_at(node, "dataset") is not None:
        problem = "the suite has both `rows` and a `dataset`"
        reader.findings.add(place, "two-datasets", problem, "keep one of them")
    elif not rows.items:
        hint = "give at least one, or name a `dataset` instead"
        reader.findings.add(place, "no-rows", "`rows` is empty", hint)
    return len(rows.items)


def _read_langfuse(node: Node | None, reader: FieldReader) -> LangfuseSpec | None:
    """Read `langfuse`: true or false, or a mapping that may name a `queue`."""
    if isinstance(node, Scalar):
        return LangfuseSpec() if reader.value(bool, node, "`langfuse`") is True else None
    spec = msgspec.UNSET if node is None else reader.value(LangfuseSpec, node, "`langfuse`")
    return None if spec is msgspec.UNSET else spec


def _read_judge(node: Node | None, reader: FieldReader) -> JudgeSpec | None:
    """Read `judge`: a model, a list of models, or a mapping; None if it is missing."""
    if node is None:
        return None
    if not isinstance(node, Pairs):
        return JudgeSpec(models=read_models(node, reader, {}))
    reader.note_unknown(node, "`judge`", JUDGE_KEYS)
    named, single = node_at(node, "models"), node_at(node, "model")
    if single is None:
        reader.require(node, "`judge`", "models", "[openai/gpt-4.1-2025-04-14]")
    elif named is not None:
        problem = "`judge` has both `model` and `models`"
        place = key_place(node, "model")
        reader.findings.add(place, "two-names", problem, "keep one of them")
    models = named or single
    shared = reader.fields(EndpointFields, node)
    return JudgeSpec(
        **reader.fields(JudgeSpec, node, ("models",)),
        models=() if models is None else read_models(models, reader, shared),
    )
