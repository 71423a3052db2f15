"""Finding the document that another one extends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from jurybox.documents.fields import Fields
from jurybox.documents.findings import Findings
from jurybox.errors import Finding, InputError
from jurybox.rubric.model import Rubric

EXTENDS: Final = "extends"
MOST_BASES: Final = 5
"""So many documents may stand behind one another; nobody could follow more."""


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A document that another one extends, and how its own base is found.

    ``key`` is the same for the same document, however it was named.
    """

    origin: str
    key: str
    data: bytes
    find: Find


Find = Callable[[str], Base]
"""Finds a document by what stands behind ``extends``, or raises an `InputError`."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reading a document: a rubric, or else findings.

    ``bases`` are the documents that it extends, by their names, the nearest first. ``warnings`` are
    about what is sound, but probably not meant so.
    """

    rubric: Rubric | None
    findings: tuple[Finding, ...]
    bases: tuple[str, ...] = ()
    warnings: tuple[Finding, ...] = ()


Read = Callable[[Base], Reading]


def read_base(
    fields: Fields, find: Find | None, chain: tuple[str, ...], read: Read, findings: Findings
) -> tuple[Rubric, Reading] | None:
    """Return the rubric that a document extends, and its reading with the names of all behind it.

    ``chain`` are the keys of the documents on the way here; what is wrong with the base itself is
    one finding, for it is to be mended there.
    """
    name = fields.text(EXTENDS)
    base = None if name is None else _found(name, fields, find, findings)
    if name is None or base is None:
        return None
    if base.key in chain:
        _note_cycle(name, fields, findings)
        return None
    if len(chain) >= MOST_BASES:
        _note_depth(fields, findings)
        return None
    reading = read(base)
    if reading.rubric is None:
        _note_bad(name, base, reading, fields, findings)
        return None
    return reading.rubric, msgspec.structs.replace(reading, bases=(name, *reading.bases))


def _found(name: str, fields: Fields, find: Find | None, findings: Findings) -> Base | None:
    place = fields.value_place(EXTENDS)
    if find is None:
        problem = f"the base `{name}` can't be looked for: this text has no place of its own"
        mend = "load the document by its name or path"
        findings.add(place, "unknown-base", problem, mend)
        return None
    try:
        return find(name)
    except InputError as error:
        findings.add(place, "unknown-base", f"the base `{name}`: {error.problem}", error.mend)
        return None


def _note_bad(name: str, base: Base, reading: Reading, fields: Fields, findings: Findings) -> None:
    codes = {finding.code for finding in reading.findings}
    if "base-cycle" in codes:
        _note_cycle(name, fields, findings)
    elif "base-depth" in codes:
        _note_depth(fields, findings)
    else:
        count = len(reading.findings)
        has = "a finding" if count == 1 else f"{count} findings"
        first = reading.findings[0]
        problem = f"the base `{name}` has {has}, first {base.origin}:{first}"
        findings.add(fields.value_place(EXTENDS), "bad-base", problem, "mend the base")


def _note_cycle(name: str, fields: Fields, findings: Findings) -> None:
    problem = f"going from base to base, `{name}` leads back to where it began"
    place = fields.value_place(EXTENDS)
    findings.add(place, "base-cycle", problem, f"take out an `{EXTENDS}`")


def _note_depth(fields: Fields, findings: Findings) -> None:
    problem = f"more than {MOST_BASES} documents extend one another"
    place = fields.value_place(EXTENDS)
    findings.add(place, "base-depth", problem, "extend one of the first of them")
