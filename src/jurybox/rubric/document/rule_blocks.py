"""The automated rules and checks of a criterion and the lexicons, read from fenced YAML."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from jurybox.documents.field_reader import NAME, NAME_HINT, Fields, kind_of
from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import show_number
from jurybox.documents.plain_yaml import (
    WORDS,
    Items,
    Node,
    Pairs,
    Scalar,
    read_yaml,
    value_of,
)
from jurybox.rubric.checks import Check, read_check
from jurybox.rubric.document.blocks import Fence
from jurybox.rubric.rules import (
    GAP,
    MATCHES,
    NUMERIC_SIGNALS,
    SIGNAL_LEXICONS,
    SIGNALS,
    WORD_LISTS,
    Adjustment,
    Condition,
    HasPhrase,
    HasSignal,
    Lexicon,
    Match,
    Rules,
    SignalWithin,
    Source,
    Speaker,
    WordCount,
)
from jurybox.rubric.scale import Scale
from jurybox.text_format import listed, nearest

LEXICON_KEYS: Final = ("match", "phrases")


def read_lexicons(pairs: Iterable[tuple[Scalar, Node]], findings: Findings) -> Iterator[Lexicon]:
    """Read lexicons by name, each a list or a mapping with its way to match."""
    for key, value in pairs:
        if NAME.fullmatch(key.text) is None:
            problem = f"`{key.text}` can't be the name of a lexicon"
            findings.add(key.place, "bad-name", problem, NAME_HINT)
        match: Match = "word-start"
        phrases: Node | None = value
        if isinstance(value, Pairs):
            inner = Fields(value, f"the lexicon `{key.text}`", LEXICON_KEYS, findings)
            match = inner.choice("match", MATCHES) or "word-start"
            inner.require("phrases", "list its phrases")
            phrases = inner.node("phrases")
        if phrases is not None:
            what = f"the lexicon `{key.text}`"
            lexicon = Lexicon(
                name=key.text, phrases=read_phrases(phrases, what, findings), match=match
            )
            _check_shapes(lexicon, phrases, what, findings)
            yield lexicon


def read_phrases(node: Node, what: str, findings: Findings) -> tuple[str, ...]:
    """Read a list of phrases, each once and none of them empty."""
    if not isinstance(node, Items) or not node.items:
        problem = f"{what} is {'empty' if isinstance(node, Items) else kind_of(node)}"
        findings.add(
            node.place, "bad-lexicon", problem, "list its phrases: `[first phrase, second]`"
        )
        return ()
    phrases: dict[str, str] = {}
    for item in node.items:
        if not isinstance(item, Scalar) or not item.text.strip():
            problem = f"a phrase of {what} is {kind_of(item)}"
            findings.add(item.place, "bad-lexicon", problem, "write the phrase as text")
            continue
        phrase = " ".join(item.text.split())
        if phrase.casefold() in phrases:
            problem = f"{what} lists `{phrase}` twice"
            findings.add(
                item.place, "bad-lexicon", problem, "remove one (case makes no difference)"
            )
        phrases.setdefault(phrase.casefold(), phrase)
    return tuple(phrases.values())


def _check_shapes(lexicon: Lexicon, node: Node, what: str, findings: Findings) -> None:
    """Find phrases that would never be found in a text."""
    for phrase in lexicon.phrases:
        parts = [part.strip() for part in phrase.split(GAP)]
        if lexicon.name in WORD_LISTS and " " in phrase:
            problem = f"{what} is read word by word, and `{phrase}` has several"
            findings.add(node.place, "bad-lexicon", problem, "list single words")
        elif lexicon.match == "pattern" and not all(parts):
            problem = f"`{phrase}` of {what} has a gap with nothing on one side of it"
            findings.add(node.place, "bad-lexicon", problem, f"put `{GAP}` between words")


_PHRASE_KEYS: Final[dict[str, tuple[Source, bool]]] = {
    "response_has": ("response", True),
    "response_lacks": ("response", False),
    "user_has": ("user", True),
    "user_lacks": ("user", False),
    "earlier_has": ("earlier", True),
    "earlier_lacks": ("earlier", False),
}
_WORD_KEYS: Final[dict[str, Speaker]] = {"response_words": "response", "user_words": "user"}
_SIGNAL_KEYS: Final = {"signal": True, "no_signal": False}
CONDITION_KEYS: Final = (*_PHRASE_KEYS, *_WORD_KEYS, *_SIGNAL_KEYS)

_WORD_RANGE = re.compile(r"\s*([0-9]{1,6})\s*(?:\.\.|-|\u2013)\s*([0-9]{1,6})\s*")
_WORD_BOUND = re.compile(r"\s*(>=|<=|>|<|==)\s*([0-9]{1,6})\s*")
_NUMBER = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
_SIGNED = _NUMBER.replace("(", "(-?", 1)
_NUMBER_RANGE = re.compile(
    rf"\s*{_NUMBER}\s*[-\u2013]\s*{_NUMBER}\s*|\s*{_SIGNED}\s*\.\.\s*{_SIGNED}\s*"
)
_NUMBER_BOUND = re.compile(rf"\s*(>=|<=)\s*{_SIGNED}\s*")


class ConditionReader:
    """Reads conditions against the lexicons that a criterion can name."""

    def __init__(self, lexicons: Sequence[Lexicon], findings: Findings) -> None:
        self._lexicons = [lexicon.name for lexicon in lexicons]
        self._findings = findings

    def read_sets(self, node: Node) -> Iterator[tuple[Condition, ...]]:
        """Yield one set of conditions, or each of a list of them."""
        nodes = node.items if isinstance(node, Items) else (node,)
        if not nodes:
            self._findings.add(node.place, "bad-condition", "`when` is empty", "add a condition")
        for each in nodes:
            if not isinstance(each, Pairs) or not each.pairs:
                problem = f"a condition is {'empty' if isinstance(each, Pairs) else kind_of(each)}"
                hint = "write it as `{signal: question}`"
                self._findings.add(each.place, "bad-condition", problem, hint)
                continue
            conditions = [self._read_condition(key, value) for key, value in each.pairs]
            yield tuple(condition for condition in conditions if condition is not None)

    def _read_condition(self, key: Scalar, value: Node) -> Condition | None:
        name = key.text
        if name in _PHRASE_KEYS:
            text, present = _PHRASE_KEYS[name]
            lexicon = self._read_lexicon(value)
            return HasPhrase(text=text, lexicon=lexicon, present=present) if lexicon else None
        if name in _WORD_KEYS:
            return self._read_words(_WORD_KEYS[name], name, value)
        if name in _SIGNAL_KEYS:
            return self._read_signal(value, present=_SIGNAL_KEYS[name])
        if name in NUMERIC_SIGNALS:
            return self._read_number(key, value)
        known = f"known are {listed(CONDITION_KEYS)}"
        hint = nearest(name, (*CONDITION_KEYS, *NUMERIC_SIGNALS), known)
        self._findings.add(key.place, "unknown-key", f"there is no condition `{name}`", hint)
        return None

    def _read_lexicon(self, value: Node) -> str | tuple[str, ...] | None:
        if isinstance(value, Items):
            return read_phrases(value, "the list of phrases", self._findings)
        if isinstance(value, Scalar) and value.text in self._lexicons:
            return value.text
        hint = "define it under `lexicons`, or list the phrases in place"
        if isinstance(value, Scalar):
            hint = nearest(value.text, self._lexicons, hint)
        problem = f"there is no lexicon {kind_of(value)}"
        self._findings.add(value.place, "unknown-lexicon", problem, hint)
        return None

    def _read_words(self, text: Speaker, name: str, value: Node) -> WordCount | None:
        written = value.text if isinstance(value, Scalar) else ""
        low: int | None = None
        high: int | None = None
        if match := _WORD_RANGE.fullmatch(written):
            low, high = int(match[1]), int(match[2])
        elif match := _WORD_BOUND.fullmatch(written):
            low, high = _bounds(match[1], int(match[2]))
        else:
            problem = f"`{name}` is {kind_of(value)}"
            hint = 'give a range such as `10-30` or a bound such as `"> 50"`'
            if written.isdecimal():
                hint = f'give a range such as `10-30`, or `"== {written}"`'
            self._findings.add(value.place, "bad-condition", problem, hint)
            return None
        if (low or 0) > (high if high is not None else low or 0):
            self._findings.add(
                value.place,
                "bad-condition",
                f"no number of words is {kind_of(value)}",
                "correct the range",
            )
        return WordCount(text=text, low=low, high=high)

    def _read_signal(self, value: Node, *, present: bool) -> HasSignal | None:
        if isinstance(value, Scalar) and value.text in SIGNALS:
            return HasSignal(signal=value.text, present=present)
        hint = f"known are {listed(SIGNALS)}"
        if isinstance(value, Scalar) and value.text in NUMERIC_SIGNALS:
            problem = f"the signal `{value.text}` is a number"
            hint = f'hold it against a bound: `{value.text}: ">= 1"`'
            self._findings.add(value.place, "unknown-signal", problem, hint)
            return None
        if isinstance(value, Scalar):
            hint = nearest(value.text, SIGNALS, hint)
        problem = f"there is no signal {kind_of(value)}"
        self._findings.add(value.place, "unknown-signal", problem, hint)
        return None

    def _read_number(self, key: Scalar, value: Node) -> SignalWithin | None:
        name, written = key.text, value.text if isinstance(value, Scalar) else ""
        for lexicon in SIGNAL_LEXICONS.get(name, ()):
            if lexicon not in self._lexicons:
                problem = f"the signal `{name}` reads by a lexicon `{lexicon}`, and there is none"
                hint = "define it under `lexicons`"
                self._findings.add(key.place, "unknown-lexicon", problem, hint)
        low: float | None = None
        high: float | None = None
        if match := _NUMBER_RANGE.fullmatch(written):
            low, high = (float(end) for end in match.groups() if end is not None)
        elif match := _NUMBER_BOUND.fullmatch(written):
            low, high = (float(match[2]), None) if match[1] == ">=" else (None, float(match[2]))
        else:
            problem = f"`{name}` is {kind_of(value)}"
            hint = 'give a range such as `0.2..0.5` or a bound such as `">= 0.2"` or `"<= 3"`'
            self._findings.add(value.place, "bad-condition", problem, hint)
            return None
        if low is not None and high is not None and low > high:
            problem = f"no number is {kind_of(value)}"
            self._findings.add(value.place, "bad-condition", problem, "correct the range")
        return SignalWithin(signal=name, low=low, high=high)


def _bounds(sign: str, number: int) -> tuple[int | None, int | None]:
    match sign:
        case ">":
            return number + 1, None
        case ">=":
            return number, None
        case "<":
            return None, number - 1
        case "<=":
            return None, number
        case _:
            return number, number


__all__ = [
    "ADJUSTMENT_KEYS",
    "CONDITION_KEYS",
    "LEXICON_KEYS",
    "RULES_BLOCK",
    "RULES_KEYS",
    "build_checks",
    "build_lexicons",
    "build_rules",
    "open_block",
    "open_lexicons",
]

RULES_KEYS: Final = ("base", "adjust", "lexicons")
ADJUSTMENT_KEYS: Final = ("add", "subtract", "when", "why")
RULES_BLOCK: Final = "the rules block"


def open_block(fence: Fence, indent: int, what: str, findings: Findings) -> Pairs | None:
    """Read the YAML of a fenced block; ``indent`` is how far the block is moved in."""
    node = read_yaml(fence.content, Place(fence.start + 2, indent + 1), findings)
    if node is None or isinstance(node, Pairs):
        return node
    findings.add(node.place, "wrong-type", f"{what} is {kind_of(node)}", "write `key: value` lines")
    return None


def open_lexicons(fence: Fence, indent: int, findings: Findings) -> Pairs | None:
    """Read the YAML of the shared lexicons; an empty block is a slip."""
    node = open_block(fence, indent, "the lexicons block", findings)
    if node is not None and not node.pairs:
        hint = "list phrases, such as `greetings: [hello, hi]`"
        findings.add(Place(fence.start + 1), "bad-lexicon", "the lexicons block is empty", hint)
    return node


def build_lexicons(node: Pairs, findings: Findings) -> tuple[Lexicon, ...]:
    """Return the lexicons that a mapping from names to phrases gives."""
    return tuple(read_lexicons(node.pairs, findings))


def build_rules(
    node: Pairs, scale: Scale | None, shared: Sequence[Lexicon], findings: Findings
) -> Rules:
    """Return the rules that a mapping gives, held against the criterion's scale."""
    fields = Fields(node, "a rules block", RULES_KEYS, findings)
    if scale is not None and not scale.continuous:
        problem = f"automated rules give fractions, and the scale {scale} has whole numbers only"
        hint = f"use a continuous scale such as `{scale.as_continuous}`"
        findings.add(node.place, "rules-scale", problem, hint)
    fields.require("base", "say which score to start from")
    base = fields.number("base")
    outside = scale is not None and scale.continuous and not scale.accepts(base or 0)
    if base is not None and outside:
        problem = f"the base {show_number(base)} is outside the scale {scale}"
        findings.add(fields.value_place("base"), "out-of-range", problem, "start within the scale")
    lexicons = tuple(read_lexicons(fields.pairs("lexicons", "a mapping"), findings))
    for key, _ in fields.pairs("lexicons", "a mapping"):
        if any(key.text == lexicon.name for lexicon in shared):
            problem = f"`{key.text}` is a shared lexicon already"
            findings.add(key.place, "name-taken", problem, "rename it, or use the shared one")
    reader = ConditionReader((*lexicons, *shared), findings)
    adjustments = [
        _read_adjustment(item, reader, findings)
        for item in fields.items("adjust", "a list of adjustments")
    ]
    return Rules(
        base=float(base or 0),
        adjustments=tuple(each for each in adjustments if each is not None),
        lexicons=lexicons,
    )


def _read_adjustment(node: Node, reader: ConditionReader, findings: Findings) -> Adjustment | None:
    if not isinstance(node, Pairs):
        problem = f"an adjustment is {kind_of(node)}"
        findings.add(node.place, "bad-adjustment", problem, "write `{add: 0.2, when: {...}}`")
        return None
    fields = Fields(node, "an adjustment", ADJUSTMENT_KEYS, findings)
    amounts = [key for key in ("add", "subtract") if key in fields]
    if len(amounts) != 1:
        has = "has both `add` and" if amounts else "has neither `add` nor"
        problem = f"an adjustment {has} `subtract`"
        findings.add(node.place, "bad-adjustment", problem, "give one of the two")
        return None
    amount = fields.number(amounts[0])
    if amount is not None and amount <= 0:
        problem = f"`{amounts[0]}` is {show_number(amount)}"
        hint = "use a number above zero, with `add` or `subtract` as the direction"
        findings.add(fields.value_place(amounts[0]), "out-of-range", problem, hint)
    fields.require("when", "say when it applies, such as `when: {signal: question}`")
    when = fields.node("when")
    sets = () if when is None else tuple(reader.read_sets(when))
    if amount is None:
        return None
    sign = 1 if amounts[0] == "add" else -1
    return Adjustment(add=float(sign * amount), when=sets, why=fields.text("why") or "")


def build_checks(node: Node, findings: Findings) -> tuple[Check, ...]:
    """Return the checks that a list gives."""
    if not isinstance(node, Items) or not node.items:
        what = "empty" if not isinstance(node, Scalar) and not value_of(node) else kind_of(node)
        hint = "list its checks, such as `- contains: Paris`"
        findings.add(node.place, "bad-check", f"the checks block is {what}", hint)
        return ()
    checks: list[Check] = []
    for item in node.items:
        places = {}
        if isinstance(item, Pairs):
            places = {key.text: value.place for key, value in item.pairs}
        check, faults = read_check(_entry(item))
        for fault in faults:
            place = places.get(fault.key, item.place)
            findings.add(place, fault.code, fault.problem, fault.hint)
        checks += [] if check is None else [check]
    return tuple(checks)


def _entry(item: Node) -> object:
    """Return a check as plain data; what isn't nested stays as it is written, `1.10` too."""
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
