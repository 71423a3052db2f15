"""A9 to A13: what a run writes down, refuses, repeats and can show again."""

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jurybox
from jurybox.app.prepare import prepare
from jurybox.app.rescore_run import rescore_run
from jurybox.app.run_suite import resume_run, start_run
from jurybox.app.suite_choice import RunOptions
from jurybox.engine.records import RunRow
from jurybox.errors import IncompleteError, InputError
from jurybox.reporting.view import RunView
from jurybox.storage.audit import audit
from jurybox.storage.store import Store
from jurybox.wiring import find_run, open_run_store

ROWS = [
    {
        "id": f"q{number}",
        "task": f"Task {number}",
        "reference": "right",
        "response": "right" if number % 2 else "wrong",
        "latency_e2e_ms": 1000 * number,
        "input_tokens": 100,
        "output_tokens": 10,
    }
    for number in range(1, 5)
]
JUDGE = """
from jurybox.judging.flow import ModelReply

ASKED = []

def strict(request):
    ASKED.append(request)
    good = "candidate_answer: right" in request.messages[-1].content
    text = '{"accuracy_score": %d, "faithfulness_score": 2, "rationale": "so"}' % (2 * good)
    return ModelReply(text=text, model="build-%d" % (1 + len(ASKED) // 3), sent=request.generation)

def respond(request):
    return "right"
"""
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, request: pytest.FixtureRequest) -> Write:
    """Write a suite beside its dataset and a judge of its own."""
    # Modules stay loaded, so each test has one of its own.
    module = "judge_" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]

    def written(rows: list[dict[str, Any]] | None = None, **changes: object) -> Path:
        (tmp_path / f"{module}.py").write_text(JUDGE)
        lines = "".join(json.dumps(row) + "\n" for row in (ROWS if rows is None else rows))
        (tmp_path / "rows.jsonl").write_text(lines)
        suite: dict[str, object] = {
            "suite": "spec",
            "rubric": "answer-quality",
            "dataset": "rows.jsonl",
            "judge": {"models": [f"python/{module}:strict"]},
            **changes,
        }
        for key, value in suite.items():
            if value == "respond":
                suite[key] = {"model": f"python/{module}:respond"}
        # JSON is YAML too.
        (tmp_path / "suite.yaml").write_text(
            "".join(f"{k}: {json.dumps(v)}\n" for k, v in suite.items() if v is not None)
        )
        return tmp_path / "suite.yaml"

    return written


def opened() -> tuple[Store, RunRow]:
    store = open_run_store()
    return store, find_run(store, "last")


def metadata(view: RunView) -> dict[str, Any]:
    return view.metadata


def test_a11_all_fourteen_fields_are_there(write: Write, tmp_path: Path) -> None:
    view = jurybox.run(write())
    found = metadata(view)
    assert {
        "run_id",
        "timestamp_utc",
        "dataset_id",
        "dataset_version_or_hash",
        "model_id",
        "model_version",
        "evaluator_model_id",
        "evaluator_model_version",
        "prompt_template_id",
        "prompt_template_version_or_hash",
        "evaluator_prompt_template_version_or_hash",
        "generation_params",
        "code_version",
        "environment",
    } <= set(found)
    assert found["run_id"] == view.run_id
    assert found["dataset_id"] == "rows.jsonl"
    digest = hashlib.sha256((tmp_path / "rows.jsonl").read_bytes()).hexdigest()
    assert found["dataset_version_or_hash"] == f"sha256:{digest}"
    assert found["model_id"] == "recorded"
    template = jurybox.load_rubric("answer-quality").template
    assert template is not None
    expected = hashlib.sha256(template.text.encode()).hexdigest()
    assert found["evaluator_prompt_template_version_or_hash"] == f"sha256:{expected}"
    assert found["rubric"]["sha256"] == jurybox.load_rubric("answer-quality").sha256
    assert found["environment"]["jurybox"] == jurybox.__version__


def test_a11_metadata_is_stored_before_the_first_call(write: Write, tmp_path: Path) -> None:
    suite = write()
    looks = """
from jurybox.wiring import open_run_store
SEEN = []
def strict(prompt):
    SEEN.extend(open_run_store().runs())
    return '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "so"}'
"""
    (tmp_path / "looking_judge.py").write_text(looks)
    jurybox.run(suite, judges="python/looking_judge:strict")
    import looking_judge  # type: ignore[import-not-found]

    first = looking_judge.SEEN[0]
    assert first.status == "running"
    assert json.loads(first.metadata)["run_id"] == first.id


def test_a11_the_code_version_is_the_commit_and_says_when_it_is_dirty(
    write: Write, tmp_path: Path
) -> None:
    suite = write()
    assert metadata(jurybox.run(suite))["code_version"] is None
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "suite.yaml"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.strip()
    assert metadata(jurybox.run(suite))["code_version"] == head
    suite.write_text(suite.read_text() + "# changed\n")
    assert metadata(jurybox.run(suite))["code_version"] == f"{head}-dirty"


def test_a9_the_defaults_of_the_document_and_what_was_overridden(write: Write) -> None:
    usual = {"temperature": 0, "top_p": 1, "max_tokens": 1024, "seed": 42}
    nothing = {"overrides": {}, "refused": {}, "not_supported": {}}
    params = metadata(jurybox.run(write()))["generation_params"]
    assert params == {"target": None, "judge": {**usual, **nothing}}
    suite = write(target="respond")
    warm = suite.read_text().replace(':respond"}', ':respond", "generation": {"temperature": 0.5}}')
    suite.write_text(warm)
    with pytest.warns(UserWarning, match="the target makes new ones"):
        run = jurybox.run(suite)
    assert metadata(run)["generation_params"] == {
        "target": {**usual, **nothing, "temperature": 0.5, "overrides": {"temperature": 0.5}},
        "judge": {**usual, **nothing},
    }


@pytest.mark.parametrize("name", ["openai/gpt-latest", "openai/gpt@latest", "openai/latest-gpt"])
def test_a10_latest_is_refused_whatever_is_allowed(write: Write, name: str) -> None:
    with pytest.raises(InputError, match="latest"):
        jurybox.run(write(), judges=name, allow_unpinned=True)


def test_a10_an_unpinned_name_needs_to_be_allowed(write: Write) -> None:
    with pytest.raises(InputError, match="--allow-unpinned"):
        jurybox.run(write(), judges="openai/gpt-4o")
    with pytest.raises(InputError, match="--allow-unpinned"):
        jurybox.run(write(target={"model": "openai/gpt-4o"}))
    assert not Path(".jurybox").exists()


def test_a10_a_version_that_changes_midway_is_said(write: Write) -> None:
    view = jurybox.run(write())
    assert view.conclusion.versions_changed
    assert any("changed its version during the run: build-1" in note for note in view.notes)
    assert set(view.as_data()["reported_versions"]) == {metadata(view)["evaluator_model_id"]}


def test_a12_repeats_come_from_the_option_the_suite_or_the_rubric(write: Write) -> None:
    assert jurybox.run(write(variance_sensitive=True)).planned == 4 * 3
    assert jurybox.run(write(variance_sensitive=True, repeats=2)).planned == 4 * 2
    view = jurybox.run(write(repeats=2), repeats=4)
    assert view.planned == 4 * 4
    spread = view.summary["repeats"]["aggregate_score"]
    assert len(spread["values"]) == 4
    assert spread["sd"] == 0


def test_a13_every_raw_request_and_reply_is_stored_and_verified(write: Write) -> None:
    view = jurybox.run(write())
    store, run = opened()
    exchanges = list(store.exchanges(run.id))
    assert len(exchanges) == 4
    for exchange in exchanges:
        assert "You are a strict evaluation judge" in exchange.request
        assert "accuracy_score" in exchange.outcome
    found = audit(store, run)
    assert found.difference is None
    assert (found.samples, found.exchanges, found.digest) == (4, 4, view.digest)


def test_a13_the_digest_doesnt_depend_on_when_or_in_which_order(write: Write) -> None:
    suite = write()
    # The build that the judge reports would differ from run to run.
    judge = next(suite.parent.glob("judge_*.py"))
    judge.write_text(judge.read_text().replace('"build-%d" % (1 + len(ASKED) // 3)', '"build"'))
    first = jurybox.run(suite)
    second = jurybox.run(suite, concurrency=1)
    assert first.digest == second.digest
    assert first.run_id != second.run_id
    other = jurybox.run(write(rows=ROWS[:3]))
    assert other.digest != first.digest


def test_e9_votes_that_cant_change_the_outcome_are_neither_asked_nor_paid_for(
    write: Write,
) -> None:
    suite = write()
    module = json.loads(suite.read_text().partition("judge: ")[2].partition("\n")[0])["models"]
    judge = {"models": module, "votes": 3, "stop_when_decided": True}
    view = jurybox.run(write(judge=judge))
    assert view.summary["skipped_votes"] == len(ROWS)
    assert view.summary["unscored_votes"] == 0
    assert metadata(view)["stop_when_decided"] is True
    assert view.cost["models"][0]["calls"] == 2 * len(ROWS)
    assert any("4 votes were not requested" in note for note in view.notes)
    store, run = opened()
    assert audit(store, run).difference is None
    store.close()


def test_a_limit_uses_the_first_rows_and_the_hash_is_of_the_whole_file(write: Write) -> None:
    view = jurybox.run(write(), limit=2)
    store, run = opened()
    assert [sample.sample_id for sample in store.samples(run.id)] == ["q1", "q2"]
    whole = jurybox.run(write())
    key = "dataset_version_or_hash"
    assert metadata(view)[key] == metadata(whole)[key]


def test_a_target_is_asked_and_measured(write: Write) -> None:
    rows = [{"id": "a", "task": "Say it.", "reference": "right", "context": "Say right."}]
    view = jurybox.run(write(rows=rows, target="respond"))
    assert view.summary["accuracy_mean"] == 2
    assert view.summary["latency_e2e_p50_ms"] > 0
    store, run = opened()
    first, second = store.exchanges_of(run.id, 0)
    assert (first.role, second.role) == ("target", "judge")
    assert json.loads(first.request)["messages"][-1]["content"] == "Say right.\n\nSay it."
    assert audit(store, run).difference is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"judge": None}, "no judge was given"),
        ({"rubric": "no-such"}, "no such rubric"),
        ({"dataset": "gone.jsonl"}, "no such file"),
        ({"judge": {"models": ["anthropic/claude-sonnet-4-20250514"]}}, "ANTHROPIC_API_KEY"),
        ({"judge": {"models": ["python/nowhere:judge"]}}, "can't be imported"),
        ({"target": {"model": "openai/x-2025-01-01", "prompt": "gone.md"}}, "no such file"),
    ],
)
def test_what_cant_be_used_is_refused_before_anything_is_stored(
    write: Write, changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        jurybox.run(write(**changes))
    assert not Path(".jurybox").exists()


def test_a_prompt_may_not_show_what_the_answer_is_held_against(
    write: Write, tmp_path: Path
) -> None:
    (tmp_path / "prompt.md").write_text("{{task}} {{reference}}")
    target = {"model": "openai/x-2025-01-01", "prompt": "prompt.md"}
    with pytest.raises(InputError, match="what it is compared with"):
        jurybox.run(write(target=target))


def test_rescoring_reads_the_same_replies_under_other_rules(write: Write, tmp_path: Path) -> None:
    first = jurybox.run(write())
    assert first.summary["pass_rate"] == 0.5
    document = jurybox.load_rubric("answer-quality")
    text = jurybox.render_rubric(document).replace("accuracy_score >= 1", "accuracy_score >= 0")
    (tmp_path / "lenient.md").write_text(text.replace("version: 1.0.0", "version: 2.0.0"))
    store, run = opened()
    again = rescore_run(run, "lenient.md", store).view
    assert again.summary["pass_rate"] == 1
    assert again.derived_from == first.run_id
    assert again.cost["dollars"] == 0
    assert audit(store, find_run(store, again.run_id)).difference is None
    # The run itself is what it was.
    assert audit(store, run).difference is None


def test_a11_a_rescored_run_has_the_versions_of_the_models_that_replied(
    write: Write, tmp_path: Path
) -> None:
    rows = [{"id": "q1", "task": "Task", "reference": "right"}]
    before = metadata(jurybox.run(write(rows=rows, target="respond")))
    for file in tmp_path.glob("judge_*.py"):
        file.write_text(f"{JUDGE}# changed since\n")
    text = jurybox.render_rubric(jurybox.load_rubric("answer-quality"))
    (tmp_path / "next.md").write_text(text.replace("version: 1.0.0", "version: 2.0.0"))
    store, run = opened()
    again = metadata(rescore_run(run, "next.md", store).view)
    for field in ("model_version", "evaluator_model_version"):
        assert again[field] == before[field]
        assert str(again[field]).startswith("sha256:")
        assert field not in again["not_known"]


def test_rescoring_needs_replies_about_the_same_things(write: Write, tmp_path: Path) -> None:
    jurybox.run(write())
    store, run = opened()
    with pytest.raises(InputError, match="format"):
        rescore_run(run, "general", store)
    text = jurybox.render_rubric(jurybox.load_rubric("answer-quality"))
    (tmp_path / "other.md").write_text(text.replace("`faithfulness_score`", "`trust_score`"))
    with pytest.raises(InputError):
        rescore_run(run, "other.md", store)


@pytest.mark.parametrize("judged", [True, False])
def test_a_dataset_that_changes_meanwhile_spoils_the_run_for_good(
    write: Write, tmp_path: Path, *, judged: bool
) -> None:
    # So many that some are finished before the last one is read.
    rows = [{**ROWS[0], "id": f"q{number}"} for number in range(1, 41)]
    changes = {"concurrency": 1} if judged else {"rubric": "companion", "judge": None}
    suite = write(rows=rows, **changes)
    file = tmp_path / "rows.jsonl"
    before = file.read_bytes()
    prepared = prepare(suite, RunOptions())
    # As long as before, so that only the hash tells.
    file.write_bytes(before.replace(b"Task", b"Tusk"))
    store = open_run_store(create=True)
    ended = start_run(prepared, store)
    assert "the dataset changed during the run" in (ended.stopped or "")
    assert ended.view.status == "stopped"
    file.write_bytes(before)
    with pytest.raises(InputError, match="different version of the dataset: line 1, sample `q1`"):
        resume_run(find_run(store, "last"), store)


def test_a_judge_of_ones_own_is_known_by_its_file(write: Write, tmp_path: Path) -> None:
    view = jurybox.run(write())
    digest = hashlib.sha256(next(tmp_path.glob("judge_*.py")).read_bytes()).hexdigest()
    assert metadata(view)["evaluator_model_version"] == f"sha256:{digest}"


def test_a_run_whose_judge_is_gone_stops_and_can_be_resumed(write: Write) -> None:
    with pytest.raises(IncompleteError, match="jurybox resume"):
        jurybox.run(write(), judges="openai/judge-2025-01-01", base_url="http://127.0.0.1:9/v1")
    store, run = opened()
    assert run.status == "stopped"
    assert list(store.samples(run.id)) == []
