"""Pulling models from sources that fail: interrupted, refused, wrong, or onto a full disk."""

import errno
import hashlib
import importlib.util
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from jurybox.errors import IncompleteError, InputError
from jurybox.models.local import download
from jurybox.models.local.download import pull
from jurybox.models.local.files import (
    CatalogModel,
    WheelPart,
    locked,
    partial_of,
)

DATA = random.Random(6).randbytes(300_000)  # noqa: S311 - bytes of a model, no secret
CUTS = (0, 120_000, 200_000, len(DATA))
PIECES = [DATA[begin:end] for begin, end in itertools.pairwise(CUTS)]
HUB = "org/tiny-gguf"
Source = str | tuple[WheelPart, ...]
# A whole machine may be busy with other tests.
PATIENCE = 120.0


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def part_of(number: int, data: bytes) -> WheelPart:
    return WheelPart(
        package=f"tiny-part{number}",
        version="1.0",
        member=f"tiny_part{number}/data/part.bin",
        bytes=len(data),
        sha256=sha256(data),
    )


WHEELS = tuple(part_of(number, data) for number, data in enumerate(PIECES, 1))


def entry_of(*sources: Source) -> CatalogModel:
    return CatalogModel(
        name="tiny",
        file="tiny.gguf",
        bytes=len(DATA),
        sha256=sha256(DATA),
        license="MIT",
        good_for="tests",
        judge=False,
        hub=next((each for each in sources if isinstance(each, str)), ""),
        wheels=next((each for each in sources if isinstance(each, tuple)), ()),
    )


def write_wheel(
    number: int, data: bytes | None = None, *, member: str = "data/part.bin", to: Path | None = None
) -> Path:
    """Write a wheel as pip wants one, with a piece of the model in it."""
    name = f"tiny_part{number}"
    path = (to or Path("links")) / f"{name}-1.0-py3-none-any.whl"
    path.parent.mkdir(exist_ok=True)
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('a wheel was imported')\n")
        archive.writestr(f"{name}/{member}", PIECES[number - 1] if data is None else data)
        metadata = f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n"
        archive.writestr(f"{info}/METADATA", metadata)
        tags = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", tags)
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(autouse=True)
def _pip_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    settings = {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": "links", "RETRIES": "0"}
    for name, value in settings.items():
        monkeypatch.setenv(f"PIP_{name}", value)


@pytest.fixture
def ready_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take wheels from the folder itself: a pip takes a second for each of them."""

    def found(part: WheelPart, _pip: object, _place: Path) -> Path:
        wheel = Path("links") / f"{part.package.replace('-', '_')}-{part.version}-py3-none-any.whl"
        if not wheel.exists():
            raise download._SourceError(part.package)
        return wheel

    monkeypatch.setattr(download, "_downloaded", found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


def pulled(folder: Path, *sources: Source) -> tuple[str | None, list[int]]:
    """Pull; return the source, and how many bytes were there at each report."""
    reports: list[int] = []
    found = pull(entry_of(*sources), folder, lambda done, _: reports.append(done))
    return found, reports


def assert_whole(folder: Path) -> None:
    """Check that the model is there, and nothing else is left but marks."""
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert (folder / "tiny.gguf").read_bytes() == DATA
    assert {name for name in files if not name.startswith(".checked/")} == {
        "tiny.gguf",
        ".pulling/tiny.lock",
    }


def put_partial(folder: Path, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    partial = partial_of(entry_of(), folder)
    partial.write_bytes(data)
    return partial


# From wheels


@pytest.mark.usefixtures("ready_wheels")
def test_the_pieces_of_the_wheels_make_the_model(folder: Path) -> None:
    for number in (1, 2, 3):
        write_wheel(number)
    assert pulled(folder, WHEELS) == ("the package index", list(CUTS))
    assert_whole(folder)
    assert pulled(folder, WHEELS) == (None, [])


@pytest.mark.usefixtures("ready_wheels")
def test_a_damaged_model_is_pulled_anew(folder: Path) -> None:
    for number in (1, 2, 3):
        write_wheel(number)
    folder.mkdir(parents=True)
    (folder / "tiny.gguf").write_bytes(DATA[:-1] + bytes([DATA[-1] ^ 1]))
    assert pulled(folder, WHEELS)[0] == "the package index"
    assert_whole(folder)


@pytest.mark.parametrize("there", [CUTS[1], CUTS[1] + 7, CUTS[2] - 1])
@pytest.mark.usefixtures("ready_wheels")
def test_an_interrupted_pull_continues_with_the_first_piece_that_is_missing(
    folder: Path, there: int
) -> None:
    put_partial(folder, DATA[:there])
    for number in (2, 3):
        write_wheel(number)
    assert pulled(folder, WHEELS) == ("the package index", list(CUTS[1:]))
    assert_whole(folder)


@pytest.mark.parametrize(
    "data", [PIECES[1][:-1], PIECES[1] + b"x", bytes(len(PIECES[1]))], ids=["less", "more", "other"]
)
@pytest.mark.usefixtures("ready_wheels")
def test_a_wheel_with_other_bytes_is_refused(folder: Path, data: bytes) -> None:
    write_wheel(1)
    write_wheel(2, data)
    with pytest.raises(IncompleteError, match=r"tiny-part2 1.0: the wheel has different contents"):
        pulled(folder, WHEELS)
    assert partial_of(entry_of(), folder).read_bytes() == PIECES[0]


def test_pip_reports_itself_what_it_can_not_find(folder: Path) -> None:
    # A file of this name in the current folder is not executed.
    Path("pip.py").write_text("raise SystemExit('this is not pip')")
    with pytest.raises(IncompleteError) as raised:
        pulled(folder, WHEELS)
    assert str(raised.value) == (
        "tiny can't be pulled: the package index: tiny-part1 1.0: No matching distribution found"
        " for tiny-part1==1.0; check the network and the settings of pip, then pull again"
    )


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("one\nERROR: the cause\nand advice\n", "the cause"),
        ("Looking in https://me:pass@word@host/simple\n", "Looking in https://***@host/simple"),
        ("", "pip downloaded no wheel"),
        ("x" * 300, "x" * 200 + "..."),
    ],
)
def test_one_line_of_what_pip_printed_is_shown_without_a_password(printed: str, shown: str) -> None:
    assert download._complaint(printed) == shown


def test_without_pip_uv_runs_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(IncompleteError, match="there is neither pip nor uv"):
        pulled(folder, WHEELS)
    uv = tmp_path / "uv"
    uv.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "tool run" ] && shift 2 && exec {sys.executable} -m "$@"\n'
    )
    uv.chmod(0o755)
    put_partial(folder, DATA[: CUTS[2]])
    write_wheel(3)
    pulled(folder, WHEELS)
    assert_whole(folder)


# From the hub


class FakeHub:
    """A hub on this machine; ``cut`` ends the first answer after so many bytes."""

    def __init__(self) -> None:
        self.data = DATA
        self.cut: int | None = None
        self.status = 200
        self.begins: list[int] = []

    def handler(self) -> type[BaseHTTPRequestHandler]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.head(hub.status, len(hub.data))

            def do_GET(self) -> None:
                asked = self.headers.get("Range", "bytes=0-")
                begin = int(asked.removeprefix("bytes=").partition("-")[0])
                hub.begins.append(begin)
                self.head(206 if begin else 200, len(hub.data) - begin)
                end = len(hub.data) if hub.cut is None else hub.cut
                hub.cut = None
                self.wfile.write(hub.data[begin:end])

            def head(self, status: int, length: int) -> None:
                self.send_response(status)
                for name, value in {
                    "ETag": f'"{sha256(hub.data)}"',
                    "X-Repo-Commit": "0" * 40,
                    "Content-Length": length,
                }.items():
                    self.send_header(name, str(value))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    from huggingface_hub import constants

    fake = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), fake.handler())
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10_000)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    yield fake
    server.shutdown()
    server.server_close()


def test_the_hub_is_asked_first(folder: Path, hub: FakeHub) -> None:
    assert pulled(folder, HUB, WHEELS) == ("the hub", [])
    # Once, and nothing else: no telemetry.
    assert hub.begins == [0]
    assert_whole(folder)


def test_a_connection_that_is_cut_is_resumed(folder: Path, hub: FakeHub) -> None:
    hub.cut = 50_000
    assert pulled(folder, HUB)[0] == "the hub"
    assert hub.begins == [0, 50_000]
    assert_whole(folder)


@pytest.mark.usefixtures("ready_wheels")
def test_other_bytes_of_the_hub_are_not_taken(folder: Path, hub: FakeHub) -> None:
    hub.data = DATA[::-1]
    for number in (1, 2, 3):
        write_wheel(number)
    assert pulled(folder, HUB, WHEELS)[0] == "the package index"
    assert_whole(folder)


@pytest.mark.usefixtures("ready_wheels")
def test_without_the_extra_the_hub_is_left_out_and_the_extra_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(IncompleteError, match=r"the hub: not tried, because `jurybox\[hub\]`"):
        pulled(folder, HUB, WHEELS)
    for number in (1, 2, 3):
        write_wheel(number)
    assert pulled(folder, HUB, WHEELS)[0] == "the package index"


# Interrupted, twice at once, without room


PROGRAM = """
import sys
from pathlib import Path
import msgspec
from jurybox.models.local.files import CatalogModel
from jurybox.models.local.download import pull

entry = msgspec.json.decode(sys.argv[1], type=CatalogModel)
print(pull(entry, Path(sys.argv[2]), lambda done, total: None))
"""


def started(folder: Path) -> "subprocess.Popen[str]":
    entry = msgspec.json.encode(entry_of(WHEELS)).decode()
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, entry, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_pull_that_is_killed_keeps_what_it_has(
    folder: Path, request: pytest.FixtureRequest
) -> None:
    write_wheel(1)
    # pip waits for what nobody writes.
    os.mkfifo("links/tiny_part2-1.0-py3-none-any.whl")
    process = started(folder)
    partial = partial_of(entry_of(), folder)
    ends = time.monotonic() + PATIENCE
    while not (partial.is_file() and partial.stat().st_size == CUTS[1]):
        assert time.monotonic() < ends
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    request.getfixturevalue("ready_wheels")
    Path("links/tiny_part2-1.0-py3-none-any.whl").unlink()
    for number in (2, 3):
        write_wheel(number)
    assert pulled(folder, WHEELS)[1] == list(CUTS[1:])
    assert_whole(folder)


def test_a_second_pull_waits_for_the_first(folder: Path) -> None:
    write_wheel(3)
    put_partial(folder, DATA[: CUTS[2]])
    with locked(entry_of(), folder):
        both = [started(folder), started(folder)]
        time.sleep(0.5)
        assert not (folder / "tiny.gguf").exists()
    outs = [process.communicate(timeout=PATIENCE)[0] for process in both]
    assert sorted(outs) == ["None\n", "the package index\n"]
    assert_whole(folder)


@pytest.mark.usefixtures("ready_wheels")
def test_a_disk_that_gets_full_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_wheel(1)
    monkeypatch.setattr(download, "_piece", full)
    with pytest.raises(InputError) as raised:
        pulled(folder, WHEELS)
    assert str(raised.value) == (
        f"{folder}: the model folder can't be written (no space left on device); fix that, or"
        " name another folder in JURYBOX_MODELS"
    )
