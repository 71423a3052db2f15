"""The system under test in a suite: one target, or several to compare."""

import re
import shlex
from typing import Annotated, Final, Literal

import msgspec

from jurybox.documents.field_reader import FieldReader, TextForm, key_place, kind_of, node_at
from jurybox.documents.findings import Findings
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar
from jurybox.errors import ParseError
from jurybox.rubric.rubric_model import Generation
from jurybox.suite.model_spec import EndpointFields, ModelSpec, read_model

TargetInput = Literal["text", "json"]
LANGFUSE: Final = "langfuse:"
"""The prefix of names in Langfuse."""
HUB: Final = "hf://"
"""The prefix of datasets on the Hugging Face hub."""
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_COMMAND: Final = "a command such as `python answer.py`, or a list such as `[python, answer.py]`"
# Words that mean something only in a shell; a program would get them as arguments.
_SHELL: Final = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1"})


def _parse_label(text: str) -> str:
    if _LABEL.fullmatch(text) is None:
        hint = "begin with a letter or a digit; use letters, digits, `.`, `_` and `-`, at most 64"
        raise ParseError(f"`{text}` can't be a name", hint)
    return text


def parse_path(text: str) -> str:
    """Read a path, a ``langfuse:`` name or an ``hf://`` name."""
    if not text.strip() or "\n" in text:
        raise ParseError("that isn't a path", "name a file, in one line")
    if _ADDRESS.match(text) and not text.startswith(HUB):
        # Not quoted, because it may contain a key.
        hint = f"download the file and name it, or name a hub dataset as `{HUB}OWNER/NAME/SPLIT`"
        raise ParseError("that is an address, and addresses aren't read", hint)
    if text.startswith(LANGFUSE) and not text.removeprefix(LANGFUSE).strip():
        raise ParseError(f"`{text}` names nothing", f"write `{LANGFUSE}NAME`")
    return text


def _parse_prompt(text: str) -> str:
    """Read a prompt; one from Langfuse needs a version, so that it can't change between runs."""
    if text.startswith(LANGFUSE):
        name, _, version = text.removeprefix(LANGFUSE).rpartition("@")
        if not name.strip() or not version.strip():
            hint = f"write `{LANGFUSE}NAME@VERSION` or `@LABEL`"
            raise ParseError(f"`{text}` doesn't specify a prompt version", hint)
    return text if is_inline(text) else parse_path(text)


def is_inline(text: str) -> bool:
    """Return whether a prompt is text and not a path: it has placeholders or several lines."""
    return "{{" in text or "\n" in text.strip()


Label = Annotated[str, TextForm("bad-name", _parse_label)]
PathText = Annotated[str, TextForm("bad-path", parse_path)]
PromptText = Annotated[str, TextForm("bad-path", _parse_prompt)]


class TargetSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The system under test: a model, a command, or its recorded responses."""

    name: Label = ""  # its name among several targets
    responses: PathText | None = None  # a file of recorded responses, or None
    prompt: PromptText | None = None  # a template, its path, or ``langfuse:NAME@VERSION``
    system: PromptText | None = None  # a system prompt of several lines, or its path
    # What a command reads from standard input: the prompt, or the messages and parameters as JSON.
    input: TargetInput = "text"
    model: ModelSpec | None = None
    command: tuple[str, ...] | None = None  # the program and its arguments; no shell reads them
    # Sampling parameters that deliberately differ from the defaults.
    generation: dict[str, float] = {}
    timeout: float = 60.0  # seconds after which a response counts as timed out


_ENDPOINT: Final = EndpointFields.__struct_fields__
TARGET_KEYS: Final = ("model", "command", "prompt", "system", "generation", "input", *_ENDPOINT)
"""Every key of `target`."""
NAMED_TARGET_KEYS: Final = ("name", "responses", *TARGET_KEYS)
"""Every key of one of `targets`."""
_FOR_MODELS: Final = ("system", "generation", *(key for key in _ENDPOINT if key != "timeout"))
_FOR_COMMANDS: Final = ("input",)


def read_target(node: Node | None, reader: FieldReader) -> TargetSpec | None:
    """Read `target`, a model's name or a mapping; None if it is missing."""
    return None if node is None else _read_target(node, reader, "`target`", TARGET_KEYS)


def read_targets(suite: Pairs, reader: FieldReader) -> tuple[TargetSpec, ...]:
    """Read `targets`; each has a unique name."""
    given = node_at(suite, "targets")
    if given is None:
        return ()
    findings, place = reader.findings, key_place(suite, "targets")
    if node_at(suite, "target") is not None:
        problem = "the suite has both a `target` and `targets`"
        findings.add(place, "two-targets", problem, "keep one of them")
    if not isinstance(given, Items) or not given.items:
        hint = "give a list such as `[{name: v1, prompt: v1.md, model: ...}]`"
        what = "empty" if isinstance(given, Items) else kind_of(given)
        findings.add(place, "no-targets", f"`targets` is {what}", hint)
        return ()
    found: dict[str, TargetSpec] = {}
    for node in given.items:
        spec = _read_target(node, reader, "a target", NAMED_TARGET_KEYS)
        if spec is None:
            continue
        spec = msgspec.structs.replace(spec, name=spec.name or _usual_name(spec))
        if spec.name in found:
            problem = f"two targets are called `{spec.name}`"
            findings.add(node.place, "duplicate-name", problem, "give each a `name` of its own")
        found[spec.name] = spec
    return tuple(found.values())


def _usual_name(spec: TargetSpec) -> str:
    """Return the default name of a target: from its model, its responses file or its command."""
    command = " ".join(spec.command or ())
    whole = spec.model.model.partition("/")[2] if spec.model else spec.responses or command
    return re.sub(r"[^A-Za-z0-9._-]+", "-", whole).strip("-._")[:64] or "target"


def _read_target(
    node: Node, reader: FieldReader, what: str, keys: tuple[str, ...]
) -> TargetSpec | None:
    if isinstance(node, Scalar):
        model = read_model(node, reader)
        return None if model is None else TargetSpec(model=model)
    inner = reader.open(Pairs, node, what, "give a model, or `{model: ...}`")
    if inner is None:
        return None
    reader.note_unknown(inner, what, keys)
    _check_kind(inner, reader.findings)
    own = reader.fields(TargetSpec, inner, ("model", "command", "generation", "timeout"))
    named = node_at(inner, "model")
    endpoint = reader.fields(EndpointFields, inner)
    model = None if named is None else read_model(named, reader, endpoint)
    timeout = endpoint.get("timeout") if model is None else model.timeout
    generation = node_at(inner, "generation")
    pairs = reader.open(Pairs, generation, "`generation`", "give a mapping")
    if pairs is not None:
        reader.note_unknown(pairs, "`generation`", Generation.__struct_fields__)
    return TargetSpec(
        **own,
        model=model,
        command=_read_command(node_at(inner, "command"), reader),
        generation={} if pairs is None else reader.fields(Generation, pairs),
        timeout=60.0 if timeout is None else timeout,
    )


def _check_kind(inner: Pairs, findings: Findings) -> None:
    """Report a target that isn't one of responses, model and command; report unused keys."""
    kinds = [key for key in ("responses", "model", "command") if node_at(inner, key) is not None]
    if not kinds:
        hint = "add a line such as `model: openai/gpt-4.1-2025-04-14`"
        findings.add(inner.place, "missing-key", "`target` has no `model`", hint)
        return
    unused = {"responses": TARGET_KEYS, "model": _FOR_COMMANDS, "command": _FOR_MODELS}[kinds[0]]
    for key, _ in inner.pairs:
        if key.text in kinds[1:]:
            problem = f"a target has both `{kinds[0]}` and a `{key.text}`"
            findings.add(key.place, "two-targets", problem, "keep one of them")
        elif key.text in unused:
            problem = f"`{key.text}` has no effect on a target with `{kinds[0]}`"
            findings.add(key.place, "unused-key", problem, "remove it")


def _read_command(node: Node | None, reader: FieldReader) -> tuple[str, ...] | None:
    match node:
        case None:
            return None
        case Scalar():
            return reader.parse(node, "bad-command", _split)
        case Items(items=items) if items and all(isinstance(each, Scalar) for each in items):
            words = tuple(each.text for each in items if isinstance(each, Scalar))
            if not words[0].strip():
                problem = "the command is empty"
                reader.findings.add(node.place, "bad-command", problem, f"give {_COMMAND}")
            return words
        case _:
            problem = f"`command` is {kind_of(node)}, but it must consist of texts"
            reader.findings.add(node.place, "wrong-type", problem, f"give {_COMMAND}")
            return None


def _split(text: str) -> tuple[str, ...]:
    """Split a command into words as a shell would; refuse shell operators."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        problem = f"the command can't be split into words ({str(error).lower()})"
        hint = "close every quote, or write a list such as `[python, answer.py]`"
        raise ParseError(problem, hint) from None
    if not words or not words[0]:
        raise ParseError("the command is empty", f"give {_COMMAND}")
    strange = next((word for word in words if word in _SHELL), None)
    if strange is not None:
        what = f"the command doesn't run in a shell, so `{strange}` would be passed as an argument"
        shell = 'to use a shell, write `[sh, -c, "..."]`'
        raise ParseError(what, f"{shell}; to pass `{strange}`, write the whole command as a list")
    return words
