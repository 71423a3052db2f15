"""The kinds of checks: how each parses its value and examines a response."""

import importlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, cast

import msgspec

from jurybox.documents.numbers import read_number, show_number
from jurybox.documents.plain_yaml import as_yaml
from jurybox.errors import ParseError
from jurybox.rubric.metrics import MEASURES, Comparison, read_bound
from jurybox.text_format import counted

COST: Final = "cost"
"""The cost of a response, in US dollars."""
_DIGITS: Final = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?"
_IN_TEXT: Final = re.compile(rf"(?:(?<!\w)[-+])?{_DIGITS}")
_SHOWN: Final = 120
# Comparing two texts takes time proportional to the product of their lengths.
_LONGEST_ALIKE: Final = 20_000


class CheckedAnswer(NamedTuple):
    """The input of checks: the response and its measurements."""

    text: str
    measures: Mapping[str, float | None]


class Seen(NamedTuple):
    """What a check found and where; ``passed`` is None if it could not be measured."""

    passed: bool | None
    found: str
    where: str = ""


Options = Mapping[str, Any]
Read = Callable[[object], Any]
"""Reads a value; raises `ParseError` if it isn't valid."""


class CheckKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of check."""

    read: Read  # reads the value
    see: Callable[[Any, Options, CheckedAnswer], Seen]  # examines a response
    # Describes what is expected, given the value and the options.
    expected: Callable[[Any, Options], str]
    options: Mapping[str, Read] = {}  # the options of these checks, each with its reader
    required: tuple[str, ...] = ()  # the required options
    escape: Callable[[str], str] = str  # escapes a row's text to insert it into a longer value


def described(value: object) -> str:
    """Describe a value in words."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"`{cut(value if isinstance(value, str) else json.dumps(value))}`"


def cut(text: str) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _quoted(text: str) -> str:
    return f"\u201c{cut(text)}\u201d"


def _all_quoted(texts: Sequence[str]) -> str:
    return cut(", ".join(map(_quoted, texts)))


def _passes(found: str, where: str = "") -> Seen:
    return Seen(passed=True, found=found, where=where)


def _fails(found: str, where: str = "") -> Seen:
    return Seen(passed=False, found=found, where=where)


def _place(text: str, index: int) -> str:
    line = text.count("\n", 0, index) + 1
    return f"line {line}, column {index - text.rfind(chr(10), 0, index)}"


def read_text(value: object) -> str:
    """Read a string; a number is converted to a string."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise ParseError(f"it is {described(value)}", "give a string")
    return value if isinstance(value, str) else show_number(value)


def _read_texts(value: object) -> tuple[str, ...]:
    texts = cast("list[object]", value) if isinstance(value, list) else [value]
    if not texts:
        raise ParseError("the list is empty", "list the texts")
    return tuple(read_text(each) for each in texts)


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ParseError(f"it is {described(value)}", "give `true` or `false`")
    return value


def _folded(text: str, options: Options) -> str:
    return text.casefold() if options.get("ignore_case") else text


def _see_equal(wanted: str, options: Options, answer: CheckedAnswer) -> Seen:
    found, text = answer.text.strip(), wanted.strip()
    if _folded(found, options) == _folded(text, options):
        return _passes(_quoted(found))
    pairs = enumerate(zip(found, text, strict=False))
    first = next((at for at, (one, other) in pairs if one != other), min(len(found), len(text)))
    return _fails(_quoted(found), f"differs at {_place(found, first)}")


def _see_one_of(wanted: tuple[str, ...], options: Options, answer: CheckedAnswer) -> Seen:
    found = answer.text.strip()
    known = {_folded(each.strip(), options) for each in wanted}
    return Seen(_folded(found, options) in known, _quoted(found))


def _see_contained(wanted: tuple[str, ...], options: Options, answer: CheckedAnswer) -> Seen:
    text = _folded(answer.text, options)
    places = {each: text.find(_folded(each, options)) for each in wanted}
    missing = [each for each, index in places.items() if index < 0]
    if not missing:
        return _passes(_all_quoted(wanted), _place(answer.text, min(places.values())))
    no = f"no {_all_quoted(missing)} in " if len(wanted) > 1 else ""
    return _fails(f"{no}{_quoted(answer.text)}")


def _see_absent(wanted: tuple[str, ...], options: Options, answer: CheckedAnswer) -> Seen:
    text = _folded(answer.text, options)
    places = {each: at for each in wanted if (at := text.find(_folded(each, options))) >= 0}
    if not places:
        return _passes(_quoted(answer.text))
    return _fails(_all_quoted(list(places)), _place(answer.text, min(places.values())))


@lru_cache(maxsize=256)
def _pattern(text: str, *, ignore_case: bool = False) -> Any:  # noqa: ANN401 - re2 has no types
    """Compile a pattern for RE2, which takes linear time on any response."""
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors, options.case_sensitive = False, not ignore_case
    try:
        return re2.compile(text, options)
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace")
        hint = "write it for RE2, which has no lookaround and no backreferences"
        raise ParseError(f"`{cut(text)}` isn't a regular expression: {why}", hint) from None


def _read_pattern(value: object) -> str:
    text = read_text(value)
    _pattern(text)
    return text


def _see_match(wanted: str, options: Options, answer: CheckedAnswer) -> Seen:
    match = _pattern(wanted, ignore_case=bool(options.get("ignore_case"))).search(answer.text)
    if match is None:
        return _fails(_quoted(answer.text))
    return _passes(_quoted(match[0]), _place(answer.text, match.start()))


def _read_number(value: object) -> float:
    number = read_number(value.strip().replace(",", "")) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ParseError(f"it is {described(value)}", "give a number")
    return number


def _read_tolerance(value: object) -> tuple[float, bool]:
    """Return the tolerance, and whether it is relative to the expected number."""
    share = isinstance(value, str) and value.endswith("%")
    number = _read_number(value.removesuffix("%") if isinstance(value, str) else value)
    if number < 0:
        raise ParseError(f"it is {show_number(number)}", "give 0 or more, such as `0.5` or `5%`")
    return (number / 100 if share else number), share


def _margin(wanted: float, options: Options) -> float:
    bound, share = options.get("tolerance", (0.0, False))
    return round(abs(wanted) * bound, 9) if share else bound


def _see_number(wanted: float, options: Options, answer: CheckedAnswer) -> Seen:
    """Compare the last number of the response, which is usually its conclusion."""
    text = answer.text.replace("\u2212", "-")
    last = None
    for last in _IN_TEXT.finditer(text):  # noqa: B007 - the last one is used
        pass
    number = math.inf if last is None else float(last[0].replace(",", ""))
    if last is None or not math.isfinite(number):
        return _fails(f"no number in {_quoted(answer.text)}")
    apart, margin = abs(number - wanted), _margin(wanted, options)
    passed = apart <= margin or math.isclose(apart, margin, rel_tol=1e-9, abs_tol=1e-12)
    return Seen(passed, show_number(number), _place(text, last.start()))


def _expected_number(wanted: float, options: Options) -> str:
    margin = _margin(wanted, options)
    return show_number(wanted) + (f" \u00b1 {show_number(margin)}" if margin else "")


def _read_valid(value: object) -> str:
    if value != "valid":
        raise ParseError(f"it is {described(value)}", "write `json: valid`, or use `json_schema`")
    return ""


def _library(module: str, what: str) -> Any:  # noqa: ANN401 - an extra brings it
    try:
        return importlib.import_module(module)
    except ImportError:
        hint = "install them with: pip install 'jurybox[checks]'"
        raise ParseError(f"{what} needs optional packages", hint) from None


def _refuse(uri: str) -> object:
    raise ValueError(f"a schema can't load `{uri}`")


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:  # noqa: ANN401 - an extra brings it
    """Compile a schema without fetching references; its patterns take linear time."""
    rs = _library("jsonschema_rs", "a JSON schema")
    try:
        return rs.validator_for(
            json.loads(schema), retriever=_refuse, pattern_options=rs.RegexOptions()
        )
    except ValueError as error:
        why = getattr(error, "message", str(error))
        raise ParseError(f"it isn't a JSON schema: {why}", "correct the schema") from None


def _read_schema(value: object) -> str:
    if not isinstance(value, dict):
        raise ParseError(f"it is {described(value)}", "give a schema such as `{type: object}`")
    schema = as_yaml(cast("object", value))
    _validator(schema)
    return schema


def _see_json(schema: str, _: Options, answer: CheckedAnswer) -> Seen:
    """Check that a response is JSON, and fits the schema if there is one."""
    try:
        value: object = msgspec.json.decode(answer.text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return _fails(f"{_quoted(answer.text)} ({error})")
    if not schema:
        return _passes("valid JSON")
    error = next(iter(_validator(schema).iter_errors(value)), None)
    if error is None:
        return _passes("JSON that fits")
    path = "".join(f"/{each}" for each in error.instance_path)
    return _fails(cut(error.message), f"at {path or 'the top'}")


def _read_bound(value: object) -> tuple[Comparison, ...]:
    try:
        return read_bound(value if isinstance(value, str) else "")
    except ParseError:
        hint = 'give a bound such as `"<= 50"`, or a range such as `10-50`'
        raise ParseError(f"it is {described(value)}", hint) from None


def _measure(name: str, answer: CheckedAnswer) -> float | None:
    return answer.measures.get(name)


def _bounded(
    name: str, amount: Callable[[CheckedAnswer], float | None], unit: str = ""
) -> CheckKind:
    """Return a check that a number of a response is within bounds."""

    def see(wanted: Sequence[Comparison], _: Options, answer: CheckedAnswer) -> Seen:
        value = amount(answer)
        if value is None:
            return Seen(None, f"no value for `{name}`")
        found = counted(int(value), unit) if unit else show_number(value)
        return Seen(all(each.passes(value) for each in wanted), found)

    def expected(wanted: Sequence[Comparison], _: Options) -> str:
        bounds = (f"{each.operator} {show_number(each.number)}" for each in wanted)
        return " and ".join(bounds) + (unit and f" {unit}s")

    return CheckKind(read=_read_bound, see=see, expected=expected)


def _read_share(value: object) -> float:
    number = _read_number(value)
    if not 0 < number <= 1:
        raise ParseError(f"it is {show_number(number)}", "give a number above 0, up to 1")
    return number


def _read_similar(value: object) -> str:
    _library("rapidfuzz.distance", "similarity")
    return read_text(value)


def _see_similar(wanted: str, options: Options, answer: CheckedAnswer) -> Seen:
    one, other = _folded(wanted.strip(), options), _folded(answer.text.strip(), options)
    if max(len(one), len(other)) > _LONGEST_ALIKE:
        return Seen(None, f"a text of more than {_LONGEST_ALIKE:,} characters")
    indel = _library("rapidfuzz.distance", "similarity").Indel
    share = round(indel.normalized_similarity(one, other), 6)
    return Seen(share >= options["at_least"], f"{show_number(share)} in {_quoted(answer.text)}")


_CASE: Final[Mapping[str, Read]] = {"ignore_case": _read_flag}

CHECKS: Final[Mapping[str, CheckKind]] = {
    "equals": CheckKind(
        read=read_text, see=_see_equal, expected=lambda text, _: _quoted(text), options=_CASE
    ),
    "contains": CheckKind(
        read=_read_texts,
        see=_see_contained,
        expected=lambda texts, _: _all_quoted(texts),
        options=_CASE,
    ),
    "not_contains": CheckKind(
        read=_read_texts,
        see=_see_absent,
        expected=lambda texts, _: f"no {_all_quoted(texts)}",
        options=_CASE,
    ),
    "one_of": CheckKind(
        read=_read_texts,
        see=_see_one_of,
        expected=lambda texts, _: f"one of {_all_quoted(texts)}",
        options=_CASE,
    ),
    "regex": CheckKind(
        read=_read_pattern,
        see=_see_match,
        expected=lambda pattern, _: f"a match of `{cut(pattern)}`",
        options=_CASE,
        escape=lambda text: importlib.import_module("re2").escape(text),
    ),
    "number": CheckKind(
        read=_read_number,
        see=_see_number,
        expected=_expected_number,
        options={"tolerance": _read_tolerance},
    ),
    "json": CheckKind(read=_read_valid, see=_see_json, expected=lambda _, __: "valid JSON"),
    "json_schema": CheckKind(
        read=_read_schema,
        see=_see_json,
        expected=lambda schema, _: f"JSON that fits `{cut(schema)}`",
    ),
    "words": _bounded("words", lambda answer: len(answer.text.split()), "word"),
    "characters": _bounded("characters", lambda answer: len(answer.text), "character"),
    "similarity": CheckKind(
        read=_read_similar,
        see=_see_similar,
        expected=lambda text, options: (
            f"at least {show_number(options['at_least'])} of {_quoted(text)}"
        ),
        options={"at_least": _read_share, **_CASE},
        required=("at_least",),
    ),
    **{name: _bounded(name, partial(_measure, name)) for name in (*MEASURES, COST)},
}
"""Every kind of check, by the key that names it."""
