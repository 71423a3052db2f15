"""The benchmarks run; what they measure is for people to read."""

import contextlib
import http.client
import json
import py_compile
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
PEERS = sorted((BENCHMARKS / "peers").glob("*.py"))
PICKED = {"name": "select", "arguments": {"choice": "A"}}
REPLIES = {"judge": "Yes.", "picker": {"content": None, "tool_calls": [PICKED]}}
CALL = json.dumps({"messages": [{"role": "user", "content": 'a "model": "b"'}], "model": "judge"})


@contextlib.contextmanager
def endpoint(*options: str) -> Iterator[str]:
    """Start the fake endpoint; yield host and port."""
    Path("replies.json").write_text(json.dumps(REPLIES))
    command = [sys.executable, BENCHMARKS / "endpoint.py", "--replies", "replies.json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield urlsplit(process.stdout.readline().strip()).netloc
        finally:
            process.kill()


def ask(
    line: http.client.HTTPConnection, path: str = "/v1/chat/completions", body: str | None = CALL
) -> tuple[int, Any, http.client.HTTPMessage]:
    line.request("GET" if body is None else "POST", path, body)
    answer = line.getresponse()
    read = answer.read()
    return answer.status, json.loads(read), answer.headers


@contextlib.contextmanager
def connected(*options: str) -> Iterator[http.client.HTTPConnection]:
    with (
        endpoint(*options) as place,
        contextlib.closing(http.client.HTTPConnection(place, timeout=30)) as line,
    ):
        yield line


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


def test_the_endpoint_answers_by_the_name_of_the_model() -> None:
    with connected() as line:
        status, told, _ = ask(line)
        assert status == 200
        assert told["choices"][0]["message"]["content"] == "Yes."
        assert told["usage"]["total_tokens"] > 0
        _, told, _ = ask(line, "/v1/responses")
        assert told["output"][0]["content"][0]["text"] == "Yes."
        _, told, _ = ask(line, "/v1/messages")
        assert told["content"][0]["text"] == "Yes."
        _, told, _ = ask(line, "/v1/models", None)
        assert [model["id"] for model in told["data"]] == ["judge", "picker"]


def test_the_endpoint_gives_tool_calls() -> None:
    with connected() as line:
        _, told, _ = ask(line, body=CALL.replace("judge", "picker"))
    message = told["choices"][0]["message"]
    assert message["content"] is None
    (call,) = message["tool_calls"]
    assert call["function"] == {"name": "select", "arguments": '{"choice": "A"}'}


def test_the_endpoint_counts_its_calls() -> None:
    before = time.time()
    with connected() as line:
        for _ in range(3):
            ask(line)
        _, told, _ = ask(line, "/count", None)
        assert told["calls"] == 3
        assert before <= told["first_call"] <= told["last_call"] <= time.time()
        ask(line, "/reset")
        _, told, _ = ask(line, "/count", None)
        assert told["calls"] == 0
        _, told, _ = ask(line, "/last", None)
        assert told["model"] == "judge"


def test_the_endpoint_keeps_calls_waiting_side_by_side() -> None:
    with endpoint("--latency", "300") as place:
        lines = [http.client.HTTPConnection(place, timeout=30) for _ in range(5)]
        began = time.monotonic()
        for line in lines[:4]:
            line.request("POST", "/v1/chat/completions", CALL)
        assert [line.getresponse().status for line in lines[:4]] == [200] * 4
        assert time.monotonic() - began >= 0.3
        _, told, _ = ask(lines[4], "/count", None)
        assert told["most_in_flight"] == 4
        for line in lines:
            line.close()


@pytest.mark.parametrize(("kind", "status"), [("500", 500), ("429", 429)])
def test_the_endpoint_refuses_every_second_call(kind: str, status: int) -> None:
    with connected("--fault", f"{kind}:2") as line:
        found = [ask(line) for _ in range(4)]
    assert [each[0] for each in found] == [200, status, 200, status]
    assert ("Retry-After" in found[1][2]) == (kind == "429")


def test_the_endpoint_cuts_the_connection_in_the_body() -> None:
    with connected("--fault", "cut:1") as line:
        line.request("POST", "/v1/chat/completions", CALL)
        with pytest.raises(http.client.IncompleteRead):
            line.getresponse().read()


def test_the_endpoint_sends_garbage() -> None:
    with connected("--fault", "garbage:1") as line, pytest.raises(ValueError, match="Expecting"):
        ask(line)


def test_the_endpoint_is_slow() -> None:
    with connected("--fault", "slow:1", "--slow", "200") as line:
        began = time.monotonic()
        assert ask(line)[0] == 200
        assert time.monotonic() - began >= 0.2


def test_the_endpoint_reads_a_request_in_pieces() -> None:
    with connected() as line:
        line.putrequest("POST", "/v1/chat/completions")
        line.putheader("Transfer-Encoding", "chunked")
        line.endheaders()
        for piece in (CALL[:20], CALL[20:]):
            line.send(f"{len(piece):x}\r\n{piece}\r\n".encode())
        line.send(b"0\r\n\r\n")
        assert json.loads(line.getresponse().read())["model"] == "judge"
