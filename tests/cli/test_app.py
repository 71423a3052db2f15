"""Exit codes, errors and help of the command itself (section I of the specification)."""

import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable

import pytest

from commands import JURYBOX
from jurybox import __version__


def test_version(started: Callable) -> None:
    done = started("--version")
    assert (done.code, done.out, done.err) == (0, f"jurybox {__version__}\n", "")


def test_the_module_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jurybox", "rubric", "--help"], capture_output=True, check=True
    )
    assert b"Usage: jurybox rubric" in done.stdout


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("rubric",), ("rubric", "-h")])
def test_help_is_fine(jurybox: Callable, arguments: tuple[str, ...]) -> None:
    done = jurybox(*arguments)
    assert done.code == 0
    assert "Examples:" in done.out
    assert done.err == ""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["rubrik"], "jurybox: no command `rubrik`; did you mean `rubric`? (see `jurybox --help`)"),
        (["xyz"], "jurybox: no command `xyz` (see `jurybox --help`)"),
        (["rubric", "chek"], "jurybox rubric: no command `chek`; did you mean `check`?"),
        (["rubric", "check"], "jurybox rubric check: missing argument 'FILE...'"),
        (["rubric", "check", "--jsn", "x"], "jurybox rubric check: no such option '--jsn'"),
        (["rubric", "show"], "jurybox rubric show: missing argument 'NAME'"),
        (["rubric", "show", "a", "b"], "jurybox rubric show: got unexpected extra argument (b)"),
        (["rubric", "show", "a", "--json", "--canonical"], "jurybox rubric show: --canonical and"),
        (["rubric", "show", "generl"], "generl: no such rubric; did you mean `general`?"),
        (["rubric", "show", "qqqq"], "qqqq: no such rubric; see `jurybox rubric list`"),
        (["rubric", "show", "no/where"], "no/where: no such file; check the path"),
        (["rubric", "show", "./"], ".: is a folder; name the files in it"),
        (["rubric", "new", "Bad Name"], "`Bad Name` can't be a rubric's id; use lower-case"),
        (["--nope"], "jurybox: no such option '--nope'"),
        (["rubric", "show", "x" * 300], f"{'x' * 300}: no such rubric; see `jurybox rubric list`"),
        (
            ["rubric", "new", "general"],
            "general: this is the name of a bundled rubric; choose another name, and extend it:",
        ),
    ],
)
def test_bad_usage_and_bad_input_are_one_clear_line_and_exit_code_2(
    jurybox: Callable, arguments: list[str], line: str
) -> None:
    done = jurybox(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(line)
    assert done.err.count("\n") == 1


def test_an_unexpected_error_is_one_line_and_exit_code_3() -> None:
    program = (
        "import sys, jurybox.cli.app as a; a.app.invoke = lambda _: 1 / 0; sys.exit(a.run(['x']))"
    )
    outcomes = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "JURYBOX_TRACEBACK": setting},
        )
        for setting in ("", "1")
    ]
    quiet, loud = outcomes
    line = "jurybox: internal error, ZeroDivisionError: division by zero"
    assert quiet.stderr == f"{line} (JURYBOX_TRACEBACK=1 shows the traceback)\n"
    assert loud.stderr.startswith("Traceback")
    assert [done.returncode for done in outcomes] == [3, 3]


PRINTING = [
    ("--help",),
    ("rubric", "list"),
    ("rubric", "check", "general", "--json"),
    ("rubric", "show", "general"),
]


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_reader_that_goes_away_is_no_traceback(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([JURYBOX, *arguments], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("redirection", "line"),
    [
        (">&-", "jurybox: standard output is closed; open it or send it to a file\n"),
        (
            ">/dev/full",
            "jurybox: can't write (no space left on device); free disk space or check the device\n",
        ),
    ],
    ids=["closed", "full"],
)
@pytest.mark.parametrize("arguments", PRINTING[:2], ids=" ".join)
def test_output_that_can_not_be_written_is_one_line_and_exit_code_3(
    redirected: Callable, redirection: str, line: str, arguments: tuple[str, ...]
) -> None:
    done = redirected(redirection, *arguments)
    assert (done.code, done.out, done.err) == (3, "", line)


@pytest.mark.parametrize(
    ("redirections", "arguments", "code"),
    [
        (">&- 2>&-", ("rubric", "list"), 3),
        ("2>&-", ("rubric", "show", "nowhere"), 2),
        ("2>&-", ("nonsense",), 2),
        ("2>/dev/full", ("rubric", "show", "nowhere"), 2),
        (">/dev/full 2>/dev/full", ("rubric", "list"), 3),
        ("2>&-", ("--version",), 0),
    ],
)
def test_the_exit_code_is_right_also_where_nothing_can_be_said(
    redirected: Callable, redirections: str, arguments: tuple[str, ...], code: int
) -> None:
    assert redirected(redirections, *arguments).code == code


def bytes_waiting(pipe: int) -> int:
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def test_an_interrupt_is_one_line_and_exit_code_3() -> None:
    reader, writer = os.pipe()
    with subprocess.Popen(
        [JURYBOX, "rubric", "check", "-"],
        stdin=reader,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.write(writer, b"---")
        # Once it has taken what was written, the command waits for more.
        while bytes_waiting(reader):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    os.close(reader)
    os.close(writer)
    assert (process.returncode, out, err) == (3, b"", b"jurybox: interrupted\n")


@pytest.mark.parametrize(
    "arguments", [("rubric", "list"), ("rubric", "show", "general")], ids=" ".join
)
def test_without_colors_a_terminal_gets_plain_text(
    on_terminal: Callable, arguments: tuple[str, ...]
) -> None:
    shown = on_terminal(*arguments, NO_COLOR="1")
    assert shown.strip()
    assert "\x1b" not in shown
