"""Exports to OpenTelemetry: calls as spans, scores as events, durations and tokens as metrics.

Follows the semantic conventions for generative AI. The exporters read the standard environment
variables of OpenTelemetry.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode

from jurybox.integrations.sample_trace import SampleTrace, TracedCall, TracedScore
from jurybox.judging.flow import Failure

SIGNALS: Final = ("traces", "metrics", "logs")
_SCOPE: Final = "jurybox"
_EVENT: Final = "gen_ai.evaluation.result"
_OPERATION: Final = "chat"
_PAGE: Final = 50
_NS: Final = 1e9
# The bucket boundaries that the conventions recommend.
_SECONDS: Final = [0.01 * 2**step for step in range(14)]
_TOKENS: Final = [float(4**step) for step in range(14)]

Attributes = dict[str, str | float | int | bool | Sequence[str]]


class RunExporter:
    """Exports the samples of one run; ``signals`` selects from `SIGNALS`."""

    def __init__(self, run_id: str, suite: str, signals: Sequence[str]) -> None:
        # A service name set by the user takes precedence.
        resource = Resource.create()
        if str(resource.attributes["service.name"]).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": _SCOPE}))
        self._of: Attributes = {"jurybox.run.id": run_id, "jurybox.suite": suite}
        self._spans, self._events = InMemorySpanExporter(), InMemoryLogRecordExporter()
        self._reader = InMemoryMetricReader()
        tracers = TracerProvider(resource=resource)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._tracer = tracers.get_tracer(_SCOPE)
        loggers = LoggerProvider(resource=resource)
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._events))
        self._logger = loggers.get_logger(_SCOPE)
        meter = MeterProvider([self._reader], resource=resource).get_meter(_SCOPE)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._span_exporter = OTLPSpanExporter() if "traces" in signals else None
        self._log_exporter = OTLPLogExporter() if "logs" in signals else None
        self._metric_exporter: Any = OTLPMetricExporter() if "metrics" in signals else None

    def export(self, samples: Iterable[SampleTrace]) -> list[str]:
        """Export samples, and return the signals whose export failed."""
        failed: dict[str, None] = {}
        remaining = iter(samples)
        while page := list(islice(remaining, _PAGE)):
            for sample in page:
                self._sample(sample)
            spans, events = self._spans.get_finished_spans(), self._events.get_finished_logs()
            self._spans.clear()
            self._events.clear()
            if self._span_exporter and self._span_exporter.export(spans).name != "SUCCESS":
                failed["traces"] = None
            if self._log_exporter and self._log_exporter.export(events).name != "SUCCESS":
                failed["logs"] = None
        metrics = self._reader.get_metrics_data()
        exporter = self._metric_exporter
        if exporter and metrics is not None and exporter.export(metrics).name != "SUCCESS":
            failed["metrics"] = None
        return list(failed)

    def _sample(self, sample: SampleTrace) -> None:
        row, failure = sample.record.row, sample.record.result.target_error
        own: Attributes = {
            **self._of,
            "jurybox.sample.id": row.sample_id,
            "jurybox.sample.repeat": row.repeat + 1,
            "jurybox.sample.times_measured": sample.timed,
        }
        root = self._tracer.start_span("sample", attributes=own, start_time=sample.start)
        inside = trace.set_span_in_context(root)
        evaluated = inside
        for call in sample.calls:
            span = self._call(call, inside)
            if call.role == "target":
                evaluated = trace.set_span_in_context(span)
        for score in sample.scores:
            self._logger.emit(
                event_name=_EVENT,
                attributes={**_score(score), **own},
                context=evaluated,
                timestamp=sample.end,
            )
        if failure is not None:
            root.set_status(Status(StatusCode.ERROR, failure))
        root.end(sample.end)

    def _call(self, call: TracedCall, inside: Any) -> trace.Span:  # noqa: ANN401 - a context
        request, outcome = call.request, call.outcome
        provider, _, model = request.model.partition("/")
        common: Attributes = {
            "gen_ai.operation.name": _OPERATION,
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        more: Attributes = {"jurybox.role": call.role}
        for name in ("temperature", "top_p", "max_tokens", "seed"):
            if (value := getattr(request.generation, name)) is not None:
                more[f"gen_ai.request.{name}"] = value
        usage: dict[str, int | None] = {}
        if isinstance(outcome, Failure):
            common["error.type"] = outcome.kind
        else:
            usage = {"input": outcome.usage.input_tokens, "output": outcome.usage.output_tokens}
            more["jurybox.cached"] = outcome.cached
            if outcome.model:
                common["gen_ai.response.model"] = outcome.model
            if outcome.finish_reason:
                more["gen_ai.response.finish_reasons"] = [outcome.finish_reason]
        known = {kind: count for kind, count in usage.items() if count is not None}
        more |= {f"gen_ai.usage.{kind}_tokens": count for kind, count in known.items()}
        span = self._tracer.start_span(
            f"{_OPERATION} {model}",
            context=inside,
            kind=SpanKind.CLIENT,
            attributes={**common, **more},
            start_time=call.start,
        )
        if isinstance(outcome, Failure):
            span.set_status(Status(StatusCode.ERROR, outcome.message))
        span.end(call.end)
        # A cached reply belongs to an earlier run, so this run doesn't measure it.
        if isinstance(outcome, Failure) or not outcome.cached:
            if call.end > call.start:
                self._duration.record((call.end - call.start) / _NS, common)
            for kind, count in known.items():
                self._tokens.record(count, {**common, "gen_ai.token.type": kind})
        return span


def _score(score: TracedScore) -> Attributes:
    """Return a score as the conventions define it; a boolean also gets a label."""
    given: Attributes = {"gen_ai.evaluation.name": score.name}
    if isinstance(score.value, str):
        given["gen_ai.evaluation.score.label"] = score.value
    else:
        given["gen_ai.evaluation.score.value"] = float(score.value)
        if score.kind == "BOOLEAN":
            given["gen_ai.evaluation.score.label"] = "yes" if score.value else "no"
    if score.comment:
        given["gen_ai.evaluation.explanation"] = score.comment
    return given
