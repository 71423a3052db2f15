"""The demo for people: what is shown, and why it is worth a look."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.table import Table

from jurybox.cli.demo.demo_pairs import ComparedPair, Orders
from jurybox.cli.demo.demo_run import BY_WORDS, SUITE, Judged, ScoredAnswer, ScoredReply
from jurybox.cli.output import harmless, plain, styled, wide_console
from jurybox.cli.run_view import print_verdict
from jurybox.judging.verdict import Side
from jurybox.reporting.metric_text import shown

_PAIR_LINE: Final = "{:<9} {:>8} {:>8}  {:<13} {:<12} {:<12} {:<10} {}"

_ORDERS: Final = """\
One order alone tells which place an answer had. The mean of both orders (averaged) and what was
found in each answer alone (evidence) say how far A or B leads, in log-odds. Where the two clearly
name different sides, the pair is unstable, and a person decides."""


class Silent:
    """Shows nothing: a program reads the result."""

    def rules(self, scored: Sequence[ScoredReply]) -> None:
        """Show nothing."""

    def begin(self, judge: str) -> None:
        """Show nothing."""

    def run(self, judged: Judged) -> None:
        """Show nothing."""

    def pair(self, compared: ComparedPair) -> None:
        """Show nothing."""

    def end(self, folder: str, report: Path) -> None:
        """Show nothing."""


class Shown:
    """Shows everything on standard output."""

    def __init__(self) -> None:
        self._by_words: dict[str, ScoredAnswer] = {}
        self._paired = False

    def rules(self, scored: Sequence[ScoredReply]) -> None:
        """Show what rules make of some replies."""
        first = scored[0]
        _head(f"Rules: the document `{first.rubric}` scores a reply by itself, without any model.")
        click.echo(f'To "{first.task}"')
        for each in scored:
            overall = "-" if each.overall is None else f"{each.overall:.2f}"
            click.echo(f'  {overall}  {each.band or "":<12}  "{each.reply}"')

    def begin(self, judge: str) -> None:
        """Show who is going to judge the answers."""
        if judge == BY_WORDS:
            _head("Words: six answers, named for what they are, judged by the words they share.")
            click.echo(f"$ jurybox run {SUITE} --judge {BY_WORDS}")
        else:
            _head(f"A real model on this machine, {judge}, judges three of the answers.")
            click.echo(f"$ jurybox run {SUITE} --limit 3")

    def run(self, judged: Judged) -> None:
        """Show what a judge made of the answers, beside what words alone made of them."""
        out = wide_console()
        out.print(self._table(judged))
        print_verdict(out, judged.view, judged.rubric)
        if judged.judge == BY_WORDS:
            self._by_words = {each.id: each for each in judged.answers}
            click.echo("\nWords know no meaning: `wrong` passes, and `other-words` doesn't.")
        else:
            click.echo("\nA small model errs too: hold its scores against the answers' names.")

    def _table(self, judged: Judged) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        criteria = [each.id for each in judged.rubric.criteria]
        beside = ["by words"] if self._by_words else []
        for heading in ("answer", *criteria, "passes", *beside):
            table.add_column(heading)
        for each in judged.answers:
            cells = [each.id, *(shown(each.scores[name]) for name in criteria), _word(each.passed)]
            before = self._by_words.get(each.id)
            if before is not None:
                cells.append(" ".join(shown(before.scores[name]) for name in criteria))
            table.add_row(*(plain(cell) for cell in cells))
        return table

    def pair(self, compared: ComparedPair) -> None:
        """Show what the order does to a judge, a line a pair."""
        if not self._paired:
            self._paired = True
            _head("Its bias: two answers, shown in both orders; the probability of `the first`.")
            heads = ("one order", "averaged", "evidence", "verdict", "better is")
            click.echo(styled(_line("pair", "A first", "B first", *heads), bold=True))
        click.echo(harmless(pair_line(compared)))

    def end(self, folder: str, report: Path) -> None:
        """Say what is left to look at."""
        if self._paired:
            click.echo(f"\n{_ORDERS}")
        where = "this folder" if Path(folder) == Path() else folder
        click.echo(f"\nOpen {report} in a browser. All that was run is in {where}: change it,")
        click.echo(f"and run it again there with `jurybox run {SUITE}`; `jurybox show last` has")
        click.echo("all of its figures.")


def pair_line(compared: ComparedPair) -> str:
    """Return what became of a pair, as a line."""
    pair, orders = compared.pair, compared.orders
    if orders is None:
        return f"{pair.id:<9} no valid vote: {compared.trouble or 'the model gave none'}"
    return _line(
        pair.id,
        f"{orders.a_first:.2f}",
        f"{orders.b_first:.2f}",
        _one_order(orders),
        _leads(orders.averaged),
        _leads(orders.evidence),
        _verdict(compared.winner, stable=compared.stable is not False),
        pair.better,
    )


def _line(*cells: str) -> str:
    return _PAIR_LINE.format(*cells).rstrip()


def _one_order(orders: Orders) -> str:
    """Return what would be said by who asks in one order only: A first, then B first."""
    half = 0.5
    first = "A" if orders.a_first >= half else "B"
    second = "B" if orders.b_first >= half else "A"
    return first if first == second else f"{first}, then {second}"


def _leads(lead: float) -> str:
    return f"{'A' if lead >= 0 else 'B'} by {abs(lead):.2f}"


def _verdict(winner: Side | None, *, stable: bool) -> str:
    return f"{winner}" if stable else "unstable"


def _word(passed: bool | None) -> str:
    return "-" if passed is None else "yes" if passed else "no"


def _head(text: str) -> None:
    click.echo("\n" + styled(text, bold=True))
