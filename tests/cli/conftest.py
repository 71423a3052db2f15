"""The command as users start it, a process of its own."""

import os
import pty
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which stores of a module's first tests are kept for the others."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def once(kept: Path, tmp_path: Path) -> Callable[..., None]:
    """Return what makes the store of the current folder, or copies it where it was made before."""

    def once(make: Callable[[], None], name: str = "store") -> None:
        store = tmp_path / ".jurybox"
        if (kept / name).exists():
            shutil.copytree(kept / name, store)
        else:
            make()
            shutil.copytree(store, kept / name)

    return once


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
