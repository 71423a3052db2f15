"""Drives jurybox: the command `jurybox run`, with its full protocol and its durable store.

Plain, it judges by a small rubric with one criterion, as the other tools do, with one vote. The
variant `votes3` asks three times, and `general` judges by the bundled rubric of five criteria,
whose prompt is several times as long.
"""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from material import QUESTION, Done, Job, Peer

from replies import NUMBER

PROGRAM = str(Path(sys.executable).with_name("jurybox"))
SMALL, GENERAL = "judge-small-2025-01-01", "judge-general-2025-01-01"
RUBRIC = f"""---
id: right
version: 1.0.0
scale: 1-5
votes: 1
---
# Right answers

{QUESTION}

## Criteria

### Correctness
The response says what the reference says.

| Score | Meaning |
| --- | --- |
| 5 | All of it is right |
| 3 | It is right in the main |
| 1 | It is wrong |
"""
ITEMS = ("position", "verbosity", "self_enhancement", "formatting", "authority")
# No two replies are alike: jurybox remembers the last ones that it took apart.
REASON = f"Case {NUMBER}: it names the number that the reference names, and how it is known."


def verdict(*criteria: str) -> str:
    """Return a reply with full marks, in the form that every jurybox rubric asks for."""
    return json.dumps(
        {
            "reasoning": dict.fromkeys(criteria, REASON),
            "bias_checklist": dict.fromkeys(ITEMS, "Not relevant here."),
            "safety_concerns": [],
            "scores": dict.fromkeys(criteria, 5),
        }
    )


def write_suite(job: Job) -> Path:
    """Write suite, rubric and dataset."""
    with (job.folder / "samples.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(vars(sample)) + "\n" for sample in job.samples())
    (job.folder / "right.md").write_text(RUBRIC, encoding="utf-8")
    general = job.variant == "general"
    suite = {
        "suite": "bench",
        "rubric": "general" if general else "right.md",
        "dataset": "samples.jsonl",
        "judge": {
            "models": [f"openai/{GENERAL if general else SMALL}"],
            "votes": 3 if job.variant == "votes3" else 1,
        },
        "concurrency": job.concurrency,
    }
    path = job.folder / "suite.yaml"
    path.write_text(json.dumps(suite), encoding="utf-8")
    return path


def judge(job: Job) -> Done:
    """Run the suite, or resume the run that is there."""
    if job.again and store(job).is_file():
        command = [PROGRAM, "resume", "last"]
    else:
        command = [PROGRAM, "run", str(write_suite(job)), "--base-url", job.base_url]
    environment = os.environ | {"OPENAI_API_KEY": "none", "JURYBOX_STORE": str(store(job))}
    asked = subprocess.run(
        [*command, "--json"], env=environment, stdout=subprocess.PIPE, check=False
    )
    if asked.returncode not in {0, 1}:
        raise RuntimeError(f"{' '.join(command)} ended with {asked.returncode}")
    (job.folder / "samples.jsonl").unlink(missing_ok=job.again)
    told = json.loads(asked.stdout)
    metrics = told["summary"]
    unscored = metrics["unscored_rate"] or 0
    scored = metrics["samples"] - round(unscored * metrics["samples"])
    return Done(judged=scored, calls_each=3 if job.variant == "votes3" else 1)


def store(job: Job) -> Path:
    """Return where the runs are kept."""
    return job.folder / "jurybox.db"


def survey(job: Job) -> int:
    """Count the replies that are in the store."""
    if not store(job).is_file():
        return 0
    with sqlite3.connect(store(job)) as database:
        (found,) = database.execute("SELECT count(*) FROM exchanges").fetchone()
    return found


PEER = Peer(
    package="jurybox",
    install=(),
    replies={
        SMALL: verdict("correctness"),
        GENERAL: verdict("correctness", "completeness", "soundness", "clarity", "usefulness"),
    },
    judge=judge,
    survey=survey,
    starts=(PROGRAM, "--version"),
    keeps="every request, reply and score, hashed, in SQLite",
    again="jurybox resume",
    commands=True,
    variants=("", "votes3", "general"),
)
