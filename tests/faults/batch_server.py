"""A provider with batches on this machine: OpenAI's and Anthropic's, and both without a batch.

What it answers is a function of the request alone, so a batched run can be held against a direct
one; and it misbehaves on demand.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from judge_server import LocalServer

Data = dict[str, Any]
Reply = Callable[[Data, int], str]
Answer = tuple[int, bytes]
_ERROR = re.compile(rb'"response": null|"status_code": [345]')


class Batch:
    """One batch: ``items`` are custom ids and bodies, in order."""

    def __init__(self, name: str, items: list[tuple[str, Data]], metadata: Data | None) -> None:
        self.name = name
        self.items = items
        self.metadata = metadata
        self.created = time.time()
        self.looks = 0
        self.ended: list[bytes] | None = None
        self.files: list[str | None] = [None, None]


class BatchServer(LocalServer):
    """Counts what it is asked, in batches and without.

    Attributes:
        batched: every request of a batch as JSON, and how often it came.
        direct: the same for requests that came alone.
        hold: batches don't end while this is set.
        looks: how many times a batch is found open before it ends.
        item: returns what becomes of a request in place of an answer: a status and an error, or
            ``expired`` or ``canceled``.
        mangle: changes the lines of results.
        fail: makes whole batches invalid: a code and a message for each size, or None.
        refuse: a status for each path, in place of any answer.
        cut: cuts the connection behind what it was asked to do, so many times.
        silent_on: what it does at once and answers only when it may ``speak``.
        foreign: batches of other programs, which the lists show first, on a page of their own.

    """

    def __init__(self, reply: Reply, port: int = 0) -> None:
        self.batched: Counter[str] = Counter()
        self.direct: Counter[str] = Counter()
        self.batches: dict[str, Batch] = {}
        self.hold = False
        self.looks = 0
        self.item: Callable[[Data, int], tuple[int, Data] | str | None] = lambda _body, _count: None
        self.mangle: Callable[[list[bytes]], list[bytes]] = lambda lines: lines
        self.fail: Callable[[int], tuple[str, str] | None] = lambda _size: None
        self.refuse: Callable[[str, str], int | None] = lambda _method, _path: None
        self.cut: Counter[str] = Counter()
        self.silent_on = ""
        self.foreign: list[Any] = []
        self.speak = threading.Event()
        self.calls: Counter[str] = Counter()
        self.usage: Data = {"prompt_tokens": 100, "completion_tokens": 20}
        self._reply = reply
        self._files: dict[str, bytes] = {}
        self._lock = threading.RLock()
        super().__init__(port)

    def wait_for(self, batches: int) -> None:
        """Wait until so many batches have come."""
        deadline = time.monotonic() + 60
        while len(self.batches) < batches:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def wait_for_call(self, what: str) -> None:
        deadline = time.monotonic() + 60
        while not self.calls[what]:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def respond(self, call: BaseHTTPRequestHandler, body: bytes) -> Answer | None:
        method, parts = call.command, urlsplit(call.path)
        path = re.sub(r"/(batch|msgbatch|file)-\d+", "/ID", parts.path)
        asked = f"{method} {path}"
        with self._lock:
            self.calls[asked] += 1
        status = self.refuse(method, path)
        if status is not None:
            return status, json.dumps({"error": {"message": f"refused {path}"}}).encode()
        with self._lock:
            told = self._do(asked, parts.path, parse_qs(parts.query), body)
            if self.cut[asked]:
                self.cut[asked] -= 1
                return None
        if asked == self.silent_on:
            self.speak.wait(60)
        return told

    def _do(self, call: str, path: str, query: dict[str, list[str]], body: bytes) -> Answer:
        name = (re.findall(r"(?:batch|msgbatch|file)-\d+", path) or [""])[0]
        actions: dict[str, Callable[[], Answer]] = {
            "POST /v1/chat/completions": lambda: self._answer_one(body, anthropic=False),
            "POST /v1/files": lambda: self._upload(body),
            "POST /v1/batches": lambda: self._create_openai(json.loads(body)),
            "GET /v1/batches": lambda: self._list(query.get("after"), openai=True),
            "GET /v1/batches/ID": lambda: self._look(name, self._openai),
            "GET /v1/files/ID/content": lambda: self._content(name),
            "POST /v1/messages": lambda: self._answer_one(body, anthropic=True),
            "POST /v1/messages/batches": lambda: self._create_anthropic(json.loads(body)),
            "GET /v1/messages/batches": lambda: self._list(query.get("after_id"), openai=False),
            "GET /v1/messages/batches/ID": lambda: self._look(name, self._anthropic),
            "GET /v1/messages/batches/ID/results": lambda: self._results(name),
        }
        return actions.get(call, _missing)()

    def _answer_one(self, body: bytes, *, anthropic: bool) -> Answer:
        request = _unmarked(json.loads(body))
        self.direct[json.dumps(request)] += 1
        status, data = self._one(request, anthropic=anthropic)
        return status, json.dumps(data).encode()

    def _upload(self, form: bytes) -> Answer:
        name = f"file-{len(self._files)}"
        self._files[name] = _uploaded(form)
        return _ok({"id": name, "object": "file", "purpose": "batch"})

    def _content(self, name: str) -> Answer:
        return (200, self._files[name]) if name in self._files else _missing()

    def _results(self, name: str) -> Answer:
        batch = self.batches.get(name)
        return _missing() if batch is None or batch.ended is None else (200, b"".join(batch.ended))

    def _create_anthropic(self, wanted: Data) -> Answer:
        items = [(each["custom_id"], _unmarked(each["params"])) for each in wanted["requests"]]
        return _ok(self._anthropic(self._add("msgbatch", items, None)))

    def _create_openai(self, wanted: Data) -> Answer:
        lines = [json.loads(line) for line in self._files[wanted["input_file_id"]].splitlines()]
        assert wanted["endpoint"] == "/v1/chat/completions"
        assert wanted["completion_window"] == "24h"
        assert {(each["method"], each["url"]) for each in lines} == {("POST", wanted["endpoint"])}
        assert len({each["body"]["model"] for each in lines}) == 1
        items = [(each["custom_id"], each["body"]) for each in lines]
        return _ok(self._openai(self._add("batch", items, wanted.get("metadata"))))

    def _add(self, kind: str, items: list[tuple[str, Data]], metadata: Data | None) -> Batch:
        names = [name for name, _ in items]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in names)
        batch = Batch(f"{kind}-{len(self.batches)}", items, metadata)
        self.batches[batch.name] = batch
        if self.fail(len(items)) is None:
            self.batched.update(json.dumps(body) for _, body in items)
        return batch

    def _list(self, after: list[str] | None, *, openai: bool) -> Answer:
        mine = list(reversed(self.batches.values()))
        if not after and self.foreign:
            return _ok({"data": self.foreign, "has_more": True})
        if after and after[0] != "foreign":
            names = [each.name for each in mine]
            mine = mine[names.index(after[0]) + 1 :]
        shown = self._openai if openai else self._anthropic
        page = [shown(each) for each in mine[:2]]
        return _ok({"data": page, "has_more": len(mine) > len(page)})

    def _look(self, name: str, shown: Callable[[Batch], Data]) -> Answer:
        batch = self.batches.get(name)
        if batch is None:
            return _missing()
        batch.looks += 1
        if batch.ended is None and not self.hold and batch.looks > self.looks:
            self._end(batch)
        return _ok(shown(batch))

    def _end(self, batch: Batch) -> None:
        if self.fail(len(batch.items)) is not None:
            batch.ended = []
            return
        anthropic = batch.name.startswith("msg")
        lines = [self._line(name, body, anthropic=anthropic) for name, body in batch.items]
        # In no order that anybody could rely on.
        batch.ended = self.mangle(lines[::-1])
        errors = [line for line in batch.ended if _ERROR.search(line)]
        answers = [line for line in batch.ended if line not in errors]
        batch.files = [self._keep(part) for part in (answers, errors)]

    def _keep(self, lines: list[bytes]) -> str | None:
        if not lines:
            return None
        name = f"file-{len(self._files)}"
        self._files[name] = b"".join(lines)
        return name

    def _line(self, name: str, body: Data, *, anthropic: bool) -> bytes:
        status, data = self._one(body, anthropic=anthropic)
        if anthropic:
            if status == 0:
                result: Data = {"type": data["code"].removeprefix("batch_")}
            elif status == 200:
                result = {"type": "succeeded", "message": data}
            else:
                result = {"type": "errored", "error": {"type": "error", **data}}
            line: Data = {"custom_id": name, "result": result}
        elif status == 0:
            line = {"id": "r", "custom_id": name, "response": None, "error": data}
        else:
            response = {"status_code": status, "request_id": "q", "body": data}
            line = {"id": "r", "custom_id": name, "response": response, "error": None}
        return json.dumps(line).encode() + b"\n"

    def _one(self, body: Data, *, anthropic: bool) -> tuple[int, Data]:
        count = self.batched[json.dumps(body)]
        instead = self.item(body, count)
        if isinstance(instead, str):
            return 0, {"code": instead, "message": f"it is {instead}"}
        if instead is not None:
            return instead
        text = self._reply(body, count)
        if anthropic:
            content = [{"type": "text", "text": text}]
            usage = {"input_tokens": 100, "output_tokens": 20}
            answer = {"content": content, "stop_reason": "end_turn", "usage": usage}
            return 200, {"model": body["model"], **answer}
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return 200, {
            "model": body["model"],
            "system_fingerprint": "fp_1",
            "choices": [choice],
            "usage": self.usage,
        }

    def _openai(self, batch: Batch) -> Data:
        told: Data = {
            "id": batch.name,
            "object": "batch",
            "status": "in_progress" if batch.ended is None else "completed",
            "metadata": batch.metadata,
            "created_at": int(batch.created),
            "request_counts": {"total": len(batch.items), "completed": 0, "failed": 0},
            "output_file_id": batch.files[0],
            "error_file_id": batch.files[1],
        }
        failed = self.fail(len(batch.items))
        if failed is not None and batch.ended is not None:
            code, message = failed
            errors = {"object": "list", "data": [{"code": code, "message": message, "line": None}]}
            told |= {"status": "failed", "errors": errors}
        return told

    def _anthropic(self, batch: Batch) -> Data:
        created = datetime.fromtimestamp(batch.created, UTC).isoformat().replace("+00:00", "Z")
        ended, size = batch.ended is not None, len(batch.items)
        return {
            "id": batch.name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {
                "processing": 0 if ended else size,
                "succeeded": size if ended else 0,
            },
            "created_at": created,
            "results_url": "https://elsewhere.invalid/results" if ended else None,
        }


def _unmarked(request: Data) -> Data:
    """Return a request without the marks of a cache, which change nothing of what is asked."""
    for message in request["messages"]:
        if isinstance(message["content"], list):
            message["content"] = "".join(block["text"] for block in message["content"])
    return request


def _uploaded(form: bytes) -> bytes:
    """Return the file in a form, read as strictly as a server would."""
    boundary = form.split(b"\r\n", 1)[0]
    parts = form.split(boundary)[1:-1]
    named = {}
    for part in parts:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="(\w+)"', head)
        assert name is not None
        named[name[1]] = content.removesuffix(b"\r\n")
    assert named[b"purpose"] == b"batch"
    return named[b"file"]


def _ok(data: Data) -> Answer:
    return 200, json.dumps(data).encode()


def _missing() -> Answer:
    return 404, json.dumps({"error": {"message": "no such thing"}}).encode()
