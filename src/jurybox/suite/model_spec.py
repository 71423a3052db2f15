"""A model wherever one is named: its name alone, or with its own endpoint, key and limits (D3)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.documents.field_reader import Fields, kind_of, parse_at
from jurybox.documents.findings import Findings, Place
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml
from jurybox.errors import InputError, Unreadable

# What is behind the slash is the provider's affair, and checked where providers are known.
_NAME = re.compile(r"[A-Za-z0-9_-]+/\S(?:.*\S)?")
_ADDRESS = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_TIMEOUT = 86_400
_HINT = "write `provider/name`, such as `openai/gpt-4.1-2025-04-14`"
_WANTED = "`provider/name`, or `{model: provider/name, base_url: ...}`"


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model, and what differs from the settings of its provider.

    Attributes:
        model: ``provider/name[@version]``.
        base_url: the address of its endpoint, without any password.
        api_key_env: the environment variable that holds its key; the key is read from there only.
        timeout: the seconds that one request may take.
        max_requests_per_minute: how many requests its endpoint may get.
        max_tokens_per_minute: how many tokens its endpoint may get and give.

    """

    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    timeout: float | None = None
    max_requests_per_minute: int | None = None
    max_tokens_per_minute: int | None = None


MODEL_KEYS: Final = ModelSpec.__struct_fields__
"""Every key of a model."""
ENDPOINT_KEYS: Final = MODEL_KEYS[1:]
"""Those apart from its name."""


def parse_model(text: str) -> str:
    """Read what looks like ``provider/name``.

    Raises:
        Unreadable: it doesn't.

    """
    if _NAME.fullmatch(text) is None:
        raise Unreadable(f"`{text}` isn't the name of a model", _HINT)
    return text


def model_option(text: str) -> ModelSpec:
    """Read a model as an option names it: ``provider/name``, or a mapping in braces.

    Raises:
        InputError: it is neither.

    """
    if not text.startswith("{"):
        return ModelSpec(model=text)
    findings = Findings()
    node = read_yaml(text, Place(1), findings)
    spec = None if node is None else read_model(node, findings)
    for finding in findings.in_order():
        raise InputError(finding.problem, finding.hint, text)
    if spec is None:
        raise InputError("that is no model", f"write {_WANTED}", text)
    return spec


def chosen_models(options: Iterable[str], known: Sequence[ModelSpec]) -> Sequence[ModelSpec]:
    """Return the models that options name, or else the known ones.

    One that is known keeps its endpoint, unless the option gives another.

    Raises:
        InputError: an option is no model.

    """
    own = {spec.model: spec for spec in known}
    specs = different_models([model_option(each) for each in options])
    return [
        own.get(spec.model, spec) if spec == ModelSpec(model=spec.model) else spec for spec in specs
    ] or known


def different_models(specs: list[ModelSpec]) -> list[ModelSpec]:
    """Return models that are given as options, each once.

    Raises:
        InputError: one is named twice.

    """
    names = [spec.model for spec in specs]
    for name in names:
        if names.count(name) > 1:
            hint = "name it once; --votes says how often it is asked"
            raise InputError("the model is named twice", hint, name)
    return specs


def read_endpoint(fields: Fields) -> dict[str, Any]:
    """Read the keys that a model may have apart from its name; only those that are given."""
    given = {
        "base_url": fields.parsed("base_url", "bad-address", _parse_address),
        "api_key_env": fields.parsed("api_key_env", "bad-variable", _parse_variable),
        "timeout": read_timeout(fields),
        "max_requests_per_minute": fields.whole("max_requests_per_minute", 1),
        "max_tokens_per_minute": fields.whole("max_tokens_per_minute", 1),
    }
    return {name: value for name, value in given.items() if value is not None}


def read_timeout(fields: Fields) -> float | None:
    """Read a number of seconds."""
    timeout = fields.number("timeout", 0, _LONGEST_TIMEOUT)
    if timeout == 0:
        problem = "`timeout` is 0, which leaves no time to answer"
        place = fields.value_place("timeout")
        fields.findings.add(place, "out-of-range", problem, "use more than 0")
    return None if timeout is None else float(timeout)


def read_model(
    node: Node, findings: Findings, shared: Mapping[str, Any] | None = None
) -> ModelSpec | None:
    """Read a name or a mapping; ``shared`` is what it has unless it says otherwise."""
    shared = shared or {}
    match node:
        case Scalar():
            name = parse_at(node, "bad-model", parse_model, findings)
            return None if name is None else ModelSpec(model=name, **shared)
        case Pairs():
            fields = Fields(node, "a model", MODEL_KEYS, findings)
            fields.require("model", "add `model: provider/name`")
            name = fields.parsed("model", "bad-model", parse_model)
            own = {**shared, **read_endpoint(fields)}
            return None if name is None else ModelSpec(model=name, **own)
        case Items():
            findings.add(node.place, "wrong-type", f"a model is {kind_of(node)}", f"give {_WANTED}")
            return None


def read_models(node: Node, findings: Findings, shared: Mapping[str, Any]) -> tuple[ModelSpec, ...]:
    """Read one model, or a list of different ones."""
    specs: list[ModelSpec] = []
    for each in node.items if isinstance(node, Items) else (node,):
        spec = read_model(each, findings, shared)
        if spec is None:
            continue
        if any(spec.model == other.model for other in specs):
            problem = f"the model `{spec.model}` is named twice"
            hint = "remove one; `votes` says how often it is asked"
            findings.add(each.place, "duplicate-model", problem, hint)
        specs.append(spec)
    if isinstance(node, Items) and not node.items:
        hint = "name at least one, or leave `judge` out"
        findings.add(node.place, "no-models", "`models` is empty", hint)
    return tuple(specs)


def _parse_address(text: str) -> str:
    if _ADDRESS.fullmatch(text) is None:
        # It isn't quoted, for it may hold a key.
        hint = "write one like `http://localhost:8000/v1`; a key goes into `api_key_env`"
        raise Unreadable("`base_url` isn't an http address without a password or a query", hint)
    return text


def _parse_variable(text: str) -> str:
    if _VARIABLE.fullmatch(text) is None:
        # The key itself, perhaps: it isn't quoted.
        hint = "name the variable, such as `OPENAI_API_KEY`, and set it to the key"
        raise Unreadable("`api_key_env` isn't the name of an environment variable", hint)
    return text
