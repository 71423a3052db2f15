"""From the bytes of a suite file to a suite, or to all that is wrong with it."""

import contextlib
import re
from typing import Final

import msgspec

from jurybox.documents.fields import Fields, kind_of
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.documents.plain_yaml import Items, Pairs, Scalar, read_yaml
from jurybox.documents.text import decode
from jurybox.errors import DocumentError, Unreadable
from jurybox.suite.model import JudgeSpec, Suite
from jurybox.suite.target import read_target
from jurybox.suite.texts import parse_dataset, parse_model, parse_path

SUITE_KEYS: Final = (
    "suite",
    "description",
    "rubric",
    "dataset",
    "target",
    "judge",
    "repeats",
    "variance_sensitive",
    "limit",
    "concurrency",
    "cache",
)
"""Every key of a suite file, in the order to write them in."""

JUDGE_KEYS: Final = ("models", "votes", "stop_when_decided", "batch")
"""Every key of `judge`."""

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
    fields.require("dataset", "add a line such as `dataset: data/questions.jsonl`")
    return Suite(
        suite=fields.parsed("suite", "bad-name", _parse_name) or "",
        description=fields.text("description") or "",
        rubric=fields.parsed("rubric", "bad-path", parse_path) or "",
        dataset=fields.parsed("dataset", "bad-path", parse_dataset) or "",
        target=read_target(fields),
        judge=_read_judge(fields),
        repeats=fields.whole("repeats", 1, _MOST_REPEATS),
        variance_sensitive=fields.flag("variance_sensitive") or False,
        limit=fields.whole("limit", 1),
        concurrency=fields.whole("concurrency", 1, _MOST_AT_ONCE),
        cache=fields.flag("cache") or False,
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
    # What is missing is missing from the file, wherever its first key stands.
    whole = msgspec.structs.replace(node, place=Place(1))
    return Fields(whole, "the suite", SUITE_KEYS, findings)


def _parse_name(text: str) -> str:
    if _NAME.fullmatch(text) is None or len(text) > _MAX_NAME:
        mend = (
            "begin with a letter or a digit and use only letters, digits, `.`, `_` and `-`, "
            f"at most {_MAX_NAME}"
        )
        raise Unreadable(f"`{text}` can't be a suite's name", mend)
    return text


def _read_judge(fields: Fields) -> JudgeSpec | None:
    inner = fields.mapping("judge", JUDGE_KEYS)
    if inner is None:
        return None
    inner.require("models", "add a line such as `models: [openai/gpt-4.1-2025-04-14]`")
    return JudgeSpec(
        models=_read_models(inner),
        votes=inner.whole("votes", 1, _MOST_VOTES),
        stop_when_decided=inner.flag("stop_when_decided"),
        batch=inner.flag("batch") or False,
    )


def _read_models(inner: Fields) -> tuple[str, ...]:
    models: list[str] = []
    for node in inner.items("models", "a list such as `[openai/gpt-4.1-2025-04-14]`"):
        if not isinstance(node, Scalar):
            problem = f"a model is {kind_of(node)}"
            inner.findings.add(node.place, "wrong-type", problem, "write `provider/name`")
            continue
        try:
            model = parse_model(node.text)
        except Unreadable as error:
            inner.findings.add_unreadable(node.place, "bad-model", error)
            continue
        if model in models:
            problem = f"the model `{model}` is named twice"
            mend = "remove one; `votes` says how often it is asked"
            inner.findings.add(node.place, "duplicate-model", problem, mend)
        models.append(model)
    whole = inner.node("models")
    if isinstance(whole, Items) and not whole.items:
        mend = "name at least one, or leave `judge` out"
        inner.findings.add(whole.place, "no-models", "`models` is empty", mend)
    return tuple(models)
