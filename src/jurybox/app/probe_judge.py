"""Probes a judge: changes samples of a run, and has them judged again in separate runs."""

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from jurybox.app.bias_report import PROBE
from jurybox.app.ids import kept_dataset
from jurybox.app.job import Watch
from jurybox.app.metadata import judge_versions, recorded_versions
from jurybox.app.model_session import plan_models
from jurybox.app.prepare import Prepared, check_pinned
from jurybox.app.run_suite import equal_run, finished_run
from jurybox.app.suite_choice import RunOptions
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
from jurybox.engine.records import RunRow
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.protocol import Judging, equal_votes, gives_evidence
from jurybox.reporting.stored import SampleRecord, plan_of, reading
from jurybox.rubric import render_rubric
from jurybox.sample import Sample
from jurybox.storage.store import Store
from jurybox.suite.model_spec import ModelSpec, chosen_models
from jurybox.wiring import without_secrets

_FOLDER: Final = "probes"


_GROUPS: Final = ("stability", "injection")


class ProbeOptions(RunOptions, frozen=True, kw_only=True):
    """The options of ``jurybox bias --probe``, which judges ``count`` samples again."""

    count: int
    seed: int = 0


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


class Prober:
    """Judges changed samples of a run in ``trials``, runs of their own, and compares the scores."""

    def __init__(self, store: Store, run: RunRow, options: ProbeOptions) -> None:
        """Choose samples, change them, and prepare the runs; no model is called yet."""
        plan = plan_of(run)
        specs = _judges(plan, options, run.id)
        self.judges = tuple(spec.model for spec in specs)
        self._store, self._run, self._options = store, run, options
        with reading(run):
            self.picked = self._pick()
        if not self.picked:
            raise InputError("no sample of the run was scored", "leave --probe out", run.id)
        base = msgspec.structs.replace(
            plan,
            suite=f"{plan.suite}{PROBE}",
            judges=self.judges,
            judge_models=specs,
            votes=equal_votes(self.judges, plan.votes_raised_from or plan.votes),
            votes_raised_from=None,
            repeats=1,
            target=None,
            base_url=without_secrets(options.base_url or "") or plan.base_url,
            # A cached reply would hide how much a judge varies.
            cache=False,
            batch=False,
            derived_from=None,
        )
        self._votes = base.votes
        self._skipped: dict[str, str] = {}  # why some kinds of changes can't be made
        together = [kind for kind in probes.KINDS if kind.changes != "rubric"]
        self.trials = [self._trial(base, together)]
        rubric, samples = base.procedure().judging.rubric, [each.sample for each in self.picked]
        for kind in probes.KINDS:
            if kind.changes != "rubric":
                continue
            changed = "the judge is asked narrow questions and never sees the whole rubric"
            if not all(map(gives_evidence, self.judges)):
                changed = probes.changed_rubric(rubric, kind, samples)
            if isinstance(changed, str):
                self._skipped[kind.id] = changed
                continue
            text, origin = render_rubric(changed), f"{plan.rubric.origin}{PROBE}"
            document = DocumentPlan(origin=origin, text=text)
            self.trials.append(self._trial(msgspec.structs.replace(base, rubric=document), [kind]))
        # Whether the run's own scores come from the same judges and prompt. A rescored run's
        # replies answer a different prompt; a judge's new version, which is known once the judge
        # is loaded, is a new judge.
        self._comparable = (
            self.judges == plan.judges
            and plan.derived_from is None
            and recorded_versions(run) == judge_versions(base)
        )

    @property
    def calls(self) -> int | None:
        """The minimum number of calls; None if unknown."""
        if any(map(gives_evidence, self.judges)):
            return None
        kinds = sum(len(trial.kinds) for trial in self.trials if not trial.is_done)
        orders = sum(1 if each.sample.response_b is None else 2 for each in self.picked)
        return kinds * orders * self._votes

    def _pick(self) -> list[Picked]:
        """Choose samples by the hash of the seed and their id, independently of their order."""
        longest = max(len(probes.probe_id("", kind)) for kind in probes.KINDS)

        def eligible() -> Iterator[tuple[str, int, Picked]]:
            for sample in self._store.samples(self._run.id):
                record = SampleRecord(sample)
                report = record.report
                if report is None or sample.repeat or len(sample.sample_id) + longest > MAX_ID:
                    continue
                side = probes.tried_side(sample.sample_id, pair=report.method == "pairwise")
                before = probes.share_won(report, side)
                if before is not None:
                    text = f"{self._options.seed}:{sample.sample_id}"
                    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
                    picked = Picked(sample=record.sample, side=side, before=before)
                    yield digest, sample.number, picked

        chosen = heapq.nsmallest(self._options.count, eligible(), key=lambda each: each[:2])
        return [picked for _, _, picked in sorted(chosen, key=lambda each: each[1])]

    def _trial(self, plan: Plan, kinds: Sequence[probes.ProbeKind]) -> ProbeTrial:
        options, store, judging = self._options, self._store, plan.procedure().judging
        rows = [_row(each, kind, judging) for each in self.picked for kind in kinds]
        path = kept_dataset(_FOLDER, self._run.id, rows, store.address)
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
        for each in () if all(map(gives_evidence, plan.judges)) else self.picked:
            judging.check(each.sample)
        prepared = Prepared(
            plan=plan, dataset=dataset, base_url=options.base_url, identity=options.identity
        )
        return ProbeTrial(kinds=tuple(kinds), prepared=prepared, known=equal_run(store, plan))

    def run(self, watch: Watch, level: float) -> tuple[tuple[Bias, ...], Probed]:
        """Judge the changed samples, unless this was done before; return how scores changed."""
        runs = tuple(
            ProbeRun(
                run_id=finished_run(each.prepared, self._store, each.known, watch).run_id,
                kinds=tuple(kind.id for kind in each.kinds),
            )
            for each in self.trials
        )
        probed = Probed(
            samples=len(self.picked),
            judges=self.judges,
            baseline="run" if self._comparable else "same",
            runs=runs,
        )
        return self._changes([each.run_id for each in runs], level), probed

    def _changes(self, run_ids: Sequence[str], level: float) -> tuple[Bias, ...]:
        """Return how scores changed, from the finished runs of all trials.

        The new scores are compared with the original run's if those are comparable, otherwise with
        the new scores of the unchanged samples.
        """
        after = self._after(run_ids)
        before = {each.sample.id: each.before for each in self.picked}
        if not self._comparable:
            before = after.get(probes.SAME.id, {})
        metrics: dict[str, list[BiasMetric]] = {group: [] for group in _GROUPS}
        for kind in probes.KINDS:
            reason = self._skipped.get(kind.id)
            if kind is probes.SAME and not self._comparable:
                reason = "the run's judges or prompt differ; the unchanged samples are the baseline"
            if reason is not None:
                metrics[kind.group].append(unmeasured(f"{kind.name}.{CHANGE}", reason))
                continue
            given = after.get(kind.id, {})
            both = [name for name in given if name in before]
            scores = [before[name] for name in both], [given[name] for name in both]
            metrics[kind.group].append(change_of(*scores, kind, level=level))
        return tuple(Bias(bias=group, metrics=tuple(metrics[group])) for group in _GROUPS)

    def _after(self, run_ids: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the new scores by kind and sample."""
        sides: dict[str, Side] = {each.sample.id: each.side for each in self.picked}
        found: dict[str, dict[str, float]] = {}
        for sample in chain.from_iterable(map(self._store.samples, run_ids)):
            name, _, kind = sample.sample_id.rpartition(probes.MARK)
            try:
                report = SampleRecord(sample).report
            except msgspec.DecodeError as error:
                what = f"run {sample.run_id} can't be read ({error}); `jurybox verify` says where"
                raise IncompleteError(what) from None
            score = None if report is None else probes.share_won(report, sides.get(name, "A"))
            if score is not None:
                found.setdefault(kind, {})[name] = score
        return found


def _judges(plan: Plan, options: ProbeOptions, run_id: str) -> tuple[ModelSpec, ...]:
    specs = tuple(chosen_models(options.judges, tuple(plan.judge_specs().values())))
    if not specs:
        raise InputError("no judge scored the run", "name one with --judge", run_id)
    for name in (spec.model for spec in specs):
        check_pinned(name, allow_unpinned=name in plan.judges or plan.allow_unpinned)
    return specs


def _row(picked: Picked, kind: probes.ProbeKind, judging: Judging) -> dict[str, object]:
    """Return a changed sample as a row of a dataset."""
    changed = probes.changed_sample(picked.sample, kind, judging, picked.side)
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
    return {name: value for name, value in row.items() if value is not None}
