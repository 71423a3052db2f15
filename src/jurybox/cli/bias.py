"""``jurybox bias``."""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from jurybox.app.bias_report import measure_bias, measure_verdicts
from jurybox.app.probe_judge import ProbeOptions, Prober
from jurybox.calibration.bias_results import (
    BiasReport,
    check_bias_gates,
    check_gates,
    read_gates,
)
from jurybox.cli import options
from jurybox.cli.output import print_heading, print_line, print_result, print_table, say, yes_or_no
from jurybox.cli.run import watched
from jurybox.cli.signals import FAILED, FINE, INCOMPLETE
from jurybox.datasets.open_dataset import names_file
from jurybox.documents.numbers import exact
from jurybox.errors import IncompleteError, InputError
from jurybox.reporting.stored import rubric_of
from jurybox.rubric.metrics import Comparison
from jurybox.text_format import counted


@click.command("bias")
@click.argument("run", metavar="RUN")
@options.gold_option
@options.option(
    "--probe N",
    "Judge N samples again, with harmless changes and with injections; calls the judges.",
    type=click.IntRange(1, 10_000),
)
@options.judges_option
@options.base_url_option
@options.version_drift_option
@options.seed_option
@options.level_option
@options.option(
    '--gate "NAME OP NUMBER"',
    "Fail unless a metric meets this condition; can be repeated.",
    several="gates",
)
@options.store_option
@options.json_option
def command(
    run: str,
    gold: Path | None,
    probe: int | None,
    seed: int,
    level: float,
    gates: tuple[str, ...],
    **given: Any,  # noqa: ANN401 - those of `ProbeOptions`
) -> int:
    """Measure the biases of a RUN's judges: position, length, self-preference, formatting.

    RUN is a run's id, its name, a tag, or `last`; or a file of verdicts as for `jurybox rank`, with
    `judge` and each pair in both orders, for position bias and self-preference only. These biases
    are measured on stored data, without a model. With --probe, some samples are judged again:
    unchanged, with harmless changes and with injections; the number of calls is printed first,
    and no probe is paid for twice. Every metric comes with an interval and a sentence. The exit
    code is 1 when a gate fails; a gate on an unmeasurable metric fails.

    \b
    Examples:
      jurybox bias last
      jurybox bias last --gold labels.jsonl --json
      jurybox bias last --gate "position.swap_consistency >= 0.9"
      jurybox bias judgments/verdicts.jsonl
      jurybox bias 20260301-0914 --probe 20 --gate "injection.flattery.change <= 0.05"
    """  # noqa: D301 - click reads \b as "keep these lines"
    wanted = read_gates(gates)
    for name, value in given.items() if probe is None else ():
        if value:
            option = "--judge" if name == "judges" else f"--{name.replace('_', '-')}"
            problem = "it has no effect without --probe"
            raise InputError(problem, f"add --probe N or omit {option}", option)
    if names_file(run):
        if gold is not None or probe is not None:
            problem = "recorded verdicts have no human labels, and no samples to judge again"
            raise InputError(problem, "leave out --gold and --probe", run)
        report = measure_verdicts(Path(run), say, level=level)
        check_gates(wanted, (), report.metrics())
        return _shown(report, wanted)
    with options.opened_run(run) as (store, row):
        criteria = [each.id for each in rubric_of(row).criteria]
        report = measure_bias(store, row, gold, say, level=level, seed=seed)
        check_gates(wanted, criteria, report.metrics())
        if probe is not None:
            prober = Prober(store, row, ProbeOptions(count=probe, seed=seed, **given))
            say(_announced(prober))
            try:
                biases, probed = prober.run(watched, level)
            except IncompleteError as error:
                say(f"stopped: {error}")
            else:
                biases = (*report.biases, *biases)
                report = msgspec.structs.replace(report, biases=biases, probe=probed)
    # The other metrics are printed even if the probe was stopped.
    code = _shown(report, wanted)
    return INCOMPLETE if probe is not None and report.probe is None else code


def _shown(report: BiasReport, wanted: tuple[Comparison, ...]) -> int:
    """Print the metrics and the results of the gates; return the exit code."""
    report = msgspec.structs.replace(report, gates=check_bias_gates(wanted, report.metrics()))
    print_result(report.as_data, lambda: _print(report))
    return FINE if report.passed else FAILED


def _announced(probe: Prober) -> str:
    samples = counted(len(probe.picked), "sample")
    left = [trial for trial in probe.trials if not trial.is_done]
    who = ", ".join(probe.judges)
    if not left:
        return f"probe: {samples} already judged again by {who}; no calls needed"
    kinds = sum(len(trial.kinds) for trial in left)
    calls = "many short questions" if probe.calls is None else f"at least {probe.calls} calls"
    return f"probe: judging {samples} again in {kinds} ways by {who}: {calls}"


_HEADINGS: Final = {
    "position": "position: does the order decide?",
    "verbosity": "verbosity: does length pay off?",
    "self_preference": "self-preference: does the judge favor its own family?",
    "formatting": "formatting: does it pay off?",
    "stability": "stability: do harmless changes matter?",
    "injection": "injection: can a response manipulate the judge?",
}


def _print(report: BiasReport) -> None:
    title = f"run {report.run_id}  {report.suite}" if report.suite else report.run_id
    print_line(title, style="bold")
    judges = ", ".join(report.judges) or "no judge"
    counts = f"{report.samples} samples, {report.pairs} of them pairs"
    print_line(f"judged by {judges}; {counts}; intervals at {100 * report.level:g}%")
    if report.status != "finished":
        print_line("the run isn't finished; these are the samples so far", style="yellow")
    if report.probe is not None:
        runs = ", ".join(each.run_id for each in report.probe.runs)
        print_line(f"{report.probe.samples} samples judged again in the runs {runs}")
    for bias in report.biases:
        print_heading(_HEADINGS.get(bias.bias, bias.bias))
        measured = [each for each in bias.metrics if each.value is not None]
        if measured:
            rows = ((each.name, str(each.n), each.sentence) for each in measured)
            print_table(("metric", "n", "what it says"), rows)
        unmeasured: dict[str, list[str]] = {}
        for each in bias.metrics:
            if each.value is None:
                name = each.name.removeprefix(f"{bias.bias}.")
                unmeasured.setdefault(each.reason or "unknown", []).append(name)
        for reason, names in unmeasured.items():
            print_line(f"not measurable: {reason} ({', '.join(names)})", style="dim")
    if report.gates:
        print_line()
        print_table(
            ("gate", "value", "passes", "why"),
            (
                (each.gate, exact(each.value), yes_or_no(each.passed), each.reason or "")
                for each in report.gates
            ),
        )
