"""The text signals: what rules can use apart from phrases and lengths.

Each signal returns its amount and quotes its first occurrences. Quotes contain letters or marks,
never numbers or addresses, because they must not show what the safety scan masks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from jurybox.rubric.rules import Lexicon
from jurybox.scoring.rules.phrases import Hit, count_line_breaks
from jurybox.scoring.rules.rule_report import MOST_QUOTES, Quote
from jurybox.scoring.rules.text_reader import (
    NONE,
    Amount,
    Conversation,
    Lists,
    NumericSignal,
    Quoting,
    Span,
)


def _quoting(reading: Conversation, spans: Sequence[Span]) -> Quoting:
    """Return a function that quotes spans of the response."""
    text = reading.response.original
    return lambda name: tuple(
        Quote(text="response", words=text[start:end], start=start, source=name)
        for start, end in spans
    )


# Formatting

_MARKS = tuple("*#~|<>[]{}^`")
_ITEM = re.compile(r"[ \t]*(?:[-+\u2022\u2023\u25e6\u25aa\u25cf]|[0-9]{1,3}[.)])(?=[ \t]+\S)")
_OPENING = re.compile(r"(?<!\w)_+(?=[^\s_])")
_CLOSING = re.compile(r"(?<=[^\s_])_+(?!\w)")


def _formatting(reading: Conversation, lists: Lists) -> Amount:
    folded, marks = reading.response, lists.here
    text = folded.original
    if folded.one_line and not marks and "_" not in text and text[:1].isalpha():
        return NONE  # most responses are like this
    spans = [folded.span(start, end) for _, start, end in marks]
    spans += _line_marks((text,) if folded.one_line else text.splitlines(keepends=True))
    return Amount(len(spans), _quoting(reading, sorted(spans)[:MOST_QUOTES]))


def _line_marks(lines: Iterable[str]) -> Iterator[Span]:
    """Yield the spans of list markers at line starts, and of emphasis with underscores."""
    place = 0
    for line in lines:
        if item := _ITEM.match(line):
            yield place + item.start(), place + item.end()
        # The first opening is enough: if nothing closes it, nothing closes a later one.
        if "_" in line and (opening := _OPENING.search(line)):
            closing = _CLOSING.search(line, opening.end())
            if closing:
                yield place + opening.start(), place + opening.end()
        place += len(line)


# Questions

_LONGEST_WORD = 30
# Neither "..." nor the period of an abbreviation ends a sentence.
_STOP = re.compile(
    r"\.(?=[\s\"')\]\u201d\u00bb])(?<!\.\.)"
    r"(?<!\b[dms]r\.)(?<!\bmrs\.)(?<!\bms\.)(?<!\bst\.)(?<!\bvs\.)(?<!\b[ei]\.[eg]\.)"
)


def _question(reading: Conversation, _: Lists) -> Amount:
    text = reading.response.original
    place = text.find("?")
    if place < 0:
        return NONE
    # The quote includes the word before the question mark, if it has only letters.
    word = text[max(0, place - _LONGEST_WORD) : place].rpartition(" ")[2]
    start = place - len(word) if word.isalpha() else place
    return Amount(text.count("?"), _quoting(reading, [(start, place + 1)]))


def _helpful_question(reading: Conversation, lists: Lists) -> Amount:
    folded = reading.response
    if not lists.here or "?" not in folded.text:
        return NONE
    spans = _addressed(folded.text, lists.here)
    shown = [folded.span(*span) for span in spans[:MOST_QUOTES]]
    return Amount(len(spans), _quoting(reading, shown))


def _addressed(text: str, addressing: Sequence[Hit]) -> list[Span]:
    """Return, for each question that addresses the user, the first word that does so."""
    spans: list[Span] = []
    reached = index = 0
    question = text.find("?")
    while question >= 0:
        start = _sentence_start(text, reached, question)
        while addressing[index][1] < start:
            index += 1
            if index == len(addressing):
                return spans
        if addressing[index][1] < question:
            spans.append(addressing[index][1:])
        reached = question + 1
        question = text.find("?", reached)
    return spans


def _sentence_start(text: str, reached: int, question: int) -> int:
    end = question
    while end > reached and text[end - 1] == "!":  # "you did what!?"
        end -= 1
    start = max(reached, text.rfind("!", reached, end) + 1, text.rfind("\n", reached, end) + 1)
    stop = text.rfind(".", start, end)
    while stop >= 0 and _STOP.match(text, stop) is None:
        stop = text.rfind(".", start, stop)
    return max(start, stop + 1)


# The rest

UNSAFE_CONTENT: Final = "unsafe_content"


def _line_breaks(reading: Conversation, _: Lists) -> Amount:
    folded = reading.response
    return NONE if folded.one_line else Amount(count_line_breaks(folded.original))


def _shared_words(reading: Conversation, _: Lists) -> Amount:
    """Count the words that both texts have, split at spaces as the companion rubrics require."""
    response = reading.response
    text = response.text if response.one_line else response.text.replace("\n", " ")
    words = set(text.split())
    shared = [word for word in dict.fromkeys(reading.user.text.split()) if word in words]
    spaced = f" {text} "
    places = ((spaced.index(f" {word} "), len(word)) for word in shared if _is_word(word))
    quoted = [response.span(place, place + size) for place, size in islice(places, MOST_QUOTES)]
    return Amount(len(shared), _quoting(reading, quoted))


def _is_word(word: str) -> bool:
    return word.isalpha() or word.strip(".,:;!?\"'()").replace("'", "").isalpha()


def _unsafe_content(reading: Conversation, _: Lists) -> Amount:
    def quote(name: str) -> tuple[Quote, ...]:
        return tuple(
            Quote(
                text="response",
                words=finding.quote.encode(errors="replace").decode(),  # without lone surrogates
                start=finding.start,
                source=f"{name} ({finding.category})",
            )
            for finding in reading.findings[:MOST_QUOTES]
        )

    return Amount(len(reading.findings), quote)


TEXT: Final[Mapping[str, NumericSignal]] = {
    "formatting": _formatting,
    "question": _question,
    "helpful_question": _helpful_question,
    "excessive_line_breaks": _line_breaks,
    "shared_words": _shared_words,
    UNSAFE_CONTENT: _unsafe_content,
}
"""All signals that ``jurybox.rubric.rules.SIGNALS`` declares."""

LEAST: Final = {"excessive_line_breaks": 3}
"""The minimum amount for a signal to be present, if it is more than 1."""

OWN_PHRASES: Final[Mapping[str, tuple[Lexicon, ...]]] = {
    "formatting": (Lexicon(name="", phrases=_MARKS, match="whole-word"),),
    "helpful_question": (Lexicon(name="", phrases=("you", "your"), match="whole-word"),),
}
"""The phrases of signals, which are searched for in the same pass as those of rules."""
