"""Drives Phoenix evals: a classifier of its own over a data frame, asynchronously.

By default it starts with a few requests per second; the limit is raised here.
"""

import asyncio
import json

from material import QUESTION, Done, Job, Peer, nothing

MODEL = "judge-phoenix"
RATE = 100_000
VERDICT = {"explanation": "Both name the same number of steps.", "label": "right"}
TEMPLATE = (
    f"{QUESTION}\n\nTask: {{{{task}}}}\nReference: {{{{reference}}}}\nResponse: {{{{response}}}}"
)


def judge(job: Job) -> Done:
    """Classify every response."""
    import pandas as pd
    from phoenix.evals import LLM, async_evaluate_dataframe, create_classifier

    llm = LLM(
        provider="openai",
        model=MODEL,
        base_url=job.base_url,
        api_key="none",
        initial_per_second_request_rate=RATE,
    )
    evaluator = create_classifier(
        name="right",
        prompt_template=TEMPLATE,
        llm=llm,
        choices={"right": 1.0, "wrong": 0.0},
    )
    frame = pd.DataFrame([vars(sample) for sample in job.samples()])
    scored = asyncio.run(
        async_evaluate_dataframe(
            frame, [evaluator], concurrency=job.concurrency, hide_tqdm_bar=True
        )
    )
    scores = [json.loads(each) if isinstance(each, str) else each for each in scored["right_score"]]
    return Done(judged=sum(each is not None and each["score"] == 1 for each in scores))


PEER = Peer(
    package="arize-phoenix-evals",
    install=("arize-phoenix-evals", "openai"),
    replies={MODEL: json.dumps(VERDICT)},
    judge=judge,
    survey=nothing,
    starts="import phoenix.evals",
    environment=(("PHOENIX_TELEMETRY_ENABLED", "false"),),
)
