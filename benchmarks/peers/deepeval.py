"""Drives DeepEval: GEval with its steps given, so that one call judges, by `evaluate`."""

import json

from material import QUESTION, Done, Job, Peer

MODEL = "judge-deepeval"
VERDICT = {"reason": "Both name the same number of steps.", "score": 10}


def judge(job: Job) -> Done:
    """Evaluate the test cases."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
    from deepeval.metrics import GEval
    from deepeval.models import OpenAIModel
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    model = OpenAIModel(
        model=MODEL,
        base_url=job.base_url,
        api_key="none",
        cost_per_input_token=0,
        cost_per_output_token=0,
    )
    metric = GEval(
        name="right",
        evaluation_steps=[QUESTION],
        evaluation_params=[
            SingleTurnParams.INPUT,
            SingleTurnParams.ACTUAL_OUTPUT,
            SingleTurnParams.EXPECTED_OUTPUT,
        ],
        model=model,
    )
    cases = [
        LLMTestCase(
            name=sample.id,
            input=sample.task,
            actual_output=sample.response,
            expected_output=sample.reference,
        )
        for sample in job.samples()
    ]
    result = evaluate(
        cases,
        [metric],
        async_config=AsyncConfig(max_concurrent=job.concurrency),
        cache_config=CacheConfig(use_cache=job.again),
        display_config=DisplayConfig(
            show_indicator=False,
            print_results=False,
            inspect_after_run=False,
            results_folder="results",
        ),
    )
    return Done(judged=sum(bool(each.success) for each in result.test_results))


def survey(job: Job) -> int:
    """Count the test cases that its files hold a score of."""
    found = [0]
    for path in job.folder.rglob("test_run_*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        cases = told.get("testCases", told.get("test_cases", ()))
        found.append(sum(bool(case.get("metricsData")) for case in cases))
    for path in job.folder.rglob(".deepeval-cache.json"):
        told = json.loads(path.read_text(encoding="utf-8") or "{}")
        found.append(len(told.get("test_cases_lookup_map", ())))
    return max(found)


PEER = Peer(
    package="deepeval",
    install=("deepeval",),
    replies={MODEL: json.dumps(VERDICT)},
    judge=judge,
    survey=survey,
    starts="import deepeval",
    keeps="a JSON file of the results, at the end, and a cache",
    again="its cache",
    environment=(
        ("DEEPEVAL_TELEMETRY_OPT_OUT", "1"),
        ("DEEPEVAL_UPDATE_WARNING_OPT_IN", "0"),
        ("DEEPEVAL_NO_INSPECT_PROMPT", "1"),
        ("CONFIDENT_OPEN_BROWSER", "0"),
    ),
)
