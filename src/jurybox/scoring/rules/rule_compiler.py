"""Compiles a rubric's rules: what to search for, and the points that each match gives.

Every condition is about a *fact*: a text has a phrase of a lexicon, a signal is present, a length
is within a range. Facts are numbered; a rule lists the facts that it needs and those that forbid
it.
"""

from collections.abc import Iterable, Mapping, Sequence
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
    HasSignal,
    Lexicon,
    Rules,
    SignalWithin,
    Source,
)
from jurybox.rubric.scale import weighted_mean
from jurybox.sample import Turn
from jurybox.scoring.rules.phrases import IS_LETTER, Found, PhraseGroup, Phrases, fold
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
from jurybox.scoring.rules.text_signals import LEAST, NUMERIC, OWN_PHRASES, TEXT, UNSAFE_CONTENT

DECIMALS: Final = 6
"""Scores are rounded to this many decimals before they are compared (C10)."""
_NO_FACT: Final = 0
_SEE: Final = {**TEXT, **NUMERIC}


class AskedNumber(NamedTuple):
    """A numeric signal that rules use, with its lexicons and the ranges that rules name.

    ``marks`` is the fact that its phrases show in the response; ``user_marks`` and ``earlier`` are
    the facts for the user's message and for the user's earlier messages.
    """

    name: str
    see: NumericSignal
    lists: Lists
    marks: int
    user_marks: int
    earlier: int
    ranges: list[tuple[float, float, int]]

    def facts(self, number: float) -> list[int]:
        """Return the facts that a number shows."""
        return [fact for low, high, fact in self.ranges if low <= number <= high]


class CompiledAdjustment(NamedTuple):
    """An adjustment, with the facts that it needs and those that forbid it."""

    fired: FiredRule
    sets: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


class Scored(NamedTuple):
    """A criterion's score without quotes, and the facts that each fired rule needed."""

    score: CriterionScore
    needed: tuple[tuple[int, ...], ...]


class RulesOutcome(NamedTuple):
    """The scores that a set of facts gives under a rubric."""

    criteria: tuple[Scored, ...]
    overall: float | None
    band: str | None


class CompiledCriterion(NamedTuple):
    """The rules of one criterion."""

    criterion: Criterion
    base: float
    adjustments: tuple[CompiledAdjustment, ...]

    def score(self, facts: frozenset[int]) -> Scored:
        """Return the score that some facts give."""
        trace: list[FiredRule] = []
        shown: list[tuple[int, ...]] = []
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
        return Scored(result, tuple(shown))


class CompiledRules:
    """A rubric's compiled rules; made by ``compile_rules``."""

    def __init__(
        self, rubric: Rubric, criteria: tuple[CompiledCriterion, ...], facts: "_Facts"
    ) -> None:
        self.rubric = rubric
        self._criteria = criteria
        self.phrases = Phrases(facts.groups)
        # Among the measures, signals come first, then word counts.
        first = (*SIGNALS, *WORD_COUNTS)
        self.numbers = sorted(
            facts.numbers, key=lambda asked: (asked.name not in SIGNALS, asked.name not in first)
        )
        self.sources = facts.sources
        self.reads_earlier = any(group.text == "earlier" for group in facts.groups)
        self.scans = any(asked.name == UNSAFE_CONTENT for asked in facts.numbers)
        # Cached, because the same few sets of facts recur; uncached, a run by rules alone takes
        # 30% more CPU time.
        self.outcome = lru_cache(4096)(self._outcome)

    def _outcome(self, facts: frozenset[int]) -> RulesOutcome:
        """Return the scores that a set of facts gives."""
        scored = tuple(criterion.score(facts) for criterion in self._criteria)
        overall = overall_score(self.rubric, {each.score.id: each.score.score for each in scored})
        band = None if overall is None else self.rubric.band(overall)
        return RulesOutcome(scored, overall, None if band is None else band.label)


def overall_score(rubric: Rubric, scores: Mapping[str, float]) -> float | None:
    """Return the weighted mean of the scores, each from 0 to 1 (C7); None if one is missing."""
    counting = [each for each in rubric.criteria if each.weight]
    if any(each.id not in scores for each in counting):
        return None
    shares = (each.scale.normalize(scores[each.id]) for each in counting)
    return round(weighted_mean([each.weight for each in counting], shares), DECIMALS)


def compile_rules(rubric: Rubric) -> CompiledRules | None:
    """Compile a rubric's rules; None if no criterion has any."""
    ruled = [(each, each.rules) for each in rubric.criteria if each.rules is not None]
    if not ruled:
        return None
    facts = _Facts()
    criteria = tuple(_compile_criterion(*each, rubric.lexicons, facts) for each in ruled)
    return CompiledRules(rubric, criteria, facts)


def _compile_criterion(
    criterion: Criterion, rules: Rules, shared: Sequence[Lexicon], facts: "_Facts"
) -> CompiledCriterion:
    lexicons = {lexicon.name: lexicon for lexicon in (*shared, *rules.lexicons)}
    adjustments = tuple(
        CompiledAdjustment(
            FiredRule(
                index=index,
                rule=rule_text(adjustment),
                why=adjustment.why,
                amount=adjustment.add,
            ),
            tuple(facts.compile(conditions, lexicons) for conditions in adjustment.when),
        )
        for index, adjustment in enumerate(rules.adjustments)
    )
    return CompiledCriterion(criterion, rules.base, adjustments)


class _Facts:
    """The distinct facts that rules use."""

    def __init__(self) -> None:
        self.groups: list[PhraseGroup] = []
        self.numbers: list[AskedNumber] = []
        self.sources: dict[int, tuple[Source, str]] = {}
        """The text and the lexicon of the facts that phrases show."""
        self._known: dict[object, int] = {}
        self._asked: dict[object, AskedNumber] = {}
        self._lists: dict[Lexicon, WordList] = {}

    def compile(
        self, conditions: Iterable[Condition], lexicons: dict[str, Lexicon]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the facts that a set of conditions needs, and those that forbid it."""
        needed: list[int] = []
        forbidden: list[int] = []
        for condition in conditions:
            match condition:
                case HasPhrase(text=text, lexicon=named, present=present):
                    listed = lexicons[named] if isinstance(named, str) else _in_place(named)
                    fact = self._phrases(text, listed)
                case HasSignal(signal=name, present=present):
                    least = SignalWithin(signal=name, low=LEAST.get(name, 1), high=None)
                    fact = self._number(least, lexicons)
                case SignalWithin():
                    fact, present = self._number(condition, lexicons), True
            (needed if present else forbidden).append(fact)
        return tuple(sorted(needed)), tuple(forbidden)

    def _new(self, key: object) -> int:
        fact = self._known[key] = len(self._known) + 1
        return fact

    def _phrases(self, text: Source, lexicon: Lexicon) -> int:
        key = (text, lexicon)
        if key in self._known:
            return self._known[key]
        fact = self._new(key)
        self.groups.append(PhraseGroup(fact, text, lexicon.phrases, lexicon.match))
        self.sources[fact] = text, lexicon.name
        return fact

    def _number(self, condition: SignalWithin, lexicons: dict[str, Lexicon]) -> int:
        name = condition.signal
        named = tuple(lexicons[each] for each in SIGNAL_LEXICONS.get(name, ()))
        by = named or OWN_PHRASES.get(name, ())
        key = (condition, by)
        if key in self._known:
            return self._known[key]
        fact = self._new(key)
        asked = self._asked.get((name, by))
        if asked is None:
            asked = self._ask(name, by)
            self._asked[name, by] = asked
            self.numbers.append(asked)
        asked.ranges.append((*_ends(condition), fact))
        return fact

    def _ask(self, name: str, by: tuple[Lexicon, ...]) -> AskedNumber:
        words: list[WordList] = []
        families: Families | None = None
        marks = user_marks = earlier = _NO_FACT
        for lexicon in by:  # each signal has at most one lexicon of phrases
            if lexicon.name in WORD_LISTS:
                words.append(self._word_list(lexicon))
            elif lexicon.name in FAMILIES:
                families = Families(lexicon)
            elif lexicon.name in HEARD_LEXICONS:
                user_marks, earlier = self._marks(lexicon, "user"), self._marks(lexicon, "earlier")
            else:
                marks = self._marks(lexicon, "response")
        lists = Lists(tuple(words), families=families)
        return AskedNumber(name, _SEE[name], lists, marks, user_marks, earlier, [])

    def _word_list(self, lexicon: Lexicon) -> WordList:
        return self._lists.setdefault(lexicon, WordList(lexicon))

    def _marks(self, lexicon: Lexicon, text: Source) -> int:
        key = ("marks", text, lexicon)
        if key in self._known:
            return self._known[key]
        marks = self._new(key)
        self.groups.append(PhraseGroup(marks, text, lexicon.phrases, lexicon.match))
        return marks


def _ends(within: SignalWithin) -> tuple[float, float]:
    low = -inf if within.low is None else within.low
    return low, inf if within.high is None else within.high


def _in_place(phrases: tuple[str, ...]) -> Lexicon:
    return Lexicon(name="", phrases=phrases)


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
    evidence = _Evidence(compiled, Conversation(fold(response), fold(task), messages, findings))
    outcome = compiled.outcome(frozenset(evidence.facts))
    return AutomatedReport(
        criteria=tuple([evidence.quote(*each) for each in outcome.criteria]),
        overall=outcome.overall,
        band=outcome.band,
        measures=evidence.measures,
    )


class _Evidence:
    """The facts of one response, and the words that show them."""

    def __init__(self, compiled: CompiledRules, reading: Conversation) -> None:
        self._compiled = compiled
        self._reading = reading
        find = compiled.phrases.find
        self._found: dict[Source, Found] = {
            "response": find(reading.response.text, "response"),
            "user": find(reading.user.text, "user"),
            "earlier": find(reading.earlier.text, "earlier") if compiled.reads_earlier else {},
        }
        sources = compiled.sources
        self.facts = {fact for each in self._found.values() for fact in each if fact in sources}
        self.measures: dict[str, int | float] = {}
        self._signals: dict[int, str] = {}
        """The name of the signal that shows a fact."""
        self._quoting: dict[str, Quoting] = {}
        """The function that quotes the words a signal matched."""
        self._quotes: dict[int | str, tuple[Quote, ...]] = {}
        self._see_numbers()

    def _see_numbers(self) -> None:
        for asked in self._compiled.numbers:
            number, quote = asked.see(self._reading, self._lists(asked))
            if isinstance(number, float):
                number = round(number, DECIMALS)
            self.measures[asked.name] = number
            shown = asked.facts(number)
            self.facts.update(shown)
            if quote is not None:
                self._quoting[asked.name] = quote
                for fact in shown:
                    self._signals[fact] = asked.name

    def _lists(self, asked: AskedNumber) -> Lists:
        """Return the lexicons of a numeric signal, with the matches of its phrases."""
        here, user_marks, earlier = self._found.values()
        if hits := here.get(asked.marks) or user_marks.get(asked.user_marks):
            return asked.lists._replace(hits=hits)
        hits = earlier.get(asked.earlier)
        return asked.lists._replace(earlier=hits) if hits else asked.lists

    def quote(self, score: CriterionScore, needed: Sequence[tuple[int, ...]]) -> CriterionScore:
        """Return a score with the words that triggered its rules."""
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
        source = self._compiled.sources.get(key)
        return () if source is None else self._quote_phrases(key, *source)

    def _quote_phrases(self, fact: int, text: Source, lexicon: str) -> tuple[Quote, ...]:
        folded = self._reading.text(text)
        quotes: list[Quote] = []
        for _, start, end in self._found[text][fact][:MOST_QUOTES]:
            first, last = folded.span(start, _word_end(folded.text, end))
            words = folded.original[first:last]
            quotes.append(Quote(text=text, words=words, start=first, source=lexicon))
        return tuple(quotes)


def _word_end(text: str, end: int) -> int:
    """Return the end of the word that a phrase ends in."""
    if end == len(text) or not IS_LETTER[text[end]] or not IS_LETTER[text[end - 1]]:
        return end
    furthest = min(len(text), end + _LONGEST_WORD)
    while end < furthest and IS_LETTER[text[end]]:
        end += 1
    return end
