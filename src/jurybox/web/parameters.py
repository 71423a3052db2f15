"""What may stand in an address: described once, for the document and for the check alike."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.web.refusals import Refusal

_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")
# As a browser's field for numbers takes them: `.5` is one, too.
_NUMBER: Final = re.compile(r"-?([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_LONGEST_NUMBER: Final = 40

ANY_TEXT: Final = r"^[^\u0000]*$"
"""The pattern of a text: the one letter that no store takes is refused at the door."""

Pairs = Iterable[tuple[str, str]]
Schema = dict[str, Any]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A value in an address.

    Attributes:
        name: its name.
        schema: its JSON schema, of which the type, the ends, the lengths and the choices count.
        about: what it means, in one sentence.
        many: whether it may be given several times.
        needed: whether it has to be given.

    """

    name: str
    schema: Schema
    about: str
    many: bool = False
    needed: bool = False

    def document(self) -> Schema:
        """Return how the API's document describes it."""
        schema = self.schema
        if self.many:
            schema = {"type": "array", "items": schema, "maxItems": 20}
        told: Schema = {"name": self.name, "in": "query", "description": self.about}
        if self.needed:
            told["required"] = True
        return told | {"schema": schema}


def read_query(parameters: Sequence[Parameter], pairs: Pairs, *, form: bool) -> dict[str, Any]:
    """Return the values by name; those that weren't given have their defaults, or aren't there.

    A ``form`` sends its empty fields too, and they count as not given; others' are ignored.

    Raises:
        Refusal: a value can't be one.

    """
    known = {each.name: each for each in parameters}
    found: dict[str, list[str]] = {}
    for name, text in pairs:
        if form and (not text or name not in known):
            continue
        if name not in known:
            raise Refusal(400, "no such parameter", f"there are {', '.join(known)}", name[:80])
        found.setdefault(name, []).append(text)
    return dict(_values(known, found))


def _values(
    known: Mapping[str, Parameter], found: Mapping[str, list[str]]
) -> Iterable[tuple[str, Any]]:
    for name, parameter in known.items():
        texts = found.get(name)
        if texts is None:
            if parameter.needed:
                raise Refusal(400, "it is needed", "give one", name)
            if "default" in parameter.schema:
                yield name, parameter.schema["default"]
        elif parameter.many:
            if len(texts) > 20:  # noqa: PLR2004 - as the document says
                raise Refusal(400, "it is given too often", "give it 20 times at most", name)
            yield name, tuple(_value(parameter, text) for text in texts)
        elif len(texts) > 1:
            raise Refusal(400, "it is given twice", "give it once", name)
        else:
            yield name, _value(parameter, texts[0])


def _value(parameter: Parameter, text: str) -> str | int | float | bool:
    schema = parameter.schema
    value = _typed(schema["type"], text)
    if value is None or not _within(schema, value):
        raise Refusal(400, f"`{text[:40]}` can't be its value", _wish(schema), parameter.name)
    return value


def _typed(kind: str, text: str) -> str | int | float | bool | None:
    if kind == "string":
        return text
    if kind == "boolean":
        return {"true": True, "false": False}.get(text)
    if kind == "integer":
        return int(text) if _WHOLE.fullmatch(text) else None
    # The few letters of a number that is too long for one are no reason to read it.
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _within(schema: Schema, value: str | float) -> bool:
    if isinstance(value, str):
        fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf)
        wanted = re.fullmatch(schema["pattern"].strip("^$"), value) if "pattern" in schema else True
        return fits and bool(wanted) and value in schema.get("enum", (value,))
    return schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)


def _wish(schema: Schema) -> str:
    if "enum" in schema:
        return f"it is one of {', '.join(schema['enum'])}"
    kind = {"integer": "a whole number", "string": "a text", "boolean": "true or false"}
    wish = f"it is {kind.get(schema['type'], 'a number')}"
    if "minimum" in schema and "maximum" in schema:
        return f"{wish} from {schema['minimum']} to {schema['maximum']}"
    if "maxLength" in schema:
        return f"{wish} of at most {schema['maxLength']} characters"
    return wish
