"""``jurybox demo``: replies scored by rules, answers by a judge, and a pair in both orders."""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jurybox.cli.options import json_option, opened
from jurybox.cli.output import (
    add_row,
    harmless,
    print_json,
    say,
    styled,
    table,
    wide_console,
    write_new_files,
)
from jurybox.cli.signals import FINE, INCOMPLETE
from jurybox.documents.numbers import shown

if TYPE_CHECKING:
    from jurybox.judging.flow import ModelRequest, Outcome

_FOLDER: Final = ".jurybox/demo"
_NO_MODEL: Final = "none"
_JUDGED_BY_MODEL: Final = 3  # a model on two cores takes about 20 seconds per answer
_BY_WORDS: Final = "python/judge:strict"
_SUITE: Final = "suite.yaml"
_DATA: Final = "jurybox.cli.demo_data"
# The judge is the one that `jurybox init` writes; it reads the prompt of the same rubric.
_FILES: Final = {_SUITE: _DATA, "answers.jsonl": _DATA, "judge.py": "jurybox.cli.starter"}
_PAIR_RUBRIC: Final = "answer-quality"
_ORDERS: Final = """\
One order alone shows which place an answer had. The verdict goes by both orders and by what was
found in each answer alone; where these favor different sides, the pair is unstable, and goes to
human review."""

Data = dict[str, Any]


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
    judge = None if model == _NO_MODEL else judge_for(model)
    place = Path(folder)
    texts = {name: resources.files(where) / name for name, where in _FILES.items()}
    write_new_files(place, {name: each.read_text("utf-8") for name, each in texts.items()})
    scored = rule_scores()
    if not as_json:
        _print_rules(scored)
    runs: list[Data] = []
    pairs: list[Data] | None = None
    for name in filter(None, (_BY_WORDS, judge)):
        if all(run["stopped"] is None for run in runs):
            _run(place, name, runs, show=not as_json)
    complete = all(run["stopped"] is None for run in runs)
    if judge is not None and complete:
        pairs = [_compared(pair, judge, show=not as_json) for pair in demo_data("pairs.json")]
    missing = missing_model() if judge is None else None
    report = place / "report.html"
    if as_json:
        found = {"folder": folder, "report": str(report), "rules": scored, "runs": runs}
        print_json({**found, "pairs": pairs, "missing": missing})
    if missing is not None:
        say(missing)
    if not as_json:
        _print_end(folder, report, paired=pairs is not None)
    return FINE if complete else INCOMPLETE


def demo_data(name: str) -> Any:  # noqa: ANN401 - JSON
    """Read a file that comes with the demo."""
    import msgspec

    return msgspec.json.decode((resources.files(_DATA) / name).read_bytes())


def rule_scores() -> list[Data]:
    """Score the demo's replies by the rules of a rubric."""
    from jurybox.app.evaluate_once import evaluate
    from jurybox.scoring.by_rules import RulesReport

    read = demo_data("replies.json")
    scored: list[Data] = []
    for reply in read.pop("replies"):
        report = evaluate(**read, response=reply)
        band = report.automated.band if isinstance(report, RulesReport) else None
        scored.append({**read, "reply": reply, "overall": report.overall, "band": band})
    return scored


def _run(place: Path, judge: str, runs: list[Data], *, show: bool) -> None:
    """Judge the answers in a stored run, add it to the others, and write the report on it."""
    from functools import partial

    from jurybox.app.prepare import prepare
    from jurybox.app.run_suite import start_run
    from jurybox.app.suite_choice import RunOptions
    from jurybox.cli.options import resume_line
    from jurybox.cli.run import run_with_progress
    from jurybox.reporting.output_file import whole_file
    from jurybox.reporting.reports import write_report
    from jurybox.reporting.stored import SampleRecord

    if show:
        _print_start(judge)
    limit = _JUDGED_BY_MODEL if runs else None
    prepared = prepare(place / _SUITE, RunOptions(judges=(judge,), limit=limit))
    rubric = prepared.procedure.judging.rubric
    criteria = [each.id for each in rubric.criteria]
    url = str(place / ".jurybox/jurybox.db")
    with opened(url, create=True) as store:
        ended = run_with_progress(partial(start_run, prepared, store), url)
        view = ended.view
        answers = [
            {
                "id": each.id,
                "scores": {name: each.scores.get(name) for name in criteria},
                "passed": each.passed,
            }
            for each in map(SampleRecord, store.samples(view.run_id))
        ]
        if (row := store.run(view.run_id)) is not None:
            with whole_file(place / "report.html") as file:
                write_report(file, "html", view, row, store)
    if ended.stopped is not None:
        say(f"stopped: {ended.stopped}")
        say(resume_line(view.run_id, url))
    own = {"run_id": view.run_id, "judge": judge, "answers": answers}
    runs.append({**own, "gates": view.gates, "stopped": ended.stopped})
    if show:
        from jurybox.cli.run_view import print_verdict, print_why

        out = wide_console()
        _print_answers(runs, criteria)
        out.print()
        print_verdict(out, view, rubric)
        print_why(out, view)
        meaning = "A small model errs too: compare its scores with the names of the answers."
        if len(runs) == 1:
            meaning = "Words carry no meaning: `wrong` passes, and `other-words` doesn't."
        click.echo(f"\n{meaning}")


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


def _print_rules(scored: Sequence[Data]) -> None:
    first = scored[0]
    head = f"Rules: the document `{first['rubric']}` scores a reply by itself, without a model."
    _print_head(head)
    click.echo(f'To "{first["task"]}"')
    for each in scored:
        overall = "-" if each["overall"] is None else f"{each['overall']:.2f}"
        click.echo(f'  {overall}  {each["band"] or "":<12}  "{each["reply"]}"')


def _print_start(judge: str) -> None:
    if judge == _BY_WORDS:
        _print_head("Words: six answers, named for what they are, judged by the words they share.")
        click.echo(f"$ jurybox run {_SUITE} --judge {_BY_WORDS}")
    else:
        _print_head(f"A real model on this machine, {judge}, judges three of the answers.")
        click.echo(f"$ jurybox run {_SUITE} --limit {_JUDGED_BY_MODEL}")


def _print_answers(runs: Sequence[Data], criteria: Sequence[str]) -> None:
    """Print the last run, next to the scores by words if that was an earlier one."""
    words = {each["id"]: each["scores"] for each in runs[0]["answers"]} if len(runs) > 1 else {}
    made = table("answer", *criteria, "passes", *(["by words"] if words else []))
    for each in runs[-1]["answers"]:
        passes = {None: "-", True: "yes", False: "no"}[each["passed"]]
        before = words.get(each["id"], {})
        cells = [each["id"], *(shown(each["scores"][name]) for name in criteria), passes]
        add_row(made, *cells, *([" ".join(map(shown, before.values()))] if before else []))
    wide_console().print(made)


def _compared(pair: Data, judge: str, *, show: bool) -> Data:
    """Compare a pair in both orders, and print it when it is done: a small model takes its time."""
    from jurybox.app.evaluate_once import evaluate

    if show:
        _print_head("Its bias: two answers, shown in both orders; which one does it prefer?")
    replies: dict[ModelRequest, Outcome] = {}
    report = evaluate(
        rubric=_PAIR_RUBRIC,
        task=pair["task"],
        context=pair["context"],
        response=pair["a"],
        response_b=pair["b"],
        judges=judge,
        votes=1,
        on_exchange=replies.__setitem__,
    )
    lost = report.lost_votes
    compared: Data = {
        "pair": pair,
        "orders": None if lost else _orders(pair, judge, replies),
        "winner": report.winner,
        "stable": report.stable,
        "trouble": lost[0].reason if lost else None,
    }
    if show:
        click.echo(harmless(pair_line(compared)))
    return compared


def _orders(pair: Data, judge: str, replies: "Mapping[ModelRequest, Outcome]") -> Data | None:
    """Replay the vote over its replies, and return the winner of each order."""
    from jurybox.app.evaluate_once import single_procedure, single_row
    from jurybox.engine.driver import drive_sync
    from jurybox.judging.evidence.evidence_votes import compare
    from jurybox.judging.flow import Unscored
    from jurybox.reporting.pair_votes import ordered_vote
    from jurybox.wiring import load_rubric

    row = single_row(
        task=pair["task"], context=pair["context"], response=pair["a"], response_b=pair["b"]
    )
    judging = single_procedure(load_rubric(_PAIR_RUBRIC), [judge], 1, pair=True).judging
    (seat,) = judging.seats([judge], 1)
    assert row.response is not None  # noqa: S101 - it was given
    vote = drive_sync(compare(judging, row.sample(row.response), seat), replies.__getitem__)
    if isinstance(vote, Unscored):
        return None
    found = ordered_vote(seat, vote)
    return {"a_first": found.straight, "b_first": found.swapped}


def pair_line(compared: Data) -> str:
    """Return the outcome of a pair as a line."""
    pair, orders = compared["pair"], compared["orders"]
    if orders is None:
        return f"{pair['id']}: no valid vote: {compared['trouble'] or 'the model gave none'}"
    verdict = "unstable" if compared["stable"] is False else compared["winner"]
    alone = f"with A first {orders['a_first']}, with B first {orders['b_first']}"
    return f"{pair['id']}: {alone}; verdict {verdict}, better is {pair['better']}"


def _print_end(folder: str, report: Path, *, paired: bool) -> None:
    if paired:
        click.echo(f"\n{_ORDERS}")
    where = "this folder" if Path(folder) == Path() else folder
    click.echo(f"\nOpen {report} in a browser. All that was run is in {where}: change it,")
    click.echo(f"and run it again there with `jurybox run {_SUITE}`.")


def _print_head(text: str) -> None:
    click.echo("\n" + styled(text, bold=True))
