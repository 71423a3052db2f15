"""What can befall a PostgreSQL and not a file: each time one clear line, and nothing half-done."""

import logging
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from msgspec.structs import astuple

from jurybox.engine.records import ReviewRow, RunRow, SampleRow
from jurybox.errors import IncompleteError, InputError
from jurybox.storage import open_store
from jurybox.storage.database import Found, Values
from jurybox.storage.postgres import PostgresSession
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.schema import insert
from jurybox.storage.store import _INSERT_FRAME as INSERT_FRAME
from jurybox.storage.store import Store
from stores import PostgresServer, exchange_row, review_row, run_row, sample_row

PASSWORD = "geheim-0123456789"  # noqa: S105 - of nobody
DISK_FULL = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '{state}'; END $$;
CREATE TRIGGER fail BEFORE INSERT ON exchanges EXECUTE FUNCTION fail();
"""


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.fresh_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url, patience=0.2)
    assert isinstance(opened, Store)
    opened.create_run(run_row())
    yield opened
    opened.close()


def schema(url: str) -> str:
    return url.rpartition("%3D")[2]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("53100", "the disk is full; free disk space, then continue with `jurybox resume`"),
        ("53200", r"it can't be reached \(could not extend file"),
        ("57P01", r"it can't be reached \(could not extend file"),
        ("42501", r"the server refuses it \(could not extend file"),
        ("25006", r"it can't be written \(could not extend file"),
        ("XX001", r"it is damaged \(could not extend file"),
        ("57014", r"it failed \(could not extend file"),
        ("40001", r"it failed \(could not extend file"),
    ],
)
def test_what_the_server_reports_is_said_and_nothing_is_half_written(
    url: str, postgres: PostgresServer, store: Store, state: str, said: str
) -> None:
    with postgres.connect() as connection:
        connection.execute(f"SET search_path = {schema(url)};" + DISK_FULL.format(state=state))
    with pytest.raises(IncompleteError, match=said):
        store.append([sample_row(0)], [exchange_row(0)])
    assert list(store.numbers("run-1")) == []
    store.append([sample_row(0)], [])
    assert list(store.numbers("run-1")) == [0]


def test_a_table_that_is_locked_for_too_long(
    url: str, postgres: PostgresServer, store: Store
) -> None:
    with postgres.connect() as other, other.transaction():
        other.execute(f"LOCK TABLE {schema(url)}.samples")
        with pytest.raises(IncompleteError, match=r"locked by another process for more than 0\.2"):
            store.append([sample_row(0)], [])
    store.append([sample_row(0)], [])


def test_connections_that_the_server_dropped_are_made_anew(
    postgres: PostgresServer, store: Store
) -> None:
    drop = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = 'jurybox' AND backend_type = 'client backend'"
    )
    with store.claim("run-1") as held, postgres.connect() as other:
        assert held
        other.execute(drop)
        store.append([sample_row(0)], [])
    with store.claim("run-1") as held:
        assert held
    assert list(store.numbers("run-1")) == [0]


def test_a_missing_table_is_damage(url: str, postgres: PostgresServer, store: Store) -> None:
    with postgres.connect() as connection:
        connection.execute(f"DROP TABLE {schema(url)}.exchanges")
    with pytest.raises(IncompleteError, match=r"it is damaged \(relation \"exchanges\" does not"):
        store.append([sample_row(0)], [exchange_row(0)])


def test_a_database_that_may_only_be_read(postgres: PostgresServer, url: str) -> None:
    name = schema(url)
    reader = postgres.url(options=f"-csearch_path={name} -cdefault_transaction_read_only=on")
    with pytest.raises(IncompleteError, match=r"it can't be written \(cannot execute CREATE"):
        open_store(reader)
    writer = open_store(url)
    writer.create_run(run_row())
    writer.close()
    store = open_store(reader, create=False)
    assert store.runs() == [run_row()]
    with pytest.raises(IncompleteError, match="it can't be written"):
        store.append([sample_row(0)], [])
    store.close()


def test_tables_of_another_program_are_left_alone(postgres: PostgresServer, url: str) -> None:
    name = schema(url)
    with postgres.connect() as connection:
        connection.execute(f"CREATE TABLE {name}.accounts (id int)")
        open_store(url).close()  # it is in nobody's way
        connection.execute(f"CREATE SCHEMA {name}_b; CREATE TABLE {name}_b.runs (id int)")
        with pytest.raises(InputError, match="has a table `runs` of another program"):
            open_store(url + "_b")
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        assert connection.execute(query, [f"{name}_b"]).fetchall() == [("runs",)]


def test_an_encoding_that_cannot_hold_every_text_is_refused(postgres: PostgresServer) -> None:
    with postgres.connect() as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(InputError, match="its encoding is LATIN1; give jurybox a database with"):
        open_store(postgres.url(database="latin"))


def test_a_database_that_is_not_there(postgres: PostgresServer) -> None:
    with pytest.raises(IncompleteError, match=r"can't be reached .*nowhere\W does not exist"):
        open_store(postgres.url(database="nowhere"))


def test_a_server_that_is_not_there(postgres: PostgresServer) -> None:
    missing = postgres.url().replace("host=", "port=1&host=")
    with pytest.raises(IncompleteError, match=r"it can't be reached \(.*\); check the address"):
        open_store(missing)


def test_a_password_is_in_no_message_no_exception_and_no_log(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with postgres.connect() as connection:
        connection.execute(
            "CREATE ROLE locked LOGIN PASSWORD 'another'; "
            f"CREATE ROLE opened LOGIN PASSWORD '{PASSWORD}'; "
            "CREATE SCHEMA opened AUTHORIZATION opened"
        )
    refused = postgres.url(user=f"locked:{PASSWORD}")
    with pytest.raises(IncompleteError, match="password authentication failed") as caught:
        open_store(refused)
    let_in = postgres.url(user="opened", password=PASSWORD)
    store = open_store(let_in)
    assert isinstance(store, Store)
    seen = [*_shown(caught.value), repr(store), repr(vars(store)), repr(store._database)]
    seen.append(repr(vars(store._database._pool)))
    store.create_run(run_row())
    with pytest.raises(IncompleteError) as twice:
        store.create_run(run_row())
    store.close()
    assert PASSWORD not in "\n".join([*seen, *_shown(twice.value), caplog.text])


def _shown(error: BaseException) -> list[str]:
    seen = [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)]
    behind = error.__context__
    while behind is not None:
        seen += [str(behind), repr(behind)]
        behind = behind.__context__
    return seen


def test_a_claim_waits_for_nobody(store: Store) -> None:
    ended = threading.Event()
    with store.claim("run-1"):

        def ask() -> None:
            with store.claim("run-1") as held:
                assert not held
            ended.set()

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(10)
        assert ended.is_set()


def test_a_server_that_comes_back_is_given_what_it_missed(
    postgres: PostgresServer, url: str
) -> None:
    store = open_store(url, patience=20)
    store.create_run(run_row())
    store.append([sample_row(0)], [exchange_row(0)])
    postgres.crash()
    waiting = threading.Thread(target=store.append, args=([sample_row(1)], [exchange_row(1)]))
    waiting.start()
    postgres.start()
    waiting.join(20)
    assert list(store.numbers("run-1")) == [0, 1]
    store.close()


@pytest.mark.parametrize("samples", [[sample_row(0)], []])
def test_what_a_lost_server_had_committed_is_not_stored_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch, samples: list[SampleRow]
) -> None:
    transaction = psycopg.Connection.transaction
    lost: list[int] = []

    @contextmanager
    def commit_and_lose(connection: psycopg.Connection) -> Iterator[None]:
        with transaction(connection):
            yield
        if not lost:
            lost.append(1)
            connection.close()
            raise psycopg.OperationalError("the connection is closed")

    monkeypatch.setattr(psycopg.Connection, "transaction", commit_and_lose)
    store.append(samples, [exchange_row(0)])
    assert lost == [1]
    assert list(store.exchanges("run-1")) == [exchange_row(0)]


# The queries of the pages: each finds its rows by an index, also in a store of many runs.
PAGES = {
    "the runs": lambda store: store.runs(50),
    "samples by number": lambda store: store.find_samples("run-7", SampleQuery()),
    "samples to review": lambda store: store.find_samples("run-7", SampleQuery(queued=True)),
    "groups": lambda store: store.groups("run-7"),
    "groups to review": lambda store: store.groups("run-7", SampleQuery(queued=True)),
    "a sample": lambda store: store.sample("run-7", 3),
    "a sample by its id": lambda store: store.find_sample("run-7", "s3"),
    "its exchanges": lambda store: store.exchanges_of("run-7", 3),
    "its reviews": lambda store: store.reviews_of("run-7", 3),
    "some samples": lambda store: store.samples_of("run-7", [3, 5]),
    "their reviews": lambda store: store.reviews_of("run-7", 3, 5),
    "how many to review": lambda store: store.find_samples(
        "run-7", SampleQuery(queued=True, limit=0)
    ),
    "the queue": lambda store: store.queued_numbers("run-7"),
    "all reviews": lambda store: store.reviews("run-7"),
    "results": lambda store: [*store.results("run-7", range(100, 200))],
}


@pytest.fixture(scope="module")
def large(postgres: PostgresServer) -> Iterator[Store]:
    opened = open_store(postgres.fresh_url())
    assert isinstance(opened, Store)
    for run in range(15):
        name = f"run-{run}"
        opened.create_run(run_row(name))
        opened.append(
            [sample_row(n, name) for n in range(400)],
            [exchange_row(n, run_id=name) for n in range(400)],
        )
    with opened._database.lend() as session:
        for number in range(15, 2000):
            session.execute(insert(RunRow), astuple(run_row(f"run-{number}")))
        for number in range(2000):
            name = f"run-{number}"
            session.execute(INSERT_FRAME, (name, "0" * 64, "text"))
            review = review_row(f"review-{number}", run_id=name, number=number % 400)
            session.execute(insert(ReviewRow), astuple(review))
        session.execute("ANALYZE")
    yield opened
    opened.close()


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_find_their_rows_by_an_index(
    large: Store, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    plans: list[str] = []
    ask = PostgresSession.rows

    def explained(session: PostgresSession, statement: str, values: Values = ()) -> Found:
        plans.extend(str(line) for (line,) in ask(session, f"EXPLAIN {statement}", values))
        return ask(session, statement, values)

    monkeypatch.setattr(PostgresSession, "rows", explained)
    PAGES[page](large)
    assert any("Index" in line for line in plans), plans
    assert not [line for line in plans if "Seq Scan" in line], plans
