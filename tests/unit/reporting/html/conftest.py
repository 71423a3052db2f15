"""Runs of every kind, and their pages."""

from collections.abc import Callable

import pytest

from jurybox.reporting.attention import gather
from jurybox.reporting.html.html_render import html_report
from jurybox.reporting.html.page import RunPage, run_page
from verdicts import preferred

CRITERIA = ("correctness", "completeness", "soundness", "clarity", "usefulness")


def first_wins(_: str) -> str:
    """Return the verdict of a judge that prefers whatever comes first."""
    return preferred("A", CRITERIA, "The first is better.")


@pytest.fixture
def made(make_run: Callable, row: Callable) -> Callable:
    """Return a maker of runs by their kind."""
    good = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."}'
    poor = '{"accuracy_score": 0, "faithfulness_score": 1, "rationale": "Wrong."}'

    def judge(prompt: str) -> str:
        return "no" if "mute" in prompt else poor if "poor" in prompt else good

    def make(kind: str) -> object:
        rows = [
            row("good", ms=400.0, scenario="one", metadata={"demographic": "old"}),
            row("poor", "poor", ms=3000.0, scenario="two"),
            row("mute", "mute", ms=900.0, scenario="one"),
            row("late", "", late=True, ms=9000.0, scenario="two"),
        ]
        both = [row(f"p{at}", response_b=row("b").response) for at in range(12)]
        told = {
            "judged": lambda: make_run(rows, judge),
            "repeated": lambda: make_run(rows, judge, repeats=3),
            "calm": lambda: make_run([row("a")], judge),
            "unfinished": lambda: make_run(rows, judge, left_out=1),
            "empty": lambda: make_run(rows, judge, left_out=4),
            "rules": lambda: make_run(rows, None, rubric="companion", run_id="run-r"),
            "pairs": lambda: make_run(both[:3], first_wins, rubric="general", run_id="run-p"),
            "many pairs": lambda: make_run(both, first_wins, rubric="general", run_id="run-m"),
        }
        return told[kind]()

    return make


@pytest.fixture
def page() -> Callable[[object], RunPage]:
    """Return what makes the page of a run from its row alone."""

    def make(run: object) -> RunPage:
        return run_page(run.view, gather(run.store, run.view).concerns)

    return make


@pytest.fixture
def report() -> Callable[..., str]:
    """Return what makes the report on a run."""

    def make(run: object, **more: object) -> str:
        return html_report(run.view, gather(run.store, run.view), run.store, more)[0]

    return make
