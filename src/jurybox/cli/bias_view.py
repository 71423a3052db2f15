"""What moves the judges of a run, on the terminal: sentences first, then every figure."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.table import Table

from jurybox.cli.output import plain, wide_console
from jurybox.reporting.figures import exact, shown

if TYPE_CHECKING:
    from jurybox.calibration.bias import Bias
    from jurybox.calibration.bias_report import BiasGate, BiasReport
    from jurybox.statistics.bias.figure import BiasFigure

_HEADINGS: Final = {
    "position": "position: does the place decide?",
    "verbosity": "verbosity: does length pay?",
    "self_preference": "self-preference: does the judge favour its own family?",
    "formatting": "formatting: does layout pay?",
    "stability": "stability: do harmless changes matter?",
    "injection": "injection: can a response talk the judge round?",
}


def print_bias(report: "BiasReport") -> None:
    """Print all figures of a run, and the gates they were held against."""
    out = wide_console()
    out.print(plain(f"run {report.run_id}  {report.suite}", style="bold"))
    judges = ", ".join(report.judges) or "nobody"
    counts = f"{report.samples} samples, {report.pairs} of them pairs"
    out.print(plain(f"judged by {judges}; {counts}; intervals at {100 * report.level:g}%"))
    if report.status != "finished":
        out.print(plain("the run isn't finished: this is what is stored so far", style="yellow"))
    if report.probe is not None:
        runs = ", ".join(each.run_id for each in report.probe.runs)
        out.print(plain(f"{report.probe.samples} samples judged again in the runs {runs}"))
    for bias in report.biases:
        _print_bias(bias)
    if report.gates:
        out.print()
        out.print(_gates(report.gates))


def _print_bias(bias: "Bias") -> None:
    out = wide_console()
    out.print()
    out.print(plain(_HEADINGS.get(bias.bias, bias.bias), style="bold"))
    told = [figure for figure in bias.figures if figure.value is not None]
    for figure in told:
        if not _is_detail(figure):
            out.print(plain(f"  {figure.sentence}"))
    for reason, names in _untold(bias):
        out.print(plain(f"  can't be told: {reason} ({', '.join(names)})", style="dim"))
    if told:
        out.print(_figures(told))


def _is_detail(figure: "BiasFigure") -> bool:
    """Tell whether a figure's sentence says what another one's says already."""
    return figure.name.startswith(("stability.", "injection.")) and not figure.name.endswith(
        ".change"
    )


def _untold(bias: "Bias") -> Iterator[tuple[str, list[str]]]:
    """Yield every reason once, with the figures that it keeps from being told."""
    reasons: dict[str, list[str]] = {}
    for figure in bias.figures:
        if figure.value is None:
            name = figure.name.removeprefix(f"{bias.bias}.")
            reasons.setdefault(figure.reason or "unknown", []).append(name)
    yield from reasons.items()


def _figures(figures: "list[BiasFigure]") -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("  figure", "value", "from", "to", "n", "samples"):
        table.add_column(heading, justify="left" if heading == "  figure" else "right")
    for figure in figures:
        ends = ("-", "-")
        if figure.interval is not None:
            ends = (shown(figure.interval.low), shown(figure.interval.high))
        cells = (f"  {figure.name}", shown(figure.value), *ends)
        table.add_row(*map(plain, (*cells, str(figure.n), str(figure.samples))))
    return table


def _gates(gates: "tuple[BiasGate, ...]") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("gate", "value", "holds", "why"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for gate in gates:
        word, colour = ("yes", "green") if gate.passed else ("no", "red")
        table.add_row(
            plain(gate.gate),
            plain(exact(gate.value)),
            plain(word, style=colour),
            plain(gate.reason or ""),
        )
    return table
