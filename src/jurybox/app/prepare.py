"""Prepare a run: read the suite, open the dataset and build the plan."""

from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from jurybox.app.evaluate_once import CHECKLIST, missing_rules
from jurybox.app.model_session import check_batchable, plan_models
from jurybox.engine.plan import (
    DatasetPlan,
    DocumentPlan,
    Plan,
    TargetPlan,
    extended_rubric,
    overridden,
    read_prompt,
)
from jurybox.errors import InputError, RubricError, SeveralErrors
from jurybox.judging.protocol import equal_votes, raised_votes
from jurybox.models.names import ModelName
from jurybox.rubric import parse_rubric, render_rubric
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.template import Template
from jurybox.rubric_files import RubricFile, read_path, shown
from jurybox.sample import Response, Row
from jurybox.suite import JudgeSpec, Suite, TargetSpec, is_inline, parse_suite
from jurybox.suite.model_spec import ModelSpec, chosen_models
from jurybox.text_format import listed, nearest
from jurybox.wiring import (
    DEFAULT_JUDGE_NOTICE,
    embedded_judge,
    no_judge_error,
    read_settings,
    rubric_files,
)

if TYPE_CHECKING:
    from jurybox.datasets import Dataset
    from jurybox.scoring.evaluate_sample import Procedure


T = TypeVar("T")

_SUITE_FILE: Final = "suite.yaml"
_DATASETS: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


_SHARED: Final[dict[str, Callable[[Rubric], object]]] = {
    "criteria": lambda rubric: [(each.id, each.source) for each in rubric.criteria],
    "ways of asking a judge": lambda rubric: (rubric.protocol, rubric.generation),
    "required reviews": lambda rubric: rubric.require_review,
    "sample decisions": lambda rubric: rubric.sample_decisions,
    "names of scores": lambda rubric: (rubric.overall_name, rubric.components),
}
"""What an overlay for some rows of a run may not change."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides of a suite; None leaves a value to the suite or the rubric."""

    rubric: str | None = None
    target: str | None = None
    prompt: str | None = None
    system: str | None = None
    responses: str | None = None
    judges: tuple[str, ...] = ()
    repeats: int | None = None
    dataset: str | None = None
    votes: int | None = None
    limit: int | None = None
    concurrency: int | None = None
    base_url: str | None = None
    allow_unpinned: bool = False
    cache: bool | None = None
    batch: bool | None = None


class ChosenSuite(msgspec.Struct, frozen=True, kw_only=True):
    """A suite with the overrides of its target applied, and the folders its paths start from.

    Commands run and functions are imported in ``home``: the suite's folder, or the current one for
    a bundled suite. Paths given as options start from the current folder.
    """

    suite: Suite
    origin: str
    folder: Path
    home: Path
    responses: Path | None = None


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A checked plan, ready to run, with warnings for the user."""

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
    own = options.rubric
    rubric = chosen.suite.rubric if own is None else own
    folder = chosen.folder if own is None else None
    return prepare_chosen(chosen, options, lambda: read_rubric(rubric, folder))


class _Attempts:
    """Goes on after an error, so that all parts of a run are checked at once."""

    def __init__(self) -> None:
        self.errors: list[InputError] = []

    def __call__(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except InputError as error:
            self.errors.append(error)
            return None

    def failed(self) -> InputError:
        """Return the one error, or all of them."""
        return self.errors[0] if len(self.errors) == 1 else SeveralErrors(self.errors)


def prepare_chosen(
    chosen: ChosenSuite,
    options: RunOptions,
    read: Callable[[], tuple[DocumentPlan, tuple[str, ...]]],
) -> Prepared:
    """Read everything that a suite needs; ``read`` returns its rubric.

    Raises:
        InputError: the rubric, a prompt, a model's name or the dataset can't be used.

    """
    from jurybox.datasets import open_dataset, survey

    suite = chosen.suite
    if suite.dataset.startswith("langfuse:"):
        problem = "datasets can't be loaded from Langfuse yet"
        raise InputError(problem, "name a file", f"{chosen.origin}: {shown(suite.dataset)}")
    limit = options.limit or suite.limit
    path = chosen.folder / suite.dataset if options.dataset is None else Path(options.dataset)
    attempt = _Attempts()
    rubric, warnings = attempt(read) or (None, ())
    plan = None if rubric is None else attempt(lambda: _checked_plan(chosen, options, rubric))
    procedure = None if plan is None else plan.procedure()
    prompt = None if plan is None or plan.target is None else plan.target.prompt
    used = {*suite.unused, *(() if prompt is None else Template(text=prompt).parts())}
    drops = prompt is not None and "context" not in used

    def check(row: Row) -> None:
        nonlocal drops
        if drops and row.context:
            drops = False  # once for the whole file
            problem = "the target's prompt drops the rows' `context`"
            hint = "put `{{context}}` into the prompt, or `unused: [context]` into the suite"
            raise InputError(problem, hint)
        if procedure is not None and procedure.judging.asks_for_verdicts(procedure.judges):
            procedure.judging.check(row.sample(row.response or Response(text="")))

    dataset = attempt(
        lambda: open_dataset(path, chosen.responses, limit=limit, columns=suite.columns)
    )
    needed = suite.target is None
    found = dataset and attempt(lambda: survey(dataset, needs_response=needed, check=check))
    if plan is None or procedure is None or dataset is None or found is None:
        raise attempt.failed()
    described = DatasetPlan(
        id=options.dataset or suite.dataset,
        path=str(dataset.path.resolve()),
        sha256=found.sha256,
        bytes=found.bytes,
        rows=found.rows,
        limit=limit,
        columns=suite.columns,
        responses_id=options.responses,
        responses=None if chosen.responses is None else str(chosen.responses.resolve()),
        responses_sha256=dataset.recorded,
    )
    if not plan.judges:
        warnings = ()  # a rubric's warnings concern judges
    elif not options.judges and suite.judge is None:
        warnings = (*warnings, DEFAULT_JUDGE_NOTICE.format(name=plan.judges[0]))
    if plan.votes_raised_from is not None:
        raised = raised_votes(plan.votes_raised_from, plan.votes, plan.judges)
        warnings = (*warnings, raised)
    return Prepared(
        plan=msgspec.structs.replace(plan, dataset=described),
        procedure=procedure,
        dataset=dataset,
        warnings=(*warnings, *found.warnings),
    )


def bundled_suites() -> dict[str, Path]:
    """Return the folders of the bundled suites by name."""
    library = Path(str(resources.files("jurybox.suite"))) / "library"
    return {path.parent.name: path.parent for path in sorted(library.glob(f"*/{_SUITE_FILE}"))}


def choose_suite(name: str | Path, options: RunOptions) -> ChosenSuite:
    """Find a suite and apply the options that concern its target.

    A name that ends in `.yaml` or contains a `/` is a path; any other is looked up among the
    bundled suites first.

    Raises:
        InputError: there is no such suite, or the options contradict it.
        SuiteError: the suite has faults.

    """
    bundled = bundled_suites()
    is_name = isinstance(name, str) and not name.endswith((".yaml", ".yml")) and "/" not in name
    folder = bundled.get(str(name)) if is_name else None
    path = Path(name) if folder is None else folder / _SUITE_FILE
    if folder is None and is_name and not _is_file(path):
        otherwise = f"give the path of a suite file, or one of {listed(bundled)}"
        raise InputError("no such suite", nearest(str(name), bundled, otherwise), shown(name))
    file = read_path(path)
    kind = "dataset" if path.suffix.lower() in _DATASETS else "rubric"
    if kind == "dataset" or path.suffix.lower() == ".md":
        hint = f"write a suite with a line `{kind}: {path.name}`, and run that"
        raise InputError(f"this is a {kind}, not a suite", hint, file.origin)
    origin = str(name) if folder is not None else file.origin
    suite = _with_target(parse_suite(file.data, origin), options, origin)
    if suite.rows:
        suite = msgspec.structs.replace(suite, dataset=path.name)
    recorded = _recorded(folder)
    responses = None if options.responses is None else _responses(options.responses, recorded)
    if folder is not None and suite.target is None and responses is None:
        known = listed(recorded)
        hint = f"name a model with --target, or responses with --responses: {known} or a file"
        raise InputError("the suite has no target and no responses", hint, origin)
    return ChosenSuite(
        suite=suite,
        origin=origin,
        folder=path.parent,
        home=path.parent if folder is None else Path(),
        responses=responses,
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _with_target(suite: Suite, options: RunOptions, origin: str) -> Suite:
    """Return the suite with its target changed by the options."""
    given = {"--target": options.target, "--prompt": options.prompt, "--system": options.system}
    named = [option for option, value in given.items() if value is not None]
    if options.responses is not None:
        if named:
            problem = f"{named[0]} has no use with recorded responses"
            raise InputError(problem, "give --responses or a target, not both")
        return msgspec.structs.replace(suite, target=None)
    if not named:
        return suite
    spec = suite.target
    if options.target is not None:
        known = () if spec is None or spec.model is None else (spec.model,)
        (model,) = chosen_models([options.target], known)
        ModelName.parse(model.model)
        spec = spec or TargetSpec()
        spec = msgspec.structs.replace(
            spec, model=model, command=None, input="text", timeout=model.timeout or spec.timeout
        )
    if spec is None:
        raise InputError(f"{named[0]} is for a target", "name one with --target", origin)
    if spec.command is not None and options.system is not None:
        raise InputError("a command takes no system prompt", "leave --system out", origin)
    spec = msgspec.structs.replace(
        spec, prompt=options.prompt or spec.prompt, system=options.system or spec.system
    )
    return msgspec.structs.replace(suite, target=spec)


def _recorded(folder: Path | None) -> dict[str, Path]:
    """Return the recorded responses that come with a bundled suite."""
    paths = () if folder is None else sorted((folder / "responses").glob("*.jsonl"))
    return {path.stem: path for path in paths}


def _responses(name: str, recorded: dict[str, Path]) -> Path:
    """Return the file of recorded responses: bundled ones by name, others by path."""
    path = recorded.get(name, Path(name))
    if recorded and "/" not in name and not path.suffix and not _is_file(path):
        hint = nearest(name, recorded, f"there are {listed(recorded)}; or give a file")
        raise InputError("no such recorded responses", hint, shown(name))
    return path


def read_rubric(name: str, folder: Path | None = None) -> tuple[DocumentPlan, tuple[str, ...]]:
    """Find a rubric document and return it with its warnings; a path starts from ``folder``.

    Raises:
        InputError: there is no such document.
        RubricError: it has faults.

    """
    found = _document(name, folder)
    reading = rubric_files().check(found)
    if reading.rubric is None:
        raise RubricError(found.origin, reading.findings)
    # A document that extends another is stored whole: resuming and auditing read no other file.
    text = render_rubric(reading.rubric) if reading.bases else found.data.decode()
    warnings = tuple(f"{found.origin}:{warning}" for warning in reading.warnings)
    return DocumentPlan(origin=found.origin, text=text), warnings


def _document(name: str, folder: Path | None) -> RubricFile:
    is_path = name.endswith(".md") or "/" in name
    return read_path(folder / name) if folder is not None and is_path else rubric_files().read(name)


def _overlays(
    chosen: ChosenSuite, base: DocumentPlan, rubric: Rubric, *, required: bool
) -> dict[str, DocumentPlan]:
    """Read the overlays for the rows of a demographic; those of another rubric are left out."""
    overlays: dict[str, DocumentPlan] = {}
    files = rubric_files()
    for demographic, name in chosen.suite.overlays.items():
        file = _document(name, chosen.folder)
        own, bases = files.parse(file), files.check(file).bases
        extends = [files.parse(files.base(file, each)).id for each in bases]
        if extends == [rubric.id]:
            document = DocumentPlan(origin=file.origin, text=file.data.decode())
            _check_overlay(extended_rubric(document, base), rubric, file.origin)
            overlays[demographic] = document
        elif required:
            problem = f"`{own.id}` doesn't extend `{rubric.id}`"
            raise InputError(problem, f"give it a line `extends: {rubric.id}`", file.origin)
    return overlays


def _check_overlay(overlay: Rubric, base: Rubric, origin: str) -> None:
    """Refuse what would make the rows of a run incomparable, or its replies unreadable."""
    for what, part in _SHARED.items():
        if part(overlay) != part(base):
            problem = f"`{overlay.id}` has other {what} than `{base.id}`"
            hint = f"leave them as they are, or use it for a whole run: --rubric {overlay.id}"
            raise InputError(problem, hint, origin)


def _checked_plan(chosen: ChosenSuite, options: RunOptions, document: DocumentPlan) -> Plan:
    plan = _plan(chosen, options, document)
    if plan.batch:
        check_batchable(plan.judges, chosen.origin)
    # Reports a missing key or function now instead of after the first sample.
    plan_models(plan, read_settings(), options.base_url)
    return plan


def _plan(chosen: ChosenSuite, options: RunOptions, document: DocumentPlan) -> Plan:
    """Return the plan, but for the description of its dataset."""
    suite = chosen.suite
    rubric = parse_rubric(document.text, document.origin)
    judge = suite.judge or JudgeSpec(models=())
    specs = _judges(chosen_models(options.judges, judge.models), rubric, chosen.origin)
    judges = tuple(spec.model for spec in specs)
    asked = options.votes or judge.votes or rubric.protocol.votes
    votes = equal_votes(judges, asked)
    batch = judge.batch if options.batch is None else options.batch
    for limit in ("timeout", "max_requests_per_minute", "max_tokens_per_minute"):
        if batch and any(getattr(spec, limit) is not None for spec in specs):
            problem = f"judges have a `{limit}`, but a batch is as fast as its provider"
            hint = f"leave out `{limit}`, or ask directly with --no-batch"
            raise InputError(problem, hint, "judge")
    target = None if suite.target is None else _target(suite.target, rubric, chosen, options)
    models = judges if target is None or target.command else (*judges, target.model)
    for model in models:
        if not options.allow_unpinned and not ModelName.parse(model).is_pinned:
            hint = "name one with a date, or as `provider/name@version`, or pass --allow-unpinned"
            raise InputError("the name doesn't say which version is meant", hint, model)
    stop = judge.stop_when_decided
    usual = rubric.protocol.variance_repeats if suite.variance_sensitive else 1
    return Plan(
        suite=suite.suite,
        rubric=document,
        overlays=_overlays(chosen, document, rubric, required=options.rubric is None),
        checklist=read_rubric(CHECKLIST)[0],
        dataset=DatasetPlan(id=suite.dataset, path="", sha256="", bytes=0, rows=0),
        judges=judges,
        votes=votes,
        votes_raised_from=None if votes == asked else asked,
        stop_when_decided=rubric.protocol.stop_when_decided if stop is None else stop,
        judge_models=tuple(spec for spec in specs if spec != ModelSpec(model=spec.model)),
        repeats=options.repeats or suite.repeats or usual,
        folder=str(chosen.home.resolve()),
        target=target,
        base_url=without_secrets(options.base_url),
        concurrency=options.concurrency or suite.concurrency,
        cache=suite.cache if options.cache is None else options.cache,
        allow_unpinned=options.allow_unpinned,
        batch=batch,
    )


def _judges(named: Sequence[ModelSpec], rubric: Rubric, origin: str) -> tuple[ModelSpec, ...]:
    """Return the named judges; none where the rules score everything, else the embedded one."""
    missing = missing_rules(rubric)
    if named or missing is None:
        return tuple(named)
    embedded = embedded_judge()
    if embedded is None:
        hint = "name one under `judge: models:`, or with --judge"
        raise no_judge_error(f"no judge was given, and {missing}", hint, origin)
    return (ModelSpec(model=embedded),)


def _target(
    spec: TargetSpec, rubric: Rubric, chosen: ChosenSuite, options: RunOptions
) -> TargetPlan:
    here = Path()
    prompt = _text(spec.prompt, chosen.folder if options.prompt is None else here)
    if prompt is not None:
        read_prompt(prompt, str(_id_of(spec.prompt)))
    command = spec.command or ()
    target = TargetPlan(
        model=spec.model.model
        if spec.model
        else f"command/{Path(command[0] if command else '').name}",
        generation=overridden(rubric.generation, spec.generation),
        overrides=spec.generation,
        timeout=spec.timeout,
        command=command,
        stdin=spec.input,
        endpoint=spec.model,
        prompt_id=_id_of(spec.prompt),
        prompt=prompt,
        system_id=_id_of(spec.system),
        system=_text(spec.system, chosen.folder if options.system is None else here),
    )
    # With the number types of a stored plan: 0 and 0.0 would make two different requests.
    return msgspec.convert(msgspec.to_builtins(target), TargetPlan)


def _id_of(prompt: str | None) -> str | None:
    """Return what a prompt is called in records: its path, or where it stands."""
    return "inline" if prompt is not None and is_inline(prompt) else prompt


def _text(name: str | None, folder: Path) -> str | None:
    if name is None or is_inline(name):
        return name
    if name.startswith("langfuse:"):
        raise InputError("prompts can't be loaded from Langfuse yet", "give a file", name)
    found = read_path(folder / name)
    try:
        return found.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise InputError(problem, "save the file as UTF-8", found.origin) from None


def without_secrets(url: str | None) -> str | None:
    """Return an address without user name, password and query: plans are stored."""
    if url is None:
        return None
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
