"""The pytest plugin: judgments as assertions, recorded, replayed, and counted at the end."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = "pytester"

JUDGE = """
import json, pathlib, re

def strict(prompt):
    with pathlib.Path("calls.txt").open("a") as file:
        file.write("called\\n")
    ids = re.findall(r"^### .*\\(`(\\w+)`:", prompt, re.MULTILINE)
    items = re.findall(r"^## (\\w+)$", prompt[prompt.index("# Bias checklist"):], re.MULTILINE)
    shown = prompt.split("<<<RESPONSE")[1]
    score = 4 if "four" in shown else 1
    return json.dumps({
        "reasoning": dict.fromkeys(ids, "Two and two make four." if score == 1 else "Right."),
        "bias_checklist": {name: f"Not at work: {name}." for name in items},
        "safety_concerns": [],
        "scores": dict.fromkeys(ids, score),
    })
"""
SUITE = """
import pytest

pytestmark = pytest.mark.jury(rubric="general", judges="python/judges:strict", votes=1)

def test_right(jury):
    report = jury.assert_passes(task="What is 2 + 2?", response="It is four.")
    assert report.total_score == 20

@pytest.mark.jury(votes=2)
def test_wrong(jury):
    jury.assert_passes(task="What is 2 + 2?", response="It is five.")

def test_by_rules(jury):
    report = jury.evaluate(rubric="companion", judges=(), task="I'm sad.", response="I hear you.")
    assert report.method == "rules"
"""
ALIKE = """
import pytest

pytestmark = pytest.mark.jury(rubric="general", judges="python/judges:strict", votes=1)

@pytest.mark.parametrize("sign", ["+", "-", "+" * 300])
def test_sum(jury, sign):
    jury.assert_passes(task=f"What is 2 {sign} 2?", response="It is four.")

class TestOne:
    def test_sum(self, jury):
        jury.assert_passes(task="What is 1 + 3?", response="It is four.")

class TestTwo:
    def test_sum(self, jury):
        jury.assert_passes(task="What is 5 - 1?", response="It is four.")
"""
PLAIN = ("-p", "no:randomly", "-p", "no:cacheprovider", "-n0")


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(judges=JUDGE, test_bot=SUITE)
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    return suite.runpytest_inprocess(*(*PLAIN, *options))


def calls(suite: pytest.Pytester) -> int:
    file = suite.path / "calls.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_it_is_installed_with_the_package() -> None:
    (found,) = entry_points(group="pytest11", name="jurybox")
    assert found.value == "jurybox.pytest_plugin"


def test_it_does_nothing_unless_it_is_used(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTEST_PLUGINS"):
        monkeypatch.delenv(name)
    pytester.makepyfile("""
        import sys

        def test_nothing():
            heavy = {"msgspec", "numpy", "click", "yaml", "jurybox.rubric", "jurybox.wiring"}
            assert not heavy & set(sys.modules)
    """)
    result = pytester.runpytest_subprocess(*PLAIN)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*jury*judg*")


def test_a_failing_judgment_reads_like_an_assertion_error(suite: pytest.Pytester) -> None:
    result = run(suite, "-k", "wrong")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(
        [
            '>*jury.assert_passes(task="What is 2 + 2?", response="It is five.")',
            "E * AssertionError: the response doesn't pass `general` *",
            "E * fails",
            "E * correctness  1 of 5, votes 1 1",
            "E * Two and two make four.",
            "E * response",
            "E * It is five.",
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_cost_and_calls_are_printed_at_the_end(suite: pytest.Pytester) -> None:
    result = run(suite)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["jury: 3 judgments, 3 calls, cost unknown"])
    assert calls(suite) == 3


@pytest.mark.parametrize("workers", ["0", "2"])
def test_recorded_replies_are_replayed_where_ci_is_set(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    run(suite, "--jury-record", "-n", workers).assert_outcomes(passed=2, failed=1)
    assert calls(suite) == 3
    monkeypatch.setenv("CI", "true")
    result = run(suite, "-n", workers)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["jury: 3 judgments, 3 calls replayed, 0 calls, cost $0.00"])
    assert calls(suite) == 3


def test_recording_again_replaces_what_was_recorded(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    for _ in range(2):
        run(suite, "--jury-record", "-k", "right").assert_outcomes(passed=1, deselected=2)
    (file,) = (suite.path / "jury_replies").rglob("*.jsonl")
    assert file == suite.path / "jury_replies" / "test_bot" / "test_right.jsonl"
    assert len(file.read_text().splitlines()) == 1
    assert calls(suite) == 2


def test_a_judgment_without_a_recording_fails_and_says_how_to_record_it(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "1")
    result = run(suite, "-k", "right")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(["*test_right.jsonl: no replies are recorded; *--jury-record*"])
    assert calls(suite) == 0


def test_tests_of_like_names_have_recordings_of_their_own(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(test_alike=ALIKE)
    assert run(suite, "--jury-record", "test_alike.py").ret == 0
    assert len([*(suite.path / "jury_replies" / "test_alike").iterdir()]) == 5
    monkeypatch.setenv("CI", "true")
    run(suite, "test_alike.py").assert_outcomes(passed=5)


def test_a_changed_response_is_not_judged_by_old_replies(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(suite, "--jury-record", "-k", "right").assert_outcomes(passed=1, deselected=2)
    monkeypatch.setenv("CI", "true")
    test = suite.path / "test_bot.py"
    test.write_text(test.read_text().replace("It is four.", "Still four."))
    result = run(suite, "-k", "right")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(["E *isn't in the file; record it again*"])


def test_a_judge_for_all_tests_is_named_in_the_settings(suite: pytest.Pytester) -> None:
    suite.makeini("[pytest]\njury_judges = python/judges:strict\n")
    suite.makepyfile(
        test_bot="""
        def test_right(jury):
            jury.assert_passes(rubric="general", votes=1, task="2 + 2?", response="It is four.")

        def test_no_rubric(jury):
            jury.assert_passes(task="2 + 2?", response="It is four.")
        """
    )
    result = run(suite)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E *no rubric was given; *pytest.mark.jury*"])


def test_the_marker_is_known_and_shown(suite: pytest.Pytester) -> None:
    result = run(suite, "--markers", "--strict-markers")
    result.stdout.fnmatch_lines(["@pytest.mark.jury(*"])
    assert Path(suite.path / "jury_replies").exists() is False
