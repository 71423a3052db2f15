"""The options of commands that call models."""

import click

base_url_option = click.option(
    "--base-url", metavar="URL", help="The address of an OpenAI-compatible endpoint."
)
concurrency_option = click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="The most calls at once to one endpoint.",
)
unpinned_option = click.option(
    "--allow-unpinned",
    is_flag=True,
    help="Accept models whose names don't say which version is meant.",
)
