"""The conditions of automated rules, read from YAML."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from jurybox.documents.fields import kind_of
from jurybox.documents.findings import Findings
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar
from jurybox.rubric.document.lexicons import read_phrases
from jurybox.rubric.rules import (
    NUMERIC_SIGNALS,
    SIGNAL_LEXICONS,
    SIGNALS,
    Condition,
    HasPhrase,
    HasSignal,
    Lexicon,
    SignalWithin,
    Source,
    Speaker,
    WordCount,
)
from jurybox.wording import listed, nearest

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
                mend = "write it as `{signal: question}`"
                self._findings.add(each.place, "bad-condition", problem, mend)
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
        mend = nearest(name, (*CONDITION_KEYS, *NUMERIC_SIGNALS), known)
        self._findings.add(key.place, "unknown-key", f"there is no condition `{name}`", mend)
        return None

    def _read_lexicon(self, value: Node) -> str | tuple[str, ...] | None:
        if isinstance(value, Items):
            return read_phrases(value, "the list of phrases", self._findings)
        if isinstance(value, Scalar) and value.text in self._lexicons:
            return value.text
        mend = "define it under `lexicons`, or list the phrases in place"
        if isinstance(value, Scalar):
            mend = nearest(value.text, self._lexicons, mend)
        problem = f"there is no lexicon {kind_of(value)}"
        self._findings.add(value.place, "unknown-lexicon", problem, mend)
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
            mend = 'give a range such as `10-30` or a bound such as `"> 50"`'
            if written.isdecimal():
                mend = f'give a range such as `10-30`, or `"== {written}"`'
            self._findings.add(value.place, "bad-condition", problem, mend)
            return None
        if (low or 0) > (high if high is not None else low or 0):
            self._findings.add(
                value.place,
                "bad-condition",
                f"no number of words is {kind_of(value)}",
                "mend the range",
            )
        return WordCount(text=text, low=low, high=high)

    def _read_signal(self, value: Node, *, present: bool) -> HasSignal | None:
        if isinstance(value, Scalar) and value.text in SIGNALS:
            return HasSignal(signal=value.text, present=present)
        mend = f"known are {listed(SIGNALS)}"
        if isinstance(value, Scalar) and value.text in NUMERIC_SIGNALS:
            problem = f"the signal `{value.text}` is a number"
            mend = f'hold it against a bound: `{value.text}: ">= 1"`'
            self._findings.add(value.place, "unknown-signal", problem, mend)
            return None
        if isinstance(value, Scalar):
            mend = nearest(value.text, SIGNALS, mend)
        problem = f"there is no signal {kind_of(value)}"
        self._findings.add(value.place, "unknown-signal", problem, mend)
        return None

    def _read_number(self, key: Scalar, value: Node) -> SignalWithin | None:
        name, written = key.text, value.text if isinstance(value, Scalar) else ""
        for lexicon in SIGNAL_LEXICONS.get(name, ()):
            if lexicon not in self._lexicons:
                problem = f"the signal `{name}` reads by a lexicon `{lexicon}`, and there is none"
                mend = "define it under `lexicons`"
                self._findings.add(key.place, "unknown-lexicon", problem, mend)
        low: float | None = None
        high: float | None = None
        if match := _NUMBER_RANGE.fullmatch(written):
            low, high = (float(end) for end in match.groups() if end is not None)
        elif match := _NUMBER_BOUND.fullmatch(written):
            low, high = (float(match[2]), None) if match[1] == ">=" else (None, float(match[2]))
        else:
            problem = f"`{name}` is {kind_of(value)}"
            mend = 'give a range such as `0.2..0.5` or a bound such as `">= 0.2"` or `"<= 3"`'
            self._findings.add(value.place, "bad-condition", problem, mend)
            return None
        if low is not None and high is not None and low > high:
            problem = f"no number is {kind_of(value)}"
            self._findings.add(value.place, "bad-condition", problem, "mend the range")
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
