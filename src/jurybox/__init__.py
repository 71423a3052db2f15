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

_ROOMS = {
    "jurybox.errors": (
        "DocumentError",
        "Finding",
        "IncompleteError",
        "InputError",
        "JuryboxError",
        "RubricError",
        "ParseError",
    ),
    "jurybox.judging.prompts": ("bias_checklist_prompt",),
    "jurybox.judging.protocol": (
        "pairwise_eval_prompt",
        "reference_eval_prompt",
        "rubric_eval_prompt",
    ),
    "jurybox.judging.evaluation_report": ("EvaluationReport",),
    "jurybox.scoring.by_rules": ("SingleReport",),
    "jurybox.reporting.view": ("RunView",),
    "jurybox.rubric": (
        "Criterion",
        "Level",
        "Reading",
        "Rubric",
        "Scale",
        "check_rubric",
        "parse_rubric",
        "render_rubric",
    ),
    "jurybox.sample": ("Turn",),
    "jurybox.wiring": ("load_rubric",),
    "jurybox.app.run_suite": ("arun", "arun_targets", "run", "run_targets"),
    "jurybox.app.view_run": ("Run", "load_run"),
    "jurybox.app.companion": (
        "evaluate_appropriateness",
        "evaluate_conversational_quality",
        "evaluate_emotional_intelligence",
        "evaluate_helpfulness",
        "evaluate_personalization_continuity",
        "evaluate_trust_boundaries",
        "overall_quality",
    ),
    "jurybox.app.evaluate_once": (
        "aevaluate",
        "evaluate",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
