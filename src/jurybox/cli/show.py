"""``jurybox show``."""

from typing import Final

import click

from jurybox.app.view_run import run_cost, view_as_data, view_run
from jurybox.cli.evaluate import print_outcome, print_report, print_trace
from jurybox.cli.options import json_option, opened_run, run_argument, store_option
from jurybox.cli.output import plain, print_json, print_line, print_table, yes_or_no
from jurybox.cli.run_view import print_view
from jurybox.documents.numbers import shown
from jurybox.engine.records import ExchangeRow, RunRow, read_outcome, read_request
from jurybox.judging.flow import Failure
from jurybox.reporting.export_rows import record_as_data
from jurybox.reporting.reasons import reasoning, why_failed
from jurybox.reporting.release import read_reviews, sample_decision
from jurybox.reporting.stored import SampleRecord, exchange_notes, find_record, reading, rubric_of
from jurybox.rubric.document.criteria import scenario_texts
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import SampleResult
from jurybox.storage.store import Store
from jurybox.text_format import cut
from jurybox.wiring import read_prices

_LONGEST_REASONING: Final = 300


@click.command("show")
@run_argument
@click.option("--sample", "sample_id", metavar="ID", help="Show one sample instead of the run.")
@click.option(
    "--repeat",
    type=click.IntRange(0),
    metavar="K",
    help="Which repeat of the sample, counted from 0; defaults to the first one.",
)
@click.option(
    "--failed", is_flag=True, help="List the failed samples with reasons, instead of the run."
)
@store_option
@json_option
def command(
    run: str,
    sample_id: str | None,
    repeat: int | None,
    failed: bool,
    as_json: bool,
) -> None:
    """Show a RUN: the verdict, why, and which samples to look at.

    RUN is a run's id, its name, a tag, or `last`. If people have reviewed samples, it shows
    how well the judges agree with them so far. With --sample, it shows everything stored about one
    sample: the task, the responses, and the judges' full replies. All metrics, groups, costs and
    settings are in `jurybox report RUN -o -`.

    \b
    Examples:
      jurybox show last
      jurybox show last --failed
      jurybox show 20260301-0914
      jurybox show last --sample q17 --repeat 2
    """  # noqa: D301 - click reads \b as "keep these lines"
    if repeat is not None and sample_id is None:
        raise click.UsageError("--repeat needs --sample")
    if sample_id is not None and failed:
        raise click.UsageError("--sample and --failed exclude each other")
    with opened_run(run) as (store, row):
        if sample_id is not None:
            _show_sample(store, row, sample_id, repeat, as_json=as_json)
        elif failed:
            _show_failed(store, row, as_json=as_json)
        else:
            view = view_run(row, store)
            if as_json:
                print_json(view_as_data(view, store))
            else:
                print_view(view, store)


def _show_failed(store: Store, row: RunRow, *, as_json: bool) -> None:
    """Print the failed samples, each with its reasons and the judges' reasoning."""
    found: list[dict[str, object]] = []
    with reading(row):
        for record in map(SampleRecord, store.samples(row.id)):
            why = why_failed(record.result)
            if why is None:
                continue
            because = cut(reasoning(record), _LONGEST_REASONING)
            found.append(
                {"id": record.id, "repeat": record.repeat, "why": why, "reasoning": because}
            )
            if not as_json:
                repeat = f" (repeat {record.repeat})" if record.repeat else ""
                print_line(plain(f"{record.id}{repeat}  ", "bold"), plain(why, "red"))
                if record.result.target_error is None:
                    print_line(f"  {because}", style="dim")
    if as_json:
        print_json({"run_id": row.id, "failed": found})
    elif not found:
        click.echo("no sample failed")
    else:
        click.echo(f"everything about a sample: jurybox show {row.id} --sample ID")


def _show_sample(
    store: Store, run: RunRow, sample_id: str, repeat: int | None, *, as_json: bool
) -> None:
    """Print everything stored about a sample."""
    record = find_record(store, run, sample_id, repeat)
    if as_json:
        print_json(record_as_data(record, run, store))
        return
    row, result, rubric = record.row, record.result, rubric_of(run)
    named = f"{row.sample_id}, repeat {row.repeat}" if row.repeat else row.sample_id
    print_line(f"sample {named}  of run {run.id}", style="bold")
    if result.target_error is not None:
        print_line(f"no response: {result.target_error}", style="bold red")
    if result.evaluator_error is not None:
        print_line(f"no score: {result.evaluator_error}", style="bold red")
    _print_inputs(record, rubric)
    _print_responses(record)
    scores = {**result.metrics, **result.components, "judge_score": result.judge_score}
    rows = [(name, shown(value)) for name, value in scores.items() if value is not None]
    print_table(("score", "value"), [*rows, ("passed", yes_or_no(result.passed))])
    if record.report is not None:
        print_report(record.report, _judging_cost(result))
    reviews = read_reviews(run, store.reviews_of(run.id, row.number)).every
    decision = sample_decision(rubric, result, reviews)
    meanings = {each.decide: each.meaning for each in rubric.sample_decisions}
    print_outcome(result.rules, decision, meanings.get(decision or "", ""))
    if record.automated is not None:
        print_trace(record.automated)
    for number, exchange in enumerate(record.exchanges, start=1):
        _print_exchange(f"exchange {number}", exchange, run)
    print_line(f"record  {row.record_sha256}", style="dim")


def _judging_cost(result: SampleResult) -> float | None:
    judges = [use for use in result.uses if use.role == "judge"]
    return run_cost(judges, read_prices())["dollars"]


def _print_inputs(record: SampleRecord, rubric: Rubric) -> None:
    row = record.inputs
    for turn in row.messages:
        _print_text(f"earlier, {turn.role}", turn.content)
    for name, text in (("task", row.task), ("context", row.context), ("reference", row.reference)):
        if text is not None:
            _print_text(name, text)
    if row.scenario is not None:
        print_line(f"scenario  {row.scenario}")
        print_line(scenario_texts(rubric).get(row.scenario, ""), wrap=False)
    if record.result.overlay is not None:
        print_line(f"overlay  {record.result.overlay}")


def _print_text(title: str, text: str) -> None:
    print_line(title, style="bold")
    # The terminal wraps the lines, so that a copied text has no added line ends.
    print_line(text, wrap=False)


def _print_responses(record: SampleRecord) -> None:
    both = {"response": record.responses.response, "response B": record.responses.response_b}
    for title, response in both.items():
        if response is None:
            continue
        _print_text(title, response.text or "(nothing)")
        if response.error is not None:
            print_line(response.error, style="red")
        if response.timing.cached:
            print_line("from the cache: its times are those of an earlier run", style="yellow")


def _print_exchange(name: str, exchange: ExchangeRow, run: RunRow) -> None:
    with reading(run):
        model, outcome = read_request(exchange).model, read_outcome(exchange)
        notes = exchange_notes(exchange)
    took = notes.latency_ms if outcome.latency_ms is None else outcome.latency_ms
    parts = [name, exchange.role, model]
    if took is not None:
        parts.append(f"{shown(round(took, 1))} ms")
    if (attempts := max(notes.attempts, outcome.attempts)) > 1:
        parts.append(f"{attempts} attempts")
    if isinstance(outcome, Failure):
        parts.append("no reply")
        text = f"{outcome.kind}: {outcome.message}"
    else:
        parts += ["cached"] if outcome.cached else []
        text = outcome.text
    _print_text("  ".join(parts), text)
