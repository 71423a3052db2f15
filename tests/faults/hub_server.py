"""A hub on this machine that misbehaves as it is told, one fault a request."""

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DATA = random.Random(6).randbytes(300_000)  # noqa: S311 - bytes of a model, no secret


class Request:
    """What was asked, and the way to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, server: "HubServer") -> None:
        self._handler = handler
        self._server = server
        self.path = handler.path
        self.range = handler.headers.get("Range")

    @property
    def begin(self) -> int:
        return 0 if self.range is None else int(self.range[len("bytes=") : -1])

    def head(self, status: int, **headers: object) -> None:
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), str(value))
        self._handler.end_headers()

    def send(self, data: bytes) -> None:
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

    def head_of_rest(self, total: int) -> None:
        """Announce everything from where it was asked for."""
        if self.range is None:
            self.head(200, Content_Length=total)
        else:
            span = f"bytes {self.begin}-{total - 1}/{total}"
            self.head(206, Content_Length=total - self.begin, Content_Range=span)

    def wait(self) -> None:
        """Say nothing more until the server leaves."""
        self._server.left.wait(60)


Fault = Callable[[Request], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients are killed here all the time."""


class HubServer:
    """Answers request n with fault n, and all later ones with the last."""

    def __init__(self, *script: Fault) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.left = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def ranges(self) -> list[str | None]:
        return [request.range for request in self.requests]

    def wait_for(self, requests: int) -> None:
        """Wait until so many requests have come, however busy the machine is."""
        deadline = time.monotonic() + 60
        while len(self.requests) < requests:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    @contextmanager
    def running(self) -> Iterator["HubServer"]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                request = Request(self, outer)
                with outer._lock:
                    fault = outer.script[min(len(outer.requests), len(outer.script) - 1)]
                    outer.requests.append(request)
                self.close_connection = True
                with suppress(OSError):
                    fault(request)
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
                pass

        server = _Server(("127.0.0.1", 0), Handler)
        self._port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self.left.set()
            server.shutdown()
            thread.join()
            server.server_close()


def good(request: Request) -> None:
    request.head_of_rest(len(DATA))
    request.send(DATA[request.begin :])


def knows_no_ranges(request: Request) -> None:
    request.head(200, Content_Length=len(DATA))
    request.send(DATA)


def cut_after(count: int) -> Fault:
    """Announce everything and send so many bytes of it."""

    def fault(request: Request) -> None:
        request.head_of_rest(len(DATA))
        request.send(DATA[request.begin : request.begin + count])

    return fault


def stuck_after(count: int) -> Fault:
    """Announce everything, send so many bytes of it, and nothing more."""

    def fault(request: Request) -> None:
        cut_after(count)(request)
        request.wait()

    return fault


def wrong_bytes(request: Request) -> None:
    request.head_of_rest(len(DATA))
    request.send(bytes(len(DATA) - request.begin))


def other_piece(request: Request) -> None:
    """Send the end, whatever was asked for."""
    total = len(DATA)
    request.head(206, Content_Length=1, Content_Range=f"bytes {total - 1}-{total - 1}/{total}")
    request.send(DATA[-1:])


def other_size(request: Request) -> None:
    request.head(200, Content_Length=17)
    request.send(b"x" * 17)


def endless(request: Request) -> None:
    """Announce nothing, and send more than there is."""
    request.head(200)
    request.send(DATA)
    while True:
        request.send(b"x" * 100_000)


def no_http(request: Request) -> None:
    request.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")


def status(code: int) -> Fault:
    def fault(request: Request) -> None:
        request.head(code, Content_Length=5)
        request.send(b"sorry")

    return fault


def moved_to(url: str) -> Fault:
    return lambda request: request.head(302, Location=url + request.path, Content_Length=0)
