"""``jurybox check-reply``."""

from typing import Any

import click

from jurybox.app.evaluate_once import AgentTurn, judge_by_agent, single_row
from jurybox.cli.evaluate import MATERIAL, MEASURED, TEXT, print_single_report, with_options
from jurybox.cli.options import accept_option, json_option, option
from jurybox.cli.output import print_result
from jurybox.cli.prompt import print_prompts
from jurybox.wiring import load_rubric


@click.command("check-reply")
@with_options(*MATERIAL)
@option(
    "--reply TEXT",
    "An agent's reply; repeat it for all replies so far, in the order of their prompts.",
    several="replies",
    required=True,
    type=TEXT,
)
@with_options(*MEASURED)
@accept_option
@json_option
def command(
    rubric: str,
    replies: tuple[str, ...],
    accept_unreviewed: bool,
    **material: Any,  # noqa: ANN401 - the parts of a sample
) -> int:
    """Check an agent's replies to the prompts of `jurybox prompt`, and print the report.

    Give the same material again. Replies follow the same rules as those of any judge: an invalid
    one is never used. Its defect and the next prompt are printed, and the exit code is 2; answer,
    and give the new reply after the others. Once all replies are valid, or too many are invalid,
    the report is printed with the exit code of `jurybox evaluate`. The agent gives one vote.

    \b
    Examples:
      jurybox check-reply --rubric code-review --task @task.md --response @change.diff \\
          --reply @reply-1.json
      jurybox check-reply --rubric general --task @task.md --response @a.txt --response-b @b.txt \\
          --reply @a-before-b.json --reply @b-before-a.json --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    loaded = load_rubric(rubric)
    judged = judge_by_agent(loaded, single_row(**material), replies)
    if not isinstance(judged, AgentTurn):
        return print_single_report(judged, loaded, None, accept_unreviewed=accept_unreviewed)
    print_result(judged.as_data, lambda: print_prompts(judged.prompts))
    raise judged.error()
