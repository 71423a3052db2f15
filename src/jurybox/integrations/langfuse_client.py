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

from jurybox.errors import InputError
from jurybox.suite.target_spec import LANGFUSE

_PAGE: Final = 100
_TIMEOUT: Final = 20
_REQUEST: Final = {"timeout_in_seconds": _TIMEOUT, "max_retries": 1}
# Without it, what is sent may be shown ten minutes later.
_TRACE_REQUEST: Final = {**_REQUEST, "additional_headers": {"x-langfuse-ingestion-version": "4"}}
_RATE_LIMIT: Final = 429
_OUR_FAULT: Final = range(400, 500)
_KEYS: Final = (401, 403)


class DeliveryError(Exception):
    """A call to Langfuse failed.

    Attributes:
        kind: ``unreachable`` where the same may be taken later, ``refused`` where the keys are at
            fault, ``rejected`` where what was sent is.

    """

    def __init__(self, kind: Literal["unreachable", "refused", "rejected"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class LangfuseAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The address and keys of a Langfuse project; ``hide`` masks secrets in its messages."""

    base_url: str
    public_key: str
    secret_key: str
    hide: Callable[[str], str]

    def __repr__(self) -> str:
        """Show no key."""
        return f"LangfuseAccess({self.base_url!r})"


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

    def __init__(self, access: LangfuseAccess) -> None:
        try:
            sdk: Any = import_module("langfuse.api")
        except ImportError:
            hint = "pip install 'jurybox[langfuse]'"
            raise InputError("the Langfuse SDK isn't installed", hint, "langfuse") from None
        httpx: Any = import_module("httpx")
        core: Any = import_module("langfuse.api.core.api_error")
        self._refusals: tuple[type[Exception], ...] = (core.ApiError,)
        self._outages: tuple[type[Exception], ...] = (httpx.TransportError,)
        self._hide = access.hide
        self._api: Any = sdk.LangfuseAPI(
            base_url=access.base_url.rstrip("/"),
            username=access.public_key,
            password=access.secret_key,
            x_langfuse_sdk_name="jurybox",
            x_langfuse_public_key=access.public_key,
            timeout=_TIMEOUT,
        )
        # The first major that has no other way to link a trace with a dataset run than the trace.
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
            why = self._hide(f"an answer that isn't Langfuse's ({type(error).__name__})")
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
                hint = "save it so, or as a text prompt"
                raise InputError(problem, hint, f"{LANGFUSE}{name}@{found.version}")

    def items(self, name: str, version: datetime) -> Iterator[dict[str, Any]]:
        """Yield the items of a dataset that were active at a given time."""
        self.dataset_id(name)  # a dataset that isn't there has no items either
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
        """Return the id of a dataset run; server and SDK derive it from the name."""
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
                    # What is sent again has to be another event, or it would count for nothing.
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
        """Add a trace to a dataset run, once; needed where the trace doesn't name the run."""
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
        """Return the traces of a dataset run, and its id."""
        call, dataset_id = self._api.dataset_run_items.list, self.dataset_id(dataset)
        try:
            found = list(self._pages(call, dataset_id=dataset_id, run_name=run_name))
        except DeliveryError as error:
            if error.kind != "rejected":
                raise
            found = []  # there is no such run before its first item
        return {each.trace_id: each.dataset_run_id for each in found}

    def enqueue(self, queue: str, trace: str) -> None:
        """Add a trace to an annotation queue, once."""
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
                "rejected", f"there is no annotation queue {name}; there are: {known}"
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
