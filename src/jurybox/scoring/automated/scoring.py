"""Scoring a response by the rules of a rubric."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from jurybox.judging.safety import SafetyFinding, scan
from jurybox.rubric.rules import Source, Speaker
from jurybox.sample import Turn
from jurybox.scoring.automated.compiling import DECIMALS, CompiledRules, Outcome
from jurybox.scoring.automated.folding import fold
from jurybox.scoring.automated.phrases import JOINING, Found
from jurybox.scoring.automated.reading import Reading, Span
from jurybox.scoring.automated.report import (
    MOST_QUOTES,
    AutomatedReport,
    CriterionScore,
    FiredRule,
    Quote,
)
from jurybox.scoring.automated.words import Quoting

WORDS: Final[dict[Speaker, str]] = {"response": "response_words", "user": "user_words"}
_LONGEST_WORD = 40


def score_by_rules(
    compiled: CompiledRules,
    *,
    task: str,
    response: str,
    messages: Sequence[Turn] = (),
    findings: Sequence[SafetyFinding] | None = None,
    quotes: bool = True,
) -> AutomatedReport:
    """Score a response by rules alone: the same texts always get the same report.

    ``task`` is the user's message and ``messages`` what was said before it. ``findings`` are those
    of the safety scan of the response, where it has been made already. Without ``quotes`` the trace
    has the rules that fired but not the words, and takes half the time.
    """
    if findings is None:
        findings = scan(response) if compiled.scans else ()
    evidence = _Evidence(compiled, Reading(fold(response), fold(task), messages, findings))
    outcome = compiled.outcome(evidence.facts)
    return AutomatedReport(
        criteria=evidence.quote(outcome) if quotes else tuple(each[0] for each in outcome.criteria),
        overall=outcome.overall,
        band=outcome.band,
        measures=evidence.measures,
    )


class _Evidence:
    """The facts of one response, and the words that show them."""

    def __init__(self, compiled: CompiledRules, reading: Reading) -> None:
        self._compiled = compiled
        self._reading = reading
        find = compiled.phrases.find
        found = find(reading.response.text, "response")
        self._found: dict[Source, Found] = {"response": found, "user": {}, "earlier": {}}
        # No two of them are the same, and each is a bit of its own: their sum is all of them.
        facts = sum(found)
        if compiled.reads_user:
            heard = self._found["user"] = find(reading.user.text, "user")
            facts += sum(heard)
        if compiled.reads_earlier and reading.messages:
            earlier = self._found["earlier"] = find(reading.earlier.text, "earlier")
            facts += sum(earlier)
        self.measures: dict[str, int | float] = {}
        self._spans: dict[int, Sequence[Span]] = {}
        for name, signal, fact, marks in compiled.signals:
            count, spans = signal.see(reading, found.get(marks, ()))
            self.measures[name] = count
            if count >= signal.least:
                facts += fact
                self._spans[fact] = spans
        for text, low, high, fact in compiled.lengths:
            words = self._count_words(text)
            if (low is None or words >= low) and (high is None or words <= high):
                facts += fact
        self._quoting: list[tuple[int, str, Quoting]] = []
        self._quoted: dict[str, tuple[Quote, ...]] = {}
        self.facts = facts + self._hold_numbers()

    def _hold_numbers(self) -> int:
        """Return the facts that numeric signals show."""
        facts = 0
        reading = self._reading
        here, there, before = self._found.values()
        for asked in self._compiled.numbers:
            name, see, lists, marks, heard, earlier, _, known = asked
            if marks:
                if marks in here:
                    lists = lists._replace(hits=here[marks])
            elif heard:
                if heard in there:
                    lists = lists._replace(hits=there[heard])
                elif earlier in before:
                    lists = lists._replace(earlier=before[earlier])
            number, quote = see(reading, lists)
            if type(number) is float:
                number = round(number, DECIMALS)
            self.measures[name] = number
            shown = known.get(number)
            if shown is None:
                shown = asked.facts(number)
            facts += shown
            if shown and quote is not None:
                self._quoting.append((shown, name, quote))
        return facts

    def _count_words(self, text: Speaker) -> int | float:
        name = WORDS[text]
        words = self.measures.get(name)
        if words is None:
            folded = self._reading.response if text == "response" else self._reading.user
            words = self.measures[name] = folded.words
        return words

    def quote(self, outcome: Outcome) -> tuple[CriterionScore, ...]:
        """Return the scores of an outcome with the words on which rules fired."""
        quotes: dict[int, tuple[Quote, ...]] = {0: ()}
        for text, facts in outcome.phrases:
            self._quote_phrases(text, facts, quotes)
        for fact in outcome.signals:
            quotes[fact] = self._quotes_of(fact)
        criteria: list[CriterionScore] = []
        for score, fired in outcome.criteria:
            if not fired:
                criteria.append(score)
                continue
            trace: list[FiredRule] = []
            for rule, first, others in fired:
                words = quotes[first]
                for fact in others:
                    words += quotes[fact]
                trace.append(replace(rule, quotes=words) if words else rule)
            criteria.append(replace(score, trace=tuple(trace)))
        return tuple(criteria)

    def _quote_phrases(
        self,
        text: Source,
        facts: Iterable[tuple[int, str]],
        quotes: dict[int, tuple[Quote, ...]],
    ) -> None:
        """Quote the phrases of a text that show some facts, each with its lexicon."""
        folded, found = self._reading.text(text), self._found[text]
        small, original, exact, size = folded.text, folded.original, folded.exact, len(folded.text)
        for fact, source in facts:
            made: list[Quote] = []
            for _, start, end in found[fact][:MOST_QUOTES]:
                if end < size and JOINING[small[end]] == 1:
                    end = _word_end(small, end)  # noqa: PLW2901
                if not exact:
                    start, end = folded.span(start, end)  # noqa: PLW2901
                words = original[start:end]
                made.append(Quote(text=text, words=words, start=start, source=source))
            quotes[fact] = tuple(made)

    def _quotes_of(self, fact: int) -> tuple[Quote, ...]:
        """Return the words that a signal saw."""
        if fact in self._spans:
            name, signal = self._compiled.signal_names[fact]
            return signal.quote(self._reading, name, self._spans[fact])
        for shown, name, quote in self._quoting:
            if not shown & fact:
                continue
            # Many rules may hold one signal against their ranges.
            quotes = self._quoted.get(name)
            if quotes is None:
                quotes = self._quoted[name] = quote(name)
            return quotes
        return ()  # a number that nothing was counted for


def _word_end(text: str, end: int) -> int:
    """Return where a word ends that a phrase ends within."""
    if JOINING[text[end - 1]] != 1:
        return end
    furthest = min(len(text), end + _LONGEST_WORD)
    while end < furthest and JOINING[text[end]] == 1:
        end += 1
    return end
