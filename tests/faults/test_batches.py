"""Runs whose judges are asked in batches, at a provider that does whatever providers do."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from batch_server import BatchServer, Data
from judge_server import general_verdict
from jurybox.cli.app import run as command
from jurybox.engine.limiter import Limits
from jurybox.engine.ports import ModelError
from jurybox.models.batched import Pace
from jurybox.models.http import HttpAnswer, HttpCall, HttpClient, HttpOptions

SAMPLES = 24
OPENAI, ANTHROPIC = "openai/judge-2025-01-01", "anthropic/judge-2025-01-01"
Item = Callable[[Data, int], tuple[int, Data] | str | None]
Mangle = Callable[[list[bytes]], list[bytes]]
LOOK, LIST = ("GET", "/v1/batches/ID"), ("GET", "/v1/batches")
MODELS = pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])


class Done:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.err = err
        self.json: dict[str, Any] = json.loads(out) if out else {}

    @property
    def digest(self) -> str:
        assert self.json["status"] == "finished", self.err
        return self.json["digest"]


class Bench:
    """A server, and commands that are told of it."""

    def __init__(self, server: BatchServer, capsys: pytest.CaptureFixture[str]) -> None:
        self.server = server
        self._capsys = capsys

    def __call__(self, *arguments: str, openai: bool = True) -> Done:
        base = ("--base-url", self.server.url) if openai else ()
        code = command([*arguments, *base, "--json"])
        out, err = self._capsys.readouterr()
        return Done(code, out, err)

    def run(self, *options: str, **changes: object) -> Done:
        write(**changes)
        return self("run", "suite.yaml", *options)

    def resume(self, *options: str, openai: bool = True) -> Done:
        return self("resume", "last", *options, openai=openai)

    @property
    def once(self) -> bool:
        """Whether no request was in two batches."""
        return max(self.server.batched.values()) == 1


def write(model: str = OPENAI, votes: int = 1, samples: int = SAMPLES, more: str = "") -> None:
    rows = [
        {"id": f"q{number}", "task": f"Add {number}.", "response": f"It is {number}."}
        for number in range(samples)
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("suite.yaml").write_text(
        "suite: batches\nrubric: general\ndataset: rows.jsonl\n"
        f"judge: {{models: [{model}], votes: {votes}}}\n{more}"
    )


def select(question: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(".jurybox/jurybox.db") as connection:
        rows = connection.execute(question).fetchall()
    connection.close()
    return rows


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with BatchServer(general_verdict).running() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key-1234567890")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-key-1234567890")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.address)
        monkeypatch.setattr("jurybox.models.batched.Pace", lambda: Pace(idle=0.05, first=0.01))
        monkeypatch.setattr("jurybox.models.batched._BACKOFF", Limits(longest_delay=0.02))
        yield Bench(server, capsys)


@MODELS
def test_a_batched_run_has_the_records_of_a_direct_one(bench: Bench, model: str) -> None:
    direct = bench.run(model=model, votes=3)
    batched = bench.run("--batch", model=model, votes=3)
    assert batched.digest == direct.digest
    for part in ("summary", "gates", "review"):
        assert batched.json[part] == direct.json[part]
    assert bench.server.batched == bench.server.direct
    assert bench("verify", "last", openai=False).code == 0


@MODELS
def test_all_that_is_asked_at_once_is_one_batch_and_what_is_asked_again_the_next(
    bench: Bench, model: str
) -> None:
    bench.run("--batch", model=model, votes=3)
    sizes = [len(batch.items) for batch in bench.server.batches.values()]
    # Every fourth reply can't be used; those that take their place can.
    first, second = sizes
    assert first == SAMPLES * 3 > second


def test_what_says_that_there_was_a_batch_is_outside_of_the_record(bench: Bench) -> None:
    done = bench.run("--batch")
    notes = [json.loads(note) for (note,) in select("select notes from exchanges")]
    references = [each["reference"].partition("/")[::2] for each in notes]
    assert sorted(references) == sorted(
        (batch.name, name) for batch in bench.server.batches.values() for name, _ in batch.items
    )
    assert "batch-0" not in "".join(text for (text,) in select("select outcome from exchanges"))
    assert done.json["metadata"]["batch"] is True
    rows = select("select model, state, batch_id, requests from batches order by number")
    assert rows == [
        (OPENAI, "read", name, len(batch.items)) for name, batch in bench.server.batches.items()
    ]


@pytest.mark.parametrize(
    "model", ["openai/gpt-4.1-2025-04-14", "anthropic/claude-sonnet-4-20250514"]
)
def test_batched_tokens_cost_half(bench: Bench, model: str) -> None:
    direct = bench.run(model=model).json["cost"]
    batched = bench.run("--batch", model=model).json["cost"]
    assert direct["dollars"] > 0
    assert batched["dollars"] == pytest.approx(direct["dollars"] / 2)
    assert batched["models"][0]["batched"] is True
    shown = bench("show", "last", openai=False).json["cost"]
    assert shown == batched


def test_the_suite_may_say_it_and_an_option_wins(bench: Bench) -> None:
    write()
    suite = Path("suite.yaml")
    suite.write_text(suite.read_text().replace("votes: 1", "votes: 1, batch: true"))
    assert bench("run", "suite.yaml").json["metadata"]["batch"] is True
    assert not bench.server.direct
    assert "batch" not in bench("run", "suite.yaml", "--no-batch").json["metadata"]
    assert bench.server.direct


def test_the_system_under_test_is_asked_directly(bench: Bench) -> None:
    done = bench.run("--batch", more="target: {model: openai/judge-2025-01-01}\n")
    assert done.json["status"] == "finished"
    assert sum(bench.server.direct.values()) == SAMPLES
    roles = dict(select("select role, count(*) from exchanges group by role"))
    assert roles["target"] == SAMPLES
    assert roles["judge"] == sum(bench.server.batched.values())


def test_each_judge_has_batches_of_its_own(bench: Bench) -> None:
    models = f"{OPENAI}, {ANTHROPIC}"
    done = bench.run("--batch", model=models, votes=2)
    assert done.json["status"] == "finished"
    names = list(bench.server.batches)
    assert any(name.startswith("msg") for name in names)
    assert any(name.startswith("batch") for name in names)
    assert bench.run(model=models, votes=2).digest == done.digest


def test_a_full_batch_is_submitted_without_waiting(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurybox.models.batched.Pace", lambda: Pace(idle=0.1, requests=10))
    assert bench.run("--batch").json["status"] == "finished"
    sizes = [len(batch.items) for batch in bench.server.batches.values()]
    assert (sizes[:2], max(sizes)) == ([10, 10], 10)


def test_equal_requests_are_kept_apart(bench: Bench) -> None:
    write()
    rows = [{"id": f"q{n}", "task": "Add 1.", "response": "It is 1."} for n in range(5)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert bench("run", "suite.yaml", "--batch").json["summary"]["samples"] == 5
    assert sum(bench.server.batched.values()) >= 5


@pytest.mark.parametrize("judge", ["python/judges:strict", "replay/calls.jsonl"])
def test_judges_without_batches_are_refused_before_the_first_call(bench: Bench, judge: str) -> None:
    done = bench.run("--batch", "--judge", judge)
    assert done.code == 2
    assert done.err == (
        f"{judge}: the judge can't be asked in batches; ask directly with --no-batch, or name"
        " judges of `anthropic`, `openai`\n"
    )
    assert not bench.server.calls


@pytest.mark.parametrize("status", [404, 501])
@MODELS
def test_a_server_without_batches_stops_the_run_and_says_so(
    bench: Bench, model: str, status: int
) -> None:
    bench.server.refuse = lambda _method, path: status if "/ID" not in path else None
    done = bench.run("--batch", model=model)
    assert done.code == 3
    assert f"it doesn't accept batches (HTTP {status}); ask directly with --no-batch" in done.err
    assert "goes on at the provider" not in done.err
    assert sum(bench.server.calls.values()) == 1


def rate_limited(times: int) -> Item:
    limited = 429, {"error": {"type": "rate_limit_error", "message": "slow down"}}
    return lambda _body, count: limited if count <= times else None


@MODELS
def test_requests_that_were_told_to_slow_down_are_in_the_next_batch(
    bench: Bench, model: str
) -> None:
    direct = bench.run(model=model)
    bench.server.item = rate_limited(2)
    done = bench.run("--batch", model=model)
    assert done.digest == direct.digest
    assert set(bench.server.batched.values()) == {3}


@MODELS
def test_a_request_that_never_gets_through_fails_alone(bench: Bench, model: str) -> None:
    bench.server.item = lambda body, count: (
        rate_limited(99)(body, count) if "Add 3." in json.dumps(body) else None
    )
    done = bench.run("--batch", model=model)
    assert done.json["status"] == "finished"
    assert done.json["summary"]["evaluator_errors"] == {"model_error": 1}
    assert max(bench.server.batched.values()) == 4
    (outcome,) = select("select outcome from exchanges where outcome like '%\"failure\":{%'")
    failure = json.loads(outcome[0])["failure"]
    assert failure["kind"] == "rate-limit"
    assert "HTTP 429: slow down after 4 attempts" in failure["message"]


@MODELS
def test_a_parameter_that_isnt_taken_is_left_out_in_the_next_batch(
    bench: Bench, model: str
) -> None:
    refusal = {"type": "invalid_request_error", "message": "temperature is not supported"}
    bench.server.item = lambda body, _count: (
        (400, {"error": refusal}) if "temperature" in body else None
    )
    direct = bench.run(model=model, votes=3)
    batched = bench.run("--batch", model=model, votes=3)
    assert batched.digest == direct.digest
    assert batched.json["summary"]["evaluator_error_rate"] == 0
    first, *others = bench.server.batches.values()
    assert all("temperature" in body for _, body in first.items)
    assert not any("temperature" in body for batch in others for _, body in batch.items)


@pytest.mark.parametrize("status", [401, 404])
@MODELS
def test_a_fatal_refusal_stops_the_run_and_records_nothing(
    bench: Bench, model: str, status: int
) -> None:
    kind = {401: "authentication_error", 404: "not_found_error"}[status]
    bench.server.item = lambda _body, _count: (status, {"error": {"type": kind, "message": "no"}})
    done = bench.run("--batch", model=model)
    assert done.code == 3
    assert f"HTTP {status}: no" in done.err
    assert select("select count(*) from samples") == [(0,)]
    bench.server.item = lambda _body, _count: None
    assert bench.resume(openai=model != ANTHROPIC).json["status"] == "finished"


@pytest.mark.parametrize("ending", ["expired", "canceled"])
@MODELS
def test_what_a_batch_was_too_late_for_is_in_the_next_one_four_times_in_all(
    bench: Bench, model: str, ending: str
) -> None:
    code = ending if model == ANTHROPIC else f"batch_{ending.replace('led', 'lled')}"
    bench.server.item = lambda body, count: (
        code if count == 1 or "Add 3." in json.dumps(body) else None
    )
    done = bench.run("--batch", model=model)
    assert done.json["status"] == "finished"
    assert done.json["summary"]["evaluator_errors"] == {"model_error": 1}
    assert sorted(set(bench.server.batched.values())) == [2, 4]


def test_a_batch_that_is_refused_as_a_whole_stops_the_run_with_the_reason(bench: Bench) -> None:
    bench.server.fail = lambda _size: ("invalid_json_line", "line 3 is no JSON")
    done = bench.run("--batch")
    assert done.code == 3
    assert "batch batch-0 was refused: line 3 is no JSON" in done.err
    assert "goes on at the provider" not in done.err
    assert select("select state from batches") == [("gone",)]
    bench.server.fail = lambda _size: None
    assert bench.resume().json["status"] == "finished"
    assert bench.once


def test_what_is_too_much_at_once_goes_in_smaller_batches(bench: Bench) -> None:
    bench.server.fail = lambda size: (
        ("token_limit_exceeded", "Enqueued token limit reached") if size > 7 else None
    )
    done = bench.run("--batch")
    assert done.json["status"] == "finished"
    assert "batch-0 of 24 requests was too large (Enqueued token limit reached)" in done.err
    assert bench.once
    bench.server.fail = lambda _size: ("token_limit_exceeded", "Enqueued token limit reached")
    assert "was refused: Enqueued token limit reached" in bench.run("--batch").err


def first_time(change: Mangle) -> Mangle:
    """Return what changes the lines of the first batch only."""
    done: list[bool] = []

    def mangle(lines: list[bytes]) -> list[bytes]:
        if done:
            return lines
        done.append(True)
        return change(lines)

    return mangle


def another(line: bytes) -> bytes:
    return line.replace(b"Because of", b"Regardless of")


@pytest.mark.parametrize(
    ("change", "said", "again"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:40]], "lines that can't be read: 1", 1),
        (lambda lines: [*lines[2:], b"\xff\xfe{]\n", b"\n"], "lines that can't be read: 1", 2),
        (lambda lines: lines[3:], "requests without an answer: 3", 3),
        (lambda _: [], "requests without an answer: 24", 24),
        (
            lambda lines: [*lines, lines[0].replace(b'"custom_id": "', b'"custom_id": "x')],
            "answers to requests that weren't in the batch: 1",
            0,
        ),
        (
            lambda lines: [*lines, another(lines[0])],
            "requests with different answers, none of which is used: 1",
            1,
        ),
        (lambda lines: [*lines, lines[0]], None, 0),
    ],
)
def test_results_that_make_no_sense_are_told_and_never_guessed(
    bench: Bench, change: Mangle, said: str | None, again: int
) -> None:
    # Both providers send a line for each request, which are read by the same code.
    direct = bench.run()
    bench.server.mangle = first_time(change)
    done = bench.run("--batch")
    assert done.digest == direct.digest
    assert [count for count in bench.server.batched.values() if count > 1] == [2] * again
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: batch ")]
    assert any(said in line for line in warnings) if said else not warnings
    assert bench("verify", "last", openai=False).code == 0


def test_answers_that_are_gone_stop_the_run_until_they_are_back(bench: Bench) -> None:
    bench.server.refuse = lambda _method, path: 404 if path.endswith("/content") else None
    done = bench.run("--batch")
    assert done.code == 3
    assert "HTTP 404" in done.err
    assert "batch-0; if it can't be read any more, start a new run with `jurybox run`" in done.err
    assert bench.resume().code == 3
    assert bench.once
    bench.server.refuse = lambda _method, _path: None
    assert bench.resume().json["status"] == "finished"
    assert bench.once


def test_a_provider_that_is_out_of_reach_for_a_while_is_waited_for(bench: Bench) -> None:
    calls = iter(range(100))
    bench.server.refuse = lambda _method, _path: 503 if next(calls) in {0, 2, 3, 6, 8} else None
    done = bench.run("--batch")
    assert done.json["status"] == "finished"
    assert bench.once


def test_a_key_that_is_refused_while_waiting_stops_the_run_and_loses_nothing(bench: Bench) -> None:
    bench.server.refuse = lambda method, path: 401 if (method, path) == LOOK else None
    done = bench.run("--batch")
    assert done.code == 3
    assert "HTTP 401" in done.err
    assert "batch batch-0 (24) continues at the provider" in done.err
    bench.server.refuse = lambda _method, _path: None
    assert bench.resume().json["status"] == "finished"
    assert bench.once


@MODELS
def test_a_batch_whose_name_never_arrived_is_found_and_not_paid_for_twice(
    bench: Bench, model: str
) -> None:
    path = "/v1/batches" if model == OPENAI else "/v1/messages/batches"
    bench.run(model=model)
    bench.server.cut[f"POST {path}"] = 1
    done = bench.run("--batch", model=model)
    assert done.json["status"] == "finished"
    assert bench.once
    assert bench.server.calls[f"GET {path}"] >= 1


def test_a_list_in_which_nothing_can_be_read_is_not_taken_for_an_empty_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch may be behind it, and would be paid for twice."""
    monkeypatch.setattr(
        "jurybox.models.batched.Pace", lambda: Pace(idle=0.05, first=0.01, patience=0.5)
    )
    bench.server.foreign = [None]
    bench.server.cut["POST /v1/batches"] = 1
    done = bench.run("--batch")
    assert done.code == 3
    assert "the answer can't be read" in done.err
    assert bench.once


@MODELS
def test_a_fatal_refusal_throws_away_nothing_that_was_paid_for(bench: Bench, model: str) -> None:
    refusal = 402, {"error": {"type": "billing_error", "message": "pay"}}
    bench.server.item = lambda body, _count: refusal if "Add 20." in json.dumps(body) else None
    done = bench.run("--batch", model=model)
    assert done.code == 3
    assert "HTTP 402: pay" in done.err
    assert select("select count(*) from exchanges") == [(SAMPLES - 1,)]
    bench.server.item = lambda _body, _count: None
    assert bench.resume(openai=model != ANTHROPIC).json["status"] == "finished"
    assert [count for count in bench.server.batched.values() if count > 1] == [2]


def test_a_batch_is_read_where_it_was_submitted(bench: Bench) -> None:
    bench.server.refuse = lambda method, path: 401 if (method, path) == LOOK else None
    bench.run("--batch")
    bench.server.refuse = lambda _method, _path: None
    other = bench.server.url.replace("127.0.0.1", "localhost")
    code = command(["resume", "last", "--base-url", other, "--json"])
    _, err = bench._capsys.readouterr()
    assert code == 3
    assert f"batch batch-0 was submitted to {bench.server.url}, not to {other}" in err
    assert bench.resume().json["status"] == "finished"
    assert bench.once


def test_an_audit_sees_that_a_batch_was_changed(bench: Bench) -> None:
    bench.run("--batch")
    with sqlite3.connect(".jurybox/jurybox.db") as connection:
        connection.execute("update batches set requests = 1")
    connection.close()
    done = bench("verify", "last", openai=False)
    assert done.code == 3
    assert "batch 0: the row was changed after it was written" in done.err


def test_a_server_that_lists_no_batches_leaves_it_to_a_person(bench: Bench) -> None:
    """Whether it took the batch can't be known, and asking again might pay twice."""
    bench.server.cut["POST /v1/batches"] = 1
    bench.server.refuse = lambda method, path: 404 if (method, path) == LIST else None
    done = bench.run("--batch")
    assert done.code == 3
    assert "batch 0, which may or may not have been submitted; if it can't be read any" in done.err
    assert bench.resume().code == 3
    assert bench.once


def downloaded(url: str, path: str, largest: int) -> HttpAnswer:
    async def main() -> HttpAnswer:
        client = HttpClient(url, {}, options=HttpOptions(largest_body=10))
        try:
            return await client.send(HttpCall(path=path, largest=largest))
        finally:
            await client.aclose()

    return asyncio.run(main())


def test_results_may_be_larger_than_answers_but_are_bounded(bench: Bench) -> None:
    bench.run("--batch")
    path = "/files/file-1/content"
    assert downloaded(bench.server.url, path, 10**6).body.count(b"\n") == SAMPLES
    with pytest.raises(ModelError, match=r"the answer is larger than 0 MB") as caught:
        downloaded(bench.server.url, path, 1000)
    assert not caught.value.retry
