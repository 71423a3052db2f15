"""jurybox judges the output of language models against a rubric that people can read.

Importing this package does no work: each public name is loaded when it is first used.
"""

# Not imported from `typing`, because that import would take longer than the rest of this module.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from jurybox.app.companion import (
        evaluate_appropriateness,
        evaluate_conversational_quality,
        evaluate_emotional_intelligence,
        evaluate_helpfulness,
        evaluate_personalization_continuity,
        evaluate_trust_boundaries,
        overall_quality,
    )
    from jurybox.app.evaluate_once import aevaluate, evaluate
    from jurybox.app.run_suite import arun, arun_targets, run, run_targets
    from jurybox.app.view_run import Run, load_run
    from jurybox.errors import (
        DocumentError,
        Finding,
        IncompleteError,
        InputError,
        JuryboxError,
        ParseError,
        RubricError,
    )
    from jurybox.judging.evaluation_report import EvaluationReport
    from jurybox.judging.prompts import bias_checklist_prompt
    from jurybox.judging.protocol import (
        pairwise_eval_prompt,
        reference_eval_prompt,
        rubric_eval_prompt,
    )
    from jurybox.reporting.view import RunView
    from jurybox.rubric import (
        Criterion,
        Level,
        Reading,
        Rubric,
        Scale,
        check_rubric,
        parse_rubric,
        render_rubric,
    )
    from jurybox.sample import Turn
    from jurybox.scoring.by_rules import SingleReport
    from jurybox.wiring import load_rubric

__version__ = "0.1.0"

__all__ = [
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

# In this order, so that a name is found before heavier modules are imported.
_MODULES = (
    *("errors", "sample", "rubric", "judging.prompts", "judging.protocol"),
    *("judging.evaluation_report", "scoring.by_rules", "wiring", "app.companion"),
    *("app.evaluate_once", "reporting.view", "app.view_run", "app.run_suite"),
)


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    from importlib import import_module

    for module in _MODULES if name in __all__ else ():
        value = getattr(import_module(f"jurybox.{module}"), name, None)
        if value is not None:
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
