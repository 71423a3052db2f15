"""Calibrate a judge against people's labels, and tune its rubric."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from jurybox import wiring
from jurybox.app.event_loop import run_blocking
from jurybox.app.gold_sets import read_gold_set
from jurybox.app.ids import kept_dataset, new_id, now_utc
from jurybox.app.job import Watch
from jurybox.app.model_session import checked_route
from jurybox.app.prepare import Prepared, prepare_chosen, read_rubric
from jurybox.app.run_suite import SAME_AGAIN, equal_run, finished_run
from jurybox.app.suite_choice import ChosenSuite, RunOptions
from jurybox.app.view_run import calibration_row, setting_of
from jurybox.calibration import tuning_loop
from jurybox.calibration.calibration_record import Agreement, Calibration, JudgedRun, Tuning
from jurybox.calibration.gold import GoldCase, read_comments, read_verdict, split, words_of
from jurybox.calibration.judge_comparison import Options, compare
from jurybox.calibration.proposals import Proposal, next_version
from jurybox.calibration.tuning_loop import Disagreements, JudgedPart
from jurybox.datasets.row_reader import record_of
from jurybox.engine.driver import drive
from jurybox.engine.plan import DocumentPlan
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.flow import Defect, Failure, ModelRequest, Outcome
from jurybox.judging.protocol import gives_evidence
from jurybox.reporting.output_file import whole_file
from jurybox.reporting.stored import SampleRecord
from jurybox.reporting.view import RunView
from jurybox.rubric import parse_rubric, render_rubric
from jurybox.rubric.rubric_model import Rubric
from jurybox.storage.store import Store
from jurybox.suite import Suite
from jurybox.suite.model_spec import ModelSpec, model_option

_FOLDER: Final = "calibrations"


class CalibrateOptions(RunOptions, frozen=True, kw_only=True):
    """The options of ``jurybox calibrate``; without judges, the embedded one is used."""

    rubric: str = ""
    gold: str  # a dataset whose rows have human labels
    rounds: int = 0  # how many changes to the rubric are tried; 0 only measures the judge
    cluster: str | None = None  # the field that identifies dependent rows
    seed: int = 0  # the seed of the split and of the sign flips
    level: float = 0.95  # the confidence level of the intervals
    proposer: str | None = None  # a model that proposes a change in every second round
    output: str | None = None  # the file for the new version of the rubric


class Calibrator:
    """Runs one calibration: judges parts of the gold set, each in its own run."""

    def __init__(self, options: CalibrateOptions) -> None:
        """Read the rubric and the gold set; refuse invalid input before the first model call."""
        self._document, warnings = read_rubric(options.rubric), list[str]()
        self._base = rubric = parse_rubric(self._document.text, self._document.origin)
        if not options.judges:
            name = wiring.default_judge()
            options = msgspec.structs.replace(options, judges=(name,))
            warnings.append(wiring.DEFAULT_JUDGE_NOTICE.format(name=name))
        if options.proposer is not None and not options.rounds:
            hint = "set it to 1 or more"
            raise InputError("--proposer needs at least one round", hint, "--rounds")
        self._options = options
        self._gold = read_gold_set(
            Path(options.gold), rubric, limit=options.limit, cluster=options.cluster
        )
        self._parts = split(self._gold.rows, rubric, options.seed) if options.rounds else {}
        self._judges = [model_option(judge) for judge in options.judges]
        self._proposer = None if options.proposer is None else model_option(options.proposer)
        # Reports a missing key now instead of after the first round.
        builder = wiring.ModelBuilder(options.base_url)
        for spec in (*self._judges, *filter(None, [self._proposer])):
            builder.build(spec)
        self.warnings = (*warnings, *self._gold.warnings)
        self._rows = {each.row.id: each for each in self._gold.rows}
        self._runs: list[JudgedRun] = []
        self._views: dict[str, RunView] = {}
        version = next_version(self._base.version)
        self._output = Path(options.output or f"{self._base.id}-{version}.md")

    def run(self, store: Store, watch: Watch) -> Calibration:
        """Judge the gold set, compare it with its labels, tune if asked, and store the record.

        Samples that an identical calibration has judged, even if it was stopped, aren't judged
        again.
        """
        self._store, self._watch = store, watch
        parts = self._parts or {"gold": self._gold.rows}
        self._files = {
            part: kept_dataset(_FOLDER, part, (record_of(each.row) for each in rows), store.address)
            for part, rows in parts.items()
        }
        made = self._tune() if self._options.rounds else self._measure()
        store.add_calibration(calibration_row(made))
        return made

    def _measure(self) -> Calibration:
        judged = self._judge(self._base, "gold", 0)
        chosen = Options(level=self._options.level, seed=self._options.seed)
        metrics = compare(judged.cases, self._base, chosen)
        return self._record(self._base, metrics, judged.run_id, None)

    def _tune(self) -> Calibration:
        """Run the rounds; write the new rubric if a change was kept."""
        options = self._options
        is_new = equal_run(self._store, self._prepared(self._base, "tune").plan) is None
        if is_new and self._output.exists():
            raise self._output_exists()
        loop = tuning_loop.TuningLoop(
            self._base,
            tuning_loop.LoopOptions(
                rounds=options.rounds,
                level=options.level,
                seed=options.seed,
                narrow=all(gives_evidence(judge.model) for judge in self._judges),
            ),
            self._judge,
            None if self._proposer is None else lambda seen: run_blocking(self._propose(seen)),
        )
        tuned = loop.run({part: len(rows) for part, rows in self._parts.items()})
        tuning, rubric = tuned.tuning, self._base
        if tuned.winner is not None:
            rubric = tuned.winner
            self._write(rubric)
            tuning = msgspec.structs.replace(tuning, written=str(self._output))
        return self._record(rubric, tuned.metrics, tuned.report_run, tuning)

    def _judge(self, rubric: Rubric, part: str, number: int) -> JudgedPart:
        """Judge a part by a rubric, or reuse an identical run."""
        prepared = self._prepared(rubric, part)
        known = equal_run(self._store, prepared.plan)
        if known is not None and known.status == "finished":
            scored = any(map(_is_scored, self._cases(known.id, rubric)))
            known = known if scored else None  # without scores, a new run judges all samples
        view = finished_run(prepared, self._store, known, self._watch)
        self._views[view.run_id] = view
        self._runs.append(
            JudgedRun(run_id=view.run_id, part=part, round=number, dollars=view.cost.get("dollars"))
        )
        cases = tuple(self._cases(view.run_id, rubric))
        if not any(map(_is_scored, cases)):
            what = f"run {view.run_id}: the judge scored no sample that people scored"
            raise IncompleteError(f"{what}; `jurybox show {view.run_id}` says why")
        return JudgedPart(cases=cases, run_id=view.run_id)

    def _prepared(self, rubric: Rubric, part: str) -> Prepared:
        file = self._files[part]
        text = self._document.text if rubric.sha256 == self._base.sha256 else render_rubric(rubric)
        suite = Suite(
            suite=f"{rubric.id}{wiring.HELPER_RUN}calibration", rubric=rubric.id, dataset=file.name
        )
        chosen = ChosenSuite(suite=suite, origin="calibrate", folder=file.parent, home=Path())
        # The file has only the rows within the limit.
        options = msgspec.structs.replace(self._options, limit=None)
        document = DocumentPlan(origin=self._document.origin, text=text)
        return prepare_chosen(chosen, options, lambda: document)

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

    async def _propose(self, seen: Disagreements) -> Proposal | Defect:
        options, spec = self._options, self._proposer or ModelSpec(model="")
        route = checked_route(
            [spec], options.base_url, allow_version_drift=options.allow_version_drift
        )
        async with route as ask:

            async def call(asked: ModelRequest) -> Outcome:
                outcome = await ask(asked)
                if isinstance(outcome, Failure) and outcome.fatal:
                    raise IncompleteError(f"{outcome.message}; {SAME_AGAIN}")
                return outcome

            return await drive(tuning_loop.suggest(spec.model, seen), call)

    def _output_exists(self) -> InputError:
        return InputError(
            "the file already exists", "name a different one with -o", str(self._output)
        )

    def _write(self, rubric: Rubric) -> None:
        data = render_rubric(rubric).encode()
        if not self._output.exists():
            with whole_file(self._output) as file:
                file.write(data)
        elif self._output.read_bytes() != data:
            raise self._output_exists()

    def _record(
        self, rubric: Rubric, metrics: Agreement, run_id: str, tuning: Tuning | None
    ) -> Calibration:
        setting = setting_of(self._views[run_id])
        if setting is None:
            problem = "the rubric needs no judge, and none was named"
            raise InputError(problem, "name one with --judge", "calibrate")
        return Calibration(
            id=new_id("cal-"),
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
