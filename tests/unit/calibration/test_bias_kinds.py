"""Verbosity, self-preference and formatting: judges with a known leaning, and one without."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from jurybox.calibration.bias_metrics import measure
from jurybox.calibration.bias_results import BiasMetric
from jurybox.calibration.observations import (
    Observations,
    ObservedVote,
    ScoredResponse,
)

RNG = np.random.default_rng(8)
N = 120
QUALITY = RNG.random(N)
WORDS = (50 + 200 * QUALITY + 40 * RNG.random(N)).astype(int)
NOISE = RNG.normal(0, 0.03, N)
FAIR = QUALITY + NOISE
VERBOSE = QUALITY + 0.002 * (WORDS - WORDS.mean()) + NOISE


def _found(name: str, **seen: list[Any]) -> BiasMetric:
    metrics = [metric for bias in measure(Observations(**seen)) for metric in bias.metrics]
    return next(metric for metric in metrics if metric.name == name)


def _scored(
    scores: Sequence[float],
    words: Sequence[int],
    gold: Sequence[float] | None = None,
    formatted: list[bool] | None = None,
) -> list[ScoredResponse]:
    formatted = formatted or [False] * len(scores)
    return [
        ScoredResponse(
            sample=str(i),
            score=float(scores[i]),
            words=int(words[i]),
            formatted=formatted[i],
            gold=None if gold is None else float(gold[i]),
        )
        for i in range(len(scores))
    ]


def _votes(
    shares: Sequence[float], people: Sequence[float] | None = None, **more: tuple[int, int]
) -> list[ObservedVote]:
    """Return votes on pairs whose first response is the longer one, or the one with a mark."""
    sides = {1: "A", 0: "B", 0.5: "tie"}
    told = {"straight": "A", "swapped": "A", "words": (20, 10), **more}
    return [
        ObservedVote(
            sample=str(i),
            winner=sides[share],
            gold=None if people is None else sides[people[i]],
            **told,
        )
        for i, share in enumerate(shares)
    ]


def _holds(metric: BiasMetric, value: float) -> bool:
    return metric.interval is not None and metric.interval.low <= value <= metric.interval.high


def test_better_responses_that_are_longer_make_no_verbosity_bias_at_equal_quality() -> None:
    plain = _found("verbosity.correlation", scored=_scored(FAIR, WORDS))
    assert plain.value is not None
    assert plain.value > 0.8
    assert "longer responses get higher scores" in plain.sentence
    partial = _found("verbosity.correlation_given_gold", scored=_scored(FAIR, WORDS, QUALITY))
    assert _holds(partial, 0)
    assert "no significant bias" in partial.sentence


def test_a_judge_that_pays_for_length_is_told_so_at_equal_quality() -> None:
    partial = _found("verbosity.correlation_given_gold", scored=_scored(VERBOSE, WORDS, QUALITY))
    assert partial.value is not None
    assert partial.value > 0.3
    assert "the judge favors longer responses" in partial.sentence


def test_scores_that_are_all_equal_tell_nothing_of_length() -> None:
    plain = _found("verbosity.correlation", scored=_scored([0.5] * 20, range(20)))
    assert plain.value is None
    assert plain.reason == "all responses have the same score"


def test_the_longer_response_wins_as_often_as_it_wins_and_ties_dont_count() -> None:
    found = _found("verbosity.longer_win_rate", voted=_votes([1, 1, 1, 0, 0.5] * 6))
    assert found.value == 0.75
    assert found.n == 24
    assert "the judge favors longer responses" in found.sentence


def test_people_who_prefer_longer_responses_too_take_the_bias_away() -> None:
    judge, people = [1, 1, 1, 0] * 8, [1, 1, 0, 1] * 8
    found = _found("verbosity.longer_win_excess", voted=_votes(judge, people))
    assert found.value == 0
    assert "no significant bias" in found.sentence
    against = _found("verbosity.longer_win_excess", voted=_votes(judge, [0.5] * 32))
    assert against.value == 0.25
    assert "the judge favors longer responses" in against.sentence


def test_a_strict_family_of_judges_isnt_taken_for_one_that_is_hard_on_its_own() -> None:
    graded = [
        ScoredResponse(
            sample=str(i),
            score=FAIR[i] - 0.4 * (judge == "gpt"),
            judge=judge,
            maker="gpt" if i % 3 else "claude",
        )
        for i in range(N)
        for judge in ("gpt", "claude")
    ]
    scored = _scored(FAIR, WORDS)
    found = _found("self_preference.score_difference", graded=graded, scored=scored)
    assert _holds(found, 0)
    assert "no significant bias" in found.sentence


def test_formatting_counts_at_equal_length_only() -> None:
    lists = int(np.median(WORDS)) < WORDS
    longer_only = 0.003 * WORDS + np.random.default_rng(3).normal(0, 0.03, N)
    name = "formatting.difference"
    assert _holds(_found(name, scored=_scored(longer_only, WORDS, formatted=lists.tolist())), 0)
    paid = _found(name, scored=_scored(longer_only + 0.3 * lists, WORDS, formatted=lists.tolist()))
    assert _holds(paid, 0.3)
    assert "the judge favors formatting" in paid.sentence
    unused = _found("formatting.difference", scored=_scored(FAIR, WORDS))
    assert (unused.reason or "").startswith("no response is formatted")


def test_layout_that_only_comes_with_length_wins_half_the_pairs_of_equal_length() -> None:
    rng = np.random.default_rng(4)
    apart = rng.normal(0.5, 1, 400)
    won = (rng.random(400) < 1 / (1 + np.exp(-apart))).astype(float)
    votes = [
        msgspec.structs.replace(vote, words=(1000 + round(100 * longer), 1000))
        for vote, longer in zip(_votes(won, formatted=(True, False)), apart, strict=True)
    ]
    found = _found("formatting.win_rate", voted=votes)
    assert won.mean() > 0.55
    assert _holds(found, 0.5)
