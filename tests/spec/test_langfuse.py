"""C18: Langfuse by its real SDK against a server that checks every request, whatever happens to it.

With the SDK of the dev lock; `make test-langfuse4` runs the same with the major before.
"""

import base64
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import Done, call
from jurybox import run
from jurybox.integrations import langfuse_client
from jurybox.integrations.langfuse_client import trace_id
from jurybox.wiring import open_run_store
from langfuse_server import NOW, PUBLIC, SECRET, LangfuseServer, slow

SUITE = """suite: geography
rubric: answer-quality
dataset: {dataset}
{more}
judge:
  models: [python/judge:strict]
"""
TARGET = """unused: [context]
target:
  model: python/judge:capital
  prompt: langfuse:ask/capital@{version}
"""
ANSWERS = '\n\ndef capital(prompt):\n    return "The capital of Australia is Canberra."\n'
LOGIN = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
QUESTION = "What is the capital of Australia?"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(langfuse_client._REQUEST, "max_retries", 0)
    monkeypatch.setitem(langfuse_client._TRACE_REQUEST, "max_retries", 0)
    # The server here speaks plain HTTP; the SDK reads all authorities anew for each of its clients.
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LangfuseServer]:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "init").code == 0
    judge = Path("judge.py")
    judge.write_text(judge.read_text() + ANSWERS)
    with LangfuseServer() as started:
        for name, value in started.environment.items():
            monkeypatch.setenv(name, value)
        yield started
    assert started.wrong == []


class Jurybox:
    """Calls commands; no secret is ever in what they print or store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str) -> Done:
        done = call(self._monkeypatch, *arguments)
        for path in (*Path(".jurybox").rglob("*"),):
            kept = b"" if path.is_dir() else path.read_bytes()
            assert not any(part.encode() in kept for part in (SECRET[6:20], LOGIN[10:30]))
        for hidden in (SECRET, SECRET[6:20], LOGIN, LOGIN[10:30]):
            assert hidden not in done.out + done.err
        return done


@pytest.fixture
def jurybox(monkeypatch: pytest.MonkeyPatch) -> Jurybox:
    return Jurybox(monkeypatch)


def item(number: int, given: object, expected: object = "Canberra") -> dict[str, Any]:
    of = {"datasetId": "ds-1", "datasetName": "geo/capitals", "mediaReferences": []}
    dates = {"createdAt": NOW, "updatedAt": NOW}
    own = {"id": f"item-{number}", "status": "ACTIVE", "metadata": {"level": number}}
    return {**own, **of, **dates, "input": given, "expectedOutput": expected}


def prompt(version: int, *labels: str, text: object = "Answer: {{task}}") -> dict[str, Any]:
    kind = "text" if isinstance(text, str) else "chat"
    own = {"name": "ask/capital", "version": version, "labels": list(labels)}
    return {"type": kind, "prompt": text, **own, "config": {}, "tags": []}


def write_suite(dataset: str = "questions.jsonl", more: str = "") -> None:
    Path("suite.yaml").write_text(SUITE.format(dataset=dataset, more=more))


def only_run() -> str:
    with_store = open_run_store()
    (run,) = with_store.runs()
    with_store.close()
    return run.id


def roots(server: LangfuseServer) -> dict[str, dict[str, Any]]:
    return {trace: span for (trace, _), span in server.spans.items() if "parentSpanId" not in span}


def assert_all_there_once(server: LangfuseServer, samples: int = 6) -> None:
    """Nothing lost, nothing doubled: by ids, and by what a person would count."""
    run = only_run()
    traces = {trace_id(run, number) for number in range(samples)}
    assert roots(server).keys() == traces
    calls = [span for span in server.spans.values() if span["name"] == "judge"]
    assert len(calls) == samples
    of_samples = [score for score in server.scores.values() if "traceId" in score]
    names = [(score["traceId"], score["name"]) for score in of_samples]
    assert len(names) == len(set(names))
    assert {trace for trace, name in names if name == "accuracy_score"} == traces
    assert len(server.queue) == len(set(server.queue))


def test_nothing_is_sent_unless_it_is_asked_for(server: LangfuseServer, jurybox: Jurybox) -> None:
    write_suite()
    jurybox("run", "suite.yaml")
    assert server.asked == []
    assert "no run was scheduled" in jurybox("langfuse", "status").out


def test_a_prompt_is_fetched_once_by_its_label_and_pinned(
    server: LangfuseServer, jurybox: Jurybox
) -> None:
    server.prompts = {"1": prompt(1, text="Old: {{task}}"), "2": prompt(2, "production")}
    write_suite(more=TARGET.format(version="production"))
    done = jurybox("run", "suite.yaml", "--json")
    assert server.asked == ["GET /api/public/v2/prompts/ask/capital"]
    metadata: Any = done.json["metadata"]
    assert metadata["prompt_template_id"] == "langfuse:ask/capital@2"
    sample: Any = jurybox("show", "last", "--sample", "capital", "--json").json
    assert f"Answer: {QUESTION}" in sample["exchanges"][0]["request"]
    by_label = metadata["prompt_template_version_or_hash"]
    write_suite(more=TARGET.format(version="2"))
    by_number: Any = jurybox("run", "suite.yaml", "--json").json["metadata"]
    assert by_number["prompt_template_version_or_hash"] == by_label
    write_suite(more=TARGET.format(version="1"))
    older: Any = jurybox("run", "suite.yaml", "--json").json["metadata"]
    assert older["prompt_template_version_or_hash"] != by_label


def test_a_chat_prompt_brings_its_system_message(server: LangfuseServer, jurybox: Jurybox) -> None:
    said = [("system", "Be brief."), ("user", "Answer: {{task}}")]
    messages = [{"type": "chatmessage", "role": role, "content": text} for role, text in said]
    server.prompts = {"1": prompt(1, text=messages)}
    write_suite(more=TARGET.format(version="1"))
    jurybox("run", "suite.yaml")
    sample: Any = jurybox("show", "last", "--sample", "capital", "--json").json
    assert "Be brief." in sample["exchanges"][0]["request"]


def test_a_missing_prompt_and_a_missing_key_are_errors_before_the_first_call(
    server: LangfuseServer, jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(more=TARGET.format(version="9"))
    done = jurybox("run", "suite.yaml")
    assert done.code == 2
    assert "langfuse:ask/capital@9: HTTP 404: Prompt not found" in done.err
    server.stop()
    done = jurybox("run", "suite.yaml")
    assert (done.code, "Langfuse can't be reached" in done.err) == (3, True)
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    write_suite(more="langfuse: true")
    done = jurybox("run", "suite.yaml")
    assert done.code == 2
    assert "LANGFUSE_SECRET_KEY is not set" in done.err


def test_a_dataset_is_a_dataset_run_per_repeat_with_its_version(
    server: LangfuseServer, jurybox: Jurybox
) -> None:
    server.items = [
        item(1, {"question": QUESTION, "context": "Canberra is the capital of Australia."}),
        item(2, QUESTION),
        item(3, [{"role": "user", "content": "Hi"}, {"role": "user", "content": QUESTION}]),
        {**item(4, "archived"), "status": "ARCHIVED"},
        *(item(number, f"{QUESTION} {number}") for number in range(5, 205)),
    ]
    target = "target: python/judge:capital\nunused: [context]\nlangfuse: true\nrepeats: 2"
    write_suite("langfuse:geo/capitals", target)
    done = jurybox("run", "suite.yaml", "--json", "--limit", "3", "--allow-unpinned")
    metadata: Any = done.json["metadata"]
    assert metadata["dataset_id"].startswith("langfuse:geo/capitals@20")
    assert metadata["dataset_rows"] == 203
    run = only_run()
    names = {f"geography {run} #{repeat}" for repeat in (1, 2)}
    of_runs = [each for each in server.scores.values() if "datasetRunId" in each]
    by_run = {each["datasetRunId"] for each in of_runs}
    assert len(by_run) == 2
    assert {each["value"] for each in of_runs if each["name"] == "accuracy_mean"} == {2}
    if server.links:
        assert {each["runName"] for each in server.links} == names
        linked = [(each["runName"], each["datasetItemId"]) for each in server.links]
        assert {each["datasetRunId"] for each in server.links} == by_run
    else:
        given = [span["attributes"] for span in roots(server).values()]
        told = [{key: value.get("stringValue") for key, value in each.items()} for each in given]
        assert {each["langfuse.experiment.name"] for each in told} == names
        assert {each["langfuse.experiment.id"] for each in told} == by_run
        linked = [
            (each["langfuse.experiment.name"], each["langfuse.experiment.item.id"]) for each in told
        ]
    assert sorted(linked) == sorted((name, f"item-{n}") for name in names for n in (1, 2, 3))
    assert_all_there_once(server)


def test_a_suite_that_asks_for_it_is_delivered_after_its_verdict(
    server: LangfuseServer, jurybox: Jurybox
) -> None:
    server.prompts = {"2": prompt(2, "production")}
    more = TARGET.format(version="production") + "langfuse:\n  queue: to-review"
    write_suite(more=more)
    done = jurybox("run", "suite.yaml")
    assert "delivered" in done.err
    assert_all_there_once(server)
    (capital,) = [each for each in roots(server).values() if each["name"] == "sample capital"]
    calls = [
        each for each in server.spans.values() if each.get("parentSpanId") == capital["spanId"]
    ]
    assert sorted(each["name"] for each in calls) == ["judge", "target"]
    target = next(each["attributes"] for each in calls if each["name"] == "target")
    assert target["langfuse.observation.prompt.name"] == {"stringValue": "ask/capital"}
    assert target["langfuse.observation.prompt.version"] == {"intValue": 2}
    assert target["langfuse.observation.output"]["stringValue"].endswith("Canberra.")
    for each in (capital, *calls):
        assert int(each["startTimeUnixNano"]) <= int(each["endTimeUnixNano"])
    kinds = {each["name"]: each["dataType"] for each in server.scores.values()}
    assert (kinds["accuracy_score"], kinds["passed"]) == ("NUMERIC", "BOOLEAN")


def test_flagged_samples_go_into_the_queue_once(server: LangfuseServer, jurybox: Jurybox) -> None:
    judge = Path("judge.py")
    judge.write_text(judge.read_text() + '\n\ndef broken(prompt):\n    return "no verdict"\n')
    write_suite()
    jurybox("run", "suite.yaml", "--judge", "python/judge:broken")
    for _ in range(2):
        assert jurybox("langfuse", "push", "last", "--queue", "to-review").code == 0
    run = only_run()
    assert sorted(server.queue) == sorted(trace_id(run, number) for number in range(6))
    assert jurybox("langfuse", "push", "last", "--queue", "nobodys").code == 3
    assert "no annotation queue nobodys" in jurybox("langfuse", "status", "--json").out


def test_what_people_scored_comes_back_as_reviews_once(
    server: LangfuseServer, jurybox: Jurybox
) -> None:
    write_suite()
    jurybox("run", "suite.yaml")
    run = only_run()

    def score(name: str, value: object, number: int = 0, kind: str = "NUMERIC") -> dict[str, Any]:
        of = {"subject": {"kind": "trace", "id": trace_id(run, number)}, "authorUserId": "u1"}
        dates = {"timestamp": NOW, "createdAt": NOW, "updatedAt": NOW}
        own = {"id": f"{name} {number}", "projectId": "p", "environment": "default"}
        more = {"source": "ANNOTATION", "comment": "looks right", "queueId": "q-1"}
        return {**own, **of, **dates, **more, "name": name, "value": value, "dataType": kind}

    server.annotations = [
        score("accuracy_score", 2),
        score("faithfulness_score", 1),
        score("accuracy_score", 7, number=1),
        score("charm", 1, number=2),
    ]
    done = jurybox("langfuse", "pull", "last")
    assert done.out == "1 new review, 0 already known\n"
    assert "skipped: sample 1, u1" in done.err
    assert "none of these scores has the name of a criterion: charm" in done.err
    store = open_run_store()
    (row,) = store.reviews(run)
    store.close()
    assert (row.number, row.reviewer, row.comment) == (0, "langfuse:u1", "looks right")
    assert '"accuracy_score":2' in row.verdict
    assert '"blind":false' in row.verdict
    assert jurybox("langfuse", "pull", "last").out == "0 new reviews, 1 already known\n"
    server.annotations[0]["value"] = 1
    assert jurybox("langfuse", "pull", "last").out == "1 new review, 0 already known\n"


def test_a_server_that_is_down_costs_no_verdict_and_loses_nothing(
    server: LangfuseServer, jurybox: Jurybox
) -> None:
    write_suite(more="langfuse: true")
    server.stop()
    done = jurybox("run", "suite.yaml", "--json")
    assert done.code == 1  # the gates of the starter fail, delivered or not
    assert done.json["status"] == "finished"
    assert "12 waiting (Langfuse can't be reached" in done.err
    assert jurybox("langfuse", "push").code == 3
    server.start()
    assert jurybox("langfuse", "push").code == 0
    assert_all_there_once(server)
    before = len(server.asked)
    assert jurybox("langfuse", "push").code == 0
    assert len(server.asked) == before


def test_a_slow_server_delays_no_verdict(
    server: LangfuseServer, jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(more="langfuse: true")
    server.fault = slow(1)
    with monkeypatch.context() as hasty:
        hasty.setitem(langfuse_client._REQUEST, "timeout_in_seconds", 0.2)
        hasty.setitem(langfuse_client._TRACE_REQUEST, "timeout_in_seconds", 0.2)
        done = jurybox("run", "suite.yaml")
    assert "waiting (Langfuse can't be reached (ReadTimeout" in done.err
    server.fault = lambda *_: None
    assert jurybox("langfuse", "push").code == 0
    assert_all_there_once(server)


@pytest.mark.parametrize(("status", "said"), [(401, "HTTP 401"), (429, "HTTP 429")])
def test_refused_keys_and_rate_limits_keep_everything(
    server: LangfuseServer, jurybox: Jurybox, status: int, said: str
) -> None:
    write_suite()
    jurybox("run", "suite.yaml")
    server.fault = lambda *_: (status, {"message": f"no, {SECRET} and {LOGIN}"})
    done = jurybox("langfuse", "push", "last")
    assert (done.code, said in done.err) == (3, True)
    assert said in jurybox("langfuse", "status").out
    state: Any = jurybox("langfuse", "status", "--json").json
    assert (state["runs"][0]["pending"], state["runs"][0]["sent"]) == (12, 0)
    server.fault = lambda *_: None
    assert jurybox("langfuse", "push").code == 0
    assert_all_there_once(server)


def test_a_score_that_is_rejected_is_reported_kept_and_sent_again(
    server: LangfuseServer, jurybox: Jurybox
) -> None:
    write_suite()
    jurybox("run", "suite.yaml")
    run = only_run()
    refused = trace_id(run, 2)
    server.reject = lambda score: (
        "value out of range" if (score.get("traceId"), score["name"]) == (refused, "accuracy_score")
        else None
    )  # fmt: skip
    done = jurybox("langfuse", "push", "last")
    assert (done.code, "1 rejected and kept" in done.err) == (3, True)
    assert "scores were rejected: value out of range" in jurybox("langfuse", "status", "--json").out
    kept = {
        score["traceId"] for score in server.scores.values() if score["name"] == "accuracy_score"
    }
    assert len(kept) == 5
    server.reject = lambda _: None
    assert jurybox("langfuse", "push").code == 0
    assert_all_there_once(server)


@pytest.mark.parametrize("at", range(1, 12, 3))
def test_a_server_that_goes_away_in_the_middle_loses_and_doubles_nothing(
    server: LangfuseServer, jurybox: Jurybox, at: int
) -> None:
    write_suite()
    jurybox("run", "suite.yaml")
    answered: list[str] = []

    def after(method: str, path: str) -> tuple[int, object] | None:
        answered.append(path)
        # What was asked is done, but the answer never comes.
        return (0, None) if method == "POST" and len(answered) >= at else None

    server.after = after
    assert jurybox("langfuse", "push", "last", "--queue", "to-review").code == 3
    server.stop()
    assert jurybox("langfuse", "push").code == 3
    server.after = lambda *_: None
    server.start()
    assert jurybox("langfuse", "push").code == 0
    assert_all_there_once(server)


def test_d5_the_runs_of_all_targets_are_delivered(server: LangfuseServer, jurybox: Jurybox) -> None:
    targets = "targets: [{name: one, model: 'python/judge:capital', prompt: '{{task}}'},"
    targets += " {name: two, model: 'python/judge:capital', prompt: 'Say: {{task}}'}]"
    write_suite(more=f"langfuse: true\nunused: [context]\n{targets}")
    done = jurybox("run", "suite.yaml", "--json")
    found: Any = done.json["runs"]
    runs = {each["run_id"] for each in found}
    assert len(runs) == 2
    wanted = {trace_id(run, number) for run in runs for number in range(6)}
    assert roots(server).keys() == wanted
    assert done.err.count("delivered") == 2


@pytest.mark.usefixtures("jurybox")
def test_d9_a_run_from_python_is_delivered(server: LangfuseServer) -> None:
    write_suite(more="langfuse: true")
    run("suite.yaml")
    assert_all_there_once(server)


@pytest.mark.usefixtures("jurybox")
def test_d9_what_python_could_not_deliver_is_a_warning(server: LangfuseServer) -> None:
    write_suite(more="langfuse: true")
    server.stop()
    with pytest.warns(UserWarning, match="langfuse: .* waiting"):
        run("suite.yaml")
