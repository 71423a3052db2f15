"""The command as users start it, a process of its own."""

import os
import pty
import subprocess
from collections.abc import Callable

import pytest

from commands import JURYBOX, Done

Jurybox = Callable[..., Done]


@pytest.fixture
def started() -> Jurybox:
    """Run the command as a process."""

    def run(*arguments: str | bytes, stdin: bytes = b"", **environment: str) -> Done:
        done = subprocess.run(
            [JURYBOX, *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            env={**os.environ, **environment},
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def on_terminal() -> Callable[..., str]:
    """Run the command with a terminal in front of it and return what it shows."""

    def run(*arguments: str, **environment: str) -> str:
        master, slave = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment}
        with subprocess.Popen([JURYBOX, *arguments], stdout=slave, stderr=slave, env=env):
            os.close(slave)
            shown = b""
            while chunk := _read(master):
                shown += chunk
        os.close(master)
        return shown.decode()

    return run


@pytest.fixture
def redirected() -> Jurybox:
    """Run the command with the redirections of a shell, such as ``>&-``; they come first."""

    def run(redirections: str, *arguments: str) -> Done:
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$@" {redirections}', "sh", JURYBOX, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux reports the other end's closing as an error
        return b""
