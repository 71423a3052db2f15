"""E14: a judge held against people, and made better by that, from the command line to the store."""

import json
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commands import JURYBOX
from jurybox.cli.app import run
from jurybox.storage.audit import audit
from jurybox.wiring import find_run, open_run_store

RUBRIC = """---
id: answers
version: 1.0.0
scale: 1-5
votes: 1
---
# Answers

## Criteria

### Correctness

Whether what it says is true.

| Score | Meaning |
| --- | --- |
| 1 | All of it is wrong |
| 2 | Most of it is wrong |
| 3 | Half of it is right |
| 4 | Most of it is right |
| 5 | All of it is right |
"""
JUDGE = '''
import json
import re
from pathlib import Path

ITEMS = ("position", "verbosity", "self_enhancement", "formatting", "authority")

def reply(score):
    with Path("asked.log").open("a") as log:
        log.write("asked\\n")
    return json.dumps({
        "reasoning": {"correctness": "it reads well"},
        "bias_checklist": dict.fromkeys(ITEMS, "looked at"),
        "safety_concerns": [],
        "scores": {"correctness": score},
    })

def seen(prompt):
    """Return what is told before the material, and the number and quality of the sample."""
    told, _, material = prompt.partition("# Material")
    item, worth = (re.search(rf"{word} (\\d+)", material)[1] for word in ("item", "worth"))
    return told, int(item), int(worth)

def lenient(prompt):
    told, _, worth = seen(prompt)
    return reply(worth if "be stricter" in told else min(5, worth + 2))

def fair(prompt):
    return reply(seen(prompt)[2])

def by_heart(prompt):
    told, item, worth = seen(prompt)
    if f'"item {item} ' in told:
        return reply(worth)
    return reply(min(5, max(1, worth + (2 if item % 2 else -2))))

def broken(prompt):
    if Path("broken").exists():
        raise SystemExit("away")
    return lenient(prompt)

def proposer(prompt):
    with Path("proposed.log").open("a") as log:
        log.write("asked\\n")
    return json.dumps({
        "hypothesis": "the judge is too kind",
        "criterion": "correctness",
        "definition": "Whether what it says is true; be stricter.",
        "levels": {},
    })

def winner(prompt):
    first = prompt.index("better") < prompt.index("poorer") if "better" in prompt else True
    side = "A" if first else "B"
    with Path("asked.log").open("a") as log:
        log.write("asked\\n")
    return json.dumps({
        "reasoning": {"correctness": "the one above"},
        "bias_checklist": dict.fromkeys(ITEMS, "looked at"),
        "safety_concerns": [],
        "preferences": {"correctness": side},
        "winner": side,
    })
'''
ROWS = [
    {
        "id": f"g{n:02}",
        "task": f"item {n} of the list",
        "response": f"it is worth {1 + n % 3}",
        "gold": {"correctness": [1 + n % 3, 1 + n % 3]},
        "gold_reasoning": f"people say {1 + n % 3}",
    }
    for n in range(60)
]
Data = dict[str, Any]
Calibrate = Callable[..., tuple[int, Data]]


@pytest.fixture
def calibrate(
    tmp_path: Path, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> Calibrate:
    """Write rubric, gold and judge, and return what calls the command and reads what it prints."""
    # Modules stay loaded, so each test has one of its own.
    module = f"cal_{abs(hash(request.node.nodeid)):x}"
    (tmp_path / f"{module}.py").write_text(JUDGE)
    (tmp_path / "rubric.md").write_text(RUBRIC)
    write_gold(tmp_path / "gold.jsonl", ROWS)

    def called(judge: str = "lenient", *more: str, gold: str = "gold.jsonl") -> tuple[int, Data]:
        names = [each.replace("JUDGES", module) for each in more]
        code = run(
            [
                *("calibrate", "--rubric", "rubric.md", "--gold", gold),
                *("--judge", f"python/{module}:{judge}", "--allow-unpinned", "--json", *names),
            ]
        )
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else {"stderr": err}

    return called


def write_gold(path: Path, rows: list[Data]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def asked() -> int:
    log = Path("asked.log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def shown(capfd: pytest.CaptureFixture[str], *arguments: str) -> Data:
    assert run([*arguments, "--json"]) in {0, 1}
    found: Data = json.loads(capfd.readouterr().out)
    return found


def test_a_judge_is_held_against_people(calibrate: Calibrate) -> None:
    code, made = calibrate()
    assert code == 0
    (metrics,) = made["metrics"]["criteria"]
    assert (metrics["criterion"], metrics["n"], metrics["unscored"]) == ("correctness", 60, 0)
    assert metrics["exact"]["value"] == 0
    assert metrics["bias"]["value"] == 2
    assert metrics["bias"]["sentence"].startswith("correctness: the judge is higher than")
    assert metrics["ceiling"]["kappa"] == 1
    assert metrics["labels"] == 120
    assert metrics["confusion"]["counts"][0][2] == 40
    assert metrics["worst"][0]["judge_reasoning"] == "it reads well"
    assert metrics["worst"][0]["people_reasoning"].startswith("people say")
    assert asked() == 60


def test_the_loop_finds_a_fault_mends_it_and_writes_a_new_version(calibrate: Calibrate) -> None:
    code, made = calibrate("lenient", "--rounds", "3")
    assert code == 0
    tuning = made["tuning"]
    assert [each["kept"] for each in tuning["rounds"]] == [True]
    assert tuning["rounds"][0]["kind"] == "anchors"
    assert tuning["parts"] == {"tune": 24, "select": 18, "report": 18}
    assert tuning["before"]["loss"] == 0.5
    assert tuning["gain"]["clear"]
    assert made["metrics"]["loss"] == 0
    assert made["rubric_version"] == "1.1.0"
    assert tuning["written"] == "answers-1.1.0.md"
    new = Path("answers-1.1.0.md").read_text()
    assert "version: 1.1.0" in new
    assert "- `correctness`: be stricter" in new
    assert Path("rubric.md").read_text() == RUBRIC
    assert run(["rubric", "check", "answers-1.1.0.md"]) == 0


def test_what_only_fits_the_tune_part_is_refused(calibrate: Calibrate) -> None:
    code, made = calibrate("by_heart", "--rounds", "4")
    assert code == 0
    rounds = made["tuning"]["rounds"]
    examples = [each for each in rounds if each["kind"] == "examples"]
    assert examples
    assert all(each["tune"]["gain"]["difference"] < 0 for each in examples)
    assert all("tune part only" in each["reason"] for each in examples)
    assert not any(each["kept"] for each in rounds)
    assert made["rubric_version"] == "1.0.0"
    assert list(Path().glob("answers-*.md")) == []


def test_a_judge_without_a_fault_is_left_alone(calibrate: Calibrate) -> None:
    code, made = calibrate("fair", "--rounds", "3")
    assert code == 0
    assert made["tuning"]["rounds"] == []
    assert "nothing to change" in made["tuning"]["ended"]
    assert made["tuning"]["written"] is None
    assert list(Path().glob("answers-*.md")) == []
    # Tune, select and report, each once.
    assert asked() == 60


def test_a_model_may_propose_and_is_asked_once(calibrate: Calibrate) -> None:
    code, made = calibrate("by_heart", "--rounds", "2", "--proposer", "python/JUDGES:proposer")
    assert code == 0
    assert [each["by"] for each in made["tuning"]["rounds"]] == ["rule", "model"]
    assert made["tuning"]["rounds"][1]["hypothesis"] == "the judge is too kind"
    assert len(Path("proposed.log").read_text().splitlines()) == 1


def test_the_runs_behind_it_can_be_verified(calibrate: Calibrate) -> None:
    _, made = calibrate("lenient", "--rounds", "1")
    store = open_run_store()
    runs = [(each["part"], each["round"]) for each in made["runs"]]
    assert runs == [
        *(("tune", 0), ("select", 0), ("tune", 1), ("select", 1)),
        *(("report", 0), ("report", 1)),
    ]
    for each in made["runs"]:
        found = audit(store, find_run(store, each["run_id"]))
        assert found.difference is None
        assert found.complete
    store.close()


def newest_run() -> str:
    """Return the newest run, be it one of a calibration."""
    with closing(open_run_store()) as store:
        return store.runs(1)[0].id


def test_a_run_says_how_its_judge_stands_with_people(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str]
) -> None:
    _, made = calibrate("fair")
    made_by = newest_run()
    found = shown(capfd, "show", made_by)["calibration"]
    assert found["id"] == made["id"]
    assert found["stale"] == []
    date = made["created_at"][:10]
    assert found["text"] == f"calibrated: correctness 1 with people (n 60, {date})"
    run(["show", made_by])
    assert found["text"] in capfd.readouterr().out


def suite(judge: str, rubric: str = "rubric.md", votes: int = 1) -> str:
    write_gold(Path("rows.jsonl"), ROWS[:2])
    Path("suite.yaml").write_text(
        f"suite: s\nrubric: {rubric}\ndataset: rows.jsonl\n"
        f"judge: {{models: ['{judge}'], votes: {votes}}}\n"
    )
    return "suite.yaml"


def test_a_calibration_goes_stale_when_what_it_depends_on_changes(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str]
) -> None:
    _, made = calibrate("fair")
    (judge,) = made["judges"]

    def stale(*, named: str = judge, rubric: str = "rubric.md", votes: int = 1) -> list[str]:
        path = suite(named, rubric, votes)
        data = shown(capfd, "run", path, "--allow-unpinned")
        found: list[str] = data["calibration"]["stale"]
        return found

    assert stale() == []
    assert stale(votes=3) == ["the number of votes has changed (it was 1)"]
    other = judge.replace(":fair", ":lenient")
    assert stale(named=other) == [f"the judge has changed (it was {judge})"]
    Path("other.md").write_text(RUBRIC.replace("is true", "holds"))
    assert stale(rubric="other.md") == ["the rubric has changed"]
    run(["show", "last"])
    assert "calibration is stale: the rubric has changed since (1.0.0" in capfd.readouterr().out
    file = Path(f"{judge.removeprefix('python/').partition(':')[0]}.py")
    file.write_text(f"{file.read_text()}\n")
    (version,) = stale()
    assert version.startswith("the judge's version has changed")


def test_a_calibration_of_one_method_vouches_for_no_other(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str]
) -> None:
    _, made = calibrate("fair")
    assert made["metrics"]["methods"] == ["rubric"]
    (judge,) = made["judges"]
    path = suite(judge)
    assert shown(capfd, "run", path, "--allow-unpinned")["calibration"]["stale"] == []
    rows = [{**ROWS[0], "reference": "it is worth 1"}, ROWS[1]]
    write_gold(Path("rows.jsonl"), rows)
    found = shown(capfd, "run", path, "--allow-unpinned")["calibration"]
    assert found["stale"] == ["the method of judging has changed (it was rubric)"]
    write_gold(Path("gold.jsonl"), [*ROWS[1:], rows[0]])
    _, made = calibrate("fair")
    assert made["metrics"]["methods"] == ["reference", "rubric"]
    assert shown(capfd, "run", path, "--allow-unpinned")["calibration"]["stale"] == []


def test_a_run_that_was_scored_again_is_not_called_calibrated(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its judges never saw the rubric it names."""
    _, made = calibrate("lenient", "--rounds", "1")
    (judge,) = made["judges"]
    shown(capfd, "run", suite(judge), "--allow-unpinned")
    again = shown(capfd, "rescore", "last", "--rubric", "answers-1.1.0.md")
    assert again["derived_from"] is not None
    assert again["calibration"] is None
    run(["show", "last"])
    assert "calibrated" not in capfd.readouterr().out


def test_the_new_version_is_calibrated_from_its_first_run(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str]
) -> None:
    _, made = calibrate("lenient", "--rounds", "1")
    (judge,) = made["judges"]
    fresh = shown(capfd, "run", suite(judge, "answers-1.1.0.md"), "--allow-unpinned")
    assert fresh["calibration"]["stale"] == []
    old = shown(capfd, "run", suite(judge), "--allow-unpinned")
    assert old["calibration"]["stale"] == ["the rubric has changed"]


def test_other_words_around_the_rubric_make_it_stale(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = calibrate("fair")
    (judge,) = made["judges"]
    monkeypatch.setattr("jurybox.judging.prompts._ROLE", "You are another judge.")
    data = shown(capfd, "run", suite(judge), "--allow-unpinned")
    assert data["calibration"]["stale"] == ["the prompt of the judges has changed"]


def test_without_a_calibration_a_run_says_nothing(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str]
) -> None:
    del calibrate
    (module,) = [path.stem for path in Path().glob("cal_*.py")]
    data = shown(capfd, "run", suite(f"python/{module}:fair"), "--allow-unpinned")
    assert data["calibration"] is None
    run(["show", "last"])
    assert "calibrat" not in capfd.readouterr().out.replace("calibrate-", "")


COLUMNS = ["id", "created_at", "record", "seal"]


def replace_in(connection: sqlite3.Connection, column: str, value: object) -> None:
    statement = f"update calibrations set {column} = ?"  # noqa: S608 - a column of ours
    connection.execute(statement, (value,))
    connection.commit()


def test_a_record_that_was_changed_is_told(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str]
) -> None:
    calibrate("fair")
    path = Path(".jurybox/jurybox.db")
    with closing(sqlite3.connect(path)) as connection:
        names = [each[1] for each in connection.execute("pragma table_info(calibrations)")]
        assert sorted(names) == sorted([*COLUMNS, "rubric_id"])
    for column in COLUMNS:
        with closing(sqlite3.connect(path)) as connection:
            (before,) = connection.execute(
                f"select {column} from calibrations"  # noqa: S608 - a column of ours
            ).fetchone()
            replace_in(connection, column, f"{before} ")
        trouble = shown(capfd, "show", newest_run())["calibration"]["error"]
        assert "was changed after it was stored" in trouble
        with closing(sqlite3.connect(path)) as connection:
            replace_in(connection, column, before)
    assert "error" not in shown(capfd, "show", newest_run())["calibration"]


def test_what_was_stopped_goes_on_and_pays_for_nothing_twice(calibrate: Calibrate) -> None:
    Path("broken").touch()
    code, said = calibrate("broken", "--rounds", "2")
    assert code == 3, said
    before = asked()
    Path("broken").unlink()
    code, made = calibrate("broken", "--rounds", "2")
    assert code == 0
    assert made["tuning"]["rounds"][0]["kept"]
    # Two rubrics on each of three parts; nobody was asked twice.
    assert before == 0
    assert asked() == 120


@pytest.mark.parametrize(
    ("how", "at", "code", "twice"), [("SIGINT", 80, 3, 0), ("SIGKILL", 20, -9, 12)]
)
def test_whatever_stops_it_the_same_command_goes_on(
    calibrate: Calibrate, how: str, at: int, code: int, twice: int
) -> None:
    """What was in the air when it was killed is asked again, and nothing else (A13)."""
    del calibrate
    (module,) = [path.stem for path in Path().glob("cal_*.py")]
    killing = (
        "import os, signal, time\nfrom pathlib import Path\n"
        f"from {module} import lenient\n"
        "def judge(prompt):\n"
        "    log = Path('asked.log')\n"
        "    count = len(log.read_text().splitlines()) if log.exists() else 0\n"
        "    stopped = Path('stopped')\n"
        f"    if count >= {at} and not stopped.exists():\n"
        "        stopped.touch()\n"
        f"        os.kill(os.getpid(), signal.{how})\n"
        # Replies are stored a moment after they come in; without a pause, all would be in the air.
        "    time.sleep(0.02)\n"
        "    return lenient(prompt)\n"
    )
    Path("killing_judge.py").write_text(killing)
    options = ("--judge", "python/killing_judge:judge", "--allow-unpinned", "--concurrency", "1")
    command = ("calibrate", "--rubric", "rubric.md", "--gold", "gold.jsonl", *options)
    codes: list[int] = []
    while not codes or codes[-1] != 0:
        done = subprocess.run(
            [JURYBOX, *command, "--rounds", "2", "--json"], capture_output=True, check=False
        )
        codes.append(done.returncode)
        assert len(codes) < 5, done.stderr.decode()
    assert codes == [code, 0]
    made: Data = json.loads(done.stdout)
    assert made["tuning"]["gain"]["clear"]
    assert 120 <= asked() <= 120 + twice


def test_another_version_of_the_judge_judges_anew(calibrate: Calibrate) -> None:
    _, first = calibrate("fair")
    (file,) = Path().glob("cal_*.py")
    file.write_text(f"{file.read_text()}\n")
    code, made = calibrate("fair")
    assert (code, asked()) == (0, 120)
    assert made["runs"][0]["run_id"] != first["runs"][0]["run_id"]


def test_a_finished_calibration_is_not_paid_for_again(calibrate: Calibrate) -> None:
    _, first = calibrate("lenient", "--rounds", "1")
    before = asked()
    Path("answers-1.1.0.md").unlink()
    _, again = calibrate("lenient", "--rounds", "1", "--concurrency", "1")
    assert asked() == before
    assert Path("answers-1.1.0.md").exists()
    assert {**again, "id": first["id"], "created_at": first["created_at"]} == first
    _, fewer = calibrate("lenient", "--limit", "30")
    assert (fewer["gold"]["used"], asked()) == (30, before + 30)


def test_two_of_the_same_at_once_do_not_pay_twice(calibrate: Calibrate) -> None:
    del calibrate
    (module,) = [path.stem for path in Path().glob("cal_*.py")]
    waiting = (
        "import time\nfrom pathlib import Path\n"
        f"from {module} import fair\n"
        "def judge(prompt):\n"
        "    Path('begun').touch()\n"
        "    while not Path('go').exists():\n"
        "        time.sleep(0.02)\n"
        "    return fair(prompt)\n"
    )
    Path(f"{module}_waits.py").write_text(waiting)
    options = ("--judge", f"python/{module}_waits:judge", "--allow-unpinned", "--json")
    command = [JURYBOX, "calibrate", "--rubric", "rubric.md", "--gold", "gold.jsonl", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as first:
        try:
            deadline = time.monotonic() + 60
            while not Path("begun").exists():
                assert first.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            second = subprocess.run(command, capture_output=True, check=False, timeout=60)
        finally:
            Path("go").touch()
        out, _ = first.communicate(timeout=60)
    assert second.returncode == 2
    said = second.stderr.decode()
    assert "another process is working on the run; wait for it" in said
    assert first.returncode == 0
    assert json.loads(out)["metrics"]["n"] == 60
    assert asked() == 60
    # Nothing is held any longer.
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_pairs_are_held_against_people_too(calibrate: Calibrate) -> None:
    rows = [
        {
            "id": f"p{n}",
            "task": f"which is it, {n}",
            "response": "the better one" if n % 2 else "the poorer one",
            "response_b": "the poorer one" if n % 2 else "the better one",
            "gold_winner": ("A" if n % 2 else "B") if n % 4 else "tie",
        }
        for n in range(32)
    ]
    write_gold(Path("pairs.jsonl"), rows)
    code, made = calibrate("winner", gold="pairs.jsonl")
    assert code == 0
    (metrics,) = made["metrics"]["criteria"]
    assert (metrics["criterion"], metrics["n"]) == ("winner", 32)
    assert metrics["exact"]["value"] == 0.75
    assert metrics["confusion"]["labels"] == ["A", "tie", "B"]


def test_an_existing_file_is_never_written_over(calibrate: Calibrate) -> None:
    Path("answers-1.1.0.md").write_text("mine")
    code, said = calibrate("lenient", "--rounds", "1")
    assert code == 2
    assert "the file already exists; name a different one with -o" in said["stderr"]
    assert Path("answers-1.1.0.md").read_text() == "mine"
    assert asked() == 0
    code, made = calibrate("lenient", "--rounds", "1", "-o", "new.md")
    assert (code, made["tuning"]["written"]) == (0, "new.md")


@pytest.mark.parametrize(
    ("rows", "more", "says"),
    [
        ([{"id": "1", "task": "t", "response": "r"}], (), "no row has a label for its response"),
        (ROWS[:29], ("--rounds", "1"), "29 rows with gold are too few"),
        (ROWS, ("--cluster", "talk"), "the row has no `talk`"),
        (ROWS, ("--proposer", "python/JUDGES:proposer"), "--proposer needs at least one round"),
        ([{**ROWS[0], "gold": {"charm": 3}}], (), "`gold` names `charm`, which isn't judged"),
        ([{**ROWS[0], "gold": {"correctness": 9}}], (), "`gold` gives `correctness` 9"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_first_call(
    calibrate: Calibrate, rows: list[Data], more: tuple[str, ...], says: str
) -> None:
    write_gold(Path("gold.jsonl"), rows)
    code, said = calibrate("lenient", *more)
    assert code == 2
    assert says in said["stderr"]
    assert asked() == 0
    assert not Path(".jurybox").exists()


def test_rows_without_gold_are_left_out_with_a_warning(
    calibrate: Calibrate, capfd: pytest.CaptureFixture[str]
) -> None:
    write_gold(Path("gold.jsonl"), [*ROWS, {"id": "x", "task": "t", "response": "r"}])
    del capfd
    code, made = calibrate("fair")
    assert code == 0
    assert (made["gold"]["rows"], made["gold"]["used"]) == (61, 60)
    assert asked() == 60


def test_a_judge_that_nobody_can_reach_ends_with_code_3(calibrate: Calibrate) -> None:
    Path("broken").touch()
    code, said = calibrate("broken")
    assert code == 3
    assert "jurybox" in said["stderr"] or "run" in said["stderr"]
