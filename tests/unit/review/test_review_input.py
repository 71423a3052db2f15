"""A reviewer's verdict is read as strictly as a judge's (E5)."""

import pytest

from jurybox.errors import InputError
from jurybox.review.review_input import given_number, read_comment, read_reviewer, read_verdict
from jurybox.review.reviews import HumanVerdict
from jurybox.rubric import parse_rubric

RUBRIC = parse_rubric(
    """---
id: answers
version: 1.0.0
scale: 1-5
scales: {depth: 0.0-1.0}
---
# Answers
## Criteria
### Clarity
### Depth
""",
    "answers.md",
)


def scores(**given: object) -> dict[str, object]:
    return {"scores": given}


def test_scores_are_kept_as_they_were_given() -> None:
    found = read_verdict(scores(clarity=4, depth=0.5), RUBRIC, pair=False)
    assert found == HumanVerdict(scores={"clarity": 4, "depth": 0.5})
    assert isinstance(found.scores["clarity"], int)
    nothing = read_verdict(scores(clarity=None, depth=None), RUBRIC, pair=False)
    assert nothing.scores == {"clarity": None, "depth": None}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (scores(clarity=4.0, depth=0.5), "clarity: the score is 4.0, not a whole number"),
        (scores(clarity=6, depth=0.5), "clarity: the score is 6, which is outside the scale"),
        (scores(clarity="4", depth=0.5), 'clarity: the score is "4"'),
        (scores(clarity=True, depth=0.5), "clarity: the score is true"),
        (scores(clarity=4, depth=1.01), "depth: the score is 1.01, which is outside"),
        (scores(clarity=4, depth=float("nan")), "depth: the score is NaN"),
        (scores(clarity=4), "depth: the score is missing; give a number from 0.0 to 1.0, or null"),
        (scores(clarity=4, depth=1, tone=3), "`tone` isn't judged; there are `clarity`, `depth`"),
        (scores(clarity=4, dept=1), "`dept` isn't judged; did you mean `depth`?"),
        ({"scores": 4}, "`scores` isn't an object"),
        ({}, "`scores` is missing"),
        ({"winner": "A"}, "`winner` is an unknown key"),
        ([], "the verdict isn't an object"),
        (None, "the verdict isn't an object"),
    ],
)
def test_nothing_is_rounded_clamped_or_filled_in(data: object, says: str) -> None:
    with pytest.raises(InputError) as error:
        read_verdict(data, RUBRIC, pair=False)
    assert says in str(error.value)


def test_a_pair_has_a_winner() -> None:
    assert read_verdict({"winner": "tie"}, RUBRIC, pair=True) == HumanVerdict(winner="tie")
    assert read_verdict({"winner": None}, RUBRIC, pair=True) == HumanVerdict()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"winner": "C"}, "winner: that isn't one of the responses"),
        ({"winner": ["A"]}, "winner: that isn't one of the responses"),
        ({}, "`winner` is missing"),
        (
            {"winner": "A", "preferences": {"depth": "A"}},
            "`preferences` is an unknown key",
        ),
        (scores(clarity=4, depth=1), "`scores` is an unknown key"),
    ],
)
def test_a_verdict_on_a_pair_is_read_strictly_too(data: object, says: str) -> None:
    with pytest.raises(InputError) as error:
        read_verdict(data, RUBRIC, pair=True)
    assert says in str(error.value)


def test_a_field_of_a_form_is_read_as_a_browser_does() -> None:
    numbers = [given_number(text) for text in ("4", "4.0", "-2", "0.25", ".5", "-.5", "1e3")]
    assert numbers == [4, 4, -2, 0.25, 0.5, -0.5, 1000]
    assert [type(each) for each in numbers] == [int, int, int, float, float, float, int]
    others = ("", "four", "4 ", ".", "-", "e3", "1e999", "nan", "\u0664", "4.", "1" * 400)
    assert [given_number(text) for text in others] == list(others)


@pytest.mark.parametrize(
    "name", [" Anna ", "Jos\u0065\u0301", "\u9648\u4f1f", "x" * 80, "O'Neil 2"]
)
def test_a_name_is_one_line_that_can_be_printed(name: str) -> None:
    assert read_reviewer(name)


def test_a_name_is_the_same_however_it_was_typed() -> None:
    assert read_reviewer("  Jos\u0065\u0301 ") == "Jos\u00e9"


@pytest.mark.parametrize(
    "name", ["", "  ", "x" * 81, "a\nb", "a\x00b", "a\u202eb", "a\u2066b", "a\u200bb", "\ud800"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        read_reviewer(name)


def test_a_comment_keeps_its_lines() -> None:
    assert read_comment(" one\r\ntwo\rthree\t<b>\n") == "one\ntwo\nthree\t<b>"
    assert read_comment("x" * 10_000)


@pytest.mark.parametrize("text", ["x" * 10_001, "a\x00b", "a\x1bb", "\udc00"])
def test_a_comment_that_cant_be_kept_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_comment(text)
