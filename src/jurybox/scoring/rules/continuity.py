"""What a response does with earlier turns: takes them up, recalls them, or makes them up (C17)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from jurybox.scoring.rules.case_folding import fold
from jurybox.scoring.rules.phrases import Hit
from jurybox.scoring.rules.text_reader import NONE, Amount, Lists, NumericSignal, Reading, Span
from jurybox.scoring.rules.words import Passage

_END = re.compile(r"[.!?\n]")
# What a relative clause or an "and" adds is part of what is recalled.
_CLAUSE = re.compile(r"[;:\u2014]|,(?! (?:who|which|whose|where|when|that|because|and)\b)")
_YOU = "you"  # what "you told me" has to come from the user
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


def _claims(text: str, span: Span) -> Iterator[tuple[str, ...]]:
    """Yield what a claim of memory may be about, the likeliest first; it is the first with content.

    That is the rest of its sentence ("you told me that ..."), of which the first clause may say
    enough; or, where nothing follows, all of it ("your cat is ill, like you said").
    """
    start, end = span
    stop = _END.search(text, end, end + _LONGEST_CLAIM)
    close = stop.start() if stop else end + _LONGEST_CLAIM
    rest = text[end:close]
    clause = _CLAUSE.search(rest)
    yield (rest[: clause.start()], rest) if clause else (rest,)
    first = max(text.rfind(mark, max(0, start - _LONGEST_CLAIM), start) + 1 for mark in ".!?\n")
    yield (f"{text[first:start]} {rest}",)


def _was_said(
    told: Sequence[AbstractSet[str]], before: AbstractSet[str], message: AbstractSet[str]
) -> bool | None:
    """Whether what a claim is about was said before: half of its content words, at least.

    It is made up where most of its words are new. None where it is the message that says it: that
    is neither a memory nor an invention.
    """
    if any(2 * len(each & before) >= len(each) for each in told):
        return True
    known = any(2 * len(each & (before | message)) >= len(each) for each in told)
    return None if known else False


def _heads(passage: Passage, lists: Lists) -> AbstractSet[str]:
    content = passage.content(lists.words[0])
    return content.keys() if lists.families is None else lists.families.heads(content).keys()


def _memories(reading: Reading, lists: Lists, *, kept: bool) -> Amount:
    text = reading.response.text
    # Of claims that overlap ("as you told me", "you told me") the first counts.
    claims: list[Hit] = []
    for hit in sorted(lists.hits, key=lambda each: (each[1], -each[2])):
        if not claims or hit[1] >= claims[-1][2]:
            claims.append(hit)
    anybody, user = _heads(reading.before, lists), _heads(reading.told, lists)
    message = _heads(reading.heard, lists)
    found: list[Span] = []
    for hit in claims:
        span = hit[1:]
        said: bool | None = bool(reading.messages)  # about nothing: "as we discussed."
        for texts in _claims(text, span):
            told = [
                each for one in texts if (each := _heads(Passage(fold(one), "response"), lists))
            ]
            if told:
                before = user if _YOU in text[span[0] : span[1]] else anybody
                said = _was_said(told, before, message)
                break
        if said is kept:
            found.append(span)
    return Amount(len(found), reading.said.quoting_spans(found)) if found else NONE


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


def _earlier_turns(reading: Reading, _: Lists) -> Amount:
    return Amount(sum(turn.role == "user" for turn in reading.messages))


CONTINUITY: Final[Mapping[str, NumericSignal]] = {
    "earlier_words": _earlier_words,
    "earlier_turns": _earlier_turns,
    "kept_memory": _kept_memory,
    "false_memory": _false_memory,
    "said_before": _said_before,
}
