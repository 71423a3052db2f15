"""``jurybox evaluate``, and how one report is printed."""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from jurybox.app.evaluate_once import conclude_single, evaluate
from jurybox.app.view_run import single_cost
from jurybox.cli import options
from jurybox.cli.output import (
    plain,
    print_heading,
    print_line,
    print_result,
    print_table,
    say,
    yes_or_no,
)
from jurybox.cli.signals import FAILED, FINE, INCOMPLETE
from jurybox.documents.numbers import dollars, show_number, shown, signed
from jurybox.errors import InputError
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport, show_vote
from jurybox.judging.protocol import raised_votes
from jurybox.reporting.metric_text import as_clause
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.by_rules import RulesReport, SingleReport, quoted
from jurybox.scoring.rules.rule_report import AutomatedReport, CheckedCriterion, CriterionScore
from jurybox.scoring.sample_result import KINDS, RuleOutcome
from jurybox.wiring import DEFAULT_JUDGE_NOTICE, load_rubric

_STDIN: Final = "jurybox.stdin"
_COLUMNS: Final = ("criterion", "score", "confidence", "votes", "reasoning")
_COLORS: Final = {"high": "green", "moderate": "yellow", "low": "red"}
_OUTCOMES: Final = {
    True: ("passes", "green"),
    False: ("fails", "red"),
    None: ("not measured", "yellow"),
}


class TextValue(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] - newer than 8.2
    """A string, given directly, as ``@FILE`` or as ``-``."""

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
                problem = f"{ctx.meta[_STDIN]} has already read standard input"
                raise InputError(problem, "put one of the texts in a file", where)
            return _decoded(sys.stdin.buffer.read(), f"{where} -")
        if text.startswith("@"):
            return _decoded(_read(Path(text[1:]), where), f"{where} {text}")
        # Invalid UTF-8 in an argument arrives as surrogates.
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
    options.option("--rubric RUBRIC", "A rubric's name or path.", required=True),
    options.option("--task TEXT", "The task.", required=True, type=TEXT),
    options.option("--response TEXT", "The response to judge.", required=True, type=TEXT),
    options.option("--response-b TEXT", "A second response, to compare the two.", type=TEXT),
    options.option("--reference TEXT", "The reference answer to score against.", type=TEXT),
    options.option("--context TEXT", "What the system under test was given.", type=TEXT),
)
MEASURED: Final = (
    options.option(
        "--latency-e2e-ms MS",
        "How long the response took, from the request to its last byte.",
        type=click.FloatRange(0),
    ),
    options.option(
        "--latency-model-ms MS", "How long the model alone took.", type=click.FloatRange(0)
    ),
    options.option("--input-tokens N", "Tokens of the request.", type=click.IntRange(0)),
    options.option("--output-tokens N", "Tokens of the response.", type=click.IntRange(0)),
)


def with_options(
    *added: Callable[[options.Command], options.Command],
) -> Callable[[options.Command], options.Command]:
    """Return a decorator that adds these options to a command, in this order."""
    return lambda command: reduce(lambda made, add: add(made), reversed(added), command)


@click.command("evaluate")
@with_options(*MATERIAL)
@options.judges_option
@options.votes_option
@with_options(*MEASURED)
@options.option("--timed-out", "The response came too late; it isn't judged, and it fails.")
@options.accept_option
@options.base_url_option
@options.version_drift_option
@options.option(
    "--explain", "Show each rule that applied, with its points and the words that triggered it."
)
@options.json_option
def command(
    rubric: str,
    judges: tuple[str, ...],
    votes: int | None,
    accept_unreviewed: bool,
    explain: bool,
    **parts: Any,  # noqa: ANN401 - those of `evaluate`
) -> int:
    """Judge one response by a rubric, or compare two, and print the report.

    With a reference answer every response is scored against it. Without one, a single response is
    scored by the rubric and two are compared, each vote in both orders. A rubric with rules for
    every criterion needs no judge; a judge's score is then printed separately. Texts can be @FILE,
    or - for standard input. The exit code is 1 when a pass rule of the rubric fails or can't be
    measured, or a review that the rubric requires is missing, and 3 when no judge gave a valid
    vote.

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
    loaded = load_rubric(rubric)
    report = evaluate(
        rubric=loaded,
        judges=judges,
        votes=votes,
        on_default_judge=lambda name: say(DEFAULT_JUDGE_NOTICE.format(name=name)),
        **parts,
    )
    if explain and parts["timed_out"]:
        raise InputError("a response that timed out isn't scored", "omit --explain", "--explain")
    if explain and not isinstance(report, RulesReport):
        hint = "leave --explain out, or use a rubric with rules such as `companion`"
        raise InputError("no rule scores this response", hint, rubric)
    code = print_single_report(
        report, loaded, single_cost(report), accept_unreviewed=accept_unreviewed, explain=explain
    )
    if parts["response_b"] is not None and loaded.pass_rules:
        say("note: the rubric's pass rules are for single responses and don't apply to two")
    judged = report.judge if isinstance(report, RulesReport) else report
    asked = loaded.votes if votes is None else votes
    if judged is not None and judged.votes_requested > asked:
        say(f"note: {raised_votes(asked, judged.votes_requested, judged.judges)}")
    return code


def print_single_report(
    report: SingleReport,
    rubric: Rubric,
    cost: float | None,
    *,
    accept_unreviewed: bool,
    explain: bool = False,
) -> int:
    """Print the report on a single evaluation, and return the exit code."""
    ended = conclude_single(report, rubric, accept_unreviewed=accept_unreviewed)

    def show() -> None:
        if isinstance(report, RulesReport):
            _print_by_rules(report, rubric, cost, explain=explain)
        else:
            print_report(report, cost)
        print_outcome(report.result.rules, ended.decision, ended.meaning)
        _print_passed(report)
        if ended.awaiting:
            what = "accepted without review" if accept_unreviewed else "awaiting review"
            print_line(f"{what}: {', '.join(ended.awaiting)}", style="bold red")

    print_result(ended.as_data, show)
    return {"fine": FINE, "failed": FAILED, "incomplete": INCOMPLETE}[ended.outcome]


def _print_passed(report: SingleReport) -> None:
    missing = [rule.rule for rule in report.result.rules if rule.passed is None]
    if missing:
        print_line(f"passed  no: not measured: {', '.join(missing)}", style="bold red")
        say("give --latency-e2e-ms, --input-tokens and --output-tokens to measure them")
    elif report.passed is not None:
        print_line("passed  ", yes_or_no(report.passed))


def print_report(report: EvaluationReport, cost: float | None) -> None:
    """Print a report by judges: reasons for review, then the scores, then the rest."""
    judged = ", ".join(report.judges) or "not judged"
    name = f"{report.rubric.id} {report.rubric.version}"
    print_line(plain(name, "bold"), f"  by {report.method}, {judged}")
    _print_warnings(report)
    for side, scored in (report.responses or {"": report}).items():
        if side:
            print_line(f"response {side}", style="bold")
        if scored.criteria:
            print_table(_COLUMNS, map(_criterion, scored.criteria))
        if report.method != "pairwise":
            print_line(f"total  {_total(scored.total_score, scored.max_score, scored.overall)}")
    if report.responses or report.method == "pairwise":
        changed = "; a vote's winner changed with the order"
        stable = {True: ", in both orders", False: changed, None: ""}[report.stable]
        print_line(f"winner  {report.winner or 'none'}{stable}", style="bold")
    votes = f", {report.votes_valid} of {report.votes_requested} votes"
    if report.votes_skipped:
        votes += f", {report.votes_skipped} skipped: decided without them"
    print_line("confidence  ", plain(report.confidence, _COLORS[report.confidence]), votes)
    if report.bias_checklist:
        print_table(("bias checklist", "the judges' answers"), report.bias_checklist.items())
    usage = (report.usage.input_tokens, "input"), (report.usage.output_tokens, "output")
    tokens = ", ".join(f"{'unknown' if n is None else n} {what}" for n, what in usage)
    print_line(f"tokens  {tokens}; cost {dollars(cost)}", style="dim")


def _print_warnings(report: EvaluationReport) -> None:
    """Print the reasons for a review, and warnings about the scores."""
    for reason in report.review_reasons:
        print_line(f"needs review: {KINDS[reason].meaning}", style="bold red")
    for finding in report.safety_findings:
        print_line(f"{finding.category} in the judge's words: {finding.quote}", style="red")
    for finding in report.response_findings:
        print_line(f"{finding.category} in the response: {finding.quote}", style="yellow")
    for lost in report.lost_votes:
        cause = as_clause(lost.reason)
        print_line(f"vote {lost.vote + 1} ({lost.judge}) is lost: {cause}", style="yellow")
    if report.judge_fallback:
        print_line("a reply could not be read: the rubric's fallback score is used", style="yellow")
    if not report.votes_independent:
        print_line("the votes are not independent: all had the same parameters", style="yellow")


def _criterion(each: CriterionReport) -> Iterator[str | Text]:
    yield each.id
    yield each.preference or _total(each.score, each.scale[1])
    yield plain(each.confidence, _COLORS[each.confidence])
    yield " ".join(map(show_vote, each.votes))
    yield each.reasoning


def _total(score: float | None, most: float, overall: float | None = None) -> str:
    if score is None:
        return "unscored"
    whole = "" if overall is None else f", overall {overall:.3f}"
    return f"{show_number(score)} of {show_number(most)}{whole}"


def print_outcome(rules: Iterable[RuleOutcome], decision: str | None, meaning: str) -> None:
    """Print the pass rules, and the decision with its meaning."""
    for rule in rules:
        print_line(f"{rule.rule}  ", plain(*_OUTCOMES[rule.passed]))
    if decision is not None:
        print_line(plain(f"decision  {decision}", "bold"), f": {meaning}" if meaning else "")


def _print_by_rules(
    report: RulesReport, rubric: Rubric, cost: float | None, *, explain: bool
) -> None:
    """Print a report with scores by rules, and the judge's score separately."""
    name = f"{report.rubric.id} {report.rubric.version}"
    print_line(plain(name, "bold"), "  by the rubric's rules")
    _print_warnings(report)
    automated = report.automated
    if explain:
        print_trace(automated)
    else:
        bands = {each.id: each.band for each in (*automated.criteria, *automated.checks)}
        rows = (
            (each.id, shown(each.score), bands[each.id] or "", each.reasoning)
            for each in report.criteria
        )
        print_table(("criterion", "score", "band", "made of"), rows)
    overall = automated.overall
    band = None if overall is None else rubric.band(overall)
    level = "" if band is None else f"  {band.label}"
    level += f": {band.meaning}" if band is not None and band.meaning else ""
    print_line(f"{rubric.overall_name}  {shown(overall)}{level}", style="bold")
    if report.judge is not None:
        score = report.judge_score
        word = "no valid vote" if score is None else show_number(score)
        print_heading(f"next to the rules: judge score  {word}")
        print_report(report.judge, cost)


def print_trace(automated: AutomatedReport) -> None:
    """Print how each score was computed: the rules that fired, and every check."""
    if automated.criteria:
        headings = ("criterion", "score", "amount", "why", "when", "on the words")
        print_table(headings, _rule_rows(automated))
    if automated.checks:
        headings = ("criterion", "score", "check", "outcome", "expected", "found")
        print_table(headings, _check_rows(automated))


def _rule_rows(automated: AutomatedReport) -> Iterator[tuple[str, ...]]:
    """Yield rows: a score with its base value; a fired rule with its points and matched words."""
    for criterion in automated.criteria:
        yield criterion.id, _banded(criterion), shown(criterion.base), "base"
        for fired in criterion.trace:
            when = fired.rule.partition(" when ")[2]
            yield "", "", signed(fired.amount), fired.why, when, quoted(fired)
        total = criterion.base + sum(fired.amount for fired in criterion.trace)
        excess = round(criterion.score - total, 6)
        if excess:
            yield "", "", signed(excess), "kept within the scale"


def _check_rows(automated: AutomatedReport) -> Iterator[tuple[str | Text, ...]]:
    for criterion in automated.checks:
        name, score = criterion.id, _banded(criterion)
        for each in criterion.checks:
            found = f"{each.found} ({each.where})" if each.where else each.found
            yield name, score, each.check, plain(*_OUTCOMES[each.passed]), each.expected, found
            name, score = "", ""


def _banded(criterion: CriterionScore | CheckedCriterion) -> str:
    return f"{shown(criterion.score)} {criterion.band or ''}".strip()
