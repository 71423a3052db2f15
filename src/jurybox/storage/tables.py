"""The tables, as the statements name them; the migrations make them, and a test compares both.

The columns are those of the rows in `jurybox.running.records`, but the long ones come last: SQLite
reads a row from its beginning, and a result or a hash is wanted more often than a whole request.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()


def _text(name: str) -> "Column[str]":
    return Column(name, Text, nullable=False)


def _text_or_none(name: str) -> "Column[str | None]":
    return Column(name, Text, nullable=True)


def _number(name: str) -> "Column[int]":
    return Column(name, BigInteger, nullable=False)


def _run_id() -> "Column[str]":
    return Column("run_id", Text, ForeignKey("runs.id"), nullable=False)


runs = Table(
    "runs",
    metadata,
    _text("id"),
    _text("suite"),
    _text("status"),
    _text("created_at"),
    _text_or_none("finished_at"),
    _text("plan"),
    _text("metadata"),
    _text_or_none("outcome"),
    _text_or_none("digest"),
    _text("seal"),
    PrimaryKeyConstraint("id"),
)

samples = Table(
    "samples",
    metadata,
    _run_id(),
    _number("number"),
    _text("sample_id"),
    _number("repeat"),
    _text("record_sha256"),
    _text("seal"),
    _text("result"),
    _text("notes"),
    _text_or_none("automated"),
    _text_or_none("report"),
    _text("inputs"),
    _text("responses"),
    PrimaryKeyConstraint("run_id", "number"),
    UniqueConstraint("run_id", "sample_id", "repeat", name="samples_once"),
)

exchanges = Table(
    "exchanges",
    metadata,
    _run_id(),
    _number("number"),
    _number("position"),
    _text("role"),
    _text("key"),
    _text("seal"),
    _text("notes"),
    _text("request"),
    _text("outcome"),
    PrimaryKeyConstraint("run_id", "number", "position"),
)

jurybox_schema = Table(
    "jurybox_schema",
    metadata,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    _text("name"),
    _text("applied_at"),
)
