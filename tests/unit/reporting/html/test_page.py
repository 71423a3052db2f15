"""A run's page as plain data: every metric with its n, and an interval or why there is none."""

import re
from collections.abc import Callable
from statistics import fmean, stdev

import msgspec
import pytest

from jurybox.reporting.attention import every_concern, worst_samples
from jurybox.reporting.metric_text import gate_margin, gate_value
from jurybox.reporting.run_metrics import WHOLE, Axis, mean_interval
from jurybox.reporting.run_verdict import failed_gates
from jurybox.scoring.summary import GateOutcome
from jurybox.scoring.tally import MetricSpread
from jurybox.statistics.intervals import mean_of, wilson

FREE = Axis(low=0.0, high=1.0, bounded=False)


def spread(values: list[float]) -> MetricSpread:
    n, sd = len(values), stdev(values) if len(values) > 1 else None
    return MetricSpread(n=n, mean=fmean(values), sd=sd, independent=n, bins=())


def test_a_mean_without_a_scale_has_students_interval() -> None:
    values = [0.1, 0.4, 0.5, 0.9, 0.3]
    interval, reason = mean_interval(spread(values), FREE)
    half = 2.7764451 * stdev(values) / 5**0.5  # of Student's distribution with 4 degrees
    assert (interval.low, interval.high) == pytest.approx((0.44 - half, 0.44 + half))
    assert reason is None


@pytest.mark.parametrize("values", [[0.0, 1.0, 1.0], [0.9, 1.0, 1.0, 0.95], [1.0] * 20])
def test_the_interval_of_a_mean_is_that_of_its_scale(values: list[float]) -> None:
    interval, _ = mean_interval(spread(values), WHOLE)
    expected = mean_of(values, ends=(0.0, 1.0)).interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert 0 < interval.low < interval.high <= 1


@pytest.mark.parametrize(
    ("values", "why"),
    [([0.5], "one sample can't show how samples vary"), ([1.0, 1.0], "all values are the same")],
)
def test_without_a_spread_there_is_a_reason_in_place_of_an_interval(
    values: list[float], why: str
) -> None:
    interval, reason = mean_interval(spread(values), FREE)
    assert interval is None
    assert reason.startswith(why)


def test_every_metric_has_its_n_and_an_interval_or_a_reason(made: Callable, page: Callable) -> None:
    shown = page(made("judged"))
    every = [*shown.metrics, *(row.mean for row in shown.criteria)]
    assert {
        each.name for each in every if (each.interval is None) == (each.reason is None)
    } == set()
    known = {each.name: each for each in every}
    assert known["accuracy_mean"].n == 3
    assert known["faithfulness_mean"].n == 2
    # Mute and late have no score for it, good 2, poor 1.
    expected = mean_of([2, 1], ends=(0, 2)).interval
    assert known["faithfulness_mean"].interval == expected
    rate = known["pass_rate"]
    assert rate.value == 0.25
    assert rate.interval == wilson(1, 4)
    assert known["accuracy_full_credit_rate"].interval == wilson(1, 3)
    assert "percentiles" in known["latency_e2e_p95_ms"].reason
    assert known["lowest_criterion_mean"].reason == "the lowest of several means has no interval"


def test_repeats_of_a_sample_count_once_in_intervals(made: Callable, page: Callable) -> None:
    shown = page(made("repeated"))
    assert (shown.view.summary["repeats"]["n"], shown.view.summary["samples"]) == (3, 12)
    known = {each.name: each for each in shown.metrics}
    assert known["pass_rate"].n == 12
    assert known["pass_rate"].interval == wilson(1, 4)
    accuracy = next(row.mean for row in shown.criteria if row.id == "accuracy_score")
    assert accuracy.n == 9
    expected = mean_of([2, 0, 0], ends=(0, 2)).interval
    assert (accuracy.interval.low, accuracy.interval.high) == pytest.approx(
        (expected.low, expected.high)
    )


def test_gates_have_margins_and_say_where_chance_may_have_decided(
    made: Callable, page: Callable
) -> None:
    gates = {gate.outcome.gate: gate for gate in page(made("judged")).gates}
    passing = gates["pass_rate >= 0.85"]
    assert gate_value(passing.outcome) == "25.0%"
    assert gate_margin(passing.outcome) == "-60.0 points"
    assert passing.metric.n == 4
    assert passing.metric.interval.high < 0.85
    assert not passing.close
    late = gates["latency_e2e_p95_ms <= 10000"]
    assert (late.outcome.passed, late.metric.interval) == (True, None)
    assert gate_margin(late.outcome) == f"+{10000 - late.outcome.value:g} ms"
    assert late.metric.axis.low <= late.outcome.value <= late.metric.axis.high
    exact = msgspec.structs.replace(passing.outcome, gate="safety_rate <= 0", value=0.0)
    assert gate_margin(exact) == "0.0 points"  # not -0.0
    failures = gates["faithfulness_failure_rate <= 0.05"]
    assert failures.metric.interval == wilson(0, 2)
    assert failures.close
    assert failures.eventless


@pytest.mark.parametrize(
    ("gate", "value", "said"),
    [
        ("mean >= 0.6", 0.81749, ("0.817", "+0.217")),
        ("mean >= 0.6", 0.81751, ("0.818", "+0.218")),
        ("pass_rate >= 0.85", 0.9375, ("93.8%", "+8.8 points")),
        ("mean >= 0.6", 0.5996, ("0.5996", "-0.0004")),
        ("mean >= 0.5997", 0.6004, ("0.600", "0.0007")),
        ("mean > 0.6", 0.6, ("0.600", "0.000")),
    ],
)
def test_a_margin_is_that_of_the_value_as_shown(
    gate: str, value: float, said: tuple[str, str]
) -> None:
    outcome = GateOutcome(gate=gate, value=value, passed=True)
    assert (gate_value(outcome), gate_margin(outcome)) == said


def test_what_needs_attention_is_there(made: Callable, page: Callable) -> None:
    shown = page(made("judged"))
    assert [each.kind for each in shown.concerns] == ["unscored", "target_error", "failed"]
    assert [gate.outcome.gate for gate in shown.gates if not gate.outcome.passed] == [
        "aggregate_score >= 0.8",
        "pass_rate >= 0.85",
    ]
    assert not shown.calm


def test_a_run_in_order_is_calm(made: Callable, page: Callable) -> None:
    shown = page(made("calm"))
    assert shown.calm
    assert (shown.verdict.word, shown.verdict.tone) == ("Ship", "passes")


def test_the_rubric_names_scales_and_criteria(made: Callable, page: Callable) -> None:
    rows = {row.id: row for row in page(made("judged")).criteria}
    assert (rows["accuracy_score"].label, rows["accuracy_score"].scale) == ("Accuracy", "0-2")
    rows = {row.id: row for row in page(made("rules")).criteria}
    assert (rows["helpfulness"].scale, rows["helpfulness"].weight) == ("0.0-1.0", 0.2)
    assert rows["trust_boundaries"].label == "Trust & boundaries"


def test_distributions_count_every_sample_with_a_value(made: Callable, page: Callable) -> None:
    shown = page(made("judged"))
    accuracy = next(each for each in shown.scores if each.name == "accuracy_score")
    assert accuracy.bins == ((0.0, 0.0, 2), (1.0, 1.0, 0), (2.0, 2.0, 1))
    latency = next(each for each in shown.measures if each.name == "latency_e2e_ms")
    assert sum(count for _, _, count in latency.bins) == latency.n == 4
    assert [mark.label for mark in latency.marks] == ["p50", "p95"]
    assert latency.marks[0].value == 1950.0


def test_a_wide_spread_is_drawn_in_few_bins(
    make_run: Callable, row: Callable, page: Callable
) -> None:
    rows = [row("fast", ms=0.5), row("slow", ms=90_000_000.0), row("usual", ms=1000.0)]
    latency = page(make_run(rows, None, rubric="companion")).measures[0]
    assert len(latency.bins) <= 21
    assert sum(count for _, _, count in latency.bins) == 3
    assert all(
        one[1] == other[0] for one, other in zip(latency.bins, latency.bins[1:], strict=False)
    )


def test_groups_have_the_metrics_of_their_samples(made: Callable, page: Callable) -> None:
    groups = page(made("judged")).groupings
    assert list(groups) == ["scenario", "demographic"]
    assert list(groups["scenario"])[:2] == ["aggregate_score", "pass_rate"]
    assert groups["scenario"]["accuracy_mean"].high == 2


def test_pairs_tell_what_the_order_did(made: Callable, page: Callable) -> None:
    shown = page(made("pairs"))
    assert (shown.position.unstable, shown.position.n) == (3, 3)
    assert shown.position.interval == wilson(3, 3)
    assert shown.position.winners == {"A": 0, "B": 0, "tie": 3}
    assert shown.criteria == ()


def test_a_jury_tells_how_sure_it_is(made: Callable, report: Callable) -> None:
    text = re.sub("<[^>]*>", "", report(made("judged")))
    for kind, count, share in (("high", 0, "0.0%"), ("moderate", 2, "100.0%"), ("low", 0, "0.0%")):
        assert f"{kind}: {count} of 2 samples with a vote ({share})" in text


def test_rules_alone_have_no_jury(made: Callable, page: Callable) -> None:
    assert page(made("rules")).view.metadata.get("evaluator_model_id") is None


def test_cards_have_the_task_the_response_and_the_reasoning(made: Callable) -> None:
    run = made("judged")
    worst = worst_samples(run.store, run.view, 10)
    assert [card.id for card in worst] == ["mute", "late", "poor", "good"]
    _, late, poor, _ = worst
    assert (poor.task, poor.answers[0].text, poor.passed) == ("Task poor", "poor", False)
    assert [(each.about, each.text) for each in poor.grounds] == [
        ("Accuracy 0, Faithfulness 1", "Wrong.")
    ]
    assert late.answers[0].error == "timed out"


def test_unstable_pairs_say_that_the_judges_cannot_be_relied_on(
    made: Callable, page: Callable
) -> None:
    run = made("pairs")
    gate = GateOutcome(gate="unstable_rate <= 0.1", value=1.0, passed=False)
    (reason,) = failed_gates([gate], run.view)
    where = "in 3 of 3 pairs a vote's winner changed when the responses were swapped"
    assert reason.text == f"the judges can't be relied on: {where} (100.0%, has to be at most 10%)"
    assert reason.query == "flag=unstable"
    # The same samples aren't listed under low confidence again.
    (concern,) = page(run).concerns
    assert (concern.kind, concern.count) == ("unstable", 3)
    assert concern.in_words.endswith(", so their confidence is low")
    kinds = [each.kind for each in every_concern(run.store, run.view, 5)]
    assert kinds == ["unstable", "low_confidence"]
