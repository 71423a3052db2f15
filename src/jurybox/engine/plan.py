"""The plan of a run: everything that determines it, stored before its first call.

A plan contains the texts themselves instead of file names, so that a run can be resumed, audited
and rescored after the files have changed. It never contains a key or a password.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from jurybox.engine.records import ENCODER
from jurybox.errors import InputError
from jurybox.judging.flow import ModelRequest
from jurybox.judging.protocol import Judging
from jurybox.rubric import Base, parse_rubric
from jurybox.rubric.rubric_model import Generation, Rubric
from jurybox.rubric.template import PLACEHOLDERS, Template
from jurybox.sample import Response, Row, Turn
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.prices import Price
from jurybox.scoring.rules.rule_compiler import compile_rules
from jurybox.suite.model_spec import ModelSpec

RECORDED: Final = "recorded"
"""The target name of runs whose dataset contains the responses."""

Metadata = dict[str, Any]


_SHOWN: Final = ("task", "context", "messages")
"""The fields that a system under test may see; the reference isn't one of them."""


def read_prompt(text: str, origin: str, fields: Mapping[str, str]) -> dict[str, str]:
    """Check a target's prompt; return the fields that it shows, by the column names that it uses.

    ``fields`` maps column names to fields. A placeholder that isn't a field names a column.
    """
    names = [name for name, _ in Template(text=text).placeholders()]
    shown = {name: PLACEHOLDERS.get(name) or fields.get(name) for name in names}
    for name, part in shown.items():
        if part is not None and part not in _SHOWN:
            known = "a prompt may show `{{task}}`, `{{context}}`, `{{messages}}` and other columns"
            problem = f"`{name}` would show the system under test what it is compared with"
            raise InputError(problem, known, origin)
    if "task" not in shown.values():
        raise InputError("the prompt never shows the task", "put `{{task}}` into it", origin)
    return {name: part for name, part in shown.items() if part and name not in PLACEHOLDERS}


def overridden(base: Generation, overrides: Mapping[str, float]) -> Generation:
    """Return the generation parameters with the overrides applied."""
    return msgspec.structs.replace(base, **overrides) if overrides else base


class DatasetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset of a run: its file or files, their hash, and the chosen rows.

    If ``id`` is a pattern, ``files`` are its matches in the folder ``path``. ``columns`` maps
    fields to the suite's column names. ``filters`` select rows by ``FIELD=VALUE``; ``rows`` counts
    the selected ones. ``responses`` is the file of recorded responses joined to the rows, if any.
    """

    id: str
    path: str
    sha256: str
    bytes: int
    rows: int
    limit: int | None = None
    columns: dict[str, str] = {}
    filters: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    responses_id: str | None = None
    responses: str | None = None
    responses_sha256: str | None = None

    @property
    def used(self) -> int:
        """How many rows the run uses."""
        return self.rows if self.limit is None else min(self.rows, self.limit)

    @property
    def is_whole(self) -> bool:
        """Whether the run uses all rows."""
        return self.limit is None and not self.filters

    def recorded(self) -> dict[str, str]:
        """Return which recorded responses were joined to the rows, for the run's metadata."""
        if self.responses_id is None:
            return {}
        digest = f"sha256:{self.responses_sha256}"
        return {"responses_id": self.responses_id, "responses_version_or_hash": digest}


class TargetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The system under test with its prompt, and its own ``endpoint`` if it has one.

    ``columns`` maps the column names that its prompt uses to fields.
    """

    model: str
    generation: Generation
    timeout: float
    command: tuple[str, ...] = ()
    stdin: Literal["text", "json"] = "text"
    prompt_id: str | None = None
    prompt: str | None = None
    system_id: str | None = None
    system: str | None = None
    overrides: dict[str, float] = {}
    endpoint: ModelSpec | None = None
    price: Price | None = None
    columns: dict[str, str] = {}

    @property
    def spec(self) -> ModelSpec:
        """The model with its endpoint; a command has none."""
        return self.endpoint or ModelSpec(model=self.model)

    def request(self, row: Row) -> ModelRequest:
        """Return the request for one row: the system prompt, the earlier turns, then the task.

        If the prompt shows the turns itself, they aren't sent as messages.
        """
        turns = row.messages
        if self.prompt is not None:
            prompt = Template(text=self.prompt)
            written = "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
            parts = {"task": row.task, "context": row.context or "", "messages": written}
            own = {name: _written(value) for name, value in row.metadata.items()}
            aliases = {name: parts[field] for name, field in self.columns.items()}
            asked = prompt.fill({**own, **aliases, **parts})
            turns = () if turns and "messages" in prompt.parts() else turns
        elif row.context:
            asked = f"{row.context}\n\n{row.task}"
        else:
            asked = row.task
        system = () if self.system is None else (Turn(role="system", content=self.system),)
        messages = (*system, *turns, Turn(role="user", content=asked))
        return ModelRequest(model=self.model, messages=messages, generation=self.generation)


def _written(value: object) -> str:
    # With sorted keys, as in the store, so that an audit gets the same text.
    return value if isinstance(value, str) else ENCODER.encode(value).decode()


class DocumentPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The exact text of a rubric document."""

    origin: str
    text: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that determines a run.

    ``judge_models`` are the judges that have their own endpoint or limits. ``batch`` means that
    judges are called through the provider's batch API. ``derived_from`` is the run whose replies a
    rescored run uses.
    ``overlays`` are the overlay documents by demographic.
    """

    suite: str
    rubric: DocumentPlan
    checklist: DocumentPlan
    dataset: DatasetPlan
    judges: tuple[str, ...]
    votes: int
    repeats: int
    # The number of votes before it was raised so that every judge gives equally many.
    votes_raised_from: int | None = None
    stop_when_decided: bool = False
    judge_models: tuple[ModelSpec, ...] = ()
    folder: str = ""
    target: TargetPlan | None = None
    base_url: str | None = None
    concurrency: int | None = None
    cache: bool = False
    allow_unpinned: bool = False
    batch: bool = False
    derived_from: str | None = None
    overlays: dict[str, DocumentPlan] = {}

    @property
    def samples(self) -> int:
        """The number of records that the run will have."""
        return self.dataset.used * self.repeats

    def judge_specs(self) -> dict[str, ModelSpec]:
        """Return every judge by name, with its own settings."""
        own = {each.model: each for each in self.judge_models}
        return {name: own.get(name) or ModelSpec(model=name) for name in self.judges}

    def model_specs(self) -> list[ModelSpec]:
        """Return every judge, and the target if it is a model."""
        specs = [*self.judge_specs().values()]
        if self.target is not None and not self.target.command:
            specs.append(self.target.spec)
        return specs

    def procedure(self) -> Procedure:
        """Return how each sample is evaluated."""
        return msgspec.structs.replace(
            self._procedure(parse_rubric(self.rubric.text, self.rubric.origin)),
            overlays={
                demographic: self._procedure(extended_rubric(document, self.rubric))
                for demographic, document in self.overlays.items()
            },
        )

    def _procedure(self, rubric: Rubric) -> Procedure:
        checklist = parse_rubric(self.checklist.text, self.checklist.origin)
        return Procedure(
            judging=Judging(
                rubric=rubric, checklist=checklist, stop_when_decided=self.stop_when_decided
            ),
            judges=self.judges,
            votes=self.votes,
            target=None if self.target is None else self.target.request,
            rules=compile_rules(rubric),
            price=None if self.target is None else self.target.price,
        )


@lru_cache(maxsize=16)
def extended_rubric(overlay: DocumentPlan, base: DocumentPlan) -> Rubric:
    """Return the rubric that results from applying an overlay to a base document."""
    return parse_rubric(overlay.text, overlay.origin, lambda _: _base(base))


def _base(document: DocumentPlan) -> Base:
    data = document.text.encode()
    return Base(origin=document.origin, key="", data=data, find=lambda _: _base(document))


def plan_text(plan: Plan) -> str:
    """Return the plan in its stored form."""
    return ENCODER.encode(plan).decode()


def read_plan(text: str) -> Plan:
    """Read a stored plan."""
    return msgspec.json.decode(text, type=Plan)


def evaluator_prompt_hash(judging: Judging) -> str:
    """Return the SHA-256 of the judges' prompts.

    Hashes the rubric's own prompt template, if it has one. Otherwise hashes the generated prompts,
    with placeholders instead of a sample's texts.
    """
    if judging.rubric.template is not None:
        return hashlib.sha256(judging.rubric.template.text.encode()).hexdigest()
    row = Row(id="", task="{{task}}", context="{{context}}")
    response = Response(text="{{response}}")
    plain = row.sample(response)
    referenced = msgspec.structs.replace(plain, reference="{{reference}}")
    prompts = (
        judging.score_question(plain, response.text).text,
        judging.score_question(referenced, response.text).text,
        judging.pair_question(plain, response.text, "{{response_b}}").text,
    )
    return hashlib.sha256("\n".join(prompts).encode()).hexdigest()


def prompt_hash(target: TargetPlan | None) -> str | None:
    """Return the SHA-256 of the prompts for the system under test."""
    if target is None or (target.prompt is None and target.system is None):
        return None
    texts = [target.prompt] if target.system is None else [target.system, target.prompt]
    return hashlib.sha256("\n".join(text or "" for text in texts).encode()).hexdigest()


def planned_metadata(plan: Plan, procedure: Procedure) -> Metadata:
    """Return the metadata that follow from the plan; an audit recomputes them."""
    target, judging = plan.target, procedure.judging
    return {
        "dataset_id": plan.dataset.id,
        "dataset_version_or_hash": f"sha256:{plan.dataset.sha256}",
        "model_id": RECORDED if target is None else target.model,
        "evaluator_model_id": ", ".join(plan.judges) or None,
        "prompt_template_id": None if target is None else target.prompt_id or target.system_id,
        "prompt_template_version_or_hash": _tagged(prompt_hash(target)),
        "evaluator_prompt_template_version_or_hash": _tagged(
            evaluator_prompt_hash(judging) if plan.judges else None
        ),
        "generation_params": _generation(plan, procedure),
        "rubric": _named(judging.rubric),
        **({"overlays": _overlays(procedure)} if plan.overlays else {}),
        "dataset_rows": plan.dataset.rows,
        "dataset_rows_used": plan.dataset.used,
        "repeats": plan.repeats,
        "votes": plan.votes if plan.judges else 0,
        **({"votes_raised_from": raised} if (raised := plan.votes_raised_from) else {}),
        **({"stop_when_decided": True} if plan.stop_when_decided else {}),
        "allow_unpinned": plan.allow_unpinned,
        **plan.dataset.recorded(),
        **({"filter": list(plan.dataset.filters)} if plan.dataset.filters else {}),
        **({"batch": True} if plan.batch else {}),
    }


def _overlays(procedure: Procedure) -> dict[str, dict[str, str]]:
    overlays = sorted(procedure.overlays.items())
    return {demographic: _named(own.judging.rubric) for demographic, own in overlays}


def _named(rubric: Rubric) -> dict[str, str]:
    return {"id": rubric.id, "version": rubric.version, "sha256": rubric.sha256}


def _generation(plan: Plan, procedure: Procedure) -> dict[str, Any]:
    """Return the parameters sent to each role; a list of values if votes differ."""
    target, judge = plan.target, None
    if plan.judges:
        panel = procedure.judging.panel(plan.judges, plan.votes)
        sent = [msgspec.to_builtins(seat.generation) for seat in panel.seats]
        judge = {name: _one_or_each([each[name] for each in sent]) for name in sent[0]}
        judge |= {"overrides": panel.overrides}
    return {
        "target": None
        if target is None
        else {**msgspec.to_builtins(target.generation), "overrides": target.overrides},
        "judge": judge,
    }


def _one_or_each(values: list[Any]) -> Any:  # noqa: ANN401 - whatever a parameter may be
    return values[0] if values.count(values[0]) == len(values) else values


def _tagged(digest: str | None) -> str | None:
    return None if digest is None else f"sha256:{digest}"
