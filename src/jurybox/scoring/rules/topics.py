"""What a response is about, and what of it the user has said (C17)."""

from collections.abc import Mapping
from typing import Final

from jurybox.scoring.rules.text_reader import NONE, Amount, Lists, NumericSignal, Reading


def _topic_words(reading: Reading, lists: Lists) -> Amount:
    mine = reading.said.content(lists.words[0])
    shared = mine.keys() & reading.heard.content(lists.words[0]).keys()
    if not shared:
        return NONE
    return Amount(len(shared), reading.said.quoting(mine[each] for each in shared))


def _topic_overlap(reading: Reading, lists: Lists) -> Amount:
    mine = reading.said.content(lists.words[0])
    shared = _topic_words(reading, lists)
    return Amount(shared.number / len(mine), shared.quote) if shared.number else NONE


def _kindred_words(reading: Reading, lists: Lists) -> Amount:
    """Count the families of words, or single words, that both have in common."""
    (stop_words,), families = lists.words, lists.families
    mine, theirs = reading.said.content(stop_words), reading.heard.content(stop_words)
    if families is None or not theirs:
        return NONE
    heads = families.heads(mine)
    shared = heads.keys() & families.heads(theirs).keys()
    if not shared:
        return NONE
    return Amount(len(shared), reading.said.quoting(mine[heads[each]] for each in shared))


def _user_content(reading: Reading, lists: Lists) -> Amount:
    return Amount(len(reading.heard.content(lists.words[0])))


def _content_words(reading: Reading, lists: Lists) -> Amount:
    mine = reading.said.content(lists.words[0])
    return Amount(len(mine), reading.said.quoting(mine.values()))


def _content_share(reading: Reading, lists: Lists) -> Amount:
    mine, words = reading.said.content(lists.words[0]), reading.said.words
    return Amount(len(mine) / len(words), reading.said.quoting(mine.values())) if words else NONE


def _echo(reading: Reading, _: Lists) -> Amount:
    mine = reading.said.triples
    if not mine:
        return NONE
    theirs = set(reading.heard.triples)
    if theirs.isdisjoint(mine):
        return NONE
    numbers = [number for number, triple in enumerate(mine) if triple in theirs]
    return Amount(len(numbers) / len(mine), reading.said.quoting(numbers, 3)) if numbers else NONE


TOPICS: Final[Mapping[str, NumericSignal]] = {
    "topic_words": _topic_words,
    "topic_overlap": _topic_overlap,
    "kindred_words": _kindred_words,
    "user_content": _user_content,
    "content_words": _content_words,
    "content_share": _content_share,
    "echo": _echo,
}
