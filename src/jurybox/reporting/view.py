"""A run as plain data, for every page, file and command."""

import threading
import time
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import msgspec

from jurybox.documents.numbers import exact, metric_value, rounded, show_number
from jurybox.engine import records
from jurybox.engine.plan import RECORDED, Metadata, Plan, read_plan
from jurybox.engine.replay import role_of
from jurybox.errors import IncompleteError, JuryboxError
from jurybox.judging.model_versions import check_version
from jurybox.judging.protocol import raised_votes
from jurybox.reporting import metric_text
from jurybox.reporting.metric_text import cost_of, headline, key_metric_of, lost_votes, none_scored
from jurybox.reporting.release import (
    ReleaseReview,
    read_reviews,
    release_review,
    reviewed_conclusion,
)
from jurybox.reporting.stored import metadata_of, outcome_of, plan_of, reading, rubric_of, run_title
from jurybox.rubric.metrics import WIN_RATE
from jurybox.rubric.rubric_model import Band, Rubric
from jurybox.scoring.evaluate_sample import model_uses
from jurybox.scoring.sample_result import WIN, Exchange, sent_parameters
from jurybox.scoring.summary import Conclusion, GateOutcome, RunTally
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store
from jurybox.text_format import counted

if TYPE_CHECKING:
    from jurybox.reporting.run_metrics import RunMetrics

_NOT_PASSED: Final = {
    "failed": ("fail", "a rule"),
    "unscored": ("have", "no score"),
    "target_error": ("have", "no response"),
}


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its results so far.

    ``status`` is ``running``, ``stopped`` or ``finished``; an unfinished run has the metrics of its
    samples so far. ``notes`` are warnings that precede the metrics. The conclusion includes the
    current reviews.
    """

    row: records.RunRow
    rubric: Rubric
    run_id: str
    name: str
    status: str
    suite: str
    planned: int
    conclusion: Conclusion
    metadata: Metadata
    cost: dict[str, Any]
    digest: str | None
    created_at: str
    finished_at: str | None
    elapsed_s: float | None = None
    derived_from: str | None = None
    notes: tuple[str, ...] = ()
    release: ReleaseReview = ReleaseReview()

    @property
    def summary(self) -> dict[str, Any]:
        """The metrics, by their names in the rubric."""
        return self.conclusion.summary

    @property
    def gates(self) -> tuple[GateOutcome, ...]:
        """The gates, each with its value."""
        return self.conclusion.gates

    @property
    def answered(self) -> str:
        """The source of the responses."""
        if (recorded := self.metadata.get("responses_id")) is not None:
            return f"recorded responses {recorded}"
        model: str | None = self.metadata.get("model_id")
        return "recorded responses" if model == RECORDED else f"responses of {model or 'unknown'}"

    @property
    def facts(self) -> Metadata:
        """The metadata, with the run's digest and when it was finished."""
        own = {name: getattr(self, name) for name in ("digest", "finished_at", "elapsed_s")}
        return {**self.metadata, **own}

    @property
    def before(self) -> str | None:
        """The run to compare it with: the one that it was rescored from, or its baseline."""
        return self.derived_from or self.metadata.get("baseline")

    @property
    def passed(self) -> bool:
        """Whether the run is finished, no gate failed and no required review is missing."""
        gates_pass = all(gate.passed for gate in self.gates)
        return self.status == "finished" and gates_pass and not self.release.blockers

    @property
    def drifted(self) -> bool:
        """Whether a model answered with a different version than its name states."""
        return any(_drifted(model, self.conclusion) for model in self.conclusion.reported)

    @property
    def release_reasons(self) -> tuple[str, ...]:
        """Why the run isn't ready for release."""
        unfinished = () if self.status == "finished" else ("the run isn't finished",)
        failed = (f"{gate.gate} fails" for gate in self.gates if not gate.passed)
        return (*unfinished, *failed, *self.release.blockers)

    @property
    def not_passed(self) -> dict[str, str]:
        """How many samples don't pass, by cause: a text, and the flag of these samples."""
        return {
            f"{counted(count, 'sample', does)} {what}": kind
            for kind, (does, what) in _NOT_PASSED.items()
            if (count := self.conclusion.noted(kind))
        }

    @property
    def key_metric(self) -> str:
        """The name of the run's most informative metric."""
        return key_metric_of(self.summary, self.rubric)

    @property
    def none_scored(self) -> bool:
        """Whether there are samples, but none of them has a score."""
        return none_scored(self.summary, self.rubric)

    @property
    def unread(self) -> int:
        """How many samples have the fallback score, because no reply of a judge could be read."""
        return self.conclusion.noted("judge_fallback")

    @property
    def unconfirmed(self) -> str:
        """A note that no judge's reply could be used; empty if one could, or if none was asked."""
        votes = self.conclusion.spreads.votes
        none = votes.get("requested", 0) > 0 and votes["valid"] == self.unread
        decided = self.status == "finished" and not self.none_scored
        return "no judge confirmed it" if none and decided else ""

    @property
    def unread_note(self) -> str:
        """What unusable replies mean for the scores; empty if there are others."""
        by_rules = "only the rubric's rules scored them, and no judge confirmed the scores"
        if not self.unread:
            return f"no sample has a valid vote: {by_rules}" if self.unconfirmed else ""
        every: int = self.summary["samples"]
        where = f"in {self.unread:,} of {counted(every, 'sample')}"
        result = "they have the rubric's fallback score, which isn't the judge's opinion"
        if "rules" in self.conclusion.methods:
            result = by_rules
        return f"{where} the judge's reply could not be read: {result}"

    @property
    def queued(self) -> int:
        """How many samples need review; 0 if none has a score, since reviews can't supply any."""
        return self.conclusion.review["queued"]

    @property
    def unscored(self) -> int:
        """How many samples have no valid vote, if it is most of them; else 0."""
        return metric_text.mostly_unscored(self.summary)

    @property
    def level(self) -> Band | None:
        """The overall score's band without rounding, and its meaning if the run can be released."""
        overall: float | None = self.summary.get(f"{self.rubric.overall_name}_mean")
        if self.status != "finished" or overall is None:
            return None  # the score of an unfinished run may still change
        near = self.rubric.level(overall, self.conclusion.decision)
        band = self.rubric.band(overall, rounded=False)
        if near is None or band is None or near.label == band.label:
            ready = self.passed and not self.unconfirmed
            return near if ready or near is None else msgspec.structs.replace(near, meaning="")
        value = metric_value("", overall) if rounded(overall) < near.low else exact(overall)
        why = f"{value} is {near.label} only if rounded to {show_number(near.low)}"
        return msgspec.structs.replace(band, meaning=why)

    @property
    def worst_first(self) -> SampleQuery:
        """The query for all samples, the worst first."""
        pairs = self.summary.get("winners")
        return self.release.worst_first(None if pairs else headline(self.summary, self.rubric))

    @property
    def estimates(self) -> "RunMetrics":
        """The metrics and gates with their intervals."""
        from jurybox.reporting.run_metrics import RunMetrics  # loads numpy

        return RunMetrics(self.conclusion, self.rubric)

    def as_data(self) -> dict[str, Any]:
        """Return the run as ``run --json`` and ``show --json`` print it."""
        conclusion = self.conclusion
        data: dict[str, Any] = {
            "run_id": self.run_id,
            "status": self.status,
            "suite": self.suite,
            "summary": conclusion.summary,
            "gates": msgspec.to_builtins(conclusion.gates),
            "release_reasons": list(self.release_reasons),
        }
        if conclusion.release_ready is not None:
            data["release_ready"] = conclusion.release_ready and self.status == "finished"
        if conclusion.decision is not None:
            data["decision"] = conclusion.decision
            data["decision_reasons"] = list(conclusion.decision_reasons)
        if self.unconfirmed:
            data["unconfirmed"] = self.unconfirmed
        if conclusion.quality_level is not None:
            data["quality_level"] = conclusion.quality_level
        if WIN in conclusion.spreads.metrics:
            data["win_rate_interval"] = msgspec.to_builtins(self.estimates.of(WIN_RATE).interval)
        return data | {
            "review": conclusion.review | self.release.as_data(),
            "method": self.metadata["method"],
            "votes_independent": conclusion.votes_independent,
            "metadata": self.metadata,
            "cost": self.cost,
            "planned": self.planned,
            "digest": self.digest,
            "created_at": self.created_at,
            "finished_at": self.finished_at,
            "elapsed_s": self.elapsed_s,
            "reported_versions": msgspec.to_builtins(conclusion.reported),
            "versions_changed": conclusion.versions_changed,
            "derived_from": self.derived_from,
            "notes": list(self.notes),
        }


def finished_view(row: records.RunRow, store: Store) -> RunView:
    """Return the view of a finished run, without reading its samples."""
    return _view(row, plan_of(row), outcome_of(row), store)


def unfinished_view(row: records.RunRow, store: Store, *, working: bool) -> RunView:
    """Return the view of an unfinished run, from its samples so far.

    ``working`` means that a process is running it.
    """
    plan = plan_of(row)
    tally = RunTally(plan.procedure().judging.rubric, plan.repeats)
    with reading(row):
        for _, repeat, _, result in store.results(row.id):
            tally.add(records.read_result(result), repeat)
        for _, rows in groupby(store.unfinished(row.id), attrgetter("number")):
            tally.add_reported(model_uses(map(_exchange, rows)))
    shown = msgspec.structs.replace(row, status="running" if working else "stopped")
    return _view(shown, plan, records.StoredOutcome(conclusion=tally.conclude(), cost={}), store)


def _exchange(row: records.ExchangeRow) -> Exchange:
    return role_of(row), records.read_request(row).model, records.read_outcome(row)


def _view(row: records.RunRow, plan: Plan, stored: records.StoredOutcome, store: Store) -> RunView:
    rubric = rubric_of(row)
    reviews = read_reviews(row, store.reviews(row.id)).every
    release = release_review(row, rubric, stored, store, reviews)
    conclusion = reviewed_conclusion(stored.conclusion, rubric, release)
    metadata = metadata_of(row)
    view = RunView(
        row=row,
        rubric=rubric,
        run_id=row.id,
        name=run_title(row, store),
        status=row.status,
        suite=row.suite,
        planned=plan.samples,
        conclusion=conclusion,
        metadata=_with_reported(metadata, plan, conclusion),
        cost=stored.cost,
        digest=row.digest,
        created_at=row.created_at,
        finished_at=row.finished_at,
        elapsed_s=stored.elapsed_s,
        derived_from=plan.derived_from,
        release=release,
    )
    unread = filter(None, [view.unread_note])
    notes = (*unread, *_notes(row, plan, metadata, conclusion), *release.notes)
    return msgspec.structs.replace(view, notes=notes)


def _with_reported(metadata: Metadata, plan: Plan, conclusion: Conclusion) -> Metadata:
    """Add what providers reported: versions that names lack or contradict, and parameters."""
    target = () if plan.target is None else (plan.target.model,)
    for field, models in (("model_version", target), ("evaluator_model_version", plan.judges)):
        if metadata.get(field) is None or any(_drifted(each, conclusion) for each in models):
            versions = [
                " / ".join(each.version for each in conclusion.reported.get(model, ()))
                for model in models
            ]
            metadata = {**metadata, field: ", ".join(filter(None, versions)) or None}
    not_known: dict[str, str] = metadata.get("not_known", {})
    reported = [(name, each) for name, some in conclusion.reported.items() for each in some]
    verified = {each.version_verified for _, each in reported} - {None}
    return {
        **metadata,
        "not_known": {name: why for name, why in not_known.items() if metadata.get(name) is None},
        "generation_params": _really_sent(metadata, conclusion),
        "method": ", ".join(conclusion.methods) or None,
        "votes_independent": conclusion.votes_independent,
        "version_verified": all(verified) if verified else None,
        "reported_models": [
            {
                "role": each.role,
                "model": name,
                "reported_model": each.model,
                "system_fingerprint": each.system_fingerprint,
                "version_verified": each.version_verified,
            }
            for name, each in reported
        ],
    }


def _really_sent(metadata: Metadata, conclusion: Conclusion) -> dict[str, Any]:
    """Return each role's parameters as sent; None for a parameter that no request included."""
    params: dict[str, Any] = dict(metadata.get("generation_params", {}))
    for role in ("target", "judge"):
        uses = [use for use in conclusion.uses if use.role == role]
        if params.get(role) is not None and uses:
            params[role] = sent_parameters(params[role], uses)
    return params


def _notes(
    row: records.RunRow, plan: Plan, metadata: Metadata, conclusion: Conclusion
) -> list[str]:
    """Return notes that the reader needs before any metric."""
    notes: list[str] = []
    have = conclusion.summary["samples"]
    if row.status != "finished":
        notes.append(f"not finished: {have:,} of {plan.samples:,} samples")
    for model, versions in conclusion.reported.items():
        if len({each.version for each in versions}) > 1:
            listed = ", ".join(f"{each.version} ({each.samples} samples)" for each in versions)
            notes.append(f"{model} changed its version during the run: {listed}")
        unverified = {each.model for each in versions if each.version_verified is False}
        accepted = metadata.get("allow_version_drift") is True
        notes += [
            _unverified(model, each, accepted=accepted) for each in sorted(unverified, key=str)
        ]
    if plan.votes_raised_from is not None:
        notes.append(raised_votes(plan.votes_raised_from, plan.votes, plan.judges))
    if conclusion.votes_independent is False:
        notes.append("votes are not independent: they were requested with the same parameters")
    if plan.derived_from is not None:
        notes.append(f"re-scored from the replies of run {plan.derived_from}")
    notes += lost_votes(conclusion.summary)
    if skipped := conclusion.summary.get("skipped_votes"):
        votes = counted(skipped, "vote", "were")
        notes.append(f"{votes} not requested, because the outcome was decided before")
    return notes


def _drifted(model: str, conclusion: Conclusion) -> bool:
    reported = conclusion.reported.get(model, ())
    return any(check_version(model, each.model) == "contradicted" for each in reported)


def _unverified(model: str, reported: str | None, *, accepted: bool) -> str:
    if check_version(model, reported) == "contradicted":
        how = "--allow-version-drift accepted it"
        how = how if accepted else "the run stopped; accept it with --allow-version-drift"
        return f"{model}: `{reported}` answered, another model or version; {how}"
    what = "no model" if reported is None else f"`{reported}`"
    return f"{model}: the version is not verified: the provider reports {what}"


_KEPT: Final = 1.0
_lock: Final = threading.Lock()
# When each run was last found to be idle.
_free: Final[WeakKeyDictionary[Store, dict[str, float]]] = WeakKeyDictionary()


def is_running(row: records.RunRow, store: Store) -> bool | None:
    """Return whether a process is running a run, by briefly claiming it.

    None if the store is read-only.
    """
    # Checks are serialized: of two checks at once, one would take the other for a process that is
    # running the run. The cache keeps frequent checks from blocking a process that resumes the run.
    with _lock:
        free = _free.setdefault(store, {})
        if time.monotonic() - free.get(row.id, -_KEPT) < _KEPT:
            return False
        try:
            with store.claim(row.id) as mine:
                found = not mine
        except IncompleteError:
            return None
        if not found:
            free[row.id] = time.monotonic()
        return found


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a list; ``planned`` is None if the run can't be read."""

    run_id: str
    suite: str
    status: str
    created_at: str
    finished_at: str | None
    planned: int | None = None
    samples: int | None = None
    metric: str | None = None
    value: float | None = None
    gates_passed: int | None = None
    gates: int | None = None
    decision: str | None = None
    unconfirmed: str | None = None
    blockers: tuple[str, ...] = ()
    queued: int | None = None
    dollars: float | None = None
    cost: str | None = None
    derived_from: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    dataset: str | None = None
    target: str | None = None
    judge: str | None = None


def listed_run(row: records.RunRow, store: Store, view: RunView | None = None) -> ListedRun:
    """Return a run for a list, from its view if known; one that can't be read is `damaged`."""
    names = ("suite", "status", "created_at", "finished_at")
    known: dict[str, Any] = {"run_id": row.id, **{name: getattr(row, name) for name in names}}
    try:
        plan, metadata = read_plan(row.plan), metadata_of(row)
        if row.status == "finished":
            known |= _finished(view or finished_view(row, store))
        else:
            known |= _unfinished(row, store)
    except (msgspec.DecodeError, JuryboxError):
        # One damaged run must not hide the others.
        known["status"] = "damaged"
        return ListedRun(**known)
    answered = (metadata.get(name) for name in ("target_name", "responses_id", "model_id"))
    return ListedRun(
        **known,
        planned=plan.samples,
        derived_from=plan.derived_from,
        name=metadata.get("name"),
        tags=tuple(metadata.get("tags", ())),
        dataset=plan.dataset.id,
        target=next(filter(None, answered), None),
        judge=metadata.get("evaluator_model_id"),
    )


def _unfinished(row: records.RunRow, store: Store) -> dict[str, Any]:
    """Return an unfinished run's status and count; metrics would require reading all samples."""
    status = {True: "running", False: "stopped", None: row.status}[is_running(row, store)]
    return {"status": status, "samples": sum(1 for _ in store.numbers(row.id))}


def _finished(view: RunView) -> dict[str, Any]:
    return {
        "samples": view.summary["samples"],
        "metric": view.key_metric,
        "value": view.summary.get(view.key_metric),
        "gates_passed": sum(gate.passed for gate in view.gates) if view.gates else None,
        "gates": len(view.gates) or None,
        "decision": view.conclusion.decision,
        "unconfirmed": view.unconfirmed or None,
        "blockers": view.release.blockers,
        "queued": view.queued,
        "dollars": view.cost.get("dollars"),
        "cost": cost_of(view.cost),
    }
