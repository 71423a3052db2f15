"""``jurybox gate``."""

from typing import Any

import click

from jurybox.app.view_run import accept_unreviewed as accept
from jurybox.app.view_run import corrected_by_reviews, view_run
from jurybox.cli import options
from jurybox.cli.output import print_json, print_line
from jurybox.cli.run_view import print_verdict, print_why
from jurybox.cli.signals import FAILED, FINE, INCOMPLETE, fail
from jurybox.errors import InputError
from jurybox.reporting.release import BLOCKED
from jurybox.reporting.stored import rubric_of
from jurybox.reporting.view import RunView
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import NEEDS_REVIEW
from jurybox.text_format import listed, nearest

_REPORTED = (
    *("run_id", "status", "suite", "gates", "release_ready", "release_reasons"),
    *("decision", "decision_reasons", "unconfirmed", "review"),
)


@click.command("gate")
@options.run_argument
@click.option(
    "--decision",
    metavar="NAME",
    help="Also fail unless the rubric decides this, such as: deploy.",
)
@click.option(
    "--corrected",
    is_flag=True,
    help="Check mean scores and win rates after correcting them using the run's reviews.",
)
@options.accept_option
@options.store_option
@options.json_option
def command(
    run: str,
    decision: str | None,
    corrected: bool,
    accept_unreviewed: bool,
    as_json: bool,
) -> int:
    """Check a finished RUN against its rubric's gates.

    RUN is a run's id, its name, a tag, or `last`. The exit code is 0 when every gate passes, 1
    when one fails or a review that the rubric requires is missing, and 3 when the run isn't
    finished.

    \b
    Examples:
      jurybox gate last
      jurybox gate last --accept-unreviewed
      jurybox gate last --corrected
      jurybox gate 20260301-0914 --decision deploy
      jurybox gate last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    with options.opened_run(run) as (store, row):
        rubric = rubric_of(row)
        _check_decision(rubric, decision, row.id)
        # Without gates, only a missing review can fail the run; once accepted, nothing can.
        if not (rubric.gates or decision) and (
            accept_unreviewed or not view_run(row, store).release.blockers
        ):
            raise _no_gates(rubric, row.id)
        if row.status != "finished":
            if as_json:
                print_json(_as_data(view_run(row, store), passed=False, wanted=decision))
            hint = options.resume_line(row.id)
            return fail(
                f"{row.id}: the run isn't finished, so nothing can be decided; {hint}", INCOMPLETE
            )
        view = accept(row, store) if accept_unreviewed else view_run(row, store)
        notes = view.release.notes
        if corrected:
            view = corrected_by_reviews(row, view, store)
            notes = (*notes, *view.notes)
    passed = view.passed and decision in {None, view.conclusion.decision}
    if as_json:
        data = _as_data(view, passed=passed, wanted=decision)
        print_json(data | ({"corrected": list(view.notes)} if corrected else {}))
    else:
        print_verdict(view)
        print_line(f"run {view.run_id}  {view.suite}", style="bold")
        for note in notes:
            print_line(note, style="bold red")
        print_why(view)
    return FINE if passed else FAILED


def _no_gates(rubric: Rubric, run_id: str) -> InputError:
    hint = "add `gates` to it and rescore the run"
    if rubric.decisions:
        names = listed([each.decide for each in rubric.decisions])
        hint += f", or require one of its decisions with --decision ({names})"
    return InputError("the rubric has no gates", hint, run_id)


def _check_decision(rubric: Rubric, decision: str | None, run_id: str) -> None:
    """Refuse a decision that the rubric doesn't have."""
    if decision is None:
        return
    names = [each.decide for each in rubric.decisions]
    if not names:
        raise InputError("the rubric has no decisions", "leave --decision out", run_id)
    if decision in {NEEDS_REVIEW, BLOCKED}:
        problem = f"`{decision}` blocks a release, so a gate can't require it"
        hint = f"leave --decision out, or require one of {listed(names)}"
        raise InputError(problem, hint, run_id)
    if decision not in names:
        hint = nearest(decision, names, f"its decisions are {listed(names)}")
        raise InputError(f"the rubric never decides `{decision}`", hint, run_id)


def _as_data(view: RunView, *, passed: bool, wanted: str | None) -> dict[str, Any]:
    whole = view.as_data()
    kept = {name: whole[name] for name in _REPORTED if name in whole}
    return {**kept, "passed": passed} | ({} if wanted is None else {"wanted_decision": wanted})
