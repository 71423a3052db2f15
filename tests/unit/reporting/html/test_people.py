"""What people's reviews say, in tables: each metric once, and nothing that rounding made."""

from collections.abc import Callable

import msgspec
import pytest

from jurybox.reporting.review_text import ReviewAgreement

ENDS = {"low": -0.2, "high": 0.6, "level": 0.95, "method": "jackknife, 40 items"}
BIAS = {"value": 0.5, "interval": None, "direction": "undecided", "sentence": ""}
TONE = {
    "criterion": "tone",
    "scale": [1, 5],
    "n": 12,
    "unscored": 0,
    "exact": {"value": 0.75, "n": 12},
    "kappa": {"value": 2.220446049250313e-16, "n": 12, "interval": ENDS},
    "bias": {**BIAS, "reason": "too few to tell"},
}
WINNER = {
    "criterion": "winner",
    "scale": None,
    "n": 3,
    "unscored": 0,
    "exact": {"value": None, "n": 3, "reason": "no pair has both"},
    "kappa": {"value": None, "n": 3, "reason": "only 3 pairs"},
    "bias": None,
}
ALPHA = {"value": 0.3, "n": 4, "interval": ENDS}
PEOPLE = {"people": 2, "n": 4, "exact": 0.5, "kappa": None, "judge_kappa": None, "alpha": ALPHA}


def part(*criteria: object, samples: int) -> dict[str, object]:
    agreement = {"n": samples, "loss": None, "criteria": criteria}
    return {"samples": samples, "agreement": agreement if criteria else None}


def said(**more: object) -> ReviewAgreement:
    """Return what 15 reviews say."""
    known = {
        "reviews": 15,
        "samples": 12,
        "reviewers": ["anna", "ben"],
        "open": 0,
        "random": part(TONE, samples=12),
        "flagged": part(WINNER, samples=1),
        "people": {"tone": PEOPLE},
        "drawn": 12,
        "skipped": 0,
        "needed": 8,
    }
    return msgspec.convert(known | more, ReviewAgreement)


NOTHING = said(random=part(samples=0), flagged=part(samples=0), people={})


def test_a_plain_sentence_comes_before_the_numbers() -> None:
    assert said().sentence == "The judge and people agree on tone in 75% of 12 random samples."
    flagged = said(random=part(samples=0), flagged=part(TONE, samples=15), by_rules=True)
    # Of 15 samples with a review, 12 have scores to compare.
    assert flagged.sentence == (
        "The rules and people agree on tone in 75% of 12 flagged samples; flagged samples are the"
        " hard ones."
    )
    assert NOTHING.sentence == ""


def test_the_report_has_the_sentence_a_table_and_a_chart(made: Callable, report: Callable) -> None:
    text = report(made("judged"), people=said())
    section = text[text.index('id="calibration"') :]
    assert section.index("The judge and people agree") < section.index("Judge against people")
    assert "15 reviews of 12 samples by 2 people: anna, ben" in text
    assert "nothing is corrected yet: 8 more reviews from the random queue are needed" in text
    assert "Kappa of tone, random" in section
    assert "0 on an axis from -1 to 1, 95% interval -0.2 to 0.6, n 12." in section
    assert "Judge minus people" in section
    assert "2.2e-16" not in text


def test_too_few_samples_are_nothing_to_rely_on(made: Callable, report: Callable) -> None:
    text = report(made("calm"), people=said())
    # The flagged pairs, and people among themselves; not the twelve of the random part.
    assert text.count("too few to rely on") == 2


def test_where_nobody_judged_the_rules_stand_against_people(
    made: Callable, report: Callable
) -> None:
    text = report(made("rules"), people=said(by_rules=True))
    assert "The rules and people" in text
    assert "Rules minus people" in text


@pytest.mark.parametrize(
    ("people", "there", "missing"),
    [
        (said(), "what their reviews of this run", "agree with people isn"),
        (NOTHING, "agree with people isn", "what their reviews of this run"),
    ],
)
def test_a_judge_that_people_have_reviewed_is_no_unknown(
    made: Callable, report: Callable, people: ReviewAgreement, there: str, missing: str
) -> None:
    text = report(made("calm"), people=people, calibration=None)
    assert there in text
    assert missing not in text


def test_what_was_queued_and_is_reviewed_says_so(made: Callable, report: Callable) -> None:
    run = made("judged")
    assert "people have reviewed" not in report(run)
    some = said(flagged={"samples": 1, "agreement": None})
    assert run.view.conclusion.review["queued"] == 1
    assert "people have reviewed 1 blind" in report(run, people=some)
