"""Calibrate a judge against people's labels, and tune its rubric."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from jurybox.app.calibrations import (
    CalibrationFolder,
    calibration_row,
    key_of,
    open_folder,
    setting_of,
)
from jurybox.app.event_loop import run_blocking
from jurybox.app.gold_sets import GoldSet, read_gold_set, write_rows
from jurybox.app.ids import now_utc
from jurybox.app.job import Job, OnProgress, OnStart
from jurybox.app.metadata import RunIdentity, version_of
from jurybox.app.model_session import checked_route
from jurybox.app.prepare import Prepared, prepare_chosen, read_rubric
from jurybox.app.run_suite import RunResult, Start, resume_run, start_run
from jurybox.app.suite_choice import ChosenSuite, RunOptions
from jurybox.calibration.calibration_record import Calibration, JudgedRun
from jurybox.calibration.gold import GoldCase, read_comments, read_verdict
from jurybox.calibration.rubric_changes import next_version
from jurybox.calibration.splits import words_of
from jurybox.engine.plan import DocumentPlan
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.protocol import way_of
from jurybox.reporting.output_file import whole_file
from jurybox.reporting.stored import SampleRecord
from jurybox.reporting.view import RunView, finished_view
from jurybox.rubric import parse_rubric, render_rubric
from jurybox.rubric.rubric_model import Rubric
from jurybox.storage.store import Store
from jurybox.suite import JudgeSpec, Suite
from jurybox.suite.model_spec import ModelSpec
from jurybox.wiring import (
    DEFAULT_JUDGE_NOTICE,
    HELPER_RUN,
    ModelBuilder,
    embedded_judge,
    no_judge_error,
    read_settings,
)

if TYPE_CHECKING:
    from jurybox.calibration.calibration_record import Agreement, Tuning
    from jurybox.calibration.proposals import Proposal
    from jurybox.calibration.splits import GoldRow, Part
    from jurybox.calibration.tuning_loop import ToPropose, Tuned, Unusable
    from jurybox.judging.flow import ModelRequest, Outcome

Watch = Callable[[Start], RunResult]
"""Starts or resumes a run, and shows its progress."""


class CalibrateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``jurybox calibrate``.

    Attributes:
        rubric: its name or path.
        gold: a dataset whose rows carry people's labels.
        judges: the judge models; the embedded judge if empty.
        votes: votes per sample; None leaves it to the rubric.
        rounds: how many changes to the rubric are tried; 0 only measures the judge.
        limit: how many rows are used, from the first.
        cluster: the field by which rows belong together.
        seed: of the split and of the intervals.
        level: of the intervals.
        proposer: a model that proposes the change of every second round.
        output: the file of the new version of the rubric.

    """

    rubric: str
    gold: str
    judges: tuple[ModelSpec, ...] = ()
    votes: int | None = None
    rounds: int = 0
    limit: int | None = None
    cluster: str | None = None
    seed: int = 0
    level: float = 0.95
    proposer: ModelSpec | None = None
    output: str | None = None
    base_url: str | None = None
    concurrency: int | None = None
    allow_unpinned: bool = False
    allow_version_drift: bool = False


class Readied(msgspec.Struct, frozen=True, kw_only=True):
    """The checked inputs of a calibration, with warnings for the user.

    ``versions`` are those of the judges: another version is another measurement.
    """

    options: CalibrateOptions
    document: DocumentPlan
    gold: GoldSet
    parts: "dict[Part, tuple[GoldRow, ...]]"
    versions: tuple[str | None, ...]
    warnings: tuple[str, ...]


def ready(options: CalibrateOptions) -> Readied:
    """Read the rubric and the gold, and refuse what can't be used before the first call."""
    from jurybox.calibration.splits import split, uneven

    document, warnings = read_rubric(options.rubric)
    rubric = parse_rubric(document.text, document.origin)
    if not options.judges:
        name = embedded_judge()
        if name is None:
            raise no_judge_error("no judge was given", "name one with --judge")
        options = msgspec.structs.replace(options, judges=(ModelSpec(model=name),))
        warnings = (*warnings, DEFAULT_JUDGE_NOTICE.format(name=name))
    if options.proposer is not None and not options.rounds:
        raise InputError("a model proposes changes in rounds", "ask for some", "--rounds")
    gold = read_gold_set(Path(options.gold), rubric, limit=options.limit, cluster=options.cluster)
    parts = split(gold.rows, rubric, options.seed) if options.rounds else {}
    uneven_parts = uneven(parts)
    if uneven_parts is not None:
        warnings = (*warnings, f"{options.gold}: {uneven_parts}")
    # Reports a missing key now instead of after the first round.
    builder = ModelBuilder(read_settings(), options.base_url)
    for spec in (*options.judges, *filter(None, [options.proposer])):
        builder.build(spec)
    here = str(Path.cwd())
    return Readied(
        options=options,
        document=document,
        gold=gold,
        parts=parts,
        versions=tuple(version_of(judge.model, here) for judge in options.judges),
        warnings=(*warnings, *gold.warnings),
    )


def calibrate(
    readied: Readied, store: Store, store_url: str | None, watch: Watch, say: Callable[[str], None]
) -> Calibration:
    """Judge the gold, compare, tune the rubric if rounds are asked for, and store the record.

    ``say`` prints a notice before the first call.
    """
    # Everything that decides what is asked; where to write and how fast decides nothing.
    options = msgspec.structs.replace(
        readied.options,
        output=None,
        concurrency=None,
        allow_unpinned=False,
        allow_version_drift=False,
        rubric="",
        gold="",
    )
    key = key_of([options, readied.document.text, readied.gold.file.sha256, readied.versions])
    # Claimed by key: two processes that start at once would each make a folder.
    with store.claim(f"calibration {key}") as mine:
        if not mine:
            problem = "another process is working on the same calibration"
            raise InputError(problem, "wait for it")
        return _Calibrator(readied, store, open_folder(store_url, key), watch).run(say)


class _Calibrator:
    """Runs one calibration: judges parts of the gold, each in a run, and writes the record."""

    def __init__(
        self, readied: Readied, store: Store, folder: CalibrationFolder, watch: Watch
    ) -> None:
        self._options = readied.options
        self._document = readied.document
        self._base = parse_rubric(readied.document.text, readied.document.origin)
        self._gold = readied.gold
        self._parts = readied.parts
        self._store = store
        self._folder = folder
        self._watch = watch
        self._runs: list[JudgedRun] = []
        self._views: dict[str, RunView] = {}
        self._rows = {each.row.id: each for each in readied.gold.rows}
        version = next_version(self._base.version)
        self._output = Path(self._options.output or f"{self._base.id}-{version}.md")

    def run(self, say: Callable[[str], None]) -> Calibration:
        """Return the stored record."""
        folder, store = self._folder, self._store
        if self._options.rounds and folder.is_new and self._output.exists():
            folder.discard()
            raise self._output_exists()
        if folder.before is not None:
            known = {row.id: row.created_at[:10] for row in store.calibrations(self._base.id)}
            which = ", ".join(filter(None, (folder.before, known.get(folder.before))))
            say(f"this was measured before ({which}); judging it again")
        record = self._tune() if self._options.rounds else self._measure()
        if not any(row.id == record.id for row in store.calibrations(record.rubric_id)):
            store.add_calibration(calibration_row(record))
        folder.save(finished=True)
        return record

    def _measure(self) -> Calibration:
        from jurybox.calibration.judge_comparison import Options, compare

        write_rows(self._folder.path / "gold.jsonl", self._gold.rows)
        run_id, cases = self._judge(self._base, "gold", 0)
        chosen = Options(level=self._options.level, seed=self._options.seed)
        metrics = compare(cases, self._base, chosen)
        return self._record(self._base, metrics, run_id, None)

    def _tune(self) -> Calibration:
        """Go through the rounds; write the rubric if a change was kept."""
        from jurybox.calibration.tuning_loop import JudgedPart, LoopOptions, ToJudge, improve

        options = self._options
        for part, rows in self._parts.items():
            write_rows(self._folder.path / f"{part}.jsonl", rows)
        loop = improve(
            self._base,
            {part: len(rows) for part, rows in self._parts.items()},
            LoopOptions(
                rounds=options.rounds,
                level=options.level,
                seed=options.seed,
                model=options.proposer is not None,
                narrow=all(way_of(judge.model, None) != "verdict" for judge in options.judges),
            ),
        )
        request = next(loop)
        while True:
            if isinstance(request, ToJudge):
                run_id, cases = self._judge(request.rubric, request.part, request.round)
                answer = JudgedPart(cases=cases, run_id=run_id)
            else:
                answer = run_blocking(self._propose(request))
            try:
                request = loop.send(answer)
            except StopIteration as done:
                tuned: Tuned = done.value
                break
        tuning, rubric = tuned.tuning, self._base
        if tuned.winner is not None:
            rubric = tuned.winner
            self._write(rubric)
            tuning = msgspec.structs.replace(tuning, written=str(self._output))
        return self._record(rubric, tuned.metrics, tuned.report_run, tuning)

    def _judge(self, rubric: Rubric, part: str, number: int) -> tuple[str, tuple[GoldCase, ...]]:
        """Judge a part by a rubric; return the run and its samples."""
        view = self._judged_view(rubric, part)
        self._views[view.run_id] = view
        self._runs.append(
            JudgedRun(run_id=view.run_id, part=part, round=number, dollars=view.cost.get("dollars"))
        )
        cases = tuple(self._cases(view.run_id, rubric))
        if not any(_is_scored(case) for case in cases):
            self._folder.forget_run(view.run_id)
            what = f"run {view.run_id}: the judge scored nothing that people scored"
            raise IncompleteError(f"{what}; `jurybox show {view.run_id}` says why")
        return view.run_id, cases

    def _judged_view(self, rubric: Rubric, part: str) -> RunView:
        """Return the finished run of a part and a rubric: an earlier one, or a new one."""
        label = f"{part} {rubric.sha256}"
        known = self._folder.state.runs.get(label)
        row = None if known is None else self._store.run(known)
        if row is not None and row.status == "finished":
            return finished_view(row, self._store)

        def start(on_progress: OnProgress, on_start: OnStart) -> RunResult:
            if row is not None:
                return resume_run(
                    row,
                    self._store,
                    base_url=self._options.base_url,
                    concurrency=self._options.concurrency,
                    allow_version_drift=self._options.allow_version_drift,
                    on_progress=on_progress,
                    on_start=on_start,
                )

            def note(job: Job) -> None:
                self._folder.note_run(label, job.row.id)
                on_start(job)

            return start_run(prepared, self._store, on_progress=on_progress, on_start=note)

        if row is None:
            prepared = self._prepared(rubric, part)
        result = self._watch(start)
        if result.stopped is not None:
            what = f"run {result.view.run_id} was stopped: {result.stopped}"
            raise IncompleteError(f"{what}; nothing is lost, run the same command again to resume")
        return result.view

    def _prepared(self, rubric: Rubric, part: str) -> Prepared:
        options = self._options
        text = self._document.text if rubric.sha256 == self._base.sha256 else render_rubric(rubric)
        suite = Suite(
            suite=f"{rubric.id}{HELPER_RUN}calibration",
            rubric=rubric.id,
            dataset=f"{part}.jsonl",
            judge=JudgeSpec(models=options.judges, votes=options.votes),
        )
        chosen = ChosenSuite(suite=suite, origin="calibrate", folder=self._folder.path, home=Path())
        run_options = RunOptions(
            concurrency=options.concurrency,
            base_url=options.base_url,
            allow_unpinned=options.allow_unpinned,
            identity=RunIdentity(allow_version_drift=options.allow_version_drift),
        )
        document = DocumentPlan(origin=self._document.origin, text=text)
        return prepare_chosen(chosen, run_options, lambda: (document, ()))

    def _cases(self, run_id: str, rubric: Rubric) -> Iterator[GoldCase]:
        for sample in self._store.samples(run_id):
            known = self._rows[sample.sample_id]
            row = known.row
            yield GoldCase(
                id=row.id,
                gold=known.gold,
                verdict=read_verdict(SampleRecord(sample).report, rubric),
                task=row.task,
                response="" if row.response is None else row.response.text,
                response_b=None if row.response_b is None else row.response_b.text,
                comments=read_comments(row.metadata),
                cluster=known.cluster,
                words=words_of(row),
            )

    async def _propose(self, request: "ToPropose") -> "Proposal | Unusable":
        """Ask the proposer; replies that an earlier attempt paid for are used again."""
        from jurybox.calibration.model_proposals import suggest
        from jurybox.engine.driver import drive
        from jurybox.judging.flow import ModelReply

        label = f"round {request.round}"
        known = list(self._folder.state.replies.get(label, []))
        spec = self._options.proposer or ModelSpec(model="")
        model = ModelBuilder(read_settings(), self._options.base_url).build(spec)
        allow = self._options.allow_version_drift
        route = checked_route({spec.model: model}, [spec], allow_version_drift=allow)

        async def call(asked: "ModelRequest") -> "Outcome":
            if known:
                return ModelReply(text=known.pop(0))
            outcome = await route(asked)
            if isinstance(outcome, ModelReply):
                self._folder.note_reply(label, outcome.text)
            elif outcome.fatal:
                what = f"{outcome.message}; nothing is lost, run the same command again to resume"
                raise IncompleteError(what)
            return outcome

        try:
            return await drive(suggest(spec.model, request), call)
        finally:
            await model.aclose()

    def _output_exists(self) -> InputError:
        return InputError("the file exists already", "name another with -o", str(self._output))

    def _write(self, rubric: Rubric) -> None:
        data = render_rubric(rubric).encode()
        if not self._output.exists():
            with whole_file(self._output) as file:
                file.write(data)
        elif self._output.read_bytes() != data:
            raise self._output_exists()

    def _record(
        self, rubric: Rubric, metrics: "Agreement", run_id: str, tuning: "Tuning | None"
    ) -> Calibration:
        setting = setting_of(self._views[run_id])
        if setting is None:
            raise InputError("no judge was asked", "name one with --judge", "calibrate")
        return Calibration(
            id=self._folder.id,
            created_at=now_utc(),
            rubric_id=rubric.id,
            **msgspec.structs.asdict(setting),
            gold=self._gold.file,
            seed=self._options.seed,
            metrics=metrics,
            runs=tuple(self._runs),
            tuning=tuning,
        )


def _is_scored(case: GoldCase) -> bool:
    if case.gold.winners:
        return case.verdict.winner is not None
    return any(case.verdict.scores.get(name) is not None for name in case.gold.scores)
