"""``jurybox prompt``."""

from collections.abc import Sequence
from typing import Any

import click

from jurybox.app.evaluate_once import AgentPrompt, AgentTurn, judge_by_agent, single_row
from jurybox.cli.evaluate import MATERIAL, with_options
from jurybox.cli.options import json_option
from jurybox.cli.output import print_result
from jurybox.wiring import load_rubric


@click.command("prompt")
@with_options(*MATERIAL)
@json_option
def command(
    rubric: str,
    **material: Any,  # noqa: ANN401 - the parts of a sample
) -> None:
    """Print the exact prompt of a judge, so that an agent can be the judge.

    A pair without a reference answer has two prompts, one for each order; answer each of them
    independently. `jurybox check-reply` checks the replies. Texts can be @FILE, or - for standard
    input.

    \b
    Examples:
      jurybox prompt --rubric code-review --task @task.md --response @change.diff
      jurybox prompt --rubric general --task @task.md --response @a.txt --response-b @b.txt --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    asked = judge_by_agent(load_rubric(rubric), single_row(**material), ())
    assert isinstance(asked, AgentTurn)  # noqa: S101 - without a reply there is no report
    data = {"prompts": asked.as_data()["prompts"]}
    print_result(data, lambda: print_prompts(asked.prompts))


def print_prompts(prompts: Sequence[AgentPrompt]) -> None:
    """Print prompts unchanged; if there are several, each follows a line that names it."""
    for number, each in enumerate(prompts, start=1):
        if each.asks:
            click.echo(f"--- prompt {number} of {len(prompts)}: {each.asks}")
        click.echo(each.text)
