"""How a response sounds: its questions, its fluency, and how easy it is on the ear (C17)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from jurybox.scoring.rules.text_reader import NONE, Amount, Lists, NumericSignal, Reading
from jurybox.scoring.rules.words import syllables

_BREAKS_OFF = tuple(",;:-\u2013\u2014")
# Letters of which nobody makes a syllable. "Hmmm" is said, so letters that repeat count once.
_SAME = re.compile(r"(.)\1+")
_CONSONANT = "[bcdfghjklmnpqrstvwxz]"
_UNSAYABLE = re.compile(
    rf"{_CONSONANT}{{4,}}$|(?=[a-z]*$).*(?:[jq][bcdfghklmnprtvwxz]|{_CONSONANT}{{7}})"
)
_QUESTION = re.compile(r"\?[?!]*")
_NUMBER = re.compile("[0-9](?:[,. ]?[0-9]){4,}")
_DIGIT = re.compile("[0-9]")
_ADDRESS = re.compile(r"https?:|www\.|(?<=[^\s@])@(?=[^\s@])", re.IGNORECASE)
_HARD_MARKS = "(/="


@lru_cache(1 << 16)
def _is_gibberish(word: str) -> bool:
    return _UNSAYABLE.match(_SAME.sub(r"\1", word)) is not None


def _question_count(reading: Reading, _: Lists) -> Amount:
    text = reading.response.text
    if "?" not in text:
        return NONE
    spans = [match.span() for match in _QUESTION.finditer(text)]
    return Amount(len(spans), reading.said.quoting_spans(spans))


def _open_questions(reading: Reading, lists: Lists) -> Amount:
    """Count the questions with an opener, such as "what", between the last end and their mark."""
    text, reached = reading.response.text, 0
    spans: list[tuple[int, int]] = []
    question = text.find("?")
    hits = iter(lists.hits)
    hit = next(hits, None)
    while question >= 0 and hit is not None:
        start = max(reached, *(text.rfind(mark, reached, question) + 1 for mark in ".!\n"))
        while hit is not None and hit[1] < start:
            hit = next(hits, None)
        if hit is not None and hit[1] < question:
            spans.append(hit[1:])
        reached = question + 1
        question = text.find("?", reached)
    return Amount(len(spans), reading.said.quoting_spans(spans))


def _repetition(reading: Reading, _: Lists) -> Amount:
    triples = reading.said.triples
    if len(set(triples)) == len(triples):
        return NONE
    seen: set[tuple[str, str, str]] = set()
    numbers: list[int] = []
    for number, triple in enumerate(triples):
        if triple in seen:
            numbers.append(number)
        seen.add(triple)
    return Amount(len(numbers) / len(triples), reading.said.quoting(numbers, 3))


def _unfinished(reading: Reading, lists: Lists) -> Amount:
    said, (dangling,) = reading.said, lists.words
    text = reading.response.text.rstrip()
    if not text or not said.words:
        return NONE
    if not text.endswith(_BREAKS_OFF) and not (
        text[-1].isalnum() and said.words[-1] in dangling.words
    ):
        return NONE
    return Amount(1, said.quoting([len(said.words) - 1]))


def _gibberish(reading: Reading, _: Lists) -> Amount:
    words = reading.said.words
    if not any(map(_is_gibberish, words)):
        return NONE
    numbers = [number for number, word in enumerate(words) if _is_gibberish(word)]
    return Amount(len(numbers) / len(words), reading.said.quoting(numbers))


def _spoken_words(reading: Reading, _: Lists) -> Amount:
    return Amount(len(reading.said.words))


def _sentence_words(reading: Reading, _: Lists) -> Amount:
    sentences = reading.said.sentences
    return Amount(sum(sentences) / len(sentences)) if sentences else NONE


def _longest_sentence(reading: Reading, _: Lists) -> Amount:
    return Amount(max(reading.said.sentences, default=0))


def _syllables(reading: Reading, _: Lists) -> Amount:
    words = reading.said.words
    return Amount(sum(map(syllables, words)) / len(words)) if words else NONE


def _word_letters(reading: Reading, _: Lists) -> Amount:
    words = reading.said.words
    return Amount(len("".join(words)) / len(words)) if words else NONE


def _hard_to_say(reading: Reading, lists: Lists) -> Amount:
    text = reading.response.text
    spans = [hit[1:] for hit in lists.hits]
    # What most responses don't have is looked for by the quickest means.
    if _DIGIT.search(text):
        spans += [match.span() for match in _NUMBER.finditer(text)]
    if "@" in text or "www." in text or "http" in text:
        spans += [match.span() for match in _ADDRESS.finditer(text)]
    for mark in _HARD_MARKS:
        if mark in text:
            spans += [match.span() for match in re.finditer(re.escape(mark), text)]
    return Amount(len(spans), reading.said.quoting_spans(sorted(spans))) if spans else NONE


SPEECH: Final[Mapping[str, NumericSignal]] = {
    "question_count": _question_count,
    "open_questions": _open_questions,
    "repetition": _repetition,
    "unfinished": _unfinished,
    "gibberish": _gibberish,
    "spoken_words": _spoken_words,
    "sentence_words": _sentence_words,
    "longest_sentence": _longest_sentence,
    "syllables": _syllables,
    "word_letters": _word_letters,
    "hard_to_say": _hard_to_say,
}
