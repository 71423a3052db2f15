"""Reads rules, checks and lexicons from fenced YAML blocks.

In a document that extends another one, a block lists changes to the base's block.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta

from jurybox.documents.field_reader import FieldReader, kind_of, node_at, parse_name
from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import show_number
from jurybox.documents.plain_yaml import WORDS, Items, Node, Pairs, Scalar, value_of
from jurybox.errors import ParseError
from jurybox.rubric import rules
from jurybox.rubric.checks import Check, read_check
from jurybox.rubric.metrics import read_bound
from jurybox.rubric.scale import Scale
from jurybox.text_format import listed, nearest

LEXICON_KEYS: Final = ("match", "phrases")
CHANGE_KEYS: Final = ("add", "remove")
"""The keys with which a lexicon changes the base's lexicon of the same name."""
RULES_KEYS: Final = ("base", "adjust", "lexicons")
ADJUSTMENT_KEYS: Final = ("add", "subtract", "when", "why")
RULE_CHANGE_KEYS: Final = ("replace", "remove")
"""The keys with which an adjustment changes one of the base's adjustments."""

_PHRASE_KEYS: Final[dict[str, tuple[rules.Source, bool]]] = {
    "response_has": ("response", True),
    "response_lacks": ("response", False),
    "user_has": ("user", True),
    "user_lacks": ("user", False),
    "earlier_has": ("earlier", True),
    "earlier_lacks": ("earlier", False),
}
_MOST_SPELLINGS: Final = 10_000  # each is searched for, so more would take too much memory
_SIGNAL_KEYS: Final = ("signal", "no_signal")
CONDITION_KEYS: Final = (*_PHRASE_KEYS, *rules.WORD_COUNTS, *_SIGNAL_KEYS)

Ends = tuple[float | None, float | None]
Phrases = Annotated[tuple[str, ...], Meta(examples=["[first phrase, second]"])]


class _LexiconText(msgspec.Struct, frozen=True, kw_only=True):
    """A lexicon as written, or a change to the base's: phrases to add and to remove."""

    match: rules.Match = "word-start"
    phrases: Phrases = ()
    add: Phrases = ()
    remove: Phrases = ()


def read_lexicons(
    node: Node | None, base: Sequence[rules.Lexicon], findings: Findings
) -> tuple[rules.Lexicon, ...]:
    """Read lexicons by name: the base's, changed or replaced, and new ones."""
    lexicons, reader = {each.name: each for each in base}, FieldReader(findings)
    for key, value in node.pairs if isinstance(node, Pairs) else ():
        reader.parse(key, "bad-name", parse_name)
        lexicon = _read_lexicon(key, value, lexicons, reader)
        if lexicon is not None:
            _check_phrases(lexicon, f"the lexicon `{key.text}`", value, findings)
            lexicons[key.text] = lexicon
    return tuple(lexicons.values())


def _read_lexicon(
    key: Scalar, node: Node, known: dict[str, rules.Lexicon], reader: FieldReader
) -> rules.Lexicon | None:
    what, old = f"the lexicon `{key.text}`", known.get(key.text)
    if not isinstance(node, Pairs):
        phrases = reader.value(Phrases, node, what)
        return None if phrases is UNSET else rules.Lexicon(name=key.text, phrases=phrases)
    reader.note_unknown(node, what, (*LEXICON_KEYS, *(CHANGE_KEYS if known else ())))
    given = reader.fields(_LexiconText, node)
    if not any(node_at(node, each) for each in CHANGE_KEYS):
        reader.require(node, what, "phrases", "[first phrase, second]")
        return rules.Lexicon(name=key.text, **given) if "phrases" in given else None
    if old is None:
        hint = nearest(key.text, known, f"use one of {listed(known)}")
        problem = f"there is no lexicon `{key.text}` to change"
        reader.findings.add(key.place, "unknown-lexicon", problem, hint)
        return None
    kept = {each.casefold(): each for each in old.phrases}
    for phrase in given.get("remove", ()):
        if kept.pop(phrase.casefold(), None) is None:
            problem = f"the base's version of {what} has no phrase `{phrase}`"
            hint = nearest(phrase, kept.values(), "leave it out")
            place = _phrase_place(node, phrase)
            reader.findings.add(place, "unknown-phrase", problem, hint)
    phrases = (*kept.values(), *given.get("add", ()))
    return msgspec.structs.replace(old, phrases=phrases)


def _check_phrases(lexicon: rules.Lexicon, what: str, node: Node, findings: Findings) -> None:
    """Report phrases that would never be found in a text."""
    if not lexicon.phrases:
        findings.add(node.place, "bad-lexicon", f"{what} is empty", "list at least one phrase")
    for phrase in lexicon.phrases:
        problem, hint = "", ""
        if lexicon.name in rules.WORD_LISTS and " " in phrase:
            problem = "several words, but the lexicon is matched word by word"
            hint = "list single words"
        elif lexicon.match == "pattern" and not all(map(str.strip, phrase.split(rules.GAP))):
            problem, hint = "a gap without a word on one side", f"put `{rules.GAP}` between words"
        elif lexicon.match == "pattern" and _spellings(phrase) > _MOST_SPELLINGS:
            problem = f"more than {_MOST_SPELLINGS:,} combinations of its choices"
            hint = "split it into several phrases"
        if problem:
            problem = f"`{phrase}` of {what} has {problem}"
            findings.add(_phrase_place(node, phrase), "bad-lexicon", problem, hint)


def _spellings(phrase: str) -> int:
    """Return how many combinations the choices of a phrase's longest part have."""
    return max(
        math.prod(each.count("|") + 1 for each in part.split(")"))
        for part in phrase.split(rules.GAP)
    )


def _phrase_place(node: Node, phrase: str) -> Place:
    """Return the place of the last entry of a list, or of a mapping's lists, with this text."""
    lists = [value for _, value in node.pairs] if isinstance(node, Pairs) else [node]
    entries = [each for every in lists if isinstance(every, Items) for each in every.items]
    found = (e for e in entries if isinstance(e, Scalar) and e.text.split() == phrase.split())
    return max((each.place for each in found), default=node.place)


class _ConditionReader:
    """Reads conditions, and checks that the lexicons they name exist."""

    def __init__(self, lexicons: Sequence[rules.Lexicon], findings: Findings) -> None:
        self._lexicons = [lexicon.name for lexicon in lexicons]
        self._findings = findings

    def read_sets(self, node: Node) -> Iterator[tuple[rules.Condition, ...]]:
        """Yield each set of conditions: a mapping is one set, a list has several."""
        for each in node.items if isinstance(node, Items) and node.items else (node,):
            if not isinstance(each, Pairs) or not each.pairs:
                problem = f"a condition is {kind_of(each) if value_of(each) else 'empty'}"
                hint = "write it as `{signal: question}`"
                self._findings.add(each.place, "bad-condition", problem, hint)
                continue
            conditions = [self._read(key, value) for key, value in each.pairs]
            yield tuple(condition for condition in conditions if condition is not None)

    def _read(self, key: Scalar, value: Node) -> rules.Condition | None:
        name, text = key.text, value.text if isinstance(value, Scalar) else ""
        if name in _PHRASE_KEYS:
            source, present = _PHRASE_KEYS[name]
            lexicon = self._read_phrases(value) if isinstance(value, Items) else text
            hint = "define it under `lexicons`, or list the phrases in place"
            known = isinstance(value, Items) or self._knows("lexicon", value, self._lexicons, hint)
            return rules.HasPhrase(text=source, lexicon=lexicon, present=present) if known else None
        if name in _SIGNAL_KEYS:
            hint = f"use one of {listed(rules.SIGNALS)}"
            if text in rules.NUMERIC_SIGNALS:
                hint = f'it is a number, so give a bound: `{text}: ">= 1"`'
            known = self._knows("signal", value, rules.SIGNALS, hint)
            least = rules.LEAST.get(text, 1)
            low, high = (least, None) if name == "signal" else (None, least - 1)
            return rules.SignalWithin(signal=text, low=low, high=high) if known else None
        if name in rules.NUMERIC_SIGNALS or name in rules.WORD_COUNTS:
            return self._read_number(key, value)
        hint = f"use one of {listed(CONDITION_KEYS)}"
        hint = nearest(name, (*CONDITION_KEYS, *rules.NUMERIC_SIGNALS), hint)
        self._findings.add(key.place, "unknown-key", f"there is no condition `{name}`", hint)
        return None

    def _read_phrases(self, node: Items) -> tuple[str, ...]:
        found = FieldReader(self._findings).value(Phrases, node, "the list of phrases")
        phrases: tuple[str, ...] = () if found is UNSET else found
        lexicon = rules.Lexicon(name="", phrases=phrases)
        _check_phrases(lexicon, "the list of phrases", node, self._findings)
        return phrases

    def _knows(self, noun: str, node: Node, known: Iterable[str], hint: str) -> bool:
        """Return whether a name is known; if not, note it."""
        name = node.text if isinstance(node, Scalar) else ""
        if name in known:
            return True
        hint = hint if name in rules.NUMERIC_SIGNALS else nearest(name, known, hint)
        self._findings.add(
            node.place, f"unknown-{noun}", f"there is no {noun} {kind_of(node)}", hint
        )
        return False

    def _read_number(self, key: Scalar, value: Node) -> rules.SignalWithin | None:
        for lexicon in rules.SIGNAL_LEXICONS.get(key.text, ()):
            if lexicon not in self._lexicons:
                problem = f"the signal `{key.text}` needs a lexicon `{lexicon}`"
                hint = "define it under `lexicons`"
                self._findings.add(key.place, "unknown-lexicon", problem, hint)
        whole = key.text in rules.WORD_COUNTS
        ends = _ends_of(value.text, whole=whole) if isinstance(value, Scalar) else None
        if ends is None:
            example = '`10-30`, `">= 10"` or `"< 30"`' if whole else '`0.2..0.5` or `">= 0.2"`'
            problem, hint = f"`{key.text}` is {kind_of(value)}", f"give a range such as {example}"
            self._findings.add(value.place, "bad-condition", problem, hint)
            return None
        return rules.SignalWithin(signal=key.text, low=ends[0], high=ends[1])


def _ends_of(text: str, *, whole: bool) -> Ends | None:
    """Return the ends of a range of numbers, or of counts if ``whole``; None if not valid."""
    ends: Ends = (None, None)
    try:
        for each in read_bound(text):
            number = each.number
            above: dict[str, Ends] = {">=": (number, ends[1]), "<=": (ends[0], number)}
            counts = {">": (number + 1, None), "<": (None, number - 1), "==": (number, number)}
            ends = (above | counts if whole else above)[each.operator]
    except (ParseError, KeyError):
        return None
    is_count = all(end is None or (float(end).is_integer() and end >= 0) for end in ends)
    return ends if is_count or not whole else None


def build_rules(
    given: Node | None,
    base: rules.Rules | None,
    scale: Scale | None,
    shared: Sequence[rules.Lexicon],
    findings: Findings,
) -> rules.Rules | None:
    """Return the rules of a block, or the base's rules as changed by the block."""
    reader = FieldReader(findings)
    node = reader.open(Pairs, given, "the rules block", "write `key: value` lines")
    if node is None:
        return base
    reader.note_unknown(node, "a rules block", RULES_KEYS)
    if scale is not None and not scale.continuous:
        problem = f"automated rules give fractions, and the scale {scale} has whole numbers only"
        hint = f"use a continuous scale such as `{scale.as_continuous}`"
        findings.add(node.place, "rules-scale", problem, hint)
    if base is None:
        reader.require(node, "a rules block", "base", "0.5")
    block = reader.open(Pairs, node_at(node, "lexicons"), "`lexicons`", "give a mapping")
    lexicons = read_lexicons(block, () if base is None else base.lexicons, findings)
    for each in lexicons:
        if any(each.name == other.name for other in shared):
            problem = f"`{each.name}` is a shared lexicon already"
            findings.add(node.place, "name-taken", problem, "rename it, or use the shared one")
    conditions = _ConditionReader((*lexicons, *shared), findings)
    return rules.Rules(
        base=_read_base(node, base, scale, reader),
        adjustments=_read_adjustments(node, base, conditions, reader),
        lexicons=lexicons,
    )


def _read_base(
    node: Pairs, base: rules.Rules | None, scale: Scale | None, reader: FieldReader
) -> float:
    given = node_at(node, "base")
    inherited = 0.0 if base is None else base.base
    number = inherited if given is None else reader.value(float, given, "`base`")
    if number is UNSET or given is None:
        return inherited
    if scale is not None and scale.continuous and not scale.accepts(number):
        problem = f"the base {show_number(number)} is outside the scale {scale}"
        reader.findings.add(given.place, "out-of-range", problem, "start within the scale")
    return number


class _AdjustmentText(msgspec.Struct, frozen=True, kw_only=True):
    """An adjustment as written, without its conditions."""

    add: Annotated[float, Meta(gt=0)] | None = None
    subtract: Annotated[float, Meta(gt=0)] | None = None
    why: str | None = None


def _read_adjustments(
    node: Pairs, base: rules.Rules | None, conditions: _ConditionReader, reader: FieldReader
) -> tuple[rules.Adjustment, ...]:
    """Return the base's adjustments with changes applied, then the new ones."""
    inherited = () if base is None else base.adjustments
    kept: list[rules.Adjustment | None] = [*inherited]
    given = reader.open(Items, node_at(node, "adjust"), "`adjust`", "give a list of adjustments")
    for each in () if given is None else given.items:
        hint = "write `{add: 0.2, when: {...}}`"
        item = reader.open(Pairs, each, "an adjustment", hint)
        if item is None:
            continue
        changed = next((key for key in RULE_CHANGE_KEYS if node_at(item, key) and base), None)
        if changed == "remove":
            reader.note_unknown(item, "a removal", ("remove",))
        else:
            keys = (*ADJUSTMENT_KEYS, *(RULE_CHANGE_KEYS if base else ()))
            reader.note_unknown(item, "an adjustment", keys)
        if changed is None:
            kept.append(_read_adjustment(item, None, conditions, reader))
            continue
        at = _find_adjustment(inherited, node_at(item, changed), reader.findings)
        if at is not None:
            old = inherited[at]
            removed = changed == "remove"
            kept[at] = None if removed else _read_adjustment(item, old, conditions, reader)
    return tuple(each for each in kept if each is not None)


def _find_adjustment(
    known: Sequence[rules.Adjustment], wanted: Node | None, findings: Findings
) -> int | None:
    """Find an adjustment of the base by its `why`, or by its number, counted from 1."""
    text = wanted.text if isinstance(wanted, Scalar) else ""
    reasons = [each.why.casefold() for each in known]
    if reasons.count(text.casefold()) == 1 and text:
        return reasons.index(text.casefold())
    if text.isdecimal() and 1 <= int(text[:9]) <= len(known):
        return int(text[:9]) - 1
    if wanted is not None:
        several = "more than one" if text and text.casefold() in reasons else "no"
        problem = f"the base has {several} adjustment {kind_of(wanted)}"
        hint = f"give its `why`, or its number from 1 to {len(known)}"
        if several == "no":
            hint = nearest(text, [each.why for each in known if each.why], hint)
        findings.add(wanted.place, "unknown-rule", problem, hint)
    return None


def _read_adjustment(
    node: Pairs, base: rules.Adjustment | None, conditions: _ConditionReader, reader: FieldReader
) -> rules.Adjustment | None:
    """Read an adjustment; missing keys come from the base."""
    given = reader.fields(_AdjustmentText, node)
    when = node_at(node, "when")
    sets = () if when is None else tuple(conditions.read_sets(when))
    amounts = [key for key in ("add", "subtract") if node_at(node, key)]
    if len(amounts) != (1 if base is None else min(len(amounts), 1)):
        problem = "an adjustment has both `add` and `subtract`, or neither"
        reader.findings.add(node.place, "bad-adjustment", problem, "give one of the two")
        return None
    if base is None:
        reader.require(node, "an adjustment", "when", "{signal: question}")
    if any(key not in given for key in amounts):
        return None
    amount = given.get("add", -given.get("subtract", 0.0))
    if base is None:
        return rules.Adjustment(add=amount, when=sets, why=given.get("why", ""))
    return rules.Adjustment(
        add=amount or base.add,
        when=base.when if when is None else sets,
        why=given.get("why", base.why),
    )


def build_checks(node: Node, findings: Findings) -> tuple[Check, ...]:
    """Return the checks in a list."""
    if not isinstance(node, Items) or not node.items:
        what = kind_of(node) if value_of(node) else "empty"
        hint = "list its checks, such as `- contains: Paris`"
        findings.add(node.place, "bad-check", f"the checks block is {what}", hint)
        return ()
    checks: list[Check] = []
    for item in node.items:
        pairs = item.pairs if isinstance(item, Pairs) else ()
        places: dict[str, Place] = {key.text: value.place for key, value in pairs}
        check, faults = read_check(_entry(item))
        for fault in faults:
            place = places.get(fault.key, item.place)
            findings.add(place, fault.code, fault.problem, fault.hint)
        checks += [] if check is None else [check]
    return tuple(checks)


def _entry(item: Node) -> object:
    """Return a check as plain data; scalars keep their original text, such as `1.10`."""
    if not isinstance(item, Pairs):
        return _as_written(item)
    return {key.text: _as_written(value) for key, value in item.pairs}


def _as_written(node: Node) -> object:
    match node:
        case Items():
            return [_as_written(each) for each in node.items]
        case Scalar(text=text, quoted=quoted):
            return text if quoted or text not in WORDS else WORDS[text]
        case Pairs():
            return value_of(node)
