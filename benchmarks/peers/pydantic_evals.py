"""Drives pydantic-evals: LLMJudge over a dataset whose task returns the recorded response."""

from material import QUESTION, Done, Job, Peer, nothing

MODEL = "judge-pydantic"
VERDICT = {"reason": "Both name the same number of steps.", "pass": True, "score": 1.0}


def judge(job: Job) -> Done:
    """Evaluate the dataset."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import LLMJudge

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=job.base_url, api_key="none"))
    recorded = {sample.task: sample.response for sample in job.samples()}
    cases = [
        Case(name=sample.id, inputs=sample.task, expected_output=sample.reference)
        for sample in job.samples()
    ]
    evaluator = LLMJudge(
        rubric=QUESTION, model=model, include_input=True, include_expected_output=True
    )
    dataset = Dataset(name="bench", cases=cases, evaluators=[evaluator])

    async def answer(task: str) -> str:
        return recorded[task]

    report = dataset.evaluate_sync(answer, max_concurrency=job.concurrency, progress=False)
    passed = [all(each.value for each in case.assertions.values()) for case in report.cases]
    return Done(judged=sum(passed))


PEER = Peer(
    package="pydantic-evals",
    install=("pydantic-evals", "pydantic-ai-slim[openai]"),
    replies={
        MODEL: {
            "content": None,
            "tool_calls": [{"name": "final_result", "arguments": VERDICT}],
        }
    },
    judge=judge,
    survey=nothing,
    starts="import pydantic_evals",
    environment=(("LOGFIRE_IGNORE_NO_CONFIG", "1"),),
)
