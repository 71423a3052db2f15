"""The tables of a store, the rows that they hold, and the version of both.

The columns are those of the rows in `jurybox.engine.records` and of the facets in
`jurybox.scoring.sample_index`, but in the tables the long ones come last: SQLite reads a row from
its beginning, and a result or a hash is wanted more often than a whole request. So a statement
names its columns, in the order of the row's fields.
"""

from datetime import UTC, datetime
from typing import Final

from jurybox.engine.records import (
    AnyRow,
    BatchRow,
    CalibrationRow,
    ExchangeRow,
    OutboxRow,
    ReviewRow,
    RunRow,
    SampleRow,
)
from jurybox.errors import InputError
from jurybox.scoring.sample_index import Facets
from jurybox.storage.database import (
    Database,
    DatabaseSession,
    Fault,
    error_of,
    reading,
    writing,
)

VERSION: Final = 4
"""Of the tables below; a store of another version is refused."""

ROWS: Final[dict[str, type[AnyRow | Facets | OutboxRow]]] = {
    "runs": RunRow,
    "samples": SampleRow,
    "exchanges": ExchangeRow,
    "batches": BatchRow,
    "calibrations": CalibrationRow,
    "facets": Facets,
    "reviews": ReviewRow,
    "outbox": OutboxRow,
}
NAMES: Final = frozenset({*ROWS, "frames", "review_claims", "jurybox_schema"})

# In words that SQLite and PostgreSQL both understand. ``{text}`` stands for texts that are compared
# byte by byte, which each calls by another name; ``{clustered}`` keeps rows in the order of their
# key, where a database can, so that those of a run are read one after the other.
_TABLES: Final = (
    """
    CREATE TABLE jurybox_schema (
        version BIGINT NOT NULL PRIMARY KEY,
        created_at {text} NOT NULL
    )
    """,
    """
    CREATE TABLE runs (
        id {text} NOT NULL PRIMARY KEY,
        suite {text} NOT NULL,
        status {text} NOT NULL,
        created_at {text} NOT NULL,
        finished_at {text},
        plan {text} NOT NULL,
        metadata {text} NOT NULL,
        outcome {text},
        digest {text},
        seal {text} NOT NULL
    )
    """,
    "CREATE INDEX runs_by_age ON runs (created_at, id)",
    """
    CREATE TABLE samples (
        run_id {text} NOT NULL REFERENCES runs (id),
        number BIGINT NOT NULL,
        sample_id {text} NOT NULL,
        repeat BIGINT NOT NULL,
        record_sha256 {text} NOT NULL,
        seal {text} NOT NULL,
        result {text} NOT NULL,
        notes {text} NOT NULL,
        automated {text},
        report {text},
        inputs {text} NOT NULL,
        responses {text} NOT NULL,
        PRIMARY KEY (run_id, number),
        CONSTRAINT samples_once UNIQUE (run_id, sample_id, repeat)
    )
    """,
    """
    CREATE TABLE frames (
        run_id {text} NOT NULL REFERENCES runs (id),
        sha256 {text} NOT NULL,
        text {text} NOT NULL,
        PRIMARY KEY (run_id, sha256)
    )
    """,
    # The index of keys is made by who looks for one (see `Store.find_exchange`). Keys are
    # hashes, so each goes to another page of it: a quarter of what storing takes in a large store.
    """
    CREATE TABLE exchanges (
        run_id {text} NOT NULL REFERENCES runs (id),
        number BIGINT NOT NULL,
        position BIGINT NOT NULL,
        role {text} NOT NULL,
        key {text} NOT NULL,
        seal {text} NOT NULL,
        notes {text} NOT NULL,
        frame {text},
        material {text} NOT NULL,
        outcome {text} NOT NULL,
        PRIMARY KEY (run_id, number, position),
        FOREIGN KEY (run_id, frame) REFERENCES frames (run_id, sha256)
    )
    """,
    """
    CREATE TABLE batches (
        run_id {text} NOT NULL REFERENCES runs (id),
        number BIGINT NOT NULL,
        model {text} NOT NULL,
        endpoint {text} NOT NULL,
        state {text} NOT NULL,
        batch_id {text} NOT NULL,
        requests BIGINT NOT NULL,
        terms {text} NOT NULL,
        submitted_at {text} NOT NULL,
        seal {text} NOT NULL,
        PRIMARY KEY (run_id, number)
    )
    """,
    """
    CREATE TABLE calibrations (
        id {text} NOT NULL PRIMARY KEY,
        rubric_id {text} NOT NULL,
        created_at {text} NOT NULL,
        seal {text} NOT NULL,
        record {text} NOT NULL
    )
    """,
    "CREATE INDEX calibrations_by_rubric ON calibrations (rubric_id, created_at, id)",
    """
    CREATE TABLE facets (
        run_id {text} NOT NULL REFERENCES runs (id),
        number BIGINT NOT NULL,
        flags BIGINT NOT NULL,
        urgency BIGINT NOT NULL,
        repeat BIGINT NOT NULL,
        winner {text},
        sample_id {text} NOT NULL,
        scenario {text},
        demographic {text},
        metrics {text} NOT NULL,
        PRIMARY KEY (run_id, number)
    ) {clustered}
    """,
    # Flags are counted, and the review queue is found, without reading the rows.
    "CREATE INDEX facets_by_flags ON facets (run_id, flags, urgency)",
    # Most runs have neither, and take no room in these.
    "CREATE INDEX facets_by_scenario ON facets (run_id, scenario) WHERE scenario IS NOT NULL",
    """
    CREATE INDEX facets_by_demographic ON facets (run_id, demographic)
    WHERE demographic IS NOT NULL
    """,
    """
    CREATE TABLE reviews (
        id {text} NOT NULL PRIMARY KEY,
        run_id {text} NOT NULL REFERENCES runs (id),
        number BIGINT NOT NULL,
        reviewer {text} NOT NULL,
        created_at {text} NOT NULL,
        action {text} NOT NULL,
        of {text},
        record_sha256 {text} NOT NULL,
        seal {text} NOT NULL,
        verdict {text} NOT NULL,
        comment {text} NOT NULL
    )
    """,
    "CREATE INDEX reviews_by_age ON reviews (run_id, created_at, id)",
    "CREATE INDEX reviews_by_sample ON reviews (run_id, number)",
    """
    CREATE TABLE outbox (
        run_id {text} NOT NULL REFERENCES runs (id),
        number BIGINT NOT NULL,
        part {text} NOT NULL,
        version {text} NOT NULL,
        detail {text} NOT NULL,
        state {text} NOT NULL,
        error {text} NOT NULL,
        PRIMARY KEY (run_id, number, part)
    )
    """,
    # The sample that each reviewer of a run has now.
    """
    CREATE TABLE review_claims (
        run_id {text} NOT NULL,
        reviewer {text} NOT NULL,
        number BIGINT NOT NULL,
        claimed_at {text} NOT NULL,
        PRIMARY KEY (run_id, reviewer)
    )
    """,
)


def require_tables(database: Database, *, create: bool) -> None:
    """Make the tables of a new store, or check that they are of this version.

    Raises:
        InputError: the store has another version, it is another program's, or there is none to
            read.
        IncompleteError: the database is at fault.

    """
    with reading(database) as session:
        is_there = _has_tables(database, session)
    if not is_there and not create:
        raise InputError(
            "there is no store in it yet",
            "run a suite first, or name another one with --store",
            f"store {database.name}",
        )
    database.prepare()
    if not is_there:
        with writing(database) as session:
            database.lock(session, "jurybox_schema")
            # Another process may have made them while this one waited.
            if not _has_tables(database, session):
                _make_tables(database, session)


def _has_tables(database: Database, session: DatabaseSession) -> bool:
    tables = database.table_names(session)
    if "jurybox_schema" not in tables:
        database.refuse_strangers(tables)
        return False
    found: object = session.rows("SELECT max(version) FROM jurybox_schema")[0][0]
    if not isinstance(found, int) or found < 1:
        raise error_of(Fault(kind="damaged"), database.name, database.patience)
    if found != VERSION:
        raise InputError(
            f"its tables have version {found}, and this jurybox reads version {VERSION}",
            "use the jurybox that made it, or name another store with --store",
            f"store {database.name}",
        )
    return True


def _make_tables(database: Database, session: DatabaseSession) -> None:
    for statement in (*_TABLES, *database.indexes):
        session.execute(statement.format(text=database.text_type, clustered=database.clustered))
    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    add_version = "INSERT INTO jurybox_schema (version, created_at) VALUES (?, ?)"
    session.execute(add_version, (VERSION, created_at))
