"""``jurybox rank``."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from jurybox.cli.options import json_option, level_option, opened_run, store_option
from jurybox.cli.output import print_heading, print_line, print_result, print_table
from jurybox.datasets.open_dataset import names_file
from jurybox.datasets.ratings import Verdicts, read_verdicts, run_verdicts
from jurybox.reporting.export_rows import exported_rows
from jurybox.reporting.stored import plan_of
from jurybox.statistics.estimates import Interval
from jurybox.statistics.model_ranking import RankedModel, Ranking, StrengthDifference, rank
from jurybox.text_format import counted

_MOST_IN_MATRIX: Final = 12
_MOST_LINES: Final = 20


@click.command("rank")
@click.argument("verdicts", metavar="VERDICTS|RUN...", nargs=-1, required=True)
@level_option
@store_option
@json_option
def command(verdicts: tuple[str, ...], level: float) -> None:
    """Rank models by verdicts on pairs of their answers, from files or runs.

    In a run of pairs, the target is compared with `response_b`, unless the rows' metadata name both
    as `a` and `b`. A row of a file is {"a": NAME, "b": NAME, "winner": "a", "b", "tie" or a name,
    "item": ID}; the optional item is what both answered. CSV, TSV and Parquet have these as
    columns; rows that `jurybox export` wrote may have them in their metadata. `-` reads JSON lines
    from standard input. Verdicts on the same item are treated as dependent. Strengths are log
    strengths of the Bradley-Terry model with ties; their mean is 0. Two models count as ranked only
    if the interval of their difference excludes 0. A model that won or lost everything gets no
    strength, because the verdicts set no limit to it.

    \b
    Examples:
      jurybox rank verdicts.jsonl
      jurybox rank verdicts.jsonl --level 0.9
      jurybox rank verdicts.jsonl --json
      jurybox rank last
    """  # noqa: D301 - click reads \b as "keep these lines"
    # A run may be given under several names; its verdicts count once.
    found = dict(_read(name) for name in verdicts).values()
    ranking = rank([row for each in found for row in each.rows], level=level)
    missing = sum(each.without for each in found)
    have = counted(missing, "row", "have")
    without = [f"{have} no winner (null): left out"] if missing else []
    warnings = [*without, *ranking.warnings]
    data = {**ranking.as_data(), "warnings": warnings}
    print_result(data, lambda: _print(ranking, warnings))


def _read(name: str) -> tuple[str, Verdicts]:
    """Return the path of a file or the id of a run, and its verdicts."""
    if names_file(name):
        return name, read_verdicts(Path(name))

    with opened_run(name) as (store, run):
        target = plan_of(run).target
        names = ("response" if target is None else target.model, "response_b")
        return run.id, run_verdicts(exported_rows(store, run), run.id, names)


def _print(ranking: Ranking, warnings: list[str]) -> None:
    head = f"{counted(ranking.n, 'verdict')} on {counted(len(ranking.models), 'model')}"
    if ranking.items is not None:
        head += f", {counted(ranking.items, 'item')}"
    print_line(f"{head}, {counted(ranking.ties.ties, 'tie')}", style="bold")
    for warning in warnings:
        print_line(f"warning  {warning}", style="yellow")
    print_line()
    _print_models(ranking)
    print_line()
    for line in _sentences(ranking):
        print_line(line)
    names = [model.name for model in ranking.models]
    if len(names) <= _MOST_IN_MATRIX:
        rates = ranking.matrix()
        print_heading("win rate of the row against the column; a tie is half a win")
        rows = ((name, *(_rate(rates[name].get(other)) for other in names)) for name in names)
        print_table(("", *names), rows)


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.2f}"


def _print_models(ranking: Ranking) -> None:
    level = f"{100 * ranking.level:g}% interval"
    headings = ["rank", "model", "strength", level, "won", "lost", "tied", "win rate"]
    # Columns that most rankings don't need.
    grouped = any(model.group > 1 for model in ranking.models)
    scaled = len({model.scale for model in ranking.models} - {None}) > 1
    more = {"group": grouped, "scale": scaled}
    names = [name for name, wanted in more.items() if wanted]
    rows = (
        (*_cells(model), *(str(getattr(model, name) or "-") for name in names))
        for model in ranking.models
    )
    print_table([*headings, *names], rows)


def _cells(model: RankedModel) -> Iterator[str]:
    yield from (str(model.rank), model.name)
    yield "none" if model.strength is None else f"{model.strength:+.3f}"
    yield "-" if model.interval is None else _ends(model.interval)
    yield from (f"{count:,}" for count in (model.wins, model.losses, model.ties))
    yield f"{model.win_rate:.3f}"


def _ends(interval: Interval) -> str:
    return f"{interval.low:+.3f} to {interval.high:+.3f}"


def _sentences(ranking: Ranking) -> Iterator[str]:
    """Describe which neighbors differ significantly, and which majorities form a cycle."""
    between = {(each.a, each.b): each for each in ranking.differences}
    known = [model.name for model in ranking.models if model.strength is not None]
    neighbors = [
        between.get((one, other)) or between.get((other, one))
        for one, other in itertools.pairwise(known)
    ]
    lines = [_sentence(each) for each in neighbors if each is not None]
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"{len(lines) - _MOST_LINES} more pairs of neighbors are in --json"
    for cycle in ranking.cycles[:_MOST_LINES]:
        yield f"cycle: {' beats '.join((*cycle, cycle[0]))}"
    if len(ranking.cycles) > _MOST_LINES:
        yield f"{len(ranking.cycles) - _MOST_LINES} more cycles are in --json"


def _sentence(each: StrengthDifference) -> str:
    if each.interval is None:
        return f"{each.a} and {each.b} do not differ significantly: there is no interval"
    basis = f"{each.difference:.3f}, {100 * each.interval.level:g}% interval {_ends(each.interval)}"
    if each.significant:
        return f"{each.a} is ranked above {each.b} (difference {basis})"
    return f"{each.a} and {each.b} do not differ significantly (difference {basis})"
