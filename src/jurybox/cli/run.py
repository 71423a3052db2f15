"""``jurybox run``, and working on a run with its progress shown."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
import msgspec

from jurybox.cli.options import (
    accept_option,
    base_url_option,
    concurrency_option,
    json_option,
    opened,
    resume_line,
    shown_store,
    store_option,
    unpinned_option,
    version_drift_option,
)
from jurybox.cli.output import harmless, print_json, say
from jurybox.cli.signals import FAILED, FINE, INCOMPLETE, fail, stop_on_signals
from jurybox.errors import IncompleteError, JuryboxError
from jurybox.text_format import counted

if TYPE_CHECKING:
    from jurybox.app.job import Job, OnProgress, OnStart
    from jurybox.app.prepare import Prepared
    from jurybox.app.run_suite import RunResult
    from jurybox.engine.plan import Plan
    from jurybox.engine.ports import Store
    from jurybox.reporting.view import RunView

    Start = Callable[[OnProgress, OnStart], RunResult]


@click.command("run")
@click.argument("suite", metavar="SUITE.yaml")
@click.option("--rubric", metavar="RUBRIC", help="A rubric's name or path, instead of the suite's.")
@click.option("--target", metavar="MODEL", help="The model that answers, instead of the suite's.")
@click.option(
    "--prompt", metavar="FILE", help="The target's prompt, with {{task}} where the task goes."
)
@click.option("--system", metavar="FILE", help="The target's system prompt.")
@click.option(
    "--responses",
    metavar="FILE",
    help="Recorded responses, rows of id and response, instead of a target; bundled suites have"
    " some by name.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Run every sample N times; defaults to the suite's `repeats`.",
)
@click.option(
    "--dataset", metavar="FILE", help="A dataset, instead of the suite's; with the same columns."
)
@click.option(
    "--votes",
    type=click.IntRange(1, 99),
    metavar="N",
    help="Votes per sample, instead of the suite's or the rubric's.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Use only the first N rows of the dataset.",
)
@concurrency_option
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="A judge model, instead of the suite's; repeat it for a mixed jury.",
)
@base_url_option
@unpinned_option
@version_drift_option
@click.option(
    "--cache/--no-cache",
    default=None,
    help="Reuse, or don't reuse, replies to equal requests of earlier runs.",
)
@click.option(
    "--batch/--no-batch",
    default=None,
    help="Send judge requests as provider batches, at about half the price and within a day, or"
    " directly; defaults to the suite's `batch`.",
)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Use only rows with that value; repeat it for another value or another field.",
)
@click.option("--name", metavar="NAME", help="What to call the run; commands take it for RUN.")
@click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="A label; RUN is the newest that has it."
)
@click.option("--baseline", metavar="RUN", help="A run to compare with.")
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="DOLLARS",
    help="Stop before the run costs more, calls in flight included; it can be resumed.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Count calls, tokens and cost; ask no model and store nothing.",
)
@accept_option
@store_option
@json_option
def command(  # noqa: PLR0917 - click passes them by name
    suite: str,
    rubric: str | None,
    target: str | None,
    prompt: str | None,
    system: str | None,
    responses: str | None,
    repeats: int | None,
    dataset: str | None,
    votes: int | None,
    limit: int | None,
    concurrency: int | None,
    judges: tuple[str, ...],
    base_url: str | None,
    allow_unpinned: bool,
    allow_version_drift: bool,
    cache: bool | None,
    batch: bool | None,
    filters: tuple[str, ...],
    name: str | None,
    tags: tuple[str, ...],
    baseline: str | None,
    max_cost: float | None,
    dry_run: bool,
    accept_unreviewed: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Run a suite: answer and judge every sample, and print the summary, gates and decision.

    SUITE.yaml is the path of a suite, or the name of a bundled one, such as companion-scenarios.

    Everything is stored as it arrives. Ctrl-C finishes the samples under way and stops; a second
    Ctrl-C stops at once. Nothing finished is lost or paid for twice: `jurybox resume` continues the
    run. With --batch, Ctrl-C stops waiting: the provider still processes what was submitted, and
    `jurybox resume` reads it. The exit code is 1 when a gate of the rubric fails or a review that
    it requires is missing, and 3 when the run was stopped or no sample could be scored.

    \b
    Examples:
      jurybox run suite.yaml
      jurybox run suite.yaml --limit 20 --judge openai/gpt-4.1-2025-04-14
      jurybox run companion-scenarios --responses good
      jurybox run companion-scenarios --target openai/gpt-4.1-2025-04-14 --system penpal-v2.md
      jurybox run suite.yaml --dry-run --filter scenario=basic
      jurybox run suite.yaml --max-cost 5 --name v2 --baseline v1
      jurybox run suite.yaml --judge openai/gpt-4.1-2025-04-14 --batch
      jurybox run suite.yaml --repeats 3 --store postgresql://db.example/runs --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.metadata import RunIdentity
    from jurybox.app.prepare import prepare
    from jurybox.app.run_suite import start_run
    from jurybox.app.suite_choice import RunOptions

    options = RunOptions(
        rubric=rubric,
        target=target,
        prompt=prompt,
        system=system,
        responses=responses,
        judges=judges,
        repeats=repeats,
        dataset=dataset,
        votes=votes,
        limit=limit,
        concurrency=concurrency,
        base_url=base_url,
        allow_unpinned=allow_unpinned,
        cache=cache,
        batch=batch,
        filters=filters,
        identity=RunIdentity(
            name=name,
            tags=tags,
            baseline=None if baseline is None else _baseline(baseline, store_url),
            max_cost=max_cost,
        ),
    )
    prepared = prepare(suite, options)
    for warning in prepared.warnings:
        say(f"warning: {warning}")
    if dry_run:
        _print_estimate(prepared, as_json=as_json)
        return FINE
    with opened(store_url, create=True) as store:
        return run_and_print(
            lambda show, on_start: start_run(
                prepared,
                store,
                base_url=base_url,
                allow_version_drift=allow_version_drift,
                on_progress=show,
                on_start=on_start,
            ),
            store,
            store_url,
            as_json=as_json,
            accept=accept_unreviewed,
        )


def _baseline(name: str, store_url: str | None) -> str:
    """Return the id of the run to compare with."""
    from jurybox.wiring import find_run

    with opened(store_url) as store:
        return find_run(store, name).id


def _print_estimate(prepared: "Prepared", *, as_json: bool) -> None:
    """Print what a run would ask and cost."""
    from jurybox.app.dry_run import estimate_cost
    from jurybox.cli.output import add_row, table, wide_console

    found = estimate_cost(prepared)
    if as_json:
        print_json(found.as_data())
        return
    click.echo(f"{counted(found.samples, 'sample')}, {counted(found.calls, 'call')}; none was made")
    if found.models:
        columns = ("calls", "input tokens", "output tokens", "dollars")
        made = table("model", "role", *columns, right=columns)
        for each in found.models:
            tokens = f"about {each.input_tokens:,}", f"up to {each.most_output_tokens:,}"
            spent = _range(each.dollars, each.most_dollars)
            add_row(made, each.model, each.role, f"{each.calls:,}", *tokens, spent)
        wide_console().print(made)
    click.echo(f"cost  {_range(found.dollars, found.most_dollars)}")
    for note in found.notes:
        click.echo(note)


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "unknown"
    return f"${low:.4f}" if low == high else f"${low:.4f} to ${high:.4f}"


def run_and_print(
    start: "Start", store: "Store", store_url: str | None, *, as_json: bool, accept: bool = False
) -> int:
    """Start or resume a run with its progress shown, print the result, return the exit code.

    With ``accept`` the samples that await a required review are accepted as they are.
    """
    from jurybox.app.view_run import accept_unreviewed

    ended = run_until_stopped(start, store_url)
    if ended is None:
        return INCOMPLETE
    row = store.run(ended.view.run_id) if accept and ended.stopped is None else None
    if row is not None:
        ended = msgspec.structs.replace(ended, view=accept_unreviewed(row, store))
    code = print_ended(ended, store, store_url, as_json=as_json)
    if ended.stopped is None:
        _deliver(ended.view.run_id, store)
    return code


def _deliver(run_id: str, store: "Store") -> None:
    """Send a finished run where the user asked for it; the verdict is printed by now."""
    from jurybox.app.langfuse_delivery import push_if_ordered
    from jurybox.app.telemetry import export_run
    from jurybox.cli.langfuse import say_delivered

    row = store.run(run_id)
    if row is None:
        return
    try:
        done = push_if_ordered(store, row)
        if done is not None:
            say_delivered(done)
    except JuryboxError as error:
        say(f"langfuse: nothing was delivered ({error}); `jurybox langfuse push` tries again")
    try:
        signals = export_run(store, row)
        if signals:
            say(f"otel: exported {', '.join(signals)}")
    except JuryboxError as error:
        say(f"otel: {error}")


def run_until_stopped(start: "Start", store_url: str | None) -> "RunResult | None":
    """Start or resume a run with its progress shown; None, with a message, if the store failed."""
    started: list[str] = []
    try:
        return run_with_progress(start, store_url, started)
    except IncompleteError as error:
        fail(harmless(str(error)), INCOMPLETE)
        for run_id in started:
            say(resume_line(run_id, store_url))
        return None


def run_with_progress(
    start: "Start", store_url: str | None, started: list[str] | None = None
) -> "RunResult":
    """Start or resume a run with its progress shown; its id is added to ``started``."""
    from jurybox.cli.progress import displayed
    from jurybox.engine.plan import read_plan

    with displayed() as display:

        def on_start(job: "Job") -> None:
            plan = read_plan(job.row.plan)
            if started is not None:
                started.append(job.row.id)
            say(f"run {job.row.id}: {_described(plan)}, saved to {shown_store(store_url)}")
            job.on_notice = lambda text: say(f"warning: {harmless(text)}")
            display.begin(plan.samples)
            stop_on_signals(job)

        return start(display.show, on_start)


def _described(plan: "Plan") -> str:
    count = counted(plan.samples, "sample")
    if plan.repeats > 1:
        count = f"{count} ({plan.dataset.used} rows, {plan.repeats} times)"
    answered = [] if plan.target is None else [f"answered by {plan.target.model}"]
    judges = (
        f"judged by {', '.join(plan.judges)}" if plan.judges else "scored by the rubric's rules"
    )
    batched = ["in batches"] if plan.batch else []
    return ", ".join((count, *answered, judges, *batched))


def print_ended(ended: "RunResult", store: "Store", store_url: str | None, *, as_json: bool) -> int:
    """Print a run that has ended, with how to continue it, and return the exit code."""
    from jurybox.app.view_run import view_as_data
    from jurybox.cli.run_view import print_view

    if as_json:
        print_json(view_as_data(ended.view, store))
    else:
        print_view(ended.view, store)
    if ended.stopped is not None:
        say(f"stopped: {ended.stopped}")
        finished = ended.view.status == "finished"
        again = " --retry-failed; what failed again keeps its old result" if finished else ""
        if ended.view.drifted and not finished:
            again = " --allow-version-drift"
        say(resume_line(ended.view.run_id, store_url) + again)
        return INCOMPLETE
    return _exit_code(ended.view)


def _exit_code(view: "RunView") -> int:
    """Return the exit code of a finished run."""
    samples: int = view.summary["samples"]
    unscored = round(samples * view.summary["unscored_rate"])
    unanswered = round(samples * view.summary["target_error_rate"])
    none_scored = unscored + unanswered == samples
    if unscored and none_scored:
        return INCOMPLETE
    if not view.passed:
        return FAILED
    # Without gates, nothing fails because the target never answered.
    return INCOMPLETE if none_scored and not view.gates else FINE
