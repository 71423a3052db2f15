"""``jurybox calibrate``."""

from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from jurybox.app.calibrate_judge import CalibrateOptions, Calibrator
from jurybox.calibration.calibration_record import (
    Calibration,
    CriterionAgreement,
    Round,
    RoundResult,
    Tuning,
)
from jurybox.calibration.gold import PARTS
from jurybox.cli import options
from jurybox.cli.output import plain, print_heading, print_line, print_result, print_table, say
from jurybox.cli.run import watched
from jurybox.documents.numbers import dollars, signed
from jurybox.text_format import counted, cut

_LONGEST: Final = 300


@click.command("calibrate")
@options.option("--rubric RUBRIC", "A rubric's name or path.", required=True)
@options.option(
    "--gold FILE",
    "A dataset with human labels: `gold` with scores by criterion, or `gold_winner`.",
    required=True,
)
@options.judges_option
@options.votes_option
@options.option(
    "--rounds K",
    "Try K changes to the rubric, and keep those that help on other rows.",
    type=click.IntRange(0, 100),
    default=0,
)
@options.option("--proposer MODEL", "A model that proposes the change in every second round.")
@options.option(
    "-o, --output FILE",
    "Where to write a new version of the rubric; defaults to ID-VERSION.md in this folder.",
)
@options.cluster_option
@options.option("--limit N", "Use only the first N rows.", type=click.IntRange(1))
@options.seed_option
@options.level_option
@options.base_url_option
@options.concurrency_option
@options.unpinned_option
@options.version_drift_option
@options.store_option
@options.json_option
def command(
    judges: tuple[str, ...],
    **given: Any,  # noqa: ANN401 - those of `CalibrateOptions`
) -> None:
    """Compare a judge with human labels, and with how well people agree with each other.

    The rows of --gold have responses and human labels. They are judged in a stored run, and from
    then on `jurybox run` shows the measured agreement, until the rubric, the judge or its prompt
    changes.

    With --rounds, the rows are split into three parts. Changes are derived from the first
    part and kept only if they help significantly on the second; the result is reported once, on the
    third, and written as a new version of the rubric. The old version is never changed.

    Low agreement is a finding, not a failure: the exit code is 0. It is 3 when the judge is
    unreachable; run the same command again to continue. Nothing is ever judged and paid for twice.

    \b
    Examples:
      jurybox calibrate --rubric general --gold people.jsonl --judge openai/gpt-4.1-2025-04-14
      jurybox calibrate --rubric general --gold people.jsonl --rounds 3 -o general-1.1.0.md
    """  # noqa: D301 - click reads \b as "keep these lines"
    calibrator = Calibrator(CalibrateOptions(judges=tuple(dict.fromkeys(judges)), **given))
    for warning in calibrator.warnings:
        say(f"warning: {warning}")
    with options.opened(create=True) as store:
        made = calibrator.run(store, watched)
    data = {**msgspec.to_builtins(made), "dollars": made.dollars}
    print_result(data, lambda: _print(made))


def _print(made: Calibration) -> None:
    print_line(f"calibration {made.id}", style="bold")
    gold = made.gold
    judges = f"judged by {', '.join(made.judges)}, {counted(made.votes, 'vote')}"
    rows = f"{gold.used} of {gold.rows} rows of {gold.name} have labels"
    print_line(f"{made.rubric_id} {made.rubric_version}, {judges}, {rows}")
    if made.tuning is not None:
        _print_rounds(made.tuning)
    print_line()
    which = "" if made.tuning is None else " on the report part"
    names = ("n", "unscored", "exact", "kappa", "(interval)", "spearman", "error")
    print_table((f"judge with people{which}", *names), map(_agreed, made.metrics.criteria))
    ceilings = [(each.criterion, each.ceiling) for each in made.metrics.criteria if each.ceiling]
    if ceilings:
        print_line()
        names = ("people", "n", "exact", "kappa", "alpha", "kappa of the judge with one person")
        print_table(
            ("people with each other", *names),
            (
                (
                    *(name, str(found.people), str(found.n), _number(found.exact)),
                    *map(_number, (found.kappa, found.alpha.value, found.judge_kappa)),
                )
                for name, found in ceilings
            ),
        )
    print_line()
    for each in made.metrics.criteria:
        _print_notes(each)
    for each in made.metrics.criteria:
        _print_confusion(each)
        _print_worst(each)
    print_line()
    print_line(f"runs  {', '.join(dict.fromkeys(each.run_id for each in made.runs))}", wrap=False)
    print_line(f"cost  {dollars(made.dollars)}")
    if made.tuning is not None and made.tuning.written is not None:
        print_line(f"wrote {made.tuning.written}", style="bold green")


def _agreed(each: CriterionAgreement) -> Iterator[str]:
    yield from (each.criterion, str(each.n), str(each.unscored))
    yield from (_number(each.exact.value), _number(each.kappa.value))
    ends = each.kappa.interval
    yield "" if ends is None else f"{ends.low:.2f} to {ends.high:.2f}"
    yield "" if each.spearman is None else _number(each.spearman.value)
    yield "" if each.error is None else _number(each.error)


def _print_notes(each: CriterionAgreement) -> None:
    if each.bias is not None:
        clear = each.bias.direction != "undecided"
        print_line(each.bias.sentence, style="yellow" if clear else "")
    if each.unstable:
        pairs = counted(each.unstable, "pair")
        line = f"{each.criterion}: in {pairs} a vote's winner changed with the order"
        print_line(line, style="yellow")
    for note in (each.note, each.kappa.reason):
        if note is not None:
            print_line(f"{each.criterion}: {note}")


def _print_confusion(each: CriterionAgreement) -> None:
    found = each.confusion
    if found is None or not each.n:
        return
    rows = (
        (label, *(str(count) if count else "." for count in counts))
        for label, counts in zip(found.labels, found.counts, strict=True)
    )
    print_line()
    print_table((f"{each.criterion}: people (down), judge (across)", *found.labels), rows)


def _print_worst(each: CriterionAgreement) -> None:
    if each.worst:
        print_heading(f"{each.criterion}: furthest apart")
    for found in each.worst:
        people, judge = _verdict(found.people), _verdict(found.judge)
        print_line(f"  {found.sample_id}: people {people}, judge {judge}", wrap=False)
        for who, why in (("judge", found.judge_reasoning), ("people", found.people_reasoning)):
            if why:
                print_line(f"    {who}: {cut(why, _LONGEST)}", wrap=False)


def _verdict(value: float | str | None) -> str:
    if value is None or isinstance(value, str):
        return value or "nothing"
    return f"{value:g}" if value == int(value) else f"{value:.2f}"


def _print_rounds(tuning: Tuning) -> None:
    # The parts are stored by name, and shown in the order of their use.

    parts = ", ".join(f"{tuning.parts[part]} to {part}" for part in PARTS if part in tuning.parts)
    print_line(f"{parts}; a round is decided at level {tuning.level:.3g}")
    for each in tuning.rounds:
        _print_round(each)
    if tuning.ended is not None:
        print_line()
        print_line(tuning.ended)
    print_line()
    if tuning.gain is None:
        print_line("no change was kept; the rubric stays as it is", style="bold")
        return
    word = "closer to people" if tuning.gain.clear else "not significantly closer"
    line = f"on the report part, which no round used: {word}: {tuning.gain.sentence}"
    print_line(line, style="bold green" if tuning.gain.clear else "bold yellow", wrap=False)


def _print_round(each: Round) -> None:
    kept = plain("kept", "green") if each.kept else plain("rejected", "yellow")
    print_line()
    print_line(plain(f"round {each.number}  ", "bold"), kept, f"  {each.kind}, by {each.by}")
    if each.hypothesis:
        print_line(f"  because {each.hypothesis}", wrap=False)
    for line in each.change.split("\n"):
        if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}:
            style = "green" if line[0] == "+" else "red"
            print_line(f"  {cut(line, _LONGEST)}", style=style, wrap=False)
    for part, trial in (("tune", each.tune), ("select", each.select)):
        if trial is not None:
            print_line(f"  {part}: {trial.gain.sentence}", wrap=False)
            print_line(f"    {_briefly(trial)}", style="dim", wrap=False)
    print_line(f"  {each.reason}", wrap=False)


def _briefly(trial: RoundResult) -> str:
    parts: list[str] = []
    for each in trial.criteria:
        value = None if each.bias is None else each.bias.value
        bias = "" if value is None else f", bias {signed(round(value, 2))}"
        parts.append(f"{each.criterion} kappa {_number(each.kappa.value)}{bias}")
    return f"run {trial.run_id}: {'; '.join(parts)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
