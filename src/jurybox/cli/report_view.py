"""A report on the terminal: what needs a person first, then the scores, then the rest."""

from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from jurybox.cli.output import console, plain
from jurybox.documents.numbers import show_number
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.judging.safety import SafetyFinding
from jurybox.rubric.model import Decision
from jurybox.sample import Usage
from jurybox.scoring.sample_result import RuleOutcome

_REASONS = {
    "safety": "a judge sees a danger",
    "unscored": "no judge gave a valid vote",
    "unstable": "the winner changed with the order of the responses",
    "low_confidence": "the votes have no majority",
}
_COLOURS = {"high": "green", "moderate": "yellow", "low": "red"}


def print_report(
    report: EvaluationReport,
    rules: Sequence[RuleOutcome],
    decision: Decision | None,
    dollars: float | None,
) -> None:
    """Print one report."""
    out = console()
    _print_head(out, report)
    for piece in warnings(report):
        out.print(piece)
    _print_scores(out, report)
    _print_whole(out, report, rules, decision)
    if report.bias_checklist:
        out.print(_checklist(report))
    out.print(usage_line(report.usage, dollars))


def _print_head(out: Console, report: EvaluationReport) -> None:
    rubric = report.rubric
    head = plain(f"{rubric.id} {rubric.version}", style="bold")
    head.append(f"  by {report.method}, {', '.join(report.judges)}", style="default")
    out.print(head)


def warnings(report: EvaluationReport) -> Iterator[RenderableType]:
    """Yield what needs a person, or explains a figure."""
    for reason in report.review_reasons:
        yield plain(f"needs review: {_REASONS[reason]}", style="bold red")
    yield from _findings("in the judge's words", report.safety_findings, "red")
    yield from _findings("in the response", report.response_findings, "yellow")
    for lost in report.lost_votes:
        yield plain(f"vote {lost.vote + 1} ({lost.judge}) is lost: {lost.reason}", style="yellow")
    if report.judge_fallback:
        yield plain("a reply could not be read: the rubric's fallback score stands in", "yellow")
    if not report.votes_independent:
        yield plain("the votes are not independent: all were asked the same way", style="yellow")


def _findings(
    where: str, findings: Sequence[SafetyFinding], colour: str
) -> Iterator[RenderableType]:
    for finding in findings:
        yield plain(f"{finding.category} {where}: {finding.quote}", style=colour)


def _print_scores(out: Console, report: EvaluationReport) -> None:
    if report.responses is None:
        if report.criteria:
            out.print(_criteria(report.criteria))
        return
    for side, scored in report.responses.items():
        out.print(plain(f"response {side}", style="bold"))
        out.print(_criteria(scored.criteria))
        out.print(_total(scored.total_score, scored.max_score, scored.overall))


def _criteria(criteria: Sequence[CriterionReport]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("criterion", "score", "confidence", "votes", "reasoning"):
        table.add_column(heading, overflow="fold", ratio=1 if heading == "reasoning" else None)
    for each in criteria:
        table.add_row(
            plain(each.id),
            plain(_score(each)),
            plain(each.confidence, style=_COLOURS[each.confidence]),
            plain(" ".join(_vote(vote) for vote in each.votes)),
            plain(each.reasoning),
        )
    return table


def _score(criterion: CriterionReport) -> str:
    if criterion.preference is not None:
        return criterion.preference
    if criterion.score is None:
        return "unscored"
    return f"{show_number(criterion.score)} of {show_number(criterion.scale[1])}"


def _vote(vote: float | str) -> str:
    return vote if isinstance(vote, str) else show_number(vote)


def _total(total: float | None, most: float, overall: float | None) -> Text:
    if total is None or overall is None:
        return plain("total  unscored")
    return plain(f"total  {show_number(total)} of {show_number(most)}, overall {overall:.3f}")


def _print_whole(
    out: Console,
    report: EvaluationReport,
    rules: Sequence[RuleOutcome],
    decision: Decision | None,
) -> None:
    if report.responses is None and report.method != "pairwise":
        out.print(_total(report.total_score, report.max_score, report.overall))
    if report.method == "pairwise" or report.responses is not None:
        stable = {True: ", in both orders", False: ", unstable", None: ""}[report.stable]
        out.print(plain(f"winner  {report.winner or 'none'}{stable}", style="bold"))
    votes = f"{report.votes_valid} of {report.votes_requested} votes"
    if report.votes_skipped:
        votes += f", {report.votes_skipped} not asked for: decided without"
    confidence = plain(report.confidence, style=_COLOURS[report.confidence])
    out.print(plain("confidence  ").append(confidence).append(f", {votes}"))
    print_verdict(rules, decision)


def print_verdict(rules: Sequence[RuleOutcome], decision: Decision | None) -> None:
    """Print the pass rules, each with whether it passes, and what is to be done."""
    out = console()
    for rule in rules:
        word = {True: "passes", False: "fails", None: "not measured"}[rule.passed]
        colour = {True: "green", False: "red", None: "yellow"}[rule.passed]
        out.print(plain(f"{rule.rule}  ").append(word, style=colour))
    if decision is not None:
        meaning = f": {decision.meaning}" if decision.meaning else ""
        out.print(
            plain(f"decision  {decision.decide}", style="bold").append(meaning, style="default")
        )


def usage_line(usage: Usage, dollars: float | None) -> Text:
    """Return the tokens and what they cost."""
    counts = [
        f"{'unknown' if count is None else count} {what}"
        for count, what in ((usage.input_tokens, "input"), (usage.output_tokens, "output"))
    ]
    price = "cost unknown" if dollars is None else f"cost {dollars:.4f} US dollars"
    return plain(f"tokens  {', '.join(counts)}; {price}", style="dim")


def _checklist(report: EvaluationReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("bias checklist")
    table.add_column("what the judges say", overflow="fold")
    for item, text in report.bias_checklist.items():
        table.add_row(plain(item), plain(text))
    return table
