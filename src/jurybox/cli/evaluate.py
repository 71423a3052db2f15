"""``jurybox evaluate``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jurybox.cli.exits import FAILED, FINE, INCOMPLETE
from jurybox.cli.options import base_url_option
from jurybox.cli.output import json_option, plain, print_json, say, wide_console
from jurybox.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from jurybox.rubric.model import Rubric
    from jurybox.scoring.by_rules import RulesReport
    from jurybox.scoring.rules import AutomatedReport


_STDIN = "jurybox.stdin"


class TextValue(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] - newer than 8.2
    """A text, given in place, as ``@FILE`` or as ``-``."""

    name = "text"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text itself."""
        text = str(value)
        where = "" if param is None else param.opts[0]
        if text == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed", "pipe the text in", where)
            if ctx is not None and ctx.meta.setdefault(_STDIN, where) != where:
                problem = f"{ctx.meta[_STDIN]} has read standard input already"
                raise InputError(problem, "give one of the texts in a file", where)
            return _decoded(sys.stdin.buffer.read(), f"{where} -")
        if text.startswith("@"):
            return _decoded(_read(Path(text[1:]), where), f"{where} {text}")
        # Bytes of an argument that are no UTF-8 come in as halves of characters.
        return _decoded(text.encode("utf-8", "surrogateescape"), where)


def _read(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        problem, hint = f"{path} can't be read ({reason})", "check the path behind the @"
        raise InputError(problem, hint, where) from None


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise InputError(problem, "save the text as UTF-8", where) from None


TEXT = TextValue()


@click.command("evaluate")
@click.option("--rubric", required=True, metavar="RUBRIC", help="A rubric's name or path.")
@click.option("--task", required=True, type=TEXT, help="What was asked.")
@click.option("--response", required=True, type=TEXT, help="The response to judge.")
@click.option("--response-b", type=TEXT, help="A second response, to compare the two.")
@click.option("--reference", type=TEXT, help="The right answer; responses are scored against it.")
@click.option("--context", type=TEXT, help="What the system under test was given.")
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="A model that judges, such as openai/gpt-4.1-2025-04-14; give it more than once for a"
    " mixed jury.",
)
@click.option(
    "--votes", type=click.IntRange(1, 99), help="How many votes; else as the rubric says."
)
@base_url_option
@click.option(
    "--explain",
    is_flag=True,
    help="Show what the rubric's rules made of the response: each that fired, on which words, for"
    " how much.",
)
@json_option
def command(  # noqa: PLR0917 - click passes them by name
    rubric: str,
    task: str,
    response: str,
    response_b: str | None,
    reference: str | None,
    context: str | None,
    judges: tuple[str, ...],
    votes: int | None,
    base_url: str | None,
    explain: bool,
    as_json: bool,
) -> int:
    """Judge one response by a rubric, or compare two, and print the report.

    With a reference answer every response is scored against it. Without one, a single response is
    scored by the rubric and two are compared, each vote in both orders. A rubric whose every
    criterion has rules needs no judge; the score of one that is named stands beside the rules'. A
    text that begins with @ is read from that file, - from standard input. The exit code is 1 when a
    pass rule of the rubric fails, and 3 when no judge gave a valid vote.

    \b
    Examples:
      jurybox evaluate --rubric general --task "What is 2 + 2?" --response "4" \\
          --judge openai/gpt-4.1-2025-04-14
      jurybox evaluate --rubric code-review --task @issue.md --response @change.diff \\
          --judge openai/gpt-4.1-2025-04-14 --judge anthropic/claude-sonnet-4-20250514
      jurybox evaluate --rubric general --task @task.txt --response @a.txt --response-b @b.txt \\
          --judge python/my_judges:strict --json
      jurybox evaluate --rubric companion --task "I'm sad." --response @reply.txt --explain
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.evaluate_once import evaluate
    from jurybox.app.view_run import Spending
    from jurybox.scoring.by_rules import RulesReport
    from jurybox.scoring.sample_result import check_rules, decide, sample_figures, verdict_as_data
    from jurybox.wiring import DEFAULT_JUDGE_NOTICE, load_with_warnings, read_settings

    loaded, warnings = load_with_warnings(rubric)
    # They are about judges.
    for warning in warnings if judges else ():
        say(f"warning: {warning}")
    spending = Spending(read_settings())
    report = evaluate(
        rubric=loaded,
        task=task,
        response=response,
        response_b=response_b,
        reference=reference,
        context=context,
        judges=judges,
        votes=votes,
        base_url=base_url,
        on_exchange=spending,
        on_default_judge=lambda name: say(DEFAULT_JUDGE_NOTICE.format(name=name)),
    )
    ruled = isinstance(report, RulesReport)
    if explain and not ruled:
        hint = "leave --explain out, or use a rubric with rules such as `companion`"
        raise InputError("its rules don't score this, so there is nothing to explain", hint, rubric)
    figures = sample_figures(loaded, report)
    # Rules and decisions are about one response; a comparison only has a winner.
    # Without a vote there is nothing to decide on.
    one = response_b is None and (ruled or report.votes_valid > 0)
    rules = check_rules(loaded.pass_rules, figures) if one else ()
    decision = decide(loaded.sample_decisions, figures) if one else None
    if as_json:
        print_json({**report.as_data(), **verdict_as_data(rules, decision)})
    elif isinstance(report, RulesReport):
        from jurybox.cli.report_view import print_verdict

        print_rules_report(report, loaded, spending.dollars, explain=explain)
        print_verdict(rules, decision)
    else:
        from jurybox.cli.report_view import print_report

        print_report(report, rules, decision, spending.dollars)
    asked = report.judge if isinstance(report, RulesReport) else report
    if asked is not None and asked.votes_valid == 0:
        return INCOMPLETE
    return FAILED if any(rule.passed is False for rule in rules) else FINE


_NO_REASON = "(no reasoning)"


def print_rules_report(
    report: RulesReport, rubric: Rubric, dollars: float | None, *, explain: bool
) -> None:
    """Print a report whose scores are the rules'; what the judge says comes apart."""
    from jurybox.cli.report_view import warnings

    out = wide_console()
    head = plain(f"{report.rubric.id} {report.rubric.version}", style="bold")
    out.print(head.append_text(plain("  by the rubric's rules")))
    for piece in warnings(report):
        out.print(piece)
    automated = report.automated
    out.print(explained(automated) if explain else _scores(report))
    out.print(plain(_overall(automated, rubric), style="bold"))
    if report.judge is not None:
        _print_judge(report, dollars)


def _scores(report: RulesReport) -> Table:
    from jurybox.reporting.metric_text import shown

    table = _table("criterion", "score", "band", "what it is made of")
    for told, scored in zip(report.criteria, report.automated.criteria, strict=True):
        cells = (told.id, shown(scored.score), scored.band or "", told.reasoning)
        table.add_row(*(plain(cell) for cell in cells))
    return table


def explained(automated: AutomatedReport) -> Table:
    """Return every score with its base and each rule that fired, on which words, for how much."""
    from jurybox.reporting.metric_text import shown, signed
    from jurybox.scoring.by_rules import quoted

    table = _table("criterion", "score", "amount", "why", "when", "on the words")
    for criterion in automated.criteria:
        band = f" {criterion.band}" if criterion.band else ""
        first = (criterion.id, f"{shown(criterion.score)}{band}", shown(criterion.base), "base")
        table.add_row(*(plain(cell) for cell in first))
        for fired in criterion.trace:
            when = fired.rule.partition(" when ")[2]
            cells = ("", "", signed(fired.amount), fired.why, when, quoted(fired))
            table.add_row(*(plain(cell) for cell in cells))
        total = criterion.base + sum(fired.amount for fired in criterion.trace)
        apart = round(criterion.score - total, 6)
        if apart:
            cells = ("", "", signed(apart), "kept within the scale")
            table.add_row(*(plain(cell) for cell in cells))
    return table


def _overall(automated: AutomatedReport, rubric: Rubric) -> str:
    from jurybox.reporting.metric_text import shown

    overall = automated.overall
    band = None if overall is None else rubric.band(overall)
    level = ""
    if band is not None:
        level = f"  {band.label}" + (f": {band.meaning}" if band.meaning else "")
    return f"{rubric.overall_name}  {shown(overall)}{level}"


def _print_judge(report: RulesReport, dollars: float | None) -> None:
    from jurybox.cli.report_view import usage_line
    from jurybox.documents.numbers import show_number

    judge = report.judge
    if judge is None:
        return
    out = wide_console()
    out.print()
    out.print(plain(f"beside the rules, judged by {', '.join(judge.judges)}", style="bold"))
    score = report.judge_score
    word = "no valid vote" if score is None else show_number(score)
    fallback = ", the fallback" if judge.judge_fallback else ""
    votes = f"{judge.votes_valid} of {judge.votes_requested} votes"
    out.print(plain(f"judge score  {word}{fallback} ({votes}, confidence {judge.confidence})"))
    for lost in judge.lost_votes:
        out.print(plain(f"vote {lost.vote + 1} ({lost.judge}) is lost: {lost.reason}", "yellow"))
    for criterion in judge.criteria:
        named = f"{criterion.id}: " if len(judge.criteria) > 1 else ""
        out.print(plain(f"reasoning  {named}{criterion.reasoning or _NO_REASON}"))
    out.print(usage_line(judge.usage, dollars))


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        right = heading == "amount"
        table.add_column(heading, overflow="fold", justify="right" if right else "left")
    return table
