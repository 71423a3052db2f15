"""E14: a judge held against people, criterion by criterion."""

import math

import pytest

from answers import case, cases, pair, rubric
from jurybox.calibration.calibration_record import CriterionAgreement
from jurybox.calibration.judge_comparison import compare, confusion_of
from jurybox.rubric import Scale

RUBRIC = rubric()


def only(made: object) -> CriterionAgreement:
    (found,) = made.criteria  # type: ignore[attr-defined]
    return found  # type: ignore[no-any-return]


def test_kappa_is_quadratic_over_the_declared_scale() -> None:
    people, judge = [1, 2, 2, 3, 4, 1, 2, 4], [1, 2, 3, 3, 5, 2, 2, 4]
    made = [case(n, a, b) for n, (a, b) in enumerate(zip(people, judge, strict=True))]
    found = only(compare(made, RUBRIC))
    seen = sum((a - b) ** 2 for a, b in zip(people, judge, strict=True)) / 8
    chance = sum((a - b) ** 2 for a in people for b in judge) / 64
    assert found.kappa.value == pytest.approx(1 - seen / chance)
    assert found.exact.value == 5 / 8


def test_where_interval_and_p_value_disagree_the_sentence_says_so() -> None:
    found = only(compare([case(n, 3, 2 if n < 5 else 3) for n in range(40)], RUBRIC)).bias
    assert found is not None
    assert found.interval is not None
    assert found.interval.high < 0
    assert found.direction == "undecided"
    assert "the judge minus people is -0.125 (95% interval -0.232 to -0.018, p = 0.062" in (
        found.sentence
    )
    fewer = only(compare([case(n, 3, 2 if n < 2 else 3) for n in range(40)], RUBRIC)).bias
    assert fewer is not None
    assert "no significant difference" in fewer.sentence


def test_what_the_judge_did_not_score_is_counted_and_left_out() -> None:
    made = [*cases(20, lambda _, people: people), case(30, 2, None)]
    found = only(compare(made, RUBRIC))
    assert (found.n, found.unscored) == (20, 1)
    assert found.exact.value == 1


def test_the_ceiling_is_how_far_people_agree_with_each_other() -> None:
    made = [case(n, [1 + n % 4, 1 + n % 4 + (n % 5 == 0)], 1 + n % 4) for n in range(40)]
    ceiling = only(compare(made, RUBRIC)).ceiling
    assert ceiling is not None
    assert (ceiling.people, ceiling.n) == (2, 40)
    assert ceiling.exact == pytest.approx(0.8)
    assert ceiling.kappa is not None
    assert ceiling.kappa < 1
    assert ceiling.judge_kappa is not None
    # The judge is one of the two, word for word.
    assert ceiling.judge_kappa == pytest.approx((1 + ceiling.kappa) / 2)
    assert ceiling.alpha.value is not None


def test_the_confusion_matrix_has_the_declared_scale() -> None:
    found = only(compare([case(1, 2, 4), case(2, [2, 3], 3), case(3, 2, 4)], RUBRIC)).confusion
    assert found is not None
    assert found.labels == ("1", "2", "3", "4", "5")
    assert found.counts[1][3] == 2
    # The labels 2 and 3 of one sample count each.
    assert (found.counts[1][2], found.counts[2][2]) == (1, 1)
    assert sum(map(sum, found.counts)) == 4


def test_each_label_of_a_sample_is_compared_with_the_judge() -> None:
    # The mean of 5 and 1 is the judge's 3, which neither person gave.
    made = [case(0, [5, 1], 3), case(1, [4, 2], 4), *(case(n, 3, 3) for n in range(2, 12))]
    found = only(compare(made, RUBRIC))
    assert (found.n, found.labels) == (12, 14)
    assert found.exact.value == 11 / 14
    assert found.exact.interval is not None
    assert "clusters" in found.exact.interval.method
    assert [(each.sample_id, each.people, each.distance) for each in found.worst] == [
        ("s000", "5, 1", 0.5),
        ("s001", "4, 2", 0.25),
    ]


def test_people_who_name_opposite_winners_do_not_agree_with_a_tie() -> None:
    made = [pair(0, ["A", "B"], "tie"), pair(1, ["A", "tie"], "A"), pair(2, "B", "A")]
    found = only(compare(made, RUBRIC))
    assert (found.n, found.labels) == (3, 5)
    assert found.exact.value == 1 / 5
    assert [each.sample_id for each in found.worst] == ["p002", "p000", "p001"]


def test_a_continuous_scale_is_counted_in_bands() -> None:
    scale = Scale(low=0.0, high=1.0, continuous=True)
    found = confusion_of([0.0, 0.95, 1.0], [0.05, 1.0, 0.31], scale)
    assert found.labels[0] == "0 to 0.1"
    assert len(found.labels) == 10
    assert found.counts[0][0] == 1
    assert found.counts[9][9] == 1
    assert found.counts[9][3] == 1


def test_pairs_whose_winner_hangs_on_the_order_are_counted() -> None:
    flipped = pair(1, "A", "tie")
    verdict = flipped.verdict.__class__(winner="tie", stable=False)
    found = only(compare([pair(2, "A", "A"), pair(1, "A", "tie", verdict=verdict)], RUBRIC))
    assert found.unstable == 1


def test_clusters_make_intervals_wider() -> None:
    def judged(n: int, people: int) -> float:
        return people + (n // 10) % 2

    alone = compare(cases(80, judged), RUBRIC)
    clustered = [case(n, 1 + n % 4, judged(n, 1 + n % 4), cluster=str(n // 10)) for n in range(80)]
    wide, narrow = (only(each).bias for each in (compare(clustered, RUBRIC), alone))
    assert wide is not None
    assert narrow is not None
    assert wide.interval is not None
    assert narrow.interval is not None
    assert wide.interval.high - wide.interval.low > 1.5 * (
        narrow.interval.high - narrow.interval.low
    )


def test_copies_of_one_text_are_counted_once() -> None:
    def judged(n: int) -> float:
        return 2 + n % 2

    once = [case(n, 2, judged(n), words=str(n), cluster=str(n)) for n in range(8)]
    copies = [case(n, 2, judged(n % 8), words=str(n % 8)) for n in range(80)]
    found = [only(compare(each, RUBRIC)).bias for each in (once, copies)]
    ends = {(each.interval.low, each.interval.high) for each in found if each and each.interval}
    assert len(ends) == 1
    assert [each.direction for each in found if each] == ["undecided"] * 2


def test_the_overall_score_can_be_held_against_people_too() -> None:
    from jurybox.calibration.gold import Gold, JudgeVerdict

    made = [
        case(
            n,
            1,
            1,
            gold=Gold(scores={"overall": {"1": n / 20}}),
            verdict=JudgeVerdict(scores={"overall": n / 20}),
        )
        for n in range(20)
    ]
    found = only(compare(made, RUBRIC))
    assert found.criterion == "overall"
    assert found.exact.value is None
    assert found.exact.reason is not None
    assert found.kappa.value == pytest.approx(1)
    assert not math.isnan(found.error or 0.0)
