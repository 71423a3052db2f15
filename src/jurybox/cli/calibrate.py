"""``jurybox calibrate``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from jurybox.cli.options import (
    base_url_option,
    concurrency_option,
    json_option,
    level_option,
    opened,
    store_option,
    unpinned_option,
    version_drift_option,
)
from jurybox.cli.output import add_row, plain, print_json, say, table, wide_console
from jurybox.documents.numbers import dollars, signed
from jurybox.text_format import counted, cut

if TYPE_CHECKING:
    from rich.console import Console

    from jurybox.calibration.calibration_record import (
        Agreement,
        Calibration,
        CriterionAgreement,
        Disagreement,
        Round,
        RoundResult,
        Tuning,
    )
    from jurybox.statistics.estimates import Estimate


@click.command("calibrate")
@click.option("--rubric", metavar="RUBRIC", help="A rubric's name or path.")
@click.option(
    "--gold",
    metavar="FILE",
    help="A dataset with human labels: `gold` with scores by criterion, or `gold_winner`.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="A judge model; repeat it for a mixed jury.",
)
@click.option(
    "--votes",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="The number of votes per sample; defaults to the rubric's.",
)
@click.option(
    "--rounds",
    type=click.IntRange(0, 100),
    default=0,
    metavar="K",
    help="Try K changes to the rubric, and keep those that help on rows they were not made from;"
    " defaults to none.",
)
@click.option(
    "--proposer", metavar="MODEL", help="A model that proposes the change in every second round."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write a new version of the rubric; defaults to ID-VERSION.md in this folder.",
)
@click.option(
    "--cluster",
    metavar="FIELD",
    help="Keep rows with the same value of this field, such as `scenario`, in one part, and count"
    " them as dependent for intervals.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Use only the first N rows.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="The random seed of the split and the intervals.",
)
@level_option
@base_url_option
@concurrency_option
@unpinned_option
@version_drift_option
@click.option(
    "--show",
    "shown",
    metavar="ID",
    help="Show a stored calibration, by its id or as `last`; nothing is judged.",
)
@store_option
@json_option
def command(  # noqa: PLR0917 - click passes them by name
    rubric: str | None,
    gold: str | None,
    judges: tuple[str, ...],
    proposer: str | None,
    shown: str | None,
    store_url: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of `CalibrateOptions`
) -> None:
    """Compare a judge with human labels, next to how far people agree with each other.

    The rows of --gold have responses and human labels. They are judged in a stored run, and from
    then on `jurybox run` shows the measured agreement, until the rubric, the judge or its prompt
    changes.

    With --rounds the gold is split into three parts. Changes to the rubric are made from the first
    part and kept only where they help on the second, beyond noise; the result is reported once, on
    the third, and written as a new version of the rubric. The old version is never changed.

    Low agreement is a finding, not a failure: the exit code is 0. It is 3 when the judge is
    unreachable; the same command then continues. Nothing is ever judged and paid for twice.

    \b
    Examples:
      jurybox calibrate --rubric general --gold people.jsonl --judge openai/gpt-4.1-2025-04-14
      jurybox calibrate --rubric general --gold people.jsonl --rounds 3 -o general-1.1.0.md
      jurybox calibrate --show last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.calibrations import as_data, find_calibration

    if shown is not None:
        if rubric is not None or gold is not None:
            raise click.UsageError("--show judges nothing; leave --rubric and --gold out")
        with opened(store_url) as store:
            made = find_calibration(store, shown)
    else:
        if rubric is None or gold is None:
            missing = "--rubric" if rubric is None else "--gold"
            raise click.UsageError(f"missing option '{missing}'")
        from jurybox.app.calibrate_judge import CalibrateOptions, calibrate, ready
        from jurybox.cli.run import run_with_progress
        from jurybox.suite.model_spec import model_option

        readied = ready(
            CalibrateOptions(
                rubric=rubric,
                gold=gold,
                judges=tuple(model_option(each) for each in dict.fromkeys(judges)),
                proposer=None if proposer is None else model_option(proposer),
                **options,
            )
        )
        for warning in readied.warnings:
            say(f"warning: {warning}")
        with opened(store_url, create=True) as store:
            made = calibrate(
                readied, store, store_url, lambda start: run_with_progress(start, store_url)
            )
    if as_json:
        print_json(as_data(made))
    else:
        _print(made)


_LONGEST: Final = 300


def _print(made: Calibration) -> None:
    out = wide_console()
    out.print(plain(f"calibration {made.id}", style="bold"))
    gold = made.gold
    head = (
        f"{made.rubric_id} {made.rubric_version}",
        f"judged by {', '.join(made.judges)}, {counted(made.votes, 'vote')}",
        f"{gold.used} of {gold.rows} rows of {gold.name} have gold",
    )
    out.print(plain(", ".join(head)))
    if made.tuning is not None:
        _print_rounds(out, made.tuning)
    _print_agreement(out, made)
    for each in made.metrics.criteria:
        _print_confusion(out, each)
    _print_worst(out, made.metrics)
    out.print()
    runs = ", ".join(dict.fromkeys(each.run_id for each in made.runs))
    _line(out, f"runs  {runs}")
    out.print(plain(f"cost  {dollars(made.dollars)}"))
    if made.tuning is not None and made.tuning.written is not None:
        out.print(plain(f"wrote {made.tuning.written}", style="bold green"))


def _print_agreement(out: Console, made: Calibration) -> None:
    out.print()
    which = "" if made.tuning is None else " on the report part"
    names = ("n", "unscored", "exact", "kappa", "(interval)", "spearman", "error")
    agreed = table(f"judge with people{which}", *names, right=names)
    for each in made.metrics.criteria:
        add_row(
            agreed,
            each.criterion,
            str(each.n),
            str(each.unscored),
            _value(each.exact),
            _value(each.kappa),
            _ends(each.kappa),
            "" if each.spearman is None else _value(each.spearman),
            "" if each.error is None else f"{each.error:.2f}",
        )
    out.print(agreed)
    if any(each.ceiling is not None for each in made.metrics.criteria):
        out.print()
        _print_ceiling(out, made.metrics)
    out.print()
    for each in made.metrics.criteria:
        if each.bias is not None:
            clear = each.bias.direction != "undecided"
            out.print(plain(each.bias.sentence, style="yellow" if clear else ""))
        if each.unstable:
            line = f"{each.criterion}: {each.unstable} pairs changed their winner with the order"
            out.print(plain(line, style="yellow"))
        for note in (each.note, each.kappa.reason):
            if note is not None:
                out.print(plain(f"{each.criterion}: {note}"))


def _print_ceiling(out: Console, metrics: Agreement) -> None:
    names = ("people", "n", "exact", "kappa", "alpha", "judge with one of them: kappa")
    made = table("people with each other", *names, right=names)
    for each in metrics.criteria:
        found = each.ceiling
        if found is not None:
            add_row(
                made,
                each.criterion,
                str(found.people),
                str(found.n),
                _number(found.exact),
                _number(found.kappa),
                _value(found.alpha),
                _number(found.judge_kappa),
            )
    out.print(made)


def _print_confusion(out: Console, each: CriterionAgreement) -> None:
    found = each.confusion
    if found is None or not each.n:
        return
    out.print()
    head = f"{each.criterion}: people (down), judge (across)"
    made = table(head, *found.labels, right=found.labels)
    for label, counts in zip(found.labels, found.counts, strict=True):
        add_row(made, label, *(str(count) if count else "." for count in counts))
    out.print(made)


def _print_worst(out: Console, metrics: Agreement) -> None:
    for each in metrics.criteria:
        for number, found in enumerate(each.worst):
            if not number:
                out.print()
                out.print(plain(f"{each.criterion}: furthest apart", style="bold"))
            for line in _disagreement(found):
                _line(out, line)


def _disagreement(found: Disagreement) -> Iterable[str]:
    yield f"  {found.sample_id}: people {_verdict(found.people)}, judge {_verdict(found.judge)}"
    for who, why in (("judge", found.judge_reasoning), ("people", found.people_reasoning)):
        if why:
            yield f"    {who}: {cut(why, _LONGEST)}"


def _verdict(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or "nothing"
    return f"{value:g}" if value == int(value) else f"{value:.2f}"


def _print_rounds(out: Console, tuning: Tuning) -> None:
    # Stored by name; shown in the order of their use.
    from jurybox.calibration.splits import PARTS

    known = [(part, tuning.parts[part]) for part in PARTS if part in tuning.parts]
    parts = ", ".join(f"{count} to {part}" for part, count in known)
    out.print(plain(f"{parts}; a round is decided at the level {tuning.level:.3g}"))
    for each in tuning.rounds:
        _print_round(out, each)
    if tuning.ended is not None:
        out.print()
        out.print(plain(tuning.ended))
    out.print()
    if tuning.gain is None:
        out.print(plain("no change was kept; the rubric stays as it is", style="bold"))
        return
    word = "closer to people" if tuning.gain.clear else "not closer beyond noise"
    line = f"on the report part, which no round used: {word}: {tuning.gain.sentence}"
    _line(out, line, "bold green" if tuning.gain.clear else "bold yellow")


def _line(out: Console, text: str, style: str = "") -> None:
    """Print a line without wrapping, as a diff needs it."""
    out.print(plain(text, style=style), soft_wrap=True)


def _print_round(out: Console, each: Round) -> None:
    out.print()
    head = plain(f"round {each.number}  ", style="bold")
    head.append_text(
        plain("kept" if each.kept else "rejected", style="green" if each.kept else "yellow")
    )
    head.append_text(plain(f"  {each.kind}, by {each.by}"))
    out.print(head)
    if each.hypothesis:
        _line(out, f"  because {each.hypothesis}")
    for line in each.change.split("\n"):
        if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}:
            _line(out, f"  {cut(line, _LONGEST)}", "green" if line[0] == "+" else "red")
    for part, trial in (("tune", each.tune), ("select", each.select)):
        if trial is not None:
            _line(out, f"  {part}: {trial.gain.sentence}")
            _line(out, f"    {_briefly(trial)}", "dim")
    _line(out, f"  {each.reason}")


def _briefly(trial: RoundResult) -> str:
    parts: list[str] = []
    for each in trial.criteria:
        bias = "" if each.bias is None else f", bias {signed(round(each.bias, 2))}"
        parts.append(f"{each.criterion} kappa {_number(each.kappa)}{bias}")
    return f"run {trial.run_id}: {'; '.join(parts)}"


def _value(metric: Estimate) -> str:
    return _number(metric.value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _ends(metric: Estimate) -> str:
    found = metric.interval
    return "" if found is None else f"{found.low:.2f} to {found.high:.2f}"
