"""The benchmarks run; what they measure is for people to read."""

import json
import py_compile
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
PEERS = sorted((BENCHMARKS / "peers").glob("*.py"))


@pytest.mark.benchmark
@pytest.mark.parametrize(
    "name", ["startup", "rubric", "safety", "companion --resamples 50", "runs --sizes 10"]
)
def test_a_benchmark_prints_its_table(name: str) -> None:
    program, *options = name.split()
    assert "median" in printed(program, "--repeats", "2", *options)


@pytest.mark.benchmark
def test_the_quick_benchmark_prints_the_stages_of_a_sample() -> None:
    words = printed("quick", "--samples", "12", "--without-rules")
    for stage in ("prompt", "call", "read", "score", "store", "rest"):
        assert f"\n{stage} " in words
    assert "jurybox:votes3" in words
    assert "first call" in words


@pytest.mark.benchmark
def test_the_benchmark_of_pages_prints_times_and_memory() -> None:
    words = printed("pages", "--samples", "120", "--repeats", "1", "--pages", "3")
    for page in ("run", "samples", "by a metric", "filtered", "last page", "sample"):
        assert f"\n{page} " in words
    assert "after turning 3 pages" in words


@pytest.mark.benchmark
def test_the_comparison_prints_its_tables() -> None:
    options = ["--only", "floor", "jurybox", "--sizes", "12", "--repeats", "1", "--kill", "40"]
    words = printed("side_by_side", *options, "--alone", "--record", "rows.jsonl")
    assert "12 samples: median" in words
    assert "killed half-way" in words
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    runs = [row for row in rows if row["kind"] == "run" and row["name"] == "jurybox"]
    assert [(row["judged"], row["calls"]) for row in runs] == [(10, 10), (12, 12)]
    (killed, *_) = [row for row in rows if row["kind"] == "kill"]
    assert killed["judged"] == 40


@pytest.mark.benchmark
def test_the_latency_benchmark_prints_its_table() -> None:
    assert "of ideal" in printed("latency", "--samples", "20", "--repeats", "1")


def test_every_reader_refuses_damaged_input_in_its_own_words() -> None:
    rows = printed("fuzz", "--minutes", "0.002").splitlines()
    assert len(rows) > 15
    assert all(row.endswith(" 0 failures") for row in rows)


@pytest.mark.benchmark
def test_the_benchmark_of_a_cluster_prints_its_tables() -> None:
    words = printed("spread", "--samples", "60", "--workers", "2", "--rows", "3000")
    for line in ("taken over from a shard", "2 workers", "Ray adds", "3,000 rows by rules"):
        assert line in words


def test_the_simulation_keeps_within_the_calls_that_are_allowed() -> None:
    words = printed("capacity", "--workers", "2", "--samples", "3000", "--shard", "500")
    head, row = words.splitlines()
    assert head.split()[0] == "workers"
    # Two workers, 64 calls at once of 200 ms each: at most 320 per second.
    assert 200 < float(row.split()[1].replace(",", "")) <= 320


def printed(program: str, *options: str) -> str:
    command: Sequence[str | Path] = [sys.executable, BENCHMARKS / f"{program}.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", PEERS, ids=lambda path: path.stem)
def test_a_driver_compiles_and_names_its_package(path: Path) -> None:
    py_compile.compile(str(path), cfile="compiled.pyc", doraise=True)
    source = path.read_text(encoding="utf-8")
    assert '    package="' in source
    assert "    replies={" in source
