"""Deliver finished runs to Langfuse, through the store's outbox, and over OpenTelemetry."""

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import cache, partial
from itertools import islice
from typing import Final

import msgspec

from jurybox.app.review_desk import ReviewDesk
from jurybox.engine.records import OutboxRow, RunRow, read_result
from jurybox.errors import IncompleteError, InputError, JuryboxError
from jurybox.integrations import langfuse_client as langfuse
from jurybox.integrations.langfuse_client import (
    Annotation,
    DeliveryError,
    LangfuseClient,
    run_name,
    trace_id,
)
from jurybox.integrations.sample_trace import SampleTrace, read_trace
from jurybox.reporting.stored import damaged, plan_of, reading, rubric_of
from jurybox.review.reviews import Circumstances, Score, latest_reviews
from jurybox.scoring.tally import MetricTally
from jurybox.storage.store import Store
from jurybox.suite.target_spec import LANGFUSE
from jurybox.text_format import counted
from jurybox.wiring import langfuse_client, telemetry_signals

ORDER: Final = "order"
"""The outbox entry from which all others are made once the run is finished."""
_PARTS: Final = ("trace", "scores", "link", "queue", "run")
_PENDING, _SENT, _REJECTED = "pending", "sent", "rejected"
_AT_ONCE: Final = 8
_PAGE: Final = 64
_ENTRIES: Final = 500
_CLAIM: Final = "langfuse outbox"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a push; ``error`` is why it ended early. Pending deliveries are kept."""

    sent: int
    rejected: int
    pending: int
    error: str | None = None

    @property
    def complete(self) -> bool:
        """Whether everything was delivered."""
        return not (self.pending or self.rejected)

    def lines(self) -> Iterator[str]:
        """Yield lines for the user."""
        yield f"langfuse: {counted(self.sent, 'part')} delivered"
        if self.rejected:
            yield f"langfuse: {self.rejected} rejected and kept; `jurybox langfuse status` says why"
        if self.pending:
            why = "" if self.error is None else f" ({self.error})"
            yield f"langfuse: {self.pending} waiting{why}; `jurybox langfuse push` delivers them"


class PulledReviews(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a pull; ``skipped`` lists ignored scores with reasons."""

    reviews: int
    unchanged: int
    skipped: tuple[str, ...]


class OutboxState(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a run was delivered; ``error`` says why a delivery failed."""

    run_id: str
    sent: int = 0
    pending: int = 0
    rejected: int = 0
    unfinished: bool = False
    error: str = ""


def order(run_id: str, store: Store, queue: str | None, digest: str | None = None) -> None:
    """Schedule a run for delivery once it is finished; ``queue`` receives its flagged samples.

    A run whose digest has changed is delivered again.
    """
    version = f"{digest or ''} {queue or ''}"
    row = OutboxRow(run_id=run_id, number=0, part=ORDER, version=version, detail=queue or "")
    store.put_out([row])


def states(store: Store) -> tuple[OutboxState, ...]:
    """Return how much of each run was delivered, the newest run first."""
    found: dict[str, OutboxState] = {}
    for run_id, part, state, error, count in store.outbox_counts():
        known = found.get(run_id, OutboxState(run_id=run_id))
        given = {state: getattr(known, state) + count, "error": error or known.error}
        if part == ORDER:
            given = {"unfinished": state == _PENDING}
        found[run_id] = msgspec.structs.replace(known, **given)
    return tuple(found[run_id] for run_id in sorted(found, reverse=True))


def push(store: Store, run: RunRow | None = None, *, queue: str | None = None) -> Delivery:
    """Deliver a finished run, or everything that is pending or was rejected."""
    client = langfuse_client()
    if run is not None:
        if run.status != "finished":
            raise InputError("the run isn't finished", "resume it first", run.id)
        order(run.id, store, queue, run.digest)
    with store.claim(_CLAIM) as mine:
        if not mine:
            raise InputError("another process is delivering", "wait for it", "langfuse")
        return _Push(store, client, None if run is None else run.id).work()


class _Push:
    """One pass over the outbox."""

    def __init__(self, store: Store, client: LangfuseClient, run_id: str | None) -> None:
        self._store = store
        self._client = client
        self._only = run_id
        self._run = cache(partial(_StoredRun, store))

    def work(self) -> Delivery:
        for part in _PARTS:
            rows = self._store.outbox(_REJECTED, part, self._only)
            self._store.update_outbox([_with(row, _PENDING) for row in rows])
        for row in self._store.outbox(_PENDING, ORDER, self._only):
            run = self._run(row.run_id)
            if run.row.status == "finished":
                entries = run.entries(row.detail)
                while page := list(islice(entries, _ENTRIES)):
                    self._store.put_out(page)
                self._store.update_outbox([_with(row, _SENT)])
        sent = rejected = 0
        error = None
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for rows in self._pages():
                done = list(pool.map(self._try, rows))
                self._store.update_outbox(done)
                sent += sum(row.state == _SENT for row in done)
                rejected += sum(row.state == _REJECTED for row in done)
                error = next((row.error for row in done if row.state == _PENDING), None)
                if error is not None:
                    break
        pending = sum(len(self._store.outbox(_PENDING, part, self._only)) for part in _PARTS)
        return Delivery(sent=sent, rejected=rejected, pending=pending, error=error)

    def _pages(self) -> Iterator[Sequence[OutboxRow]]:
        for part in _PARTS:
            while rows := self._store.outbox(_PENDING, part, self._only, _PAGE):
                yield rows

    def _try(self, row: OutboxRow) -> OutboxRow:
        try:
            self._send(row)
        except DeliveryError as error:
            state = _REJECTED if error.kind == "rejected" else _PENDING
            return _with(row, state, str(error))
        return _with(row, _SENT)

    def _send(self, row: OutboxRow) -> None:
        run, client = self._run(row.run_id), self._client
        of = trace_id(row.run_id, row.number)
        match row.part:
            case "trace":
                trace = run.trace(row.number)
                client.send_spans(langfuse.spans(trace, run.plan, run.experiment(trace, client)))
            case "scores":
                client.send_scores(langfuse.sample_scores(run.trace(row.number)), run.at)
            case "link":
                sample = run.trace(row.number).record.row
                name = run.name(sample.repeat)
                client.link(run.dataset, name, sample.sample_id, of, run.version)
            case "queue":
                client.enqueue(row.detail, of)
            case _:
                repeat = -1 - row.number
                name = run.name(repeat)
                found = client.run_of(run.dataset, name)
                client.send_scores(langfuse.run_scores(found, name, run.metrics(repeat)), run.at)


class _StoredRun:
    """A run to deliver; ``dataset`` is the name of its Langfuse dataset, or empty."""

    def __init__(self, store: Store, run_id: str) -> None:
        row = store.run(run_id)
        if row is None:
            raise IncompleteError(f"the outbox names run {run_id}, which the store doesn't have")
        self.row = row
        self.plan = plan_of(row)
        self.at = datetime.fromisoformat(row.created_at)
        self._store = store
        name, _, version = self.plan.dataset.id.removeprefix(LANGFUSE).rpartition("@")
        is_there = self.plan.dataset.id.startswith(LANGFUSE)
        self.dataset = name if is_there else ""
        self.version = datetime.fromisoformat(version) if is_there else self.at

    def entries(self, queue: str) -> Iterator[OutboxRow]:
        """Yield all parts of the run to send."""
        for number, _, version, result in self._store.results(self.row.id):
            with reading(self.row):
                flagged = bool(queue) and read_result(result).needs_review
            parts = {"trace": True, "scores": True, "link": self.dataset, "queue": flagged}
            for part in (name for name, wanted in parts.items() if wanted):
                # A sample that was evaluated again, or has a different queue, is sent again.
                detail = queue if part == "queue" else ""
                changes = f"{version} {detail}"
                yield OutboxRow(
                    run_id=self.row.id, number=number, part=part, version=changes, detail=detail
                )
        for repeat in range(self.plan.repeats) if self.dataset else ():
            digest = self.row.digest or ""
            yield OutboxRow(run_id=self.row.id, number=-1 - repeat, part="run", version=digest)

    def trace(self, number: int) -> SampleTrace:
        """Return a sample with its calls and scores."""
        sample = self._store.sample(self.row.id, number)
        if sample is None:
            raise damaged(self.row, f"sample {number} is missing")
        with reading(self.row):
            return read_trace(self.row, sample, self._store.exchanges_of(self.row.id, number))

    def name(self, repeat: int) -> str:
        """Return the name of a repeat's dataset run."""
        return run_name(self.row.id, self.plan.suite, repeat)

    def experiment(self, trace: SampleTrace, client: LangfuseClient) -> dict[str, str]:
        """Return the attributes that link a trace to a dataset run."""
        if not self.dataset or not client.links_in_traces:
            return {}
        record = trace.record
        name = self.name(record.repeat)
        given = {
            "id": client.experiment_id(self.dataset, name),
            "name": name,
            "dataset.id": client.dataset_id(self.dataset),
            "item.id": record.id,
            "item.version": self.version.isoformat(timespec="milliseconds"),
        }
        if record.inputs.reference is not None:
            given["item.expected_output"] = record.inputs.reference
        return {f"langfuse.experiment.{key}": value for key, value in given.items()}

    def metrics(self, repeat: int) -> dict[str, float]:
        """Return the metrics of one repeat, without those that have no value."""
        tally = MetricTally(rubric_of(self.row))
        for _, of, _, result in self._store.results(self.row.id):
            if of == repeat:
                with reading(self.row):
                    tally.add(read_result(result))
        metrics, _ = tally.metrics()
        return {name: value for name, value in metrics.items() if value is not None}


def _with(row: OutboxRow, state: str, error: str = "") -> OutboxRow:
    return msgspec.structs.replace(row, state=state, error=error)


def pull(store: Store, run: RunRow) -> PulledReviews:
    """Read human scores of a run's traces from Langfuse, and store them as reviews.

    Langfuse shows the judges' scores with the trace, so these reviews don't count as blind.
    """
    client, desk = langfuse_client(), ReviewDesk(store, run, blind=False)
    traces = {trace_id(run.id, number): number for number in store.numbers(run.id)}
    given: dict[tuple[int, str], list[Annotation]] = {}
    names = iter(traces)
    try:
        while page := list(islice(names, _PAGE)):
            for each in client.annotations(page):
                given.setdefault((traces[each.trace_id], each.author), []).append(each)
    except DeliveryError as error:
        raise IncompleteError(f"nothing was pulled: {error}") from None
    skipped: list[str] = []
    counts = {True: 0, False: 0}
    for (number, author), scores in given.items():
        try:
            counts[_review(desk, number, f"{LANGFUSE}{author}", scores)] += 1
        except InputError as error:
            skipped.append(f"sample {number}, {author}: {error}")
    return PulledReviews(reviews=counts[True], unchanged=counts[False], skipped=tuple(skipped))


def _review(desk: ReviewDesk, number: int, reviewer: str, given: Sequence[Annotation]) -> bool:
    """Store one person's scores of a sample; return whether they are new."""
    values = {each.name: each.value for each in given}
    criteria = [each.id for each in desk.rubric.criteria]
    verdict: dict[str, object] = {"scores": {name: _plain(values.get(name)) for name in criteria}}
    if desk.stored(number).is_pair:
        verdict = {"winner": values.get("winner")}
    elif not values.keys() & set(criteria):
        known = ", ".join(criteria)
        problem = f"none of these scores has the name of a criterion: {', '.join(sorted(values))}"
        raise InputError(problem, f"name the scores in Langfuse as the rubric does: {known}")
    if isinstance(concern := values.get("safety_concern"), bool):
        verdict["safety_concern"] = concern
    comment = "\n".join(dict.fromkeys(each.comment for each in given if each.comment))
    queue = "flagged" if any(each.queued for each in given) else "picked"
    rows = desk.store.reviews_of(desk.run.id, number)
    known = {each.reviewer: each for each in latest_reviews(rows)}
    mine = known.get(reviewer)
    if mine is not None and (mine.verdict.as_data(), mine.comment) == (verdict, comment):
        return False
    shown = Circumstances(queue=queue, blind=False)
    desk.submit(number, reviewer, verdict, comment, shown=shown)
    return True


def _plain(value: Score | str | None) -> Score | str | None:
    """Return a whole number as an integer; Langfuse returns 4.0 for 4."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def export_run(store: Store, run: RunRow) -> tuple[str, ...]:
    """Export a run's samples over OpenTelemetry; return the exported signals (default: none)."""
    signals = telemetry_signals()
    if not signals:
        return ()
    try:
        from jurybox.integrations.otel_export import RunExporter
    except ImportError:
        hint = "pip install 'jurybox[otel]', or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        raise InputError("the OpenTelemetry SDK isn't installed", hint, "otel") from None
    # The SDK's logs of each attempt are silenced; the result is reported once below.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = RunExporter(run.id, plan_of(run).suite, signals)
    with reading(run):
        samples = (
            read_trace(run, sample, store.exchanges_of(run.id, sample.number))
            for sample in store.samples(run.id)
        )
        failed = exporter.export(samples)
    if failed:
        what = ", ".join(failed)
        raise IncompleteError(f"the receiver at OTEL_EXPORTER_OTLP_ENDPOINT didn't accept: {what}")
    return signals


def deliver_run(store: Store, run_id: str) -> list[tuple[str, bool]]:
    """Send a finished run to Langfuse and over OpenTelemetry.

    Returns lines for the user, each marked as success or failure.
    """
    row = store.run(run_id)
    if row is None:
        return []
    lines: list[tuple[str, bool]] = []
    try:
        asked = [*store.outbox(_PENDING, ORDER, row.id), *store.outbox(_SENT, ORDER, row.id)]
        if asked:  # by its suite
            done = push(store, row, queue=asked[0].detail)
            lines += [(line, done.complete) for line in done.lines()]
    except JuryboxError as error:
        what = f"nothing was delivered ({error}); `jurybox langfuse push` tries again"
        lines.append((f"langfuse: {what}", False))
    try:
        signals = export_run(store, row)
        if signals:
            lines.append((f"otel: exported {', '.join(signals)}", True))
    except JuryboxError as error:
        lines.append((f"otel: {error}", False))
    return lines
