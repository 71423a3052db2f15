"""What a reader has to see first is noted while a run goes on, in whatever order it goes (E15)."""

from jurybox import parse_rubric
from jurybox.scoring.sample_result import KINDS, Noted, RuleOutcome, SampleResult
from jurybox.scoring.summary import RunTally

RUBRIC = parse_rubric("---\nid: r\nversion: 1.0.0\nscale: 1-5\n---\n# R\n## Criteria\n### Tone\n")
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


def noted(*results: SampleResult) -> tuple[Noted, ...]:
    tally = RunTally(RUBRIC, 1)
    for result in results:
        tally.add(result, 0)
    return tally.conclude().attention


def test_each_kind_is_told_from_the_others_and_the_gravest_comes_first() -> None:
    assert list(OF_EACH_KIND) == list(KINDS)
    found = noted(FINE, *OF_EACH_KIND.values())
    assert found == tuple(Noted(kind=name, count=1) for name in OF_EACH_KIND)


def test_a_sample_may_be_of_several_kinds() -> None:
    both = SampleResult(metrics={}, safety_flag=True, stable=False)
    assert noted(both, both) == (Noted(kind="safety", count=2), Noted(kind="unstable", count=2))
    assert noted(FINE) == ()
