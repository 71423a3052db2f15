"""``jurybox evaluate``, and how one report is printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from jurybox.cli.options import (
    accept_option,
    base_url_option,
    json_option,
    version_drift_option,
)
from jurybox.cli.output import add_row, console, plain, print_json, say, table, wide_console
from jurybox.cli.signals import FAILED, FINE, INCOMPLETE
from jurybox.documents.numbers import dollars as show_dollars
from jurybox.documents.numbers import show_number, shown, signed
from jurybox.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
    from jurybox.rubric.rubric_model import Rubric
    from jurybox.sample import Usage
    from jurybox.scoring.by_rules import RulesReport, SingleReport
    from jurybox.scoring.rules import AutomatedReport, CheckedCriterion
    from jurybox.scoring.sample_result import RuleOutcome

_STDIN: Final = "jurybox.stdin"
_COLORS: Final = {"high": "green", "moderate": "yellow", "low": "red"}
_OUTCOMES: Final = {
    True: ("passes", "green"),
    False: ("fails", "red"),
    None: ("not measured", "yellow"),
}


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
        # Bytes of an argument that aren't UTF-8 come in as surrogates.
        return _decoded(text.encode("utf-8", "surrogateescape"), where)


def _read(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        problem, hint = f"{path} can't be read ({reason})", "check the path after the @"
        raise InputError(problem, hint, where) from None


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise InputError(problem, "save the text as UTF-8", where) from None


TEXT = TextValue()


MATERIAL: Final = (
    click.option("--rubric", required=True, metavar="RUBRIC", help="A rubric's name or path."),
    click.option("--task", required=True, type=TEXT, help="The task."),
    click.option("--response", required=True, type=TEXT, help="The response to judge."),
    click.option("--response-b", type=TEXT, help="A second response, to compare the two."),
    click.option("--reference", type=TEXT, help="The reference answer to score against."),
    click.option("--context", type=TEXT, help="What the system under test was given."),
)
MEASURED: Final = (
    click.option(
        "--latency-e2e-ms",
        type=click.FloatRange(0),
        metavar="MS",
        help="How long the response took, from the request to its last byte.",
    ),
    click.option(
        "--latency-model-ms",
        type=click.FloatRange(0),
        metavar="MS",
        help="How long the model alone took.",
    ),
    click.option(
        "--input-tokens", type=click.IntRange(0), metavar="N", help="Tokens of the request."
    ),
    click.option(
        "--output-tokens", type=click.IntRange(0), metavar="N", help="Tokens of the response."
    ),
)

Command = TypeVar("Command", bound=Callable[..., object])


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these options, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


@click.command("evaluate")
@with_options(*MATERIAL)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="A judge model, such as openai/gpt-4.1-2025-04-14; repeat it for a mixed jury.",
)
@click.option(
    "--votes", type=click.IntRange(1, 99), help="The number of votes; defaults to the rubric's."
)
@with_options(*MEASURED)
@click.option(
    "--timed-out",
    is_flag=True,
    help="The response came too late: it isn't judged, and fails.",
)
@accept_option
@base_url_option
@version_drift_option
@click.option(
    "--explain",
    is_flag=True,
    help="Show each of the rubric's rules that fired, on which words, for how much.",
)
@json_option
def command(
    rubric: str,
    judges: tuple[str, ...],
    votes: int | None,
    accept_unreviewed: bool,
    explain: bool,
    as_json: bool,
    **parts: Any,  # noqa: ANN401 - those of `evaluate`
) -> int:
    """Judge one response by a rubric, or compare two, and print the report.

    With a reference answer every response is scored against it. Without one, a single response is
    scored by the rubric and two are compared, each vote in both orders. A rubric whose every
    criterion has rules needs no judge; a judge's score is then printed next to the rules'. A text
    that begins with @ is read from that file, - from standard input. The exit code is 1 when a
    pass rule of the rubric fails or can't be measured, or a review that the rubric requires is
    missing, and 3 when no judge gave a valid vote.

    \b
    Examples:
      jurybox evaluate --rubric general --task "What is 2 + 2?" --response "4" \\
          --judge openai/gpt-4.1-2025-04-14
      jurybox evaluate --rubric code-review --task @issue.md --response @change.diff \\
          --judge openai/gpt-4.1-2025-04-14 --judge anthropic/claude-sonnet-4-20250514
      jurybox evaluate --rubric general --task @task.txt --response @a.txt --response-b @b.txt \\
          --judge python/my_judges:strict --json
      jurybox evaluate --rubric answer-quality --task @task.txt --response @answer.txt \\
          --latency-e2e-ms 1200 --input-tokens 310 --output-tokens 45
      jurybox evaluate --rubric companion --task "I'm sad." --response @reply.txt --explain
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.evaluate_once import evaluate
    from jurybox.app.view_run import Spending
    from jurybox.judging.protocol import raised_votes
    from jurybox.scoring.by_rules import RulesReport
    from jurybox.wiring import DEFAULT_JUDGE_NOTICE, load_with_warnings, read_settings

    loaded, warnings = load_with_warnings(rubric)
    # The warnings are about judges.
    for warning in warnings if judges else ():
        say(f"warning: {warning}")
    spending = Spending(read_settings())
    report = evaluate(
        rubric=loaded,
        judges=judges,
        votes=votes,
        on_exchange=spending,
        on_default_judge=lambda name: say(DEFAULT_JUDGE_NOTICE.format(name=name)),
        **parts,
    )
    if explain and parts["timed_out"]:
        raise InputError("a response that came too late isn't scored", "leave it out", "--explain")
    if explain and not isinstance(report, RulesReport):
        hint = "leave --explain out, or use a rubric with rules such as `companion`"
        raise InputError("no rule scores this response", hint, rubric)
    code = print_single_report(
        report,
        loaded,
        spending.dollars,
        accept_unreviewed=accept_unreviewed,
        explain=explain,
        as_json=as_json,
    )
    if parts["response_b"] is not None and loaded.pass_rules:
        say("note: the rubric's pass rules are about one response; two are compared without them")
    judged = report.judge if isinstance(report, RulesReport) else report
    asked = loaded.votes if votes is None else votes
    if judged is not None and judged.votes_requested > asked:
        say(f"note: {raised_votes(asked, judged.votes_requested, judged.judges)}")
    return code


def print_single_report(
    report: SingleReport,
    rubric: Rubric,
    dollars: float | None,
    *,
    accept_unreviewed: bool,
    explain: bool = False,
    as_json: bool,
) -> int:
    """Print the report on a single evaluation, and return the exit code."""
    from jurybox.app.evaluate_once import conclude_single
    from jurybox.scoring.by_rules import RulesReport

    ended = conclude_single(report, rubric, accept_unreviewed=accept_unreviewed)
    if as_json:
        print_json(ended.as_data())
    else:
        decided = (ended.decision, ended.meaning)
        if isinstance(report, RulesReport):
            _print_rules_report(report, rubric, dollars, explain=explain)
            _print_verdict(report.result.rules, decided)
        else:
            print_report(report, report.result.rules, decided, dollars)
        _print_outcome(report, ended.awaiting, accepted=accept_unreviewed)
    return {"fine": FINE, "failed": FAILED, "incomplete": INCOMPLETE}[ended.outcome]


def _print_outcome(report: SingleReport, awaiting: Sequence[str], *, accepted: bool) -> None:
    """Print whether the response passes, why not, and which review is missing."""
    out = console()
    missing = [rule for rule in report.result.rules if rule.passed is None]
    if missing:
        names = ", ".join(rule.rule for rule in missing)
        out.print(plain(f"passed  no: not measured: {names}", style="bold red"))
        say("give --latency-e2e-ms, --input-tokens and --output-tokens to measure them")
    elif report.passed is not None:
        word, style = ("yes", "green") if report.passed else ("no", "bold red")
        out.print(plain(f"passed  {word}", style=style))
    if awaiting:
        what = "accepted without review" if accepted else "awaiting review"
        out.print(plain(f"{what}: {', '.join(awaiting)}", style="bold red"))


def print_report(
    report: EvaluationReport,
    rules: Sequence[RuleOutcome],
    decision: tuple[str | None, str],
    dollars: float | None,
) -> None:
    """Print a report by judges: what needs review first, then the scores, then the rest."""
    out = console()
    head = plain(f"{report.rubric.id} {report.rubric.version}", style="bold")
    judged = ", ".join(report.judges) or "not judged"
    out.print(head.append(f"  by {report.method}, {judged}", style="default"))
    for warning in _warnings(report):
        out.print(warning)
    if report.responses is not None:
        for side, scored in report.responses.items():
            out.print(plain(f"response {side}", style="bold"))
            out.print(_criteria(scored.criteria))
            out.print(_total(scored.total_score, scored.max_score, scored.overall))
    elif report.criteria:
        out.print(_criteria(report.criteria))
    _print_whole(out, report)
    _print_verdict(rules, decision)
    if report.bias_checklist:
        made = table("bias checklist", "the judges' answers")
        for item, text in report.bias_checklist.items():
            add_row(made, item, text)
        out.print(made)
    out.print(_usage_line(report.usage, dollars))


def _warnings(report: EvaluationReport | RulesReport) -> Iterator[Text]:
    """Yield the notes on a report: reasons for a review, and explanations of scores."""
    from jurybox.scoring.sample_index import KINDS

    for reason in report.review_reasons:
        yield plain(f"needs review: {KINDS[reason].meaning}", style="bold red")
    for finding in report.safety_findings:
        yield plain(f"{finding.category} in the judge's words: {finding.quote}", style="red")
    for finding in report.response_findings:
        yield plain(f"{finding.category} in the response: {finding.quote}", style="yellow")
    for lost in report.lost_votes:
        yield plain(f"vote {lost.vote + 1} ({lost.judge}) is lost: {lost.reason}", style="yellow")
    if report.judge_fallback:
        yield plain("a reply could not be read: the rubric's fallback score is used", "yellow")
    if not report.votes_independent:
        yield plain("the votes are not independent: all had the same parameters", style="yellow")


def _criteria(criteria: Sequence[CriterionReport]) -> Table:
    from jurybox.judging.evaluation_report import show_vote

    made = table("criterion", "score", "confidence", "votes", "reasoning")
    made.columns[-1].ratio = 1
    for each in criteria:
        confidence = plain(each.confidence, style=_COLORS[each.confidence])
        votes = " ".join(map(show_vote, each.votes))
        add_row(made, each.id, _score(each), confidence, votes, each.reasoning)
    return made


def _score(criterion: CriterionReport) -> str:
    if criterion.preference is not None:
        return criterion.preference
    if criterion.score is None:
        return "unscored"
    return f"{show_number(criterion.score)} of {show_number(criterion.scale[1])}"


def _total(total: float | None, most: float, overall: float | None) -> Text:
    if total is None or overall is None:
        return plain("total  unscored")
    return plain(f"total  {show_number(total)} of {show_number(most)}, overall {overall:.3f}")


def _print_whole(out: Console, report: EvaluationReport) -> None:
    if report.responses is None and report.method != "pairwise":
        out.print(_total(report.total_score, report.max_score, report.overall))
    else:
        stable = {True: ", in both orders", False: ", unstable", None: ""}[report.stable]
        out.print(plain(f"winner  {report.winner or 'none'}{stable}", style="bold"))
    votes = f"{report.votes_valid} of {report.votes_requested} votes"
    if report.votes_skipped:
        votes += f", {report.votes_skipped} skipped: decided without them"
    confidence = plain(report.confidence, style=_COLORS[report.confidence])
    out.print(plain("confidence  ").append(confidence).append(f", {votes}"))


def _print_verdict(rules: Sequence[RuleOutcome], decision: tuple[str | None, str]) -> None:
    """Print the pass rules, and the decision with its meaning."""
    out = console()
    for rule in rules:
        out.print(rule_line(rule))
    name, meaning = decision
    if name is not None:
        line = plain(f"decision  {name}", style="bold")
        out.print(line.append(f": {meaning}" if meaning else "", style="default"))


def rule_line(rule: RuleOutcome) -> Text:
    """Return a pass rule with its outcome."""
    word, color = _OUTCOMES[rule.passed]
    return plain(f"{rule.rule}  ").append(word, style=color)


def _usage_line(usage: Usage, dollars: float | None) -> Text:
    counts = [
        f"{'unknown' if count is None else count} {what}"
        for count, what in ((usage.input_tokens, "input"), (usage.output_tokens, "output"))
    ]
    return plain(f"tokens  {', '.join(counts)}; cost {show_dollars(dollars)}", style="dim")


def _print_rules_report(
    report: RulesReport, rubric: Rubric, dollars: float | None, *, explain: bool
) -> None:
    """Print a report whose scores are the rules', and a judge's score apart."""
    out = wide_console()
    head = plain(f"{report.rubric.id} {report.rubric.version}", style="bold")
    out.print(head.append_text(plain("  by the rubric's rules")))
    for warning in _warnings(report):
        out.print(warning)
    automated = report.automated
    if explain:
        print_trace(out, automated)
    else:
        made = table("criterion", "score", "band", "made of")
        bands = {each.id: each.band for each in (*automated.criteria, *automated.checks)}
        for each in report.criteria:
            add_row(made, each.id, shown(each.score), bands[each.id] or "", each.reasoning)
        out.print(made)
    overall = automated.overall
    band = None if overall is None else rubric.band(overall)
    level = (
        "" if band is None else f"  {band.label}" + (f": {band.meaning}" if band.meaning else "")
    )
    out.print(plain(f"{rubric.overall_name}  {shown(overall)}{level}", style="bold"))
    if report.judge is not None:
        _print_judge(out, report, report.judge, dollars)


def print_trace(out: Console, automated: AutomatedReport) -> None:
    """Print how each score came about: the rules that fired, and every check."""
    if automated.criteria:
        out.print(_rule_trace(automated))
    if automated.checks:
        made = table("criterion", "score", "check", "outcome", "expected", "found")
        for criterion in automated.checks:
            name, score = criterion.id, _reached(criterion)
            for each in criterion.checks:
                word, color = _OUTCOMES[each.passed]
                found = f"{each.found} ({each.where})" if each.where else each.found
                outcome = plain(word, style=color)
                add_row(made, name, score, each.check, outcome, each.expected, found)
                name, score = "", ""
        out.print(made)


def _reached(criterion: CheckedCriterion) -> str:
    return f"{shown(criterion.score)} {criterion.band or ''}".strip()


def _rule_trace(automated: AutomatedReport) -> Table:
    """Return every score with its base and each rule that fired, on which words, for how much."""
    from jurybox.scoring.by_rules import quoted

    made = table("criterion", "score", "amount", "why", "when", "on the words", right=("amount",))
    for criterion in automated.criteria:
        band = f" {criterion.band}" if criterion.band else ""
        add_row(
            made, criterion.id, f"{shown(criterion.score)}{band}", shown(criterion.base), "base"
        )
        for fired in criterion.trace:
            when = fired.rule.partition(" when ")[2]
            add_row(made, "", "", signed(fired.amount), fired.why, when, quoted(fired))
        total = criterion.base + sum(fired.amount for fired in criterion.trace)
        excess = round(criterion.score - total, 6)
        if excess:
            add_row(made, "", "", signed(excess), "kept within the scale")
    return made


def _print_judge(
    out: Console, report: RulesReport, judge: EvaluationReport, dollars: float | None
) -> None:
    out.print()
    out.print(plain(f"next to the rules, judged by {', '.join(judge.judges)}", style="bold"))
    score = report.judge_score
    word = "no valid vote" if score is None else show_number(score)
    fallback = ", the fallback" if judge.judge_fallback else ""
    votes = f"{judge.votes_valid} of {judge.votes_requested} votes"
    out.print(plain(f"judge score  {word}{fallback} ({votes}, confidence {judge.confidence})"))
    for lost in judge.lost_votes:
        out.print(plain(f"vote {lost.vote + 1} ({lost.judge}) is lost: {lost.reason}", "yellow"))
    for criterion in judge.criteria:
        named = f"{criterion.id}: " if len(judge.criteria) > 1 else ""
        out.print(plain(f"reasoning  {named}{criterion.reasoning or '(no reasoning)'}"))
    out.print(_usage_line(judge.usage, dollars))
