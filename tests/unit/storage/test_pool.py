"""Connections: lent to one at a time, kept while they are good, and closed in the end."""

import pytest

from jurybox.storage.pool import Pool
from jurybox.storage.sqlite import SqliteDatabase


class Line:
    """A connection of which only its state matters."""

    def __init__(self) -> None:
        self.alive = self.clean = True
        self.closed = 0

    def is_alive(self, idle: float) -> bool:
        assert idle >= 0
        return self.alive

    def is_clean(self) -> bool:
        return self.clean

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def pool() -> Pool:
    return Pool(Line)


def test_the_last_one_given_back_is_lent_next(pool: Pool) -> None:
    with pool.lend() as first, pool.lend() as second:
        assert first is not second
    with pool.lend() as again:
        assert again is first
    assert first.closed == second.closed == 0


def test_one_that_is_amid_something_is_closed(pool: Pool) -> None:
    with pool.lend() as line:
        line.clean = False
    assert line.closed == 1
    with pool.lend() as another:
        assert another is not line


def test_an_error_of_the_block_is_no_reason_to_close_it(pool: Pool) -> None:
    with pytest.raises(ZeroDivisionError), pool.lend() as line:
        raise ZeroDivisionError
    with pool.lend() as again:
        assert again is line


def test_all_that_were_lost_meanwhile_are_closed(pool: Pool) -> None:
    with pool.lend() as first, pool.lend() as second, pool.lend() as third:
        pass
    first.alive = second.alive = False
    with pool.lend() as line:
        assert line is third
    assert (first.closed, second.closed, third.closed) == (1, 1, 0)


def test_only_some_are_kept(pool: Pool) -> None:
    lines = [pool.take() for _ in range(20)]
    for line in lines:
        pool.give_back(line)
    assert sum(line.closed for line in lines) == 15


def test_what_is_lent_while_it_is_closed_is_closed_when_it_comes_back(pool: Pool) -> None:
    with pool.lend() as kept:
        pass
    with pool.lend(), pool.lend() as lent:
        pool.close()
        assert lent.closed == 0
    assert lent.closed == 1
    assert kept.closed == 1
    with pool.lend() as anew:
        assert anew not in {kept, lent}
    pool.close()
    pool.close()
    assert anew.closed == 1


def test_an_open_transaction_of_a_file_is_never_lent_to_the_next() -> None:
    database = SqliteDatabase("store.db", create=True, patience=1)
    with database.pool.lend() as session:
        session.begin()
        session.execute("CREATE TABLE t (id)")
    with database.pool.lend() as session:
        assert database.table_names(session) == set()
    database.pool.close()
