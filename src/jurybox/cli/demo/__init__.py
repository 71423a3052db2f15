"""``jurybox demo``."""

from pathlib import Path
from typing import Final

import click

from jurybox.cli.exits import FINE, INCOMPLETE
from jurybox.cli.output import json_option, print_json, say

_FOLDER: Final = ".jurybox/demo"
NO_MODEL: Final = "none"
_JUDGED_BY_MODEL: Final = 3  # a model on two cores takes about 20 seconds per answer


@click.command("demo")
@click.argument("folder", default=_FOLDER, metavar="[FOLDER]")
@click.option(
    "--model",
    metavar="NAME",
    help="The embedded model that judges, or `none` for the part that needs no model; else the"
    " default judge, where it is on this machine.",
)
@json_option
def command(folder: str, model: str | None, as_json: bool) -> int:
    """Show jurybox at work, without a key: scores by rules, a judged suite, a judge's bias.

    First what needs no model: replies scored by a rubric's rules, and six answers judged by their
    words. Then, if the embedded model is on this machine, it judges three of the answers and
    compares a pair in both orders, which shows its position bias. The suite, the store of the runs
    and report.html are left in FOLDER (default: .jurybox/demo). The answers have faults on purpose,
    so a failed gate is no failure here: the exit code is 0, or 3 if the demo was stopped.

    \b
    Examples:
      jurybox demo
      jurybox demo try-it --model none
      jurybox demo try-it --model smollm2-135m
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.cli.demo.demo_pairs import compare_pairs
    from jurybox.cli.demo.demo_run import BY_WORDS, Stage, how_to_have_it, judge_for, rule_scores
    from jurybox.cli.demo.demo_view import Shown, Silent

    wanted = None if model == NO_MODEL else judge_for(model)
    view = Silent() if as_json else Shown()
    stage = Stage(Path(folder))
    scored = rule_scores()
    view.rules(scored)
    runs = [stage.judged(BY_WORDS, view)]
    pairs = None
    if wanted is not None and runs[0].stopped is None:
        runs.append(stage.judged(wanted, view, limit=_JUDGED_BY_MODEL))
        if runs[-1].stopped is None:
            pairs = compare_pairs(wanted, view.pair)
    report = stage.report(runs[-1])
    missing = how_to_have_it() if wanted is None else None
    if as_json:
        print_json(
            {
                "folder": folder,
                "report": str(report),
                "rules": scored,
                "runs": [run.as_data() for run in runs],
                "pairs": pairs,
                "missing": missing,
            }
        )
    if missing is not None:
        say(missing)
    view.end(folder, report)
    return FINE if all(run.stopped is None for run in runs) else INCOMPLETE
