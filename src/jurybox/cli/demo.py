"""``jurybox demo``: replies scored by rules, answers by a judge, and a pair in both orders."""

import contextlib
import sys
from importlib import resources
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from jurybox.app.evaluate_once import evaluate
from jurybox.app.prepare import prepare
from jurybox.app.run_suite import RunResult, start_run
from jurybox.app.suite_choice import RunOptions
from jurybox.cli.evaluate import print_report
from jurybox.cli.options import json_option, name_store, opened, option, resume_line
from jurybox.cli.output import (
    print_heading,
    print_json,
    print_line,
    print_table,
    say,
    wants_json,
    write_new_files,
    yes_or_no,
)
from jurybox.cli.run import watched
from jurybox.cli.run_view import print_verdict, print_why
from jurybox.cli.signals import FINE, INCOMPLETE
from jurybox.documents.numbers import shown
from jurybox.models.local.files import find_model, is_path
from jurybox.reporting.output_file import whole_file
from jurybox.reporting.reports import write_report
from jurybox.reporting.run_verdict import verdict_of
from jurybox.reporting.stored import SampleRecord
from jurybox.scoring.by_rules import RulesReport, SingleReport
from jurybox.wiring import embedded_judge, pull_hint

_FOLDER: Final = ".jurybox/demo"
_NO_MODEL: Final = "none"
_JUDGED_BY_MODEL: Final = 3  # a model on two cores takes about 20 seconds per answer
_BY_WORDS: Final = "python/judge:strict"
_SUITE: Final = "suite.yaml"
_DATA: Final = "jurybox.cli.demo_data"
# The judge is the one that `jurybox init` writes; it reads the prompt of the same rubric.
_FILES: Final = {_SUITE: _DATA, "answers.jsonl": _DATA, "judge.py": "jurybox.cli.starter"}
_ORDERS: Final = """
The better answer is B. Each vote is two calls, one for each order; if they favor different
sides, the pair is unstable and is queued for human review."""


@click.command("demo")
@click.argument("folder", default=_FOLDER, metavar="[FOLDER]")
@option(
    "--model NAME",
    "The embedded model that judges, or `none` to skip the part that needs a model; by default"
    " the default judge, if it is on this machine.",
)
@json_option
def command(folder: str, model: str | None) -> int:
    """Show what jurybox does, without a key: scores by rules, a judged suite, a judge's bias.

    First the part that needs no model: replies scored by a rubric's rules, and six answers judged
    by their words. Then, if the embedded model is on this machine, it judges three of the answers
    and compares a pair in both orders, which shows its position bias. The suite, the store of the
    runs and report.html are left in FOLDER (default: .jurybox/demo). Some answers are deliberately
    wrong, so failed gates are expected: the exit code is 0, or 3 if the demo was stopped.

    \b
    Examples:
      jurybox demo
      jurybox demo try-it --model none
      jurybox demo try-it --model smollm2-135m
    """  # noqa: D301 - click reads \b as "keep these lines"
    judge = None if model == _NO_MODEL else _judge(model)
    place = Path(folder)
    texts = {name: resources.files(where) / name for name, where in _FILES.items()}
    write_new_files(place, {name: each.read_text("utf-8") for name, each in texts.items()})
    with contextlib.redirect_stdout(sys.stderr if wants_json() else sys.stdout):
        scored = _rule_scores()
        runs = [_run(place, _BY_WORDS)]
        pair: SingleReport | None = None
        if judge is not None and runs[0].stopped is None:
            runs.append(_run(place, judge))
            pair = _compared(judge) if runs[1].stopped is None else None
        missing = _missing_model() if judge is None else None
        report = place / "report.html"
        if missing is not None:
            say(missing)
        where = "this folder" if place == Path() else folder
        click.echo(f"\nOpen {report} in a browser. Everything is in {where}: change it,")
        click.echo(f"and run it again there with `jurybox run {_SUITE}`.")
    if wants_json():
        print_json(
            {
                "folder": folder,
                "report": str(report),
                "rules": [each.as_data() for each in scored],
                "runs": [{**each.view.as_data(), "stopped": each.stopped} for each in runs],
                "pair": None if pair is None else pair.as_data(),
                "missing": missing,
            }
        )
    return FINE if all(run.stopped is None for run in runs) else INCOMPLETE


def _read(name: str) -> dict[str, Any]:
    """Read a file that comes with the demo."""
    return msgspec.json.decode((resources.files(_DATA) / name).read_bytes())


def _rule_scores() -> list[SingleReport]:
    """Score replies by the rules of a rubric."""
    read = _read("replies.json")
    replies = read.pop("replies")
    print_heading(f"Rules: the document `{read['rubric']}` scores a reply without a model.")
    click.echo(f'To "{read["task"]}"')
    scored = [evaluate(**read, response=reply) for reply in replies]
    for reply, report in zip(replies, scored, strict=True):
        band = report.automated.band if isinstance(report, RulesReport) else None
        click.echo(f'  {report.overall or 0:.2f}  {band or "":<12}  "{reply}"')
    return scored


def _run(place: Path, judge: str) -> RunResult:
    """Judge the answers in a stored run, and write the report on it."""
    limit, title = None, "Words: six answers, named for what they are, judged by their words."
    meaning = "Comparing words misses the meaning: `wrong` passes, and `other-words` doesn't."
    if judge != _BY_WORDS:
        limit, title = _JUDGED_BY_MODEL, f"A real model on this machine, {judge}, judges three."
        meaning = "A small model makes mistakes: compare its scores with the names of the answers."
    print_heading(title)
    prepared = prepare(place / _SUITE, RunOptions(judges=(judge,), limit=limit))
    criteria = [each.id for each in prepared.plan.procedure().judging.rubric.criteria]
    name_store(click.get_current_context(), None, str(place / ".jurybox/jurybox.db"))
    with opened(create=True) as store:
        ended = start_run(prepared, store, watched)
        records = [*map(SampleRecord, store.samples(ended.view.run_id))]
        with whole_file(place / "report.html") as file:
            write_report(file, "html", ended.view, store)
    if ended.stopped is not None:
        say(f"stopped: {ended.stopped}")
        say(resume_line(ended.view.run_id))
    rows = (
        (each.id, *(shown(each.scores.get(name)) for name in criteria), yes_or_no(each.passed))
        for each in records
    )
    print_table(("answer", *criteria, "passes"), rows)
    print_line()
    print_verdict(ended.view, verdict_of(ended.view))
    print_why(ended.view)
    click.echo(f"\n{meaning}")
    return ended


def _compared(judge: str) -> SingleReport:
    """Compare a pair of answers in both orders."""
    print_heading("The model's bias: two answers, in both orders; which one does it prefer?")
    report = evaluate(**_read("pair.json"), judges=judge, votes=1)
    print_report(report, 0.0)  # the model runs on this machine
    click.echo(_ORDERS)
    return report


def _judge(name: str | None) -> str | None:
    """Return the judge's name: the given one, or the embedded judge if it is installed."""
    if name is None:
        return embedded_judge()
    bare = name.removeprefix("local/")
    return f"local/{bare if is_path(bare) else find_model(bare).name}"


def _missing_model() -> str:
    """Return how to get the part that needs a model, as one line."""
    if embedded_judge() is not None:
        return "the embedded judge was left out; `jurybox demo` without --model shows it"
    why = "the rest needs the embedded judge, which isn't on this machine"
    return f"{why}: run {pull_hint()}, then `jurybox demo` again"
