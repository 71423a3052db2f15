"""How users call the public names; checked by pyright, never run."""

from pathlib import Path
from typing import assert_type

import jurybox
from jurybox import (
    Criterion,
    Finding,
    Level,
    Reading,
    Rubric,
    RubricError,
    Run,
    Scale,
    SingleReport,
)


def read() -> None:
    assert_type(jurybox.load_rubric("general"), Rubric)
    assert_type(jurybox.load_rubric(Path("rubrics/mine.md")), Rubric)
    assert_type(jurybox.parse_rubric("---\n---\n"), Rubric)
    assert_type(jurybox.parse_rubric(b"---\n---\n", origin="mine.md"), Rubric)
    assert_type(jurybox.check_rubric("text"), Reading)
    assert_type(jurybox.check_rubric("text").rubric, Rubric | None)


def look(rubric: Rubric) -> None:
    assert_type(rubric.criteria, tuple[Criterion, ...])
    assert_type(rubric.criterion("tone"), Criterion | None)
    assert_type(rubric.criteria[0].scale, Scale)
    assert_type(rubric.criteria[0].band(0.5), Level | None)
    assert_type(jurybox.render_rubric(rubric), str)


async def judge(rubric: Rubric) -> None:
    assert_type(
        jurybox.evaluate(rubric="general", task="t", response="r", judges="python/m:f"),
        SingleReport,
    )
    report = await jurybox.aevaluate(
        rubric=rubric,
        task="t",
        response="a",
        response_b="b",
        messages=[jurybox.Turn(role="user", content="hello")],
        judges=["openai/x-2025-01-01", "anthropic/y-2025-01-01"],
        votes=3,
    )
    assert_type(report.overall, float | None)
    prompt = jurybox.rubric_eval_prompt(rubric, checklist=rubric, task="t", response="r")
    assert_type(prompt, str)


def batch(done: list[int]) -> None:
    assert_type(jurybox.run("suite.yaml"), Run)
    view = jurybox.run(
        Path("suite.yaml"),
        judges=["openai/x-2025-01-01", "anthropic/y-2025-01-01"],
        repeats=3,
        limit=10,
        concurrency=4,
        base_url="http://127.0.0.1:8000/v1",
        allow_unpinned=True,
        cache=False,
        store="runs.db",
        on_progress=lambda progress: done.append(progress.done),
    )
    assert_type(view.run_id, str)
    assert_type(view.passed, bool)
    assert_type(view.gates[0].value, float | None)
    assert_type(view.notes, tuple[str, ...])


def companion() -> None:
    assert_type(jurybox.evaluate_appropriateness("hello", "hi"), float)
    assert_type(jurybox.evaluate_conversational_quality("hello", "hi", None), float)
    assert_type(jurybox.evaluate_helpfulness("hello", "hi", context={"turn": 1}), float)
    assert_type(jurybox.evaluate_emotional_intelligence("hello", "hi"), float)
    assert_type(jurybox.evaluate_personalization_continuity("hello", "hi"), float)
    assert_type(jurybox.evaluate_trust_boundaries("hello", "hi"), float)
    assert_type(jurybox.overall_quality({"appropriateness": 1.0}), float)


def refuse() -> None:
    try:
        jurybox.parse_rubric("")
    except RubricError as error:
        assert_type(error.findings, tuple[Finding, ...])
        assert_type(error.findings[0].line, int)
