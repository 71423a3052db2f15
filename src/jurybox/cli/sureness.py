"""The options of commands that say how sure a figure is."""

from typing import Any

import click


class _Level(click.ParamType[float]):
    """A share between 0 and 1, neither of them: no interval covers nothing or everything."""

    name = "level"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - whatever click passes
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Read a level."""
        try:
            level = float(value)
        except ValueError:
            level = 0.0
        if not 0 < level < 1:
            self.fail(f"`{value}` is no level; give one between 0 and 1, such as 0.95", param, ctx)
        return level


level_option = click.option(
    "--level",
    type=_Level(),
    default=0.95,
    metavar="P",
    help="How often intervals made like these cover the true figure; 0.95 where nothing is said.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Where resampling begins; the same seed gives the same figures.",
)
