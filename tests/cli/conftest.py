"""The command as users start it, a process of its own; or called in this one, which is quicker."""

import importlib
import io
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from jurybox.cli import main

JURYBOX = Path(sys.executable).parent / "jurybox"
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Done(msgspec.Struct, frozen=True):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        return msgspec.json.decode(self.out, type=dict[str, object])


Jurybox = Callable[..., Done]


@pytest.fixture
def jurybox(started: Jurybox) -> Jurybox:
    """Run the command as a process, unless a module says that calls in this one will do."""
    return started


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Jurybox:
    """Run the command in this process, and leave the process as it was."""

    def run(*arguments: str | bytes, stdin: bytes = b"", **environment: str) -> Done:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        handlers = {each: signal.getsignal(each) for each in _HEARD}
        modules = set(sys.modules)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", [str(JURYBOX), *map(os.fsdecode, arguments)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setattr(sys, "path", sys.path.copy())
            for name, value in environment.items():
                patch.setenv(name, value)
            # Another test may have left a module that is called like one of this test's folder.
            for file in Path.cwd().glob("*.py"):
                patch.delitem(sys.modules, file.stem, raising=False)
            importlib.invalidate_caches()
            try:
                main()
            except SystemExit as leaving:
                code = leaving.code
        assert handlers == {each: signal.getsignal(each) for each in _HEARD}
        _forget(set(sys.modules) - modules)
        assert isinstance(code, int)
        return Done(code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())

    return run


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


def _forget(modules: set[str]) -> None:
    """Forget the modules of a test's own folder: the next test has others of the same names."""
    for name in modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(Path.cwd()):
            del sys.modules[name]
    importlib.invalidate_caches()


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux reports the other end's closing as an error
        return b""
