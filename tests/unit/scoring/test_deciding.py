"""The reasons of a decision name criteria and scenarios (C12)."""

from jurybox.rubric import parse_rubric
from jurybox.rubric.rubric_model import Decision, Rubric
from jurybox.scoring.decision import Groups, Metrics, decision_reasons
from jurybox.scoring.evaluate_sample import decide

TEXT = """---
id: r
version: 1.0.0
scale: 0.0-1.0
decisions:
  - {decide: needs_revision, when_any: ["overall_mean < 0.6", "lowest_criterion_mean < 0.5"]}
  - {decide: deploy, when_all: ["overall_mean >= 0.7"]}
  - {decide: ab_test}
---
# R
## Criteria
### Care
### Trust
"""
RUBRIC = parse_rubric(TEXT)


def sentences(
    rubric: Rubric, decision: Decision, metrics: Metrics, groups: Groups
) -> tuple[str, ...]:
    return tuple(each.sentence for each in decision_reasons(rubric, decision, metrics, groups))


def reasons(
    overall: float, care: float, trust: float, **scenarios: tuple[float, float, float]
) -> tuple[str | None, tuple[str, ...]]:
    metrics = _metrics(overall, care, trust)
    decision = decide(RUBRIC.decisions, metrics)
    assert decision is not None
    groups = {name: _metrics(*values) for name, values in scenarios.items()}
    return decision.decide, sentences(RUBRIC, decision, metrics, groups)


def _metrics(overall: float, care: float, trust: float) -> dict[str, float | None]:
    means = {"overall_mean": overall, "care_mean": care, "trust_mean": trust}
    return means | {"lowest_criterion_mean": min(care, trust)}


def test_a_weak_criterion_is_named_with_its_worst_scenario() -> None:
    decided, said = reasons(0.65, 0.42, 0.88, support=(0.5, 0.31, 0.9), small_talk=(0.8, 0.53, 0.8))
    assert decided == "needs_revision"
    assert said == ("care averages 0.42, below 0.5; lowest in support (0.31)",)


def test_every_condition_that_holds_is_told_once() -> None:
    decided, said = reasons(0.4, 0.3, 0.45)
    assert decided == "needs_revision"
    assert said == (
        "overall averages 0.4, below 0.6",
        "care averages 0.3, below 0.5",
        "trust averages 0.45, below 0.5",
    )


def test_a_good_run_says_where_it_is_lowest() -> None:
    decided, said = reasons(0.8, 0.8, 0.8, basic=(0.75, 0.8, 0.7), support=(0.85, 0.8, 0.9))
    assert (decided, said) == (
        "deploy",
        (
            "overall averages 0.8, at least 0.7; lowest in basic (0.75)",
            "the weakest criterion: care averages 0.8; the same in every scenario",
        ),
    )


def test_the_same_bound_on_the_mean_and_on_every_scenario_is_one_reason() -> None:
    def reasons(bound: float) -> tuple[str, ...]:
        text = TEXT.replace(
            '["overall_mean >= 0.7"]',
            f'["overall_mean >= 0.7", "lowest_scenario_mean >= {bound}"]',
        )
        rubric = parse_rubric(text)
        metrics = _metrics(0.8, 0.8, 0.8) | {"lowest_scenario_mean": 0.75}
        decision = decide(rubric.decisions, metrics)
        assert decision is not None
        groups = {"basic": _metrics(0.75, 0.8, 0.7), "other": _metrics(0.85, 0.8, 0.9)}
        return sentences(rubric, decision, metrics, groups)

    assert reasons(0.7)[0] == (
        "overall averages 0.8, and every scenario at least 0.7; lowest in basic (0.75)"
    )
    assert len(reasons(0.7)) == 2
    assert reasons(0.6)[:2] == (
        "overall averages 0.8, at least 0.7; lowest in basic (0.75)",
        "every scenario averages at least 0.6; lowest in basic (0.75)",
    )


def test_every_other_case_says_what_it_falls_short_of_and_what_is_weakest() -> None:
    decided, said = reasons(0.65, 0.55, 0.75, basic=(0.6, 0.5, 0.7), support=(0.7, 0.6, 0.8))
    assert decided == "ab_test"
    assert said == (
        "overall averages 0.65, and deploy needs at least 0.7; lowest in basic (0.6)",
        "the weakest criterion: care averages 0.55; lowest in basic (0.5)",
    )


def test_all_scenarios_that_share_the_lowest_value_are_named() -> None:
    _, said = reasons(0.65, 0.4, 0.9, a=(0.6, 0.3, 0.9), b=(0.6, 0.3, 0.9), c=(0.7, 0.6, 0.9))
    assert said == ("care averages 0.4, below 0.5; lowest in a, b (0.3)",)


def test_of_many_scenarios_that_share_the_lowest_value_three_are_named() -> None:
    every = {**dict.fromkeys("abcde", (0.6, 0.3, 0.9)), "f": (0.6, 0.4, 0.9)}
    _, said = reasons(0.65, 0.3, 0.9, **every)
    assert said == ("care averages 0.3, below 0.5; lowest in a, b, c and 2 more (0.3)",)


def test_no_scenario_is_the_lowest_if_all_are_the_same() -> None:
    _, said = reasons(0.65, 0.3, 0.9, **dict.fromkeys("abcde", (0.6, 0.3, 0.9)))
    assert said == ("care averages 0.3, below 0.5; the same in every scenario",)


def test_every_condition_has_its_reason_in_the_order_of_the_document() -> None:
    text = TEXT.replace(
        '["overall_mean >= 0.7"]',
        '["overall_mean >= 0.7", "lowest_criterion_mean >= 0.5", "overall_mean != 1"]',
    )
    rubric = parse_rubric(text)
    metrics = _metrics(0.8, 0.6, 0.9)
    decision = decide(rubric.decisions, metrics)
    assert decision is not None
    assert sentences(rubric, decision, metrics, {}) == (
        "overall averages 0.8, at least 0.7",
        "care averages 0.6, and no criterion averages less: at least 0.5",
        "overall averages 0.8, other than 1",
    )
