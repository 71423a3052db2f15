"""``jurybox show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
import msgspec

from jurybox.cli.options import json_option, opened_run, run_argument, store_option
from jurybox.cli.output import add_row, plain, print_json, table, wide_console
from jurybox.documents.numbers import shown
from jurybox.text_format import cut
from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from jurybox.engine.records import ExchangeRow, RunRow
    from jurybox.reporting.stored import SampleRecord
    from jurybox.sample import Response
    from jurybox.scoring.sample_result import SampleResult
    from jurybox.storage.store import Store

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
    "--failed", is_flag=True, help="List the samples that failed, with why, instead of the run."
)
@store_option
@json_option
def command(
    run: str,
    sample_id: str | None,
    repeat: int | None,
    failed: bool,
    store_url: str | None,
    as_json: bool,
) -> None:
    """Show a RUN: the verdict, why, and which samples to look at.

    RUN is a run's id, its name, a tag, or `last`. If people have reviewed samples, it shows
    how far the judges agree with them so far. With --sample it shows everything stored of one
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
    with opened_run(run, store_url) as (store, row):
        if sample_id is not None:
            from jurybox.reporting.export_rows import record_as_data
            from jurybox.reporting.stored import find_record

            record = find_record(store, row, sample_id, repeat)
            if as_json:
                print_json(record_as_data(record, row, store))
            else:
                from jurybox.reporting.release import read_reviews, sample_decision
                from jurybox.reporting.stored import rubric_of

                reviews = read_reviews(row, store.reviews_of(row.id, record.row.number)).every
                decision = sample_decision(rubric_of(row), record.result, reviews)
                _print_record(record, row, decision)
            return
        if failed:
            _print_failed(store, row, as_json=as_json)
            return
        from jurybox.app.view_run import view_as_data, view_run
        from jurybox.cli.run_view import print_view

        view = view_run(row, store)
        if as_json:
            print_json(view_as_data(view, store))
        else:
            print_view(view, store)


def _print_failed(store: Store, row: RunRow, *, as_json: bool) -> None:
    """Print the samples that didn't pass, each with why and with the judges' reasoning."""
    from jurybox.reporting.reasons import reasoning, why_failed
    from jurybox.reporting.stored import SampleRecord, reading

    out = wide_console()
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
                out.print(plain(f"{record.id}{repeat}  ", "bold").append_text(plain(why, "red")))
                out.print(plain(f"  {because}", "dim"))
    if as_json:
        print_json({"run_id": row.id, "failed": found})
    elif not found:
        click.echo("no sample failed")
    else:
        click.echo(f"all of a sample: jurybox show {row.id} --sample ID")


def _print_record(record: SampleRecord, run: RunRow, decision: str | None) -> None:
    from jurybox.cli.evaluate import print_trace, rule_line

    out = wide_console()
    repeat = f", repeat {record.row.repeat}" if record.row.repeat else ""
    out.print(plain(f"sample {record.row.sample_id}{repeat}  of run {run.id}", style="bold"))
    if record.result.target_error is not None:
        out.print(plain(f"no response: {record.result.target_error}", style="bold red"))
    if record.result.evaluator_error is not None:
        out.print(plain(f"no score: {record.result.evaluator_error}", style="bold red"))
    _print_inputs(out, record, run)
    _print_response(out, "response", record.responses.response)
    if record.responses.response_b is not None:
        _print_response(out, "response B", record.responses.response_b)
    out.print(_measures(record.result))
    if record.report is not None:
        _print_report(record, run, decision)
    else:
        for rule in record.result.rules:
            out.print(rule_line(rule))
    if record.automated is not None:
        print_trace(out, record.automated)
    for number, exchange in enumerate(record.exchanges, start=1):
        _print_exchange(out, f"exchange {number}", exchange, run)
    out.print(plain(f"record  {record.row.record_sha256}", style="dim"))


def _print_inputs(out: Console, record: SampleRecord, run: RunRow) -> None:
    from jurybox.reporting.stored import rubric_of
    from jurybox.rubric.scenarios import scenario_texts

    row = record.inputs
    for turn in row.messages:
        _print_text(out, f"earlier, {turn.role}", turn.content)
    _print_text(out, "task", row.task)
    for name, text in (("context", row.context), ("reference", row.reference)):
        if text is not None:
            _print_text(out, name, text)
    if row.scenario is not None:
        out.print(plain(f"scenario  {row.scenario}"))
        if (text := scenario_texts(rubric_of(run)).get(row.scenario)) is not None:
            out.print(plain(text), soft_wrap=True)
    if record.result.overlay is not None:
        out.print(plain(f"overlay  {record.result.overlay}"))


def _print_text(out: Console, title: str, text: str) -> None:
    out.print(plain(title, style="bold"))
    # The terminal wraps the lines, so that a copied text has no added line ends.
    out.print(plain(text), soft_wrap=True)


def _print_response(out: Console, title: str, response: Response) -> None:
    _print_text(out, title, response.text or "(nothing)")
    if response.error is not None:
        out.print(plain(response.error, style="red"))
    if response.timing.cached:
        out.print(
            plain("from the cache: its times were measured in an earlier run", style="yellow")
        )


def _measures(result: SampleResult) -> Table:
    made = table("score", "value", right=("value",))
    scores = {**result.metrics, **result.components, "judge_score": result.judge_score}
    for name, value in scores.items():
        if value is not None:
            add_row(made, name, shown(value))
    add_row(made, "passed", {True: "yes", False: "no", None: "not decided"}[result.passed])
    return made


def _print_report(record: SampleRecord, run: RunRow, decision: str | None) -> None:
    from jurybox.app.view_run import run_cost
    from jurybox.cli.evaluate import print_report
    from jurybox.models.providers import load_prices
    from jurybox.reporting.stored import rubric_of

    report, result = record.report, record.result
    if report is None:
        return
    meanings = {each.decide: each.meaning for each in rubric_of(run).sample_decisions}
    judges = [use for use in result.uses if use.role == "judge"]
    cost = run_cost(judges, load_prices(read_settings().prices))
    meaning = meanings.get(decision or "", "")
    print_report(report, result.rules, (decision, meaning), cost["dollars"])


def _print_exchange(out: Console, name: str, exchange: ExchangeRow, run: RunRow) -> None:
    from jurybox.engine.records import read_outcome, read_request
    from jurybox.judging.flow import Failure
    from jurybox.reporting.stored import damaged, exchange_notes

    try:
        model, outcome = read_request(exchange).model, read_outcome(exchange)
        notes = exchange_notes(exchange)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
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
    _print_text(out, "  ".join(parts), text)
