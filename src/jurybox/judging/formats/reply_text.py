"""The text of a reply: its JSON objects, read strictly, and the verdicts stated in its prose.

Python's reader lets things through that a verdict must not have: a key given twice, NaN, a number
that would be rounded, half a character. Here they are defects, like any other fault of an object.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, cast

import msgspec

from jurybox.judging.flow import Defect

# An object begins with a key and a colon, or ends at once; `{a, b}` and `{"a", "b"}` are none.
_OPENING = re.compile(r'\{(?=\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:))')
_LONGEST_NUMBER = 40


class FoundObject(msgspec.Struct, frozen=True):
    """An object and its position in the text."""

    value: dict[str, Any]
    start: int
    end: int


class _RefusedError(ValueError):
    """The object has a fault that Python's reader would let through."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RefusedError(f"the key {json.dumps(key)} is given twice")
            seen.add(key)
    return found


def _no_constant(name: str) -> float:
    raise _RefusedError(f"{name} is not a JSON number")


def _exact(text: str) -> float:
    """Read a fraction, and refuse one that would be rounded: the score must be what was written."""
    value = float(text)
    # An exponent can be too large even for a Decimal.
    kept = len(text) <= _LONGEST_NUMBER and math.isfinite(value)
    if not kept or not _same(text, value):
        raise _RefusedError(f"the number {text[:_LONGEST_NUMBER]} can't be kept exactly")
    return value


def _same(text: str, value: float) -> bool:
    try:
        return Decimal(text) == Decimal(repr(value))
    except InvalidOperation:
        return False


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_exact
)


def read_object(text: str, start: int = 0) -> FoundObject | Defect:
    """Read the object that begins at ``start``."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        # Half a character comes from an escape, or from a text that can't be encoded either.
        piece = text[start:end]
        if "\\u" in piece or not piece.isascii():
            json.dumps(value, ensure_ascii=False).encode()
    except _RefusedError as error:
        return Defect(f"{error}.")
    except UnicodeEncodeError:
        return Defect("a text in the JSON object holds half a character (a lone surrogate).")
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" starting at").removesuffix(" at")
        return Defect(
            f"the JSON object is malformed at its character {error.pos - start}: {reason}."
        )
    except RecursionError:
        return Defect("the JSON object is nested too deeply.")
    except ValueError:
        return Defect("the JSON object holds a number of too many digits.")
    return FoundObject(value, start, end)


# A reply is read for its verdict, and soon after once more for what it says.
@lru_cache(maxsize=16)
def find_objects(text: str) -> tuple[FoundObject | Defect, ...]:
    """Return every outermost object in a text.

    A malformed one is a defect and ends the search: what stands inside it, a quoted verdict for
    instance, must not be taken for an object of the reply's own.
    """
    return tuple(_objects(text))


def _objects(text: str) -> Iterator[FoundObject | Defect]:
    at = 0
    while match := _OPENING.search(text, at):
        found = read_object(text, match.start())
        yield found
        if isinstance(found, Defect):
            return
        at = found.end


def spoken(text: str) -> list[str]:
    """Return the texts of a reply: each string in its objects, and the prose around them.

    Escapes are undone and fields kept apart, so that neither hides a word or lends it a denial.
    A reply that can't be split is returned as one text.
    """
    texts: list[str] = []
    at = 0
    for found in find_objects(text):
        if isinstance(found, Defect):
            return [text]
        if at < found.start:
            texts.append(text[at : found.start])
        parts: list[Any] = [*found.value.values()]
        for part in parts:  # it grows: what is inside a part comes after all others
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, dict):
                parts += cast("dict[str, Any]", part).values()
            elif isinstance(part, list):
                parts += cast("list[Any]", part)
        at = found.end
    if at < len(text):
        texts.append(text[at:])
    return texts


NUMBER = r"[-+]?(?:[0-9]{1,9}(?:\.[0-9]{1,15})?|\.[0-9]{1,15})"

# Between the verb and the number only words that don't change what is scored.
_BETWEEN = (
    r"(?:[ \t]+(?:an?|the|this|that|it|its|my|one|overall|total|final|solid|strong|firm|clear|full"
    r"|perfect|score|rating|grade|mark|quality|response|answer|reply|message|assistant(?:['\u2019]s)?"
    r"|of|is|as|at|be|to|would|with|on)){0,7}"
)
SENTENCE = re.compile(
    r"\b(?:give|giving|rate[sd]?|rating|scor(?:e[sd]?|ing)|graded?|assign(?:ed)?|award(?:ed)?"
    r"|deserves?|earns?|merits?|receives?|say|call|settle|land|go|overall)"
    rf"{_BETWEEN},?[ \t]+[*_`]*(?={NUMBER})",
    re.IGNORECASE,
)
# A condition or a report may be a comma away from the number; a denial belongs to its clause.
_REPORTED = re.compile(
    r"\b(?:if|unless|whether|ask(?:s|ed|ing)?|claim(?:s|ed|ing)?|says|said|tells|told|telling"
    r"|demand(?:s|ed|ing)?|instruct(?:s|ed|ing)?|insist(?:s|ed|ing)?|request(?:s|ed|ing)?)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|never|no|cannot|nor|could|might|may|tempted)\b|n['\u2019]t\b", re.IGNORECASE
)
_CONDITION = re.compile(r"[^.!?\n]*\b(?:if|unless)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|\n")
_LONGEST_SENTENCE = 300

_QUOTATIONS = re.compile(
    r"^[ \t]*>[^\n]*"
    r"|```.*?```|~~~.*?~~~|`[^`\n]*`"
    r"|\"[^\"]{0,2000}\"|\u201c[^\u201d]{0,2000}\u201d|\u00ab[^\u00bb]{0,2000}\u00bb"
    # Bounded, because each of many opening marks would look for the end of the line.
    r"|\u2018[^\u2019\n]{0,500}\u2019(?!\w)|(?<!\w)'[^'\n]*'(?!\w)",
    re.MULTILINE | re.DOTALL,
)
_LAYOUT = re.compile(r"[\s\\*_`]+")


@lru_cache(maxsize=4)
def _quotations(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in _QUOTATIONS.finditer(text))


def is_quoted(text: str, at: int) -> bool:
    """Return whether a position in a text is inside a quotation."""
    spans = _quotations(text)
    before = bisect_right(spans, at, key=lambda span: span[0])
    return before > 0 and at < spans[before - 1][1]


def is_copied(piece: str, material: Iterable[str]) -> bool:
    """Return whether a piece of a reply occurs in the material, ignoring layout."""
    wanted = _LAYOUT.sub("", piece).casefold()
    return any(wanted in _bare(text) for text in material)


@lru_cache(maxsize=16)
def _bare(text: str) -> str:
    # A reply is compared with the same material many times.
    return _LAYOUT.sub("", text).casefold()


def own_sentences(text: str) -> Iterator[re.Match[str]]:
    """Yield where a sentence gives a score, up to its number.

    Neither one that is quoted or reported, nor one that is denied or would hold on a condition.
    """
    for match in SENTENCE.finditer(text):
        start = max(0, match.start() - _LONGEST_SENTENCE)
        before = _SENTENCE_END.split(text[start : match.start()])[-1]
        clause = before.rpartition(",")[2]
        after = text[match.end() : match.end() + _LONGEST_SENTENCE]
        if not (
            _REPORTED.search(before)
            or _DENIED.search(clause)
            or _CONDITION.match(re.sub(NUMBER, "", after, count=1))
            or is_quoted(text, match.start())
        ):
            yield match


_GIVEN = (
    r"[*_`]*(?:\s*(?:/|out\s+of)\s*[0-9]+)?[*_`]*"
    r"(?=\s*(?:\Z|\n|[.,;:!?)|])|\s+(?:overall|for|on|because|since|as|points?)\b)"
)
_WINNER = re.compile(
    r"\b(?:winner|verdict|preference)\b[*_` ]*(?:[:=]|\bis\b)[*_` ]*(?:response\s+)?(?:[AB]|tie)\b"
    r"|\bresponse\s+[AB]\s+(?:wins|is\s+(?:clearly\s+|much\s+|slightly\s+)?better)\b"
    r"|\bI\s+(?:clearly\s+)?(?:prefer|choose|pick)\s+(?:response\s+)?[AB]\b",
    re.IGNORECASE,
)


def states_a_score(text: str, names: Iterable[str]) -> bool:
    """Return whether prose gives a score, overall or for one of the named criteria."""
    found = [*_labeled(tuple(names)).finditer(text)]
    for match in own_sentences(text):
        if re.compile(NUMBER + _GIVEN).match(text, match.end()):
            return True
    return any(not is_quoted(text, match.start()) for match in found)


def states_a_winner(text: str) -> bool:
    """Return whether prose states which of two responses is better."""
    return any(not is_quoted(text, match.start()) for match in _WINNER.finditer(text))


@lru_cache(maxsize=32)
def _labeled(names: tuple[str, ...]) -> re.Pattern[str]:
    words = [re.escape(name).replace("_", "[_ ]") for name in names]
    what = "|".join(["scores?", "rating", "grade", *words])
    return re.compile(
        rf"(?<![\w./])[0-9.]+\s*(?:/|out\s+of)\s*(?:[2-57]|10|100){_GIVEN}"
        rf"|\b(?:{what})\b[ \t*_`\"']*(?:\([^()\n]{{0,40}}\)[ \t*_`]*)?"
        rf"(?:[:=]|\bis\b|\bof\b|[-\u2013\u2014](?=\s))[ \t*_`]*{NUMBER}{_GIVEN}",
        re.IGNORECASE,
    )
