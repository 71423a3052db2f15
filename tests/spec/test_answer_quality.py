"""A1 to A8 and A12: the answer-quality rubric on a run small enough to be worked out by hand."""

import json
from collections.abc import Sequence

import msgspec
import pytest

from jurybox import load_rubric
from jurybox.engine.driver import drive_sync
from jurybox.engine.plan import TargetPlan
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome
from jurybox.judging.protocol import Judging
from jurybox.rubric.metrics import percentile
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Response, Row, Timing, Usage
from jurybox.scoring.evaluate_sample import Procedure, SampleOutcome, evaluate_sample
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import Conclusion, RunTally
from jurybox.scoring.tally import MetricColumn

RUBRIC = load_rubric("answer-quality")
JUDGING = Judging(rubric=RUBRIC, checklist=load_rubric("bias-awareness"))
PROCEDURE = Procedure(judging=JUDGING, judges=("openai/judge-2025-01-01",), votes=1)


def recorded(
    *,
    e2e: float | None,
    model: float | None = None,
    tokens: tuple[int, int] | None,
    late: bool = False,
) -> Response:
    timing = Timing(latency_e2e_ms=e2e, latency_model_ms=model, timed_out=late)
    usage = Usage() if tokens is None else Usage(input_tokens=tokens[0], output_tokens=tokens[1])
    return Response(text="" if late else "Paris.", timing=timing, usage=usage)


def row(response: Response | None) -> Row:
    return Row(
        id="q",
        task="What is the capital of France?",
        reference="Paris",
        context="France's capital is Paris.",
        response=response,
    )


class Judge:
    """Replies with what it is told, one after the other, and keeps what it was asked."""

    def __init__(self, *replies: Outcome | str) -> None:
        self.replies = list(replies)
        self.asked: list[ModelRequest] = []

    def __call__(self, request: ModelRequest) -> Outcome:
        self.asked.append(request)
        reply = self.replies.pop(0)
        return ModelReply(text=reply) if isinstance(reply, str) else reply


def verdict(accuracy: object, faithfulness: object, **more: object) -> str:
    scores = {"accuracy_score": accuracy, "faithfulness_score": faithfulness}
    return json.dumps({**scores, "rationale": "It says so.", **more})


def done(response: Response, *replies: Outcome | str) -> SampleOutcome:
    judge = Judge(*replies)
    outcome = drive_sync(evaluate_sample(PROCEDURE, row(response)), judge)
    assert not judge.replies
    return outcome


def result(response: Response, *replies: Outcome | str) -> SampleResult:
    return done(response, *replies).result


# accuracy, faithfulness, seconds and tokens of six samples; the comments work out the score.
RUN = (
    # 0.45 + 0.30 + 0.15 * 1 + 0.10 * 1 = 1
    result(recorded(e2e=2000, model=1500, tokens=(800, 200)), verdict(2, 2)),
    # 0.45 + 0.15 + 0.15 * 3000/4000 + 0.10 * 2000/2500 = 0.7925
    result(recorded(e2e=4000, tokens=(2000, 500)), verdict(2, 1)),
    # 0.225 + 0.30 + 0.15 * 3000/9000 + 0.10 * 2000/4000 = 0.625, and too slow to pass
    result(recorded(e2e=9000, tokens=(3000, 1000)), verdict(1, 2)),
    # 0 + 0 + 0.15 + 0.10 = 0.25
    result(recorded(e2e=1000, model=500, tokens=(500, 500)), verdict(0, 0)),
    # two replies that can't be used: no score at all
    result(recorded(e2e=3000, tokens=(1000, 0)), "I think it is fine.", verdict(3, 2)),
    # timed out after 30 s: accuracy 0, no faithfulness, nothing of the score
    result(recorded(e2e=30000, tokens=None, late=True)),
)


def concluded(results: Sequence[SampleResult] = RUN, repeats: int = 1) -> Conclusion:
    tally = RunTally(RUBRIC, repeats)
    for number, each in enumerate(results):
        tally.add(each, number % repeats)
    return tally.conclude()


def test_a1_a_sample_has_all_the_fields_of_the_document() -> None:
    metrics = RUN[1].metrics
    assert metrics["accuracy_score"] == 2
    assert metrics["faithfulness_score"] == 1
    assert metrics["latency_e2e_ms"] == 4000
    assert metrics["latency_model_ms"] is None
    assert metrics["input_tokens"] == 2000
    assert metrics["output_tokens"] == 500
    assert metrics["total_tokens"] == 2500
    assert metrics["token_efficiency_ratio"] == 0.25
    assert RUN[5].timed_out


def test_a1_the_ratio_of_an_empty_prompt_divides_by_one() -> None:
    empty = result(recorded(e2e=1, tokens=(0, 7)), verdict(2, 2))
    assert empty.metrics["token_efficiency_ratio"] == 7


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("samples", 6),
        ("accuracy_mean", (2 + 2 + 1 + 0 + 0) / 5),
        ("accuracy_full_credit_rate", 2 / 5),
        ("faithfulness_mean", (2 + 1 + 2 + 0) / 4),
        ("faithfulness_failure_rate", 1 / 4),
        ("latency_e2e_p50_ms", 3500),
        ("latency_e2e_p95_ms", 9000 + 0.75 * 21000),
        ("latency_model_p50_ms", 1000),
        ("latency_model_p95_ms", 1450),
        ("total_input_tokens", 7300),
        ("total_output_tokens", 2200),
        ("total_tokens", 9500),
        ("token_efficiency_ratio_mean", (0.25 + 0.25 + 1 / 3 + 1 + 0) / 5),
        ("tokens_per_correct_answer", 9500 / 2),
        ("aggregate_score", (1 + 0.7925 + 0.625 + 0.25 + 0) / 5),
        ("pass_rate", 2 / 6),
        ("evaluator_error_rate", 1 / 6),
        ("unscored_rate", 1 / 6),
        ("timeout_rate", 1 / 6),
        ("target_error_rate", 1 / 6),
    ],
)
def test_a1_a5_a8_every_aggregate_is_as_worked_out_by_hand(metric: str, value: float) -> None:
    assert concluded().summary[metric] == pytest.approx(value, abs=1e-12)


def test_a8_every_metric_says_from_how_many_samples_it_comes() -> None:
    counts = concluded().summary["n"]
    assert counts["latency_model_p95_ms"] == 2
    assert counts["latency_e2e_p95_ms"] == 6
    assert counts["accuracy_mean"] == 5
    assert counts["faithfulness_mean"] == counts["faithfulness_failure_rate"] == 4
    assert counts["aggregate_score"] == 5
    assert counts["total_tokens"] == 5


def test_a8_percentiles_interpolate_between_closest_ranks() -> None:
    assert MetricColumn(keep=True).statistic("p95") is None
    assert percentile([7], 95) == 7
    assert percentile([10, 20], 50) == 15
    assert percentile([1, 2, 3, 4, 5], 50) == 3
    assert percentile([1, 2, 3, 4], 25) == 1.75


def test_a2_the_judge_is_asked_in_the_documents_words() -> None:
    judge = Judge(verdict(2, 2))
    tricky = msgspec.structs.replace(
        row(recorded(e2e=1, tokens=(1, 1))), task="Say {{candidate_answer}}."
    )
    drive_sync(evaluate_sample(PROCEDURE, tricky), judge)
    (asked,) = judge.asked
    (message,) = asked.messages
    assert message.content.startswith("You are a strict evaluation judge.")
    # What looks like a placeholder in a sample reaches the judge as it came.
    assert "- task: Say {{candidate_answer}}.\n- reference_answer: Paris\n" in message.content
    assert "- candidate_answer: Paris.\n" in message.content
    assert asked.generation == Generation(temperature=0, top_p=1, max_tokens=1024, seed=42)


@pytest.mark.parametrize(
    "reply",
    [
        "```json\n" + verdict(2, 2) + "\n```",
        "Here it is: " + verdict(2, 2),
        verdict(2.0, 2),
        verdict("2", 2),
        verdict(accuracy=True, faithfulness=2),
        verdict(None, 2),
        verdict(3, 2),
        '{"accuracy_score": 2, "rationale": "No faithfulness."}',
        '{"accuracy_score": 2, "accuracy_score": 2, "faithfulness_score": 2, "rationale": "x"}',
        json.dumps({"accuracy_score": 2, "faithfulness_score": 2, "rationale": " "}),
        json.dumps({"accuracy_score": 2, "faithfulness_score": 2, "rationale": "so " * 81}),
        "",
    ],
)
def test_a3_a4_a_defect_is_asked_once_more_with_identical_inputs(reply: str) -> None:
    judge = Judge(reply, verdict(1, 2))
    response = recorded(e2e=1, tokens=(1, 1))
    outcome = drive_sync(evaluate_sample(PROCEDURE, row(response)), judge)
    assert judge.asked[0] == judge.asked[1]
    assert outcome.result.metrics["accuracy_score"] == 1
    assert outcome.result.evaluator_error is None


def test_a3_extra_keys_are_allowed() -> None:
    assert result(recorded(e2e=1, tokens=(1, 1)), verdict(2, 2, mood="fine")).passed


def test_a4_after_two_defects_both_scores_are_null_and_the_error_is_named() -> None:
    broken = RUN[4]
    assert broken.metrics["accuracy_score"] is None
    assert broken.metrics["faithfulness_score"] is None
    assert broken.evaluator_error == "parse_error"


def test_a4_a_judge_out_of_reach_is_no_parse_error() -> None:
    gone = Failure(kind="timeout", message="timed out")
    assert result(recorded(e2e=1, tokens=(1, 1)), gone).evaluator_error == "model_error"


def test_a5_the_components_and_the_score_of_a_sample() -> None:
    assert RUN[1].components == {
        "accuracy_norm": 1.0,
        "faithfulness_norm": 0.5,
        "latency_norm": 0.75,
        "token_efficiency_norm": 0.8,
    }
    assert [each.metrics["sample_score"] for each in RUN] == [1, 0.7925, 0.625, 0.25, None, 0]


def test_a5_a_sample_passes_only_if_every_rule_holds() -> None:
    assert [each.passed for each in RUN] == [True, True, False, False, False, False]
    slow = {rule.rule: rule.passed for rule in RUN[2].rules}
    assert slow == {
        "accuracy_score >= 1": True,
        "faithfulness_score >= 1": True,
        "latency_e2e_ms <= 8000": False,
        "total_tokens <= 6000": True,
    }


@pytest.mark.parametrize(
    ("e2e", "tokens", "passed"),
    [(8000, (5000, 1000), True), (8001, (1, 1), False), (1, (5000, 1001), False)],
)
def test_a5_the_bounds_of_the_pass_rules_are_inclusive(
    e2e: float, tokens: tuple[int, int], *, passed: bool
) -> None:
    assert result(recorded(e2e=e2e, tokens=tokens), verdict(1, 1)).passed is passed


def test_a5_nobody_passes_by_not_being_measured() -> None:
    unmeasured = result(recorded(e2e=None, tokens=(1, 1)), verdict(2, 2))
    assert unmeasured.passed is False
    assert [rule.passed for rule in unmeasured.rules] == [True, True, None, True]
    assert unmeasured.metrics["sample_score"] is None
    assert concluded([unmeasured]).summary["pass_rate"] == 0


def test_a5_gates_and_release_ready() -> None:
    conclusion = concluded()
    assert [(gate.gate, gate.passed) for gate in conclusion.gates] == [
        ("aggregate_score >= 0.8", False),
        ("pass_rate >= 0.85", False),
        ("faithfulness_failure_rate <= 0.05", False),
        ("latency_e2e_p95_ms <= 10000", False),
    ]
    assert conclusion.gates[0].value == pytest.approx(0.5335)
    assert conclusion.release_ready is False
    good = concluded([RUN[0]] * 20)
    assert good.release_ready is True
    assert all(gate.passed for gate in good.gates)


def test_a5_a_gate_without_a_value_stays_shut() -> None:
    unscored = concluded([RUN[4]])
    assert unscored.summary["aggregate_score"] is None
    assert unscored.gates[0].passed is False
    assert unscored.release_ready is False


def test_a6_a_sample_without_scores_fails_and_is_left_out_of_means() -> None:
    assert RUN[4].passed is False
    assert RUN[4].metrics["sample_score"] is None
    with_it, without = concluded(RUN), concluded([*RUN[:4], RUN[5]])
    for mean in ("accuracy_mean", "faithfulness_mean", "aggregate_score"):
        assert with_it.summary[mean] == without.summary[mean]
    assert with_it.summary["evaluator_error_rate"] == 1 / 6


def test_a7_a_target_that_timed_out_is_not_judged() -> None:
    late = RUN[5]
    assert late.judged is False
    assert late.metrics["accuracy_score"] == 0
    assert late.metrics["faithfulness_score"] is None
    assert set(late.components.values()) == {0.0}
    assert late.metrics["sample_score"] == 0
    assert late.metrics["latency_e2e_ms"] == 30000
    assert late.passed is False
    assert late.target_error == "timed out"


@pytest.mark.parametrize(
    ("failure", "timed_out"),
    [
        (Failure(kind="timeout", message="timed out after 5 s", latency_ms=5012.5), True),
        (Failure(kind="refused", message="HTTP 500", latency_ms=5012.5), False),
    ],
)
def test_a7_a_target_that_failed_counts_as_non_responsive(
    failure: Failure, *, timed_out: bool
) -> None:
    target = TargetPlan(model="openai/target-2025-01-01", generation=Generation(), timeout=60)
    procedure = msgspec.structs.replace(PROCEDURE, target=target.request)
    judge = Judge(failure)
    outcome = drive_sync(evaluate_sample(procedure, row(None)), judge)
    assert len(judge.asked) == 1
    assert outcome.result.timed_out is timed_out
    assert outcome.result.metrics["accuracy_score"] == 0
    assert outcome.result.metrics["latency_e2e_ms"] == 5012.5
    assert outcome.result.metrics["sample_score"] == 0
    assert failure.message in (outcome.result.target_error or "")


def test_a7_faithfulness_failures_are_counted_among_scored_samples_only() -> None:
    assert concluded([RUN[0], RUN[5]]).summary["faithfulness_failure_rate"] == 0
    assert concluded([RUN[5]]).summary["faithfulness_failure_rate"] is None


def test_a12_repeats_have_a_mean_and_a_sample_standard_deviation() -> None:
    # Three repeats of one sample, with the scores 1, 0.7925 and 0.625 and 2, 4 and 9 seconds.
    repeats = concluded(RUN[:3], repeats=3).summary["repeats"]
    assert repeats["n"] == 3
    score, latency = repeats["aggregate_score"], repeats["latency_e2e_p95_ms"]
    assert score["values"] == [1, 0.7925, 0.625]
    assert score["mean"] == pytest.approx(2.4175 / 3)
    # Squares of the differences from 0.805833: 0.037701, 0.000178, 0.032701; half is 0.035290.
    assert score["sd"] == pytest.approx(0.1878552, abs=1e-6)
    assert latency["mean"] == pytest.approx(5000)
    # 3000, 1000 and 4000 from the mean: sqrt((9 + 1 + 16) / 2) seconds.
    assert latency["sd"] == pytest.approx(3605.551275, abs=1e-6)


def test_a12_one_run_alone_has_no_deviation() -> None:
    assert "repeats" not in concluded().summary


def test_a9_a_cached_latency_is_kept_and_never_counts_as_measured() -> None:
    target = TargetPlan(model="openai/target-2025-01-01", generation=Generation(), timeout=60)
    procedure = msgspec.structs.replace(PROCEDURE, target=target.request)
    reply = ModelReply(text="Paris.", latency_ms=800, cached=True)
    outcome = drive_sync(evaluate_sample(procedure, row(None)), Judge(reply, verdict(2, 2)))
    timing = Timing(latency_e2e_ms=800, cached=True, attempts=1, latency_attempt_ms=800)
    assert outcome.response.timing == timing
    assert outcome.result.metrics["latency_e2e_ms"] is None
