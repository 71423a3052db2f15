"""Drives Ragas: a discrete metric, by its asynchronous interface."""

import asyncio
import json

from material import QUESTION, Done, Job, Peer, nothing

MODEL = "judge-ragas"
VERDICT = {"reason": "Both name the same number of steps.", "value": "pass"}
PROMPT = (
    QUESTION + " Answer pass or fail.\n\nTask: {task}\nReference: {reference}\nResponse: {response}"
)


def judge(job: Job) -> Done:
    """Score every response, so many at once."""
    return Done(judged=asyncio.run(score_all(job)))


async def score_all(job: Job) -> int:
    """Return how many got a value."""
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics import DiscreteMetric

    llm = llm_factory(MODEL, client=AsyncOpenAI(base_url=job.base_url, api_key="none"))
    metric = DiscreteMetric(name="right", prompt=PROMPT, allowed_values=["pass", "fail"])
    places = asyncio.Semaphore(job.concurrency)

    async def score(sample) -> bool:  # noqa: ANN001 - a sample
        async with places:
            told = await metric.ascore(
                llm=llm, task=sample.task, reference=sample.reference, response=sample.response
            )
        return told.value == "pass"

    return sum(await asyncio.gather(*(score(sample) for sample in job.samples())))


PEER = Peer(
    package="ragas",
    # Ragas 0.4.3 imports what later releases of langchain-community have dropped.
    install=("ragas", "openai", "langchain-community<0.4"),
    replies={MODEL: json.dumps(VERDICT)},
    judge=judge,
    survey=nothing,
    starts="import ragas",
    environment=(("RAGAS_DO_NOT_TRACK", "true"),),
)
