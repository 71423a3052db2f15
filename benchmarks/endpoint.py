"""A fake model endpoint that is fast enough not to be what a benchmark measures.

One process, one loop over epoll, answers that were encoded beforehand. It knows the chat
completions and the responses of OpenAI, the messages of Anthropic, and `GET .../models`. What it
says depends on the request's `model` alone, by a JSON file: a text, or an object with `content`
and `tool_calls` (`name`, `arguments`); `*` stands for every other model, and `#NUMBER#` for the
number of the call.

`GET /count` tells the calls, the most in flight at once, when the first and the last came, and the
CPU time that the endpoint itself took; `POST /reset` begins anew, and `GET /last` gives the body of
the last call. With `--latency`, every answer leaves so long after its request came in, or up to a
millisecond later, by the clock of that request and not by a chain of waits. `--fault KIND:EVERY`
spoils every so many calls: 500, 429, cut, slow, garbage.

What it does itself is in the tables of quick.py and side_by_side.py, as the floor of raw sockets.
"""

import argparse
import heapq
import json
import re
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any

from replies import KINDS, NUMBER, Answers, http

HEAD_END = b"\r\n\r\n"
MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]*)"')
LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked", re.IGNORECASE)
FAULTS = ("500", "429", "cut", "slow", "garbage")
PIECE = 1 << 16
PLACE = NUMBER.encode()


class Connection:
    """One client, with what it has sent so far and what it still has to get."""

    __slots__ = ("closing", "number", "received", "sock", "unsent")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.number = sock.fileno()
        self.received = b""
        self.unsent = b""
        self.closing = False


class Endpoint:
    """The loop, and what it counts."""

    def __init__(
        self, answers: Answers, *, latency: float, fault: tuple[str, int], slow: float
    ) -> None:
        self.answers = answers
        self.latency = latency
        self.fault, self.every = fault
        self.slow = slow
        self.epoll = select.epoll()
        self.connections: dict[int, Connection] = {}
        self.due: list[tuple[float, int, Connection, bytes, bool]] = []
        self.latest = HEAD_END
        self.reset()

    def listen(self, port: int) -> str:
        """Take a port, 0 for any that is free, and return the address."""
        self.listener = socket.create_server(("127.0.0.1", port), backlog=4096)
        self.listener.setblocking(False)  # noqa: FBT003
        self.epoll.register(self.listener.fileno(), select.EPOLLIN)
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"

    def reset(self) -> None:
        """Reset the counters, except for requests in flight."""
        self.calls = self.faults = 0
        self.flying = self.most = len(self.due)
        self.first = self.last = 0.0
        self.began = time.process_time()

    def serve(self) -> None:
        """Answer until the process is ended."""
        listener = self.listener.fileno()
        while True:
            wait = -1.0
            if self.due:
                # Rounded up to a whole millisecond; to wait the rest out here would take a core
                # from whoever is measured.
                wait = max(0.0, self.due[0][0] - time.monotonic())
            for number, event in self.epoll.poll(wait, 1024):
                if number == listener:
                    self.accept()
                elif event & select.EPOLLOUT:
                    self.send(self.connections[number], b"", close=False)
                else:
                    self.receive(self.connections[number])
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                _, _, connection, answer, close = heapq.heappop(self.due)
                self.flying -= 1
                self.send(connection, answer, close=close)

    def accept(self) -> None:
        """Accept all waiting connections."""
        while True:
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)  # noqa: FBT003
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections[sock.fileno()] = Connection(sock)
            self.epoll.register(sock.fileno(), select.EPOLLIN)

    def drop(self, connection: Connection) -> None:
        """Forget a client."""
        if self.connections.pop(connection.number, None) is not None:
            self.epoll.unregister(connection.number)
            connection.sock.close()

    def receive(self, connection: Connection) -> None:
        """Read what has come, and answer every request that is whole."""
        try:
            data = connection.sock.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.drop(connection)
            return
        data = connection.received + data if connection.received else data
        while data:
            end = whole(data)
            if not end:
                break
            self.request(connection, data[:end])
            data = data[end:]
        connection.received = data

    def request(self, connection: Connection, data: bytes) -> None:
        """Answer one request, now or when its time has come."""
        target = data[: data.index(b"\r\n")].split(b" ")[1]
        kind = KINDS.get(target.rpartition(b"/")[2].partition(b"?")[0])
        if kind is None:
            self.send(connection, self.other(data, target), close=False)
            return
        arrived = time.monotonic()
        self.last = time.time()
        self.first = self.first or self.last
        self.calls += 1
        self.latest = data
        answer, close, wait = self.chosen(kind, data)
        if wait <= 0:
            self.most = max(self.most, self.flying + 1)
            self.send(connection, answer, close=close)
            return
        self.flying += 1
        self.most = max(self.most, self.flying)
        heapq.heappush(self.due, (arrived + wait, self.calls, connection, answer, close))

    def chosen(self, kind: str, data: bytes) -> tuple[bytes, bool, float]:
        """Return the answer, whether the connection ends with it, and how long it takes."""
        found = MODEL.search(data)
        answer = self.answers.of(kind, found[1].decode() if found else "")
        answer = answer.replace(PLACE, b"%08d" % self.calls)
        if not self.every or self.calls % self.every:
            return answer, False, self.latency
        self.faults += 1
        match self.fault:
            case "500":
                return http("500 Internal Server Error", FAILED), False, self.latency
            case "429":
                return http("429 Too Many Requests", FAILED, "Retry-After: 1"), False, self.latency
            case "cut":
                return answer[: -len(answer) // 4], True, self.latency
            case "slow":
                return answer, False, self.latency + self.slow
            case _:
                return http("200 OK", b'{"choices": [<html>'), False, self.latency

    def other(self, data: bytes, target: bytes) -> bytes:
        """Answer requests that aren't model calls."""
        match data[:4], target.rpartition(b"/")[2]:
            case b"GET ", b"count":
                return http("200 OK", json.dumps(self.counted()).encode())
            case b"POST", b"reset":
                self.reset()
                return http("200 OK", b"{}")
            case b"GET ", b"last":
                return http("200 OK", self.latest.partition(HEAD_END)[2])
            case b"GET ", b"models":
                return http("200 OK", self.answers.models())
            case _:
                return http("404 Not Found", b'{"error": {"message": "no such path"}}')

    def counted(self) -> dict[str, Any]:
        """Return what was counted since the start or the last reset."""
        return {
            "calls": self.calls,
            "faults": self.faults,
            "in_flight": self.flying,
            "most_in_flight": self.most,
            "first_call": self.first,
            "last_call": self.last,
            "cpu_seconds": time.process_time() - self.began,
        }

    def send(self, connection: Connection, answer: bytes, *, close: bool) -> None:
        """Send as much as goes now, and the rest when there is room."""
        if connection.number not in self.connections:
            return
        connection.closing = connection.closing or close
        waiting = connection.unsent + answer if connection.unsent else answer
        try:
            sent = connection.sock.send(waiting)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.drop(connection)
            return
        before, connection.unsent = connection.unsent, waiting[sent:]
        if connection.unsent or before:
            more = select.EPOLLOUT if connection.unsent else 0
            self.epoll.modify(connection.number, select.EPOLLIN | more)
        if connection.closing and not connection.unsent:
            self.drop(connection)


FAILED = b'{"error": {"message": "a fault on purpose", "type": "server_error", "code": null}}'


def whole(data: bytes) -> int:
    """Return where the first request ends; 0 if it is incomplete."""
    head = data.find(HEAD_END)
    if head < 0:
        return 0
    found = LENGTH.search(data, 0, head + 2)
    if found:
        end = head + 4 + int(found[1])
    elif CHUNKED.search(data, 0, head + 2):
        last = data.find(b"\r\n0\r\n\r\n", head)
        end = last + 7 if last >= 0 else len(data) + 1
    else:
        end = head + 4
    return end if end <= len(data) else 0


def read_fault(text: str) -> tuple[str, int]:
    """Read KIND:EVERY.

    Raises:
        ArgumentTypeError: there is no such fault.
    """
    kind, _, every = text.partition(":")
    if kind not in FAULTS or not every.isdigit():
        raise argparse.ArgumentTypeError(f"one of {', '.join(FAULTS)}, a colon and a number")
    return kind, int(every)


def main() -> int:
    """Print the address, and answer; or measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="0 takes one that is free")
    parser.add_argument("--replies", type=Path, help="JSON: what each model says")
    parser.add_argument("--latency", type=float, default=0, metavar="MS")
    parser.add_argument("--fault", type=read_fault, default=("", 0), metavar="KIND:EVERY")
    parser.add_argument("--slow", type=float, default=2000, metavar="MS", help="of that fault")
    options = parser.parse_args()
    said = json.loads(options.replies.read_text(encoding="utf-8")) if options.replies else {}
    endpoint = Endpoint(
        Answers(said), latency=options.latency / 1000, fault=options.fault, slow=options.slow / 1000
    )
    print(endpoint.listen(options.port), flush=True)
    try:
        endpoint.serve()
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
