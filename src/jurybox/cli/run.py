"""``jurybox run``, and working on a run with its progress shown."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import click
import msgspec

from jurybox.app.delivery import deliver_run
from jurybox.app.job import Job, Watch
from jurybox.app.prepare import CostEstimate, estimate_cost, prepare_all
from jurybox.app.run_suite import RunResult, baseline_id, start_run
from jurybox.app.suite_choice import RunOptions
from jurybox.app.view_run import accept_unreviewed, view_as_data
from jurybox.cli import options
from jurybox.cli.output import (
    harmless,
    print_json,
    print_line,
    print_result,
    print_table,
    say,
    wants_json,
)
from jurybox.cli.progress import displayed
from jurybox.cli.run_view import print_view
from jurybox.cli.signals import FAILED, FINE, INCOMPLETE, stop_on_signals, was_interrupted
from jurybox.documents.numbers import dollars
from jurybox.engine.plan import Plan, read_plan
from jurybox.integrations.ray_engine import RayCluster
from jurybox.reporting.view import RunView
from jurybox.storage.store import Store
from jurybox.text_format import counted


@click.command("run")
@click.argument("suite", metavar="SUITE.yaml")
@options.option("--rubric RUBRIC", "A rubric's name or path, instead of the suite's.")
@options.option("--target MODEL", "The model that answers, instead of the suite's.")
@options.option("--prompt FILE", "The target's prompt, with {{task}} where the task goes.")
@options.option("--system FILE", "The target's system prompt.")
@options.option(
    "--responses FILE",
    "Recorded responses (rows with id and response) instead of a target; or the name of"
    " responses that a bundled suite has.",
)
@options.option(
    "--repeats N",
    "Run every sample N times; defaults to the suite's `repeats`.",
    type=click.IntRange(1, 1000),
)
@options.option(
    "--dataset FILE", "A dataset, instead of the suite's; the suite's `columns` apply to it."
)
@options.votes_option
@options.option("--limit N", "Use only the first N rows of the dataset.", type=click.IntRange(1))
@options.concurrency_option
@options.judges_option
@options.base_url_option
@options.unpinned_option
@options.version_drift_option
@options.option(
    "--cache/--no-cache",
    "Reuse, or don't reuse, replies to identical requests in earlier runs.",
    default=None,
)
@options.option(
    "--batch/--no-batch",
    "Send judge requests as provider batches, at about half the price and within a day, or"
    " directly; defaults to the suite's `batch`.",
    default=None,
)
@options.option(
    "--filter FIELD=VALUE",
    "Use only rows with that value; can be repeated for other values or fields.",
    several="filters",
)
@options.option("--name NAME", "A name for the run, which commands accept as RUN.")
@options.option(
    "--tag TAG",
    "A label for the run; commands accept it as RUN, for the newest run with this label.",
    several="tags",
)
@options.option("--baseline RUN", "A run to compare with.")
@options.max_cost_option
@options.option("--dry-run", "Estimate calls, tokens and cost; call no model and store nothing.")
@options.cluster_options
@options.accept_option
@options.store_option
@options.json_option
def command(
    suite: str,
    baseline: str | None,
    dry_run: bool,
    cluster: RayCluster | None,
    accept_unreviewed: bool,
    **given: Any,  # noqa: ANN401 - those of `RunOptions`
) -> int:
    """Run a suite: answer and judge every sample, and print the summary, gates and decision.

    SUITE.yaml is the path of a suite, or the name of a bundled one, such as companion-scenarios.

    Everything is stored as it arrives. Ctrl-C finishes the samples in progress and stops; a second
    Ctrl-C stops at once. Nothing finished is lost or paid for twice: `jurybox resume` continues the
    run. With --batch, Ctrl-C stops waiting: the provider still processes the submitted batches, and
    `jurybox resume` reads the results. The exit code is 1 when a gate of the rubric fails or a
    review that it requires is missing, and 3 when the run was stopped or no sample could be scored.

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
      jurybox run suite.yaml --engine ray --address 10.0.0.5:6379
    """  # noqa: D301 - click reads \b as "keep these lines"
    given["baseline"] = baseline_id(options.named_store(), baseline)
    targets = prepare_all(suite, RunOptions(**given), cluster)
    for warning in dict.fromkeys(each for one in targets for each in one.warnings):
        say(f"warning: {warning}")
    if dry_run:
        found = [(each.identity.target_name, estimate_cost(each)) for each in targets]
        data = [{"target": name, **msgspec.to_builtins(each)} for name, each in found]
        alone = {"runs": data} if len(data) > 1 else found[0][1]
        print_result(alone, lambda: [_print_estimate(*each) for each in found])
        return FINE
    with options.opened(create=True) as store:
        starts = {
            each.identity.target_name or "": partial(start_run, each, store, cluster=cluster)
            for each in targets
        }
        return run_and_print(starts, store, accept=accept_unreviewed)


def _print_estimate(target: str | None, found: CostEstimate) -> None:
    """Print how many calls a run would make, and what they would cost."""
    if target is not None:
        print_line(f"target {target}")
    print_line(f"{counted(found.samples, 'sample')}, {counted(found.calls, 'call')}; none was made")
    if found.models:
        print_table(
            ("model", "role", "calls", "input tokens", "output tokens", "dollars"),
            (
                (
                    *(each.model, each.role, f"{each.calls:,}"),
                    *(f"about {each.input_tokens:,}", f"up to {each.most_output_tokens:,}"),
                    _range(each.dollars, each.most_dollars),
                )
                for each in found.models
            ),
        )
    print_line(f"cost  {_range(found.dollars, found.most_dollars)}")
    for note in found.notes:
        print_line(note)


def _range(low: float | None, high: float | None) -> str:
    return dollars(high) if low is None or low == high else f"{dollars(low)} to {dollars(high)}"


def run_and_print(
    starts: Mapping[str, Callable[[Watch], RunResult]], store: Store, *, accept: bool = False
) -> int:
    """Start or resume each target's run, print and deliver the results; return the exit code.

    With ``accept``, samples that await a required review are accepted without it.
    """
    ended: list[RunResult] = []
    for name, start in starts.items():
        if name:
            say(f"target {name}")
        result = start(watched)
        if accept and result.stopped is None:
            view = accept_unreviewed(result.view.row, store)
            result = msgspec.structs.replace(result, view=view)
        ended.append(result)
        if result.stopped is not None and was_interrupted(result.stopped):
            break
    code = print_ended(ended, store, several=len(starts) > 1)
    # Delivered last, so that a verdict never waits for other systems.
    for each in ended:
        for line, _ in deliver_run(store, each.view.run_id) if each.stopped is None else ():
            say(line)
    return code if len(ended) == len(starts) else INCOMPLETE


@contextmanager
def watched(job: Job) -> Generator[None]:
    """Show the progress of a job, and stop it on signals."""
    plan = read_plan(job.row.plan)
    say(f"run {job.row.id}: {_described(plan)}, saved to {options.shown_store()}")
    with displayed(plan.samples) as display:
        job.on_progress = display.show
        job.on_notice = lambda text: say(f"warning: {harmless(text)}")
        stop_on_signals(job)
        yield


def _described(plan: Plan) -> str:
    count = counted(plan.samples, "sample")
    if plan.repeats > 1:
        count = f"{count} ({plan.dataset.used} rows, {plan.repeats} times)"
    answered = [] if plan.target is None else [f"answered by {plan.target.model}"]
    judges = (
        f"judged by {', '.join(plan.judges)}" if plan.judges else "scored by the rubric's rules"
    )
    batched = ["in batches"] if plan.batch else []
    return ", ".join((count, *answered, judges, *batched))


def print_ended(ended: Sequence[RunResult], store: Store, *, several: bool = False) -> int:
    """Print runs that have ended, say how to continue stopped ones, and return the exit code."""
    view = ended[0].view
    if several:
        _print_targets([each.view for each in ended], store)
    else:
        print_result(partial(view_as_data, view, store), lambda: print_view(view, store))
    for each in ended:
        if each.stopped is not None:
            say(f"stopped: {each.stopped}")
            drift = " --allow-version-drift" if each.view.drifted else ""
            say(options.resume_line(each.view.run_id) + drift)
    return max(INCOMPLETE if each.stopped else _exit_code(each.view) for each in ended)


def _print_targets(views: Sequence[RunView], store: Store) -> None:
    """Print the runs of several targets side by side."""
    from jurybox.cli.diff import print_side_by_side
    from jurybox.reporting.compare_runs import CompareOptions
    from jurybox.reporting.run_verdict import verdict_of
    from jurybox.reporting.side_by_side import side_by_side

    compared = side_by_side(store, views, CompareOptions()) if len(views) > 1 else None
    if wants_json():
        comparison = None if compared is None else compared.as_data()
        print_json(
            {"runs": [view_as_data(view, store) for view in views], "comparison": comparison}
        )
    elif compared is not None:
        print_side_by_side(compared, [verdict_of(view) for view in views])
        stored = options.at_store()
        names = " ".join(view.metadata.get("name") or view.run_id for view in views)
        click.echo(f"outputs in columns: jurybox diff {names} -o side-by-side.html{stored}")
        for name, view in zip(compared.names, views, strict=True):
            click.echo(f"{name}: jurybox show {view.run_id}{stored}")


def _exit_code(view: RunView) -> int:
    """Return the exit code of a finished run."""
    if view.none_scored and view.summary["unscored_rate"]:
        return INCOMPLETE
    if not view.passed:
        return FAILED
    # Without gates, a run whose target never answered would otherwise count as fine.
    return INCOMPLETE if view.none_scored and not view.gates else FINE
