"""Judging gold: each part by each rubric in a run of the store, made once and then known."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.calibration.cases import Case, read_comments, read_verdict
from jurybox.calibration.record import JudgedRun
from jurybox.calibration.splits import words_of
from jurybox.errors import IncompleteError
from jurybox.judging.report import EvaluationReport
from jurybox.reporting.view import RunView, finished_view
from jurybox.rubric import parse_rubric, render_rubric
from jurybox.rubric.model import Rubric
from jurybox.running.plan import DocumentPlan
from jurybox.running.storing import Store
from jurybox.suite import JudgeSpec, Suite
from jurybox.wiring.calibration_folder import CalibrationFolder
from jurybox.wiring.gold_files import GoldSet
from jurybox.wiring.planning import Prepared, prepare_chosen
from jurybox.wiring.running import OnProgress
from jurybox.wiring.runs import Ended, Hold, resume_run, start_run
from jurybox.wiring.suites import Chosen, RunOptions

if TYPE_CHECKING:
    from jurybox.wiring.running import Job

_REPORT: Final = msgspec.json.Decoder(EvaluationReport)

Start = Callable[[OnProgress, Hold], Ended]
Watch = Callable[[Start], Ended]
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

    def judge(self, rubric: Rubric, part: str, number: int) -> tuple[str, tuple[Case, ...]]:
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
                    hold=hold,
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
                    hold=self._noting(label, hold),
                )
            )
        if ended.stopped is not None:
            what = f"run {ended.view.run_id} was stopped: {ended.stopped}"
            raise IncompleteError(f"{what}; nothing is lost, run the same command again to go on")
        return ended.view

    def _noting(self, label: str, hold: Hold) -> Hold:
        def held(job: "Job") -> None:
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
        chosen = Chosen(
            suite=suite,
            origin="calibrate",
            folder=folder,
            home=here,
            prompt_folder=here,
            system_folder=here,
        )
        run_options = RunOptions(
            concurrency=options.concurrency,
            base_url=options.base_url,
            allow_unpinned=options.allow_unpinned,
        )
        document = DocumentPlan(origin=self.document.origin, text=text)
        return prepare_chosen(chosen, run_options, document)

    def _cases(self, run_id: str, rubric: Rubric) -> Iterator[Case]:
        for sample in self.store.samples(run_id):
            known = self._rows[sample.sample_id]
            row = known.row
            report = None if sample.report is None else _REPORT.decode(sample.report)
            yield Case(
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


def _is_scored(case: Case) -> bool:
    if case.gold.winners:
        return case.verdict.winner is not None
    return any(case.verdict.scores.get(name) is not None for name in case.gold.scores)
