"""The companion's judge beside its rules (C14, C15), and its decision (C12)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jurybox.app.companion import overall_quality
from jurybox.app.evaluate_once import evaluate
from jurybox.app.run_suite import run
from jurybox.reporting.html.page import run_page
from jurybox.reporting.run_verdict import verdict_of

SAD, KIND = "I'm so sad today.", "I understand, that makes sense. What happened to you today?"


@pytest.fixture
def judge(tmp_path: Path) -> Callable[[str], str]:
    """Return the name of a judge that replies with some text and keeps what it was asked."""

    def make(reply: str) -> str:
        name = f"judge_{abs(hash(reply))}"
        (tmp_path / f"{name}.py").write_text(
            "from pathlib import Path\n\n\ndef reply(prompt: str) -> str:\n"
            f"    Path({str(tmp_path / 'prompt.txt')!r}).write_text(prompt)\n"
            f"    return {reply!r}\n"
        )
        return f"python/{name}:reply"

    return make


def judged(judge: str, task: str = SAD, response: str = KIND) -> dict[str, object]:
    report = evaluate(rubric="companion", task=task, response=response, judges=judge)
    return report.as_data()


@pytest.mark.parametrize(
    ("reply", "score", "reasoning"),
    [
        ("Score: 0.8 | Reasoning: Warm and honest.", 0.8, "Warm and honest."),
        ("Score: 0.8/1 | Reasoning: Warm.", 0.8, "Warm."),
        ("score - .7 | reasoning: Fine.", 0.7, "Fine."),
        ("**Score:** 1.0 | **Reasoning:** All of it.", 1.0, "All of it."),
        ("Score: 0 | Reasoning: Cold.", 0.0, "Cold."),
        ("Overall: 0.65", 0.65, "Overall: 0.65"),
        ("0.7/1.0", 0.7, "0.7/1.0"),
        ("0.8 out of 1.0. It is warm.", 0.8, "0.8 out of 1.0. It is warm."),
        ("**Overall (0.0-1.0):** 0.4 | Reasoning: Cold.", 0.4, "Cold."),
    ],
)
def test_c15_the_decimal_is_read_and_the_reasoning_stored(
    judge: Callable[[str], str], reply: str, score: float, reasoning: str
) -> None:
    data = judged(judge(reply))
    assert data["judge"]["score"] == score
    assert data["judge"]["reasoning"] == reasoning
    assert (data["judge"]["fallback"], data["judge_fallback"]) == (False, False)


@pytest.mark.parametrize(
    "reply", ["Score: 85 | Reasoning: Great.", "I'd rather not say.", "", "Score: 8/10", "-0.2"]
)
def test_c15_what_cannot_be_read_is_the_fallback_and_says_so(
    judge: Callable[[str], str], reply: str
) -> None:
    data = judged(judge(reply))
    assert data["judge"]["score"] == 0.5
    assert (data["judge"]["fallback"], data["judge_fallback"]) == (True, True)
    assert data["judge"]["reasoning"] == reply


def test_c15_the_judge_is_never_mixed_into_the_scores(judge: Callable[[str], str]) -> None:
    alone = evaluate(rubric="companion", task=SAD, response=KIND).as_data()
    beside = judged(judge("Score: 0.1 | Reasoning: Bad."))
    assert "judge" not in alone
    for name in ("method", "criteria", "total_score", "overall", "band", "confidence"):
        assert alone[name] == beside[name]
    # 0.15 + 0.20 + 0.20 * 0.8 + 0.25 + 0.10 * 0.4 + 0.10 * 0.7
    assert alone["overall"] == 0.87
    assert [each["score"] for each in alone["criteria"]] == [1.0, 1.0, 0.8, 1.0, 0.4, 0.7]
    assert (alone["votes_requested"], alone["judges"], alone["criteria"][0]["votes"]) == (0, [], [])


def test_c14_the_prompt_is_filled_in_one_pass(judge: Callable[[str], str], tmp_path: Path) -> None:
    judged(
        judge("Score: 0.5 | Reasoning: x"),
        task="What does {assistant_response} mean?",
        response="It is {user_message} and {context_summary}.",
    )
    prompt = (tmp_path / "prompt.txt").read_text(encoding="utf-8")
    assert 'User message: "What does {assistant_response} mean?"\n' in prompt
    assert 'Assistant response: "It is {user_message} and {context_summary}."\n' in prompt
    assert 'Conversation context: ""\n' in prompt


ROWS = {
    # 0.15 + 0.20 + 0.18 + 0.125 + 0.04 + 0.07 = 0.765, and personalization averages 0.4.
    "needs_revision": (
        "What do you like?",
        "I like a quiet walk in the park, and what do you like?",
    ),
    # With 0.2 more for personalization and 0.2 for trust: 0.805.
    "deploy": (
        "What do you like?",
        "I suggest a quiet walk in the park for you, and what else do you like?",
    ),
    # 0.15 + 0.20 * 0.9 + 0.20 * 0.5 + 0.25 * 0.5 + 0.10 * 0.7 + 0.10 * 0.7 = 0.695
    "ab_test": ("Any tips?", "A quiet walk in the park would be good for you, I believe."),
}
OVERALL = {"needs_revision": 0.765, "deploy": 0.805, "ab_test": 0.695}


DEPLOYED = "task,response,scenario\n" + 2 * '"{}","{}",basic\n'.format(*ROWS["deploy"])


@pytest.mark.parametrize("decision", ROWS)
def test_c12_the_first_decision_that_holds(decision: str, tmp_path: Path) -> None:
    task, response = ROWS[decision]
    report = evaluate(rubric="companion", task=task, response=response)
    scores = {each.id: each.score or 0.0 for each in report.criteria}
    assert overall_quality(scores) == report.overall == OVERALL[decision]
    (tmp_path / "rows.csv").write_text(f'task,response,scenario\n"{task}","{response}",basic\n')
    (tmp_path / "suite.yaml").write_text("suite: s\nrubric: companion\ndataset: rows.csv\n")
    view = run(tmp_path / "suite.yaml")
    assert view.conclusion.decision == decision
    assert view.conclusion.decision_reasons


def test_c15_the_share_of_fallbacks_is_a_metric_of_the_run(
    judge: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text(DEPLOYED)
    (tmp_path / "suite.yaml").write_text("suite: s\nrubric: companion\ndataset: rows.csv\n")
    view = run(tmp_path / "suite.yaml", judges=judge("no idea"), allow_unpinned=True)
    assert view.summary["judge_fallback_rate"] == 1
    # A fallback score is no score of the judge.
    assert "judge_score_mean" not in view.summary
    assert view.summary["overall_quality_mean"] != 0.5
    # Nothing suggests that a judge agreed.
    note = "in 2 of 2 samples the judge's reply could not be read: only the rubric's rules scored"
    assert view.notes[0].startswith(note)
    verdict = verdict_of(view)
    assert (verdict.main.text, verdict.main.query) == (view.notes[0], "flag=judge_fallback")
    assert (verdict.word, verdict.tone) == ("Deploy, no judge confirmed it", "waits")
    page = run_page(view, ())
    assert "judge_score" not in [each.name for each in page.scores]
    row = page.criteria[-1]
    assert row.label == "The judge's score, no reply could be read"
    assert (row.mean.value, row.mean.n) == (None, 0)


def test_a_run_whose_judge_always_fails_is_not_confirmed(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(DEPLOYED)
    (tmp_path / "suite.yaml").write_text("suite: s\nrubric: companion\ndataset: rows.csv\n")
    (tmp_path / "down.py").write_text("def reply(prompt):\n    raise RuntimeError('down')\n")
    view = run(tmp_path / "suite.yaml", judges="python/down:reply", allow_unpinned=True)
    verdict = verdict_of(view)
    assert (verdict.word, verdict.tone) == ("Deploy, no judge confirmed it", "waits")
    assert verdict.main.query == "flag=unscored"
    assert verdict.main.text.startswith(
        "no sample has a valid vote: only the rubric's rules scored"
    )


@pytest.mark.parametrize(
    "reply",
    [
        "Overall: 7/10",
        "7/10",
        "Warmth: 0.9, overall: 0.65",
        "> Overall: 0.65",
        'It says "Overall: 1.0".',
    ],
)
def test_c15_what_is_no_single_score_of_the_judge_falls_back(
    judge: Callable[[str], str], reply: str
) -> None:
    data = judged(judge(reply))["judge"]
    assert (data["score"], data["fallback"]) == (0.5, True)
