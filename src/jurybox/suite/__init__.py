"""Suite files: which rubric, dataset, target and judge a run uses."""

import contextlib
import re
import shlex
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from jurybox.documents.document_text import decode
from jurybox.documents.field_reader import Fields, kind_of, options_of, parse_at
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml
from jurybox.errors import DocumentError, Unreadable
from jurybox.rubric.document.front_matter import GENERATION_KEYS
from jurybox.sample import Row
from jurybox.suite.model_spec import (
    ENDPOINT_KEYS,
    ModelSpec,
    read_endpoint,
    read_model,
    read_models,
    read_timeout,
)

TargetInput = Literal["text", "json"]


class TargetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The system under test: either a model or a command.

    Attributes:
        command: the program and its arguments; no shell reads them.
        prompt: a template, its path, or ``langfuse:NAME@VERSION``.
        system: a system prompt of several lines, or its path.
        generation: the sampling parameters that differ from the defaults on purpose (A9).
        timeout: seconds, after which a response counts as timed out.
        input: what a command gets on standard input: the task, or the whole sample as JSON.

    """

    model: ModelSpec | None = None
    command: tuple[str, ...] | None = None
    prompt: str | None = None
    system: str | None = None
    generation: dict[str, float] = {}
    timeout: float = 60.0
    input: TargetInput = "text"


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
    judge: JudgeSpec | None = None
    repeats: int | None = None
    variance_sensitive: bool = False
    limit: int | None = None
    concurrency: int | None = None
    cache: bool = False
    langfuse: LangfuseSpec | None = None
    description: str = ""


LANGFUSE: Final = "langfuse:"


def parse_path(text: str) -> str:
    """Read a path or a name.

    Raises:
        Unreadable: it is blank or spans lines.

    """
    if not text.strip():
        raise Unreadable("the path is empty", "name a file")
    if "\n" in text:
        raise Unreadable("the path has several lines", "write it in one line")
    return text


def parse_dataset(text: str) -> str:
    """Read where a dataset is: a path, or ``langfuse:NAME``.

    Raises:
        Unreadable: it is neither.

    """
    if text.startswith(LANGFUSE) and not text.removeprefix(LANGFUSE).strip():
        raise Unreadable(f"`{text}` names no dataset", f"write `{LANGFUSE}NAME`")
    return parse_path(text)


def parse_prompt(text: str) -> str:
    """Read a prompt: its text, a path, or ``langfuse:NAME@VERSION``.

    Raises:
        Unreadable: it is neither; without its version a prompt may change between two runs.

    """
    if text.startswith(LANGFUSE):
        name, _, version = text.removeprefix(LANGFUSE).rpartition("@")
        if not name.strip() or not version.strip():
            raise Unreadable(
                f"`{text}` names no version of a prompt",
                f"write `{LANGFUSE}NAME@VERSION` or `@LABEL`",
            )
    return text if is_inline(text) else parse_path(text)


def is_inline(text: str) -> bool:
    """Tell whether a prompt is given itself: no path has placeholders or several lines."""
    return "{{" in text or "\n" in text.strip()


TARGET_KEYS: Final = (
    "model",
    "command",
    "prompt",
    "system",
    "generation",
    "input",
    *ENDPOINT_KEYS,
)
"""Every key of `target`."""

_FOR_MODELS: Final = ("system", "generation", *(key for key in ENDPOINT_KEYS if key != "timeout"))
_FOR_COMMANDS: Final = ("input",)
_COMMAND = "a command such as `python answer.py`, or a list such as `[python, answer.py]`"
# Words that mean something to a shell alone; a program would get them as arguments.
_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1"})


def read_target(fields: Fields) -> TargetSpec | None:
    """Read `target`, a model's name or a mapping; None where there is none."""
    node = fields.node("target")
    if isinstance(node, Scalar):
        model = read_model(node, fields.findings)
        return None if model is None else TargetSpec(model=model)
    inner = fields.mapping("target", TARGET_KEYS)
    if inner is None:
        return None
    _check_kind(inner)
    shared = read_endpoint(inner) if "model" in inner else {}
    named = inner.node("model")
    model = None if named is None else read_model(named, inner.findings, shared)
    timeout = read_timeout(inner) if model is None else model.timeout
    return TargetSpec(
        model=model,
        command=_read_command(inner),
        prompt=inner.parsed("prompt", "bad-path", parse_prompt),
        system=inner.parsed("system", "bad-path", parse_prompt),
        generation=_read_generation(inner),
        timeout=60.0 if timeout is None else timeout,
        input=_read_input(inner),
    )


def _check_kind(inner: Fields) -> None:
    """See that there is either a model or a command, and nothing that it has no use for."""
    model, command = "model" in inner, "command" in inner
    if not model and not command:
        hint = "add a line such as `model: openai/gpt-4.1-2025-04-14`"
        inner.findings.add(inner.place, "missing-key", "`target` has no `model`", hint)
    elif model and command:
        problem = "`target` has both a `model` and a `command`"
        place = max(inner.key_place("model"), inner.key_place("command"))
        inner.findings.add(place, "two-targets", problem, "keep one of them")
    else:
        _refuse_unused(inner, _FOR_COMMANDS if model else _FOR_MODELS, has_model=model)


def _refuse_unused(inner: Fields, keys: tuple[str, ...], *, has_model: bool) -> None:
    what, other = ("model", "command") if has_model else ("command", "model")
    for key in keys:
        if key in inner:
            problem = f"`{key}` means nothing to a {what}"
            hint = f"remove it, or name a `{other}`"
            inner.findings.add(inner.key_place(key), "unused-key", problem, hint)


def _read_input(inner: Fields) -> TargetInput:
    return "json" if inner.choice("input", options_of(TargetInput)) == "json" else "text"


def _read_command(inner: Fields) -> tuple[str, ...] | None:
    node = inner.node("command")
    match node:
        case None:
            return None
        case Scalar():
            return parse_at(node, "bad-command", _split, inner.findings)
        case Items(items=items) if items:
            return _read_words(inner, items)
        case _:
            inner.wrong("command", _COMMAND)
            return None


def _split(text: str) -> tuple[str, ...]:
    """Part a command into words as a shell would, and refuse what only a shell can do."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        problem = f"the command can't be parted into words ({str(error).lower()})"
        hint = "close every quote, or write a list such as `[python, answer.py]`"
        raise Unreadable(problem, hint) from None
    if not words or not words[0]:
        raise Unreadable("the command is empty", f"give {_COMMAND}")
    strange = next((word for word in words if word in _SHELL), None)
    if strange is not None:
        problem = f"no shell reads the command, so `{strange}` would be an argument"
        raise Unreadable(problem, 'write `[sh, -c, "..."]`, or a list if an argument is meant')
    return words


def _read_words(inner: Fields, items: tuple[Node, ...]) -> tuple[str, ...] | None:
    words: list[str] = []
    for item in items:
        if isinstance(item, Scalar):
            words.append(item.text)
        else:
            problem = f"a part of `command` is {kind_of(item)}"
            inner.findings.add(item.place, "wrong-type", problem, "give a text")
    if words and not words[0].strip():
        inner.findings.add(
            items[0].place, "bad-command", "the command is empty", f"give {_COMMAND}"
        )
    return tuple(words)


def _read_generation(inner: Fields) -> dict[str, float]:
    """Read the overrides, within the same bounds as a rubric's `generation`."""
    fields = inner.mapping("generation", GENERATION_KEYS)
    if fields is None:
        return {}
    given: dict[str, float | None] = {
        "temperature": fields.number("temperature", 0, 2),
        "top_p": fields.number("top_p", 0, 1),
        "max_tokens": fields.whole("max_tokens", 1),
        "seed": fields.whole("seed"),
    }
    if given["top_p"] == 0:
        problem = "`top_p` is 0, which leaves no token to choose"
        fields.findings.add(fields.value_place("top_p"), "out-of-range", problem, "use more than 0")
    return {name: value for name, value in given.items() if value is not None}


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

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_NAME = 64
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
        suite=fields.parsed("suite", "bad-name", _parse_name) or "",
        description=fields.text("description") or "",
        rubric=fields.parsed("rubric", "bad-path", parse_path) or "",
        overlays=dict(_read_overlays(fields)),
        dataset=fields.parsed("dataset", "bad-path", parse_dataset) or "",
        rows=rows,
        columns=_read_columns(fields),
        unused=tuple(_read_unused(fields)),
        target=read_target(fields),
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


def _parse_name(text: str) -> str:
    if _NAME.fullmatch(text) is None or len(text) > _MAX_NAME:
        hint = (
            "begin with a letter or a digit and use only letters, digits, `.`, `_` and `-`, "
            f"at most {_MAX_NAME}"
        )
        raise Unreadable(f"`{text}` can't be a suite's name", hint)
    return text


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
