"""The folder of models: what is there, and whether it is what it says."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from jurybox.errors import InputError
from jurybox.models.local import files
from jurybox.models.local.files import (
    CatalogModel,
    checked,
    find_model,
    installed,
    locate,
    locked,
    partial_of,
    path_of,
    remove,
)

TINY = b"the bytes of a model" * 10


def entry_of(data: bytes, name: str = "tiny") -> CatalogModel:
    return CatalogModel(
        name=name,
        file=f"{name}.gguf",
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        license="MIT",
        good_for="tests",
        judge=False,
    )


ENTRY = entry_of(TINY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "models"
    place.mkdir()
    return place


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> CatalogModel:
    """A catalog of one small model."""
    monkeypatch.setattr(files, "catalog", lambda: (ENTRY,))
    monkeypatch.setattr(files, "find_model", lambda _: ENTRY)
    return ENTRY


OWN = b"GGUF, a file of the user's own"


def counted_hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    hashed: list[str] = []
    really = hashlib.file_digest

    def count(file: object, kind: str) -> object:
        hashed.append(file.name)  # type: ignore[attr-defined]
        return really(file, kind)  # type: ignore[type-var]

    monkeypatch.setattr(hashlib, "file_digest", count)
    return hashed


def test_a_model_of_another_size_is_damaged(folder: Path, known: CatalogModel) -> None:
    path_of(known, folder).write_bytes(TINY[:-1])
    with pytest.raises(InputError, match="damaged: 199 bytes instead of 200; run `jurybox model"):
        locate("tiny", folder)


def test_one_wrong_bit_is_found(folder: Path, known: CatalogModel) -> None:
    path_of(known, folder).write_bytes(bytes([TINY[0] ^ 1]) + TINY[1:])
    with pytest.raises(InputError, match=r"damaged: its SHA-256.*run `jurybox model pull tiny`"):
        locate("tiny", folder)
    # Also when the hash of the damaged file is known already.
    with pytest.raises(InputError, match="damaged: its SHA-256"):
        locate("tiny", folder)
    assert [kept.state for kept in installed(folder)] == ["damaged"]


def test_a_file_is_hashed_once_as_long_as_it_stays_the_same(
    folder: Path, known: CatalogModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = path_of(known, folder)
    path.write_bytes(TINY)
    hashed = counted_hashes(monkeypatch)
    for _ in range(3):
        checked(path, known, folder)
    assert len(hashed) == 1
    # The same bytes written anew might have been others.
    time.sleep(0.02)
    path.write_bytes(TINY)
    checked(path, known, folder)
    assert len(hashed) == 2


def test_a_change_that_keeps_size_and_time_is_found(folder: Path, known: CatalogModel) -> None:
    path = path_of(known, folder)
    path.write_bytes(TINY)
    checked(path, known, folder)
    before = path.stat()
    time.sleep(0.02)
    path.write_bytes(TINY[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InputError, match="SHA-256"):
        checked(path, known, folder)


def test_a_file_of_ones_own_is_noted_in_our_folder_and_never_beside_it(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "x.gguf").write_bytes(OWN)
    hashed = counted_hashes(monkeypatch)
    digest = hashlib.sha256(OWN).hexdigest()
    # The same file however it is named.
    for name, start in (("x.gguf", own), ("own/x.gguf", None), (str(own / "x.gguf"), None)):
        found = locate(name, folder, start)
        assert (found.sha256, found.entry) == (digest, None)
        assert found.path.samefile(own / "x.gguf")
    assert len(hashed) == 1
    assert [path.name for path in own.iterdir()] == ["x.gguf"]


def test_a_file_of_ones_own_that_is_no_model_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"y.gguf: there is no such file; check the path"):
        locate("y.gguf", folder)


def test_the_file_name_of_a_known_model_is_answered_with_its_name(folder: Path) -> None:
    name = find_model("smollm2-135m").name
    with pytest.raises(InputError, match=f"write `local/{name}` for the pulled model"):
        locate(f"{name}.gguf", folder)


def test_a_model_that_is_being_pulled_is_not_removed(folder: Path) -> None:
    partial = partial_of(ENTRY, folder)
    partial.write_bytes(b"12345")
    with (
        locked(ENTRY, folder),
        pytest.raises(InputError, match="is being pulled by another process"),
    ):
        remove(ENTRY, folder)
    assert partial.read_bytes() == b"12345"
