"""A calibration on the terminal: how far judge and people agree, then where they don't."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from rich.table import Table

from jurybox.calibration.figures import Agreement, CriterionAgreement, Disagreement
from jurybox.calibration.record import Calibration, Round, Trial, Tuning
from jurybox.calibration.splits import PARTS
from jurybox.cli.output import plain, wide_console
from jurybox.reporting.figures import signed
from jurybox.statistics.figure import Figure

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST: Final = 300


def print_calibration(made: Calibration) -> None:
    """Print a calibration."""
    out = wide_console()
    out.print(plain(f"calibration {made.id}", style="bold"))
    gold = made.gold
    votes = "1 vote" if made.votes == 1 else f"{made.votes} votes"
    head = (
        f"{made.rubric_id} {made.rubric_version}",
        f"judged by {', '.join(made.judges)}, {votes}",
        f"{gold.used} of {gold.rows} rows of {gold.name} have gold",
    )
    out.print(plain(", ".join(head)))
    if made.tuning is not None:
        _print_rounds(out, made.tuning)
    _print_agreement(out, made)
    for each in made.figures.criteria:
        _print_confusion(out, each)
    _print_worst(out, made.figures)
    out.print()
    dollars = [each.dollars for each in made.runs]
    cost = "unknown" if None in dollars else f"{sum(filter(None, dollars)):.4f} US dollars"
    runs = ", ".join(dict.fromkeys(each.run_id for each in made.runs))
    _line(out, f"runs  {runs}")
    out.print(plain(f"cost  {cost}"))
    if made.tuning is not None and made.tuning.written is not None:
        out.print(plain(f"wrote {made.tuning.written}", style="bold green"))


def _table(*headings: str, left: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", justify="left" if place < left else "right")
    return table


def _row(table: Table, cells: Iterable[str]) -> None:
    table.add_row(*(plain(cell) for cell in cells))


def _print_agreement(out: "Console", made: Calibration) -> None:
    out.print()
    which = "" if made.tuning is None else " on the report part"
    names = ("n", "unscored", "exact", "kappa", "(interval)", "spearman", "error")
    table = _table(f"judge with people{which}", *names)
    for each in made.figures.criteria:
        cells = (
            each.criterion,
            str(each.n),
            str(each.unscored),
            _value(each.exact),
            _value(each.kappa),
            _ends(each.kappa),
            "" if each.spearman is None else _value(each.spearman),
            "" if each.error is None else f"{each.error:.2f}",
        )
        _row(table, cells)
    out.print(table)
    if any(each.ceiling is not None for each in made.figures.criteria):
        out.print()
        _print_ceiling(out, made.figures)
    out.print()
    for each in made.figures.criteria:
        if each.bias is not None:
            clear = each.bias.direction != "undecided"
            out.print(plain(each.bias.sentence, style="yellow" if clear else ""))
        if each.unstable:
            line = f"{each.criterion}: {each.unstable} pairs changed their winner with the order"
            out.print(plain(line, style="yellow"))
        for note in (each.note, each.kappa.reason):
            if note is not None:
                out.print(plain(f"{each.criterion}: {note}"))


def _print_ceiling(out: "Console", figures: Agreement) -> None:
    names = ("people", "n", "exact", "kappa", "alpha", "judge with one of them: kappa")
    table = _table("people with each other", *names)
    for each in figures.criteria:
        found = each.ceiling
        if found is not None:
            cells = (
                each.criterion,
                str(found.people),
                str(found.n),
                _number(found.exact),
                _number(found.kappa),
                _value(found.alpha),
                _number(found.judge_kappa),
            )
            _row(table, cells)
    out.print(table)


def _print_confusion(out: "Console", each: CriterionAgreement) -> None:
    found = each.confusion
    if found is None or not each.n:
        return
    out.print()
    table = _table(f"{each.criterion}: people (down), judge (across)", *found.labels)
    for label, counts in zip(found.labels, found.counts, strict=True):
        _row(table, (label, *(str(count) if count else "." for count in counts)))
    out.print(table)


def _print_worst(out: "Console", figures: Agreement) -> None:
    for each in figures.criteria:
        for number, found in enumerate(each.worst):
            if not number:
                out.print()
                out.print(plain(f"{each.criterion}: furthest apart", style="bold"))
            for line in _disagreement(found):
                _line(out, line)


def _disagreement(found: Disagreement) -> Iterable[str]:
    yield f"  {found.sample_id}: people {_said(found.people)}, judge {_said(found.judge)}"
    for who, why in (("judge", found.judge_reasoning), ("people", found.people_reasoning)):
        if why:
            flat = " ".join(why.split())
            yield f"    {who}: {flat if len(flat) <= _LONGEST else flat[:_LONGEST] + '...'}"


def _said(value: float | str | None) -> str:
    if value is None:
        return "nothing"
    return (
        value if isinstance(value, str) else f"{value:g}" if value == int(value) else f"{value:.2f}"
    )


def _print_rounds(out: "Console", tuning: Tuning) -> None:
    # A store keeps them by their names; they are gone through in another order.
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
        out.print(plain("nothing was kept; the rubric stays as it is", style="bold"))
        return
    word = "nearer to people" if tuning.gain.clear else "not nearer beyond noise"
    line = f"on the report part, which no round has seen: {word}: {tuning.gain.sentence}"
    _line(out, line, "bold green" if tuning.gain.clear else "bold yellow")


def _line(out: "Console", text: str, style: str = "") -> None:
    """Print a line that is never broken: a diff has to stay one."""
    out.print(plain(text, style=style), soft_wrap=True)


def _print_round(out: "Console", each: Round) -> None:
    out.print()
    head = plain(f"round {each.number}  ", style="bold")
    head.append_text(
        plain("kept" if each.kept else "refused", style="green" if each.kept else "yellow")
    )
    head.append_text(plain(f"  {each.kind}, by {each.by}"))
    out.print(head)
    if each.hypothesis:
        _line(out, f"  since {each.hypothesis}")
    for line in each.change.split("\n"):
        if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}:
            shown = line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
            _line(out, f"  {shown}", "green" if line[0] == "+" else "red")
    for part, trial in (("tune", each.tune), ("select", each.select)):
        if trial is not None:
            _line(out, f"  {part}: {trial.gain.sentence}")
            _line(out, f"    {_briefly(trial)}", "dim")
    _line(out, f"  {each.reason}")


def _briefly(trial: Trial) -> str:
    parts: list[str] = []
    for each in trial.criteria:
        bias = "" if each.bias is None else f", bias {signed(round(each.bias, 2))}"
        parts.append(f"{each.criterion} kappa {_number(each.kappa)}{bias}")
    return f"run {trial.run_id}: {'; '.join(parts)}"


def _value(figure: Figure) -> str:
    return _number(figure.value)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _ends(figure: Figure) -> str:
    found = figure.interval
    return "" if found is None else f"{found.low:.2f} to {found.high:.2f}"
