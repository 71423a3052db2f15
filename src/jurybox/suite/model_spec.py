"""A model in a suite or an option: a name, or a mapping with endpoint, key and limits."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from jurybox.documents.field_reader import FieldReader, TextForm
from jurybox.documents.findings import Findings, Place
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml
from jurybox.errors import InputError, ParseError

# The part after the slash is checked later, by the provider.
_NAME = re.compile(r"[A-Za-z0-9_-]+/\S(?:.*\S)?")
_ADDRESS = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WANTED: Final = "`provider/name`, or `{model: provider/name, base_url: ...}`"


def _parse_model(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        hint = "write `provider/name`, such as `openai/gpt-4.1-2025-04-14`"
        problem = f"`{text}` isn't the name of a model" if text.strip() else "no model is named"
        raise ParseError(problem, hint)
    return text


def _parse_address(text: str) -> str:
    if _ADDRESS.fullmatch(text) is None:
        # Not quoted, because it may contain a key.
        hint = "write one like `http://localhost:8000/v1`; a key goes into `api_key_env`"
        raise ParseError(
            "`base_url` must be an http or https URL without a password or query", hint
        )
    return text


def _parse_variable(text: str) -> str:
    if _VARIABLE.fullmatch(text) is None:
        # Not quoted, because it may be the key itself.
        hint = "name the variable, such as `OPENAI_API_KEY`, and set it to the key"
        raise ParseError("`api_key_env` isn't the name of an environment variable", hint)
    return text


class EndpointFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Overrides the settings of a model's provider."""

    # The address of the model's endpoint, without any password.
    base_url: Annotated[str, TextForm("bad-address", _parse_address)] | None = None
    # The environment variable with the endpoint's key, which is read only from there.
    api_key_env: Annotated[str, TextForm("bad-variable", _parse_variable)] | None = None
    # The seconds that one request may take.
    timeout: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    # How many requests the endpoint may get per minute.
    max_requests_per_minute: Annotated[int, Meta(ge=1)] | None = None
    # How many tokens the endpoint may get and return per minute.
    max_tokens_per_minute: Annotated[int, Meta(ge=1)] | None = None


class ModelSpec(EndpointFields, frozen=True, kw_only=True, omit_defaults=True):
    """A model, ``provider/name[@version]``, with its endpoint."""

    model: Annotated[str, TextForm("bad-model", _parse_model), Meta(examples=["provider/name"])]


def model_option(text: str) -> ModelSpec:
    """Read a model from an option: ``provider/name``, or a mapping in braces."""
    if not text.startswith("{"):
        return ModelSpec(model=text)
    findings = Findings()
    node = read_yaml(text, Place(1), findings)
    spec = None if node is None else read_model(node, FieldReader(findings))
    for finding in findings.in_order():
        raise InputError(finding.problem, finding.hint, text)
    if spec is None:
        raise InputError("that isn't a model", f"write {_WANTED}", text)
    return spec


def chosen_models(options: Iterable[str], known: Sequence[ModelSpec]) -> Sequence[ModelSpec]:
    """Return the models that options name; without any, the known ones.

    A known model keeps its endpoint unless the option gives a different one.
    """
    own = {spec.model: spec for spec in known}
    specs = different_models([model_option(each) for each in options])
    return [
        own.get(spec.model, spec) if spec == ModelSpec(model=spec.model) else spec for spec in specs
    ] or known


def different_models(specs: list[ModelSpec]) -> list[ModelSpec]:
    """Return the models given as options; refuse one that is given twice."""
    names = [spec.model for spec in specs]
    for name in names:
        if names.count(name) > 1:
            hint = "name it once; --votes says how many times it is asked"
            raise InputError("the model is named twice", hint, name)
    return specs


def read_model(
    node: Node, reader: FieldReader, shared: Mapping[str, Any] | None = None
) -> ModelSpec | None:
    """Read a model from a name or a mapping; ``shared`` has defaults for its endpoint."""
    if isinstance(node, Scalar):
        key = Scalar(text="model", quoted=False, place=node.place)
        node = Pairs(pairs=((key, node),), place=node.place)
    spec = reader.value(Annotated[ModelSpec, Meta(examples=["{model: ...}"])], node, "a model")
    if spec is msgspec.UNSET:
        return None
    given = {name: value for name, value in msgspec.structs.asdict(spec).items() if value}
    return ModelSpec(**{**(shared or {}), **given})


def read_models(
    node: Node, reader: FieldReader, shared: Mapping[str, Any]
) -> tuple[ModelSpec, ...]:
    """Read one model, or a list of distinct models."""
    specs: list[ModelSpec] = []
    for each in node.items if isinstance(node, Items) else (node,):
        spec = read_model(each, reader, shared)
        if spec is None:
            continue
        if any(spec.model == other.model for other in specs):
            problem = f"the model `{spec.model}` is named twice"
            hint = "remove one; `votes` says how many times it is asked"
            reader.findings.add(each.place, "duplicate-model", problem, hint)
        specs.append(spec)
    if isinstance(node, Items) and not node.items:
        hint = "name at least one, or leave `judge` out"
        reader.findings.add(node.place, "no-models", "`models` is empty", hint)
    return tuple(specs)
