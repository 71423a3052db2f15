"""One sample of a run: all that is stored of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.table import Table

from jurybox.cli.output import plain, wide_console
from jurybox.cli.report_view import print_report
from jurybox.errors import InputError
from jurybox.judging.exchange import Failure
from jurybox.judging.report import EvaluationReport
from jurybox.models.prices import load_prices
from jurybox.reporting.figures import shown, signed
from jurybox.reporting.record import Shape
from jurybox.reporting.stored import damaged, procedure_of, rubric_of
from jurybox.running.deriving import StoredResponses
from jurybox.running.finding import SampleQuery
from jurybox.running.records import ExchangeRow, RunRow, SampleRow, in_order
from jurybox.running.storing import Store
from jurybox.running.transcript import read_outcome, read_request
from jurybox.sample import Response, Row
from jurybox.scoring.automated import AutomatedReport
from jurybox.scoring.result import SampleResult
from jurybox.wiring import read_settings
from jurybox.wiring.spending import run_cost
from jurybox.wording import nearest

if TYPE_CHECKING:
    from rich.console import Console

# Nobody means the last of a hundred thousand names, and comparing takes time.
_MOST_NAMES: Final = 1000


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as it is stored, taken apart."""

    row: SampleRow
    inputs: Row
    responses: StoredResponses
    report: EvaluationReport | None
    automated: AutomatedReport | None
    result: SampleResult
    exchanges: tuple[ExchangeRow, ...]


def find_record(store: Store, run: RunRow, sample_id: str, repeat: int | None) -> Record:
    """Return a sample of a run, in the first repeat that it is stored of unless one is named.

    Raises:
        InputError: there is no such sample.
        IncompleteError: what is stored can't be read.

    """
    sample = store.find_sample(run.id, sample_id, repeat)
    if sample is not None:
        return _read(run, sample, store.exchanges_of(run.id, sample.number))
    if store.find_sample(run.id, sample_id) is not None:
        repeats = (each.repeat for each in store.facets(run.id) if each.sample_id == sample_id)
        there = ", ".join(map(str, repeats))
        raise InputError(f"there is no repeat {repeat} of it", f"there are {there}", sample_id)
    first = store.find_samples(run.id, SampleQuery(limit=_MOST_NAMES))
    names = (facets.sample_id for facets in first.rows)
    otherwise = "`jurybox export` lists them"
    raise InputError("the run has no such sample", nearest(sample_id, names, otherwise), sample_id)


def _read(run: RunRow, row: SampleRow, exchanges: Sequence[ExchangeRow]) -> Record:
    try:
        return Record(
            row=row,
            inputs=msgspec.json.decode(row.inputs, type=Row),
            responses=msgspec.json.decode(row.responses, type=StoredResponses),
            report=msgspec.json.decode(row.report or "null", type=EvaluationReport | None),
            automated=msgspec.json.decode(row.automated or "null", type=AutomatedReport | None),
            result=msgspec.json.decode(row.result, type=SampleResult),
            exchanges=tuple(in_order(row, exchanges)),
        )
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None


def record_as_data(record: Record, run: RunRow) -> dict[str, Any]:
    """Return a record as `jurybox export --raw` writes it, and whose it is."""
    procedure = procedure_of(run)
    shape = Shape(procedure.judging.rubric, rules=procedure.rules is not None, raw=True)
    return {"run_id": run.id, **shape.record(record.row, record.exchanges)}


def print_record(record: Record, run: RunRow) -> None:
    """Print a sample: what was asked and answered, what it was given, and why."""
    out = wide_console()
    repeat = f", repeat {record.row.repeat}" if record.row.repeat else ""
    out.print(plain(f"sample {record.row.sample_id}{repeat}  of run {run.id}", style="bold"))
    _print_troubles(out, record)
    _print_inputs(out, record)
    _print_response(out, "response", record.responses.response)
    if record.responses.response_b is not None:
        _print_response(out, "response B", record.responses.response_b)
    out.print(_measures(record.result))
    if record.report is not None:
        _print_report(record, run)
    else:
        for rule in record.result.rules:
            word = {True: "holds", False: "fails", None: "not measured"}[rule.passed]
            out.print(plain(f"{rule.rule}  {word}"))
    if record.automated is not None:
        out.print(_trace(record.automated))
    for number, exchange in enumerate(record.exchanges, start=1):
        _print_exchange(out, f"exchange {number}", exchange, run)
    out.print(plain(f"record  {record.row.record_sha256}", style="dim"))


def _print_troubles(out: "Console", record: Record) -> None:
    result = record.result
    if result.target_error is not None:
        out.print(plain(f"no response: {result.target_error}", style="bold red"))
    if result.evaluator_error is not None:
        out.print(plain(f"no score: {result.evaluator_error}", style="bold red"))


def _print_inputs(out: "Console", record: Record) -> None:
    row = record.inputs
    for turn in row.messages:
        _print_text(out, f"earlier, {turn.role}", turn.content)
    _print_text(out, "task", row.task)
    for name, text in (("context", row.context), ("reference", row.reference)):
        if text is not None:
            _print_text(out, name, text)
    if row.scenario is not None:
        out.print(plain(f"scenario  {row.scenario}"))


def _print_text(out: "Console", title: str, text: str) -> None:
    out.print(plain(title, style="bold"))
    # Word for word: where a line ends is for the terminal to say.
    out.print(plain(text), soft_wrap=True)


def _print_response(out: "Console", title: str, response: Response) -> None:
    _print_text(out, title, response.text or "(nothing)")
    if response.error is not None:
        out.print(plain(response.error, style="red"))
    if response.timing.cached:
        out.print(
            plain("from the cache: its times were measured in an earlier run", style="yellow")
        )


def _measures(result: SampleResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in {**result.figures, **result.components}.items():
        if value is not None:
            table.add_row(plain(name), plain(shown(value)))
    if result.judge_score is not None:
        table.add_row(plain("judge_score"), plain(shown(result.judge_score)))
    passed = {True: "yes", False: "no", None: "not decided"}[result.passed]
    table.add_row(plain("passed"), plain(passed))
    return table


def _print_report(record: Record, run: RunRow) -> None:
    report, result = record.report, record.result
    if report is None:
        return
    decisions = {each.decide: each for each in rubric_of(run).sample_decisions}
    judges = [use for use in result.uses if use.role == "judge"]
    cost = run_cost(judges, load_prices(read_settings().prices))
    print_report(report, result.rules, decisions.get(result.decision or ""), cost["dollars"])


def _trace(automated: AutomatedReport) -> Table:
    """Return what the rubric's rules made of the response, rule by rule."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("criterion", "score", "amount", "rule", "why"):
        table.add_column(heading, overflow="fold")
    for criterion in automated.criteria:
        band = f" ({criterion.band})" if criterion.band else ""
        first = (criterion.id, f"{shown(criterion.score)}{band}", shown(criterion.base), "base", "")
        table.add_row(*(plain(cell) for cell in first))
        for fired in criterion.trace:
            quotes = ", ".join(f"\u201c{quote.words}\u201d" for quote in fired.quotes)
            why = f"{fired.why}: {quotes}" if quotes else fired.why
            cells = ("", "", signed(fired.amount), fired.rule, why)
            table.add_row(*(plain(cell) for cell in cells))
    return table


def _print_exchange(out: "Console", name: str, exchange: ExchangeRow, run: RunRow) -> None:
    try:
        model, outcome = read_request(exchange).model, read_outcome(exchange)
        notes = msgspec.json.decode(exchange.notes, type=_Notes)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    took = notes.latency_ms if outcome.latency_ms is None else outcome.latency_ms
    parts = [name, exchange.role, model]
    if took is not None:
        parts.append(f"{shown(round(took, 1))} ms")
    if isinstance(outcome, Failure):
        parts.append("no reply")
        text = f"{outcome.kind}: {outcome.message}"
    else:
        parts += ["cached"] if outcome.cached else []
        text = outcome.text
    _print_text(out, "  ".join(parts), text)


class _Notes(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored beside an exchange."""

    latency_ms: float | None = None
