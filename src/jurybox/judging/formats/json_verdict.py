"""The ``json`` reply format: reasoning first, then the checklist, then the verdict (E4 to E7)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from jurybox.judging.flow import Defect
from jurybox.judging.formats.objects import Found, find_objects
from jurybox.judging.verdict import SIDES, Preference, Remarks, Scores, Side
from jurybox.rubric.scale import Scale

REASONING, CHECKLIST, CONCERNS = "reasoning", "bias_checklist", "safety_concerns"
SCORES, PREFERENCES, WINNER = "scores", "preferences", "winner"
_IN_SCORES = frozenset({REASONING, CHECKLIST, CONCERNS, SCORES})
_IN_PREFERENCES = frozenset({REASONING, CHECKLIST, CONCERNS, PREFERENCES, WINNER})

# The judge's own verdict may be the one that is no JSON, and the valid one a quotation.
_QUOTE = "[\"'\u2018\u2019\u201c\u201d]?"
_LIKE_A_VERDICT = re.compile(
    rf"(?:^|[{{,\[])[ \t*_-]*{_QUOTE}(?:{SCORES}|{PREFERENCES}|{WINNER}){_QUOTE}\s*[:=,]",
    re.MULTILINE,
)
_ONLY_TEXT = frozenset({str})
_LETTER = re.compile(r"[^\W_]")
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*\Z", re.MULTILINE)


class _Problems:
    """The faults of one reply; all of them are said at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        self.found.append(problem)

    def defect(self) -> Defect | None:
        return Defect(" ".join(f"{problem}." for problem in self.found)) if self.found else None


def read_scores(
    text: str, scales: Mapping[str, Scale], checklist: Iterable[str]
) -> Scores | Defect:
    """Read a reply to a rubric or reference evaluation."""
    verdict = _only_verdict(text, (SCORES,))
    if isinstance(verdict, Defect):
        return verdict
    problems = _Problems()
    _check_order(verdict, (SCORES,), problems)
    remarks = _read_remarks(verdict, scales, checklist, _IN_SCORES, problems)
    given = _object(verdict, SCORES, problems)
    if given.keys() != scales.keys() and isinstance(verdict.get(SCORES), dict):
        _check_names(given, scales, SCORES, problems)
    scores: dict[str, float] = {}
    for name, scale in scales.items():
        if name in given:
            problem = scale.problem_with(given[name])
            if problem is None:
                scores[name] = given[name]
            else:
                problems.add(f'the score of "{name}" {problem}')
    return problems.defect() or Scores(scores=scores, remarks=remarks)


def read_preference(
    text: str, criteria: Iterable[str], checklist: Iterable[str]
) -> Preference | Defect:
    """Read a reply to a comparison of two responses."""
    verdict = _only_verdict(text, (PREFERENCES, WINNER))
    if isinstance(verdict, Defect):
        return verdict
    problems = _Problems()
    criteria = tuple(criteria)
    keys = (PREFERENCES, WINNER)
    _check_order(verdict, keys, problems)
    remarks = _read_remarks(verdict, criteria, checklist, _IN_PREFERENCES, problems)
    given = _object(verdict, PREFERENCES, problems)
    if isinstance(verdict.get(PREFERENCES), dict):
        _check_names(given, criteria, PREFERENCES, problems)
    preferences: dict[str, Side] = {}
    for name in criteria:
        if name in given:
            side = _side(given[name], f'the preference for "{name}"', problems)
            preferences |= {} if side is None else {name: side}
    winner = _side(verdict.get(WINNER), f'"{WINNER}"', problems)
    defect = problems.defect()
    if defect is not None or winner is None:
        return defect or Defect('"winner" is missing.')
    return Preference(winner=winner, preferences=preferences, remarks=remarks)


def _only_verdict(text: str, keys: Iterable[str]) -> dict[str, Any] | Defect:
    """Return the one verdict object of a reply.

    A verdict is an object with a key that only verdicts have. Two that differ are none: one may be
    a quotation from a response that tries to judge itself (E7).
    """
    objects: list[Found] = []
    verdicts: list[dict[str, Any]] = []
    for found in find_objects(text):
        if isinstance(found, Defect):
            return found
        objects.append(found)
        if not found.value.keys().isdisjoint(keys):
            verdicts.append(found.value)
    if not verdicts:
        named = " and ".join(f'"{key}"' for key in keys)
        what = "its JSON object has no" if objects else "it holds no JSON object with"
        return Defect(f"{what} {named}.")
    if len(verdicts) > 1 and any(_differs(verdicts[0], other) for other in verdicts[1:]):
        return Defect("it holds more than one verdict object, and they differ; give exactly one.")
    return _defect_beside(text, objects, verdicts) or verdicts[0]


def _defect_beside(
    text: str, objects: Iterable[Found], verdicts: Iterable[dict[str, Any]]
) -> Defect | None:
    """Say what the words around the objects take from the verdict."""
    beside = _beside(text, objects)
    if beside.isspace():
        return None
    if any(_QUOTED_LINE.search(text[: each.start]) for each in objects if each.value in verdicts):
        return Defect("its verdict stands in a quotation; give your own.")
    if _LIKE_A_VERDICT.search(beside):
        return Defect("it holds something like a second verdict that is no JSON; give exactly one.")
    return None


def _beside(text: str, objects: Iterable[Found]) -> str:
    """Return the text without its objects."""
    pieces: list[str] = []
    at = 0
    for found in objects:
        pieces.append(text[at : found.start])
        at = found.end
    return "\n".join([*pieces, text[at:]])


def _differs(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON
    # Compared with types and order: 3 and 3.0 are equal in Python, and not the same verdict.
    return repr(one) != repr(other)


def _read_remarks(
    verdict: Mapping[str, Any],
    criteria: Iterable[str],
    checklist: Iterable[str],
    known: frozenset[str],
    problems: _Problems,
) -> Remarks:
    reasoning = _texts(verdict, REASONING, criteria, problems)
    completed = _texts(verdict, CHECKLIST, checklist, problems)
    concerns = _list_of_texts(verdict.get(CONCERNS))
    if concerns is None:
        problems.add(f'"{CONCERNS}" must be a list of texts, empty where there is no concern')
    return Remarks(
        reasoning=reasoning,
        bias_checklist=completed,
        safety_concerns=tuple([each for each in concerns if each.strip()]) if concerns else (),
        extra={key: value for key, value in verdict.items() if key not in known},
    )


def _list_of_texts(value: object) -> list[str] | None:
    if not isinstance(value, list):
        return None
    given = cast("list[str]", value)
    return given if _ONLY_TEXT.issuperset(map(type, given)) else None


def _check_order(
    verdict: Mapping[str, Any], verdict_keys: tuple[str, ...], problems: _Problems
) -> None:
    """Reasoning written after a score only defends it (E4)."""
    order = list(verdict)
    if order[0] == REASONING:
        return
    for key in verdict_keys:
        if REASONING in verdict and key in verdict and order.index(key) < order.index(REASONING):
            problems.add(f'"{key}" stands before "{REASONING}": write all reasoning first')


def _texts(
    verdict: Mapping[str, Any], key: str, names: Iterable[str], problems: _Problems
) -> dict[str, str]:
    """Read an object that must have a non-empty text for each of some names."""
    given = _object(verdict, key, problems)
    texts: dict[str, str] = {}
    for name in names:
        value = given.get(name)
        # Three dots, or what can't be seen, is no text.
        if isinstance(value, str) and _LETTER.search(value):
            texts[name] = value
        elif key in verdict:
            problems.add(f'"{key}" has no text for "{name}"')
    return texts


def _object(verdict: Mapping[str, Any], key: str, problems: _Problems) -> dict[str, Any]:
    value = verdict.get(key)
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType] - JSON objects have text keys
    problems.add(f'"{key}" must be an object' if key in verdict else f'"{key}" is missing')
    return {}


def _check_names(
    given: Mapping[str, Any], criteria: Iterable[str], key: str, problems: _Problems
) -> None:
    criteria = tuple(criteria)
    for name in given:
        if name not in criteria:
            problems.add(f'"{key}" has "{name}", which is no criterion of the rubric')
    for name in criteria:
        if name not in given:
            problems.add(f'"{key}" has nothing for "{name}"')


def _side(value: object, what: str, problems: _Problems) -> Side | None:
    for side in SIDES:
        if value == side:
            return side
    problems.add(f'{what} must be "A", "B" or "tie"')
    return None
