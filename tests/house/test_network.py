"""The guard of tests/conftest.py: nothing leaves this machine, loopback works."""

import asyncio
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from jurybox.models.http import HttpClient

# Reserved for documentation (RFC 5737, RFC 3849, RFC 2606): they would lead nowhere even unguarded.
ELSEWHERE = "192.0.2.1"
ELSEWHERE_V6 = "2001:db8::1"
NAME = "example.invalid"

FETCH = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except OSError as trouble:
    print(type(getattr(trouble, "reason", trouble)).__name__)
"""


def connect(host: str, family: socket.AddressFamily = socket.AF_INET) -> None:
    with socket.socket(family) as client:
        client.settimeout(1)
        client.connect((host, 80))


def send_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", (ELSEWHERE, 53))


def send_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendmsg([b"x"], [], 0, (ELSEWHERE, 53))


def connect_without_raising() -> None:
    with socket.socket() as client:
        client.settimeout(1)
        client.connect_ex((ELSEWHERE, 80))


def connect_in_an_event_loop() -> None:
    asyncio.run(asyncio.wait_for(asyncio.open_connection(ELSEWHERE, 80), 1))


WAYS_OUT: dict[str, Callable[[], object]] = {
    "connect": lambda: connect(ELSEWHERE),
    "connect over IPv6": lambda: connect(ELSEWHERE_V6, socket.AF_INET6),
    "create_connection by name": lambda: socket.create_connection((NAME, 80), timeout=1),
    "connect_ex": connect_without_raising,
    "create_connection": lambda: socket.create_connection((ELSEWHERE, 80), timeout=1),
    "asyncio": connect_in_an_event_loop,
    "our own client": lambda: asyncio.run(HttpClient(f"http://{ELSEWHERE}", {}).post("", {})),
    "sendto": send_datagram,
    "sendmsg": send_message,
    "getaddrinfo": lambda: socket.getaddrinfo(NAME, 80),
    "gethostbyname": lambda: socket.gethostbyname(NAME),
    "gethostbyaddr": lambda: socket.gethostbyaddr(ELSEWHERE),
    "getnameinfo": lambda: socket.getnameinfo((ELSEWHERE, 80), 0),
}


@pytest.mark.parametrize("way_out", WAYS_OUT.values(), ids=WAYS_OUT.keys())
def test_no_way_leads_out(way_out: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match="a test may not use the network"):
        way_out()


class _Greeter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def greeter() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Greeter) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def fetch_in_child(url: str) -> str:
    child = [sys.executable, "-c", FETCH, url]
    return subprocess.run(child, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", [ELSEWHERE, NAME])
def test_a_child_process_is_refused_by_the_proxy(scheme: str, host: str) -> None:
    assert fetch_in_child(f"{scheme}://{host}/") == "ConnectionRefusedError"


def test_a_child_process_reaches_loopback(greeter: str) -> None:
    assert fetch_in_child(greeter) == "hello"


def test_this_process_reaches_loopback(greeter: str) -> None:
    with urllib.request.urlopen(greeter) as reply:  # noqa: S310 - the address is the fixture's
        assert reply.read() == b"hello"
