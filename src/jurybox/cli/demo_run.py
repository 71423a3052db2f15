"""What ``jurybox demo`` judges: replies by rules, answers by a judge, and pairs in both orders."""

import contextlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from jurybox.app.evaluate_once import CHECKLIST, evaluate
from jurybox.app.job import Job
from jurybox.app.prepare import prepare
from jurybox.app.run_suite import start_run
from jurybox.app.suite_choice import RunOptions
from jurybox.cli.options import opened, resume_line
from jurybox.cli.output import say
from jurybox.cli.progress import displayed
from jurybox.cli.signals import stop_on_signals
from jurybox.engine.driver import drive_sync
from jurybox.engine.plan import read_plan
from jurybox.engine.records import read_result
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.evidence.evidence_votes import compare
from jurybox.judging.evidence.questions import expit
from jurybox.judging.flow import ModelRequest, Outcome, Unscored
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.protocol import Judging
from jurybox.reporting.output_file import whole_file
from jurybox.reporting.reports import write_report
from jurybox.reporting.view import RunView
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Response, Sample
from jurybox.scoring.by_rules import RulesReport
from jurybox.wiring import load_rubric

BY_WORDS: Final = "python/judge:strict"
SUITE: Final = "suite.yaml"

_DATA: Final = "jurybox.cli.demo_data"
_FILES: Final = {
    SUITE: _DATA,
    "answers.jsonl": _DATA,
    # The judge that `jurybox init` writes; it reads the prompt of the same rubric.
    "judge.py": "jurybox.cli.starter",
}
_STORE: Final = ".jurybox/jurybox.db"
_PAIR_RUBRIC: Final = "answer-quality"


class ScoredReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply with its score by the rules of a rubric."""

    rubric: str
    task: str
    reply: str
    overall: float | None
    band: str | None


class ScoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with a judge's scores, None where there was no valid vote."""

    id: str
    scores: dict[str, float | None]
    passed: bool | None


class DemoRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the demo's suite; ``stopped`` says why it isn't finished."""

    judge: str
    view: RunView
    rubric: Rubric
    answers: tuple[ScoredAnswer, ...]
    stopped: str | None = None

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "run_id": self.view.run_id,
            "judge": self.judge,
            "answers": msgspec.to_builtins(self.answers),
            "gates": msgspec.to_builtins(self.view.gates),
            "stopped": self.stopped,
        }


class DemoPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two answers, and which of them is better."""

    id: str
    better: Side
    task: str
    context: str
    a: str
    b: str


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """A model's replies in both orders, and what they show together.

    Attributes:
        a_first: the probability that the first answer is called better, when that is A.
        b_first: the same when that is B.
        averaged: the lead of A with the effect of the order removed, in log-odds.
        evidence: the lead of A by what was found in each answer alone, in log-odds.

    """

    a_first: float
    b_first: float
    averaged: float
    evidence: float


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True):
    """A pair and the verdict on it; ``orders`` is None where there was no valid vote."""

    pair: DemoPair
    orders: Orders | None
    winner: Side | None
    stable: bool | None
    trouble: str | None = None


class _Replies(msgspec.Struct, frozen=True, kw_only=True):
    rubric: str
    task: str
    replies: tuple[str, ...]


def _data(name: str) -> bytes:
    return (resources.files(_DATA) / name).read_bytes()


def rule_scores() -> tuple[ScoredReply, ...]:
    """Score the demo's replies by the rules of a rubric."""
    read = msgspec.json.decode(_data("replies.json"), type=_Replies)
    scored: list[ScoredReply] = []
    for reply in read.replies:
        report = evaluate(rubric=read.rubric, task=read.task, response=reply)
        band = report.automated.band if isinstance(report, RulesReport) else None
        scored.append(
            ScoredReply(
                rubric=read.rubric, task=read.task, reply=reply, overall=report.overall, band=band
            )
        )
    return tuple(scored)


class DemoFolder:
    """The demo's folder, with its files, its store and its report."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._url = str(folder / _STORE)
        _write(folder)

    def judge(self, judge: str, limit: int | None = None) -> DemoRun:
        """Judge the answers, or the first ``limit``, in a stored run."""
        prepared = prepare(self._folder / SUITE, RunOptions(judges=(judge,), limit=limit))
        rubric = prepared.procedure.judging.rubric
        with opened(self._url, create=True) as store, displayed() as display:

            def on_start(job: Job) -> None:
                display.begin(read_plan(job.row.plan).samples)
                stop_on_signals(job)

            ended = start_run(prepared, store, on_progress=display.show, on_start=on_start)
            answers: list[ScoredAnswer] = []
            for row in store.samples(ended.view.run_id):
                result = read_result(row.result)
                scores = {each.id: result.figures.get(each.id) for each in rubric.criteria}
                answers.append(ScoredAnswer(id=row.sample_id, scores=scores, passed=result.passed))
        if ended.stopped is not None:
            say(f"stopped: {ended.stopped}")
            say(resume_line(ended.view.run_id, self._url))
        return DemoRun(
            judge=judge,
            view=ended.view,
            rubric=rubric,
            answers=tuple(answers),
            stopped=ended.stopped,
        )

    def write_report(self, run: DemoRun) -> Path:
        """Write the report on a run, and return its path."""
        path = self._folder / "report.html"
        with opened(self._url) as store:
            row = store.run(run.view.run_id)
            if row is None:
                problem = f"run {run.view.run_id} was removed from the store"
                raise IncompleteError(f"{problem}; run the demo again")
            with whole_file(path) as file:
                write_report(file, "html", run.view, row, store)
        return path


def _write(folder: Path) -> None:
    """Write the demo's files, unless the user has changed one of them."""
    texts = {name: (resources.files(where) / name).read_bytes() for name, where in _FILES.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed = [
            str(folder / name)
            for name, text in texts.items()
            if (folder / name).exists() and (folder / name).read_bytes() != text
        ]
        if not changed:
            for name, text in texts.items():
                with contextlib.suppress(FileExistsError), (folder / name).open("xb") as file:
                    file.write(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        where = str(error.filename or folder)
        raise InputError(f"can't be written ({reason})", "choose another place", where) from None
    if changed:
        problem = "exists, and isn't the demo's file"
        raise InputError(problem, "name another folder", ", ".join(changed))


def demo_pairs() -> tuple[DemoPair, ...]:
    """Return the pairs of the demo."""
    return msgspec.json.decode(_data("pairs.json"), type=tuple[DemoPair, ...])


def compare_pairs(judge: str) -> Iterator[ComparedPair]:
    """Compare every pair in both orders."""
    for pair in demo_pairs():
        replies: dict[ModelRequest, Outcome] = {}
        report = evaluate(
            rubric=_PAIR_RUBRIC,
            task=pair.task,
            context=pair.context,
            response=pair.a,
            response_b=pair.b,
            judges=judge,
            votes=1,
            on_exchange=replies.__setitem__,
        )
        lost = report.lost_votes
        yield ComparedPair(
            pair=pair,
            orders=None if lost else _orders(pair, judge, replies),
            winner=report.winner,
            stable=report.stable,
            trouble=lost[0].reason if lost else None,
        )


def _orders(pair: DemoPair, judge: str, replies: dict[ModelRequest, Outcome]) -> Orders | None:
    """Replay the vote over its replies: it has both orders."""
    judging = Judging(rubric=load_rubric(_PAIR_RUBRIC), checklist=load_rubric(CHECKLIST))
    sample = Sample(
        task=pair.task,
        context=pair.context,
        response=Response(text=pair.a),
        response_b=Response(text=pair.b),
    )
    (seat,) = judging.seats([judge], 1)
    vote = drive_sync(compare(judging, sample, seat), replies.__getitem__)
    if isinstance(vote, Unscored):
        return None
    alone, together = vote.first.remarks.extra, vote.second.remarks.extra
    lead, bias = float(together["lead_of_a"]), float(together["position_bias"])
    return Orders(
        a_first=round(expit(bias + lead), 4),
        b_first=round(expit(bias - lead), 4),
        averaged=lead,
        evidence=float(alone["lead_of_a"]),
    )
