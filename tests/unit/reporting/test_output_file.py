"""A file is there as a whole or not at all."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from jurybox.errors import IncompleteError, InputError
from jurybox.reporting.output_file import whole_file, whole_folder


def test_the_file_gets_its_name_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    with whole_file(path) as file:
        file.write(b"one")
        assert not path.exists()
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def _write_half(file: BinaryIO, error: type[BaseException]) -> None:
    file.write(b"half")
    raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_is_broken_off_leaves_what_was_there(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"old")
    with pytest.raises(error), whole_file(path) as file:
        _write_half(file, error)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_replaced_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    goal, link = tmp_path / "goal.txt", tmp_path / "link.txt"
    goal.write_bytes(b"old")
    link.symlink_to(goal)
    with whole_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert goal.read_bytes() == b"new"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, *, there: bool) -> None:
    (tmp_path / "reports").mkdir()
    goal, link = tmp_path / "precious.txt", tmp_path / "reports" / "link.txt"
    link.symlink_to(goal)
    if there:
        goal.write_bytes(b"old")
    with pytest.raises(InputError, match=r"is a link to another folder; write to .* itself"):
        whole_file(link).__enter__()
    assert (goal.read_bytes() == b"old") if there else not goal.exists()


@pytest.mark.parametrize("absolute", [True, False])
def test_a_linked_folder_out_of_the_current_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, absolute: bool
) -> None:
    for name in ("here", "there", "here/own"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("out").symlink_to(tmp_path / "there")
    Path("deep").symlink_to(tmp_path)
    base = tmp_path / "here" if absolute else Path()
    for name in ("out/x.csv", "deep/there/x.csv", "out/../x.csv"):
        with pytest.raises(InputError, match=r"is a link to another folder; write to .* itself"):
            whole_file(base / name).__enter__()
        with pytest.raises(InputError, match=r"is a link to another folder; write to .* itself"):
            whole_folder(base / name).__enter__()
    assert [*(tmp_path / "there").iterdir()] == []
    for name in ("own/x.csv", "../there/x.csv", "x.csv"):
        with whole_file(base / name) as file:
            file.write(b"fine")
    # A link outside of the current folder is the machine's.
    (tmp_path / "linked").symlink_to(tmp_path / "there")
    with whole_file(tmp_path / "linked" / "y.csv") as file:
        file.write(b"fine")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(pipe) as file:
            file.write(b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_full_disk_is_work_that_could_not_be_completed() -> None:
    with pytest.raises(IncompleteError, match="no space left"), whole_file(Path("/dev/full")) as f:
        f.write(b"x")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (Path("missing/x.txt"), "the folder missing does not exist; make it first"),
        (Path(), "is a folder; name a file in it"),
        (Path("x\0y"), "can't be written"),
        (Path("n" * 300), "can't be written"),
        (Path("/proc/x.csv"), r"can't be written \(.+\); choose another place"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_named(path: Path, said: str) -> None:
    with pytest.raises(InputError, match=said), whole_file(path):
        pass


def test_a_long_name_of_wide_letters_has_room_for_its_draft(tmp_path: Path) -> None:
    path = tmp_path / ("\u6f22" * 80 + ".csv")
    with whole_file(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"
