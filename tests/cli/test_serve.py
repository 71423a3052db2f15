"""``jurybox serve``: a process that answers until it is told to end."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from commands import JURYBOX
from jurybox.cli.options import at_store, name_store
from jurybox.storage import open_store


@pytest.fixture(autouse=True)
def _store() -> None:
    open_store("runs.db").close()


@contextlib.contextmanager
def served(*arguments: str, **more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command, and give its process and its first line."""
    with subprocess.Popen(
        [JURYBOX, "serve", "--port", "0", "--store", "runs.db", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **more},
    ) as process:
        assert process.stderr is not None
        try:
            yield process, process.stderr.readline()
        finally:
            process.kill()


def address(line: str) -> str:
    found = re.fullmatch(r"(http://\S+/) shows the runs of runs\.db; Ctrl-C ends it\n", line)
    assert found is not None, line
    return found[1]


def opened(url: str, token: str) -> Any:  # noqa: ANN401 - a reply
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    return urllib.request.urlopen(asked)  # noqa: S310 - our own address


def test_it_says_where_it_is_but_not_the_token_that_is_set_and_ctrl_c_ends_it() -> None:
    token = "a token of one's own"  # noqa: S105 - of tests
    with served(JURYBOX_TOKEN=token) as (process, line):
        url = address(line)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}api/runs")  # noqa: S310
        with opened(url, token) as reply:
            page = reply.read()
            assert b"The store has no runs" in page
            assert b"<code data-copy>jurybox run suite.yaml --store runs.db</code>" in page
            assert reply.headers["Server"] is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    ("store", "end"),
    [
        (".jurybox/jurybox.db", ""),
        ("our runs.db", " --store 'our runs.db'"),
        ("postgresql://db/runs", " --store postgresql://db/runs"),
        ("postgresql://me:secret@db/runs", ' --store "$JURYBOX_STORE"'),
        ("postgresql://db/runs?password=secret", ' --store "$JURYBOX_STORE"'),
    ],
)
def test_commands_on_pages_name_its_store_without_a_password(store: str, end: str) -> None:
    with click.Context(click.Command("serve")) as context:
        name_store(context, None, store)
        assert at_store() == end


def test_another_address_asks_for_a_token_that_is_printed_once() -> None:
    with served("--host", "0.0.0.0") as (process, line):  # noqa: S104 - it is what is tested
        url = address(line).replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        assert process.stderr is not None
        token = process.stderr.readline().removeprefix("token  ").strip()
        assert len(token) > 40
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}api/runs")  # noqa: S310
        with opened(f"{url}api/runs", token) as reply:
            assert reply.status == 200
        process.terminate()
        assert (process.communicate(), process.returncode) == (("", ""), 0)


def test_what_can_not_be_served_is_one_line(jurybox: Callable) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = jurybox("serve", "--port", port, "--store", "runs.db")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"127.0.0.1:{port}: another program uses it; choose another, or port 0 for a free one\n"
    )
    done = jurybox("serve", "--port", "0", "--store", "none.db")
    assert (done.code, done.err.count("\n")) == (2, 1)
    done = jurybox("serve", "--port", "0", "--store", "runs.db", JURYBOX_TOKEN="short")  # noqa: S106 - too short to be one
    assert (done.code, done.out) == (2, "")
    assert done.err == "JURYBOX_TOKEN: it has fewer than 16 characters; choose a longer one\n"


def test_without_the_extra_it_says_how_to_install_it(started: Callable) -> None:
    hidden = Path("hidden")
    hidden.mkdir()
    # A module that is None can't be imported, and isn't found either.
    code = "import sys; sys.modules['fastapi'] = None\n"
    (hidden / "sitecustomize.py").write_text(code)
    paths = [str(hidden.absolute()), os.environ.get("PYTHONPATH", "")]
    done = started("serve", PYTHONPATH=os.pathsep.join(filter(None, paths)))
    assert (done.code, done.out) == (2, "")
    assert done.err == ("fastapi is not installed; install it with: pip install 'jurybox[web]'\n")


def test_no_other_command_pays_for_it() -> None:
    code = "import sys, jurybox.cli.app, jurybox.cli.serve; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"starlette", "fastapi", "hypercorn", "jinja2"} & set(done.stdout.split()) == set()
