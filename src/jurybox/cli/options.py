"""Options that several commands share."""

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


level_option = click.option(
    "--level",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    metavar="P",
    help="How often intervals shall cover the true figure.",
)
resamples_option = click.option(
    "--resamples",
    type=click.IntRange(100, 100_000),
    default=2000,
    show_default=True,
    metavar="N",
    help="How often the data are drawn anew for an interval.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Where drawing starts; the same seed gives the same intervals.",
)
cluster_option = click.option(
    "--cluster",
    metavar="FIELD",
    help="Samples with the same value of this field aren't independent, such as: scenario.",
)
