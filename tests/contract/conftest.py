"""Both kinds of stores, where tests can ask for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stores import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> "Iterator[PostgresServer]":
    from stores import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that isn't there yet."""
    if request.param == "sqlite":
        return str(tmp_path / "folder" / "store.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.fresh_url()
