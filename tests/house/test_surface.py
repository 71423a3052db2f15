"""The public surface changes only on purpose."""

import subprocess
import sys

import pytest

import jurybox

PUBLIC = [
    "Criterion",
    "DocumentError",
    "EvaluationReport",
    "Finding",
    "IncompleteError",
    "InputError",
    "JuryboxError",
    "Level",
    "ParseError",
    "Reading",
    "Rubric",
    "RubricError",
    "Run",
    "RunView",
    "Scale",
    "SingleReport",
    "Turn",
    "__version__",
    "aevaluate",
    "arun",
    "arun_targets",
    "bias_checklist_prompt",
    "check_rubric",
    "evaluate",
    "evaluate_appropriateness",
    "evaluate_conversational_quality",
    "evaluate_emotional_intelligence",
    "evaluate_helpfulness",
    "evaluate_personalization_continuity",
    "evaluate_trust_boundaries",
    "load_rubric",
    "load_run",
    "overall_quality",
    "pairwise_eval_prompt",
    "parse_rubric",
    "reference_eval_prompt",
    "render_rubric",
    "rubric_eval_prompt",
    "run",
    "run_targets",
]


def test_the_public_names_are_these() -> None:
    assert jurybox.__all__ == PUBLIC


def test_every_public_name_loads_and_is_listed() -> None:
    for name in PUBLIC:
        assert getattr(jurybox, name) is getattr(jurybox, name)
        assert name in dir(jurybox)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jurybox.nothing  # pyright: ignore[reportAttributeAccessIssue]


def modules_after(code: str) -> set[str]:
    script = f"import sys; before = set(sys.modules); {code}; print(*(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_jurybox_loads_nothing_but_the_standard_library() -> None:
    assert modules_after("import jurybox") - {"jurybox"} <= sys.stdlib_module_names


def test_the_help_of_the_command_loads_no_reader_and_no_terminal_library() -> None:
    loaded = modules_after(
        "import contextlib, io; from jurybox.cli.app import run\n"
        "with contextlib.redirect_stdout(io.StringIO()): run(['--help'])\npass"
    )
    assert loaded & {"yaml", "markdown_it", "rich"} == set()
    assert "click" in loaded


def test_a_run_needs_no_numpy() -> None:
    assert "numpy" not in modules_after("import jurybox.app.run_suite, jurybox.cli.run")
