"""The `target` of a suite: the system under test."""

import shlex
from typing import Final

from jurybox.documents.fields import Fields, kind_of, options_of, parse_at
from jurybox.documents.plain_yaml import Items, Node, Scalar
from jurybox.errors import Unreadable
from jurybox.rubric.document.front_matter import GENERATION_KEYS
from jurybox.suite.model import TargetInput, TargetSpec
from jurybox.suite.texts import parse_model, parse_path, parse_prompt

TARGET_KEYS: Final = (
    "model",
    "command",
    "prompt",
    "system",
    "generation",
    "timeout",
    "input",
)
"""Every key of `target`."""

_FOR_MODELS: Final = ("system", "generation")
_FOR_COMMANDS: Final = ("input",)
_LONGEST_TIMEOUT = 86_400
_COMMAND = "a command such as `python answer.py`, or a list such as `[python, answer.py]`"
# Words that mean something to a shell alone; a program would get them as arguments.
_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1"})


def read_target(fields: Fields) -> TargetSpec | None:
    """Read `target`; None where there is none."""
    inner = fields.mapping("target", TARGET_KEYS)
    if inner is None:
        return None
    _check_kind(inner)
    timeout = inner.number("timeout", 0, _LONGEST_TIMEOUT)
    if timeout == 0:
        problem = "`timeout` is 0, which leaves no time to answer"
        inner.findings.add(inner.value_place("timeout"), "out-of-range", problem, "use more than 0")
    return TargetSpec(
        model=inner.parsed("model", "bad-model", parse_model),
        command=_read_command(inner),
        prompt=inner.parsed("prompt", "bad-path", parse_prompt),
        system=inner.parsed("system", "bad-path", parse_path),
        generation=_read_generation(inner),
        timeout=60.0 if timeout is None else float(timeout),
        input=_read_input(inner),
    )


def _check_kind(inner: Fields) -> None:
    """See that there is either a model or a command, and nothing that it has no use for."""
    model, command = "model" in inner, "command" in inner
    if not model and not command:
        mend = "add a line such as `model: openai/gpt-4.1-2025-04-14`"
        inner.findings.add(inner.place, "missing-key", "`target` has no `model`", mend)
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
            mend = f"remove it, or name a `{other}`"
            inner.findings.add(inner.key_place(key), "unused-key", problem, mend)


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
        mend = "close every quote, or write a list such as `[python, answer.py]`"
        raise Unreadable(problem, mend) from None
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
