"""Prepare a run: read the suite, open the dataset, build the plan, and estimate the cost."""

import math
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from jurybox import wiring
from jurybox.app.dataset_check import survey_rows
from jurybox.app.evaluate_once import CHECKLIST, check_checks, missing_rules
from jurybox.app.metadata import NAMELESS, RunIdentity
from jurybox.app.model_session import Budget, check_batchable, plan_models
from jurybox.app.remote_inputs import PATTERN, fetch_dataset, fetch_hub_dataset, fetch_prompt
from jurybox.app.suite_choice import ChosenSuite, RunOptions, choose_suite, choose_targets
from jurybox.datasets import Dataset, open_dataset, survey
from jurybox.datasets.fields import FIELD_OF
from jurybox.engine.plan import (
    DatasetPlan,
    DocumentPlan,
    Plan,
    TargetPlan,
    extended_rubric,
    overridden,
    read_prompt,
)
from jurybox.errors import CombinedError, InputError, ParseError, RubricError
from jurybox.integrations.ray_engine import RayCluster
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.judging.protocol import equal_votes, raised_votes
from jurybox.models.providers import ModelName
from jurybox.rubric import parse_rubric, render_rubric
from jurybox.rubric.rubric_model import Protocol, Rubric
from jurybox.rubric_files import read_path
from jurybox.sample import Row, Usage
from jurybox.scoring.evaluate_sample import Procedure, evaluate_sample
from jurybox.scoring.prices import cost, price_of
from jurybox.scoring.sample_result import Role
from jurybox.suite import JudgeSpec, LangfuseSpec
from jurybox.suite.model_spec import ModelSpec, chosen_models
from jurybox.suite.target_spec import HUB, LANGFUSE, TargetSpec, is_inline, parse_path
from jurybox.text_format import listed

_SHARED: Final[dict[str, Callable[[Rubric], object]]] = {
    "criteria": lambda rubric: [(each.id, each.source) for each in rubric.criteria],
    "ways of asking a judge": lambda rubric: [
        getattr(rubric, name) for name in (*Protocol.__struct_fields__, "generation")
    ],
    "required reviews": lambda rubric: rubric.require_review,
    "sample decisions": lambda rubric: rubric.sample_decisions,
    "names of scores": lambda rubric: (rubric.overall_name, rubric.components),
}
"""The parts of a rubric that an overlay may not change."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A checked plan, ready to run, with warnings for the user."""

    plan: Plan
    dataset: Dataset
    base_url: str | None = None
    identity: RunIdentity = NAMELESS
    langfuse: LangfuseSpec | None = None
    warnings: tuple[str, ...] = ()


def prepare(name: str | Path | Mapping[str, Any], options: RunOptions) -> Prepared:
    """Read all inputs of a run; refuse invalid ones before the first call."""
    found = prepare_all(name, options)
    if len(found) > 1:
        hint = "run it with `jurybox run` or `run_targets`, or name a single `target`"
        raise InputError("the suite has several targets", hint, "targets")
    return found[0]


def prepare_all(
    name: str | Path | Mapping[str, Any],
    options: RunOptions,
    cluster: RayCluster | None = None,
) -> list[Prepared]:
    """Prepare a run for every target of a suite; a ``cluster``, if given, checks large datasets."""
    found: list[Prepared] = []
    for chosen, own in choose_targets(choose_suite(name, options), options):
        rubric = own.rubric or chosen.suite.rubric
        folder = chosen.folder if own.rubric is None else None
        found.append(prepare_chosen(chosen, own, partial(read_rubric, rubric, folder), cluster))
    return found


@contextmanager
def _noted(errors: list[InputError]) -> Generator[None]:
    """Note an error, so that all inputs of a run are checked before any error is reported."""
    try:
        yield
    except InputError as error:
        errors.append(error)


def prepare_chosen(
    chosen: ChosenSuite,
    options: RunOptions,
    read: Callable[[], DocumentPlan],
    cluster: RayCluster | None = None,
) -> Prepared:
    """Read everything that a suite needs; ``read`` returns its rubric."""
    suite = chosen.suite
    limit = options.limit or suite.limit
    if suite.langfuse is not None:
        wiring.langfuse_client()  # a missing key is reported before the first call
    errors: list[InputError] = []
    judges = chosen_models(options.judges, () if suite.judge is None else suite.judge.models)
    answering = None if suite.target is None else suite.target.model
    for spec in (*judges, *filter(None, [answering])):
        with _noted(errors):
            check_pinned(spec.model, allow_unpinned=options.allow_unpinned)
    plan = None
    with _noted(errors):
        document = read()
        plan = None if errors else _checked_plan(chosen, options, document, judges)
    name, path, pattern = _dataset_path(chosen, options.dataset)
    dataset = None
    with _noted(errors):
        dataset = open_dataset(
            path,
            chosen.responses,
            pattern=pattern,
            limit=limit,
            columns=suite.columns,
            filters=options.filters,
        )
        if plan is None:
            survey(dataset, needs_response=suite.target is None)
    if errors or plan is None:
        raise errors[0] if len(errors) == 1 else CombinedError(errors)
    described = DatasetPlan(
        id=name,
        path=str(path.resolve()),
        sha256="",
        bytes=0,
        rows=0,
        limit=limit,
        columns=suite.columns,
        filters=options.filters,
        files=dataset.files,
        responses_id=options.responses,
        responses=None if chosen.responses is None else str(chosen.responses.resolve()),
        responses_sha256=dataset.recorded,
    )
    plan = msgspec.structs.replace(plan, dataset=described)
    found, demographics = survey_rows(dataset, plan, suite.unused, cluster)
    described = msgspec.structs.replace(
        described, sha256=found.sha256, bytes=found.bytes, rows=found.rows
    )
    warnings: tuple[str, ...] = ()
    if plan.judges and not options.judges and suite.judge is None:
        warnings = (wiring.DEFAULT_JUDGE_NOTICE.format(name=plan.judges[0]),)
    if plan.votes_raised_from is not None:
        raised = raised_votes(plan.votes_raised_from, plan.votes, plan.judges)
        warnings = (*warnings, raised)
    unseen = [name for name in plan.overlays if name not in demographics]
    if unseen and plan.dataset.is_whole:
        warnings = (*warnings, f"no row has the demographic {listed(unseen)}, which has an overlay")
    return Prepared(
        plan=msgspec.structs.replace(plan, dataset=described),
        dataset=dataset,
        base_url=options.base_url,
        identity=options.identity,
        langfuse=suite.langfuse,
        warnings=(*warnings, *found.warnings),
    )


def check_pinned(model: str, *, allow_unpinned: bool) -> None:
    """Refuse a model whose name states no version."""
    if not ModelName.parse(model).is_pinned and not allow_unpinned:
        hint = "name one with a date, or as `provider/name@version`, or pass --allow-unpinned"
        raise InputError("the name doesn't say which version is meant", hint, model)


def _dataset_path(chosen: ChosenSuite, given: str | None) -> tuple[str, Path, str]:
    """Return the name to record, the file or folder, and the pattern (empty for a single file)."""
    name = chosen.suite.dataset if given is None else given
    try:
        parse_path(name)
    except ParseError as error:
        raise InputError(error.problem, error.hint, "--dataset") from None
    folder = chosen.folder if given is None else Path()
    if name.startswith(HUB):
        pinned, folder = fetch_hub_dataset(name)
        return pinned, folder, PATTERN
    if not name.startswith(LANGFUSE):
        is_pattern = has_magic(name) and not os.path.lexists(folder / name)
        return (name, folder, name) if is_pattern else (name, folder / name, "")
    return (*fetch_dataset(name), "")


def read_rubric(name: str, folder: Path | None = None) -> DocumentPlan:
    """Find a rubric document; a path is relative to ``folder``."""
    files = wiring.rubric_files()
    found = files.read(name, folder or Path())
    reading = files.check(found)
    if reading.rubric is None:
        raise RubricError(found.origin, reading.findings)
    # An overlay is stored with its base applied, so that resuming and auditing read no other file.
    text = render_rubric(reading.rubric) if reading.bases else found.data.decode()
    return DocumentPlan(origin=found.origin, text=text)


def _overlays(
    chosen: ChosenSuite, base: DocumentPlan, rubric: Rubric, *, required: bool
) -> dict[str, DocumentPlan]:
    """Read overlays by demographic; skip overlays of other rubrics, or refuse if ``required``."""
    overlays: dict[str, DocumentPlan] = {}
    files = wiring.rubric_files()
    for demographic, name in chosen.suite.overlays.items():
        file = files.read(name, chosen.folder)
        own, bases = files.parse(file), files.check(file).bases
        extends = [files.parse(files.base(file, each)).id for each in bases]
        if extends == [rubric.id]:
            document = DocumentPlan(origin=file.origin, text=file.data.decode())
            _check_overlay(extended_rubric(document, base), rubric, file.origin)
            overlays[demographic] = document
        elif required:
            problem = f"`{own.id}` doesn't extend `{rubric.id}`"
            raise InputError(problem, f"add the line `extends: {rubric.id}` to it", file.origin)
    return overlays


def _check_overlay(overlay: Rubric, base: Rubric, origin: str) -> None:
    """Refuse an overlay that makes rows incomparable or replies unreadable."""
    for what, part in _SHARED.items():
        if part(overlay) != part(base):
            problem = f"`{overlay.id}` and `{base.id}` have different {what}"
            hint = f"leave them unchanged, or use the overlay alone with --rubric {overlay.id}"
            raise InputError(problem, hint, origin)


def _checked_plan(
    chosen: ChosenSuite, options: RunOptions, document: DocumentPlan, named: Sequence[ModelSpec]
) -> Plan:
    plan = _plan(chosen, options, document, named)
    if plan.batch:
        check_batchable(plan.judges, chosen.origin)
    # Reports a missing key, function or file of prices now instead of after the first sample.
    plan_models(plan, options.base_url)
    wiring.read_prices()
    if options.max_cost is not None:
        Budget(plan, options.max_cost)
    return plan


def _plan(
    chosen: ChosenSuite, options: RunOptions, document: DocumentPlan, named: Sequence[ModelSpec]
) -> Plan:
    """Return the plan, except for the description of its dataset."""
    suite = chosen.suite
    rubric = parse_rubric(document.text, document.origin)
    judge = suite.judge or JudgeSpec(models=())
    missing = missing_rules(rubric)
    check_checks(rubric, judges=bool(named), pair=False)
    specs = tuple(named)
    if not named and missing is not None:
        specs = (ModelSpec(model=wiring.default_judge(missing, chosen.origin)),)
    judges = tuple(spec.model for spec in specs)
    asked = options.votes or judge.votes or rubric.votes
    votes = equal_votes(judges, asked)
    batch = judge.batch if options.batch is None else options.batch
    for limit in ("timeout", "max_requests_per_minute", "max_tokens_per_minute"):
        if batch and any(getattr(spec, limit) is not None for spec in specs):
            problem = f"judges have a `{limit}`, but the provider sets the pace of a batch"
            hint = f"leave out `{limit}`, or ask directly with --no-batch"
            raise InputError(problem, hint, "judge")
    here = Path()
    target = None
    if suite.target is not None:
        prompt = _read_prompt_text(suite.target.prompt, here if options.prompt else chosen.folder)
        system = _read_prompt_text(suite.target.system, here if options.system else chosen.folder)
        target = _plan_target(suite.target, rubric, prompt, system, suite.columns)
    stop = judge.stop_when_decided
    usual = rubric.variance_repeats if suite.variance_sensitive else 1
    return Plan(
        suite=suite.suite,
        rubric=document,
        overlays=_overlays(chosen, document, rubric, required=options.rubric is None),
        checklist=read_rubric(CHECKLIST),
        dataset=DatasetPlan(id=suite.dataset, path="", sha256="", bytes=0, rows=0),
        judges=judges,
        votes=votes,
        votes_raised_from=None if votes == asked else asked,
        stop_when_decided=rubric.stop_when_decided if stop is None else stop,
        judge_models=tuple(spec for spec in specs if spec != ModelSpec(model=spec.model)),
        repeats=options.repeats or suite.repeats or usual,
        folder=str(chosen.home.resolve()),
        target=target,
        base_url=options.base_url and wiring.without_secrets(options.base_url),
        concurrency=options.concurrency or suite.concurrency,
        cache=suite.cache if options.cache is None else options.cache,
        allow_unpinned=options.allow_unpinned,
        batch=batch,
    )


class _PromptText(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and its name in records; ``system`` is the prompt's own system message, if any."""

    id: str
    text: str
    system: str | None = None


def _read_prompt_text(name: str | None, folder: Path) -> _PromptText | None:
    """Return a prompt by its text, its path or its name in Langfuse."""
    if name is None:
        return None
    if is_inline(name):
        return _PromptText(id="inline", text=name)
    if name.startswith(LANGFUSE):
        fetched = fetch_prompt(name)
        # Named by its version, because a label can move.
        pinned = f"{LANGFUSE}{fetched.name}@{fetched.version}"
        return _PromptText(id=pinned, text=fetched.text, system=fetched.system)
    found = read_path(folder / name)
    try:
        return _PromptText(id=name, text=found.data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise InputError(problem, "save the file as UTF-8", found.origin) from None


def _plan_target(
    spec: TargetSpec,
    rubric: Rubric,
    prompt: _PromptText | None,
    system: _PromptText | None,
    columns: Mapping[str, str],
) -> TargetPlan:
    """Return the plan of a target; ``columns`` maps fields to the suite's column names."""
    if system is not None and system.system is not None:
        raise InputError("this is a chat prompt", "name a text prompt", system.id)
    if prompt is not None and prompt.system is not None:
        if system is not None:
            problem = "the prompt has a system message, and the target has a `system` too"
            raise InputError(problem, "keep one of them", prompt.id)
        system = _PromptText(id=prompt.id, text=prompt.system)
    shown: dict[str, str] = {}
    if prompt is not None:
        named = {column: field for field, column in columns.items()}
        shown = read_prompt(prompt.text, prompt.id, {**FIELD_OF, **named})
    command = spec.command or ()
    model = spec.model.model if spec.model else f"command/{Path((*command, '')[0]).name}"
    target = TargetPlan(
        model=model,
        generation=overridden(rubric.generation, spec.generation),
        overrides=spec.generation,
        timeout=spec.timeout,
        command=command,
        stdin=spec.input,
        endpoint=spec.model,
        columns=shown,
        prompt_id=None if prompt is None else prompt.id,
        prompt=None if prompt is None else prompt.text,
        system_id=None if system is None else system.id,
        system=None if system is None else system.text,
        price=price_of(model, wiring.read_prices()),
    )
    # Uses the number types of a stored plan, because 0 and 0.0 make different requests.
    return msgspec.convert(msgspec.to_builtins(target), TargetPlan)


_CHARACTERS_PER_TOKEN: Final = 4
# Replaces a missing response in requests to judges.
_RESPONSE: Final = "x" * 400
_NOTES: Final = (
    "input: 4 characters per token, 400 characters for a missing response",
    "output: at most the token limit of each reply; requests after invalid replies aren't counted",
)


class ModelEstimate(msgspec.Struct, kw_only=True):
    """The calls to one model in one role, with the range of their tokens and cost.

    The cost is None if the price is unknown.
    """

    model: str
    role: Role
    calls: int = 0
    input_tokens: int = 0
    most_output_tokens: int = 0
    dollars: float | None = None
    most_dollars: float | None = None


class CostEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """A run's estimated calls, and its cost: from all replies empty to all of maximum length."""

    samples: int
    calls: int
    dollars: float | None
    most_dollars: float | None
    models: tuple[ModelEstimate, ...]
    notes: tuple[str, ...] = _NOTES


def _sum(parts: list[float | None]) -> float | None:
    known = [each for each in parts if each is not None]
    return round(math.fsum(known), 9) if len(known) == len(parts) else None


def estimate_cost(prepared: Prepared) -> CostEstimate:
    """Count every sample's requests, except those that depend on the replies of judges."""
    plan, procedure = prepared.plan, prepared.plan.procedure()
    models: dict[tuple[Role, str], ModelEstimate] = {}
    rows = prepared.dataset.rows(needs_response=plan.target is None)
    for _, row in islice(rows, plan.dataset.used):
        for role, request in _requests(procedure, row):
            key = (role, request.model)
            made = models.setdefault(key, ModelEstimate(model=request.model, role=role))
            letters = sum(len(message.content) for message in request.messages)
            made.calls += plan.repeats
            made.input_tokens += plan.repeats * math.ceil(letters / _CHARACTERS_PER_TOKEN)
            made.most_output_tokens += plan.repeats * request.generation.max_tokens
    prices = wiring.read_prices()
    for made in models.values():
        batched = plan.batch and made.role == "judge"
        for field, output in (("dollars", 0), ("most_dollars", made.most_output_tokens)):
            usage = Usage(input_tokens=made.input_tokens, output_tokens=output)
            setattr(made, field, cost(made.model, usage, prices, batched=batched))
    found = [models[key] for key in sorted(models)]
    return CostEstimate(
        samples=plan.samples,
        calls=sum(each.calls for each in found),
        dollars=_sum([each.dollars for each in found]),
        most_dollars=_sum([each.most_dollars for each in found]),
        models=tuple(found),
    )


def _requests(procedure: Procedure, row: Row) -> Iterator[tuple[Role, ModelRequest]]:
    """Yield the requests for a row, up to those that depend on the judges' replies."""
    flow = evaluate_sample(procedure, row)
    try:
        requests = next(flow)
        if procedure.target is not None:
            yield "target", requests[0]
            reply = ModelReply(text=_RESPONSE, sent=requests[0].generation, model=None)
            requests = flow.send((reply,))
        for request in requests:
            yield "judge", request
    except StopIteration:
        return
    finally:
        flow.close()
