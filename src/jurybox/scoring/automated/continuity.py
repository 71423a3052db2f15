"""What a response does with earlier turns: takes them up, recalls them, or makes them up (C17)."""

import re
from collections.abc import Mapping
from typing import Final

from jurybox.scoring.automated.folding import fold
from jurybox.scoring.automated.phrases import Hit
from jurybox.scoring.automated.reading import NONE, Amount, Lists, NumericSignal, Reading
from jurybox.scoring.automated.words import Passage, WordList

_END = re.compile(r"[.!?\n]")
_LONGEST_CLAIM = 300  # characters that a recollection is looked for in


def _earlier_words(reading: Reading, lists: Lists) -> Amount:
    """Count what comes from an earlier turn and isn't in the message that is answered anyway."""
    if not reading.messages:
        return NONE
    (stop_words,) = lists.words
    mine = reading.said.content(stop_words)
    earlier = reading.before.content(stop_words).keys() - reading.heard.content(stop_words).keys()
    shared = mine.keys() & earlier
    if not shared:
        return NONE
    return Amount(len(shared), reading.said.quoting(mine[each] for each in shared))


def _was_said(reading: Reading, stop_words: WordList, hit: Hit) -> bool | None:
    """Whether what a claim of memory is about was said before: one of its content words, at least.

    It is about the rest of its sentence. One that is about nothing ("as we discussed.") needs an
    earlier turn to refer to. None where only the message itself says it: that is neither a memory
    nor an invention.
    """
    text, end = reading.response.text, hit[2]
    stop = _END.search(text, end, end + _LONGEST_CLAIM)
    rest = text[end : stop.start() if stop else end + _LONGEST_CLAIM]
    recalled = Passage(fold(rest), "response").content(stop_words).keys()
    if not recalled:
        return bool(reading.messages)
    if reading.messages and not recalled.isdisjoint(reading.before.content(stop_words)):
        return True
    return False if recalled.isdisjoint(reading.heard.content(stop_words).keys()) else None


def _memories(reading: Reading, lists: Lists, *, kept: bool) -> Amount:
    (stop_words,) = lists.words
    # Of claims that overlap ("as you told me", "you told me") the first counts.
    claims: list[Hit] = []
    for hit in sorted(lists.hits, key=lambda each: (each[1], -each[2])):
        if not claims or hit[1] >= claims[-1][2]:
            claims.append(hit)
    found = [hit[1:] for hit in claims if _was_said(reading, stop_words, hit) is kept]
    if not found:
        return NONE
    return Amount(len(found), reading.said.quoting_spans(found))


def _kept_memory(reading: Reading, lists: Lists) -> Amount:
    return _memories(reading, lists, kept=True) if lists.hits else NONE


def _false_memory(reading: Reading, lists: Lists) -> Amount:
    return _memories(reading, lists, kept=False) if lists.hits else NONE


def _said_before(reading: Reading, _: Lists) -> Amount:
    mine = reading.said.triples
    if not mine or not reading.messages:
        return NONE
    before = set(reading.own_turns.triples)
    numbers = [number for number, triple in enumerate(mine) if triple in before]
    return Amount(len(numbers) / len(mine), reading.said.quoting(numbers, 3)) if numbers else NONE


CONTINUITY: Final[Mapping[str, NumericSignal]] = {
    "earlier_words": _earlier_words,
    "kept_memory": _kept_memory,
    "false_memory": _false_memory,
    "said_before": _said_before,
}
