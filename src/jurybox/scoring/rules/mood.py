"""The mood of what is said, from words that are bright or dark (C17)."""

from collections.abc import Mapping
from typing import Final

from jurybox.scoring.rules.text_reader import NONE, Amount, Lists, NumericSignal, Reading
from jurybox.scoring.rules.words import Passage, WordList

_REACH = 3  # so many words after a "not" are turned around
_MOST_TURNS = 3  # a mood from long ago is over
_FADED = 0.5  # what distress of an earlier turn is worth


def _mood(passage: Passage, lists: Lists) -> Amount:
    """Return (bright - dark) / (bright + dark), and 0 where there is neither.

    The next mood word within three words of a negation is turned around: a bright one is dark
    ("not happy"), a dark one is left out ("don't worry"), for who isn't sad needn't be happy.
    """
    bright, dark, negations = lists.words
    key = id(bright), id(dark), id(negations)
    known = passage.moods.get(key)
    if known is None:
        known = passage.moods[key] = _work_out(passage, bright, dark, negations)
    balance, numbers = known
    return Amount(balance / len(numbers), passage.quoting(numbers)) if numbers else NONE


def _work_out(
    passage: Passage, bright: WordList, dark: WordList, negations: WordList
) -> tuple[int, list[int]]:
    words, stems, balance = passage.words, passage.stems, 0
    bright_stems = bright.stems
    moods = bright_stems.intersection(stems) | dark.stems.intersection(stems)
    if not moods:
        return 0, []
    numbers = [number for number, each in enumerate(stems) if each in moods]
    shown: list[int] = []
    reached = 0
    for number in numbers:
        bright_word = stems[number] in bright_stems
        before = words[max(reached, number - _REACH) : number]
        reached = number + 1
        if not negations.words.isdisjoint(before):
            if not bright_word:
                continue
            bright_word = False
        shown.append(number)
        balance += 1 if bright_word else -1
    return balance, shown


def _sentiment(reading: Reading, lists: Lists) -> Amount:
    return _mood(reading.said, lists)


def _user_mood(reading: Reading, lists: Lists) -> Amount:
    mood = _mood(reading.heard, lists)
    if mood.quote is None and reading.messages:
        for passage in reading.user_turns[:_MOST_TURNS]:
            mood = _mood(passage, lists)
            if mood.quote is not None:
                break
    return mood


def _mood_match(reading: Reading, lists: Lists) -> Amount:
    mine = _sentiment(reading, lists)
    if not mine.number:
        return NONE
    yours = _user_mood(reading, lists)
    return Amount(mine.number * yours.number, mine.quote) if yours.number else NONE


def _distress(reading: Reading, lists: Lists) -> Amount:
    """Return 1 where the message shows distress, and half of it where a recent one does."""
    if lists.hits:
        return Amount(1, reading.heard.quoting_spans([hit[1:] for hit in lists.hits]))
    if not lists.earlier:
        return NONE
    start = reading.start_of_recent(_MOST_TURNS)
    spans = [hit[1:] for hit in lists.earlier if hit[1] >= start]
    if not spans:
        return NONE
    return Amount(_FADED, Passage(reading.earlier, "earlier").quoting_spans(spans))


MOOD: Final[Mapping[str, NumericSignal]] = {
    "sentiment": _sentiment,
    "user_mood": _user_mood,
    "mood_match": _mood_match,
    "distress": _distress,
}
