"""Verbosity, self-preference and formatting: judges with a known leaning, and one without."""

import numpy as np

from jurybox.statistics.bias_estimates import (
    LONGER,
    LONGER_EXCESS,
    OWN,
    BiasMetric,
    difference_by_mark,
    formatted,
    own_against_others,
    score_by_length,
    win_excess,
    win_rate,
    win_rate_at_equal,
)

RNG = np.random.default_rng(8)
N = 120
QUALITY = RNG.random(N)
WORDS = (50 + 200 * QUALITY + 40 * RNG.random(N)).astype(int)
NOISE = RNG.normal(0, 0.03, N)
FAIR = QUALITY + NOISE
VERBOSE = QUALITY + 0.002 * (WORDS - WORDS.mean()) + NOISE


def _holds(metric: BiasMetric, value: float) -> bool:
    return metric.interval is not None and metric.interval.low <= value <= metric.interval.high


def test_better_responses_that_are_longer_make_no_verbosity_bias_at_equal_quality() -> None:
    plain = score_by_length(FAIR, WORDS, range(N))
    assert plain.value is not None
    assert plain.value > 0.8
    assert "longer responses get higher scores" in plain.sentence
    partial = score_by_length(FAIR, WORDS, range(N), QUALITY)
    assert _holds(partial, 0)
    assert "no significant bias" in partial.sentence


def test_a_judge_that_pays_for_length_is_told_so_at_equal_quality() -> None:
    partial = score_by_length(VERBOSE, WORDS, range(N), QUALITY)
    assert partial.value is not None
    assert partial.value > 0.3
    assert "the judge favors longer responses" in partial.sentence


def test_scores_that_are_all_equal_tell_nothing_of_length() -> None:
    plain = score_by_length([0.5] * 20, range(20), range(20))
    assert plain.value is None
    assert plain.reason == "all responses have the same score"


def test_the_longer_response_wins_as_often_as_it_wins_and_ties_dont_count() -> None:
    found = win_rate([1, 1, 1, 0, 0.5] * 6, range(30), LONGER)
    assert found.value == 0.75
    assert found.n == 24
    assert "the judge favors longer responses" in found.sentence


def test_people_who_prefer_longer_responses_too_take_the_bias_away() -> None:
    judge, people = [1, 1, 1, 0] * 8, [1, 1, 0, 1] * 8
    found = win_excess(judge, people, range(32), LONGER_EXCESS)
    assert found.value == 0
    assert "no significant bias" in found.sentence
    against = win_excess(judge, [0.5] * 32, range(32), LONGER_EXCESS)
    assert against.value == 0.25
    assert "the judge favors longer responses" in against.sentence


def test_a_strict_family_of_judges_isnt_taken_for_one_that_is_hard_on_its_own() -> None:
    judges = ["gpt", "claude"] * N
    makers = ["gpt" if i % 3 else "claude" for i in range(N) for _ in range(2)]
    own = [judge == maker for judge, maker in zip(judges, makers, strict=True)]
    samples = [i for i in range(N) for _ in range(2)]
    scores = [FAIR[i] - 0.4 * (judge == "gpt") for i, judge in zip(samples, judges, strict=True)]
    found = own_against_others(scores, own, judges, samples)
    assert _holds(found, 0)
    assert "no significant self-preference" in found.sentence


def test_self_preference_needs_responses_of_both_kinds() -> None:
    found = own_against_others([0.1 * i for i in range(12)], [False] * 12, ["gpt"] * 12, range(12))
    assert found.value is None
    assert (found.reason or "").startswith("no response is of the judge's own family")
    assert win_rate([], [], OWN).value is None


def test_formatting_counts_at_equal_length_only() -> None:
    usual = int(np.median(WORDS))
    lists = np.array([words > usual for words in WORDS])
    longer_only = 0.003 * WORDS + np.random.default_rng(3).normal(0, 0.03, N)
    found = difference_by_mark("lists", longer_only, lists.tolist(), WORDS.tolist(), range(N))
    assert _holds(found, 0)
    paid = difference_by_mark(
        "lists", longer_only + 0.3 * lists, lists.tolist(), WORDS.tolist(), range(N)
    )
    assert _holds(paid, 0.3)
    assert "the judge favors lists" in paid.sentence


def test_a_mark_that_nobody_uses_tells_nothing() -> None:
    found = difference_by_mark("tables", FAIR.tolist(), [False] * N, WORDS.tolist(), range(N))
    assert found.value is None
    assert (found.reason or "").startswith("no response is with it")


def test_layout_that_only_comes_with_length_wins_half_the_pairs_of_equal_length() -> None:
    rng = np.random.default_rng(4)
    apart = rng.normal(0.5, 1, 400)
    won = (rng.random(400) < 1 / (1 + np.exp(-apart))).astype(float)
    found = win_rate_at_equal(won, apart.tolist(), range(400), formatted("bold"))
    assert won.mean() > 0.55
    assert _holds(found, 0.5)
    assert found.name == "formatting.bold.win_rate"
