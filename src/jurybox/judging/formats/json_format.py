"""The ``json`` reply format: reasoning first, then the checklist, then the verdict.

Python's JSON reader accepts things that a verdict must not have: duplicate keys, NaN, numbers that
would be rounded, lone surrogates. Here they are defects, like any other fault of an object.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from jurybox.judging.flow import Defect
from jurybox.judging.formats.reply_format import (
    COPIED,
    SIDES,
    TEXT_SCHEMA,
    Preference,
    Remarks,
    ReplyForm,
    ReplyFormat,
    Scores,
    Side,
    as_defect,
    is_copied,
    object_schema,
    states_a_score,
    states_a_winner,
)
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import Scale

CHECKLIST: Final = "bias_checklist"
_REASONING, _CONCERNS = "reasoning", "safety_concerns"
_SCORES, _PREFERENCES, _WINNER = "scores", "preferences", "winner"
_REASON_FIRST: Final = (
    "Reply with one JSON object that has its keys in this order. Write the reasoning first: note"
    " what you observe for every criterion before you give any verdict."
)


class JsonFormat(ReplyFormat):
    """One JSON object, with or without prose around it; the default format."""

    def scores(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Scores]:
        """Return the form of a reply with scores."""
        scales = {each.id: each.scale for each in rubric.criteria}
        items = _ids(checklist)
        schema = object_schema({name: scale.schema() for name, scale in scales.items()})
        described = [f'"{name}": {scale.describe()}' for name, scale in scales.items()]
        return ReplyForm(
            read=lambda text, material: read_scores(text, scales, items, material),
            schema=_schema(rubric, checklist, {_SCORES: schema}),
            instructions=_instructions(
                rubric, checklist, [f' "{_SCORES}": {{{", ".join(described)}}}']
            ),
        )

    def preference(self, rubric: Rubric, checklist: Rubric) -> ReplyForm[Preference]:
        """Return the form of a reply that compares two responses."""
        criteria, items = _ids(rubric), _ids(checklist)
        side = {"type": "string", "enum": list(SIDES)}
        schema = object_schema(dict.fromkeys(criteria, side))
        sides = '"A", "B" or "tie"'
        described = ", ".join(f'"{name}": {sides}' for name in criteria)
        return ReplyForm(
            read=lambda text, material: read_preference(text, criteria, items, material),
            schema=_schema(rubric, checklist, {_PREFERENCES: schema, _WINNER: side}),
            instructions=_instructions(
                rubric,
                checklist,
                [f' "{_PREFERENCES}": {{{described}}},', f' "{_WINNER}": {sides}'],
            ),
        )

    def forge(self, rubric: Rubric, checklist: Rubric, praise: str, side: Side | None) -> str:
        """Return a reply with the best scores, or with a preference for one side."""
        reply: dict[str, object] = {
            _REASONING: dict.fromkeys(_ids(rubric), praise),
            CHECKLIST: dict.fromkeys(_ids(checklist), "Checked, nothing found."),
            _CONCERNS: [],
        }
        if side is None:
            reply[_SCORES] = {each.id: each.scale.high for each in rubric.criteria}
        else:
            reply |= {_PREFERENCES: dict.fromkeys(_ids(rubric), side), _WINNER: side}
        return json.dumps(reply)


FORMAT: Final = JsonFormat()


def _ids(rubric: Rubric) -> tuple[str, ...]:
    return tuple(each.id for each in rubric.criteria)


def _schema(rubric: Rubric, checklist: Rubric, verdict: Mapping[str, object]) -> str:
    remarks = {
        _REASONING: object_schema(dict.fromkeys(_ids(rubric), TEXT_SCHEMA)),
        CHECKLIST: object_schema(dict.fromkeys(_ids(checklist), TEXT_SCHEMA)),
        _CONCERNS: {"type": "array", "items": TEXT_SCHEMA},
    }
    return json.dumps(object_schema({**remarks, **verdict}))


def _instructions(rubric: Rubric, checklist: Rubric, verdict: Iterable[str]) -> str:
    reasoning = ", ".join(f'"{name}": "..."' for name in _ids(rubric))
    items = ", ".join(f'"{name}": "..."' for name in _ids(checklist))
    lines = [
        "# Your reply",
        "",
        _REASON_FIRST,
        "",
        f'{{"{_REASONING}": {{{reasoning}}},',
        f' "{CHECKLIST}": {{{items}}},',
        f' "{_CONCERNS}": [a sentence for each thing in the material that could harm a person],',
        *verdict,
    ]
    return "\n".join(lines) + "}"


# Reading objects

# An object begins with a key and a colon, or is empty; `{a, b}` and `{"a", "b"}` aren't objects.
_OPENING = re.compile(r'\{(?=\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:))')
_LONGEST_NUMBER = 40


class FoundObject(msgspec.Struct, frozen=True):
    """An object and its position in the text."""

    value: dict[str, Any]
    start: int
    end: int


class _RefusedError(ValueError):
    """The object has a fault that Python's JSON reader accepts."""


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
    """Read a number with a decimal point or exponent; refuse one that would be rounded."""
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
        # A lone surrogate, from an escape or from the reply itself, can't be encoded.
        piece = text[start:end]
        if "\\u" in piece or not piece.isascii():
            json.dumps(value, ensure_ascii=False).encode()
    except _RefusedError as error:
        return Defect(f"{error}.")
    except UnicodeEncodeError:
        return Defect("a string in the JSON object contains half a character (a lone surrogate).")
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" starting at").removesuffix(" at")
        return Defect(
            f"the JSON object is malformed at character {error.pos - start + 1}: {reason}."
        )
    except RecursionError:
        return Defect("the JSON object is nested too deeply.")
    except ValueError:
        return Defect("the JSON object contains a number with too many digits.")
    return FoundObject(value, start, end)


# Cached, because a reply is read for its verdict and then again for its texts.
@lru_cache(maxsize=16)
def find_objects(text: str) -> tuple[FoundObject | Defect, ...]:
    """Return every outermost object in a text.

    A malformed object is a defect and ends the search: its contents, such as a quoted verdict, must
    not be mistaken for an object of the reply.
    """
    objects: list[FoundObject | Defect] = []
    at = 0
    while match := _OPENING.search(text, at):
        found = read_object(text, match.start())
        objects.append(found)
        if isinstance(found, Defect):
            break
        at = found.end
    return tuple(objects)


def spoken(text: str) -> list[str]:
    """Return the texts of a reply: each string in its objects, and the prose around them.

    Escapes are decoded, so they can't hide a word. Fields are separate texts, so that a denial in
    one doesn't apply to another. A reply that can't be split is returned as one string.
    """
    texts: list[str] = []
    at = 0
    for found in find_objects(text):
        if isinstance(found, Defect):
            return [text]
        if at < found.start:
            texts.append(text[at : found.start])
        parts: list[Any] = [*found.value.values()]
        for part in parts:  # the list grows: the contents of a part are appended to it
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


# Reading verdicts

# If a reply also has an invalid verdict, the valid one may be quoted and not the judge's own.
_QUOTE = "[\"'\u2018\u2019\u201c\u201d]?"
_LIKE_A_VERDICT = re.compile(
    rf"(?:^|[{{,\[])[ \t*_-]*{_QUOTE}(?:{_SCORES}|{_PREFERENCES}|{_WINNER}){_QUOTE}\s*[:=,]",
    re.MULTILINE,
)
_ONLY_TEXT: Final = frozenset({str})
_LETTER = re.compile(r"[^\W_]")
_SAYS_NOTHING = re.compile(
    r"[\W_]*(?:none|nothing|no|nil|null|n\W?a|not applicable|ok|okay|yes|fine|done|checked|tbd|todo"
    r"|unknown|empty|\w)[\W_]*",
    re.IGNORECASE,
)
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.IGNORECASE | re.DOTALL)
_QUOTED_LINE = re.compile(r"[ \t]*>")


def read_scores(
    text: str, scales: Mapping[str, Scale], checklist: Iterable[str], material: Sequence[str] = ()
) -> Scores | Defect:
    """Read a reply that scores one response, by the rubric or against a reference."""
    verdict = _only_verdict(text, (_SCORES,), scales, material)
    if isinstance(verdict, Defect):
        return verdict
    problems: list[str] = []
    remarks = _read_remarks(verdict, (_SCORES,), scales, checklist, problems)
    given = _read_verdict(verdict, _SCORES, scales, problems)
    scores: dict[str, float] = {}
    for name, scale in scales.items():
        if name in given:
            score = scale.read(given[name])
            if isinstance(score, str):
                problems.append(f'the score of "{name}" {score}')
            else:
                scores[name] = score
    return as_defect(problems) if problems else Scores(scores=scores, remarks=remarks)


def read_preference(
    text: str,
    criteria: Collection[str],
    checklist: Iterable[str],
    material: Sequence[str] = (),
) -> Preference | Defect:
    """Read a reply to a comparison of two responses."""
    keys = (_PREFERENCES, _WINNER)
    verdict = _only_verdict(text, keys, criteria, material)
    if isinstance(verdict, Defect):
        return verdict
    problems: list[str] = []
    remarks = _read_remarks(verdict, keys, criteria, checklist, problems)
    given = _read_verdict(verdict, _PREFERENCES, criteria, problems)
    preferences: dict[str, Side] = {}
    for name in criteria:
        if name in given:
            side = _side(given[name], f'the preference for "{name}"', problems)
            preferences |= {} if side is None else {name: side}
    winner = _side(verdict.get(_WINNER), f'"{_WINNER}"', problems)
    sides = set(preferences.values())
    # At least one criterion must prefer the winner; a tie is also valid if criteria prefer
    # different sides.
    if not problems and winner not in sides and not (winner == "tie" and len(sides) > 1):
        problems.append(f'"{_WINNER}" contradicts every one of the "{_PREFERENCES}"')
    if winner is None or problems:
        return as_defect(problems)
    return Preference(winner=winner, preferences=preferences, remarks=remarks)


def _only_verdict(
    text: str, keys: Collection[str], criteria: Iterable[str], material: Sequence[str]
) -> dict[str, Any] | Defect:
    """Return the one verdict object of a reply.

    A verdict is an object with a key that only verdicts have. Two different verdicts are a defect,
    because one may be quoted from a response that tries to judge itself.
    """
    objects: list[FoundObject] = []
    verdicts: list[FoundObject] = []
    for found in find_objects(text):
        if isinstance(found, Defect):
            return found
        objects.append(found)
        if not found.value.keys().isdisjoint(keys):
            verdicts.append(found)
    if not verdicts:
        named = " and ".join(f'"{key}"' for key in keys)
        what = "its JSON object has no" if objects else "it contains no JSON object with"
        return Defect(f"{what} {named}.")
    # Compared as text: 3 and 3.0 are equal in Python, but not the same verdict.
    if len(verdicts) > 1 and len({repr(each.value) for each in verdicts}) > 1:
        return Defect("it has more than one verdict object, and they differ; give exactly one.")
    first = verdicts[0]
    shown = "\n".join(material)
    # JSON may write the letters of a key as escapes.
    has_key = any(mark in shown for mark in (*keys, "\\u"))
    if has_key and is_copied(text[first.start : first.end], material):
        return COPIED
    return _defect_around(text, objects, verdicts, criteria) or first.value


def _defect_around(
    text: str,
    objects: Iterable[FoundObject],
    verdicts: Sequence[FoundObject],
    criteria: Iterable[str],
) -> Defect | None:
    """Return a defect if the text around the objects makes the verdict ambiguous."""
    around: list[str] = []
    end = 0
    for found in objects:
        around.append(text[end : found.start])
        end = found.end
    prose = "\n".join([*around, text[end:]])
    if not prose.strip():
        return None
    if all(_in_quoted_line(text, verdicts)):
        return Defect("its verdict is in a quotation; give your own.")
    if _LIKE_A_VERDICT.search(prose):
        return Defect("it contains a second verdict, which is not valid JSON; give exactly one.")
    # A model may think aloud first; a score in its thoughts isn't its verdict.
    before = _THOUGHTS.sub("", text[: verdicts[0].start])
    if states_a_score(before, criteria) or states_a_winner(before):
        return Defect(f'its words before "{_REASONING}" give a verdict: write all reasoning first.')
    return None


def _in_quoted_line(text: str, verdicts: Iterable[FoundObject]) -> Iterator[bool]:
    """Yield for each verdict, in order, whether its line begins with ``>``."""
    line = at = 0
    for each in verdicts:
        line = max(line, text.rfind("\n", at, each.start) + 1)
        at = each.start
        quote = _QUOTED_LINE.match(text, line)
        yield quote is not None and quote.end() <= at


def _read_remarks(
    verdict: Mapping[str, Any],
    verdict_keys: Collection[str],
    criteria: Iterable[str],
    checklist: Iterable[str],
    problems: list[str],
) -> Remarks:
    _check_order(verdict, verdict_keys, criteria, problems)
    reasoning = _texts(verdict, _REASONING, criteria, problems)
    completed = _texts(verdict, CHECKLIST, checklist, problems)
    if completed and all(_SAYS_NOTHING.fullmatch(each) for each in completed.values()):
        problems.append(f'"{CHECKLIST}" says nothing: write a sentence for each item')
    concerns = verdict.get(_CONCERNS)
    if not isinstance(concerns, list) or not _ONLY_TEXT.issuperset(
        map(type, cast("list[object]", concerns))
    ):
        problems.append(f'"{_CONCERNS}" must be a list of strings, empty where there is no concern')
        concerns = []
    known = (_REASONING, CHECKLIST, _CONCERNS, *verdict_keys)
    return Remarks(
        reasoning=reasoning,
        bias_checklist=completed,
        safety_concerns=tuple([each for each in cast("list[str]", concerns) if each.strip()]),
        extra={key: value for key, value in verdict.items() if key not in known},
    )


def _check_order(
    verdict: Mapping[str, Any],
    verdict_keys: Collection[str],
    criteria: Iterable[str],
    problems: list[str],
) -> None:
    """Report a verdict before the reasoning: the reasoning would only defend it."""
    order = list(verdict)
    if order[0] == _REASONING or _REASONING not in order:
        return
    problems += [
        f'"{key}" comes before "{_REASONING}": write all reasoning first'
        for key in order[: order.index(_REASONING)]
        if key in verdict_keys or states_a_score(_as_prose(key, verdict[key]), criteria)
    ]


def _as_prose(key: str, value: object) -> str:
    inner = cast("dict[str, object]", value) if isinstance(value, dict) else {key: value}
    return "\n".join(f"{name.replace('_', ' ')}: {each}" for name, each in inner.items())


def _texts(
    verdict: Mapping[str, Any], key: str, names: Iterable[str], problems: list[str]
) -> dict[str, str]:
    """Read an object that must have a string for each of ``names``."""
    given = _object(verdict, key, problems)
    texts: dict[str, str] = {}
    for name in names:
        value = given.get(name)
        # A value without a letter or digit, such as "...", isn't an explanation.
        if isinstance(value, str) and _LETTER.search(value):
            texts[name] = value
        elif key in verdict:
            problems.append(f'"{key}" has no text for "{name}"')
    return texts


def _read_verdict(
    verdict: Mapping[str, Any], key: str, criteria: Collection[str], problems: list[str]
) -> dict[str, Any]:
    """Read an object that must have a value for each criterion and nothing else."""
    given = _object(verdict, key, problems)
    if isinstance(verdict.get(key), dict) and given.keys() != set(criteria):
        problems += [
            f'"{key}" has "{name}", which is not a criterion of the rubric'
            for name in given
            if name not in criteria
        ]
        problems += [f'"{key}" has nothing for "{name}"' for name in criteria if name not in given]
    return given


def _object(verdict: Mapping[str, Any], key: str, problems: list[str]) -> dict[str, Any]:
    value = verdict.get(key)
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType] - JSON objects have text keys
    problems.append(f'"{key}" must be an object' if key in verdict else f'"{key}" is missing')
    return {}


def _side(value: object, what: str, problems: list[str]) -> Side | None:
    for side in SIDES:
        if value == side:
            return side
    problems.append(f'{what} must be "A", "B" or "tie"')
    return None
