"""What people's reviews say, in tables: each metric once, and nothing that rounding made."""

import html
from collections.abc import Callable

import msgspec
import pytest

from jurybox.reporting.attention import gather, quality_level
from jurybox.reporting.reports import markdown_report
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.run_verdict import verdict_of

ENDS = {"low": -0.2, "high": 0.6, "level": 0.95, "method": "jackknife, 40 items"}
BIAS = {"value": 0.5, "interval": None, "direction": "undecided", "sentence": ""}
TONE = {
    "criterion": "tone",
    "scale": [1, 5],
    "n": 12,
    "labels": 12,
    "unscored": 0,
    "exact": {"value": 0.75, "n": 12},
    "kappa": {"value": 2.220446049250313e-16, "n": 12, "interval": ENDS},
    "bias": {**BIAS, "reason": "too few to tell"},
}
WINNER = {
    "criterion": "winner",
    "scale": None,
    "n": 3,
    "labels": 3,
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
    assert said().sentence == (
        "The judge gives the same score as people on tone in 75% of random samples (9 of 12)."
    )
    flagged = said(random=part(samples=0), flagged=part(TONE, samples=15), by_rules=True)
    # Of 15 samples with a review, 12 have scores to compare.
    assert flagged.sentence == (
        "The rules give the same score as people on tone in 75% of flagged samples (9 of 12)."
        " Flagged samples are the hard ones."
    )
    chosen = WINNER | {"exact": {"value": 1 / 3, "n": 3}}
    assert said(random=part(chosen, samples=3)).sentence == (
        "The judge makes the same choice as people in 33% of random samples (1 of 3). These are"
        " too few to say."
    )
    # Two people scored some of the samples.
    tone = TONE | {"labels": 16, "exact": {"value": 0.25, "n": 16}}
    twice = part(tone, tone | {"criterion": "wit", "n": 10}, samples=12)
    assert said(random=twice).sentence == (
        "The judge gives the same score as people on tone in 25% of cases (4 of 16), on wit in 25%"
        " (4 of 16): 10 to 12 random samples, some with the scores of several people."
    )
    every = tone | {"labels": 24, "ceiling": PEOPLE | {"n": 12}}
    sentence = said(random=part(every, samples=12)).sentence
    assert sentence.endswith(": 12 random samples, each scored by 2 people.")
    one = tone | {"n": 1, "labels": 2, "ceiling": PEOPLE | {"n": 1}}
    sentence = said(random=part(one, samples=1)).sentence
    tail = ": 1 random sample, each scored by 2 people. These are too few to say."
    assert sentence.endswith(tail)
    # Someone found the wit of a sample unclear.
    less = every | {"criterion": "wit", "labels": 23, "ceiling": PEOPLE | {"n": 11}}
    sentence = said(random=part(every, less, samples=12)).sentence
    assert sentence.endswith(", each scored by 2 people, though not always on wit.")
    assert NOTHING.sentence == ""


@pytest.mark.parametrize(
    ("low", "more", "conclusion", "step"),
    [
        (0.2, {}, "The judge agrees with people, and not by chance", "8 more reviews"),
        (
            -0.1,
            {},
            "only by chance, and people don't agree with each other on tone either: make the",
            "8 more reviews",
        ),
        (-0.1, {"people": {}}, "The judge may agree", "people differ on tone"),
        (None, {}, "All scores are equal", "until some scores differ"),
        (0.2, {"people": {}}, "not by chance", "by two people: `--overlap 2` of `jurybox serve`"),
        (0.2, {"people": {}, "reviewers": ["anna"]}, "not by chance", "one person has reviewed"),
        (0.2, {"random": part(samples=0)}, "Too few random samples", "8 more reviews"),
    ],
)
def test_the_agreement_is_concluded_in_words_with_what_to_do_next(
    low: float | None, more: dict[str, object], conclusion: str, step: str
) -> None:
    kappa = {"value": None, "n": 12} if low is None else {"value": 0.3, "n": 12}
    ends = None if low is None else ENDS | {"low": low}
    tone = TONE | {"kappa": kappa | {"interval": ends}}
    found = said(**({"random": part(tone, samples=12)} | more))
    assert conclusion in found.conclusion[0]
    steps = list(found.next_steps(overlap=1))
    assert any(step in line for line in steps), steps
    # A server doesn't advise what it does already.
    assert "--overlap" not in " ".join(found.next_steps(overlap=2))


def test_the_conclusion_names_the_weakest_and_the_biased_criterion(made: Callable) -> None:
    ends = ENDS | {"low": 0.01, "high": 0.11}
    bias = {"value": 0.06, "interval": ends, "direction": "higher", "sentence": ""}
    tone = TONE | {"kappa": {"value": 0.3, "n": 12, "interval": ENDS | {"low": 0.2}}}
    wit = tone | {"criterion": "wit", "exact": {"value": 0.5, "n": 12}, "bias": bias}
    weakest = said(random=part(tone, wit | {"bias": None}, samples=12))
    agrees = "The judge agrees with people, and not by chance, least on wit (50%)"
    assert weakest.conclusion == (agrees, "passes")
    assert weakest.biased == []
    low = bias | {"value": -0.3, "interval": ends | {"low": -0.5, "high": -0.1}}
    found = said(random=part(tone | {"bias": low}, wit, samples=12))
    both = "lower than people's on tone and higher than people's on wit"
    scores = f"this judge's scores: they are {both}"
    assert found.conclusion == (f"Correct {scores}", "waits")
    assert found.advice == f"Correct this judge's scores, which are {both}"
    marked = verdict_of(made("judged").view, found)
    assert (marked.people["judge"].text, marked.people["judge"].tone) == (found.advice, "warn")
    follows = "The judge still follows people's scores more than by chance"
    assert found.beyond_chance == f"{follows}; kappa is lowest on tone: 0.300 (0.200 to 0.600)"
    alone = said(random=part(tone | {"bias": low}, samples=12))
    assert alone.beyond_chance == f"{follows}; kappa is 0.300 (0.200 to 0.600)"
    assert found.lines[1] == found.conclusion[0]
    found = msgspec.structs.replace(found, changed_gates={"wit_mean >= 3": False})
    failed = f"Don't rely on {scores}. Corrected, 1 gate changes to failed: wit mean"
    assert found.conclusion == (failed, "fails")
    assert found.concluded[0] == "Don't rely on this judge's scores"  # short enough for a heading


def test_a_quality_level_says_what_people_make_of_it(
    make_run: Callable, row: Callable, report: Callable
) -> None:
    made = make_run([row("a", "# no *")], None, rubric="companion")
    assert quality_level(made.view).label == "Adequate"
    value = {"value": 0.41, "n": 20, "interval": ENDS}
    mean = {"judge": value, "human": value, "corrected": value, "tuning": 0.0}
    name = made.view.rubric.overall_name
    people = said(estimates=[{"metric": name, "mean": mean}], by_rules=True)
    label = "Adequate by the rules, Poor by people (0.410)"
    assert label in report(made, people=people)
    assert f"- quality level: {label}\n" in html.unescape(
        markdown_report(made.view, gather(made.store, made.view), people)
    )
    value["value"] = 0.55
    people = said(estimates=[{"metric": name, "mean": mean}])
    assert quality_level(made.view, people).label == "Adequate"


def test_an_aggregate_is_not_said_to_lack_reviews(
    make_run: Callable, row: Callable, report: Callable
) -> None:
    good = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Because."}'
    value = {"value": 0.41, "n": 20, "interval": ENDS}
    mean = {"judge": value, "human": value, "corrected": value, "tuning": 0.0}
    people = said(estimates=[{"metric": name, "mean": mean} for name in ("overall", "pass_rate")])
    text = report(make_run([row("a")], lambda _: good), people=people)
    assert "Aggregate score" in text
    assert text.count("corrected by 20 reviewed samples: ") == 2
    assert "not corrected: " not in text


def test_a_judge_without_weight_makes_no_interval_narrower(
    made: Callable, report: Callable
) -> None:
    alone = {"value": 0.6, "n": 20, "interval": ENDS}
    mean = {"judge": alone, "human": alone, "corrected": alone, "tuning": 0.0}
    people = said(estimates=[{"metric": "tone", "mean": mean}])
    text = html.unescape(report(made("judged"), people=people))
    assert "the judge's scores would not make the interval narrower" in text


def test_one_review_is_no_plural() -> None:
    assert said(open=1).doubts[-1].endswith("flags: it counts for the release, not for agreement")
    assert said(open=2).doubts[-1].endswith("flags: they count for the release, not for agreement")


def test_the_report_has_the_sentence_a_table_and_a_chart(made: Callable, report: Callable) -> None:
    run = made("judged")
    text = report(run, people=said())
    section = text[text.index('id="calibration"') :]
    assert section.index("The judge gives the same") < section.index("Judge against people")
    count = '<a href="#all-samples?review=reviewed">12 samples</a>'
    assert f"15 reviews of {count} by <bdi>2 people: anna, ben</bdi>" in text
    assert "nothing is corrected yet: 8 more reviews from the random queue are needed" in text
    assert "Kappa of tone, random" in section
    assert "0 on an axis from -1 to 1, 95% interval -0.2 to 0.6, n 12." in section
    assert "Kappa (95%)" in section
    assert "Judge minus people</th>" in section  # which has no interval here
    assert "2.2e-16" not in text
    both = part(TONE | {"ceiling": PEOPLE}, samples=12)
    text = report(run, people=said(random=both, flagged=both))
    assert 'People among themselves <small class="muted">on the same random samples<' in text


def test_too_few_samples_are_nothing_to_rely_on(made: Callable, report: Callable) -> None:
    text = report(made("calm"), people=said())
    # The flagged pairs, and people among themselves; not the twelve of the random subset.
    assert text.count("too few to rely on") == 2


def test_a_bias_has_no_interval_if_its_samples_are_too_few(
    made: Callable, report: Callable
) -> None:
    bias = {"value": 0.06, "interval": ENDS, "direction": "undecided", "sentence": ""}
    run = made("judged")
    for n, interval in ((12, True), (5, False)):
        few = part(TONE | {"n": n, "bias": bias}, samples=n)
        text = report(run, people=said(random=few))
        assert ("Judge minus people (95%)</th>" in text) is interval
        cell = text.partition('data-name="judge minus people">')[2].partition("</td>")[0]
        assert cell.startswith("0.06")
        assert ("<small" in cell) is interval


def test_where_nobody_judged_the_rules_stand_against_people(
    made: Callable, report: Callable
) -> None:
    text = report(made("rules"), people=said(by_rules=True))
    assert "The rules and people" in text
    assert "Rules minus people" in text


@pytest.mark.parametrize(
    ("people", "there", "missing"),
    [
        (said(), "how far the reviews of this run", "agree with people isn"),
        (NOTHING, "agree with people isn", "how far the reviews of this run"),
    ],
)
def test_a_judge_that_people_have_reviewed_is_no_unknown(
    made: Callable, report: Callable, people: ReviewAgreement, there: str, missing: str
) -> None:
    text = report(made("calm"), people=people, calibration=None)
    assert there in text
    assert missing not in text


def test_a_sample_that_is_still_to_be_reviewed_isnt_called_skipped() -> None:
    (line,) = msgspec.structs.replace(NOTHING, skipped=1).uncounted
    assert line.startswith("1 sample of the random subset has no review yet, though later ones do")
    assert "skipped" not in line
