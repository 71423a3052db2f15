"""Processes of the command that are at work at once: forks of one that has loaded all it needs.

They are killed by the dozen, and to load the program takes longer than what is done with it.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

# One process at a time: it is announced, waited for, and its end told.
_PROGRAM = """
import asyncio, importlib, json, os, pkgutil, sqlite3, ssl, sys
import jurybox
from jurybox.cli import main
for room in sys.argv[1:]:
    package = importlib.import_module(room)
    for found in pkgutil.iter_modules(package.__path__, room + "."):
        importlib.import_module(found.name)
for line in sys.stdin:
    arguments, environment, out, err = json.loads(line)
    child = os.fork()
    if child == 0:
        os.environ.clear()
        os.environ.update(environment)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = ["jurybox", *arguments]
        sys.exit(main())
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_ROOMS = (
    "jurybox.cli", "jurybox.datasets", "jurybox.judging",
    "jurybox.judging.formats", "jurybox.models", "jurybox.reporting",
    "jurybox.rubric", "jurybox.rubric.document", "jurybox.engine", "jurybox.scoring",
    "jurybox.scoring.rules", "jurybox.storage", "jurybox.suite",
)  # fmt: skip


class Ready:
    """The loaded process, and the latest of its forks."""

    def __init__(self, process: "subprocess.Popen[str]", place: Path) -> None:
        self._process = process
        self._out, self._err = place / "out", place / "err"
        self._pid = 0
        self.code: int | None = None

    def start(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        """Start a command in the current folder; there must be none under way."""
        assert self._process.stdin is not None
        task = [arguments, dict(environment), str(self._out), str(self._err)]
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        self.code, self._pid = None, self._number()

    def is_running(self) -> bool:
        if self.code is None and select.select([self._process.stdout], [], [], 0)[0]:
            self.code = self._number()
        return self.code is None

    def kill(self) -> int:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        if self.code is None:
            self.code = self._number()
        return self.code

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@contextmanager
def ready(place: Path) -> Iterator[Ready]:
    """Load the program in a process that works in a folder, and end it at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *_ROOMS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=1,
        text=True,
        cwd=place,
    ) as process:
        running = Ready(process, place)
        try:
            yield running
        finally:
            if running.code is None:
                process.kill()
            assert process.stdin is not None
            process.stdin.close()
