"""``jurybox estimate``."""

from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from jurybox.app.estimate_run import RunCorrections, estimate
from jurybox.app.gold_sets import labels_for_run
from jurybox.cli import options
from jurybox.cli.output import print_line, print_result, print_table, say
from jurybox.documents.numbers import metric_value, shown
from jurybox.engine.records import RunRow
from jurybox.statistics.corrected import CorrectedRate
from jurybox.statistics.estimates import Estimate
from jurybox.storage.store import Store
from jurybox.text_format import counted


@click.command("estimate")
@options.gold_option
@options.cluster_option
@options.level_option
@options.stored_run
def command(
    store: Store, run: RunRow, gold: Path | None, cluster: str | None, level: float
) -> None:
    """Correct the metrics of a RUN using human labels for some of its samples.

    A judge's mean over thousands of samples has a narrow interval, but it ignores the judge's
    errors, so the value may be wrong. A few labels, drawn at random from the samples, measure these
    errors. Each metric is shown as measured by the judge alone, as measured by people alone, and
    corrected (prediction-powered, PPI++), with intervals and the number of further labels that
    would halve the corrected interval. Yes/no metrics
    are also corrected by the judge's sensitivity and specificity (Rogan-Gladen).
    RUN is a run's id, its name, a tag, or `last`.

    Without --gold, reviews from the random queue of `jurybox serve` serve as labels once there are
    enough. Reviews of flagged samples are left out, because flagged samples don't represent the
    run; a file that `export --gold` wrote may have such reviews and is refused. A metric is not
    corrected if people left more than one in ten of the drawn samples unlabeled.

    \b
    Examples:
      jurybox estimate last --gold labels.jsonl
      jurybox estimate last --gold labels.jsonl --cluster conversation
      jurybox estimate last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    labels = labels_for_run(store, run, gold)
    for note in labels.notes:
        say(note)
    found = estimate(store, run, labels, cluster=cluster, level=level)
    scorer = "rules" if found.by_rules else "judge"
    for line in _cautions(found, scorer):
        say(f"warning: {line}")
    print_result(msgspec.to_builtins(found) | {"level": level}, lambda: _print(found, scorer))


def _cautions(found: RunCorrections, scorer: str) -> Iterator[str]:
    if found.strangers:
        yield f"{counted(found.strangers, 'label')} for samples that the run doesn't have"
    for each in found.estimates:
        if each.unscored:
            samples = counted(each.unscored, "labeled sample")
            yield f"{each.metric}: {samples} without a score by the {scorer}"


def _print(found: RunCorrections, scorer: str) -> None:
    labeled = f"{found.samples:,} samples, {found.labeled:,} of them with labels"
    print_line(f"run {found.run_id}  {labeled}", style="bold")
    headings = ("people alone", "labels", "corrected", "more labels to halve it")
    print_table(
        ("metric", f"{scorer} alone", *headings),
        (
            (
                each.metric,
                *(
                    _ranged(alone, each.formatted_as)
                    for alone in (each.mean.judge, each.mean.human)
                ),
                str(each.mean.human.n),
                _ranged(each.mean.corrected, each.formatted_as),
                shown(each.mean.labels_to_halve),
            )
            for each in found.estimates
        ),
    )
    for each in found.estimates:
        print_line(f"{each.metric}  {each.mean.sentence}")
        if each.rate is not None:
            print_line(f"{each.metric}  {_rate(each.rate, each.formatted_as, scorer)}", style="dim")


def _ranged(estimate: Estimate, shown_as: str) -> str:
    made = estimate.interval
    ends = made and f" ({metric_value(shown_as, made.low)} to {metric_value(shown_as, made.high)})"
    return f"{metric_value(shown_as, estimate.value)}{ends or ''}"


def _rate(rate: CorrectedRate, shown_as: str, scorer: str) -> str:
    found = _ranged(rate.corrected, shown_as) if rate.corrected.value is not None else rate.reason
    both = (_ranged(each, "share_rate") for each in (rate.sensitivity, rate.specificity))
    right = "sensitivity {}, specificity {}".format(*both)
    where = ""
    if rate.apparent.n:
        where = f", over the {counted(rate.apparent.n, 'sample')} without labels"
        right = f"the {scorer} alone says {_ranged(rate.apparent, shown_as)}, {right}"
    return f"by sensitivity and specificity{where}: {found} ({right})"
