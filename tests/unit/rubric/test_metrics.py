import pytest

from jurybox.errors import Unreadable
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import (
    Ratio,
    Share,
    Statistic,
    parse_formula,
    run_metrics,
    sample_metrics,
)

FULL = Comparison(name="accuracy", operator="==", number=2)


@pytest.mark.parametrize("by", ["mean", "sum", "min", "max", "p1", "p50", "p99"])
def test_a_statistic_of_one_name(by: str) -> None:
    assert parse_formula(f"{by} of tone") == Statistic(by=by, of="tone")


def test_a_share_and_a_ratio() -> None:
    assert parse_formula("share of accuracy == 2") == Share(where=FULL)
    assert parse_formula(" total_tokens  per accuracy==2 ") == Ratio(of="total_tokens", where=FULL)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tone",
        "average of tone",
        "p0 of tone",
        "p100 of tone",
        "p05 of tone",
        "mean tone",
        "mean of",
        "a / b",
    ],
)
def test_anything_else_is_no_formula(text: str) -> None:
    with pytest.raises(Unreadable, match="is not a formula"):
        parse_formula(text)


def test_a_bad_comparison_in_a_formula_says_so_itself() -> None:
    with pytest.raises(Unreadable, match="`=` is not an operator; use `==`"):
        parse_formula("share of accuracy = 2")


def test_scores_of_components_are_metrics_only_where_there_are_components() -> None:
    assert "sample_score" in sample_metrics(["tone"], overall="overall", components=True)
    assert "sample_score" not in sample_metrics(["tone"], overall="overall", components=False)
    assert "aggregate_score" in run_metrics(["tone"], overall="overall", components=True)
    assert "aggregate_score" not in run_metrics(["tone"], overall="overall", components=False)


def test_metrics_follow_the_criteria_and_the_name_of_the_overall_score() -> None:
    assert {"tone", "quality"} <= set(sample_metrics(["tone"], overall="quality", components=False))
    assert {"tone_mean", "quality_mean"} <= set(
        run_metrics(["tone"], overall="quality", components=False)
    )
