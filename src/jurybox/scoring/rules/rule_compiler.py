"""Compiles a rubric's rules: what to search for, and the points that each match gives.

Every condition is about a *fact*: a text has a phrase of a lexicon, a signal is present, a length
is within a range. Facts are numbered; a rule lists the facts that it needs and those that forbid
it.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import Final, NamedTuple

from msgspec.structs import replace

from jurybox.documents.numbers import show_number
from jurybox.judging.safety import scan
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.rubric.rules import (
    FAMILIES,
    HEARD_LEXICONS,
    SIGNAL_LEXICONS,
    SIGNALS,
    WORD_COUNTS,
    WORD_LISTS,
    Adjustment,
    Condition,
    HasPhrase,
    Lexicon,
    Rules,
    SignalWithin,
    Source,
)
from jurybox.sample import Turn
from jurybox.scoring.rules.phrases import IS_LETTER, Found, Phrases, fold
from jurybox.scoring.rules.rule_report import (
    MOST_QUOTES,
    AutomatedReport,
    CriterionScore,
    FiredRule,
    Quote,
)
from jurybox.scoring.rules.text_reader import (
    Conversation,
    Families,
    Lists,
    NumericSignal,
    Quoting,
    WordList,
)
from jurybox.scoring.rules.text_signals import OWN_PHRASES, SIGNAL_READERS, UNSAFE_CONTENT

DECIMALS: Final = 6
"""Scores are rounded to this many decimals before they are compared."""

_Facts = tuple[int, ...]


class AskedSignal(NamedTuple):
    """A signal that rules use, with its lexicons and the ranges that rules name.

    ``marks`` are the facts that its phrases show, with the texts that they are searched for in.
    """

    name: str
    see: NumericSignal
    lists: Lists
    marks: tuple[tuple[Source, int], ...]
    ranges: list[tuple[float, float, int]]


class CompiledCriterion(NamedTuple):
    """The rules of one criterion: each adjustment, with the facts that it needs or that forbid it.

    An adjustment has several sets of facts if its conditions have alternatives.
    """

    criterion: Criterion
    base: float
    adjustments: tuple[tuple[FiredRule, tuple[tuple[_Facts, _Facts], ...]], ...]

    def score(self, facts: frozenset[int]) -> tuple[CriterionScore, tuple[_Facts, ...]]:
        """Return the score that some facts give, and the facts that each fired rule needed."""
        trace: list[FiredRule] = []
        shown: list[_Facts] = []
        for fired, sets in self.adjustments:
            holding = [
                needed
                for needed, forbidden in sets
                if facts.issuperset(needed) and facts.isdisjoint(forbidden)
            ]
            if holding:
                trace.append(fired)
                shown.append(tuple(dict.fromkeys(fact for needed in holding for fact in needed)))
        total = self.base + sum(rule.amount for rule in trace)
        score = round(self.criterion.scale.clamp(total), DECIMALS)
        level = self.criterion.band(score)
        result = CriterionScore(
            id=self.criterion.id,
            score=score,
            band=(level.label or None) if level else None,
            base=self.base,
            trace=tuple(trace),
        )
        return result, tuple(shown)


class CompiledRules:
    """A rubric's rules: what to search for, and the points that each match gives."""

    def __init__(self, rubric: Rubric) -> None:
        """Number the distinct facts that the rules are about."""
        self._rubric = rubric
        self._known: dict[object, int] = {}
        self._lists: dict[Lexicon, WordList] = {}
        self._asked: dict[object, AskedSignal] = {}
        self.sources: dict[int, tuple[Source, Lexicon]] = {}
        """The text and the lexicon of the facts that phrases show."""
        self._criteria = tuple(
            self._criterion(each, each.rules) for each in rubric.criteria if each.rules is not None
        )
        by_text: dict[Source, dict[int, Lexicon]] = {}
        for fact, (text, lexicon) in self.sources.items():
            by_text.setdefault(text, {})[fact] = lexicon
        self.phrases: dict[Source, Phrases] = {
            text: Phrases(lexicons) for text, lexicons in by_text.items()
        }
        # Among the measures, signals come first, then word counts.
        first = (*SIGNALS, *WORD_COUNTS)
        self.signals = sorted(
            self._asked.values(),
            key=lambda each: (each.name not in SIGNALS, each.name not in first),
        )
        self.scans = any(asked.name == UNSAFE_CONTENT for asked in self.signals)
        # Cached, because the same few sets of facts recur; uncached, a run by rules alone takes
        # 30% more CPU time.
        self.outcome = lru_cache(4096)(self._outcome)

    def _outcome(
        self, facts: frozenset[int]
    ) -> tuple[AutomatedReport, tuple[tuple[_Facts, ...], ...]]:
        """Return the scores that a set of facts gives, and the facts that the rules needed."""
        scored = [criterion.score(facts) for criterion in self._criteria]
        criteria = tuple([score for score, _ in scored])
        overall = self._rubric.overall({each.id: each.score for each in criteria})
        band = None if overall is None else self._rubric.band(overall)
        report = AutomatedReport(
            criteria=criteria,
            overall=overall,
            band=None if band is None else band.label,
            measures={},
        )
        return report, tuple([needed for _, needed in scored])

    def _criterion(self, criterion: Criterion, rules: Rules) -> CompiledCriterion:
        named = {lexicon.name: lexicon for lexicon in (*self._rubric.lexicons, *rules.lexicons)}
        adjustments = tuple(
            (
                FiredRule(index=index, rule=rule_text(each), why=each.why, amount=each.add),
                tuple(self._conditions(conditions, named) for conditions in each.when),
            )
            for index, each in enumerate(rules.adjustments)
        )
        return CompiledCriterion(criterion, rules.base, adjustments)

    def _conditions(
        self, conditions: Iterable[Condition], lexicons: dict[str, Lexicon]
    ) -> tuple[_Facts, _Facts]:
        """Return the facts that a set of conditions needs, and those that forbid it."""
        facts: dict[bool, list[int]] = {True: [], False: []}
        for condition in conditions:
            match condition:
                case HasPhrase(text=text, lexicon=named):
                    in_place = isinstance(named, tuple)
                    listed = Lexicon(name="", phrases=named) if in_place else lexicons[named]
                    fact = self._phrases(text, listed)
                case SignalWithin():
                    fact = self._signal(condition, lexicons)
            facts[isinstance(condition, SignalWithin) or condition.present].append(fact)
        return tuple(sorted(facts[True])), tuple(sorted(facts[False]))

    def _phrases(self, text: Source, lexicon: Lexicon) -> int:
        """Return the fact that a text has a phrase of a lexicon."""
        fact = self._known.setdefault((text, lexicon), len(self._known) + 1)
        self.sources[fact] = text, lexicon
        return fact

    def _signal(self, within: SignalWithin, lexicons: dict[str, Lexicon]) -> int:
        """Return the fact that a signal is within a range."""
        name = within.signal
        named = tuple(lexicons[each] for each in SIGNAL_LEXICONS.get(name, ()))
        by = named or OWN_PHRASES.get(name, ())
        if (name, by) not in self._asked:
            self._asked[name, by] = self._ask(name, by)
        if (within, by) not in self._known:
            fact = self._known[within, by] = len(self._known) + 1
            low = -inf if within.low is None else within.low
            high = inf if within.high is None else within.high
            self._asked[name, by].ranges.append((low, high, fact))
        return self._known[within, by]

    def _ask(self, name: str, by: tuple[Lexicon, ...]) -> AskedSignal:
        words: list[WordList] = []
        families: Families | None = None
        marks: list[tuple[Source, int]] = []
        for lexicon in by:  # each signal has at most one lexicon of phrases
            if lexicon.name in WORD_LISTS:
                words.append(self._lists.setdefault(lexicon, WordList(lexicon)))
            elif lexicon.name in FAMILIES:
                families = Families(lexicon)
            else:
                heard = lexicon.name in HEARD_LEXICONS
                texts: tuple[Source, ...] = ("user", "earlier") if heard else ("response",)
                marks.extend((text, self._phrases(text, lexicon)) for text in texts)
        lists = Lists(tuple(words), families=families)
        return AskedSignal(name, SIGNAL_READERS[name], lists, tuple(marks), [])


@lru_cache(maxsize=16)  # a run needs the same rules several times
def compile_rules(rubric: Rubric) -> CompiledRules | None:
    """Compile a rubric's rules; None if no criterion has any."""
    return (
        CompiledRules(rubric) if any(each.rules is not None for each in rubric.criteria) else None
    )


def rule_text(adjustment: Adjustment) -> str:
    """Return an adjustment in the words of a document, on one line."""
    direction = "add" if adjustment.add > 0 else "subtract"
    sets = (" and ".join(map(_condition_text, each)) for each in adjustment.when)
    return f"{direction} {show_number(abs(adjustment.add))} when {' or '.join(sets)}"


def _condition_text(condition: Condition) -> str:
    key, value = condition.written()
    return f"{key} {value}" if isinstance(value, str) else f"{key} [{', '.join(value)}]"


_LONGEST_WORD = 40


def score_by_rules(
    compiled: CompiledRules,
    *,
    task: str,
    response: str,
    messages: Sequence[Turn] = (),
) -> AutomatedReport:
    """Score a response by rules alone; the result is deterministic.

    ``task`` is the user's message; ``messages`` is the conversation before it.
    """
    findings = scan(response) if compiled.scans else ()
    return _Evidence(
        compiled, Conversation(fold(response), fold(task), messages, findings)
    ).report()


class _Evidence:
    """The facts of one response, and the words that show them."""

    def __init__(self, compiled: CompiledRules, reading: Conversation) -> None:
        self._compiled = compiled
        self._reading = reading
        self._found: dict[Source, Found] = {
            text: phrases.find(reading.text(text).text)
            for text, phrases in compiled.phrases.items()
        }
        self._facts = {fact for found in self._found.values() for fact in found}
        self._measures: dict[str, int | float] = {}
        self._signals: dict[int, str] = {}
        """The name of the signal that shows a fact."""
        self._quoting: dict[str, Quoting] = {}
        """The function that quotes the words a signal matched."""
        self._quotes: dict[int | str, tuple[Quote, ...]] = {}
        for asked in compiled.signals:
            number, quote = asked.see(reading, self._lists(asked) if asked.marks else asked.lists)
            if isinstance(number, float):
                number = round(number, DECIMALS)
            self._measures[asked.name] = number
            shown = [fact for low, high, fact in asked.ranges if low <= number <= high]
            self._facts.update(shown)
            if quote is not None:
                self._quoting[asked.name] = quote
                for fact in shown:
                    self._signals[fact] = asked.name

    def _lists(self, asked: AskedSignal) -> Lists:
        """Return the lexicons of a signal, with the matches of its phrases."""
        hits = {text: hits for text, fact in asked.marks if (hits := self._found[text].get(fact))}
        return asked.lists._replace(hits=hits) if hits else asked.lists

    def report(self) -> AutomatedReport:
        """Return the scores, with the words that triggered each rule."""
        report, needed = self._compiled.outcome(frozenset(self._facts))
        criteria = tuple(map(self._quoted, report.criteria, needed))
        return replace(report, criteria=criteria, measures=self._measures)

    def _quoted(self, score: CriterionScore, needed: Sequence[_Facts]) -> CriterionScore:
        if not score.trace:
            return score
        trace: list[FiredRule] = []
        for rule, facts in zip(score.trace, needed, strict=True):
            words: tuple[Quote, ...] = ()
            for fact in facts:
                key = self._signals.get(fact, fact)
                if key not in self._quotes:  # several rules may use one signal or phrase
                    self._quotes[key] = self._quotes_of(key)
                words += self._quotes[key]
            trace.append(replace(rule, quotes=words) if words else rule)
        return replace(score, trace=tuple(trace))

    def _quotes_of(self, key: int | str) -> tuple[Quote, ...]:
        """Return the words that show a fact or a signal; a word count has none."""
        if isinstance(key, str):
            return self._quoting[key](key)
        if key not in self._compiled.sources:
            return ()
        text, lexicon = self._compiled.sources[key]
        folded = self._reading.text(text)
        quotes: list[Quote] = []
        for _, start, end in self._found[text][key][:MOST_QUOTES]:
            first, last = folded.span(start, _word_end(folded.text, end))
            words = folded.original[first:last]
            quotes.append(Quote(text=text, words=words, start=first, source=lexicon.name))
        return tuple(quotes)


def _word_end(text: str, end: int) -> int:
    """Return the end of the word that a phrase ends in."""
    if end == len(text) or not IS_LETTER[text[end]] or not IS_LETTER[text[end - 1]]:
        return end
    furthest = min(len(text), end + _LONGEST_WORD)
    while end < furthest and IS_LETTER[text[end]]:
        end += 1
    return end
