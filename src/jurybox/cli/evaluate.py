"""``jurybox evaluate``."""

import click

from jurybox.cli.calling import base_url_option
from jurybox.cli.exits import FAILED, FINE, INCOMPLETE
from jurybox.cli.output import json_option, print_json, say
from jurybox.cli.values import TextValue
from jurybox.errors import InputError

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
    from jurybox.scoring.by_rules import RulesReport
    from jurybox.scoring.passing import check_rules, decide, sample_figures, verdict_as_data
    from jurybox.wiring import load_with_warnings, read_settings
    from jurybox.wiring.embedded_judge import NOTICE
    from jurybox.wiring.evaluating import evaluate
    from jurybox.wiring.spending import Spending

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
        on_default_judge=lambda name: say(NOTICE.format(name=name)),
    )
    ruled = isinstance(report, RulesReport)
    if explain and not ruled:
        mend = "leave --explain out, or use a rubric with rules such as `companion`"
        raise InputError("its rules don't score this, so there is nothing to explain", mend, rubric)
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
        from jurybox.cli.rules_view import print_rules_report

        print_rules_report(report, loaded, spending.dollars, explain=explain)
        print_verdict(rules, decision)
    else:
        from jurybox.cli.report_view import print_report

        print_report(report, rules, decision, spending.dollars)
    asked = report.judge if isinstance(report, RulesReport) else report
    if asked is not None and asked.votes_valid == 0:
        return INCOMPLETE
    return FAILED if any(rule.passed is False for rule in rules) else FINE
