"""D8: what a run would cost, a limit on it, and which rows it uses."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from commands import Done, call
from judge_server import JudgeServer, answer_or_praise

Jurybox = Callable[..., Done]
PRICES = {
    "openai/judge": {"input": 10.0, "output": 1000.0},
    "openai/bot": {"input": 1.0, "output": 0.0},
}
# The judge's replies have 100 tokens in and 20 out, as their server says.
ONE_CALL = (100 * 10 + 20 * 1000) / 1_000_000


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(answer_or_praise).running() as running:
        yield running


@pytest.fixture
def jurybox(monkeypatch: pytest.MonkeyPatch, server: JudgeServer, tmp_path: Path) -> Jurybox:
    rows = [
        {
            "id": f"q{n}",
            "task": f"Task {n}",
            "scenario": "basic" if n % 2 else "hard",
            "level": n % 3,
        }
        for n in range(6)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "prices.json").write_text(json.dumps(PRICES))
    (tmp_path / "suite.yaml").write_text(
        "suite: s\nrubric: general\ndataset: rows.jsonl\ntarget: openai/bot@1\n"
        "judge: {models: [openai/judge@1], votes: 2}\n"
    )
    server.model = None
    return partial(
        call, monkeypatch, OPENAI_BASE_URL=server.url, JURYBOX_PRICES=str(tmp_path / "prices.json")
    )


def test_a_dry_run_counts_calls_tokens_and_cost_and_asks_nothing(
    jurybox: Jurybox, server: JudgeServer
) -> None:
    done = jurybox("run", "suite.yaml", "--dry-run", "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert (data["samples"], data["calls"]) == (6, 18)
    judge, bot = data["models"]
    assert (judge["model"], judge["role"], judge["calls"]) == ("openai/judge@1", "judge", 12)
    assert (bot["model"], bot["role"], bot["calls"]) == ("openai/bot@1", "target", 6)
    # Six prompts of six letters, and nobody knows how long the answers are.
    assert bot["input_tokens"] == 6 * 2
    assert judge["most_output_tokens"] == 12 * 1024
    expected = (judge["input_tokens"] * 10 + bot["input_tokens"]) / 1_000_000
    assert data["dollars"] == pytest.approx(expected)
    assert data["most_dollars"] == pytest.approx(expected + 12 * 1024 * 1000 / 1_000_000)
    assert (server.requests, Path(".jurybox").exists()) == (0, False)
    text = jurybox("run", "suite.yaml", "--dry-run", "--limit", "2").out
    assert "2 samples, 6 calls" in text
    assert "openai/judge@1" in text


def test_a_price_that_is_not_known_is_said(jurybox: Jurybox) -> None:
    Path("prices.json").write_text("{}")
    data = json.loads(jurybox("run", "suite.yaml", "--dry-run", "--json").out)
    assert (data["dollars"], data["most_dollars"]) == (None, None)
    done = jurybox("run", "suite.yaml", "--max-cost", "1")
    assert done.code == 2
    assert "openai/bot@1: its price is not known" in done.err


def test_a_run_stops_before_it_costs_too_much_and_can_be_resumed(
    jurybox: Jurybox, server: JudgeServer
) -> None:
    # Enough for one call in flight at its worst, and a few at what they really cost.
    most = 1.2 + 4 * ONE_CALL
    done = jurybox("run", "suite.yaml", "--max-cost", str(most), "--json")
    assert done.code == 3
    data = json.loads(done.out)
    assert data["status"] == "stopped"
    assert data["metadata"]["max_cost"] == most
    assert "--max-cost" in done.err
    judged = server.requests
    assert 0 < judged < 18
    again = jurybox("resume", "last")
    assert again.code == 3
    assert server.requests == judged
    finished = jurybox("resume", "last", "--max-cost", "5", "--json")
    assert finished.code in {0, 1}, finished.err
    data = json.loads(finished.out)
    assert (data["status"], data["metadata"]["max_cost"]) == ("finished", 5)
    assert data["cost"]["dollars"] == pytest.approx(12 * ONE_CALL + 6 * 100 / 1_000_000)
    # Nothing was paid for twice.
    assert set(server.asked.values()) <= {1, 2}
    assert server.requests == 18
    assert jurybox("verify", "last").code == 0


def test_prices_that_cannot_be_read_leave_no_run(jurybox: Jurybox) -> None:
    Path("prices.json").unlink()
    done = jurybox("run", "suite.yaml")
    assert (done.code, "prices.json: can't be read" in done.err) == (2, True)
    assert not Path(".jurybox").exists()


def test_all_targets_together_cost_no_more(jurybox: Jurybox) -> None:
    suite = Path("suite.yaml").read_text()
    two = "targets: [{name: a, model: openai/bot@1}, {name: b, model: openai/bot@1}]"
    Path("suite.yaml").write_text(suite.replace("target: openai/bot@1", two))
    # Enough for one target, with a call in flight at its worst, and not for two.
    most = 1.75
    done = jurybox("run", "suite.yaml", "--max-cost", str(most), "--json")
    runs = json.loads(done.out)["runs"]
    assert [each["status"] for each in runs] == ["finished", "stopped"]
    spent = sum(each["cost"]["dollars"] for each in runs)
    assert spent <= most
    rest = most - runs[0]["cost"]["dollars"]
    assert runs[1]["metadata"]["max_cost"] == pytest.approx(rest)


def test_a_filter_chooses_rows_by_their_fields(jurybox: Jurybox) -> None:
    done = jurybox(
        "run", "suite.yaml", "--filter", "scenario=basic", "--filter", "level=1", "--json"
    )
    data = json.loads(done.out)
    assert data["summary"]["samples"] == 1
    assert data["metadata"]["filter"] == ["scenario=basic", "level=1"]
    rows = jurybox("export", "last", "-o", "-").out.splitlines()
    assert [json.loads(row)["id"] for row in rows] == ["q1"]
    assert jurybox("verify", "last").code == 0
    either = jurybox("run", "suite.yaml", "--filter", "level=1", "--filter", "level=2", "--json")
    assert json.loads(either.out)["summary"]["samples"] == 4
    Path("renamed.jsonl").write_text(Path("rows.jsonl").read_text().replace('"task"', '"prompt"'))
    renamed = ("--dataset", "renamed.jsonl", "--filter", "prompt=Task 4", "--json")
    assert json.loads(jurybox("run", "suite.yaml", *renamed).out)["summary"]["samples"] == 1
    few = jurybox("run", "suite.yaml", "--filter", "scenario=basic", "--limit", "2", "--json")
    assert json.loads(few.out)["summary"]["samples"] == 2


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("scenari=basic", "no row has a field `scenari`; did you mean `scenario`?"),
        ("scenario=easy", "no row has scenario=easy"),
        ("basic", "write FIELD=VALUE"),
    ],
)
def test_a_filter_that_chooses_nothing_is_an_error(jurybox: Jurybox, given: str, why: str) -> None:
    done = jurybox("run", "suite.yaml", "--filter", given)
    assert (done.code, done.out) == (2, "")
    assert why in done.err


def test_rows_that_the_filter_leaves_out_need_no_response(jurybox: Jurybox) -> None:
    rows = [
        {"id": "a", "task": "Task", "response": "Yes", "kind": "new"},
        {"id": "b", "task": "Task"},
    ]
    Path("few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("few.yaml").write_text(
        "suite: s\nrubric: general\ndataset: few.jsonl\n"
        "judge: {models: [openai/judge@1], votes: 1}\n"
    )
    done = jurybox("run", "few.yaml", "--filter", "kind=new", "--json")
    assert json.loads(done.out)["summary"]["samples"] == 1
    jurybox("run", "few.yaml", "--filter", "kind=new", "--max-cost", "0.5")
    assert jurybox("resume", "last", "--max-cost", "5").code in {0, 1}


def test_a_check_on_what_no_row_has_is_found_before_the_first_call(
    jurybox: Jurybox, server: JudgeServer
) -> None:
    Path("facts.md").write_text(
        "---\nid: facts\nversion: 1.0.0\nscale: 0.0-1.0\n---\n# Facts\n\n## Criteria\n\n### Fact\n"
        "\n"
        '```yaml checks\n- contains: "{{metadata.capitol}}"\n```\n'
    )
    suite = "suite: s\nrubric: facts.md\ndataset: rows.jsonl\ntarget: openai/bot@1\n"
    Path("suite.yaml").write_text(suite)
    done = jurybox("run", "suite.yaml")
    expected = (
        "rows.jsonl: a check of the rubric needs `metadata.capitol`, but no row has it;"
        " add it to the rows, or correct the name"
    )
    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    assert server.calls == 0
    # One row that has it is enough: the others are counted as not measured.
    with Path("rows.jsonl").open("a") as file:
        file.write('{"id": "q6", "task": "Capital?", "capitol": "Paris"}\n')
    assert jurybox("run", "suite.yaml").code == 0
    # Of some rows it can't be asked.
    assert "2 unscored" in jurybox("run", "suite.yaml", "--limit", "2").err


@pytest.mark.usefixtures("quick_retries")
def test_failed_samples_are_listed_with_the_provider_s_own_words(
    jurybox: Jurybox, server: JudgeServer
) -> None:
    server.poison = "Task 3"
    jurybox("run", "suite.yaml", JURYBOX_PATIENCE="0.2")
    done = jurybox("show", "last", "--failed", "--json")
    (failed,) = json.loads(done.out)["failed"]
    assert failed["id"] == "q3"
    assert "HTTP 500" in failed["why"]
    assert "q3" in jurybox("show", "last", "--failed").out
