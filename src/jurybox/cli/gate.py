"""``jurybox gate``."""

from typing import Any

import click
from msgspec.structs import replace

from jurybox.app.view_run import accept_unreviewed as accept
from jurybox.app.view_run import (
    correctable,
    corrected_by_reviews,
    reviewer_agreement,
    verdict_as_data,
    view_run,
)
from jurybox.cli import options
from jurybox.cli.output import print_line, print_result
from jurybox.cli.run_view import print_verdict, print_why, unstated
from jurybox.cli.signals import FAILED, FINE, INCOMPLETE, fail
from jurybox.engine.records import RunRow
from jurybox.errors import InputError, JuryboxError
from jurybox.reporting.release import BLOCKED
from jurybox.reporting.run_verdict import verdict_of
from jurybox.reporting.stored import rubric_of
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import SAFETY_RATE
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import NEEDS_REVIEW
from jurybox.statistics.estimates import Interval
from jurybox.storage.store import Store
from jurybox.text_format import listed, nearest

_REPORTED = (
    *("run_id", "status", "suite", "gates", "release_ready", "release_reasons"),
    *("decision", "decision_reasons", "unconfirmed", "review"),
)


@click.command("gate")
@options.option("--decision NAME", "Also fail unless the rubric decides this, such as: deploy.")
@options.option(
    "--corrected",
    "Check mean scores, pass and win rates after correcting them using the run's reviews.",
)
@options.accept_option
@options.stored_run
def command(
    store: Store, run: RunRow, decision: str | None, corrected: bool, accept_unreviewed: bool
) -> int:
    """Check a finished RUN against its rubric's gates.

    RUN is a run's id, its name, a tag, or `last`. The exit code is 0 when every gate passes, 1
    when one fails, when the decision isn't the one that --decision names, or when a review that
    the rubric requires is missing, and 3 when the run isn't finished.

    \b
    Examples:
      jurybox gate last
      jurybox gate last --accept-unreviewed
      jurybox gate last --corrected
      jurybox gate 20260301-0914 --decision deploy
      jurybox gate last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    rubric, view = rubric_of(run), view_run(run, store)
    _check_decision(rubric, decision, run.id)
    # Without gates, only a missing review can fail the run; once accepted, nothing can.
    if not (rubric.gates or decision) and (accept_unreviewed or not view.release.blockers):
        raise _no_gates(rubric, run.id)
    if run.status != "finished":
        print_result(lambda: _as_data(view, passed=False, wanted=decision), lambda: None)
        hint = options.resume_line(run.id)
        what = "the run isn't finished, so nothing can be decided"
        return fail(f"{run.id}: {what}; {hint}", INCOMPLETE)
    view = accept(run, store) if accept_unreviewed else view
    notes, people = view.release.notes, None
    try:
        people = reviewer_agreement(view, store)
    except JuryboxError as error:  # what the gates use isn't damaged
        notes = (*notes, f"the reviews can't be compared: {error}")
    verdict, intervals = verdict_of(view, people), dict[str, Interval | None]()
    if corrected:
        intervals = {name: each.interval for name, each in verdict.corrected.items()}
        view = corrected_by_reviews(run, view, store)
        notes = (*notes, *view.notes)
        # What is unsure is the judge's value, not the corrected one.
        verdict = replace(verdict_of(view), unsure="")
    passed = view.passed and decision in {None, view.conclusion.decision}
    data = _as_data(view, passed=passed, wanted=decision)
    made = verdict_as_data(view, verdict, intervals)
    data |= {name: value for name, value in made.items() if value is not None}
    data |= {"corrected": list(view.notes)} if corrected else {}
    gated = {gate.name for gate in rubric.gates} if corrected else set[str]()
    uncorrected = gated.difference(correctable(rubric), {SAFETY_RATE})

    def show() -> None:
        print_verdict(view, verdict, people)
        print_line(f"run {view.run_id}  {view.suite}", style="bold")
        for note in unstated(notes, view, verdict):
            print_line(note, style="bold red")
        print_why(view, corrected=intervals, uncorrected=uncorrected)

    print_result(data, show)
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
