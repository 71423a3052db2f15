"""Scoring a response by the rules of a rubric."""

from collections.abc import Sequence

from msgspec.structs import replace

from jurybox.judging.safety import scan
from jurybox.rubric.rules import Source
from jurybox.sample import Turn
from jurybox.scoring.rules.phrases import IS_LETTER, Found, fold
from jurybox.scoring.rules.rule_compiler import DECIMALS, AskedNumber, CompiledRules
from jurybox.scoring.rules.rule_report import (
    MOST_QUOTES,
    AutomatedReport,
    CriterionScore,
    FiredRule,
    Quote,
)
from jurybox.scoring.rules.text_reader import Conversation, Lists, Quoting

_LONGEST_WORD = 40


def score_by_rules(
    compiled: CompiledRules,
    *,
    task: str,
    response: str,
    messages: Sequence[Turn] = (),
) -> AutomatedReport:
    """Score a response by rules alone: the same texts always get the same report.

    ``task`` is the user's message and ``messages`` what was said before it.
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
        """Return the lexicons of a numeric signal with where its phrases were found."""
        here, user_marks, earlier = self._found.values()
        if hits := here.get(asked.marks) or user_marks.get(asked.user_marks):
            return asked.lists._replace(hits=hits)
        hits = earlier.get(asked.earlier)
        return asked.lists._replace(earlier=hits) if hits else asked.lists

    def quote(self, score: CriterionScore, needed: Sequence[tuple[int, ...]]) -> CriterionScore:
        """Return a score with the words on which its rules fired."""
        if not score.trace:
            return score
        trace: list[FiredRule] = []
        for rule, facts in zip(score.trace, needed, strict=True):
            words: tuple[Quote, ...] = ()
            for fact in facts:
                key = self._signals.get(fact, fact)
                if key not in self._quotes:  # many rules may ask about one signal or phrase
                    self._quotes[key] = self._quotes_of(key)
                words += self._quotes[key]
            trace.append(replace(rule, quotes=words) if words else rule)
        return replace(score, trace=tuple(trace))

    def _quotes_of(self, key: int | str) -> tuple[Quote, ...]:
        """Return the words that show a fact or a signal; a number of words has none."""
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
