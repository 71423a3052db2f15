"""Drives promptfoo: `promptfoo eval` with `llm-rubric`, over recorded outputs.

Its `echo` provider returns the prompt, and the prompt is the recorded response, so that the
grader's call is the only one. Its database is on, and so is its cache, as they are by default.
"""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from material import QUESTION, Done, Job, Peer

MODEL = "judge-promptfoo"
HOME = Path(__file__).parents[2] / ".cache" / "peers" / "promptfoo"
PROGRAM = str(HOME / "node_modules" / ".bin" / "promptfoo")
VERDICT = {"reason": "Both name the same number of steps.", "pass": True, "score": 1}
# 100 is what it ends with when a test fails, which a judge may well say.
FAILED_TESTS = 100


def write_config(job: Job) -> Path:
    """Write the configuration and the tests."""
    grader = {
        "id": f"openai:chat:{MODEL}",
        "config": {"apiBaseUrl": job.base_url, "apiKey": "none"},
    }
    rubric = f"{QUESTION} Task: {{{{task}}}} Reference: {{{{reference}}}}"
    config = {
        "prompts": ["{{response}}"],
        "providers": ["echo"],
        "defaultTest": {
            "options": {"provider": grader},
            "assert": [{"type": "llm-rubric", "value": rubric}],
        },
        "tests": "file://tests.jsonl",
    }
    with (job.folder / "tests.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"vars": vars(sample)}) + "\n" for sample in job.samples())
    path = job.folder / "promptfooconfig.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def judge(job: Job) -> Done:
    """Evaluate, or resume the evaluation that is there."""
    path = write_config(job)
    command = [PROGRAM, "eval", "--max-concurrency", str(job.concurrency), "--no-table"]
    command += ["--no-progress-bar", "--no-share"]
    command += ["--resume"] if job.again and database(job).is_file() else ["--config", str(path)]
    environment = os.environ | {
        "PROMPTFOO_CONFIG_DIR": str(job.folder / "promptfoo"),
        "PROMPTFOO_CACHE_PATH": str(job.folder / "promptfoo" / "cache"),
    }
    done = subprocess.run(command, env=environment, stdout=sys.stderr, check=False)
    (job.folder / "tests.jsonl").unlink()
    # Its own logger sometimes breaks at the very end, when all results are in its database.
    notes = "" if done.returncode in {0, FAILED_TESTS} else f"exit status {done.returncode}"
    return Done(judged=survey(job), notes=notes)


def database(job: Job) -> Path:
    """Return where its results are."""
    return job.folder / "promptfoo" / "promptfoo.db"


def survey(job: Job) -> int:
    """Count the results in its database that have a verdict."""
    if not database(job).is_file():
        return 0
    query = "SELECT count(DISTINCT test_idx) FROM eval_results WHERE success = 1"
    with sqlite3.connect(database(job)) as tables:
        try:
            (found,) = tables.execute(query).fetchone()
        except sqlite3.OperationalError:
            return 0
    return found


PEER = Peer(
    package="promptfoo",
    install=("promptfoo",),
    replies={MODEL: json.dumps(VERDICT)},
    judge=judge,
    survey=survey,
    starts=(PROGRAM, "--version"),
    keeps="its SQLite database and a cache of replies",
    again="promptfoo eval --resume",
    environment=(
        ("PROMPTFOO_DISABLE_TELEMETRY", "1"),
        ("PROMPTFOO_DISABLE_UPDATE", "1"),
        ("PROMPTFOO_DISABLE_REMOTE_GENERATION", "1"),
        ("PROMPTFOO_DISABLE_SHARING", "1"),
    ),
    commands=True,
    node=True,
)
