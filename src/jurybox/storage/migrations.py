"""How the tables came to be, step by step; a store of an older version is brought up to date.

A step never changes once it is released. It is applied together with the record of it, in one
transaction, while everybody else who opens the store waits.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from jurybox.errors import InputError
from jurybox.scoring.facets import facets_of
from jurybox.storage import statements
from jurybox.storage.database import Database, Session, reading, writing
from jurybox.storage.tables import SCHEMA
from jurybox.storage.trouble import Trouble, error_of

_PAGE: Final = 500


class Migration(msgspec.Struct, frozen=True, kw_only=True):
    """One step, in words that SQLite and PostgreSQL both understand.

    ``{text}`` stands for texts that are compared byte by byte, which each calls by another name.
    ``fill`` is done after the statements, where rows follow from those that are there.
    """

    version: int
    name: str
    statements: tuple[str, ...]
    fill: Callable[[Session], None] | None = None


_FIRST: Final = (
    """
    CREATE TABLE jurybox_schema (
        version BIGINT NOT NULL PRIMARY KEY,
        name {text} NOT NULL,
        applied_at {text} NOT NULL
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
    CREATE TABLE exchanges (
        run_id {text} NOT NULL REFERENCES runs (id),
        number BIGINT NOT NULL,
        position BIGINT NOT NULL,
        role {text} NOT NULL,
        key {text} NOT NULL,
        seal {text} NOT NULL,
        notes {text} NOT NULL,
        request {text} NOT NULL,
        outcome {text} NOT NULL,
        PRIMARY KEY (run_id, number, position)
    )
    """,
    "CREATE INDEX exchanges_by_key ON exchanges (key) WHERE key <> ''",
)

_BATCHES: Final = (
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
)

_FRAMES: Final = (
    """
    CREATE TABLE frames (
        sha256 {text} NOT NULL PRIMARY KEY,
        head {text} NOT NULL,
        tail {text} NOT NULL
    )
    """,
    "ALTER TABLE exchanges ADD COLUMN frame {text} REFERENCES frames (sha256)",
)

_CALIBRATIONS: Final = (
    """
    CREATE TABLE calibrations (
        id {text} NOT NULL PRIMARY KEY,
        rubric_id {text} NOT NULL,
        created_at {text} NOT NULL,
        rubric_version {text} NOT NULL,
        rubric_sha256 {text} NOT NULL,
        judges {text} NOT NULL,
        judge_version {text},
        prompt_sha256 {text} NOT NULL,
        votes BIGINT NOT NULL,
        seed BIGINT NOT NULL,
        n BIGINT NOT NULL,
        seal {text} NOT NULL,
        gold {text} NOT NULL,
        runs {text} NOT NULL,
        figures {text} NOT NULL,
        tuning {text}
    )
    """,
    "CREATE INDEX calibrations_by_rubric ON calibrations (rubric_id, created_at, id)",
)

_FACETS: Final = (
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
        figures {text} NOT NULL,
        PRIMARY KEY (run_id, number)
    )
    """,
    # Most runs have neither, and take no room in these.
    "CREATE INDEX facets_by_scenario ON facets (run_id, scenario) WHERE scenario IS NOT NULL",
    """
    CREATE INDEX facets_by_demographic ON facets (run_id, demographic)
    WHERE demographic IS NOT NULL
    """,
)

_REVIEWS: Final = (
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
)


def fill_facets(session: Session) -> None:
    """Add what samples are found by that were stored before there was anything of the kind."""
    last: tuple[str, int] = ("", -(2**63))
    while page := session.rows(statements.UNFACETED, (*last, _PAGE)):
        samples = msgspec.convert(page, list[_StoredSample])
        session.insert(
            statements.INSERT_FACETS, [msgspec.structs.astuple(facets_of(row)) for row in samples]
        )
        last = samples[-1].run_id, samples[-1].number


class _StoredSample(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    run_id: str
    number: int
    sample_id: str
    repeat: int
    result: str


MIGRATIONS: Final = (
    Migration(version=1, name="runs, samples and exchanges", statements=_FIRST),
    Migration(version=2, name="batches", statements=_BATCHES),
    Migration(version=3, name="frames of requests", statements=_FRAMES),
    Migration(version=4, name="calibrations", statements=_CALIBRATIONS),
    Migration(
        version=5,
        name="facets of samples, and reviews",
        statements=(*_FACETS, *_REVIEWS),
        fill=fill_facets,
    ),
    # Who looks for keys makes it anew (see `SqlStore.find_exchange`). Keys are hashes, so each goes
    # to another page of it; in a large store that was a quarter of what storing took.
    Migration(version=6, name="keys without an index", statements=("DROP INDEX exchanges_by_key",)),
)


def bring_up_to_date(
    database: Database, *, create: bool, steps: tuple[Migration, ...] = MIGRATIONS
) -> None:
    """Make the tables of a new store, or what an older one lacks.

    Raises:
        InputError: a newer jurybox made it, it is another program's, or there is none to be read.
        IncompleteError: the database is at fault.

    """
    with reading(database) as session:
        version = _version(database, session, steps)
    if version is None and not create:
        raise InputError(
            "there is no store in it yet",
            "run a suite first, or name another one with --store",
            f"store {database.name}",
        )
    database.prepare()
    while (version or 0) < len(steps):
        with writing(database) as session:
            database.lock_schema(session)
            version = _advance(database, session, steps)


def _version(database: Database, session: Session, steps: tuple[Migration, ...]) -> int | None:
    """Return the version of the store; None where there is none yet."""
    tables = database.table_names(session)
    if SCHEMA not in tables:
        database.refuse_strangers(tables)
        return None
    found: object = session.rows(statements.VERSION)[0][0]
    if not isinstance(found, int) or found < 1:
        raise error_of(Trouble(kind="damaged"), database.name, database.patience)
    if found > len(steps):
        raise InputError(
            f"it was made by a newer jurybox, in version {found} of its tables",
            "upgrade jurybox",
            f"store {database.name}",
        )
    return found


def _advance(database: Database, session: Session, steps: tuple[Migration, ...]) -> int:
    """Apply the next step, unless somebody did so while we waited; return the version."""
    version = _version(database, session, steps) or 0
    if version == len(steps):
        return version
    step = steps[version]
    for statement in step.statements:
        session.execute(statement.format(text=database.text_type))
    if step.fill is not None:
        step.fill(session)
    applied_at = datetime.now(UTC).isoformat(timespec="seconds")
    session.execute(statements.RECORD_VERSION, (step.version, step.name, applied_at))
    return step.version
