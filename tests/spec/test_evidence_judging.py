"""E2, E4, E5, E8, E9, E10, E12: the protocol with a judge that is asked narrow questions.

The judge is a double of an embedded model: it is sure of what it is told to be sure of, by words
that stand in the question.
"""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import jurybox
from jurybox import load_rubric
from jurybox.engine.driver import drive_sync
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome
from jurybox.judging.jury import jury
from jurybox.judging.protocol import Judging
from jurybox.sample import Response, Sample
from jurybox.storage.audit import audit
from jurybox.wiring import find_run, open_run_store
from scripted_model import ScriptedModel

EMBEDDED = "local/qwen2.5-coder-1.5b-instruct-q4_k_m"
CHECKLIST = load_rubric("bias-awareness")
GENERAL = Judging(rubric=load_rubric("general"), checklist=CHECKLIST)
QUALITY = Judging(rubric=load_rubric("answer-quality"), checklist=CHECKLIST)
COMPANION = Judging(rubric=load_rubric("companion"), checklist=CHECKLIST)
RIGHT, WRONG = "It is Paris.", "It is Lyon."
WORST = [
    min(each.levels, key=lambda level: level.low).meaning
    for each in (*GENERAL.rubric.criteria, *COMPANION.rubric.criteria)
    if len(each.levels) > 1
]


def reply(words: tuple[str, str], chance: float) -> ModelReply:
    masses = dict(zip(words, (chance, 1 - chance), strict=True))
    top = [{"token": each, "logprob": math.log(mass)} for each, mass in masses.items()]
    logprobs = json.dumps({"content": [{"token": words[0], "logprob": -1, "top_logprobs": top}]})
    return ModelReply(text=words[0], logprobs=logprobs, model="double", fingerprint="build 1")


def knowing(request: ModelRequest) -> ModelReply:
    """Answer as one who knows the capital of France, and likes what is first."""
    text = request.messages[-1].content
    found = re.search(r"Reply (\w+) or (\w+)\.$", text)
    assert found is not None
    words = (found[1], found[2])
    if words == ("A", "B"):
        return reply(words, 0.95 if f"Answer A: {RIGHT}" in text else 0.6)
    good = f"nswer: {RIGHT}" in text
    # Without a text it doesn't know.
    if "Student's answer: " in text and "Text: " not in text:
        return reply(words, 0.5)
    bad_thing = any(meaning in text for meaning in WORST)
    return reply(words, 0.95 if good is not bad_thing else 0.05)


class Recorder:
    """Keeps what was asked."""

    def __init__(self, answer: Callable[[ModelRequest], Outcome] = knowing) -> None:
        self.asked: list[ModelRequest] = []
        self._answer = answer

    def __call__(self, request: ModelRequest) -> Outcome:
        self.asked.append(request)
        return self._answer(request)


def sample(response: str = RIGHT, other: str | None = None, **more: str) -> Sample:
    return Sample(
        task="What is the capital of France?",
        response=Response(text=response),
        response_b=None if other is None else Response(text=other),
        **more,
    )


def judged(
    one: Sample,
    judging: Judging = GENERAL,
    votes: int = 3,
    answer: Callable[[ModelRequest], Outcome] = knowing,
) -> EvaluationReport:
    return drive_sync(jury(judging, one, [EMBEDDED], votes), answer)


def test_e2_with_a_reference_a_response_is_compared_with_it() -> None:
    model = Recorder()
    report = judged(sample(reference="Paris"), QUALITY, answer=model)
    assert report.method == "reference"
    assert {each.id: each.score for each in report.criteria} == {
        "accuracy_score": 2,
        "faithfulness_score": 2,
    }
    assert any("Text: Paris" in each.messages[-1].content for each in model.asked)


def test_e2_two_responses_and_a_reference_need_no_comparison() -> None:
    model = Recorder()
    report = judged(sample(WRONG, RIGHT, reference="Paris"), answer=model)
    assert (report.method, report.winner, report.stable) == ("reference", "B", None)
    assert not any("Answer A: " in each.messages[-1].content for each in model.asked)


def test_e2_without_a_reference_one_is_scored_and_two_are_compared() -> None:
    assert judged(sample()).method == "rubric"
    assert judged(sample(RIGHT, WRONG)).method == "pairwise"


@pytest.mark.parametrize("judging", [GENERAL, QUALITY, COMPANION], ids=lambda each: each.rubric.id)
def test_e4_e5_e12_a_report_has_findings_whole_scores_and_the_checklist(judging: Judging) -> None:
    report = judged(sample(reference="Paris", context="Its capital is Paris."), judging)
    assert report.criteria
    for each in report.criteria:
        assert re.search(r"Yes: [01]\.\d\d", each.reasoning)
        assert each.score is not None
        low, high = each.scale
        assert low <= each.score <= high
        if judging is not COMPANION:
            assert type(each.score) is int
    assert list(report.bias_checklist) == [item.id for item in CHECKLIST.criteria]
    assert all(report.bias_checklist.values())
    assert (report.total_score, report.overall) != (None, None)
    assert report.safety_flag is False
    assert report.reported_models == ("double build 1",)


def test_e4_no_score_is_asked_for_or_sent() -> None:
    model = Recorder()
    judged(sample(), answer=model)
    for each in model.asked:
        assert (each.generation.max_tokens, each.generation.temperature) == (1, 0.0)
        assert each.logprobs
        assert not re.search(r"\bscore\b", each.messages[-1].content, re.IGNORECASE)


def test_e8_a_judge_that_likes_the_first_place_still_finds_the_better_answer() -> None:
    """Alone it would name the first answer every time: 0.95 and 0.6 are both above a half."""
    for one, other, winner in ((RIGHT, WRONG, "A"), (WRONG, RIGHT, "B")):
        report = judged(sample(one, other))
        assert (report.winner, report.stable, report.confidence) == (winner, True, "high")


def test_e8_how_far_the_order_moved_it_is_in_the_report() -> None:
    report = judged(sample(RIGHT, WRONG))
    told = "\n".join(each.reasoning for each in report.criteria)
    assert "when A is first" in told
    assert "the order alone gives the first answer" in told
    # What is true of both orders is told once.
    assert "\n" not in report.bias_checklist["position"]


def placed(_: ModelRequest) -> ModelReply:
    """Prefer the first place, whichever answer has it."""
    return reply(("A", "B"), 0.9)


def test_e8_a_judge_that_only_sees_the_place_is_unstable() -> None:
    report = judged(sample(RIGHT, WRONG), answer=placed)
    assert (report.winner, report.stable) == ("tie", False)
    assert "unstable" in report.review_reasons


def test_e9_three_votes_that_agree_are_sure() -> None:
    report = judged(sample())
    assert (report.votes_valid, report.votes_requested, report.confidence) == (3, 3, "high")
    assert all(len(each.votes) == 3 for each in report.criteria)


def moody(request: ModelRequest) -> Outcome:
    """Think otherwise in the third vote."""
    return reply(("yes", "no"), 0.5) if request.vote == 2 else knowing(request)


def lost(request: ModelRequest) -> Outcome:
    failure = Failure(kind="timeout", message="late")
    return failure if request.vote == 2 else knowing(request)


def test_e9_a_majority_is_moderate_and_a_lost_vote_is_told() -> None:
    report = judged(sample(), answer=moody)
    assert report.confidence == "moderate"
    # Without a reference nobody knows what is correct or complete.
    by_levels = [each for each in report.criteria if each.id not in {"correctness", "completeness"}]
    assert {(each.score, each.confidence) for each in by_levels} == {(5, "moderate")}
    report = judged(sample(), answer=lost)
    assert (report.votes_valid, report.confidence) == (2, "moderate")
    assert [(each.vote, each.reason) for each in report.lost_votes] == [(2, "late")]


@pytest.mark.parametrize(
    "one",
    [
        sample(),
        sample(reference="Paris"),
        sample(context="Its capital is Paris."),
        sample(RIGHT, WRONG),
    ],
    ids=["levels", "reference", "context", "pair"],
)
def test_e10_every_vote_asks_in_other_words(one: Sample) -> None:
    model = Recorder()
    report = judged(one, answer=model)
    asked = [
        {each.messages[-1].content for each in model.asked if each.vote == vote}
        for vote in range(3)
    ]
    assert asked[0] != asked[1] != asked[2] != asked[0]
    assert report.votes_independent is True


ASKING = """---
id: asking
version: 1.0.0
scale: 1-5
---
# Asking

## Criteria

### Kindness

#### Questions
- Is the answer kind?
"""


def test_e10_votes_that_ask_the_same_are_not_called_independent(tmp_path: Path) -> None:
    (tmp_path / "asking.md").write_text(ASKING)
    model = Recorder()
    judging = Judging(rubric=load_rubric(tmp_path / "asking.md"), checklist=CHECKLIST)
    report = judged(sample(), judging, answer=model)
    words = {
        tuple(each.messages[-1].content for each in model.asked if each.vote == vote)
        for vote in range(3)
    }
    assert report.votes_independent is (len(words) > 1)


def test_e10_one_vote_needs_nobody_else() -> None:
    assert judged(sample(), votes=1).votes_independent is True


# A run with it ---------------------------------------------------------------------------------

ROWS = [
    {"id": "right", "task": "What is the capital of France?", "reference": "Paris"},
    {"id": "wrong", "task": "What is the capital of France?", "reference": "Paris"},
]


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """Put a scripted model in the place of the embedded one."""
    model = ScriptedModel(knowing, name="double")
    monkeypatch.setattr("jurybox.models.local.local_model.open_local_model", lambda *_: model)
    return model


def suite(folder: Path, judge: str = f"judge: {{models: [{EMBEDDED}]}}\n") -> Path:
    rows = [
        {**row, "response": text, "latency_e2e_ms": 1000, "input_tokens": 10, "output_tokens": 5}
        for row, text in zip(ROWS, (RIGHT, WRONG), strict=True)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "suite.yaml"
    path.write_text(f"suite: evidence\nrubric: answer-quality\ndataset: rows.jsonl\n{judge}")
    return path


def test_a_run_is_stored_and_derived_again_from_its_replies(
    double: ScriptedModel, tmp_path: Path
) -> None:
    view = jurybox.run(suite(tmp_path))
    assert view.summary["samples"] == 2
    assert view.summary["accuracy_mean"] == 1.0
    assert view.summary["accuracy_full_credit_rate"] == 0.5
    asked = len(double.requests)
    store = open_run_store()
    run = find_run(store, "last")
    assert audit(store, run).difference is None
    # Nobody was asked again: the stored probabilities say everything.
    assert len(double.requests) == asked > 0
    stored = [json.loads(each.request) for each in store.exchanges_of(run.id, 0)]
    assert {each["logprobs"] for each in stored} == {20}


def test_a_run_without_a_judge_takes_the_embedded_one_and_says_so(
    double: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jurybox.app.prepare import prepare
    from jurybox.app.suite_choice import RunOptions

    monkeypatch.setattr("jurybox.wiring.embedded_judge", lambda: EMBEDDED)
    prepared = prepare(suite(tmp_path, judge=""), RunOptions())
    assert prepared.plan.judges == (EMBEDDED,)
    assert any(f"the embedded {EMBEDDED} is used" in each for each in prepared.warnings)
    assert double.requests == []


def test_a_run_with_a_named_judge_says_nothing(double: ScriptedModel, tmp_path: Path) -> None:
    from jurybox.app.prepare import prepare
    from jurybox.app.suite_choice import RunOptions

    assert prepare(suite(tmp_path), RunOptions()).warnings == ()
    assert double.requests == []


@pytest.mark.usefixtures("double")
def test_what_can_be_evaluated_can_be_run(tmp_path: Path) -> None:
    """Narrow questions don't mind how a rubric wants its verdicts written."""
    row = {"id": "pair", "task": "Hi", "response": RIGHT, "response_b": WRONG}
    path = suite(tmp_path)
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    path.write_text(path.read_text().replace("answer-quality", "companion"))
    judged(sample(RIGHT, WRONG), COMPANION)
    assert jurybox.run(path).summary["samples"] == 1
