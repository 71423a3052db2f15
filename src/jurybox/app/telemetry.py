"""Send finished runs to other systems, where their suite or the environment asks for that."""

import logging

from jurybox.engine.records import RunRow
from jurybox.errors import IncompleteError, InputError, JuryboxError
from jurybox.reporting.stored import plan_of, reading
from jurybox.storage.store import Store
from jurybox.wiring import telemetry_signals


def export_run(store: Store, run: RunRow) -> tuple[str, ...]:
    """Export the samples of a run, and return the signals that were exported; none by default."""
    signals = telemetry_signals()
    if not signals:
        return ()
    try:
        from jurybox.integrations.otel_export import RunExporter
    except ImportError:
        hint = "pip install 'jurybox[otel]', or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        raise InputError("the OpenTelemetry SDK isn't installed", hint, "otel") from None
    from jurybox.integrations.sample_trace import read_trace

    # What it says of each attempt is reported once below.
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
        raise IncompleteError(f"the receiver at OTEL_EXPORTER_OTLP_ENDPOINT didn't take: {what}")
    return signals


def deliver_run(store: Store, run_id: str) -> list[tuple[str, bool]]:
    """Send a finished run to Langfuse and by OpenTelemetry.

    Returns lines for the user, each with whether it reports a success.
    """
    from jurybox.app.langfuse_delivery import push_if_ordered

    row = store.run(run_id)
    if row is None:
        return []
    lines: list[tuple[str, bool]] = []
    try:
        done = push_if_ordered(store, row)
        if done is not None:
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
