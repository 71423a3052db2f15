"""The questions that a store asks, each built once."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Integer,
    Select,
    Text,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    tuple_,
)

from jurybox.storage.tables import exchanges, runs, samples

_BEFORE_ALL: Final = -(2**63)


class Paged:
    """A question with many answers: the next of them, after those that are known."""

    def __init__(
        self, statement: "Select[*tuple[Any, ...]]", keys: tuple[str, ...], size: int
    ) -> None:
        self.statement = statement.limit(size)
        self.keys = keys
        self.start = (_BEFORE_ALL,) * len(keys)
        self.size = size


def _text(name: str) -> "BindParameter[str]":
    return bindparam(name, type_=Text)


def _number(name: str) -> "BindParameter[int]":
    return bindparam(name, type_=BigInteger)


_IN_RUN: Final = samples.c.run_id == _text("run_id")
_NEXT_SAMPLES: Final = (_IN_RUN, samples.c.number > _number("number"))
_NEXT_EXCHANGES: Final = (
    exchanges.c.run_id == _text("run_id"),
    tuple_(exchanges.c.number, exchanges.c.position)
    > tuple_(_number("number"), _number("position")),
)
_EXCHANGES: Final = (
    select(exchanges).where(*_NEXT_EXCHANGES).order_by(exchanges.c.number, exchanges.c.position)
)
_SAMPLE_KEY: Final = ("number",)
_EXCHANGE_KEY: Final = ("number", "position")

# Whole rows may have many kilobytes each, and results have some hundred bytes.
NUMBERS: Final = Paged(
    select(samples.c.number).where(*_NEXT_SAMPLES).order_by(samples.c.number), _SAMPLE_KEY, 5000
)
RESULTS: Final = Paged(
    select(samples.c.number, samples.c.repeat, samples.c.record_sha256, samples.c.result)
    .where(*_NEXT_SAMPLES)
    .order_by(samples.c.number),
    _SAMPLE_KEY,
    500,
)
SAMPLES: Final = Paged(
    select(samples).where(*_NEXT_SAMPLES).order_by(samples.c.number), _SAMPLE_KEY, 100
)
EXCHANGES: Final = Paged(_EXCHANGES, _EXCHANGE_KEY, 100)
UNFINISHED: Final = Paged(
    _EXCHANGES.where(
        ~exists().where(
            samples.c.run_id == exchanges.c.run_id, samples.c.number == exchanges.c.number
        )
    ),
    _EXCHANGE_KEY,
    100,
)

HASHES: Final = select(samples.c.record_sha256).where(_IN_RUN).order_by(samples.c.record_sha256)
HASHES_AT_ONCE: Final = 5000

SAMPLE: Final = select(samples).where(_IN_RUN, samples.c.number == _number("number"))
EXCHANGES_OF: Final = (
    select(exchanges)
    .where(exchanges.c.run_id == _text("run_id"), exchanges.c.number == _number("number"))
    .order_by(exchanges.c.position)
)
FIND_EXCHANGE: Final = (
    select(exchanges)
    .join(runs, runs.c.id == exchanges.c.run_id)
    # The second condition is the index's own, without which no database would use it.
    .where(exchanges.c.key == _text("key"), exchanges.c.key != literal_column("''"))
    .order_by(
        runs.c.created_at.desc(),
        runs.c.id.desc(),
        exchanges.c.number.desc(),
        exchanges.c.position.desc(),
    )
    .limit(1)
)

RUN: Final = select(runs).where(runs.c.id == _text("run_id"))
RUNS: Final = select(runs).order_by(runs.c.created_at.desc(), runs.c.id.desc())
# LIKE wouldn't do: in SQLite it knows no case, and what was typed may have its signs in it.
FIND_RUNS: Final = RUNS.where(
    func.substr(runs.c.id, 1, bindparam("length", type_=Integer)) == _text("prefix")
)
