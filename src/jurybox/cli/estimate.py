"""``jurybox estimate``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jurybox.cli.options import cluster_option, level_option
from jurybox.cli.output import json_option, plain, print_json, say, wide_console
from jurybox.cli.stores import opened, run_argument, store_option

if TYPE_CHECKING:
    from rich.table import Table

    from jurybox.reporting.corrected_estimate import CorrectedMetric, RunCorrections
    from jurybox.statistics.corrected import CorrectedRate
    from jurybox.statistics.estimates import Estimate

_MISSING: Final = "-"


@click.command("estimate")
@run_argument
@click.option(
    "--gold",
    "gold_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="People's labels: rows with `id` and `gold` or `gold_winner`; else the reviews of the"
    " run's random part, or else what its own rows carry.",
)
@cluster_option
@level_option
@store_option
@json_option
def command(
    run: str,
    gold_file: Path | None,
    cluster: str | None,
    level: float,
    store_url: str | None,
    as_json: bool,
) -> None:
    """Correct the figures of a RUN by what people said of some of its samples.

    A judge's mean over thousands of samples has a narrow interval around a wrong value: it knows
    nothing of the judge's errors. A few labels, drawn at random from the samples, tell how wrong it
    is. Each figure is shown as the judge alone has it, as people alone have it, and corrected
    (prediction-powered, PPI++), with intervals, and with how many more labels would halve the last
    one. Figures that are yes or no are also corrected by the judge's sensitivity and specificity
    (Rogan-Gladen). RUN is a run's id, the beginning of one, or `last`.

    Without --gold, reviews from the random queue of `jurybox serve` are the labels once there are
    enough. Those of flagged samples are left out, also of a file that `export --gold` wrote: a part
    that was chosen for its trouble tells nothing of the rest. A figure that people gave more than
    one in ten of the samples drawn no label for isn't corrected.

    \b
    Examples:
      jurybox estimate last --gold labels.jsonl
      jurybox estimate last --gold labels.jsonl --cluster conversation
      jurybox estimate last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.labels import labels_for_run
    from jurybox.reporting.corrected_estimate import CorrectionRequest, estimate
    from jurybox.wiring import find_run

    with opened(store_url) as store:
        row = find_run(store, run)
        labels = labels_for_run(store, row, gold_file)
        for note in labels.notes:
            say(note)
        question = CorrectionRequest(
            gold=labels.gold,
            reviewed=labels.reviewed,
            drawn=labels.drawn,
            hint=labels.hint,
            cluster=cluster,
            level=level,
        )
        found = estimate(store, row, question)
    for line in _cautions(found):
        say(f"warning: {line}")
    if as_json:
        print_json(_as_data(found, level))
    else:
        _print(found)


def _cautions(found: "RunCorrections") -> Iterator[str]:
    if found.strangers:
        what = "1 label is of a sample" if found.strangers == 1 else f"{found.strangers} labels are"
        samples = "" if found.strangers == 1 else " of samples"
        yield f"{what}{samples} that the run doesn't have"
    for each in found.estimates:
        if each.unscored:
            what = "sample has" if each.unscored == 1 else "samples have"
            whose = "rules" if found.by_rules else "judge"
            yield f"{each.figure}: {each.unscored} labelled {what} no figure of the {whose}"


def _print(found: "RunCorrections") -> None:
    out = wide_console()
    head = f"run {found.run_id}  {found.samples:,} samples, {found.labelled:,} of them with labels"
    out.print(plain(head, style="bold"))
    out.print(_table(found))
    for each in found.estimates:
        out.print(plain(f"{each.figure}  {each.mean.sentence}"))
        if each.rate is not None:
            out.print(plain(f"{each.figure}  {_rate(each.rate)}", style="dim"))


def _table(found: "RunCorrections") -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("figure", overflow="fold")
    alone = "rules alone" if found.by_rules else "judge alone"
    for name in (alone, "people alone", "labels", "corrected", "more labels to halve it"):
        table.add_column(plain(name), justify="right")
    for each in found.estimates:
        table.add_row(*(plain(cell) for cell in _cells(each)))
    return table


def _cells(each: "CorrectedMetric") -> Iterator[str]:
    from jurybox.reporting.metric_text import shown

    mean = each.mean
    yield each.figure
    yield from (_ranged(mean.judge), _ranged(mean.human), str(mean.human.n))
    yield _ranged(mean.corrected)
    yield shown(mean.labels_to_halve)


def _ranged(figure: "Estimate") -> str:
    from jurybox.reporting.metric_text import shown

    if figure.value is None:
        return _MISSING
    made = figure.interval
    ends = "" if made is None else f" ({shown(made.low)} to {shown(made.high)})"
    return f"{shown(figure.value)}{ends}"


def _rate(rate: "CorrectedRate") -> str:
    right = f"sensitivity {_ranged(rate.sensitivity)}, specificity {_ranged(rate.specificity)}"
    if rate.corrected.value is None:
        return f"by sensitivity and specificity: {rate.reason} ({right})"
    return f"by sensitivity and specificity: {_ranged(rate.corrected)} ({right})"


def _as_data(found: "RunCorrections", level: float) -> dict[str, Any]:
    import msgspec

    data: dict[str, Any] = msgspec.to_builtins(found)
    estimates = [_flat(**each) for each in data.pop("estimates")]
    return {**data, "level": level, "estimates": estimates}


def _flat(*, figure: str, mean: dict[str, Any], **rest: object) -> dict[str, Any]:
    return {"figure": figure, **mean, **rest}
