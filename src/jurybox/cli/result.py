"""How a command that worked on a run ends: what it prints, and its exit code."""

from typing import TYPE_CHECKING, Any

from jurybox.cli.exits import FAILED, FINE, INCOMPLETE
from jurybox.cli.output import plain, print_json, say, wide_console
from jurybox.cli.stores import resume_line
from jurybox.errors import IncompleteError

if TYPE_CHECKING:
    from jurybox.app.run_suite import RunResult
    from jurybox.engine.ports import Store
    from jurybox.reporting.review_text import ReviewAgreement
    from jurybox.reporting.view import RunView


def end(ended: "RunResult", store: "Store", store_url: str | None, *, as_json: bool) -> int:
    """Print a run that was worked on, say how to go on with it, and return the exit code."""
    if as_json:
        print_json(view_as_data(ended.view, store))
    else:
        print_view(ended.view, store)
    if ended.stopped is not None:
        say(f"stopped: {ended.stopped}")
        say(resume_line(ended.view.run_id, store_url))
        return INCOMPLETE
    return exit_code(ended.view)


def print_view(view: "RunView", store: "Store", *, metadata: bool = False) -> None:
    """Print a run for people.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    from jurybox.cli.run_view import print_run
    from jurybox.reporting.attention import concerns_of
    from jurybox.reporting.stored import rubric_of

    row = store.run(view.run_id)
    if row is None:
        raise IncompleteError(f"run {view.run_id} was taken out of the store; start a new one")
    concerns = concerns_of(store, row, view.conclusion)
    print_run(view, rubric_of(row), concerns, metadata=metadata)
    _print_people(view, store)
    _print_standing(view, store)


def view_as_data(view: "RunView", store: "Store") -> dict[str, Any]:
    """Return a run as JSON shows it, with how its judges stand with people."""
    from jurybox.app.calibrations import calibration_of_run, calibration_status_as_data

    return {
        **view.as_data(),
        "people": people_as_data(view, store),
        "calibration": calibration_status_as_data(calibration_of_run(view, store)),
    }


def _print_standing(view: "RunView", store: "Store") -> None:
    """Say how far the judges agree with people, where that was ever measured."""
    from jurybox.app.calibrations import calibration_of_run

    found = calibration_of_run(view, store)
    if found is not None:
        out = wide_console()
        out.print()
        holds = not isinstance(found, str) and not found.stale
        line = found if isinstance(found, str) else found.line
        out.print(plain(line, style="green" if holds else "yellow"))


def people_as_data(view: "RunView", store: "Store") -> dict[str, Any] | None:
    """Return how the judges stand with people as JSON shows it; None where nobody has reviewed.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    found = _people(view, store)
    return None if found is None else found.as_data()


def _print_people(view: "RunView", store: "Store") -> None:
    """Say how the judges stand with the people who have reviewed the run, where some have."""
    found = _people(view, store)
    if found is not None:
        out = wide_console()
        out.print()
        head, *rest = found.lines
        out.print(plain(f"people so far  {head}", style="bold"))
        for line in rest:
            out.print(plain(f"  {line}"))


def _people(view: "RunView", store: "Store") -> "ReviewAgreement | None":
    # Most runs have no reviews, and neither their rubric nor numpy need be read for nothing.
    row = store.run(view.run_id) if store.reviews(view.run_id) else None
    if row is None:
        return None
    from jurybox.app.review_desk import ReviewDesk

    return ReviewDesk(store, row).standing()


def exit_code(view: "RunView") -> int:
    """Return what a finished run means for whoever started it."""
    samples: int = view.summary["samples"]
    unscored = round(samples * view.summary["unscored_rate"])
    unanswered = round(samples * view.summary["target_error_rate"])
    none_scored = unscored + unanswered == samples
    if unscored and none_scored:
        return INCOMPLETE
    if not view.passed:
        return FAILED
    # Without gates there is nothing that would fail because nobody answered.
    return INCOMPLETE if none_scored and not view.gates else FINE
