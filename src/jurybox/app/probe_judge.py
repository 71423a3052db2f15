"""Probes a judge: changes samples of a run, and has them judged again in separate runs."""

import hashlib
import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from jurybox.app.bias_report import PROBE
from jurybox.app.ids import kept_dataset
from jurybox.app.metadata import RunIdentity, judge_versions, recorded_versions
from jurybox.app.model_session import plan_models
from jurybox.app.prepare import Prepared, check_pinned
from jurybox.app.run_suite import Watch, equal_run, finished_run
from jurybox.calibration import probes
from jurybox.calibration.bias_results import (
    CHANGE,
    Bias,
    BiasMetric,
    Probed,
    ProbeRun,
    change_of,
    unmeasured,
)
from jurybox.datasets import open_dataset, survey
from jurybox.datasets.fields import MAX_ID
from jurybox.engine.plan import DatasetPlan, DocumentPlan, Plan
from jurybox.engine.records import ENCODER, RunRow
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.protocol import equal_votes, gives_evidence
from jurybox.reporting.stored import SampleRecord, plan_of, reading
from jurybox.rubric import render_rubric
from jurybox.sample import Sample
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.storage.store import Store
from jurybox.suite.model_spec import ModelSpec, chosen_models
from jurybox.wiring import without_secrets

_FOLDER: Final = "probes"


class ProbeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``jurybox bias --probe``."""

    count: int
    seed: int = 0
    judges: tuple[str, ...] = ()
    base_url: str | None = None
    allow_version_drift: bool = False


class Picked(msgspec.Struct, frozen=True, kw_only=True):
    """A sample to judge again, the response to measure, and that response's score in the run."""

    sample: Sample
    side: Side
    before: float


class ProbeTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A run of changed samples; ``known`` is an identical run in the store, finished or not."""

    kinds: tuple[probes.ProbeKind, ...]
    prepared: Prepared
    known: RunRow | None = None

    @property
    def is_done(self) -> bool:
        """Whether the known run is finished."""
        return self.known is not None and self.known.status == "finished"


class ProbePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The runs to start; ``skipped`` says why some kinds of changes can't be made.

    ``comparable`` means that the run's own scores come from the same judges and prompt. ``calls``
    is the minimum number of calls; None if unknown.
    """

    picked: tuple[Picked, ...]
    trials: tuple[ProbeTrial, ...]
    judges: tuple[str, ...]
    comparable: bool
    skipped: dict[str, str]
    calls: int | None


def plan_probe(store: Store, row: RunRow, options: ProbeOptions) -> ProbePlan:
    """Choose samples, change them, and prepare the runs; no model is called yet."""
    plan = plan_of(row)
    specs = _judges(plan, options, row.id)
    judges = tuple(spec.model for spec in specs)
    with reading(row):
        picked = tuple(_pick(store, row.id, options))
    if not picked:
        raise InputError("no sample of the run was scored", "leave --probe out", row.id)
    base = msgspec.structs.replace(
        plan,
        suite=f"{plan.suite}{PROBE}",
        judges=judges,
        judge_models=specs,
        votes=equal_votes(judges, plan.votes_raised_from or plan.votes),
        votes_raised_from=None,
        repeats=1,
        target=None,
        base_url=without_secrets(options.base_url or "") or plan.base_url,
        # A cached reply would hide how much a judge varies.
        cache=False,
        batch=False,
        derived_from=None,
    )
    procedure = base.procedure()
    samples = [each.sample for each in picked]
    trials: list[ProbeTrial] = []
    skipped: dict[str, str] = {}
    together = [kind for kind in probes.KINDS if kind.changes != "rubric"]
    trials.append(_trial(store, base, together, picked, run_id=row.id, options=options))
    for kind in probes.KINDS:
        if kind.changes != "rubric":
            continue
        if all(map(gives_evidence, judges)):
            skipped[kind.id] = "the judge is asked narrow questions and never sees the whole rubric"
            continue
        rubric = probes.changed_rubric(procedure.judging.rubric, kind, samples)
        if isinstance(rubric, str):
            skipped[kind.id] = rubric
            continue
        document = DocumentPlan(origin=f"{plan.rubric.origin}{PROBE}", text=render_rubric(rubric))
        changed = msgspec.structs.replace(base, rubric=document)
        trials.append(_trial(store, changed, [kind], picked, run_id=row.id, options=options))
    return ProbePlan(
        picked=picked,
        trials=tuple(trials),
        judges=judges,
        # A rescored run's replies answer a different prompt; a judge's new version is a new judge.
        comparable=judges == plan.judges
        and plan.derived_from is None
        and recorded_versions(row) == judge_versions(base),
        skipped=skipped,
        calls=_calls(trials, procedure, picked),
    )


def _judges(plan: Plan, options: ProbeOptions, run_id: str) -> tuple[ModelSpec, ...]:
    specs = tuple(chosen_models(options.judges, tuple(plan.judge_specs().values())))
    if not specs:
        raise InputError("no judge scored the run", "name one with --judge", run_id)
    for name in (spec.model for spec in specs):
        check_pinned(name, allow_unpinned=name in plan.judges or plan.allow_unpinned)
    return specs


def _pick(store: Store, run_id: str, options: ProbeOptions) -> list[Picked]:
    """Choose samples by the hash of the seed and their id, independently of their order."""
    longest = max(len(probes.probe_id("", kind)) for kind in probes.KINDS)

    def eligible() -> Iterator[tuple[str, int, Picked]]:
        for sample in store.samples(run_id):
            record = SampleRecord(sample)
            report = record.report
            if report is None or sample.repeat or len(sample.sample_id) + longest > MAX_ID:
                continue
            side = probes.tried_side(sample.sample_id, pair=report.method == "pairwise")
            before = probes.share_won(report, side)
            if before is not None:
                text = f"{options.seed}:{sample.sample_id}"
                digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
                picked = Picked(sample=record.sample, side=side, before=before)
                yield digest, sample.number, picked

    chosen = heapq.nsmallest(options.count, eligible(), key=lambda each: each[:2])
    return [picked for _, _, picked in sorted(chosen, key=lambda each: each[1])]


def _trial(
    store: Store,
    plan: Plan,
    kinds: Sequence[probes.ProbeKind],
    picked: Sequence[Picked],
    *,
    run_id: str,
    options: ProbeOptions,
) -> ProbeTrial:
    procedure = plan.procedure()
    data = b"".join(_lines(kinds, picked, procedure))
    path = kept_dataset(_FOLDER, run_id, data, store.address)
    dataset = open_dataset(path)
    plan_models(plan, options.base_url)
    found = survey(dataset, needs_response=True)
    described = DatasetPlan(
        id=path.name,
        path=str(path.resolve()),
        sha256=found.sha256,
        bytes=found.bytes,
        rows=found.rows,
    )
    plan = msgspec.structs.replace(plan, dataset=described)
    for each in picked:
        if not all(map(gives_evidence, plan.judges)):
            procedure.judging.check(each.sample)
    prepared = Prepared(
        plan=plan,
        dataset=dataset,
        base_url=options.base_url,
        identity=RunIdentity(allow_version_drift=options.allow_version_drift),
    )
    return ProbeTrial(kinds=tuple(kinds), prepared=prepared, known=equal_run(store, plan))


def _lines(
    kinds: Sequence[probes.ProbeKind], picked: Sequence[Picked], procedure: Procedure
) -> Iterator[bytes]:
    for each in picked:
        for kind in kinds:
            changed = probes.changed_sample(each.sample, kind, procedure.judging, each.side)
            second = changed.response_b
            row = {
                "id": probes.probe_id(changed.id, kind),
                "task": changed.task,
                "reference": changed.reference,
                "context": changed.context,
                "messages": changed.messages,
                "response": changed.response.text,
                "response_b": None if second is None else second.text,
            }
            record = {name: value for name, value in row.items() if value is not None}
            yield ENCODER.encode(record) + b"\n"


def _calls(
    trials: Sequence[ProbeTrial], procedure: Procedure, picked: Sequence[Picked]
) -> int | None:
    if any(map(gives_evidence, procedure.judges)):
        return None
    total = 0
    for trial in trials:
        for each in picked if not trial.is_done else ():
            calls = procedure.votes * (1 if each.sample.response_b is None else 2)
            total += len(trial.kinds) * calls
    return total


_GROUPS: Final = ("stability", "injection")


def run_probe(
    store: Store, probe: ProbePlan, watch: Watch, level: float
) -> tuple[tuple[Bias, ...], Probed]:
    """Judge the changed samples, unless this was done before; return how scores changed."""
    runs = tuple(
        ProbeRun(
            run_id=finished_run(each.prepared, store, each.known, watch).run_id,
            kinds=tuple(kind.id for kind in each.kinds),
        )
        for each in probe.trials
    )
    probed = Probed(
        samples=len(probe.picked),
        judges=probe.judges,
        baseline="run" if probe.comparable else "same",
        runs=runs,
    )
    return _changes(store, probe, [each.run_id for each in runs], level), probed


def _changes(
    store: Store, probe: ProbePlan, run_ids: Sequence[str], level: float
) -> tuple[Bias, ...]:
    """Return how scores changed, from the finished runs of all trials.

    The new scores are compared with the original run's if those are comparable, otherwise with the
    new scores of the unchanged samples.
    """
    sides: dict[str, Side] = {each.sample.id: each.side for each in probe.picked}
    after = _after(store, run_ids, sides)
    before = {each.sample.id: each.before for each in probe.picked}
    if not probe.comparable:
        before = after.get(probes.SAME.id, {})
    metrics: dict[str, list[BiasMetric]] = {group: [] for group in _GROUPS}
    for kind in probes.KINDS:
        reason = probe.skipped.get(kind.id)
        if kind is probes.SAME and not probe.comparable:
            reason = "the run's judges or prompt differ; the unchanged samples are the baseline"
        if reason is not None:
            metrics[kind.group].append(unmeasured(f"{kind.name}.{CHANGE}", reason))
            continue
        given = after.get(kind.id, {})
        both = [name for name in given if name in before]
        scores = [before[name] for name in both], [given[name] for name in both]
        metrics[kind.group].append(change_of(*scores, kind, level=level))
    return tuple(Bias(bias=group, metrics=tuple(metrics[group])) for group in _GROUPS)


def _after(
    store: Store, run_ids: Sequence[str], sides: Mapping[str, Side]
) -> dict[str, dict[str, float]]:
    """Return the new scores by kind and sample."""
    found: dict[str, dict[str, float]] = {}
    for run_id in run_ids:
        for sample in store.samples(run_id):
            name, _, kind = sample.sample_id.rpartition(probes.MARK)
            try:
                report = SampleRecord(sample).report
            except msgspec.DecodeError as error:
                what = f"run {run_id} can't be read ({error}); `jurybox verify` says where"
                raise IncompleteError(what) from None
            score = None if report is None else probes.share_won(report, sides.get(name, "A"))
            if score is not None:
                found.setdefault(kind, {})[name] = score
    return found
