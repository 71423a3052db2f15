"""Prepare a run: read the suite, open the dataset and build the plan."""

from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from jurybox.app.evaluate_once import CHECKLIST, missing_rules
from jurybox.app.model_session import check_batchable, plan_models
from jurybox.engine.plan import (
    DatasetPlan,
    DocumentPlan,
    Plan,
    TargetPlan,
    overridden,
    plan_text,
    read_plan,
    read_prompt,
)
from jurybox.errors import InputError, RubricError
from jurybox.models.names import ModelName
from jurybox.rubric_files import read_path, shown
from jurybox.sample import Response, Row
from jurybox.suite import Suite, TargetSpec, parse_suite
from jurybox.text_format import listed, nearest
from jurybox.wiring import (
    DEFAULT_JUDGE_NOTICE,
    embedded_judge,
    no_judge_error,
    read_settings,
    rubric_files,
)

if TYPE_CHECKING:
    from jurybox.datasets import Dataset, Survey
    from jurybox.rubric.model import Generation
    from jurybox.scoring.evaluate_sample import Procedure


_ENDINGS: Final = (".yaml", ".yml")
_SUITE: Final = "suite.yaml"
_RESPONSES: Final = "responses"


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What may be said beside the suite; None leaves it to the suite or the rubric."""

    rubric: str | None = None
    target: str | None = None
    prompt: str | None = None
    system: str | None = None
    responses: str | None = None
    judges: tuple[str, ...] = ()
    repeats: int | None = None
    limit: int | None = None
    concurrency: int | None = None
    base_url: str | None = None
    allow_unpinned: bool = False
    cache: bool | None = None
    batch: bool | None = None


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A suite as the options leave it, and from where its paths are meant.

    ``home`` is where commands run and functions are looked for: the suite's folder, but never that
    of a bundled one. Paths that an option gives are meant from here.
    """

    suite: Suite
    origin: str
    folder: Path
    home: Path
    prompt_folder: Path
    system_folder: Path
    responses: Path | None = None


def bundled_suites() -> dict[str, Path]:
    """Return the folders of the bundled suites, by their names."""
    library = Path(str(resources.files("jurybox.suite"))) / "library"
    return {path.parent.name: path.parent for path in sorted(library.glob(f"*/{_SUITE}"))}


def choose_suite(name: str | Path, options: RunOptions) -> Chosen:
    """Find a suite, and put what the options say in its place.

    A name that ends in `.yaml` or holds a `/` is a path; any other is that of a bundled suite
    first.

    Raises:
        InputError: there is no such suite, or the options say what can't be.
        SuiteError: the suite has faults.

    """
    bundled = bundled_suites()
    is_name = isinstance(name, str) and not name.endswith(_ENDINGS) and "/" not in name
    folder = bundled.get(str(name)) if is_name else None
    path = Path(name) if folder is None else folder / _SUITE
    if folder is None and is_name and not _is_file(path):
        otherwise = f"give the path of a suite file, or one of {listed(bundled)}"
        raise InputError("no such suite", nearest(str(name), bundled, otherwise), shown(name))
    file = read_path(path)
    origin = str(name) if folder is not None else file.origin
    suite = _with_target(parse_suite(file.data, origin), options, origin)
    responses = _find_responses(options.responses, folder)
    if folder is not None and suite.target is None and responses is None:
        known = listed(_recorded(folder))
        hint = f"name a model with --target, or responses with --responses: {known} or a file"
        raise InputError("nobody is named who answers", hint, origin)
    here = Path()
    return Chosen(
        suite=suite,
        origin=origin,
        folder=path.parent,
        home=path.parent if folder is None else here,
        prompt_folder=path.parent if options.prompt is None else here,
        system_folder=path.parent if options.system is None else here,
        responses=responses,
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _with_target(suite: Suite, options: RunOptions, origin: str) -> Suite:
    """Return the suite with the target that the options make of its own."""
    given = {"--target": options.target, "--prompt": options.prompt, "--system": options.system}
    named = [option for option, value in given.items() if value is not None]
    if options.responses is not None:
        if named:
            problem = f"recorded responses leave nothing to do for {named[0]}"
            raise InputError(problem, "give --responses or a target, not both")
        return msgspec.structs.replace(suite, target=None)
    if not named:
        return suite
    spec = suite.target
    if options.target is not None:
        # As early as possible, before anything else is read.
        ModelName.parse(options.target)
        spec = msgspec.structs.replace(
            spec or TargetSpec(), model=options.target, command=None, input="text"
        )
    if spec is None:
        raise InputError(f"{named[0]} is for a target", "name one with --target", origin)
    if spec.command is not None and options.system is not None:
        raise InputError("a command takes no system prompt", "leave --system out", origin)
    changes = {"prompt": options.prompt, "system": options.system}
    told = {name: value for name, value in changes.items() if value is not None}
    return msgspec.structs.replace(suite, target=msgspec.structs.replace(spec, **told))


def _find_responses(name: str | None, folder: Path | None) -> Path | None:
    """Return the file of recorded responses: one by its name in a bundled suite, or a path."""
    if name is None:
        return None
    recorded = {} if folder is None else _recorded(folder)
    path = recorded.get(name, Path(name))
    if folder is not None and "/" not in name and not path.suffix and not _is_file(path):
        hint = nearest(name, recorded, f"there are {listed(recorded)}; or give a file")
        raise InputError("no such recorded responses", hint, shown(name))
    return path


def _recorded(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted((folder / _RESPONSES).glob("*.jsonl"))}


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A plan whose every ingredient was looked at, and what a person should know about it."""

    plan: Plan
    procedure: "Procedure"
    dataset: "Dataset"
    warnings: tuple[str, ...] = ()


def prepare(name: str | Path, options: RunOptions) -> Prepared:
    """Read everything that a run needs, and refuse what can't be used before the first call.

    Raises:
        InputError: the suite, the rubric, a prompt, a model's name or the dataset can't be used.

    """
    chosen = choose_suite(name, options)
    rubric, warnings = _rubric(chosen, options)
    return prepare_chosen(chosen, options, rubric, warnings)


def prepare_chosen(
    chosen: Chosen, options: RunOptions, rubric: DocumentPlan, warnings: tuple[str, ...] = ()
) -> Prepared:
    """Read everything that a suite needs beside a rubric that was read already.

    Raises:
        InputError: a prompt, a model's name or the dataset can't be used.

    """
    from jurybox.datasets import open_dataset, survey

    limit = options.limit or chosen.suite.limit
    dataset = open_dataset(_dataset_path(chosen), chosen.responses, limit=limit)
    # As it is stored: a number that is read back as another type would make another request.
    plan = read_plan(plan_text(_plan(chosen, options, rubric, dataset.path)))
    procedure = plan.procedure()
    _check_judging(plan, procedure, chosen.origin)
    if plan.batch:
        check_batchable(plan.judges, chosen.origin)
    # A missing key or function is better known now than after the first sample.
    plan_models(plan, read_settings(), options.base_url)
    found = survey(
        dataset,
        needs_response=plan.target is None,
        check=_checker(procedure),
    )
    plan = msgspec.structs.replace(plan, dataset=_dataset_plan(chosen, options, dataset, found))
    warnings = (*warnings, *_notices(chosen, options, plan))
    return Prepared(
        plan=plan,
        procedure=procedure,
        dataset=dataset,
        # A rubric's are about judges.
        warnings=(*(warnings if plan.judges else ()), *found.warnings),
    )


def _notices(chosen: Chosen, options: RunOptions, plan: Plan) -> tuple[str, ...]:
    named = options.judges or chosen.suite.judge is not None
    return () if named or not plan.judges else (DEFAULT_JUDGE_NOTICE.format(name=plan.judges[0]),)


def _rubric(chosen: Chosen, options: RunOptions) -> tuple[DocumentPlan, tuple[str, ...]]:
    if options.rubric is None:
        return _read_document(chosen.suite.rubric, chosen.folder)
    return _read_document(options.rubric, None)


def _plan(chosen: Chosen, options: RunOptions, rubric: DocumentPlan, dataset: Path) -> Plan:
    suite = chosen.suite
    checklist = rubric_document(CHECKLIST, None)
    judges = options.judges or (() if suite.judge is None else suite.judge.models)
    draft = Plan(
        suite=suite.suite,
        rubric=rubric,
        checklist=checklist,
        dataset=DatasetPlan(id=dataset.name, path="", sha256="", bytes=0, rows=0),
        judges=tuple(dict.fromkeys(judges)),
        votes=1,
        repeats=1,
        folder=str(chosen.home.resolve()),
        base_url=without_secrets(options.base_url),
        concurrency=options.concurrency or suite.concurrency,
        cache=suite.cache if options.cache is None else options.cache,
        allow_unpinned=options.allow_unpinned,
        batch=_batched(chosen, options),
    )
    parsed = draft.procedure().judging.rubric
    if not judges and missing_rules(parsed) is not None:
        draft = msgspec.structs.replace(draft, judges=_default_judges())
    target = None
    if suite.target is not None:
        target = _target(suite.target, parsed.generation, chosen)
    _check_names([*draft.judges, *_model_of(target)], allow_unpinned=options.allow_unpinned)
    votes = None if suite.judge is None else suite.judge.votes
    stop = None if suite.judge is None else suite.judge.stop_when_decided
    timeout = None if suite.judge is None else suite.judge.timeout
    if timeout is not None and draft.batch:
        problem = "judges have a `timeout`, but a batch takes as long as its provider needs"
        raise InputError(problem, "leave out `timeout`, or ask directly with --no-batch", "judge")
    usual = parsed.protocol.variance_repeats if suite.variance_sensitive else 1
    return msgspec.structs.replace(
        draft,
        target=target,
        votes=parsed.protocol.votes if votes is None else votes,
        stop_when_decided=parsed.protocol.stop_when_decided if stop is None else stop,
        judge_timeout=timeout,
        repeats=options.repeats or suite.repeats or usual,
    )


def _batched(chosen: Chosen, options: RunOptions) -> bool:
    if options.batch is not None:
        return options.batch
    judge = chosen.suite.judge
    return judge is not None and judge.batch


def read_rubric(name: str) -> tuple[DocumentPlan, tuple[str, ...]]:
    """Find a rubric, and return with it what is sound in it but probably not meant so.

    Raises:
        InputError: there is no such document.
        RubricError: it has faults.

    """
    return _read_document(name, None)


def rubric_document(name: str, folder: Path | None) -> DocumentPlan:
    """Find a rubric; a path is meant from ``folder``, where there is one.

    Raises:
        InputError: there is no such document.
        RubricError: it has faults.

    """
    return _read_document(name, folder)[0]


def _read_document(name: str, folder: Path | None) -> tuple[DocumentPlan, tuple[str, ...]]:
    """Find a rubric, and return with it what is sound in it but probably not meant so."""
    from jurybox.rubric import render_rubric

    files = rubric_files()
    is_path = folder is not None and (name.endswith(".md") or "/" in name)
    found = read_path(folder / name) if folder and is_path else files.read(name)
    reading = files.check(found)
    if reading.rubric is None:
        raise RubricError(found.origin, reading.findings)
    # The whole text of a document that extends another: whoever resumes or audits the run has no
    # other files to look into.
    text = render_rubric(reading.rubric) if reading.bases else found.data.decode()
    warnings = tuple(f"{found.origin}:{warning}" for warning in reading.warnings)
    return DocumentPlan(origin=found.origin, text=text), warnings


def _target(spec: TargetSpec, base: "Generation", chosen: Chosen) -> TargetPlan:
    prompt = _text(spec.prompt, chosen.prompt_folder)
    if prompt is not None:
        read_prompt(prompt, str(spec.prompt))
    model = spec.model
    if model is None:
        program = (spec.command or ("",))[0]
        model = f"command/{Path(program).name}"
    return TargetPlan(
        model=model,
        generation=overridden(base, spec.generation),
        overrides=dict(spec.generation),
        timeout=spec.timeout,
        command=spec.command or (),
        stdin=spec.input,
        prompt_id=spec.prompt,
        prompt=prompt,
        system_id=spec.system,
        system=_text(spec.system, chosen.system_folder),
    )


def _text(name: str | None, folder: Path) -> str | None:
    if name is None:
        return None
    if name.startswith("langfuse:"):
        raise InputError("prompts can't be loaded from Langfuse yet", "give a file", name)
    found = read_path(folder / name)
    try:
        return found.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise InputError(problem, "save the file as UTF-8", found.origin) from None


def _model_of(target: TargetPlan | None) -> tuple[str, ...]:
    return () if target is None or target.command else (target.model,)


def _check_names(names: Sequence[str], *, allow_unpinned: bool) -> None:
    for name in names:
        if not ModelName.parse(name).is_pinned and not allow_unpinned:
            problem = "the name doesn't say which version is meant"
            hint = "name one with a date, or as `provider/name@version`, or pass --allow-unpinned"
            raise InputError(problem, hint, name)


def _default_judges() -> tuple[str, ...]:
    name = embedded_judge()
    return () if name is None else (name,)


def _check_judging(plan: Plan, procedure: "Procedure", origin: str) -> None:
    missing = missing_rules(procedure.judging.rubric)
    if not plan.judges and missing is not None:
        problem = f"no judge was given, and {missing}"
        hint = "name one under `judge: models:`, or with --judge"
        raise no_judge_error(problem, hint, origin)
    if plan.judges and plan.votes < len(plan.judges):
        problem = f"{len(plan.judges)} judges can't share {plan.votes} votes"
        raise InputError(problem, "ask for at least one vote a judge", origin)


def _dataset_path(chosen: Chosen) -> Path:
    name = chosen.suite.dataset
    if name.startswith("langfuse:"):
        problem = "datasets can't be loaded from Langfuse yet"
        raise InputError(problem, "name a file", f"{chosen.origin}: {shown(name)}")
    return chosen.folder / name


def _dataset_plan(
    chosen: Chosen, options: RunOptions, dataset: "Dataset", found: "Survey"
) -> DatasetPlan:
    suite, responses = chosen.suite, chosen.responses
    return DatasetPlan(
        id=suite.dataset,
        path=str(dataset.path.resolve()),
        sha256=found.sha256,
        bytes=found.bytes,
        rows=found.rows,
        limit=options.limit or suite.limit,
        responses_id=options.responses,
        responses=None if responses is None else str(responses.resolve()),
        responses_sha256=dataset.recorded,
    )


def without_secrets(url: str | None) -> str | None:
    """Return an address without a user name, a password or a query: plans are stored."""
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _checker(procedure: "Procedure") -> "Callable[[Row], None]":
    """Return what sees to it that a row can be judged by the rubric."""
    nothing = Response(text="")

    def check(row: Row) -> None:
        if procedure.judging.asks_for_verdicts(procedure.judges):
            procedure.judging.check(row.sample(row.response or nothing))

    return check
