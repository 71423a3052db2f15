"""Holding a judge against people, and making its rubric better by it: from options to a record."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.calibration.record import Calibration
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.panel import way_of
from jurybox.reporting.output_file import whole_file
from jurybox.rubric import parse_rubric, render_rubric
from jurybox.running.storing import Store
from jurybox.wiring import read_settings
from jurybox.wiring.calibration_bench import Bench, CalibrateOptions, Watch
from jurybox.wiring.calibration_folder import CalibrationFolder, key_of, open_folder
from jurybox.wiring.calibrations import calibration_row, setting_of
from jurybox.wiring.embedded_judge import NOTICE, embedded_judge, nobody_judges
from jurybox.wiring.gold_files import GoldSet, read_gold_set, write_rows
from jurybox.wiring.models import build_models
from jurybox.wiring.planning import read_rubric
from jurybox.wiring.running import now_utc
from jurybox.wiring.versions import version_of

if TYPE_CHECKING:
    from jurybox.calibration.figures import Agreement
    from jurybox.calibration.proposals import Proposal
    from jurybox.calibration.record import Tuning
    from jurybox.calibration.rounds import Answer, Request, ToPropose, Tuned, Unusable
    from jurybox.calibration.splits import GoldRow, Part
    from jurybox.judging.exchange import ModelRequest, Outcome
    from jurybox.rubric.model import Rubric
    from jurybox.running.plan import DocumentPlan

_WHOLE: Final = "gold"


class Readied(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was looked at before the first call, and what a person should know of it.

    ``versions`` are those of the judges: another version is another measurement.
    """

    options: CalibrateOptions
    document: "DocumentPlan"
    gold: GoldSet
    parts: "dict[Part, tuple[GoldRow, ...]]"
    versions: tuple[str | None, ...]
    warnings: tuple[str, ...]


def ready(options: CalibrateOptions) -> Readied:
    """Read the rubric and the gold, and refuse what can't be used before the first call.

    Raises:
        InputError: something can't be used, or there is too little of it.

    """
    from jurybox.calibration.splits import split, uneven

    document, warnings = read_rubric(options.rubric)
    rubric = parse_rubric(document.text, document.origin)
    if not options.judges:
        name = embedded_judge()
        if name is None:
            raise nobody_judges("no judge was given", "name one with --judge")
        options = msgspec.structs.replace(options, judges=(name,))
        warnings = (*warnings, NOTICE.format(name=name))
    gold = read_gold_set(Path(options.gold), rubric, limit=options.limit, cluster=options.cluster)
    parts = split(gold.rows, rubric, options.seed) if options.rounds else {}
    lopsided = uneven(parts)
    if lopsided is not None:
        warnings = (*warnings, f"{options.gold}: {lopsided}")
    if options.proposer is not None:
        if not options.rounds:
            raise InputError("a model proposes changes in rounds", "ask for some", "--rounds")
        # A missing key is better known now than after the first round.
        build_models([options.proposer], read_settings(), options.base_url)
    build_models(options.judges, read_settings(), options.base_url)
    here = str(Path.cwd())
    return Readied(
        options=options,
        document=document,
        gold=gold,
        parts=parts,
        versions=tuple(version_of(judge, here) for judge in options.judges),
        warnings=(*warnings, *gold.warnings),
    )


def calibrate(
    readied: Readied, store: Store, store_url: str | None, watch: Watch, say: Callable[[str], None]
) -> Calibration:
    """Judge the gold, compare, improve where rounds are asked for, and store the record.

    ``say`` is told what a person should know before the first call.

    Raises:
        InputError: something can't be used, or another process is at the same work.
        IncompleteError: it was stopped, or the judge is out of reach; what was judged is kept.

    """
    key = key_of(_ingredients(readied))
    # By the key and not by the folder's name: two that begin at once would make a folder each.
    with store.claim(f"calibration {key}") as mine:
        if not mine:
            problem = "another process is working on the same calibration"
            raise InputError(problem, "wait for it")
        folder = open_folder(store_url, key)
        bench = Bench(
            readied.options,
            readied.document,
            readied.gold,
            store=store,
            folder=folder,
            watch=watch,
        )
        return _worked(bench, readied, say)


def _worked(bench: Bench, readied: Readied, say: Callable[[str], None]) -> Calibration:
    options, folder, store = bench.options, bench.folder, bench.store
    if options.rounds:
        _refuse_existing(_output(options, bench.base), folder)
    if folder.before is not None:
        known = {row.id: row.created_at[:10] for row in store.calibrations(bench.base.id)}
        which = ", ".join(filter(None, (folder.before, known.get(folder.before))))
        say(f"this was measured before ({which}); judging it anew")
    if options.rounds:
        rubric, figures, run_id, tuning = _tuned(bench, readied)
    else:
        rubric, tuning = bench.base, None
        figures, run_id = _measured(bench)
    made = _record(bench, rubric, figures, run_id, tuning)
    if not any(row.id == made.id for row in store.calibrations(made.rubric_id)):
        store.add_calibration(calibration_row(made))
    folder.finish()
    return made


def _ingredients(readied: Readied) -> object:
    """Return all that decides what is asked; where to write, and how fast, decides nothing."""
    options = msgspec.structs.replace(
        readied.options, output=None, concurrency=None, allow_unpinned=False, rubric="", gold=""
    )
    return [options, readied.document.text, readied.gold.file.sha256, readied.versions]


def _measured(bench: Bench) -> "tuple[Agreement, str]":
    from jurybox.calibration.comparison import Options, compare
    from jurybox.statistics.bootstrap import Resampling

    write_rows(bench.folder.path / f"{_WHOLE}.jsonl", bench.gold.rows)
    run_id, cases = bench.judge(bench.base, _WHOLE, 0)
    options = bench.options
    resampling = Resampling(seed=options.seed, level=options.level)
    return compare(cases, bench.base, Options(resampling=resampling)), run_id


def _tuned(bench: Bench, readied: Readied) -> "tuple[Rubric, Agreement, str, Tuning]":
    """Go through the rounds, and write down what they found."""
    from jurybox.calibration.rounds import LoopOptions, improve

    options = bench.options
    for part, rows in readied.parts.items():
        write_rows(bench.folder.path / f"{part}.jsonl", rows)
    loop = improve(
        bench.base,
        {part: len(rows) for part, rows in readied.parts.items()},
        LoopOptions(
            rounds=options.rounds,
            level=options.level,
            seed=options.seed,
            model=options.proposer is not None,
            narrow=all(way_of(judge, None) != "verdict" for judge in options.judges),
        ),
    )
    request = next(loop)
    while True:
        try:
            request = loop.send(_answer(bench, request))
        except StopIteration as done:
            tuned: Tuned = done.value
            break
    tuning = tuned.tuning
    if tuned.winner is None:
        return bench.base, tuned.figures, tuned.report_run, tuning
    output = _output(options, bench.base)
    _write(output, tuned.winner)
    tuning = msgspec.structs.replace(tuning, written=str(output))
    return tuned.winner, tuned.figures, tuned.report_run, tuning


def _answer(bench: Bench, request: "Request") -> "Answer":
    from jurybox.calibration.rounds import Judged, ToJudge

    if isinstance(request, ToJudge):
        run_id, cases = bench.judge(request.rubric, request.part, request.round)
        return Judged(cases=cases, run_id=run_id)
    return asyncio.run(_proposed(bench, request))


async def _proposed(bench: Bench, request: "ToPropose") -> "Proposal | Unusable":
    """Ask the proposer; what it replied before is not asked, and paid for, again."""
    from jurybox.calibration.model_proposals import suggest
    from jurybox.judging.exchange import ModelReply
    from jurybox.running.caller import Callers
    from jurybox.running.drive import drive

    name = bench.options.proposer or ""
    label = f"round {request.round}"
    known = list(bench.folder.state.replies.get(label, []))
    models = build_models([name], read_settings(), bench.options.base_url)
    route = Callers().route(models)

    async def call(asked: "ModelRequest") -> "Outcome":
        if known:
            return ModelReply(text=known.pop(0))
        outcome = await route(asked)
        if isinstance(outcome, ModelReply):
            bench.folder.note_reply(label, outcome.text)
        elif outcome.everybody:
            what = f"{outcome.message}; nothing is lost, run the same command again to go on"
            raise IncompleteError(what)
        return outcome

    try:
        return await drive(suggest(name, request), call)
    finally:
        for model in models.values():
            await model.aclose()


def _output(options: CalibrateOptions, base: "Rubric") -> Path:
    from jurybox.calibration.changing import next_version

    return Path(options.output or f"{base.id}-{next_version(base.version)}.md")


def _refuse_existing(path: Path, folder: CalibrationFolder) -> None:
    """See that nothing is in the way, unless this very calibration may have written it."""
    if folder.is_new and path.exists():
        folder.discard()
        raise _in_the_way(path)


def _in_the_way(path: Path) -> InputError:
    return InputError("the file is there already", "name another with -o", str(path))


def _write(path: Path, rubric: "Rubric") -> None:
    data = render_rubric(rubric).encode()
    if path.exists():
        if path.read_bytes() == data:
            return
        raise _in_the_way(path)
    with whole_file(path) as file:
        file.write(data)


def _record(
    bench: Bench,
    rubric: "Rubric",
    figures: "Agreement",
    run_id: str,
    tuning: "Tuning | None",
) -> Calibration:
    setting = setting_of(bench.views[run_id])
    if setting is None:
        raise InputError("nobody judged", "name a judge with --judge", "calibrate")
    return Calibration(
        id=bench.folder.id,
        created_at=now_utc(),
        rubric_id=rubric.id,
        rubric_version=rubric.version,
        rubric_sha256=setting.rubric_sha256,
        judges=setting.judges,
        judge_version=setting.judge_version,
        prompt_sha256=setting.prompt_sha256,
        votes=setting.votes,
        gold=bench.gold.file,
        seed=bench.options.seed,
        figures=figures,
        runs=tuple(bench.runs),
        tuning=tuning,
    )
