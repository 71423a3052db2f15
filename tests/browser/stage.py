"""Real runs in a real store, and the command that serves them, for tests in a browser."""

import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from commands import JURYBOX

PATIENCE_S: Final = 30
FAULT: Final = "internal error"

RUBRIC: Final = """---
id: help-desk
version: 1.0.0
scale: 1-5
votes: 3
weights: {correctness: 2}
pass: ["overall >= 0.5", "correctness >= 3"]
gates: ["pass_rate >= 0.85", "overall_mean >= 0.6", "unscored_rate <= 0.02"]
---
# Help desk

Answers of the help desk, judged as a customer would.

## Criteria

### Correctness
Facts and steps are right.

| Score | Meaning |
| --- | --- |
| 5 | Everything is right |
| 3 | Right in the main, with a slip that does no harm |
| 1 | Wrong or misleading |

#### Positive indicators
- Names the exact menu or command

### Tone
Friendly and to the point.

| Score | Meaning |
| --- | --- |
| 5 | A pleasure to read |
| 1 | Rude or stiff |
"""
# Pass rules are about one response.
PAIRS: Final = re.sub(
    r"pass: .*\ngates: .*\n", 'gates: ["win_rate >= 0.5", "unscored_rate <= 0.02"]\n', RUBRIC
)
FRACTIONS: Final = """---
id: fractions
version: 1.0.0
scale: 0.0-1.0
---
# Fractions

## Criteria

### Correctness
Facts and steps are right.

| Score | Meaning |
| --- | --- |
| 0.0-0.4 | Wrong |
| 0.5-1.0 | Right |

### Tone
Friendly and to the point.
"""
# Three judges that agree on most samples, quarrel over every fourth, and are silent over one.
JUDGES: Final = """
import json
import os
import re
import time


def asked_about(request):
    text = request.messages[0].content  # a later one says what is wrong with a reply
    return int(re.findall(r"[Qq]uestion (\\d+)", text)[-1])


def verdict(request, lean):
    text = request.messages[0].content
    asked = json.loads(request.schema)["properties"]
    number = asked_about(request)
    if number == 7:
        return "I would rather not say."
    said = {
        "reasoning": {
            "correctness": f"Reason of the judge: question {number} is told step by step.",
            "tone": "Reason of the judge: it greets and thanks.",
        },
        "bias_checklist": {name: "Looked at." for name in asked["bias_checklist"]["required"]},
        "safety_concerns": ["It tells people to mix bleach."] if number == 5 else [],
    }
    if "winner" in asked:
        # Whichever comes first wins every third time, so that the order shows.
        best = "A" if text.find("Answer one") < text.find("Answer two") else "B"
        winner = "A" if number % 3 == 0 else best
        said |= {"preferences": {"correctness": winner, "tone": "tie"}, "winner": winner}
    else:
        score = max(1, min(5, 5 - number % 3 + (lean if number % 4 == 0 else 0)))
        said |= {"scores": {"correctness": score, "tone": 4}}
    return json.dumps(said)


def first(request):
    return verdict(request, 0)


def second(request):
    return verdict(request, -1)


def third(request):
    return verdict(request, -3)


def kind(request):
    return verdict(request, 5)


def half(request):
    said = json.loads(verdict(request, 0))
    return json.dumps(said | {"scores": {"correctness": 0.5, "tone": 0.25}})


def patient(request):
    # All but the first samples wait for somebody to let them go on.
    while asked_about(request) > 2 and not os.path.exists("go"):
        time.sleep(0.05)
    return verdict(request, 0)
"""
JURY: Final = "[python/judges:first, python/judges:second, python/judges:third]"


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A store with runs, by their names."""

    store: str
    runs: dict[str, str]


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server under test, and the store that it shows."""

    url: str
    store: Path


def rows(many: int, *, pairs: bool = False) -> list[dict[str, Any]]:
    """Return rows of a dataset."""
    return [_row(number, pairs=pairs) for number in range(many)]


def _row(number: int, *, pairs: bool) -> dict[str, Any]:
    row = {
        "id": f"q{number}",
        "task": f"Question {number}: how do I reset the lamp?",
        "context": "A lamp is reset by holding its switch for five seconds.",
        "reference": "Hold the switch for five seconds.",
        "response": f"Answer one to question {number}: hold the switch for five seconds. Thanks!",
        "scenario": ("home", "office")[number % 2],
        "latency_e2e_ms": 300 + 41 * number,
        "input_tokens": 40 + number,
        "output_tokens": 12 + number % 5,
    }
    if number == 3:
        said = ("Be *brief*.", "My lamp blinks. A message?", "Then it **waits**. Does it hum?")
        roles = ("system", "user", "assistant")
        turns = [{"role": role, "content": text} for role, text in zip(roles, said, strict=True)]
        row["messages"] = turns
    if number == 9:
        table = ("| plan | seats | price | months | users |", "| - | -: | -: | -: | -: |")
        row["response"] += "\n\n" + "\n".join((*table, "| Free | 1 | 0 | 1 | 2 |"))
    if pairs:
        del row["reference"]  # with one, each response would be held against it, and not the other
        row["response_b"] = f"Answer two to question {number}: hold the switch, then wait."
    return row


def write_suite(
    folder: Path, given: Iterable[dict[str, Any]], *, judges: str = JURY, rubric: str = RUBRIC
) -> None:
    """Write a suite with its rubric, rows and judges."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "judges.py").write_text(JUDGES)
    (folder / "rubric.md").write_text(rubric)
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in given))
    (folder / "suite.yaml").write_text(
        f"suite: {folder.name}\nrubric: rubric.md\ndataset: rows.jsonl\n"
        f"judge: {{models: {judges}}}\n"
    )


def run(folder: Path, store: Path, *options: str) -> str:
    """Run a suite as a user would, and return the run's id."""
    with running(folder, store, *options) as process:
        out, errors = process.communicate()
    if process.returncode not in {0, 1}:  # gates need not pass here
        raise AssertionError(errors.decode())
    return json.loads(out)["run_id"]


@contextmanager
def running(folder: Path, store: Path, *options: str) -> Generator["subprocess.Popen[bytes]"]:
    """Begin to run a suite."""
    process = subprocess.Popen(
        [JURYBOX, "run", "suite.yaml", "--store", store, "--json", *options],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def serving(store: Path, *options: str, **environment: str) -> Generator[Server]:
    """Serve a store as a user would, on a free port; what it can't cope with fails the test."""
    log = store.with_name(f"{store.name}-{uuid.uuid4().hex}.log")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [JURYBOX, "serve", "--store", store, "--port", "0", *options],
            cwd=store.parent,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env={**os.environ, **environment},
        )
    with process:
        try:
            yield Server(url=_address(process, log), store=store)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
    assert FAULT not in log.read_text(), log.read_text()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        found = re.search(r"(http://\S+?)/? shows the runs", log.read_text())
        if found:
            return found[1]
        time.sleep(0.02)
    raise AssertionError(f"the server didn't begin: {log.read_text()}")
