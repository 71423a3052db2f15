"""Drives autoevals: its Factuality scorer, by its asynchronous interface."""

import asyncio

from material import Done, Job, Peer, nothing

MODEL = "judge-autoevals"
REPLY = {
    "content": None,
    "tool_calls": [
        {
            "name": "select_choice",
            "arguments": {"reasons": "Both name the same number of steps.", "choice": "C"},
        }
    ],
}


def judge(job: Job) -> Done:
    """Score every response, so many at once."""
    return Done(judged=asyncio.run(score_all(job)))


async def score_all(job: Job) -> int:
    """Return how many got a score."""
    from autoevals import Factuality, init
    from openai import AsyncOpenAI

    init(client=AsyncOpenAI(base_url=job.base_url, api_key="none"))
    scorer = Factuality(model=MODEL)
    places = asyncio.Semaphore(job.concurrency)

    async def score(sample) -> bool:  # noqa: ANN001 - a sample
        async with places:
            told = await scorer.eval_async(
                input=sample.task, output=sample.response, expected=sample.reference
            )
        return told.score == 1

    return sum(await asyncio.gather(*(score(sample) for sample in job.samples())))


PEER = Peer(
    package="autoevals",
    install=("autoevals", "openai"),
    replies={MODEL: REPLY},
    judge=judge,
    survey=nothing,
    starts="import autoevals",
)
