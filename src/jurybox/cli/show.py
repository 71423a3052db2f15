"""``jurybox show``."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import click

from jurybox.app.view_run import run_cost, view_as_data, view_run
from jurybox.cli.evaluate import print_outcome, print_report, print_trace
from jurybox.cli.options import option, stored_run
from jurybox.cli.output import plain, print_line, print_result, print_table, yes_or_no
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
from jurybox.storage.store import Store
from jurybox.text_format import cut
from jurybox.wiring import read_prices

_LONGEST_REASONING: Final = 300


@click.command("show")
@option("--sample ID", "Show one sample instead of the run.", name="sample_id")
@option(
    "--repeat K",
    "Which repeat of the sample, counted from 0; defaults to the first one.",
    type=click.IntRange(0),
)
@option("--failed", "List the failed samples with reasons, instead of the run.")
@stored_run
def command(
    store: Store, run: RunRow, sample_id: str | None, repeat: int | None, failed: bool
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
    if sample_id is not None:
        record = find_record(store, run, sample_id, repeat)
        data = partial(record_as_data, record, run, store)
        print_result(data, lambda: _show_sample(record, run, store))
    elif failed:
        print_result(partial(_failed_as_data, store, run), partial(_show_failed, store, run))
    else:
        view = view_run(run, store)
        print_result(partial(view_as_data, view, store), lambda: print_view(view, store))


def _failed(store: Store, run: RunRow) -> Iterator[tuple[SampleRecord, str, str]]:
    """Yield the failed samples, each with its reasons and the judges' reasoning."""
    with reading(run):
        for record in map(SampleRecord, store.samples(run.id)):
            if (why := why_failed(record.result)) is not None:
                yield record, why, cut(reasoning(record), _LONGEST_REASONING)


def _failed_as_data(store: Store, run: RunRow) -> dict[str, Any]:
    failed = [
        {"id": record.id, "repeat": record.repeat, "why": why, "reasoning": because}
        for record, why, because in _failed(store, run)
    ]
    return {"run_id": run.id, "failed": failed}


def _show_failed(store: Store, run: RunRow) -> None:
    last = "no sample failed"
    for record, why, because in _failed(store, run):
        repeat = f" (repeat {record.repeat})" if record.repeat else ""
        print_line(plain(f"{record.id}{repeat}  ", "bold"), plain(why, "red"))
        if record.result.target_error is None:
            print_line(f"  {because}", style="dim")
        last = f"everything about a sample: jurybox show {run.id} --sample ID"
    click.echo(last)


def _show_sample(record: SampleRecord, run: RunRow, store: Store) -> None:
    """Print everything stored about a sample."""
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
        judges = [use for use in result.uses if use.role == "judge"]
        print_report(record.report, run_cost(judges, read_prices())["dollars"])
    reviews = read_reviews(run, store.reviews_of(run.id, row.number)).every
    decision = sample_decision(rubric, result, reviews)
    meanings = {each.decide: each.meaning for each in rubric.sample_decisions}
    print_outcome(result.rules, decision, meanings.get(decision or "", ""))
    if record.automated is not None:
        print_trace(record.automated)
    for number, exchange in enumerate(record.exchanges, start=1):
        _print_exchange(f"exchange {number}", exchange, run)
    print_line(f"record  {row.record_sha256}", style="dim")


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
