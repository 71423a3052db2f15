"""The system under test in a suite: one target, or several that are compared (D5)."""

import re
import shlex
from typing import Final, Literal

import msgspec

from jurybox.documents.field_reader import Fields, kind_of, options_of, parse_at
from jurybox.documents.findings import Findings
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar
from jurybox.errors import Unreadable
from jurybox.rubric.document.front_matter import GENERATION_KEYS
from jurybox.suite.model_spec import (
    ENDPOINT_KEYS,
    ModelSpec,
    read_endpoint,
    read_model,
    read_timeout,
)

TargetInput = Literal["text", "json"]


class TargetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The system under test: a model, a command, or its recorded responses.

    Attributes:
        name: what it is called among several targets.
        responses: a file of recorded responses, or None.
        command: the program and its arguments; no shell reads them.
        prompt: a template, its path, or ``langfuse:NAME@VERSION``.
        system: a system prompt of several lines, or its path.
        generation: the sampling parameters that differ from the defaults on purpose (A9).
        timeout: seconds, after which a response counts as timed out.
        input: what a command gets on standard input: the task, or the whole sample as JSON.

    """

    name: str = ""
    responses: str | None = None
    model: ModelSpec | None = None
    command: tuple[str, ...] | None = None
    prompt: str | None = None
    system: str | None = None
    generation: dict[str, float] = {}
    timeout: float = 60.0
    input: TargetInput = "text"


LANGFUSE: Final = "langfuse:"
"""How the name of something in Langfuse begins."""


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
NAMED_TARGET_KEYS: Final = ("name", "responses", *TARGET_KEYS)
"""Every key of one of `targets`."""

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

_FOR_MODELS: Final = ("system", "generation", *(key for key in ENDPOINT_KEYS if key != "timeout"))
_FOR_COMMANDS: Final = ("input",)
_COMMAND = "a command such as `python answer.py`, or a list such as `[python, answer.py]`"
# Words that mean something to a shell alone; a program would get them as arguments.
_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1"})


def parse_label(text: str) -> str:
    """Read a name of letters, digits and a few signs.

    Raises:
        Unreadable: it is none.

    """
    if _LABEL.fullmatch(text) is None:
        hint = (
            "begin with a letter or a digit and use only letters, digits, `.`, `_` and `-`, "
            "at most 64"
        )
        raise Unreadable(f"`{text}` can't be the name of it", hint)
    return text


def read_target(fields: Fields) -> TargetSpec | None:
    """Read `target`, a model's name or a mapping; None where there is none."""
    node = fields.node("target")
    if node is None:
        return None
    return _read_target(node, fields.findings, "`target`", TARGET_KEYS)


def read_targets(fields: Fields) -> tuple[TargetSpec, ...]:
    """Read `targets`, each with a name of its own."""
    findings = fields.findings
    if "targets" in fields and "target" in fields:
        problem = "the suite has both a `target` and `targets`"
        findings.add(fields.key_place("targets"), "two-targets", problem, "keep one of them")
    found: dict[str, TargetSpec] = {}
    wanted = "a list such as `[{name: v1, prompt: v1.md, model: ...}]`"
    nodes = list(fields.items("targets", wanted))
    if "targets" in fields and not nodes:
        place = fields.key_place("targets")
        findings.add(place, "no-targets", "`targets` is empty", "name at least one")
    for node in nodes:
        spec = _read_target(node, findings, "a target", NAMED_TARGET_KEYS)
        if spec is None:
            continue
        spec = msgspec.structs.replace(spec, name=spec.name or _usual_name(spec))
        if spec.name in found:
            problem = f"two targets are called `{spec.name}`"
            findings.add(node.place, "duplicate-name", problem, "give each a `name` of its own")
        found[spec.name] = spec
    return tuple(found.values())


def _usual_name(spec: TargetSpec) -> str:
    """Return the name of a target that has none: its model's, its program's or its file's."""
    command = " ".join(spec.command or ())
    whole = spec.model.model.partition("/")[2] if spec.model else spec.responses or command
    return re.sub(r"[^A-Za-z0-9._-]+", "-", whole).strip("-._")[:64] or "target"


def _read_target(
    node: Node, findings: Findings, what: str, keys: tuple[str, ...]
) -> TargetSpec | None:
    if isinstance(node, Scalar):
        model = read_model(node, findings)
        return None if model is None else TargetSpec(model=model)
    if not isinstance(node, Pairs):
        problem = f"{what} is {kind_of(node)}"
        findings.add(node.place, "wrong-type", problem, "give a model, or `{model: ...}`")
        return None
    inner = Fields(node, what, keys, findings)
    if "responses" in inner:
        return _read_recorded(inner)
    _check_kind(inner)
    shared = read_endpoint(inner) if "model" in inner else {}
    named = inner.node("model")
    model = None if named is None else read_model(named, inner.findings, shared)
    timeout = read_timeout(inner) if model is None else model.timeout
    return TargetSpec(
        name=inner.parsed("name", "bad-name", parse_label) or "",
        model=model,
        command=_read_command(inner),
        prompt=inner.parsed("prompt", "bad-path", parse_prompt),
        system=inner.parsed("system", "bad-path", parse_prompt),
        generation=_read_generation(inner),
        timeout=60.0 if timeout is None else timeout,
        input=_read_input(inner),
    )


def _read_recorded(inner: Fields) -> TargetSpec:
    """Read a target that is its recorded responses, and nothing that would make new ones."""
    for key in TARGET_KEYS:
        if key in inner:
            problem = f"a target has both `responses` and a `{key}`"
            inner.findings.add(inner.key_place(key), "two-targets", problem, "keep one of them")
    return TargetSpec(
        name=inner.parsed("name", "bad-name", parse_label) or "",
        responses=inner.parsed("responses", "bad-path", parse_path),
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
