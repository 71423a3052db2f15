"""What a rubric's rules made of a response, on the terminal, and a judge's word beside it."""

from rich.table import Table

from jurybox.cli.output import plain, wide_console
from jurybox.cli.report_view import usage_line, warnings
from jurybox.documents.numbers import show_number
from jurybox.reporting.figures import shown, signed
from jurybox.rubric.model import Rubric
from jurybox.scoring.automated import AutomatedReport
from jurybox.scoring.by_rules import RulesReport, quoted

_NO_REASON = "(no reasoning)"


def print_rules_report(
    report: RulesReport, rubric: Rubric, dollars: float | None, *, explain: bool
) -> None:
    """Print a report whose scores are the rules'; what the judge says comes apart."""
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
    table = _table("criterion", "score", "band", "what it is made of")
    for told, scored in zip(report.criteria, report.automated.criteria, strict=True):
        cells = (told.id, shown(scored.score), scored.band or "", told.reasoning)
        table.add_row(*(plain(cell) for cell in cells))
    return table


def explained(automated: AutomatedReport) -> Table:
    """Return every score with its base and each rule that fired, on which words, for how much."""
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
    overall = automated.overall
    band = None if overall is None else rubric.band(overall)
    level = ""
    if band is not None:
        level = f"  {band.label}" + (f": {band.meaning}" if band.meaning else "")
    return f"{rubric.overall_name}  {shown(overall)}{level}"


def _print_judge(report: RulesReport, dollars: float | None) -> None:
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
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        right = heading == "amount"
        table.add_column(heading, overflow="fold", justify="right" if right else "left")
    return table
