import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.scoring.rules.phrases import fold

ODD = st.sampled_from(
    [
        *("\n", "\r\n", "  ", "\t", "\x1f", "\u00a0", "\u2028"),
        *("\u200b", "\ufe0f", "\u00ad", "\u2019", "\ud800"),
        *("\u00df", "\u0130", "\ufb01", "e\u0301", "\u0301", "\u212b", "\u1112\u1161\u11ab"),
    ]
)
TEXTS = st.lists(st.one_of(ODD, st.text(max_size=4), st.sampled_from("aB c"))).map("".join)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", ""),
        ("Plain Words", "plain words"),
        ("It\u2019s \u2018so\u2019", "it's 'so'"),
        ("Stra\u00dfe", "stra\u00dfe"),
        (
            "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2",
            "\u03c3\u03af\u03c3\u03c5\u03c6\u03bf\u03c3",
        ),
        ("cafe\u0301", "caf\u00e9"),
        ("\u212bngstr\u00f6m", "\u00e5ngstr\u00f6m"),
        ("st\u00adre\u200bss", "stress"),
        ("\u2764\ufe0fsad", "\u2764sad"),
        ("two  words", "two words"),
        ("two\nwords", "two words"),
        ("two\r\n\t words", "two words"),
        ("two\u00a0words", "two words"),
        ("two\n \nwords", "two\nwords"),
        ("two \u200b words", "two words"),
        ("half \ud83d of it", "half \ufffd of it"),
    ],
)
def test_what_reads_the_same_is_folded_into_the_same(text: str, folded: str) -> None:
    assert fold(text).text == folded


@given(TEXTS)
def test_every_letter_leads_back_to_what_it_was_folded_from(text: str) -> None:
    folded = fold(text)
    spans = [folded.span(place, place + 1) for place in range(len(folded.text))]
    assert spans == sorted(spans)
    for char, (start, end) in zip(folded.text, spans, strict=True):
        assert 0 <= start < end <= len(folded.original)
        assert char.isspace() or char == fold(folded.original[start:end]).text


@given(st.text(st.characters(min_codepoint=1, max_codepoint=127)))
def test_the_words_of_plain_text_are_counted_as_the_source_counts_them(text: str) -> None:
    assert fold(text).words == len(text.split())
    assert fold(text).text.split() == text.lower().split()


@pytest.mark.parametrize(
    "text", ["\u00df", "\n ", "a\u0301\u0316", "\u0316\u0301", "\u200b", "\ud800"]
)
def test_a_long_text_takes_time_in_proportion(text: str) -> None:
    # A square of this length would take an hour.
    whole = text * (200_000 // len(text))
    folded = fold(whole)
    size = len(folded.text)
    assert size == 0 or folded.span(size - 1, size)[1] <= len(folded.original)
