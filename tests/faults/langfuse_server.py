"""A Langfuse server on this machine: checks each request against the documented shapes, keeps what
it is sent, and misbehaves as it is told."""

import base64
import json
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

PUBLIC, SECRET = "pk-lf-0123456789", "sk-lf-very-secret-9876543210"
NOW = "2026-01-02T03:04:05.000Z"
Reply = tuple[int, object]
Fault = Callable[[str, str], Reply | None]

SCORE = {
    "id": str,
    "traceId": str,
    "datasetRunId": str,
    "name": str,
    "value": (int, float, str),
    "comment": str,
    "dataType": str,
    "timestamp": str,
}
SPAN = {
    "traceId": str,
    "spanId": str,
    "parentSpanId": str,
    "name": str,
    "kind": int,
    "startTimeUnixNano": str,
    "endTimeUnixNano": str,
    "attributes": list,
    "status": dict,
}


class WrongShapeError(Exception):
    """A request is none that the documentation knows."""


def check(given: dict[str, Any], shape: dict[str, Any], *required: str) -> None:
    for name, value in given.items():
        if name not in shape or not isinstance(value, shape[name]):
            raise WrongShapeError(f"{name}={value!r}")
    if missing := set(required) - given.keys():
        raise WrongShapeError(f"missing {missing}")


class LangfuseServer:
    """Keeps traces, scores, links and queue items by what makes each of them one."""

    def __init__(self) -> None:
        self.prompts: dict[str, dict[str, Any]] = {}
        self.items: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.spans: dict[tuple[str, str], dict[str, Any]] = {}
        self.scores: dict[tuple[str, str], dict[str, Any]] = {}
        self.links: list[dict[str, Any]] = []
        self.queue: list[str] = []
        self.asked: list[str] = []
        self.wrong: list[str] = []
        self.fault: Fault = lambda *_: None
        self.after: Fault = lambda *_: None
        self.reject: Callable[[dict[str, Any]], str | None] = lambda _: None
        self.port = 0
        self._server: ThreadingHTTPServer | None = None
        self._lock = threading.Lock()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LANGFUSE_PUBLIC_KEY": PUBLIC,
            "LANGFUSE_SECRET_KEY": SECRET,
            "LANGFUSE_BASE_URL": f"http://127.0.0.1:{self.port}",
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, after the first time at the same port."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, method: str, url: str, body: Any, auth: str) -> Reply:  # noqa: ANN401 - JSON
        parts = urlsplit(url)
        path, query = unquote(parts.path), {k: v[0] for k, v in parse_qs(parts.query).items()}
        self.asked.append(f"{method} {path}")
        if reply := self.fault(method, path):
            return reply
        if auth != "Basic " + base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode():
            return 401, {"message": f"Invalid credentials {SECRET}"}
        with self._lock:
            try:
                reply = self._reply(method, path, query, body)
            except (WrongShapeError, KeyError) as error:
                self.wrong.append(f"{method} {path}: {error!r}")
                return 400, {"message": f"wrong shape: {error!r}"}
        return self.after(method, path) or reply

    def _reply(self, method: str, path: str, query: dict[str, str], body: Any) -> Reply:  # noqa: ANN401, PLR0911, PLR0912, C901 - the table of endpoints
        match method, path.removeprefix("/api/public"):
            case "GET", name if name.startswith("/v2/prompts/"):
                return self._prompt(name.removeprefix("/v2/prompts/"), query)
            case "GET", name if name.startswith("/v2/datasets/"):
                name = name.removeprefix("/v2/datasets/")
                if not any(each["datasetName"] == name for each in self.items):
                    return 404, {"message": "Dataset not found", "error": "LangfuseNotFoundError"}
                dates = {"createdAt": NOW, "updatedAt": NOW}
                more = {"id": "ds-1", "metadata": None, "projectId": "project-1"}
                return 200, {"name": name, "description": None, **more, **dates}
            case "GET", "/dataset-items":
                page = int(query.get("page", "1"))
                size = int(query.get("limit", "50"))
                items = [each for each in self.items if each["datasetName"] == query["datasetName"]]
                if not re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", query["version"]):
                    raise WrongShapeError(query["version"])
                shown = items[(page - 1) * size : page * size]
                return 200, {"data": shown, "meta": self._meta(page, size, len(items))}
            case "GET", "/projects":
                more = {"metadata": {}, "organization": {"id": "o", "name": "o"}}
                return 200, {"data": [{"id": "project-1", "name": "p", **more}]}
            case "POST", "/otel/v1/traces":
                return self._spans(body)
            case "POST", "/scores":
                return self._score_list(body)
            case "POST", "/ingestion":
                return self._ingestion(body)
            case "POST", "/dataset-run-items":
                names = ("runName", "datasetItemId", "traceId", "datasetVersion")
                check(body, dict.fromkeys(names, str), "runName", "datasetItemId", "traceId")
                link = {**body, "datasetRunId": f"id of {body['runName']}"}
                self.links.append(link)
                return 200, self._link(link)
            case "GET", "/dataset-run-items":
                mine = [each for each in self.links if each["runName"] == query["runName"]]
                data = [self._link(each) for each in mine]
                return 200, {"data": data, "meta": self._meta(1, 100, len(data))}
            case "GET", "/annotation-queues":
                more = {"scoreConfigIds": [], "createdAt": NOW, "updatedAt": NOW}
                queues = [{"id": "q-1", "name": "to-review", "description": None, **more}]
                return 200, {"data": queues, "meta": self._meta(1, 100, 1)}
            case "GET", "/annotation-queues/q-1/items":
                return 200, {
                    "data": [self._item(each) for each in self.queue],
                    "meta": self._meta(1, 100, len(self.queue)),
                }
            case "POST", "/annotation-queues/q-1/items":
                check(body, {"objectId": str, "objectType": str}, "objectId", "objectType")
                self.queue.append(body["objectId"])
                return 200, self._item(body["objectId"])
            case "GET", "/v3/scores":
                wanted = query["traceId"].split(",")
                if query["source"] != "ANNOTATION" or "subject" not in query["fields"]:
                    raise WrongShapeError(str(query))
                found = [each for each in self.annotations if each["subject"]["id"] in wanted]
                return 200, {"data": found, "meta": {"limit": 100}}
            case _:
                raise WrongShapeError("no such endpoint")

    def _prompt(self, name: str, query: dict[str, str]) -> Reply:
        for each in self.prompts.values():
            labels, version = each["labels"], str(each["version"])
            if each["name"] == name and (
                query.get("label") in labels or query.get("version") == version
            ):
                return 200, each
        return 404, {"message": "Prompt not found", "error": "LangfuseNotFoundError"}

    def _spans(self, body: Any) -> Reply:  # noqa: ANN401 - JSON
        for resource in body["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    check(span, SPAN, "traceId", "spanId", "name", "startTimeUnixNano")
                    if not re.fullmatch("[0-9a-f]{32}", span["traceId"]):
                        raise WrongShapeError(span["traceId"])
                    if not re.fullmatch("[0-9a-f]{16}", span["spanId"]):
                        raise WrongShapeError(span["spanId"])
                    values = {each["key"]: each["value"] for each in span["attributes"]}
                    self.spans[span["traceId"], span["spanId"]] = {**span, "attributes": values}
        return 200, {}

    def _score_list(self, body: Any) -> Reply:  # noqa: ANN401 - JSON
        if not isinstance(body, list):
            raise WrongShapeError("scores are a list")
        for score in body:
            check(score, SCORE, "id", "name", "value", "dataType", "timestamp")
        errors = [why for score in body if (why := self.reject(score))]
        self._keep([score for score in body if not self.reject(score)])
        if errors:
            accepted = len(body) - len(errors)
            more = {"errors": [{"message": why} for why in errors]}
            return 207, {"accepted": accepted, "rejected": len(errors), **more}
        return 202, {"message": "Accepted"}

    def _ingestion(self, body: Any) -> Reply:  # noqa: ANN401 - JSON
        check(body, {"batch": list}, "batch")
        successes: list[object] = []
        errors: list[object] = []
        for event in body["batch"]:
            check(event, {"id": str, "timestamp": str, "type": str, "body": dict}, "id", "body")
            check(event["body"], SCORE, "id", "name", "value", "dataType")
            why = self.reject(event["body"])
            if why:
                errors.append({"id": event["id"], "status": 400, "message": why})
            else:
                self._keep([{**event["body"], "timestamp": event["timestamp"]}])
                successes.append({"id": event["id"], "status": 201})
        return 207, {"successes": successes, "errors": errors}

    def _keep(self, scores: list[dict[str, Any]]) -> None:
        for score in scores:
            if ("traceId" in score) == ("datasetRunId" in score):
                raise WrongShapeError("a score is of a trace or of a run")
            # One with the same id and timestamp is the same score.
            self.scores[score["id"], score["timestamp"]] = score

    def _link(self, link: dict[str, Any]) -> dict[str, Any]:
        own = {"id": link["traceId"], "datasetRunName": link["runName"], "observationId": None}
        return {**link, **own, "createdAt": NOW, "updatedAt": NOW}

    def _item(self, trace_id: str) -> dict[str, Any]:
        of = {"objectId": trace_id, "objectType": "TRACE", "status": "PENDING"}
        more = {"completedAt": None, "createdAt": NOW, "updatedAt": NOW}
        return {"id": f"item {trace_id}", "queueId": "q-1", **of, **more}

    def _meta(self, page: int, limit: int, total: int) -> dict[str, int]:
        pages = -(-total // limit)
        return {"page": page, "limit": limit, "totalItems": total, "totalPages": pages}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # a restart cuts every connection

            def do_GET(self) -> None:
                self._serve(None)

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                self._serve(json.loads(self.rfile.read(length)))

            def _serve(self, body: object) -> None:
                auth = self.headers.get("authorization", "")
                status, data = server.answer(self.command, self.path, body, auth)
                if status == 0:  # the connection is lost, whatever was done
                    self.close_connection = True
                    return
                text = json.dumps(data).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's
                del format, args

        return Handler


def slow(seconds: float) -> Fault:
    def wait(method: str, path: str) -> None:
        del method, path
        time.sleep(seconds)

    return wait
