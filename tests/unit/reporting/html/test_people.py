"""What people's reviews say, in tables: each figure once, and nothing that rounding made."""

from collections.abc import Callable

import pytest

from jurybox.reporting.html.people import people_of

ENDS = {"low": -0.2, "high": 0.6, "level": 0.95, "method": "jackknife, 40 items"}
TONE = {
    "criterion": "tone",
    "n": 12,
    "exact": {"value": 0.75, "n": 12},
    "kappa": {"value": 2.220446049250313e-16, "n": 12, "interval": ENDS},
    "bias": {"value": 0.5, "interval": None, "reason": "too few to tell"},
}
WINNER = {
    "criterion": "winner",
    "n": 3,
    "exact": {"value": None, "n": 3, "reason": "no pair has both"},
    "kappa": {"value": None, "n": 3, "reason": "only 3 pairs"},
    "bias": None,
}
SAID = {
    "reviews": 15,
    "random": {"samples": 12, "agreement": {"criteria": [TONE]}},
    "flagged": {"samples": 1, "agreement": {"criteria": [WINNER]}},
    "people": {
        "tone": {"n": 4, "exact": 0.5, "alpha": {"value": 0.3, "n": 4, "interval": ENDS}},
    },
    "lines": [
        "15 reviews of 12 samples by 2 people: anna, ben",
        "judge against people, random part, tone: the same in 75%, kappa 2.2e-16 (n 12)",
        "people among themselves, tone: the same in 50%, alpha 0.3 (n 4)",
        "nothing is corrected yet: 8 more from the random queue are needed",
    ],
}


def test_what_the_tables_tell_isnt_told_again_in_lines() -> None:
    assert people_of(SAID).lines == (SAID["lines"][0], SAID["lines"][3])


def test_without_figures_every_line_is_told() -> None:
    people = people_of({"lines": SAID["lines"]})
    assert people.lines == tuple(SAID["lines"])
    assert (people.against, people.among, people.flagged) == ((), (), 0)


def test_each_criterion_has_a_row_for_each_part() -> None:
    tone, winner = people_of(SAID).against
    assert (tone.part, tone.criterion, tone.n, tone.same.value) == ("random part", "tone", 12, 0.75)
    assert (winner.part, winner.criterion, winner.difference) == ("flagged", "winner", None)
    assert (winner.kappa.value, winner.kappa.reason) == (None, "only 3 pairs")


def test_what_rounding_leaves_of_a_zero_is_a_zero() -> None:
    assert people_of(SAID).against[0].kappa.value == 0


def test_the_report_has_a_table_and_a_chart_of_it(made: Callable, report: Callable) -> None:
    text = report(made("judged"), people=SAID)
    section = text[text.index('id="calibration"') :]
    assert "The judges against people" in section
    assert "Kappa of tone, random part" in section
    assert "0 on an axis from -1 to 1, 95% interval -0.2 to 0.6, n 12." in section
    assert "too few to tell" in section
    assert "the judges minus people" in section
    assert "2.2e-16" not in text


def test_too_few_samples_are_nothing_to_rely_on(made: Callable, report: Callable) -> None:
    text = report(made("calm"), people=SAID)
    # The flagged pairs, and people among themselves; not the twelve of the random part.
    assert text.count("too few to rely on") == 2


def test_an_interval_of_a_difference_says_how_it_was_made(made: Callable, report: Callable) -> None:
    tone = {**TONE, "bias": {"value": 0.5, "interval": {**ENDS, "method": "t, 7 clusters"}}}
    said = {**SAID, "random": {"samples": 12, "agreement": {"criteria": [tone]}}}
    assert "t, 7 clusters" in report(made("calm"), people=said)


def test_where_nobody_judged_the_rules_stand_against_people(
    made: Callable, report: Callable
) -> None:
    text = report(made("rules"), people=SAID)
    assert "The rules against people" in text
    assert "the rules minus people" in text
    assert "judge" not in text[text.index('id="calibration"') : text.index('id="metadata"')]


@pytest.mark.parametrize(
    ("people", "said", "unsaid"),
    [
        (SAID, "what their reviews of this run", "agree with people isn"),
        ({"lines": ["1 review"]}, "agree with people isn", "what their reviews of this run"),
    ],
)
def test_a_judge_that_people_have_reviewed_is_no_unknown(
    made: Callable, report: Callable, people: object, said: str, unsaid: str
) -> None:
    text = report(made("calm"), people=people, calibration=None)
    assert said in text
    assert unsaid not in text


def test_what_was_queued_and_is_reviewed_says_so(made: Callable, report: Callable) -> None:
    run = made("judged")
    assert "people have reviewed" not in report(run)
    some = {**SAID, "flagged": {"samples": 1, "agreement": None}}
    assert run.view.conclusion.review["queued"] == 1
    assert "people have reviewed 1 blind" in report(run, people=some)
