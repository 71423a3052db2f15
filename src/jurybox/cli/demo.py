"""``jurybox demo``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from jurybox.cli.options import json_option
from jurybox.cli.output import add_row, harmless, print_json, say, styled, table, wide_console
from jurybox.cli.signals import FINE, INCOMPLETE

if TYPE_CHECKING:
    from rich.table import Table

    from jurybox.cli.demo_run import ComparedPair, DemoFolder, DemoRun, Orders, ScoredReply

_FOLDER: Final = ".jurybox/demo"
_NO_MODEL: Final = "none"
_JUDGED_BY_MODEL: Final = 3  # a model on two cores takes about 20 seconds per answer
_PAIR_LINE: Final = "{:<9} {:>8} {:>8}  {:<13} {:<12} {:<12} {:<10} {}"
_ORDERS: Final = """\
One order alone shows which place an answer had. The mean of both orders (averaged) and what was
found in each answer alone (evidence) show the lead of A or B, in log-odds. Where the two clearly
favor different sides, the pair is unstable, and goes to human review."""


@click.command("demo")
@click.argument("folder", default=_FOLDER, metavar="[FOLDER]")
@click.option(
    "--model",
    metavar="NAME",
    help="The embedded model that judges, or `none` for the part that needs no model; defaults to"
    " the default judge, where it is on this machine.",
)
@json_option
def command(folder: str, model: str | None, as_json: bool) -> int:
    """Show jurybox at work, without a key: scores by rules, a judged suite, a judge's bias.

    First the part that needs no model: replies scored by a rubric's rules, and six answers judged
    by their words. Then, if the embedded model is on this machine, it judges three of the answers
    and compares a pair in both orders, which shows its position bias. The suite, the store of the
    runs and report.html are left in FOLDER (default: .jurybox/demo). Some answers are deliberately
    wrong, so a failed gate is no failure here: the exit code is 0, or 3 if the demo was stopped.

    \b
    Examples:
      jurybox demo
      jurybox demo try-it --model none
      jurybox demo try-it --model smollm2-135m
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.cli.demo_run import BY_WORDS, DemoFolder, rule_scores

    judge = None if model == _NO_MODEL else judge_for(model)
    place = DemoFolder(Path(folder))
    scored = rule_scores()
    if not as_json:
        _print_rules(scored)
    runs: list[DemoRun] = []
    pairs: list[ComparedPair] | None = None
    for name in (BY_WORDS, judge):
        if name is not None and all(run.stopped is None for run in runs):
            _judge(place, name, runs, show=not as_json)
    complete = all(run.stopped is None for run in runs)
    if judge is not None and complete:
        pairs = _compare(judge, show=not as_json)
    report = place.write_report(runs[-1])
    missing = missing_model() if judge is None else None
    if as_json:
        print_json(
            {
                "folder": folder,
                "report": str(report),
                "rules": scored,
                "runs": [run.as_data() for run in runs],
                "pairs": pairs,
                "missing": missing,
            }
        )
    if missing is not None:
        say(missing)
    if not as_json:
        _print_end(folder, report, paired=pairs is not None)
    return FINE if complete else INCOMPLETE


def _judge(place: "DemoFolder", judge: str, runs: "list[DemoRun]", *, show: bool) -> None:
    """Add a run by this judge."""
    if show:
        _print_start(judge)
    runs.append(place.judge(judge, _JUDGED_BY_MODEL if runs else None))
    if show:
        _print_run(runs)


def _compare(judge: str, *, show: bool) -> "list[ComparedPair]":
    """Compare the pairs, and print each when it is done: a small model takes its time."""
    from jurybox.cli.demo_run import compare_pairs

    pairs: list[ComparedPair] = []
    for compared in compare_pairs(judge):
        pairs.append(compared)
        if show:
            _print_pair(compared, first=len(pairs) == 1)
    return pairs


def judge_for(name: str | None) -> str | None:
    """Return the judge's name: the given one, or the embedded judge if it is installed."""
    from jurybox.models.local.files import find_model, is_path
    from jurybox.wiring import embedded_judge

    if name is None:
        return embedded_judge()
    bare = name.removeprefix("local/")
    return f"local/{bare if is_path(bare) else find_model(bare).name}"


def missing_model() -> str:
    """Return how to get the part that needs a model, as one line."""
    from jurybox.models.local.files import default_judge, format_bytes, installed_runtime
    from jurybox.wiring import embedded_judge

    extra = "" if installed_runtime() else '`pip install "jurybox[local]"`, '
    if embedded_judge() is not None:
        return "the embedded judge was left out; `jurybox demo` without --model shows it at work"
    size = format_bytes(default_judge().bytes)
    return (
        "the rest needs the embedded judge, which isn't on this machine:"
        f" {extra}`jurybox model pull` ({size}), then `jurybox demo` again"
    )


def _print_rules(scored: "Sequence[ScoredReply]") -> None:
    first = scored[0]
    _print_head(f"Rules: the document `{first.rubric}` scores a reply by itself, without a model.")
    click.echo(f'To "{first.task}"')
    for each in scored:
        overall = "-" if each.overall is None else f"{each.overall:.2f}"
        click.echo(f'  {overall}  {each.band or "":<12}  "{each.reply}"')


def _print_start(judge: str) -> None:
    from jurybox.cli.demo_run import BY_WORDS, SUITE

    if judge == BY_WORDS:
        _print_head("Words: six answers, named for what they are, judged by the words they share.")
        click.echo(f"$ jurybox run {SUITE} --judge {BY_WORDS}")
    else:
        _print_head(f"A real model on this machine, {judge}, judges three of the answers.")
        click.echo(f"$ jurybox run {SUITE} --limit {_JUDGED_BY_MODEL}")


def _print_run(runs: "Sequence[DemoRun]") -> None:
    """Print the last run, next to the scores by words if that was an earlier one."""
    from jurybox.cli.run_view import print_verdict, print_why

    out = wide_console()
    run = runs[-1]
    by_words = runs[0] if len(runs) > 1 else None
    out.print(_answers(run, by_words))
    out.print()
    print_verdict(out, run.view, run.rubric)
    print_why(out, run.view)
    if by_words is None:
        click.echo("\nWords carry no meaning: `wrong` passes, and `other-words` doesn't.")
    else:
        click.echo("\nA small model errs too: compare its scores with the names of the answers.")


def _answers(run: "DemoRun", by_words: "DemoRun | None") -> "Table":
    from jurybox.reporting.metric_text import shown

    criteria = [each.id for each in run.rubric.criteria]
    made = table("answer", *criteria, "passes", *([] if by_words is None else ["by words"]))
    before = {} if by_words is None else {each.id: each.scores for each in by_words.answers}
    for each in run.answers:
        passes = "-" if each.passed is None else "yes" if each.passed else "no"
        cells = [each.id, *(shown(each.scores[name]) for name in criteria), passes]
        if each.id in before:
            cells.append(" ".join(shown(before[each.id][name]) for name in criteria))
        add_row(made, *cells)
    return made


def _print_pair(compared: "ComparedPair", *, first: bool) -> None:
    if first:
        _print_head("Its bias: two answers, shown in both orders; the probability of `the first`.")
        heads = ("one order", "averaged", "evidence", "verdict", "better is")
        click.echo(styled(_PAIR_LINE.format("pair", "A first", "B first", *heads), bold=True))
    click.echo(harmless(pair_line(compared)))


def pair_line(compared: "ComparedPair") -> str:
    """Return the outcome of a pair as a line."""
    pair, orders = compared.pair, compared.orders
    if orders is None:
        return f"{pair.id:<9} no valid vote: {compared.trouble or 'the model gave none'}"
    return _PAIR_LINE.format(
        pair.id,
        f"{orders.a_first:.2f}",
        f"{orders.b_first:.2f}",
        _one_order(orders),
        _leads(orders.averaged),
        _leads(orders.evidence),
        "unstable" if compared.stable is False else f"{compared.winner}",
        pair.better,
    )


def _one_order(orders: "Orders") -> str:
    """Return the winner with A first, then with B first if that differs."""
    half = 0.5
    first = "A" if orders.a_first >= half else "B"
    second = "B" if orders.b_first >= half else "A"
    return first if first == second else f"{first}, then {second}"


def _leads(lead: float) -> str:
    return f"{'A' if lead >= 0 else 'B'} by {abs(lead):.2f}"


def _print_end(folder: str, report: Path, *, paired: bool) -> None:
    from jurybox.cli.demo_run import SUITE

    if paired:
        click.echo(f"\n{_ORDERS}")
    where = "this folder" if Path(folder) == Path() else folder
    click.echo(f"\nOpen {report} in a browser. All that was run is in {where}: change it,")
    click.echo(f"and run it again there with `jurybox run {SUITE}`; `jurybox show last` shows")
    click.echo("all of its metrics.")


def _print_head(text: str) -> None:
    click.echo("\n" + styled(text, bold=True))
