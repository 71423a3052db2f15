"""Views of runs with their cost and calibration, and the `Run` that Python code gets.

numpy isn't imported until a run is shown.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import closing
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from jurybox.app.ids import now_utc
from jurybox.calibration import calibration_record
from jurybox.engine import records
from jurybox.errors import IncompleteError, InputError, JuryboxError
from jurybox.reporting.export_rows import exported_rows
from jurybox.reporting.metric_text import metrics_of, repair_first
from jurybox.reporting.stored import (
    SampleRecord,
    outcome_of,
    plan_of,
    rubric_of,
)
from jurybox.reporting.view import RunView, finished_view, is_running, unfinished_view
from jurybox.review.selection import FEWEST, needed_line
from jurybox.rubric.metrics import PASSING_RATE, SAFETY_RATE, WIN_RATE
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Usage
from jurybox.scoring.by_rules import SingleReport
from jurybox.scoring.prices import Prices, cost
from jurybox.scoring.sample_result import ModelUse
from jurybox.scoring.summary import Acceptance, check_gates
from jurybox.storage.store import Store
from jurybox.text_format import listed
from jurybox.wiring import find_run, open_run_store, read_prices

if TYPE_CHECKING:
    from jurybox.reporting.reports import ReportFormat
    from jurybox.reporting.review_text import ReviewAgreement
    from jurybox.reporting.run_diff import RunDiff
    from jurybox.reporting.run_verdict import Verdict
    from jurybox.statistics.estimates import Interval


def single_cost(report: SingleReport) -> float | None:
    """Return what a single evaluation cost; None if a price isn't known."""
    return run_cost(report.result.uses, read_prices())["dollars"]


def run_cost(uses: Iterable[ModelUse], prices: Prices, *, batched: bool = False) -> dict[str, Any]:
    """Return the cost of a run by model; cached replies cost nothing.

    ``batched`` means that all judges were asked in batches; the system under test never is.
    """
    models: list[dict[str, Any]] = []
    for use in uses:
        in_batches = batched and use.role == "judge"
        models.append(
            {
                "model": use.model,
                "role": use.role,
                "calls": use.calls,
                "cached": use.cached,
                "failed": use.failed,
                "batched": in_batches,
                **msgspec.to_builtins(use.usage),
                "dollars": _dollars(use, prices, batched=in_batches),
            }
        )
    known = [each["dollars"] for each in models]
    return {
        "dollars": None if None in known else round(math.fsum(known), 9),
        "models": models,
    }


def _dollars(use: ModelUse, prices: Prices, *, batched: bool) -> float | None:
    """Return the cost of a model's use; None if its price or a reply's token count is unknown."""
    if use.calls == use.cached:
        return 0.0
    usage = Usage() if use.unknown else use.usage
    if use.calls == use.cached + use.failed:
        usage = Usage(input_tokens=0, output_tokens=0)
    return cost(use.model, usage, prices, batched=batched)


def view_run(row: records.RunRow, store: Store) -> RunView:
    """Return the view of a run, finished or not."""
    if row.status == "finished":
        return finished_view(row, store)
    # None, for a read-only store, means unknown; the run then counts as not running.
    working = is_running(row, store) is True
    current = store.run(row.id) or row
    if current.status == "finished":
        return finished_view(current, store)
    return view_unfinished(current, store, working=working)


def view_as_data(view: RunView, store: Store) -> dict[str, Any]:
    """Return a run as data for JSON, with its reviews, calibration and baseline."""
    return {**view.as_data(), **around_as_data(view, store)}


def around_as_data(view: RunView, store: Store) -> dict[str, Any]:
    """Return a run's reviews, the calibration of its judges and its baseline; None without them."""
    from jurybox.reporting.run_verdict import verdict_of

    people, diff = reviewer_agreement(view, store), baseline_diff(view, store)
    return {
        **verdict_as_data(view, verdict_of(view, people)),
        "people": None if people is None else people.as_data(),
        "calibration": calibration_as_data(view, store),
        "baseline": None if diff is None else diff.in_short("a"),
    }


def report_parts(view: RunView, store: Store, form: "ReportFormat") -> dict[str, object]:
    """Return what a report in a format has besides the run; reading it takes time."""
    if form == "json":
        return around_as_data(view, store)
    more: dict[str, object] = {}
    if form != "junit":
        more["people"] = reviewer_agreement(view, store)
    if form == "html":
        more["calibration"] = calibration_of_run(view, store)
        more["baseline"] = baseline_diff(view, store)
    return more


def verdict_as_data(
    view: RunView, verdict: "Verdict", corrected: Mapping[str, "Interval | None"] = {}
) -> dict[str, Any]:
    """Return the verdict on a run and its gates with their intervals, for JSON."""
    gates = [
        {**msgspec.structs.asdict(each.outcome), "interval": each.metric.interval}
        for each in view.estimates.gauges(corrected)
    ]
    return {**verdict.as_data(), "gates": msgspec.to_builtins(gates)}


def baseline_diff(view: RunView, store: Store) -> "RunDiff | None":
    """Return the difference from a run's baseline or source, if it has one."""
    before = None if view.before is None else store.run(view.before)
    if before is None:
        return None
    from jurybox.reporting.compare_runs import CompareOptions, compare_runs

    return compare_runs(store, view_run(before, store), view, CompareOptions(limit=0))


def reviewer_agreement(view: RunView, store: Store) -> "ReviewAgreement | None":
    """Return how well judges and reviewers agree; None without reviews."""
    return _agreement(view.run_id, store)


def _agreement(run_id: str, store: Store) -> "ReviewAgreement | None":
    # Most runs have no reviews and needn't load the rubric and numpy.
    row = store.run(run_id) if store.review_state(run_id) else None
    if row is None:
        return None
    from jurybox.app.estimate_run import review_agreement
    from jurybox.app.review_desk import ReviewDesk

    return review_agreement(ReviewDesk(store, row))


def review_doubt(view: RunView, store: Store) -> str:
    """Return a note if reviews cast doubt on a passing run, or can't be compared; else ``""``."""
    from jurybox.reporting.run_verdict import SEE_REVIEWS, verdict_of

    if verdict_of(view).tone not in {"passes", "waits"}:
        return ""
    try:
        doubt = verdict_of(view, reviewer_agreement(view, store)).doubt
    except JuryboxError:
        return "reviews can't be compared"  # `show` says what is damaged
    return SEE_REVIEWS if SEE_REVIEWS in doubt else ""


def accept_unreviewed(row: records.RunRow, store: Store) -> RunView:
    """Accept the samples of a finished run without their required review, and record that."""
    view = finished_view(row, store)
    if not view.release.waits_for:
        return view
    accepted = Acceptance(samples=view.release.awaiting, at=now_utc())
    outcome = msgspec.structs.replace(outcome_of(row), accepted=accepted)
    changed = records.sealed(
        msgspec.structs.replace(row, outcome=records.ENCODER.encode(outcome).decode())
    )
    store.update_run(changed)
    return finished_view(changed, store)


def correctable(rubric: Rubric) -> tuple[str, ...]:
    """Return the metrics that reviews correct, by their names in gates."""
    from jurybox.calibration.gold import gold_scales

    return (*map(rubric.mean_of, gold_scales(rubric)), WIN_RATE, PASSING_RATE)


def corrected_by_reviews(row: records.RunRow, view: RunView, store: Store) -> RunView:
    """Return a run whose gates use values corrected by reviews, with a note on each.

    A mean score, pass rate or win rate with too few reviews from the random queue fails its gate.
    Metrics that people don't score, such as latency, keep their values.
    """
    rubric, found = rubric_of(row), reviewer_agreement(view, store)
    made = {} if found is None else found.by_gated_metric(rubric, view.summary["samples"])
    scored = correctable(rubric)
    # What isn't corrected here keeps the value that its gate has.
    values = {rule.name: gate.value for rule, gate in zip(rubric.gates, view.gates, strict=True)}
    notes = list[str]()
    gated = dict.fromkeys(gate.name for gate in rubric.gates)
    if gated.keys().isdisjoint(scored):
        problem = "no gate uses a score, so reviews correct nothing"
        raise InputError(problem, f"add a gate on one of {listed(scored)}", row.id)
    for metric in gated:
        if metric == SAFETY_RATE:
            continue  # it has people's decisions already
        if metric not in scored:
            only = "mean scores, pass rates and win rates"
            notes.append(f"{metric} isn't corrected: reviews correct only {only}")
            continue
        if metric not in made:
            needed = min(FEWEST, view.planned) if found is None else found.needed
            unsure = 0 if found is None else found.unsure
            more = needed_line(needed, unsure) if needed else "no review has all scores for it"
            more = repair_first(view.summary, rubric) or more
            values[metric] = None
            notes.append(f"{metric} isn't corrected yet: {more}")
            continue
        values[metric] = made[metric].mean.corrected.value
        notes.append(f"{made[metric].metric}: {made[metric].mean.sentence}")
    gates = check_gates(rubric.gates, values)
    ready = all(each.passed for each in gates) and not view.release.blockers
    conclusion = msgspec.structs.replace(view.conclusion, gates=gates, release_ready=ready)
    return msgspec.structs.replace(view, conclusion=conclusion, notes=tuple(notes))


def view_unfinished(row: records.RunRow, store: Store, *, working: bool) -> RunView:
    """Return the view of an unfinished run, with its cost so far."""
    view = unfinished_view(row, store, working=working)
    prices = read_prices()
    found = run_cost(view.conclusion.uses, prices, batched=plan_of(row).batch)
    return msgspec.structs.replace(view, cost=found)


_LOOKED_AT = 1000


class _ReportMethod(msgspec.Struct, frozen=True):
    method: str


_METHOD = msgspec.json.Decoder(_ReportMethod)


def calibration_row(made: calibration_record.Calibration) -> records.CalibrationRow:
    """Return the row of a calibration."""
    record = records.ENCODER.encode(made).decode()
    return records.sealed(
        records.CalibrationRow(
            id=made.id, rubric_id=made.rubric_id, created_at=made.created_at, record=record
        )
    )


def read_calibration(row: records.CalibrationRow) -> calibration_record.Calibration:
    """Return a stored calibration."""
    if records.seal_of(row) != row.seal:
        what = f"calibration {row.id} was changed after it was stored"
        raise IncompleteError(f"{what}; calibrate again")
    try:
        return msgspec.json.decode(row.record, type=calibration_record.Calibration)
    except msgspec.DecodeError as error:
        what = f"calibration {row.id} can't be read ({error}); calibrate again"
        raise IncompleteError(what) from None


def setting_of(view: RunView) -> calibration_record.JudgeSetting | None:
    """Return the inputs that a run's judging depends on; None if no judge was asked."""
    metadata: dict[str, Any] = view.metadata
    rubric: dict[str, str] = metadata.get("rubric") or {}
    prompt: str | None = metadata.get("evaluator_prompt_template_version_or_hash")
    judges: str | None = metadata.get("evaluator_model_id")
    if not judges or prompt is None or "sha256" not in rubric:
        return None
    return calibration_record.JudgeSetting(
        rubric_version=rubric.get("version", ""),
        rubric_sha256=rubric["sha256"],
        judges=tuple(judges.split(", ")),
        judge_version=_judge_version(view, judges.split(", ")),
        prompt_sha256=prompt.removeprefix("sha256:"),
        votes=metadata.get("votes") or 0,
    )


def _judge_version(view: RunView, judges: list[str]) -> str | None:
    """Return the judges' versions: from names and files, and as providers report them."""
    known: str | None = view.metadata.get("evaluator_model_version")
    reported = sorted(
        {each.version for name in judges for each in view.conclusion.reported.get(name, ())}
    )
    versions = ", ".join(reported)
    if not versions or versions == known:
        return known
    return f"{known}, reported {versions}" if known else versions


def calibration_of_run(
    view: RunView, store: Store
) -> calibration_record.CalibrationStatus | str | None:
    """Return the calibration that applies to a run, or an error text if it can't be read.

    None if its rubric was never calibrated, or if the run was rescored, since its judges never saw
    the new rubric.
    """
    setting = setting_of(view)
    if setting is None or view.derived_from is not None:
        return None
    rubric: dict[str, str] = view.metadata["rubric"]
    try:
        known = [read_calibration(row) for row in store.calibrations(rubric["id"])]
    except IncompleteError as error:
        return str(error)
    found = calibration_record.calibration_status(known, setting)
    if found is None or found.stale:
        return found
    # Called last, because it reads samples.
    try:
        methods = _methods(store, view.run_id)
    except msgspec.DecodeError as error:
        return f"run {view.run_id} can't be read ({error}); `jurybox verify` says where"
    return calibration_record.calibration_status(known, setting, methods)


def _methods(store: Store, run_id: str) -> tuple[str, ...]:
    """Return the methods by which the first samples of a run were judged."""
    reports = (sample.report for sample in islice(store.samples(run_id), _LOOKED_AT))
    return tuple(sorted({_METHOD.decode(each).method for each in reports if each is not None}))


def calibration_as_data(view: RunView, store: Store) -> dict[str, Any] | None:
    """Return the calibration that applies to a run, as data for JSON."""
    found = calibration_of_run(view, store)
    if found is None:
        return None
    if isinstance(found, str):
        return {"error": found}
    return {**msgspec.to_builtins(found), "text": found.line}


class Run(RunView, frozen=True, kw_only=True):
    """A run with its results; samples are read from the store on demand."""

    store: str | None = None

    @classmethod
    def of(cls, view: RunView, store: str | None) -> "Run":
        """Return a view as a run that can read its samples."""
        return cls(**msgspec.structs.asdict(view), store=store)

    @property
    def samples(self) -> list[SampleRecord]:
        """The samples in the order of the dataset, each with its scores, report and reasons.

        Raises:
            IncompleteError: the run can't be read.

        """
        with closing(open_run_store(self.store)) as store:
            return [SampleRecord(row) for row in store.samples(self.run_id)]

    def to_dataframe(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the samples as a pandas DataFrame with the columns of `jurybox export`.

        Raises:
            InputError: pandas isn't installed.
            IncompleteError: the run can't be read.

        """
        try:
            pandas: Any = import_module("pandas")
        except ImportError:
            raise InputError("a table needs pandas", "install it: pip install pandas") from None
        with closing(open_run_store(self.store)) as store:
            return pandas.DataFrame(list(exported_rows(store, find_run(store, self.run_id))))

    def _repr_html_(self) -> str:
        """Return the verdict, gates and metrics as HTML for notebooks."""
        from jurybox.reporting.html.html_render import own_template

        metrics = metrics_of(self.summary, self.rubric)
        return own_template("notebook.html").render(view=self, metrics=metrics)


def load_run(name: str = "last", *, store: str | None = None) -> Run:
    """Return a stored run by its id, its name, a tag, or as ``last`` or ``last~1``.

    Example:
        >>> import jurybox
        >>> run = jurybox.load_run("last")  # doctest: +SKIP
        >>> [sample.id for sample in run.samples if not sample.passed]  # doctest: +SKIP
        ['q7']

    Raises:
        InputError: there is no such run.
        IncompleteError: the run can't be read.

    """
    with closing(open_run_store(store)) as opened:
        return Run.of(view_run(find_run(opened, name), opened), store)
