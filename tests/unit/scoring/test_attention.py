"""What a reader has to see first is noted while a run goes on, in whatever order it goes (E15)."""

from jurybox.scoring.sample_result import FIRST, KINDS, Noted, Notice, RuleOutcome, SampleResult

FINE = SampleResult(metrics={}, judged=True, votes_valid=1, confidence="high")
BROKEN = RuleOutcome(rule="tone >= 5", value=1.0, passed=False)
OF_EACH_KIND = {
    "safety": SampleResult(metrics={}, safety_flag=True),
    "forged_prompt": SampleResult(metrics={}, review_reasons=("forged_prompt",)),
    "unstable": SampleResult(metrics={}, stable=False),
    "low_confidence": SampleResult(metrics={}, confidence="low", votes_valid=3),
    "unscored": SampleResult(metrics={}, judged=True, evaluator_error="parse_error", passed=False),
    "judge_disagrees": SampleResult(metrics={}, review_reasons=("judge_disagrees",)),
    "target_error": SampleResult(metrics={}, target_error="timeout: too late", passed=False),
    "judge_fallback": SampleResult(metrics={}, judge_fallback=True),
    "failed": SampleResult(metrics={}, passed=False, rules=(BROKEN,)),
}


def noticed(*results: tuple[int, SampleResult], most: int = FIRST) -> tuple[Noted, ...]:
    notice = Notice(most)
    for number, result in results:
        notice.add(number, result)
    return notice.describe()


def test_each_kind_is_told_from_the_others_and_the_gravest_comes_first() -> None:
    assert list(OF_EACH_KIND) == list(KINDS)
    found = noticed(*enumerate([FINE, *OF_EACH_KIND.values()]))
    assert found == tuple(
        Noted(kind=name, count=1, first=(number,))
        for number, name in enumerate(OF_EACH_KIND, start=1)
    )


def test_a_sample_may_be_of_several_kinds_and_none_need_be_named() -> None:
    both = SampleResult(metrics={}, safety_flag=True, stable=False)
    assert noticed((4, both), (2, both), most=0) == (
        Noted(kind="safety", count=2, first=()),
        Noted(kind="unstable", count=2, first=()),
    )
    assert noticed((0, FINE)) == ()
