"""Drives Inspect: `model_graded_qa` over recorded outputs, with its log on, as `inspect eval`.

A solver puts the recorded response where a model's would be, so the grader's call is the only one.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from material import Done, Job, Peer

MODEL = "judge-inspect"
TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import solver


def sample(row):
    return Sample(
        id=row["id"],
        input=row["task"],
        target=row["reference"],
        metadata={"response": row["response"]},
    )


@solver
def recorded():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("recorded", state.metadata["response"])
        return state

    return solve


@task
def bench():
    return Task(
        dataset=json_dataset("samples.jsonl", sample),
        solver=recorded(),
        scorer=model_graded_qa(),
    )
"""


def judge(job: Job) -> Done:
    """Evaluate the task, or retry the log that is there."""
    with (job.folder / "samples.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(vars(sample)) + "\n" for sample in job.samples())
    (job.folder / "bench.py").write_text(TASK, encoding="utf-8")
    program = str(Path(sys.executable).with_name("inspect"))
    logs = sorted((job.folder / "logs").glob("*.eval"))
    if job.again and logs:
        command = [program, "eval-retry", str(logs[-1])]
    else:
        command = [program, "eval", "bench.py", "--model", f"openai/{MODEL}"]
        command += [
            "-M",
            "responses_api=false",
            "--model-base-url",
            job.base_url,
            "--max-samples",
            str(job.concurrency),
        ]
    command += ["--max-connections", str(job.concurrency), "--log-dir", "logs"]
    subprocess.run([*command, "--display", "none"], stdout=sys.stderr, check=True)
    ended = time.monotonic()
    (job.folder / "samples.jsonl").unlink()
    newest = max((job.folder / "logs").glob("*.eval"), key=lambda path: path.stat().st_mtime)
    # Importing Inspect once more to read its log is our doing, and not the time of its user.
    return Done(judged=scored(newest), checking=time.monotonic() - ended)


def scored(log: Path) -> int:
    """Count the samples of a log that have a grade."""
    from inspect_ai.log import read_eval_log_sample_summaries

    return sum(bool(each.scores) for each in read_eval_log_sample_summaries(str(log)))


def survey(job: Job) -> int:
    """Count the graded samples in the log."""
    logs = list((job.folder / "logs").glob("*.eval"))
    return max((scored(log) for log in logs), default=0)


PEER = Peer(
    package="inspect_ai",
    install=("inspect-ai", "openai"),
    replies={MODEL: "Both name the same number of steps.\n\nGRADE: C"},
    judge=judge,
    survey=survey,
    starts="import inspect_ai",
    keeps="its log: every sample with its events",
    again="inspect eval-retry",
    commands=True,
)
