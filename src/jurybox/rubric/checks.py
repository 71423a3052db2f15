"""A criterion's checks as data; each row fills the placeholders in the checks' values."""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, cast

import msgspec

from jurybox.documents.plain_yaml import as_yaml
from jurybox.errors import ParseError
from jurybox.rubric import check_kinds
from jurybox.rubric.template import PLACEHOLDERS
from jurybox.text_format import listed, nearest

ROW_CHECKS: Final = "{{checks}}"
"""The entry of a list of checks that stands for the row's own checks."""
_ROW_PARTS: Final = ("task", "reference", "context", "scenario", "id")
_METADATA: Final = "metadata."
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check as the document writes it; ``entry`` is its JSON."""

    kind: str
    entry: str


class CheckOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a check expected, what it found and where; ``passed`` is None if not measurable."""

    check: str
    passed: bool | None
    expected: str
    found: str
    where: str = ""

    def __str__(self) -> str:
        """Return the outcome as an assertion, on one line."""
        word = {True: "passes", False: "fails", None: "not measured"}[self.passed]
        at = f" ({self.where})" if self.where else ""
        return f"{self.check} {word}: expected {self.expected}, found {self.found}{at}"


class CheckFault(NamedTuple):
    """A mistake in a check, and the key that has it."""

    key: str
    code: str
    problem: str
    hint: str


def read_check(entry: object) -> tuple[Check | None, list[CheckFault]]:
    """Return a check, or its faults."""
    if entry == ROW_CHECKS:
        return Check(kind=ROW_CHECKS, entry=as_yaml(entry)), []
    pairs = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    names = [key for key in pairs if key in check_kinds.CHECKS]
    if not names:
        return None, [_unknown(cast("object", entry), pairs)]
    name, kind = names[0], check_kinds.CHECKS[names[0]]
    faults = list[CheckFault]()
    for key, value in pairs.items():
        read = partial(_check_value, kind) if key == name else kind.options.get(key)
        if key in names[1:]:
            problem = f"a check is both `{name}` and `{key}`"
            faults.append(CheckFault(key, "bad-check", problem, "write two checks"))
        elif read is None:
            hint = nearest(key, kind.options, f"its options are {listed(kind.options) or 'none'}")
            faults.append(CheckFault(key, "unknown-key", f"`{name}` has no option `{key}`", hint))
        else:
            try:
                read(value)
            except ParseError as error:
                problem = f"`{key}` can't be used: {error.problem}"
                faults.append(CheckFault(key, "bad-check", problem, error.hint))
    missing = [key for key in kind.required if key not in pairs]
    faults += [CheckFault(name, "missing-key", f"`{name}` has no `{k}`", "add it") for k in missing]
    return (None if faults else Check(kind=name, entry=as_yaml(pairs))), faults


def _unknown(entry: object, pairs: Mapping[str, object]) -> CheckFault:
    if not pairs:
        problem = f"a check is {check_kinds.described(entry)}"
        return CheckFault("", "bad-check", problem, "write it as `contains: Paris`")
    key = next(iter(pairs))
    hint = nearest(key, check_kinds.CHECKS, f"use one of {listed(check_kinds.CHECKS)}")
    return CheckFault(key, "bad-check", f"there is no check `{key}`", hint)


def _check_value(kind: check_kinds.CheckKind, value: object) -> None:
    """Refuse a value that is invalid for every row."""
    names = _placeholders(value)
    for name in names:
        if _part_of(name) is None:
            known = f"a row has {listed((*_ROW_PARTS, f'{_METADATA}NAME'))}"
            hint = nearest(name, _ROW_PARTS, known)
            raise ParseError(f"there is no placeholder `{name}`", hint)
    if not names:
        kind.read(value)


def _placeholders(value: object) -> list[str]:
    texts = [each for each in _as_list(value) if isinstance(each, str)]
    return [name for text in texts for name in _PLACEHOLDER.findall(text)]


def row_parts(check: Check) -> set[str]:
    """Return the parts of a row that a check compares with, such as `metadata.must_mention`."""
    value = json.loads(check.entry).get(check.kind) if check.kind != ROW_CHECKS else None
    return {_part_of(name) or name for name in _placeholders(value)}


def _as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _part_of(name: str) -> str | None:
    part = PLACEHOLDERS.get(name, name)
    return part if part in _ROW_PARTS or part.removeprefix(_METADATA) not in {"", part} else None


Lookup = Callable[[str], object]
"""Returns a part of a row, such as `reference` or `metadata.must_mention`; None if missing."""


class _Opened(NamedTuple):
    kind: check_kinds.CheckKind
    value: object
    options: check_kinds.Options
    wanted: Any
    """The parsed value; None if it has placeholders that a row fills."""


@lru_cache(maxsize=4096)
def _opened(check: Check) -> _Opened:
    entry: dict[str, object] = json.loads(check.entry)
    kind = check_kinds.CHECKS[check.kind]
    options = {key: kind.options[key](value) for key, value in entry.items() if key != check.kind}
    value = entry[check.kind]
    return _Opened(kind, value, options, None if _placeholders(value) else kind.read(value))


def run_check(check: Check, row: Lookup, answer: check_kinds.CheckedAnswer) -> CheckOutcome:
    """Check a response."""
    kind, value, options, wanted = _opened(check)
    if wanted is None:
        try:
            wanted = kind.read(_filled(value, row, kind.escape))
        except ParseError as error:
            expected = f"`{check_kinds.cut(as_yaml(value))}`"
            return CheckOutcome(
                check=check.kind, passed=None, expected=expected, found=error.problem
            )
    seen = kind.see(wanted, options, answer)
    return CheckOutcome(
        check=check.kind,
        passed=seen.passed,
        expected=kind.expected(wanted, options),
        found=seen.found,
        where=seen.where,
    )


def _filled(value: object, row: Lookup, escape: Callable[[str], str]) -> object:
    """Return a value with its placeholders filled from the row."""
    if isinstance(value, list):
        parts = (_filled(each, row, escape) for each in cast("list[object]", value))
        return [each for part in parts for each in _as_list(part)]
    if not isinstance(value, str):
        return value
    if match := _PLACEHOLDER.fullmatch(value):
        return _part(match[1], row)
    return _PLACEHOLDER.sub(
        lambda match: escape(check_kinds.read_text(_part(match[1], row))), value
    )


def _part(name: str, row: Lookup) -> object:
    value = row(_part_of(name) or name)
    if value is None:
        raise ParseError(f"no `{name}` in the row", "add it to the row")
    return value
