"""The signals: what rules can use apart from phrases, such as formatting, topics, mood and memory.

Each signal returns its amount and quotes its first occurrences. Quotes contain letters or marks,
never numbers or addresses, because they must not show what the safety scan masks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import islice
from typing import Final

from jurybox.rubric.rules import Lexicon
from jurybox.scoring.rules.phrases import Hit, count_line_breaks, fold
from jurybox.scoring.rules.rule_report import MOST_QUOTES, Quote
from jurybox.scoring.rules.text_reader import (
    NONE,
    Amount,
    Conversation,
    Lists,
    NumericSignal,
    Passage,
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


OWN_PHRASES: Final[Mapping[str, tuple[Lexicon, ...]]] = {
    "formatting": (Lexicon(name="", phrases=_MARKS, match="whole-word"),),
    "helpful_question": (Lexicon(name="", phrases=("you", "your"), match="whole-word"),),
}
"""The phrases of signals, which are searched for in the same pass as those of rules."""

_QUESTION = re.compile(r"\?[?!]*")
# Long numbers, addresses, and marks.
_HARD = re.compile(
    r"[0-9](?:[,. ]?[0-9]){4,}|https?:|www\.|(?<=[^\s@])@(?=[^\s@])|[(/=]", re.IGNORECASE
)


def _question_count(reading: Conversation, _: Lists) -> Amount:
    text = reading.response.text
    if "?" not in text:
        return NONE
    spans = [match.span() for match in _QUESTION.finditer(text)]
    return Amount(len(spans), reading.answer.quoting_spans(spans))


def _repetition(reading: Conversation, _: Lists) -> Amount:
    triples = reading.answer.triples
    if len(set(triples)) == len(triples):
        return NONE
    seen: set[tuple[str, str, str]] = set()
    numbers: list[int] = []
    for number, triple in enumerate(triples):
        if triple in seen:
            numbers.append(number)
        seen.add(triple)
    return Amount(len(numbers) / len(triples), reading.answer.quoting(numbers, 3))


def _sentence_words(reading: Conversation, _: Lists) -> Amount:
    sentences = reading.answer.sentences
    return Amount(sum(sentences) / len(sentences)) if sentences else NONE


def _word_letters(reading: Conversation, _: Lists) -> Amount:
    words = reading.answer.words
    return Amount(len("".join(words)) / len(words)) if words else NONE


def _hard_to_say(reading: Conversation, lists: Lists) -> Amount:
    text = reading.response.text
    spans = [hit[1:] for hit in lists.here]
    spans += [match.span() for match in _HARD.finditer(text)]
    return Amount(len(spans), reading.answer.quoting_spans(sorted(spans))) if spans else NONE


def _topic_overlap(reading: Conversation, lists: Lists) -> Amount:
    mine = reading.answer.content(lists.words[0])
    shared = mine.keys() & reading.message.content(lists.words[0]).keys()
    if not shared:
        return NONE
    return Amount(len(shared) / len(mine), reading.answer.quoting(mine[each] for each in shared))


def _kindred_words(reading: Conversation, lists: Lists) -> Amount:
    """Count the words, or families of words, that both texts have."""
    (stop_words,), families = lists.words, lists.families
    mine, theirs = reading.answer.content(stop_words), reading.message.content(stop_words)
    if families is None or not theirs:
        return NONE
    heads = families.heads(mine)
    shared = heads.keys() & families.heads(theirs).keys()
    if not shared:
        return NONE
    return Amount(len(shared), reading.answer.quoting(mine[heads[each]] for each in shared))


def _content_words(reading: Conversation, lists: Lists) -> Amount:
    mine = reading.answer.content(lists.words[0])
    return Amount(len(mine), reading.answer.quoting(mine.values()))


def _content_share(reading: Conversation, lists: Lists) -> Amount:
    mine, words = reading.answer.content(lists.words[0]), reading.answer.words
    return Amount(len(mine) / len(words), reading.answer.quoting(mine.values())) if words else NONE


def _repeated(answer: Passage, said: Passage) -> Amount:
    """Return the share of the response's word triples that also occur in ``said``."""
    mine = answer.triples
    theirs = set(said.triples)
    numbers = [number for number, triple in enumerate(mine) if triple in theirs]
    return Amount(len(numbers) / len(mine), answer.quoting(numbers, 3)) if numbers else NONE


_REACH = 3  # how many words after it a "not" can negate
_MOST_TURNS = 3  # older moods no longer count
_FADED = 0.5  # the weight of distress in an earlier turn


def _sentiment(reading: Conversation, lists: Lists) -> Amount:
    """Return the balance of mood words, (bright - dark) / (bright + dark); 0 without any.

    A negation affects the next mood word within three words: a bright one becomes dark ("not
    happy"), a dark one is ignored ("don't worry"), because not being sad isn't being happy.
    """
    bright, dark, negations = lists.words
    words, balance, reached = reading.answer.words, 0, 0
    shown: list[int] = []
    for number, stem in enumerate(reading.answer.stems):
        is_bright = stem in bright.stems
        if not is_bright and stem not in dark.stems:
            continue
        before = words[max(reached, number - _REACH) : number]
        reached = number + 1
        if not negations.words.isdisjoint(before):
            if not is_bright:
                continue
            is_bright = False
        shown.append(number)
        balance += 1 if is_bright else -1
    return Amount(balance / len(shown), reading.answer.quoting(shown)) if shown else NONE


def _distress(reading: Conversation, lists: Lists) -> Amount:
    """Return 1 if the message shows distress, and 0.5 if only a recent earlier one does."""
    if hits := lists.hits.get("user"):
        return Amount(1, reading.message.quoting_spans([hit[1:] for hit in hits]))
    if "earlier" not in lists.hits:
        return NONE
    start = reading.start_of_recent(_MOST_TURNS)
    spans = [hit[1:] for hit in lists.hits["earlier"] if hit[1] >= start]
    if not spans:
        return NONE
    return Amount(_FADED, Passage(reading.earlier, "earlier").quoting_spans(spans))


_END = re.compile(r"[.!?\n]")
# Text added by a relative clause or an "and" belongs to the claim.
_CLAUSE = re.compile(r"[;:\u2014]|,(?! (?:who|which|whose|where|when|that|because|and)\b)")
_YOU = "you"  # content after "you said" must come from the user
_LONGEST_CLAIM = 300  # how many characters to search for what is recalled


def _earlier_words(reading: Conversation, lists: Lists) -> Amount:
    """Count the response's words from earlier turns that aren't in the current message."""
    if not reading.messages:
        return NONE
    (stop_words,) = lists.words
    mine = reading.answer.content(stop_words)
    earlier = reading.before.content(stop_words).keys() - reading.message.content(stop_words).keys()
    shared = mine.keys() & earlier
    if not shared:
        return NONE
    return Amount(len(shared), reading.answer.quoting(mine[each] for each in shared))


def _claims(text: str, span: Span) -> Iterator[tuple[str, ...]]:
    """Yield possible subjects of a claim to remember something, most likely first.

    These are the rest of the claim's sentence ("you said that ...") or only its first clause; if
    no content follows, the whole sentence ("your cat is ill, like you said"). The first subject
    with content words counts.
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
    contents: Sequence[AbstractSet[str]], before: AbstractSet[str], message: AbstractSet[str]
) -> bool | None:
    """Return whether at least half of a claim's content words occurred before the message.

    Return None if half of them occurred only before or in the message: repeating the message is
    neither memory nor invention. Return False for a claim that is made up.
    """
    if any(2 * len(each & before) >= len(each) for each in contents):
        return True
    known = any(2 * len(each & (before | message)) >= len(each) for each in contents)
    return None if known else False


def _heads(passage: Passage, lists: Lists) -> AbstractSet[str]:
    content = passage.content(lists.words[0])
    return content.keys() if lists.families is None else lists.families.heads(content).keys()


def _memories(reading: Conversation, lists: Lists, *, kept: bool) -> Amount:
    if not lists.here:
        return NONE
    text = reading.response.text
    # Of overlapping claims ("as you said", "you said"), the first counts.
    claims: list[Hit] = []
    for hit in sorted(lists.here, key=lambda each: (each[1], -each[2])):
        if not claims or hit[1] >= claims[-1][2]:
            claims.append(hit)
    anybody, user = _heads(reading.before, lists), _heads(reading.from_user, lists)
    message = _heads(reading.message, lists)
    found: list[Span] = []
    for hit in claims:
        span = hit[1:]
        # The result if the claim has no content words, as in "as we discussed".
        was_said: bool | None = bool(reading.messages)
        for texts in _claims(text, span):
            contents = [
                each for one in texts if (each := _heads(Passage(fold(one), "response"), lists))
            ]
            if contents:
                before = user if _YOU in text[span[0] : span[1]] else anybody
                was_said = _was_said(contents, before, message)
                break
        if was_said is kept:
            found.append(span)
    return Amount(len(found), reading.answer.quoting_spans(found)) if found else NONE


SIGNAL_READERS: Final[Mapping[str, NumericSignal]] = {
    "formatting": _formatting,
    "question": _question,
    "helpful_question": _helpful_question,
    "excessive_line_breaks": _line_breaks,
    "shared_words": _shared_words,
    UNSAFE_CONTENT: _unsafe_content,
    "sentiment": _sentiment,
    "distress": _distress,
    "topic_overlap": _topic_overlap,
    "kindred_words": _kindred_words,
    "user_content": lambda reading, lists: Amount(len(reading.message.content(lists.words[0]))),
    "content_words": _content_words,
    "content_share": _content_share,
    "echo": lambda reading, _: _repeated(reading.answer, reading.message),
    "earlier_words": _earlier_words,
    "earlier_turns": lambda reading, _: Amount(
        sum(turn.role == "user" for turn in reading.messages)
    ),
    "kept_memory": partial(_memories, kept=True),
    "false_memory": partial(_memories, kept=False),
    "said_before": lambda reading, _: _repeated(reading.answer, reading.own_turns),
    "response_words": lambda reading, _: Amount(reading.response.words),
    "user_words": lambda reading, _: Amount(reading.user.words),
    "question_count": _question_count,
    "repetition": _repetition,
    "spoken_words": lambda reading, _: Amount(len(reading.answer.words)),
    "sentence_words": _sentence_words,
    "word_letters": _word_letters,
    "hard_to_say": _hard_to_say,
}
"""All signals that ``jurybox.rubric.rules`` declares, and the word counts."""
