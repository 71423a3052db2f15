"""OpenTelemetry: what a receiver of OTLP gets of a run, decoded from its protobuf."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from commands import call

KINDS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


class Receiver:
    """Decodes each request by the protobuf of its path."""

    def __init__(self) -> None:
        self.got: dict[str, list[Any]] = {path: [] for path in KINDS}
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.got[self.path].append(KINDS[self.path].FromString(body))
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def spans(self) -> list[Any]:
        resources = [each for got in self.got["/v1/traces"] for each in got.resource_spans]
        return [span for each in resources for scope in each.scope_spans for span in scope.spans]

    def events(self) -> list[Any]:
        resources = [each for got in self.got["/v1/logs"] for each in got.resource_logs]
        return [log for each in resources for scope in each.scope_logs for log in scope.log_records]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Receiver]:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "init").code == 0
    judge = Path("judge.py")
    answer = '\n\ndef answer(prompt):\n    return "The capital of Australia is Canberra."\n'
    judge.write_text(judge.read_text() + answer)
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


def address(receiver: Receiver) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.server.server_port}"}


def named(attributes: Any) -> dict[str, Any]:  # noqa: ANN401 - protobuf's
    def plain(value: Any) -> Any:  # noqa: ANN401 - protobuf's
        kind = value.WhichOneof("value")
        found = getattr(value, kind)
        return [plain(each) for each in found.values] if kind == "array_value" else found

    return {each.key: plain(each.value) for each in attributes}


def test_nothing_is_exported_by_default(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(monkeypatch, "run", "suite.yaml")
    off = {**address(receiver), "OTEL_SDK_DISABLED": "true"}
    call(monkeypatch, "run", "suite.yaml", **off)
    assert not any(receiver.got.values())


def test_calls_are_spans_scores_are_events_and_durations_are_metrics(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("run", "suite.yaml", "--target", "python/judge:answer")
    done = call(monkeypatch, *run, **address(receiver))
    assert "otel: exported traces, metrics, logs" in done.err
    spans = receiver.spans()
    roots = {span.span_id: span for span in spans if not span.parent_span_id}
    calls = [span for span in spans if span.parent_span_id]
    assert (len(roots), len(calls)) == (6, 12)
    for span in calls:
        given = named(span.attributes)
        assert span.name == f"chat {given['gen_ai.request.model']}"
        assert span.kind == 3  # a client
        assert (given["gen_ai.operation.name"], given["gen_ai.provider.name"]) == ("chat", "python")
        root = roots[span.parent_span_id]
        assert root.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= root.end_time_unix_nano
    targets = {span.span_id for span in calls if named(span.attributes)["jurybox.role"] == "target"}
    events = receiver.events()
    assert {event.event_name for event in events} == {"gen_ai.evaluation.result"}
    # An event belongs to the call that it evaluates.
    assert {event.span_id for event in events} == targets
    capital = next(key for key, span in roots.items() if "capital" in str(span.attributes))
    of_capital = next(span for span in calls if span.parent_span_id == capital).trace_id
    scores = [named(event.attributes) for event in events if event.trace_id == of_capital]
    accuracy = next(s for s in scores if s["gen_ai.evaluation.name"] == "accuracy_score")
    assert accuracy["gen_ai.evaluation.score.value"] == 2
    assert "missing from the answer" in accuracy["gen_ai.evaluation.explanation"]
    (metrics,) = receiver.got["/v1/metrics"]
    resource = metrics.resource_metrics[0]
    assert named(resource.resource.attributes)["service.name"] == "jurybox"
    found = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    duration = found["gen_ai.client.operation.duration"]
    assert duration.unit == "s"
    assert sum(point.count for point in duration.histogram.data_points) == 12


def test_a_failed_call_is_an_error_and_has_its_type(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("judge.py").write_text("def strict(prompt):\n    raise ValueError('no')\n")
    call(monkeypatch, "run", "suite.yaml", **address(receiver))
    (span, *_) = [span for span in receiver.spans() if span.parent_span_id]
    assert span.status.code == 2
    assert named(span.attributes)["error.type"]
    names = {named(event.attributes)["gen_ai.evaluation.name"] for event in receiver.events()}
    assert "evaluator_error" in names
    assert "accuracy_score" not in names


def test_a_receiver_that_refuses_changes_no_verdict_and_is_reported(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.status = 400
    before = call(monkeypatch, "run", "suite.yaml")
    done = call(monkeypatch, "run", "suite.yaml", **address(receiver))
    assert done.code == before.code
    assert "didn't accept: traces, logs, metrics" in done.err
