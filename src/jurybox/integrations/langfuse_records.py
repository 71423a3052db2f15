"""Builds the spans and scores of a sample for Langfuse, with stable ids."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from jurybox.engine.plan import Plan
from jurybox.integrations.sample_trace import SampleTrace, TracedCall
from jurybox.judging.flow import Failure
from jurybox.suite.target_spec import LANGFUSE

_NAME: Final = 32
_LONGEST_LABEL: Final = 500


def trace_id(run_id: str, number: int) -> str:
    """Return the id of a sample's trace."""
    return _hash(run_id, number)


def run_name(run_id: str, suite: str, repeat: int) -> str:
    """Return the name of the dataset run for one repeat of a run."""
    return f"{suite} {run_id} #{repeat + 1}"


def spans(
    trace: SampleTrace, plan: Plan, experiment: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield a span for the sample, and inside it a generation for each call."""
    record, sample = trace.record, trace.record.row
    of = trace_id(sample.run_id, sample.number)
    root = _hash(of, "sample")[:16]
    shown = {"task": record.task, "context": record.inputs.context}
    shown["messages"] = msgspec.to_builtins(record.inputs.messages) or None
    answers = [record.response]
    if record.responses.response_b is not None:
        answers.append(record.responses.response_b.text)
    linked = {**experiment, "langfuse.experiment.item.root_observation_id": root}
    own = {
        "langfuse.observation.type": "evaluator",
        "langfuse.trace.name": f"{plan.suite} {sample.sample_id}"[:200],
        "session.id": sample.run_id,
        "langfuse.observation.input": _json({k: v for k, v in shown.items() if v}),
        "langfuse.observation.output": answers[0] if len(answers) == 1 else _json(answers),
        "langfuse.trace.metadata.run_id": sample.run_id,
        "langfuse.trace.metadata.sample_id": sample.sample_id,
        "langfuse.trace.metadata.repeat": str(sample.repeat + 1),
        "langfuse.trace.metadata.rubric": plan.rubric.origin,
        "langfuse.trace.metadata.record_sha256": sample.record_sha256,
        "langfuse.trace.metadata.times_measured": _json(trace.timed),
        **(linked if experiment else {}),
    }
    if record.result.target_error is not None:
        own["langfuse.observation.level"] = "ERROR"
        own["langfuse.observation.status_message"] = record.result.target_error
    yield _span(of, root, None, f"sample {sample.sample_id}", trace.start, trace.end, own)
    for call in trace.calls:
        prompt = plan.target.prompt_id if call.role == "target" and plan.target else None
        attributes = {**_call(call, prompt), **(linked if experiment else {})}
        span_id = _hash(of, call.position)[:16]
        yield _span(of, span_id, root, call.role, call.start, call.end, attributes)


def _call(call: TracedCall, prompt_id: str | None) -> dict[str, str | int]:
    request, outcome = call.request, call.outcome
    attributes: dict[str, str | int] = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.model.name": request.model,
        "langfuse.observation.model.parameters": _json(request.generation),
        "langfuse.observation.input": _json(request.messages),
    }
    name, _, version = (prompt_id or "").removeprefix(LANGFUSE).rpartition("@")
    if prompt_id is not None and prompt_id.startswith(LANGFUSE) and version.isdigit():
        attributes["langfuse.observation.prompt.name"] = name
        attributes["langfuse.observation.prompt.version"] = int(version)
    if isinstance(outcome, Failure):
        attributes["langfuse.observation.level"] = "ERROR"
        attributes["langfuse.observation.status_message"] = outcome.message
        return attributes
    attributes["langfuse.observation.output"] = outcome.text
    usage = {"input": outcome.usage.input_tokens, "output": outcome.usage.output_tokens}
    known = {kind: count for kind, count in usage.items() if count is not None}
    if known and not outcome.cached:
        attributes["langfuse.observation.usage_details"] = _json(known)
    if outcome.cached:
        attributes["langfuse.observation.metadata.cached"] = "true"
    if outcome.model:
        attributes["langfuse.observation.metadata.reported_model"] = outcome.model
    return attributes


def _span(  # noqa: PLR0913, PLR0917 - the fields of a span
    trace: str,
    span: str,
    parent: str | None,
    name: str,
    start: int,
    end: int,
    attributes: Mapping[str, str | int],
) -> dict[str, Any]:
    return {
        "trace_id": trace,
        "span_id": span,
        **({} if parent is None else {"parent_span_id": parent}),
        "name": name,
        "kind": 1,
        "start_time_unix_nano": str(start),
        "end_time_unix_nano": str(max(start, end)),
        "attributes": [
            {"key": key, "value": {f"{'int' if isinstance(value, int) else 'string'}_value": value}}
            for key, value in attributes.items()
        ],
        "status": {},
    }


def sample_scores(trace: SampleTrace) -> list[dict[str, Any]]:
    """Return the scores of a sample's trace."""
    of = trace_id(trace.record.row.run_id, trace.record.row.number)
    return [
        {
            "id": _hash(of, "score", score.name),
            "trace_id": of,
            "name": score.name,
            "value": score.value[:_LONGEST_LABEL] if isinstance(score.value, str) else score.value,
            "data_type": score.kind,
            **({"comment": score.comment} if score.comment else {}),
        }
        for score in trace.scores
    ]


def run_scores(run: str, name: str, metrics: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the scores of a dataset run with this id and name."""
    return [
        {
            "id": _hash("run", name, metric),
            "dataset_run_id": run,
            "name": metric,
            "value": value,
            "data_type": "NUMERIC",
        }
        for metric, value in metrics.items()
    ]


def _hash(*parts: object) -> str:
    return hashlib.sha256(_json([str(each) for each in parts]).encode()).hexdigest()[:_NAME]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
