"""What holds for every reply: no crash, no score of the reader's own making, nothing lost."""

import json
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurybox.judging.flow import Defect
from jurybox.judging.formats.reply_format import Preference, Scores, mirror
from readers import CHECKLIST, CRITERIA, READERS, STRICT, golden, read

GIVEN = [row for name in ("malformed", "valid") for row in golden(name)]
FORMS = st.sampled_from(sorted(READERS))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SENTENCES = TEXTS.filter(lambda text: any(map(str.isalnum, text)))

PIECES = [
    *'{}[]":,|/%-+._*`\n\\ ',
    *["[[", "]]", "{{", "}}", "\\u", "\\ud800", "```json", "null", "true", "NaN", "1e", "e-1"],
    *["0", "1", "4", "0.8", "7.0", "10", "9" * 25, "1e400", "-0", ".5", " out of ", " to "],
    *["A", "B", "C", "tie", "Score: ", "Score", "Reasoning: ", "[[A]]", "[[7]]", "9 8.5"],
    *[f'"{each}"' for each in ("reasoning", "scores", "winner", "preferences", "rationale")],
    *[f'"{each}"' for each in (*CRITERIA, *CHECKLIST, *STRICT)],
    *['{"scores": {"correctness": 4, "clarity": 5}}', "\ud800", "\x00", "\u0668", "\u2028"],
]
SOUP = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return a known reply with something cut out, repeated, put in or exchanged."""
    text: str = draw(st.sampled_from(GIVEN))["reply"]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        put = draw(st.one_of(st.just(""), st.sampled_from(PIECES), TEXTS, st.just(text[start:end])))
        text = text[:start] + put + text[draw(st.sampled_from([start, end])) :]
    return text


KEYS = st.sampled_from(
    [
        *("reasoning", "bias_checklist", "safety_concerns", "scores", "preferences", "winner"),
        *("rationale", *CRITERIA, *CHECKLIST, *STRICT),
    ]
)


def json_with(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)
        ),
        max_leaves=12,
    )


OBJECTS = st.dictionaries(KEYS, json_with(KEYS | TEXTS), max_size=6).map(json.dumps)
REPLIES = st.one_of(st.text(max_size=60), SOUP, damaged(), OBJECTS)

NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def numbers_in(text: str) -> set[Decimal]:
    """Return every number that a text holds, whole and to the digit: 1e-1 holds no 1."""
    found = [match[0] for match in NUMBER.finditer(text)]
    # An exponent of many digits is beyond any number, and beyond a Decimal.
    return {Decimal(each) for each in found if not re.search(r"[eE][-+]?\d{7}", each)}


def scores_in(outcome: Scores | Preference | Defect) -> list[float]:
    match outcome:
        case Scores():
            return list(outcome.scores.values())
        case Preference():
            return outcome.remarks.extra.get("scores", [])
        case Defect():
            return []


@settings(max_examples=settings.default.max_examples * 4)
@given(FORMS, REPLIES)
def test_no_reply_crashes_a_reader(form: str, reply: str) -> None:
    outcome = read(form, reply)
    assert isinstance(outcome, Scores | Preference | Defect)


@settings(max_examples=settings.default.max_examples * 4)
@given(FORMS, st.one_of(SOUP, damaged()))
def test_no_reader_returns_a_score_that_is_not_in_the_reply(form: str, reply: str) -> None:
    outcome = read(form, reply)
    missing = {Decimal(repr(score)) for score in scores_in(outcome)} - numbers_in(reply)
    assert missing == set()


@pytest.mark.parametrize("form", READERS)
def test_no_reader_makes_a_score_of_a_reply_in_another_format(form: str) -> None:
    for row in GIVEN:
        scores = scores_in(read(form, row["reply"])) if row["format"] != form else []
        assert {Decimal(repr(score)) for score in scores} <= numbers_in(row["reply"]), row


def texts_for(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries(dict.fromkeys(names, SENTENCES))


def telling(checklist: dict[str, str]) -> dict[str, str]:
    """Return a checklist of which at least one item says something."""
    return {**checklist, CHECKLIST[0]: f"Seen: {checklist[CHECKLIST[0]]}"}


# Without names of scores, which would be a verdict before the reasoning (E4).
EXTRA = st.dictionaries(TEXTS.map("x_{}".format), json_with(TEXTS))
# Without braces, so that what stands around a verdict is no object, and without the mark of a
# quotation, in which no verdict counts.
PROSE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}>"), max_size=60)
LAYOUTS = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([None, (",", ":"), (" , ", " : "), (",\r\n", ":\n")]),
    }
)


@st.composite
def mixed_in(draw: st.DrawFn, verdict: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict with further keys anywhere between its own, which keep their order."""
    items = list(verdict.items())
    for item in extra.items():
        items.insert(draw(st.integers(0, len(items))), item)
    return dict(items)


def finite(value: Any) -> bool:  # noqa: ANN401 - any JSON
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


@settings(max_examples=60)
@given(st.data())
def test_every_verdict_with_scores_is_read_back(data: st.DataObject) -> None:
    reasoning = data.draw(texts_for(tuple(CRITERIA)))
    checklist = data.draw(texts_for(CHECKLIST).map(telling))
    concerns = data.draw(st.lists(SENTENCES, max_size=3))
    scores = data.draw(st.fixed_dictionaries(dict.fromkeys(CRITERIA, st.integers(1, 5))))
    extra = data.draw(EXTRA.filter(finite))
    verdict = {
        "reasoning": reasoning,
        "bias_checklist": checklist,
        "safety_concerns": concerns,
        "scores": scores,
    }
    laid_out = json.dumps(data.draw(mixed_in(verdict, extra)), **data.draw(LAYOUTS))
    outcome = read("json", data.draw(PROSE) + laid_out + data.draw(PROSE))
    assert isinstance(outcome, Scores), outcome
    assert outcome.scores == scores
    assert outcome.remarks.reasoning == reasoning
    assert outcome.remarks.bias_checklist == checklist
    assert list(outcome.remarks.safety_concerns) == concerns
    assert outcome.remarks.extra == extra


@settings(max_examples=60)
@given(st.data())
def test_every_strict_verdict_is_read_back(data: st.DataObject) -> None:
    scores = data.draw(st.fixed_dictionaries(dict.fromkeys(STRICT, st.integers(0, 2))))
    rationale = data.draw(SENTENCES)
    extra = data.draw(EXTRA.filter(finite))
    verdict = {**scores, "rationale": rationale, **extra}
    shuffled = dict(data.draw(st.permutations(list(verdict.items()))))
    outcome = read("strict-json", json.dumps(shuffled, **data.draw(LAYOUTS)))
    assert isinstance(outcome, Scores), outcome
    assert outcome.scores == scores
    assert outcome.remarks.reasoning == dict.fromkeys(STRICT, rationale)
    assert outcome.remarks.extra == extra


SIDE = st.sampled_from(["A", "B", "tie"])


def swapped(verdict: dict[str, Any]) -> dict[str, Any]:
    preferences = {name: mirror(side) for name, side in verdict["preferences"].items()}
    return {**verdict, "preferences": preferences, "winner": mirror(verdict["winner"])}


@settings(max_examples=60)
@given(st.data())
def test_a_preference_is_read_back_and_swapping_its_sides_mirrors_it(data: st.DataObject) -> None:
    verdict = {
        "reasoning": data.draw(texts_for(tuple(CRITERIA))),
        "bias_checklist": data.draw(texts_for(CHECKLIST).map(telling)),
        "safety_concerns": [],
        "preferences": (sides := data.draw(st.fixed_dictionaries(dict.fromkeys(CRITERIA, SIDE)))),
        # A winner that no criterion prefers is a contradiction.
        "winner": data.draw(st.sampled_from(list(sides.values()))),
    }
    layout, before, behind = data.draw(LAYOUTS), data.draw(PROSE), data.draw(PROSE)
    one = read("json-pair", before + json.dumps(verdict, **layout) + behind)
    other = read("json-pair", before + json.dumps(swapped(verdict), **layout) + behind)
    assert isinstance(one, Preference), one
    assert isinstance(other, Preference), other
    assert (one.winner, one.preferences) == (verdict["winner"], verdict["preferences"])
    assert other == one.mirrored()
    assert one.mirrored().mirrored() == one


@given(st.integers(0, 100).map(lambda hundredths: hundredths / 100), SENTENCES)
def test_every_score_line_is_read_back(score: float, reasoning: str) -> None:
    line = f"Score: {score} | Reasoning: {re.sub('(?i)score', '', reasoning)}"
    outcome = read("score-line", line)
    assert isinstance(outcome, Scores), outcome
    assert outcome.scores == {"overall_quality": score}
