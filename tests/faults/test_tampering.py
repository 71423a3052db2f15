"""Whatever is changed in a store, ``verify`` says where (A13)."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import jurybox
from jurybox.engine.records import ReviewRow, sealed
from jurybox.errors import JuryboxError
from jurybox.storage.audit import Difference, audit
from jurybox.wiring import find_run, open_run_store

JUDGE = """
import json

def strict(prompt):
    good = "candidate_answer: right" in prompt
    return '{"accuracy_score": %d, "faithfulness_score": 2, "rationale": "so"}' % (2 if good else 0)

def general(request):
    asked = json.loads(request.schema)["properties"]
    return json.dumps({
        "reasoning": dict.fromkeys(asked["reasoning"]["properties"], "So."),
        "bias_checklist": dict.fromkeys(asked["bias_checklist"]["properties"], "So."),
        "safety_concerns": [],
        "scores": dict.fromkeys(asked["scores"]["properties"], 3),
    })

def respond(prompt):
    return "right" if "1" in prompt else "wrong"
"""
SAMPLES = 4
COLUMNS = {
    "runs": "id suite status created_at finished_at plan metadata outcome digest seal",
    "samples": (
        "run_id number sample_id repeat inputs responses report automated result notes"
        " record_sha256 seal"
    ),
    "exchanges": "run_id number position role key frame material outcome notes seal",
    "frames": "run_id sha256 text",
    "facets": ("run_id number sample_id repeat flags urgency scenario demographic winner metrics"),
    "reviews": (
        "id run_id number reviewer created_at action of record_sha256 verdict comment seal"
    ),
}
FRAME = COLUMNS["frames"].split()
CHANGED = "the row was changed after it was written"
CASES = [
    (table, column)
    for table, names in COLUMNS.items()
    for column in names.split()
    if table != "frames"
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """Return the id of a run and the bytes of its store."""
    place = tmp_path_factory.mktemp("run")
    run_id, _ = run(place, rubric="answer-quality", judge="strict")
    review(place / "store.db", run_id)
    return run_id, file_of(place / "store.db")


@pytest.fixture(scope="module")
def framed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """Return a run whose requests to the judge have a frame."""
    return run(tmp_path_factory.mktemp("framed"), rubric="general", judge="general")


def run(place: Path, *, rubric: str, judge: str) -> tuple[str, bytes]:
    (place / "tampered_judge.py").write_text(JUDGE)
    rows = [{"id": f"q{n}", "task": f"Task {n}", "reference": "right"} for n in range(SAMPLES)]
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "suite.yaml").write_text(
        f"suite: tampered\nrubric: {rubric}\ndataset: rows.jsonl\n"
        "target: {model: python/tampered_judge:respond}\n"
        f"judge: {{models: [python/tampered_judge:{judge}], votes: 1}}\nconcurrency: 1\n"
    )
    path = place / "store.db"
    view = jurybox.run(place / "suite.yaml", store=str(path))
    return view.run_id, file_of(path)


def file_of(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    return path.read_bytes()


def review(path: Path, run_id: str) -> None:
    """Have a person review the third sample, and take the review back."""
    opened = open_run_store(str(path))
    sample = opened.sample(run_id, 2)
    assert sample is not None
    row = ReviewRow(
        id="review-1",
        run_id=run_id,
        number=2,
        reviewer="Ada",
        created_at="2026-01-02T03:04:05Z",
        action="review",
        of=None,
        record_sha256=sample.record_sha256,
        verdict='{"scores": {"accuracy_score": 1}}',
        comment="hm",
    )
    later = {"id": "review-2", "created_at": "2026-01-02T03:04:06Z", "verdict": "{}"}
    again = msgspec.structs.replace(row, **later, action="withdrawal", of=row.id)
    for each in (row, again):
        opened.add_review(sealed(each))
    opened.close()


@pytest.fixture
def store(stored: tuple[str, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    path.write_bytes(stored[1])
    return path


def verdict(path: Path, run_id: str) -> Difference | str | None:
    """Return what an audit finds, or what stands in its way."""
    opened = open_run_store(str(path))
    try:
        return audit(opened, find_run(opened, run_id)).difference
    except JuryboxError as error:
        return str(error)
    finally:
        opened.close()


def edit(path: Path, *statements: tuple[str, tuple[object, ...]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement, values in statements:
            connection.execute(statement, values)


def flips(value: object) -> Iterator[object]:
    """Yield the value with one thing about it changed."""
    match value:
        case None:
            yield "{}"
        case int():
            yield value + 1000
        case str():
            for index in sorted({0, len(value) // 3, len(value) // 2, len(value) - 1}):
                other = "y" if value[index : index + 1] == "x" else "x"
                yield value[:index] + other + value[index + 1 :]
        case _:
            raise AssertionError(f"what is {value!r}?")


def test_an_untouched_run_is_verified(store: Path, stored: tuple[str, bytes]) -> None:
    assert verdict(store, stored[0]) is None


def test_every_column_of_the_store_is_tried(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        for table, names in COLUMNS.items():
            found = [row[1] for row in connection.execute(f"pragma table_info({table})")]
            assert sorted(found) == sorted(names.split())


@pytest.mark.parametrize(("table", "column"), CASES, ids=[".".join(case) for case in CASES])
def test_one_character_changed_anywhere_is_found(
    store: Path, stored: tuple[str, bytes], table: str, column: str
) -> None:
    # The third sample, or its exchange with the judge, or the one run there is.
    number = {
        "samples": " where number = 2",
        "exchanges": " where number = 2 and position = 1",
        "facets": " where number = 2",
        "reviews": " where id = 'review-1'",
        "frames": " where rowid = 1",
    }
    number = number.get(table, "")
    with closing(sqlite3.connect(store)) as connection:
        ((value,),) = connection.execute(f"select {column} from {table}{number}")  # noqa: S608
    for other in flips(value):
        # With its index, SQLite itself refuses metrics that are no JSON.
        change = (f"update {table} set {column} = ?{number}", (other,))  # noqa: S608
        edit(store, ("drop index if exists facets_by_overall", ()), change)
        found = verdict(store, stored[0])
        assert found is not None, f"{column} as {other!r} was not noticed"
        if table == "reviews":
            assert f"run {stored[0]}, review " in str(found)
        elif (
            isinstance(found, Difference) and table != "runs" and column not in {"run_id", "number"}
        ):
            assert found.where.startswith("record 2, sample ")
        store.write_bytes(stored[1])


@pytest.mark.parametrize(
    ("table", "column", "where"),
    [
        *[("frames", column, "record 0, sample q0, repeat 0, exchange 1") for column in FRAME],
        ("exchanges", "frame", "record 2, sample q2, repeat 0, exchange 1"),
        ("exchanges", "material", "record 2, sample q2, repeat 0, exchange 1"),
    ],
)
def test_a_frame_or_what_is_in_it_that_was_changed_is_found_where_it_is_first_used(
    tmp_path: Path, framed: tuple[str, bytes], table: str, column: str, where: str
) -> None:
    run_id, data = framed
    path = tmp_path / "store.db"
    path.write_bytes(data)
    assert verdict(path, run_id) is None
    which = " where number = 2 and position = 1" if table == "exchanges" else ""
    with closing(sqlite3.connect(path)) as connection:
        ((value,),) = connection.execute(f"select {column} from {table}{which}")  # noqa: S608
    for other in flips(value):
        edit(path, (f"update {table} set {column} = ?{which}", (other,)))  # noqa: S608
        assert str(verdict(path, run_id)) == f"{where}: {CHANGED}"


def test_a_frame_that_was_removed_is_missed_where_it_is_first_used(
    tmp_path: Path, framed: tuple[str, bytes]
) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(framed[1])
    edit(path, ("delete from frames", ()))
    expected = f"record 0, sample q0, repeat 0, exchange 1: {CHANGED}"
    assert str(verdict(path, framed[0])) == expected


@pytest.mark.parametrize("table", ["samples", "exchanges", "facets"])
def test_a_row_that_was_removed_is_missed(
    store: Path, stored: tuple[str, bytes], table: str
) -> None:
    edit(store, (f"delete from {table} where number = 1", ()))  # noqa: S608
    assert verdict(store, stored[0]) is not None


@pytest.mark.parametrize("number", [-5, 4, 99])
def test_facets_of_no_sample_are_found(store: Path, stored: tuple[str, bytes], number: int) -> None:
    columns = COLUMNS["facets"].split()
    copied = ", ".join("?" if name == "number" else name for name in columns)
    add = f"insert into facets ({', '.join(columns)}) select {copied} from facets where number = 2"  # noqa: S608
    edit(store, (add, (number,)))
    expected = f"record {number}: the sample is missing; only rows about it exist"
    assert str(verdict(store, stored[0])) == expected


def test_a_sample_without_facets_and_one_with_others_are_named(
    store: Path, stored: tuple[str, bytes]
) -> None:
    edit(store, ("update facets set flags = flags + 1 where number = 3", ()))
    expected = "record 3, sample q3, repeat 0: its index entry and its result differ in flags"
    assert str(verdict(store, stored[0])) == expected
    edit(store, ("delete from facets where number = 1", ()))
    expected = "record 1, sample q1, repeat 0: its index entry is missing"
    assert str(verdict(store, stored[0])) == expected


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"number": 77}, "its sample is missing"),
        ({"record_sha256": "0" * 64}, "the sample isn't the one that was reviewed"),
        ({"of": "review-9"}, "the review that it withdraws is missing"),
        ({"number": 1}, "the sample isn't the one that was reviewed"),
        ({"of": "review-2"}, "the review that it withdraws is missing"),
    ],
)
def test_a_review_with_a_right_seal_must_still_be_of_something(
    store: Path, stored: tuple[str, bytes], changes: dict[str, object], said: str
) -> None:
    opened = open_run_store(str(store))
    _, last = opened.reviews(stored[0])
    opened.close()
    forged = sealed(msgspec.structs.replace(last, **changes))
    columns = ", ".join(f"{name} = ?" for name in ReviewRow.__struct_fields__)
    change = f"update reviews set {columns} where id = 'review-2'"  # noqa: S608
    edit(store, (change, msgspec.structs.astuple(forged)))
    assert str(verdict(store, stored[0])) == f"run {stored[0]}, review review-2: {said}"


def test_rows_that_changed_places_are_found(store: Path, stored: tuple[str, bytes]) -> None:
    edit(
        store,
        ("update samples set number = 99 where number = 1", ()),
        ("update samples set number = 1 where number = 2", ()),
        ("update samples set number = 2 where number = 99", ()),
    )
    assert verdict(store, stored[0]) is not None


def test_a_score_that_was_changed_with_all_its_hashes_is_still_not_what_the_judge_said(
    store: Path, stored: tuple[str, bytes]
) -> None:
    """Whoever knows how hashes are made still can't make the replies say something else."""
    from jurybox.engine import records

    opened = open_run_store(str(store))
    run_id = stored[0]
    sample = opened.sample(run_id, 2)
    asked = list(opened.exchanges_of(run_id, 2))
    opened.close()
    assert sample is not None
    forged = json.loads(sample.result)
    forged["metrics"]["accuracy_score"] = 2
    sample = msgspec.structs.replace(sample, result=records.ENCODER.encode(forged).decode())
    hashes = [records.hashes_of(each) for each in records.in_order(sample, asked)]
    sample = records.hashed_sample(sample, hashes)
    edit(
        store,
        (
            "update samples set result = ?, record_sha256 = ?, seal = ? where number = 2",
            (sample.result, sample.record_sha256, sample.seal),
        ),
    )
    found = verdict(store, run_id)
    assert isinstance(found, Difference)
    assert str(found) == (
        "record 2, sample q2, repeat 0: its result differs from what the replies say"
    )


@pytest.mark.parametrize(
    "attention",
    [[], [{"kind": "failed", "count": 2}]],
    ids=["left out", "fewer"],
)
def test_what_needs_attention_is_derived_again(
    store: Path, stored: tuple[str, bytes], attention: list[object]
) -> None:
    from jurybox.engine import records

    opened = open_run_store(str(store))
    run = find_run(opened, stored[0])
    opened.close()
    outcome = json.loads(run.outcome or "")
    assert outcome["conclusion"]["attention"] == [{"kind": "failed", "count": 3}]
    outcome["conclusion"]["attention"] = attention
    text = records.ENCODER.encode(outcome).decode()
    seal = records.sealed(msgspec.structs.replace(run, outcome=text)).seal
    edit(store, ("update runs set outcome = ?, seal = ?", (text, seal)))
    assert "its outcome differs from what its records say" in str(verdict(store, stored[0]))


def test_spreads_are_derived_again(store: Path, stored: tuple[str, bytes]) -> None:
    from jurybox.engine import records

    opened = open_run_store(str(store))
    run = find_run(opened, stored[0])
    opened.close()
    outcome = json.loads(run.outcome or "")
    outcome["conclusion"]["spreads"]["metrics"]["accuracy_score"]["mean"] = 0.75
    text = records.ENCODER.encode(outcome).decode()
    seal = records.sealed(msgspec.structs.replace(run, outcome=text)).seal
    edit(store, ("update runs set outcome = ?, seal = ?", (text, seal)))
    assert "its outcome differs from what its records say" in str(verdict(store, stored[0]))
