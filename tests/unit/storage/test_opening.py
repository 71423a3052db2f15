"""Addresses of stores: what each form means, what is refused, and that no password is repeated."""

import logging
import os
import sys
import traceback
from pathlib import Path

import pytest

from jurybox.errors import InputError, JuryboxError
from jurybox.storage import open_store

PASSWORD = "geheim-0123456789"  # noqa: S105 - of nobody


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("store.db", "store.db"),
        (".jurybox/jurybox.db", ".jurybox/jurybox.db"),
        ("a/b/c.db", "a/b/c.db"),
        ("sqlite:///store.db", "store.db"),
        ("sqlite:///a/store.db", "a/store.db"),
        ("SQLite:///store.db", "store.db"),
        ("~/store.db", "home/store.db"),
        ("~nobody-of-that-name", "~nobody-of-that-name"),
        ("what? 100% #1 \u00e9.db", "what? 100% #1 \u00e9.db"),
        ("sqlite:///100%25.db", "100%25.db"),
        ("run:1.db", "run:1.db"),
        ("file:x.db", "file:x.db"),
        ("./:memory:", ":memory:"),
    ],
)
def test_a_path_is_an_sqlite_file_and_its_folders_are_made(url: str, file: str) -> None:
    open_store(url).close()
    made = [str(path.relative_to(Path.cwd())) for path in Path.cwd().rglob("*") if path.is_file()]
    assert made == [file]


def test_an_absolute_path_has_four_slashes_in_a_url(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/store.db").close()
    assert (tmp_path / "store.db").is_file()


def test_a_store_stays_where_it_is_when_the_working_directory_changes(tmp_path: Path) -> None:
    store = open_store("store.db")
    (tmp_path / "elsewhere").mkdir()
    os.chdir("elsewhere")
    assert store.runs() == []
    with store.claim("run"):
        assert list(Path().iterdir()) == []
    store.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "a store needs a file; give the path of a file, sqlite:///PATH or postgresql://..."),
        (":memory:", "a store needs a file; give the path of a file"),
        ("a\0b", "a store needs a file"),
        ("sqlite://", "that isn't the address of an SQLite file; write sqlite:///PATH"),
        ("sqlite:///", "a store needs a file"),
        ("sqlite:///:memory:", "a store needs a file"),
        ("sqlite://host/store.db", "that isn't the address of an SQLite file"),
        ("sqlite:store.db", "that isn't the address of an SQLite file"),
        ("sqlite:///store.db?mode=memory", "that isn't the address of an SQLite file"),
        ("mysql://host/db", "`mysql:` doesn't begin the address of a store; give the path"),
        ("sqlite+pysqlite:///x.db", "`sqlite+pysqlite:` doesn't begin the address of a store"),
        ("postgresql:db", "`postgresql:` doesn't begin the address of a store"),
        ("https://example.org/x.db", "`https:` doesn't begin the address of a store"),
    ],
)
def test_what_is_no_address_is_refused_and_nothing_is_made(url: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert str(caught.value).startswith(message)
    assert list(Path.cwd().iterdir()) == []


def test_a_command_that_only_reads_makes_no_file_and_no_folder() -> None:
    with pytest.raises(InputError) as caught:
        open_store(".jurybox/jurybox.db", create=False)
    assert str(caught.value) == (
        "no store at .jurybox/jurybox.db; run a suite first (`jurybox init` writes one,"
        " `jurybox run suite.yaml` runs it), or name one with --store"
    )
    assert list(Path.cwd().iterdir()) == []


def test_a_file_name_that_is_no_text_is_shown_as_well_as_possible() -> None:
    with pytest.raises(InputError, match=r"no store at \ufffd\.db"):
        open_store("\udcff.db", create=False)
    open_store("\udcff.db").close()
    assert list(Path().iterdir()) == [Path("\udcff.db")]


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_without_a_driver_the_extra_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "jurybox.storage.postgres", raising=False)
    with pytest.raises(InputError) as caught:
        open_store(f"{scheme}://user:{PASSWORD}@host/db")
    assert str(caught.value) == (
        "PostgreSQL needs a driver that isn't installed; pip install 'jurybox[postgres]'"
    )


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{PASSWORD}@127.0.0.1:1/db",
        f"postgres://user:{PASSWORD}@127.0.0.1:1/db?connect_timeout=3",
        f"postgresql+psycopg://127.0.0.1:1/db?user=user&password={PASSWORD}",
        f"postgresql://127.0.0.1:1/{PASSWORD}?password={PASSWORD}",
        f"postgresql://user:{PASSWORD}@[::1/db",
        f"postgresql://user:{PASSWORD}%zz@127.0.0.1:1/db",
        f"postgresql://user:{PASSWORD}@127.0.0.1:1/db?nonsense=1",
        f"postgresql://user:{PASSWORD}@127.0.0.1:port/db",
        f"postgresql:/user:{PASSWORD}@127.0.0.1:1/db",
        f"mysql://user:{PASSWORD}@127.0.0.1:1/db",
        f"sqlite://user:{PASSWORD}@127.0.0.1:1/db",
    ],
)
def test_a_password_is_in_no_message_no_exception_and_no_log(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(JuryboxError) as caught:
        open_store(url)
    error: BaseException | None = caught.value
    seen = [caplog.text, *traceback.format_exception(caught.value)]
    while error is not None:
        seen += [str(error), repr(error), repr(vars(error))]
        error = error.__context__
    shown = "\n".join(seen)
    # The name of a database may be shown, whatever it is.
    assert PASSWORD not in shown.replace(f"postgresql://127.0.0.1:1/{PASSWORD}:", "")
