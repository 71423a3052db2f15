"""Drives MLflow: `mlflow.genai.evaluate` with a judge of `make_judge`, tracked in SQLite.

No server runs: the tracking store is a file. It allows itself ten calls a second and fifteen
connections to the store by default; both limits are raised here.
"""

import json
import os
import sqlite3
from pathlib import Path

from material import QUESTION, Done, Job, Peer

MODEL = "judge-mlflow"
VERDICT = {"result": "yes", "rationale": "Both name the same number of steps."}


def judge(job: Job) -> Done:
    """Evaluate the recorded outputs."""
    os.environ["MLFLOW_GENAI_EVAL_MAX_WORKERS"] = str(job.concurrency)
    from typing import Literal

    import mlflow
    from mlflow.genai.judges import make_judge

    mlflow.set_tracking_uri(f"sqlite:///{database(job)}")
    if mlflow.get_experiment_by_name("bench") is None:
        mlflow.create_experiment("bench", artifact_location=(job.folder / "artifacts").as_uri())
    mlflow.set_experiment("bench")
    right = make_judge(
        name="right",
        instructions=f"{QUESTION} {{{{ inputs }}}} {{{{ outputs }}}} {{{{ expectations }}}}",
        model=f"openai:/{MODEL}",
        base_url=f"{job.base_url}/chat/completions",
        feedback_value_type=Literal["yes", "no"],
    )
    rows = [
        {
            "inputs": {"task": sample.task},
            "outputs": sample.response,
            "expectations": {"expected_response": sample.reference},
        }
        for sample in job.samples()
    ]
    found = mlflow.genai.evaluate(data=rows, scorers=[right])
    values = found.tables["eval_results"]["right/value"]
    return Done(judged=sum(value == "yes" for value in values))


def database(job: Job) -> Path:
    """Return where its results are."""
    return job.folder / "mlflow.db"


def survey(job: Job) -> int:
    """Count the assessments in its database."""
    if not database(job).is_file():
        return 0
    query = "SELECT count(DISTINCT trace_id) FROM assessments WHERE name = 'right' AND value LIKE ?"
    with sqlite3.connect(database(job)) as tables:
        try:
            (found,) = tables.execute(query, ("%yes%",)).fetchone()
        except sqlite3.OperationalError:
            return 0
    return found


PEER = Peer(
    package="mlflow",
    install=("mlflow", "openai"),
    replies={MODEL: json.dumps(VERDICT)},
    judge=judge,
    survey=survey,
    starts="import mlflow",
    keeps="traces and assessments, in SQLite",
    environment=(
        ("MLFLOW_DISABLE_TELEMETRY", "true"),
        ("MLFLOW_GENAI_EVAL_SCORER_RATE_LIMIT", "0"),
        ("MLFLOW_GENAI_EVAL_PREDICT_RATE_LIMIT", "0"),
        ("MLFLOW_SQLALCHEMYSTORE_POOL_SIZE", "64"),
        ("MLFLOW_SQLALCHEMYSTORE_MAX_OVERFLOW", "64"),
    ),
)
