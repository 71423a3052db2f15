"""What the demo judges, and having it judged: by rules, by words, and by a model."""

import contextlib
from importlib import resources
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from jurybox.app.evaluate_once import evaluate
from jurybox.app.job import Job
from jurybox.app.prepare import RunOptions, prepare
from jurybox.app.run_suite import start_run
from jurybox.cli.output import say
from jurybox.cli.progress import displayed
from jurybox.cli.signals import stop_on_signals
from jurybox.cli.stores import opened, resume_line
from jurybox.engine.plan import read_plan
from jurybox.engine.ports import Store
from jurybox.engine.records import read_result
from jurybox.errors import IncompleteError, InputError
from jurybox.models.local.files import (
    default_judge,
    find_model,
    format_bytes,
    installed_runtime,
    is_path,
)
from jurybox.reporting.output_file import whole_file
from jurybox.reporting.reports import write_report
from jurybox.reporting.view import RunView
from jurybox.rubric.model import Rubric
from jurybox.wiring import embedded_judge

BY_WORDS: Final = "python/judge:strict"
SUITE: Final = "suite.yaml"

_DATA: Final = "jurybox.cli.demo.data"
_FILES: Final = {
    SUITE: _DATA,
    "answers.jsonl": _DATA,
    # The judge that `jurybox init` writes; it knows the prompt of the same rubric.
    "judge.py": "jurybox.cli.starter",
}
_STORE: Final = ".jurybox/jurybox.db"
_REPORT: Final = "report.html"


class ScoredReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a rubric's rules make of a reply."""

    rubric: str
    task: str
    reply: str
    overall: float | None
    band: str | None


class ScoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge made of an answer; a score is None where no valid vote came."""

    id: str
    scores: dict[str, float | None]
    passed: bool | None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
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


class Audience(Protocol):
    """Is told of a run before it begins and after it has ended."""

    def begin(self, judge: str) -> None:
        """Hear who is going to judge the answers."""
        ...

    def run(self, judged: Judged) -> None:
        """Hear what became of them."""
        ...


class _Replies(msgspec.Struct, frozen=True, kw_only=True):
    rubric: str
    task: str
    replies: tuple[str, ...]


def judge_for(name: str | None) -> str | None:
    """Return the model that judges: the one that is named, or the embedded judge if it is here.

    Raises:
        InputError: the catalog has none of that name.

    """
    if name is None:
        return embedded_judge()
    bare = name.removeprefix("local/")
    return f"local/{bare if is_path(bare) else find_model(bare).name}"


def how_to_have_it() -> str:
    """Return the one line on how to have the part that needs a model."""
    extra = "" if installed_runtime() else '`pip install "jurybox[local]"`, '
    if embedded_judge() is not None:
        return "the embedded judge was left out; `jurybox demo` without --model shows it at work"
    size = format_bytes(default_judge().bytes)
    return (
        "the rest needs the embedded judge, which isn't on this machine:"
        f" {extra}`jurybox model pull` ({size}), then `jurybox demo` again"
    )


def data(name: str) -> bytes:
    """Return one of the demo's files."""
    return (resources.files(_DATA) / name).read_bytes()


def rule_scores() -> tuple[ScoredReply, ...]:
    """Score the demo's replies by the rules of a rubric."""
    from jurybox.scoring.by_rules import RulesReport

    read = msgspec.json.decode(data("replies.json"), type=_Replies)
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


class Stage:
    """The demo's folder, with its files, its store and its report.

    Raises:
        InputError: a file of another content is in the way, or nothing can be written there.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._url = str(folder / _STORE)
        _write(folder)

    def judged(self, judge: str, audience: Audience, *, limit: int | None = None) -> Judged:
        """Judge the answers, or the first ``limit``, store the run and show the result.

        Raises:
            InputError: the judge can't be used.
            IncompleteError: the store is in trouble.

        """
        prepared = prepare(self._folder / SUITE, RunOptions(judges=(judge,), limit=limit))
        audience.begin(judge)
        with opened(self._url, create=True) as store, displayed() as display:

            def on_start(job: Job) -> None:
                display.begin(read_plan(job.row.plan).samples)
                stop_on_signals(job)

            ended = start_run(prepared, store, on_progress=display.show, on_start=on_start)
            rubric = prepared.procedure.judging.rubric
            answers = _answers(store, ended.view.run_id, rubric)
        judged = Judged(
            judge=judge, view=ended.view, rubric=rubric, answers=answers, stopped=ended.stopped
        )
        audience.run(judged)
        if ended.stopped is not None:
            say(f"stopped: {ended.stopped}")
            say(resume_line(ended.view.run_id, self._url))
        return judged

    def report(self, judged: Judged) -> Path:
        """Write the report on a run, and return where it is."""
        path = self._folder / _REPORT
        with opened(self._url) as store:
            row = store.run(judged.view.run_id)
            if row is None:
                problem = f"run {judged.view.run_id} was taken out of the store"
                raise IncompleteError(f"{problem}; run the demo again")
            with whole_file(path) as file:
                write_report(file, "html", judged.view, row, store)
        return path


def _answers(store: Store, run_id: str, rubric: Rubric) -> tuple[ScoredAnswer, ...]:
    criteria = [each.id for each in rubric.criteria]
    answers: list[ScoredAnswer] = []
    for sample in store.samples(run_id):
        result = read_result(sample.result)
        scores = {name: result.figures.get(name) for name in criteria}
        answers.append(ScoredAnswer(id=sample.sample_id, scores=scores, passed=result.passed))
    return tuple(answers)


def _write(folder: Path) -> None:
    """Write the demo's files; one that is there must be the same, for people may change them."""
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
        problem = "is there already, and isn't the demo's"
        raise InputError(problem, "name another folder", ", ".join(changed))
