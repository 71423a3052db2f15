"""Calls Langfuse through the low-level client of its SDK, version 4 or 5.

The SDK's own `create_score` and `flush` return normally while the server is down; its low-level
client raises.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib import import_module
from json import dumps
from typing import Any, Final, Literal

import msgspec

from jurybox.engine.plan import Plan
from jurybox.errors import InputError
from jurybox.integrations.sample_trace import SampleTrace, TracedCall
from jurybox.judging.flow import Failure
from jurybox.suite.target_spec import LANGFUSE

_PAGE: Final = 100
_TIMEOUT: Final = 20
_REQUEST: Final = {"timeout_in_seconds": _TIMEOUT, "max_retries": 1}
# Without this header, data may appear ten minutes after it was sent.
_TRACE_REQUEST: Final = {**_REQUEST, "additional_headers": {"x-langfuse-ingestion-version": "4"}}
_RATE_LIMIT: Final = 429
_OUR_FAULT: Final = range(400, 500)
_KEYS: Final = (401, 403)


class DeliveryError(Exception):
    """A call to Langfuse failed.

    Attributes:
        kind: ``unreachable`` if the same call may succeed later, ``refused`` if the keys are wrong,
            ``rejected`` if the sent data is wrong.

    """

    def __init__(self, kind: Literal["unreachable", "refused", "rejected"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class FetchedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a prompt; ``system`` is the system message of a chat prompt."""

    name: str
    version: int
    text: str
    system: str | None = None


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """A score that a person gave a trace."""

    trace_id: str
    name: str
    value: float | str | bool
    author: str
    comment: str
    queued: bool


class LangfuseClient:
    """A client for one Langfuse project; thread-safe."""

    def __init__(
        self, base_url: str, *, public_key: str, secret_key: str, hide: Callable[[str], str]
    ) -> None:
        """Set the project's address and keys; ``hide`` masks secrets in errors."""
        try:
            sdk: Any = import_module("langfuse.api")
        except ImportError:
            hint = "pip install 'jurybox[langfuse]'"
            raise InputError("the Langfuse SDK isn't installed", hint, "langfuse") from None
        httpx: Any = import_module("httpx")
        core: Any = import_module("langfuse.api.core.api_error")
        self._refusals: tuple[type[Exception], ...] = (core.ApiError,)
        self._outages: tuple[type[Exception], ...] = (httpx.TransportError,)
        self._hide = hide
        self._api: Any = sdk.LangfuseAPI(
            base_url=base_url.rstrip("/"),
            username=public_key,
            password=secret_key,
            x_langfuse_sdk_name="jurybox",
            x_langfuse_public_key=public_key,
            timeout=_TIMEOUT,
        )
        # Newer SDKs lack this API; with them, a trace names its dataset run itself.
        self.links_in_traces = not hasattr(self._api, "dataset_run_items")
        self.queue_id = cache(self._queue_id)
        self._linked = cache(self._find_linked)
        self._queued = cache(self._find_queued)
        self.experiment_id = cache(self._experiment_id)
        self.dataset_id = cache(self._dataset_id)

    def _call(self, call: Callable[..., Any], *values: object, **named: object) -> Any:  # noqa: ANN401 - the SDK's
        named.setdefault("request_options", _REQUEST)
        try:
            return call(*values, **named)
        except self._outages as error:
            why = self._hide(f"{type(error).__name__}: {error}")
            raise DeliveryError("unreachable", f"Langfuse can't be reached ({why})") from None
        except self._refusals as error:
            status = getattr(error, "status_code", None)
            body: Any = getattr(error, "body", None)
            reason = body.get("message", body) if hasattr(body, "get") else body
            message = self._hide(f"HTTP {status}: {reason}")
            if status in _KEYS:
                hint = "check LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_BASE_URL"
                raise DeliveryError("refused", f"{message}; {hint}") from None
            ours = status in _OUR_FAULT and status != _RATE_LIMIT
            raise DeliveryError("rejected" if ours else "unreachable", message) from None
        except ValueError as error:
            why = self._hide(f"an answer that isn't from Langfuse ({type(error).__name__})")
            raise DeliveryError("unreachable", why) from None

    def _pages(self, call: Callable[..., Any], *values: object, **named: object) -> Iterator[Any]:
        page = 1
        while True:
            found = self._call(call, *values, page=page, limit=_PAGE, **named)
            yield from found.data
            if page >= found.meta.total_pages:
                return
            page += 1

    def prompt(self, name: str, which: str) -> FetchedPrompt:
        """Return a prompt by version number or label."""
        wanted = {"version": int(which)} if which.isdigit() else {"label": which}
        found = self._call(self._api.prompts.get, name, **wanted)
        if isinstance(found.prompt, str):
            return FetchedPrompt(name=name, version=found.version, text=found.prompt)
        messages = [
            (getattr(each, "role", None), getattr(each, "content", None)) for each in found.prompt
        ]
        match messages:
            case [("user", str(text))]:
                return FetchedPrompt(name=name, version=found.version, text=text)
            case [("system", str(system)), ("user", str(text))]:
                return FetchedPrompt(name=name, version=found.version, text=text, system=system)
            case _:
                problem = "the chat prompt isn't one system message and one user message"
                hint = "save it in this form, or as a text prompt"
                raise InputError(problem, hint, f"{LANGFUSE}{name}@{found.version}")

    def items(self, name: str, version: datetime) -> Iterator[dict[str, Any]]:
        """Yield the items of a dataset that were active at a given time."""
        self.dataset_id(name)  # raises if the dataset doesn't exist
        for item in self._pages(self._api.dataset_items.list, dataset_name=name, version=version):
            if item.status == "ACTIVE":
                yield {
                    "id": item.id,
                    "input": item.input,
                    "expected_output": item.expected_output,
                    "metadata": item.metadata,
                }

    def _dataset_id(self, name: str) -> str:
        """Return the id of a dataset."""
        return self._call(self._api.datasets.get, name).id

    def _experiment_id(self, dataset: str, run_name: str) -> str:
        """Return the id of a dataset run, derived from its name just as the server and SDK do."""
        project = self._call(self._api.projects.get).data[0].id
        parts = ["langfuse-experiment-v1", project, self.dataset_id(dataset), run_name]
        text = dumps(parts, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def run_of(self, dataset: str, run_name: str) -> str:
        """Return the id of a dataset run after its traces were sent."""
        if self.links_in_traces:
            return self.experiment_id(dataset, run_name)
        linked = self._linked(dataset, run_name)
        if not linked:
            raise DeliveryError("unreachable", f"there is no dataset run {run_name} yet")
        return next(iter(linked.values()))

    def send_spans(self, spans: Iterable[Mapping[str, Any]]) -> None:
        """Send the spans of a trace; a span with the same ids is replaced."""
        scope = {"scope": {"name": "jurybox"}, "spans": list(spans)}
        resource = {"attributes": [{"key": "service.name", "value": {"string_value": "jurybox"}}]}
        self._call(
            self._api.opentelemetry.export_traces,
            resource_spans=[{"resource": resource, "scope_spans": [scope]}],
            request_options=_TRACE_REQUEST,
        )

    def send_scores(self, scores: list[dict[str, Any]], at: datetime) -> None:
        """Send scores; a score with the same id and timestamp is replaced."""
        if hasattr(self._api, "ingestion"):
            events = [
                {
                    "type": "score-create",
                    # Depends on the content, because an event with a known id would be ignored.
                    "id": hashlib.sha256(dumps(each).encode()).hexdigest()[:32],
                    "timestamp": at.isoformat(timespec="milliseconds"),
                    "body": each,
                }
                for each in scores
            ]
            errors = self._call(self._api.ingestion.batch, batch=events).errors
            rejected = len(errors)
        else:
            request = [{**each, "timestamp": at} for each in scores]
            answer = self._call(self._api.scores.create, request=request)
            errors, rejected = getattr(answer, "errors", ()), getattr(answer, "rejected", 0)
        if rejected:
            why = self._hide("; ".join(dict.fromkeys(str(each.message) for each in errors)))
            message = f"{rejected} of {len(scores)} scores were rejected: {why}"
            raise DeliveryError("rejected", message)

    def link(self, dataset: str, run_name: str, item: str, trace: str, at: datetime) -> None:
        """Add a trace to a dataset run, unless the run has it or the trace names the run."""
        if self.links_in_traces or trace in self._linked(dataset, run_name):
            return
        made = self._call(
            self._api.dataset_run_items.create,
            run_name=run_name,
            dataset_item_id=item,
            trace_id=trace,
            dataset_version=at,
        )
        self._linked(dataset, run_name)[trace] = made.dataset_run_id

    def _find_linked(self, dataset: str, run_name: str) -> dict[str, str]:
        """Return the traces of a dataset run, each with the id of the run."""
        call, dataset_id = self._api.dataset_run_items.list, self.dataset_id(dataset)
        try:
            found = list(self._pages(call, dataset_id=dataset_id, run_name=run_name))
        except DeliveryError as error:
            if error.kind != "rejected":
                raise
            found = []  # the run doesn't exist before its first item
        return {each.trace_id: each.dataset_run_id for each in found}

    def enqueue(self, queue: str, trace: str) -> None:
        """Add a trace to an annotation queue unless it is already there."""
        queue_id = self.queue_id(queue)
        if trace not in self._queued(queue_id):
            call = self._api.annotation_queues.create_queue_item
            self._call(call, queue_id, object_id=trace, object_type="TRACE")
            self._queued(queue_id).add(trace)

    def _queue_id(self, name: str) -> str:
        """Return the id of an annotation queue by its name."""
        queues = {
            each.name: each.id for each in self._pages(self._api.annotation_queues.list_queues)
        }
        if name not in queues:
            known = ", ".join(queues) or "none"
            raise DeliveryError(
                "rejected",
                f"there is no annotation queue {name}; create it, or name one of: {known}",
            )
        return queues[name]

    def _find_queued(self, queue_id: str) -> set[str]:
        call = self._api.annotation_queues.list_queue_items
        return {each.object_id for each in self._pages(call, queue_id)}

    def annotations(self, traces: Iterable[str]) -> Iterator[Annotation]:
        """Yield the scores that people have given to these traces."""
        old = hasattr(self._api, "scores_v3")
        call = self._api.scores_v3.get_many_v3 if old else self._api.scores.get_many
        fixed = {"source": "ANNOTATION", "fields": "details,subject,annotation", "limit": _PAGE}
        fixed["trace_id"] = ",".join(traces)
        cursor = None
        while True:
            found = self._call(call, cursor=cursor, **fixed)
            for each in found.data:
                yield Annotation(
                    trace_id=each.subject.id,
                    name=each.name,
                    value=each.value,
                    author=each.author_user_id or "unknown",
                    comment=each.comment or "",
                    queued=each.queue_id is not None,
                )
            cursor = found.meta.cursor
            if not cursor:
                return


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
