"""``jurybox model serve``: a process that answers until it is told to end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import real_models

JURYBOX = Path(sys.executable).parent / "jurybox"
SMALL: str = real_models.SMALL
RUBRIC = """---
id: short
version: 1.0.0
scale: 0-1
generation: {max_tokens: 16}
reasks: 0
---
# Short
## Criteria
### Right
"""


@pytest.fixture
def path() -> str:
    """Return a file: a test has a home of its own, where no model was pulled."""
    return str(real_models.path_of(SMALL))


@contextlib.contextmanager
def served(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command, and give its process and its first line."""
    with subprocess.Popen(
        [JURYBOX, "model", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_line_is_the_address_and_a_signal_ends_it(
    path: str, number: signal.Signals
) -> None:
    with served(path, "--port", "0") as (process, line):
        url = line.strip()
        with urllib.request.urlopen(f"{url}/models") as reply:  # noqa: S310 - our own address
            (model,) = json.load(reply)["data"]
        assert model["id"] == SMALL
        process.send_signal(number)
        out, err = process.communicate()
        assert (process.returncode, out) == (0, "")
    assert err == (
        f"loading {SMALL}\n{SMALL} answers as `openai/{SMALL} --base-url {url}`; Ctrl-C ends it\n"
    )


@pytest.mark.judge_model  # takes a minute, on any model
def test_a_judge_over_http_is_a_real_one(path: str, jurybox: Callable) -> None:
    Path("short.md").write_text(RUBRIC)
    with served(path, "--port", "0", "--json") as (_, line):
        told = json.loads(line)
        assert told == {
            "url": f"http://127.0.0.1:{told['port']}/v1",
            "model": SMALL,
            "port": told["port"],
        }
        task = ["--rubric", "short.md", "--task", "2 + 2?", "--response", "4", "--votes", "1"]
        judge = ["--judge", f"openai/{SMALL}", "--base-url", told["url"]]
        done = jurybox("evaluate", *task, *judge, "--json")
    # What it says is another matter: it may not even end its sentence.
    assert done.code in {0, 1, 3}, done.err
    report = done.json
    assert report["usage"]["input_tokens"] > 0
    assert report["usage"]["output_tokens"] > 0


def test_a_busy_port_is_one_line(path: str, jurybox: Callable) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        done = jurybox("model", "serve", path, "--port", str(number))
    assert (done.code, done.out) == (2, "")
    assert (
        done.err == f"port {number}: another program uses it; choose another, or 0 for a free one\n"
    )


@pytest.mark.parametrize("name", [(), ("smollm2-135m",)], ids=["default", "named"])
def test_a_model_that_is_not_here_is_one_line(name: tuple[str, ...], jurybox: Callable) -> None:
    done = jurybox("model", "serve", *name)
    assert (done.code, done.out) == (2, "")
    assert "isn't on this machine; run `jurybox model pull " in done.err
    assert done.err.count("\n") == 1


def test_a_damaged_file_is_one_line(path: str, jurybox: Callable) -> None:
    Path("half.gguf").write_bytes(Path(path).read_bytes()[:1_000_000])
    done = jurybox("model", "serve", "half.gguf", "--port", "0")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
