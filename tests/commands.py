"""Commands called in this process, which is quicker than to start one and leaves it as it was."""

import importlib
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from jurybox.cli import main

JURYBOX = Path(sys.executable).parent / "jurybox"
_PATH = tuple(sys.path)
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Done(msgspec.Struct, frozen=True):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        return msgspec.json.decode(self.out, type=dict[str, object])


def call(
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str | bytes,
    stdin: bytes = b"",
    together: bool = False,
    **environment: str,
) -> Done:
    """Call the command with its arguments; together, what it says is in `out`, as on a screen."""
    out = _text(b"")
    err = out if together else _text(b"")
    handlers = {each: signal.getsignal(each) for each in _HEARD}
    with monkeypatch.context() as patch, _own_modules(patch):
        patch.setattr(sys, "argv", [str(JURYBOX), *map(os.fsdecode, arguments)])
        patch.setattr(sys, "stdin", _text(stdin))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
    assert handlers == {each: signal.getsignal(each) for each in _HEARD}
    assert isinstance(code, int)
    return Done(code, _read(out), "" if together else _read(err))


def run_program(text: str) -> None:
    """Run a program in this process, with the modules of the current folder."""
    with pytest.MonkeyPatch.context() as patch, _own_modules(patch):
        sys.path.insert(0, str(Path.cwd()))
        exec(compile(text, "program", "exec"), {"__name__": "__main__"})  # noqa: S102 - of a page


@contextmanager
def _own_modules(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the modules of a test's folder from those of others, which may have the same names."""
    modules = set(sys.modules)
    patch.setattr(sys, "path", list(_PATH))
    for file in Path.cwd().glob("*.py"):
        patch.delitem(sys.modules, file.stem, raising=False)
    importlib.invalidate_caches()
    yield
    _forget(set(sys.modules) - modules)


def _text(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")


def _read(file: io.TextIOWrapper) -> str:
    file.flush()
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue().decode()


def _forget(modules: set[str]) -> None:
    """Forget the modules of a test's own folder: the next test has others of the same names."""
    for name in modules:
        if any(Path(place).is_relative_to(Path.cwd()) for place in _places(sys.modules[name])):
            del sys.modules[name]
    importlib.invalidate_caches()


def _places(module: ModuleType) -> list[str]:
    """Return where a module is from; a folder without an `__init__` has no file."""
    file = getattr(module, "__file__", None)
    return list(getattr(module, "__path__", [])) if file is None else [file]


def run_in_shell(command: str, place: Path, stdin: str = "", **environment: str) -> tuple[str, int]:
    """Run a line of a page; return all it prints, and its exit code."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S602 - the commands are those of our own pages
        command,
        shell=True,
        cwd=place,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, **environment},
    )
    return done.stdout, done.returncode


def matches(expected: str, printed: str) -> bool:
    """Compare output with a page; `...` is any number of lines."""
    lines = [line.rstrip() for line in expected.rstrip().split("\n")]
    pattern = "\n".join("(?:.*\n)*?.*" if line == "..." else re.escape(line) for line in lines)
    trimmed = "\n".join(line.rstrip() for line in printed.rstrip().split("\n"))
    return re.fullmatch(pattern, trimmed) is not None
