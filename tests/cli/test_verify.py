"""``jurybox verify`` (A13), as a person meets it: one line, and an exit code."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

STORE = Path(".jurybox/jurybox.db")


@pytest.fixture
def digest(jurybox: Callable) -> str:
    jurybox("init")
    return jurybox("run", "suite.yaml", "--json").json["digest"]


def change(statement: str) -> None:
    store = sqlite3.connect(STORE)
    with store:
        assert store.execute(statement).rowcount == 1
    store.close()


def test_a_run_that_nobody_changed_is_verified(jurybox: Callable, digest: str) -> None:
    done = jurybox("verify", "last")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"verified: 6 samples, 6 exchanges, digest {digest}\n"
    data = jurybox("verify", "last", "--json")
    assert data.code == 0
    assert (data.json["verified"], data.json["digest"]) == (True, digest)
    assert (data.json["complete"], data.json["difference"]) == (True, None)


def test_a_changed_reply_is_named_and_exit_code_3(
    jurybox: Callable, started: Callable, digest: str
) -> None:
    change(
        "UPDATE exchanges SET outcome = replace(outcome, 'nothing;', 'nothing!') WHERE number = 4"
    )
    done = started("verify", "last")
    assert (done.code, done.out) == (3, "")
    assert "sample novel, repeat 0, exchange 0: the row was changed" in done.err
    assert done.err.count("\n") == 1
    data = jurybox("verify", "last", "--json")
    assert data.code == 3
    assert data.json["verified"] is False
    assert "sample novel" in data.json["difference"]["where"]
    assert len(digest) == 64


def test_a_damaged_store_is_one_line_and_exit_code_3(jurybox: Callable, digest: str) -> None:
    assert digest
    STORE.write_bytes(STORE.read_bytes()[:4096] + b"\xff" * 40_000)
    for wal in STORE.parent.glob("*-wal"):
        wal.unlink()
    done = jurybox("verify", "last")
    assert (done.code, done.out) == (3, "")
    assert done.err.count("\n") == 1
