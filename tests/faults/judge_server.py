"""A judge behind a real HTTP endpoint: its reply is a function of the request alone."""

import hashlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from verdicts import scored

CRITERIA = ("correctness", "completeness", "soundness", "clarity", "usefulness")
Reply = Callable[[dict[str, Any], int], str]


def answer_or_praise(request: dict[str, Any], number: int) -> str:
    """Answer a task as the system under test, and judge by `general` with the best scores."""
    del number
    if request["messages"][-1]["content"].startswith("Task"):
        return "An answer"
    return scored(dict.fromkeys(CRITERIA, 5), "It is.")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients are killed here all the time."""


class LocalServer:
    """A provider on this machine; ``respond`` says what it answers."""

    def __init__(self, port: int = 0) -> None:
        self._connections: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", port), self._handler())

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.address}/v1"

    def respond(self, call: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes] | None:
        """Return the status and the body; None where the connection is cut."""
        raise NotImplementedError

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        respond, connections = self.respond, self._connections

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                connections.add(self.connection)

            def finish(self) -> None:
                connections.discard(self.connection)
                super().finish()

            def _answer(self) -> None:
                answer = respond(self, self.rfile.read(int(self.headers["Content-Length"] or 0)))
                if answer is None:
                    self.close_connection = True
                    return
                status, data = answer
                head = (
                    f"HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(data)}\r\n\r\n"
                )
                try:
                    self.wfile.write(head.encode() + data)
                except ConnectionError:
                    self.close_connection = True

            do_GET = do_POST = _answer  # noqa: N815 - the names that the class asks for

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        return Handler

    @contextmanager
    def running(self) -> Iterator[Self]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


class JudgeServer(LocalServer):
    """Counts what it is asked; ``asked`` has every request's body and how often it came."""

    def __init__(self, reply: Reply, latency: float = 0.0, port: int = 0) -> None:
        self.asked: Counter[str] = Counter()
        self.requests = 0
        self.arrivals: list[float] = []
        self.at_once = self.most_at_once = 0
        self.refuse_after: int | None = None
        # The statuses of single requests by their number, and a text whose requests always fail.
        self.faults: dict[int, int] = {}
        self.poison = ""
        self.calls = 0
        self.echo = ""
        self.keys: set[str | None] = set()
        self.model: str | None = "judge-2025-01-01"
        self._reply = reply
        self._lock = threading.Lock()
        self.latency = latency
        super().__init__(port)

    def respond(self, call: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        self.keys.add(call.headers["Authorization"])
        return self.answer(body)

    def wait_for(self, requests: int) -> None:
        """Wait until so many requests have come, however busy the machine is."""
        deadline = time.monotonic() + 180
        while self.requests < requests:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def leave(self) -> None:
        """Go away as a process does that is killed: nobody listens, and connections are cut."""
        self._server.shutdown()
        self._server.server_close()
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """Return the status and the body; whoever comes too late has a key that isn't known."""
        request = json.loads(body)
        with self._lock:
            if self.refuse_after is not None and self.requests >= self.refuse_after:
                return 401, json.dumps({"error": {"message": f"no such key {self.echo}"}}).encode()
            self.calls += 1
            status = self.faults.get(self.calls)
            if status is not None or (self.poison and self.poison in body.decode()):
                return status or 500, b"{}"
            self.requests += 1
            self.arrivals.append(time.monotonic())
            self.asked[body.decode()] += 1
            number = self.requests
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(self.latency)
        with self._lock:
            self.at_once -= 1
        message = {"role": "assistant", "content": self._reply(request, number)}
        answer = json.dumps(
            {
                "model": self.model,
                "system_fingerprint": "fp_1",
                "choices": [{"message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 20},
            }
        )
        return 200, answer.encode()


def digest_of(request: dict[str, Any]) -> int:
    said = json.dumps([request["messages"], request.get("seed")]).encode()
    return int.from_bytes(hashlib.sha256(said).digest()[:4], "big")


def general_verdict(request: dict[str, Any], number: int) -> str:
    """Judge by the general rubric; every fourth reply can't be used, and is right when asked again.

    Which ones depends on the prompt, and so on the words of the rubric.
    """
    del number
    chance = digest_of(request)
    scores = {name: 1 + (chance >> index) % 5 for index, name in enumerate(CRITERIA)}
    if chance % 4 == 0 and len(request["messages"]) == 1:
        scores[CRITERIA[0]] = 6
    return scored(scores, f"Because of {chance}.")
