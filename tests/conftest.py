"""What every test may rely on: no network but loopback, a place of its own, no user settings."""

import gc
import ipaddress
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir
from xdist.scheduler import LoadScopeScheduling

from commands import Done, call
from jurybox.engine import runner
from jurybox.models.http import HttpCall, HttpClient
from jurybox.wiring import read_limits

# A deadline fails on a busy machine, and a database makes a run depend on the one before. People
# hunt with new examples every time; a release must not hang on the luck of one run.
# `HYPOTHESIS_PROFILE=thorough` looks longer, with what the ordinary run leaves to chance.
settings.register_profile(
    "jurybox", deadline=None, database=None, derandomize="CI" in os.environ, max_examples=40
)
settings.register_profile("thorough", settings.get_profile("jurybox"), max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "jurybox"))

# Some machines forbid Python to keep what it compiled. Each of the hundreds of processes that the
# suite starts would then compile the whole program again, and each run all of the tests.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell starts its background jobs deaf to Ctrl-C, and so is every program that they start; some
# tests send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A store waits for the disk after every sample, which tells nothing that a test could see: what a
# killed process has written is there without it. On a file system in memory nobody waits.
_MEMORY = Path("/dev/shm")  # noqa: S108 - only a folder of this run's own is made in it
_ENOUGH = 4 << 30

# A run collects rows for 20 ms before it commits them, and a sample waits for its replies to be
# stored: a thousand samples that are judged one after the other would wait for 40 seconds.
runner._PAUSE = 0.001

_PRIVATE = (
    "JURYBOX_",
    "OPENAI_",
    "ANTHROPIC_",
    "LANGFUSE_",
    "OTEL_",
    "REQUESTS_CA_",
    "SSL_CERT_",
    "XDG_",
)


class NetworkForbiddenError(RuntimeError):
    """Not an OSError, because code under test rightly catches those and tries again."""


def _require_loopback(host: object) -> None:
    if isinstance(host, bytes):
        host = host.decode()
    if host in {None, "", "localhost"}:
        return
    try:
        loopback = ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise NetworkForbiddenError(f"a test may not use the network: {host!r} is not loopback")


def _check_address(sock: socket.socket, address: tuple[object, ...] | None) -> None:
    # sendmsg() on a connected socket has no address; connect() has seen it already.
    if address is None or sock.family == socket.AF_UNIX:
        return
    if sock.family not in {socket.AF_INET, socket.AF_INET6}:
        raise NetworkForbiddenError(f"a test may not use the network: {sock.family!r}")
    _require_loopback(address[0])


def _check_host(host: object, *_: object) -> None:
    _require_loopback(host)


def _check_name(address: tuple[object, ...]) -> None:
    _require_loopback(address[0])


# One gap is Python's: `sock.connect((name, port))` looks the name up before it raises its event, so
# the question leaves though the connection does not. Everything that uses getaddrinfo() is stopped.
_CHECKS: dict[str, Callable[..., None]] = {
    "socket.connect": _check_address,
    "socket.sendto": _check_address,
    "socket.sendmsg": _check_address,
    "socket.getaddrinfo": _check_host,
    "socket.gethostbyname": _check_host,
    "socket.gethostbyaddr": _check_host,
    "socket.getnameinfo": _check_name,
}


def _guard(
    event: str,
    args: tuple[Any, ...],
    checks: dict[str, Callable[..., None]] = _CHECKS,  # bound, for globals vanish at exit
) -> None:
    check = checks.get(event)
    if check is not None:
        check(*args)


sys.addaudithook(_guard)


def _guard_the_http_client() -> None:
    """Check where calls go: sockets outside of Python raise no events."""
    request = HttpClient._request

    def guarded(client: HttpClient, call: HttpCall) -> Any:  # noqa: ANN401 - wreq's own
        if "proxies" not in client._endpoint._settings:
            _require_loopback(urlsplit(client.address).hostname)
        return request(client, call)

    HttpClient._request = guarded  # type: ignore[method-assign]


_guard_the_http_client()


def pytest_configure(config: pytest.Config) -> None:
    """Prepare what outlives a single test, and have it removed at the end."""
    if not hasattr(config, "workerinput"):
        _have_a_folder_for_temporary_files(config)
    _keep_hypothesis_out_of_the_tree()
    _close_the_proxy(config)


def _have_a_folder_for_temporary_files(config: pytest.Config) -> None:
    if "TMPDIR" not in os.environ and _is_roomy(_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)
    # Of this run alone: two runs side by side would otherwise clear away each other's folders.
    root = tempfile.TemporaryDirectory(prefix="jurybox-tests-")
    config.add_cleanup(root.cleanup)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = root.name


def _is_roomy(folder: Path) -> bool:
    """Say whether tests can do all that they do in a folder, even run programs from it."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    runs_programs = not os.statvfs(folder).f_flag & os.ST_NOEXEC
    return runs_programs and shutil.disk_usage(folder).free > _ENOUGH


def _keep_hypothesis_out_of_the_tree() -> None:
    # Even without a database it stores tables of characters, and what it found in our sources;
    # to make them takes ten seconds a worker, which are the same ones in every run.
    set_hypothesis_home_dir(Path(__file__).parents[1] / ".cache" / "hypothesis")


def _close_the_proxy(config: pytest.Config) -> None:
    """Lead child processes, and clients that are not Python, to a proxy that refuses them."""
    # Bound but never listening: refused for certain, and no other program can take the port.
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    config.add_cleanup(closed.close)
    proxy = f"http://127.0.0.1:{closed.getsockname()[1]}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        os.environ[name] = os.environ[name.lower()] = proxy
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "localhost,127.0.0.1,::1"


# Tests that share a cluster, a browser, a database server or libraries that take long to load, in
# the order in which they begin: what takes longest is first, so that no worker is left with it at
# the end.
_TOGETHER = (
    "tests/faults/test_ray.py",
    "tests/browser/",
    "tests/contract/",
    "tests/unit/statistics/",
)
_LATER = ("tests/docs/", "tests/faults/", "tests/spec/", "tests/cli/")


class _ByModule(LoadScopeScheduling):
    """Give each worker whole modules, whose fixtures are then made once."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return next((each for each in _TOGETHER if module.startswith(each)), module)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByModule:  # noqa: ANN401
    """Have tests handed out by modules."""
    return _ByModule(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what takes long begin first; the rest stays in the order that was drawn."""
    places = (*_TOGETHER, *_LATER)
    items.sort(
        key=lambda item: next(
            (at for at, each in enumerate(places) if item.nodeid.startswith(each)), len(places)
        )
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the tests: they stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: many tests wait, for a process or for a time-out."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture
def jurybox(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run the command in this process, and leave the process as it was."""
    return partial(call, monkeypatch)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let failed calls be made again after a moment, however often they have failed."""

    def quick(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as it is
        limits = read_limits(*arguments, **named)
        return msgspec.structs.replace(limits, first_delay=0.01, longest_delay=0.02)

    monkeypatch.setattr("jurybox.app.model_session.read_limits", quick)


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in its own empty directory, at home nowhere, with nobody's keys."""
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in [name for name in os.environ if name.startswith(_PRIVATE)]:
        monkeypatch.delenv(name)
    # The pytest plugin replays where it is set, and the tests have to do the same everywhere.
    monkeypatch.delenv("CI", raising=False)
    # An endpoint that fails on purpose isn't waited for as long as a real one.
    monkeypatch.setenv("JURYBOX_PATIENCE", "5")
    # A pytest that a test starts needs no others of the plugins here, which take a second to load.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin,jurybox.pytest_plugin")
    for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "runtime"))
