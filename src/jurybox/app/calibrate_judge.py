"""Holding a judge against people, and making its rubric better by it: from options to a record."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.app.calibrations import (
    CalibrationFolder,
    calibration_row,
    key_of,
    open_folder,
    setting_of,
)
from jurybox.app.gold_sets import GoldSet, read_gold_set, write_rows
from jurybox.app.ids import now_utc
from jurybox.app.job import Job, OnProgress, OnStart
from jurybox.app.metadata import version_of
from jurybox.app.prepare import ChosenSuite, Prepared, RunOptions, prepare_chosen, read_rubric
from jurybox.app.run_suite import RunResult, resume_run, start_run
from jurybox.calibration.calibration_record import Calibration, JudgedRun
from jurybox.calibration.cases import GoldCase, read_comments, read_verdict
from jurybox.calibration.splits import words_of
from jurybox.engine.plan import DocumentPlan
from jurybox.engine.ports import Store
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.protocol import way_of
from jurybox.reporting.output_file import whole_file
from jurybox.reporting.view import RunView, finished_view
from jurybox.rubric import parse_rubric, render_rubric
from jurybox.rubric.model import Rubric
from jurybox.suite import JudgeSpec, Suite
from jurybox.wiring import (
    DEFAULT_JUDGE_NOTICE,
    build_models,
    embedded_judge,
    no_judge_error,
    read_settings,
)

if TYPE_CHECKING:
    from jurybox.calibration.agreement_values import Agreement
    from jurybox.calibration.calibration_record import Tuning
    from jurybox.calibration.proposals import Proposal
    from jurybox.calibration.splits import GoldRow, Part
    from jurybox.calibration.tuning_loop import Answer, Request, ToPropose, Tuned, Unusable
    from jurybox.judging.exchange import ModelRequest, Outcome

_REPORT: Final = msgspec.json.Decoder(EvaluationReport)

Start = Callable[[OnProgress, OnStart], RunResult]
Watch = Callable[[Start], RunResult]
"""Starts a run, or goes on with one, before somebody's eyes."""


class CalibrateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is held against what, and how.

    Attributes:
        rubric: its name or path.
        gold: a dataset whose rows say what people think.
        judges: who judges; the embedded judge where none is named.
        votes: how many votes a sample gets; the rubric's number otherwise.
        rounds: how many changes are tried; none where the judge is only measured.
        limit: how many rows are used, from the first.
        cluster: the field of rows that belong together.
        seed: of the split and of the intervals.
        level: of the intervals.
        proposer: a model that thinks of changes, every second round.
        output: where a new version of the rubric is written.
        base_url: the address of an OpenAI-compatible endpoint.
        concurrency: the most calls at once to one endpoint.
        allow_unpinned: whether names of models may leave the version open.

    """

    rubric: str
    gold: str
    judges: tuple[str, ...] = ()
    votes: int | None = None
    rounds: int = 0
    limit: int | None = None
    cluster: str | None = None
    seed: int = 0
    level: float = 0.95
    proposer: str | None = None
    output: str | None = None
    base_url: str | None = None
    concurrency: int | None = None
    allow_unpinned: bool = False


class Bench:
    """What a calibration under way works with: judges parts of the gold, each in a run."""

    def __init__(
        self,
        options: CalibrateOptions,
        document: DocumentPlan,
        gold: GoldSet,
        *,
        store: Store,
        folder: CalibrationFolder,
        watch: Watch,
    ) -> None:
        self.options = options
        self.document = document
        self.base = parse_rubric(document.text, document.origin)
        self.gold = gold
        self.store = store
        self.folder = folder
        self.runs: list[JudgedRun] = []
        self.views: dict[str, RunView] = {}
        self._watch = watch
        self._rows = {each.row.id: each for each in gold.rows}

    def judge(self, rubric: Rubric, part: str, number: int) -> tuple[str, tuple[GoldCase, ...]]:
        """Have a part judged by a rubric; return the run, and what came of every sample.

        Raises:
            InputError: a model or a row can't be used.
            IncompleteError: the run was stopped, or the judge gave nothing that counts.

        """
        view = self._view(rubric, part)
        self.runs.append(
            JudgedRun(run_id=view.run_id, part=part, round=number, dollars=view.cost.get("dollars"))
        )
        self.views[view.run_id] = view
        cases = tuple(self._cases(view.run_id, rubric))
        if not any(_is_scored(case) for case in cases):
            self.folder.forget_run(view.run_id)
            what = f"run {view.run_id}: the judge gave nothing that can be held against people"
            raise IncompleteError(f"{what}; `jurybox show {view.run_id}` says why")
        return view.run_id, cases

    def _view(self, rubric: Rubric, part: str) -> RunView:
        label = f"{part} {rubric.sha256}"
        known = self.folder.run_of(label)
        row = None if known is None else self.store.run(known)
        base_url = self.options.base_url
        if row is not None and row.status == "finished":
            return finished_view(row)
        if row is not None:
            stopped = row
            ended = self._watch(
                lambda show, hold: resume_run(
                    stopped,
                    self.store,
                    base_url=base_url,
                    concurrency=self.options.concurrency,
                    on_progress=show,
                    on_start=hold,
                )
            )
        else:
            prepared = self._prepared(rubric, part)
            ended = self._watch(
                lambda show, hold: start_run(
                    prepared,
                    self.store,
                    base_url=base_url,
                    on_progress=show,
                    on_start=self._noting(label, hold),
                )
            )
        if ended.stopped is not None:
            what = f"run {ended.view.run_id} was stopped: {ended.stopped}"
            raise IncompleteError(f"{what}; nothing is lost, run the same command again to go on")
        return ended.view

    def _noting(self, label: str, hold: OnStart) -> OnStart:
        def held(job: Job) -> None:
            self.folder.note_run(label, job.row.id)
            hold(job)

        return held

    def _prepared(self, rubric: Rubric, part: str) -> Prepared:
        options = self.options
        text = self.document.text if rubric.sha256 == self.base.sha256 else render_rubric(rubric)
        suite = Suite(
            suite=f"calibrate-{rubric.id}",
            rubric=rubric.id,
            dataset=f"{part}.jsonl",
            judge=JudgeSpec(models=options.judges, votes=options.votes),
        )
        here, folder = Path(), self.folder.path
        chosen = ChosenSuite(
            suite=suite,
            origin="calibrate",
            folder=folder,
            home=here,
        )
        run_options = RunOptions(
            concurrency=options.concurrency,
            base_url=options.base_url,
            allow_unpinned=options.allow_unpinned,
        )
        document = DocumentPlan(origin=self.document.origin, text=text)
        return prepare_chosen(chosen, run_options, document)

    def _cases(self, run_id: str, rubric: Rubric) -> Iterator[GoldCase]:
        for sample in self.store.samples(run_id):
            known = self._rows[sample.sample_id]
            row = known.row
            report = None if sample.report is None else _REPORT.decode(sample.report)
            yield GoldCase(
                id=row.id,
                gold=known.gold,
                verdict=read_verdict(report, rubric),
                task=row.task,
                response="" if row.response is None else row.response.text,
                response_b=None if row.response_b is None else row.response_b.text,
                comments=read_comments(row.metadata),
                cluster=known.cluster,
                words=words_of(row),
            )


def _is_scored(case: GoldCase) -> bool:
    if case.gold.winners:
        return case.verdict.winner is not None
    return any(case.verdict.scores.get(name) is not None for name in case.gold.scores)


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
            raise no_judge_error("no judge was given", "name one with --judge")
        options = msgspec.structs.replace(options, judges=(name,))
        warnings = (*warnings, DEFAULT_JUDGE_NOTICE.format(name=name))
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
    from jurybox.calibration.judge_comparison import Options, compare
    from jurybox.statistics.bootstrap import Resampling

    write_rows(bench.folder.path / f"{_WHOLE}.jsonl", bench.gold.rows)
    run_id, cases = bench.judge(bench.base, _WHOLE, 0)
    options = bench.options
    resampling = Resampling(seed=options.seed, level=options.level)
    return compare(cases, bench.base, Options(resampling=resampling)), run_id


def _tuned(bench: Bench, readied: Readied) -> "tuple[Rubric, Agreement, str, Tuning]":
    """Go through the rounds, and write down what they found."""
    from jurybox.calibration.tuning_loop import LoopOptions, improve

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
    from jurybox.calibration.tuning_loop import JudgedPart, ToJudge

    if isinstance(request, ToJudge):
        run_id, cases = bench.judge(request.rubric, request.part, request.round)
        return JudgedPart(cases=cases, run_id=run_id)
    return asyncio.run(_proposed(bench, request))


async def _proposed(bench: Bench, request: "ToPropose") -> "Proposal | Unusable":
    """Ask the proposer; what it replied before is not asked, and paid for, again."""
    from jurybox.calibration.model_proposals import suggest
    from jurybox.engine.caller import Callers
    from jurybox.engine.driver import drive
    from jurybox.judging.exchange import ModelReply

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
        elif outcome.fatal:
            what = f"{outcome.message}; nothing is lost, run the same command again to go on"
            raise IncompleteError(what)
        return outcome

    try:
        return await drive(suggest(name, request), call)
    finally:
        for model in models.values():
            await model.aclose()


def _output(options: CalibrateOptions, base: "Rubric") -> Path:
    from jurybox.calibration.rubric_changes import next_version

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
