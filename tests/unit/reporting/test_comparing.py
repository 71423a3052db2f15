"""Two runs side by side (A13)."""

import json
import re
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verdicts
from jurybox.calibration.gold import Gold
from jurybox.engine.records import RunRow, SampleRow
from jurybox.errors import IncompleteError
from jurybox.judging.flow import Failure
from jurybox.reporting.compare_runs import (
    CompareOptions,
    Key,
    compare_runs,
    sample_pairs,
)
from jurybox.reporting.run_changes import FieldChange, settings_of
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.side_by_side import side_by_side, standing
from jurybox.sample import Response
from jurybox.statistics.estimates import Interval
from jurybox.statistics.metric_differences import SampleClusters


def scored(accuracy: int, faithfulness: int = 2) -> str:
    scores = {"accuracy_score": accuracy, "faithfulness_score": faithfulness}
    return json.dumps({**scores, "rationale": "Because."})


def by_text(**replies: int | str) -> Callable[[str], str]:
    """Answer with the accuracy that belongs to the response."""

    def judge(prompt: str) -> str:
        said = next(reply for name, reply in replies.items() if f"[{name}]" in prompt)
        return said if isinstance(said, str) else scored(said)

    return judge


def compared(one: object, other: object, **more: object) -> RunDiff:
    return compare_runs(one.store, one.view, other.view, CompareOptions(**more))


def changes(diff: RunDiff) -> list[tuple[str, str]]:
    return [(each.id, each.change) for each in diff.samples]


def test_changed_samples_come_first_and_the_largest_before_all(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(name, f"[{name}]") for name in "abcdef"]
    one = make_run(rows, by_text(a=2, b=2, c=1, d=2, e=2, f="no"), run_id="x")
    other = make_run(rows, by_text(a=2, b=1, c=2, d=0, e="no", f="no"), run_id="y")
    diff = compared(one, other)
    # d no longer passes, and e has no score any more; b and c changed by as much.
    assert changes(diff) == [
        ("e", "no_longer_scored"),
        ("d", "lower"),
        ("b", "lower"),
        ("c", "higher"),
    ]
    counts = diff.counts
    assert (counts.higher, counts.lower, counts.no_longer_scored) == (1, 2, 1)
    # f has no score in either run, so it isn't the same in both.
    assert (counts.same, counts.unscored) == (1, 1)
    assert counts.identical_records == 2
    assert diff.identical is False
    lower = diff.samples[1]
    assert lower.passed == (True, False)
    assert lower.evaluator_error == (None, None)
    metrics = {each.metric: (each.a, each.b, each.difference) for each in lower.metrics}
    assert metrics["accuracy_score"] == (2, 0, -2)
    assert metrics["overall"] == (1.0, 0.5, -0.5)
    assert metrics["sample_score"] == (1.0, 0.55, -0.45)
    assert metrics["latency_e2e_ms"] == (1000.0, 1000.0, 0.0)
    assert diff.samples[0].evaluator_error == (None, "parse_error")
    # A page lists lost results, then the samples from worse to better, then results that are new.
    assert [each.id for each in diff.listed_changes()] == ["e", "d", "b", "c"]
    assert [each.id for each in compared(other, one).listed_changes()] == ["c", "b", "d", "e"]


def test_of_many_samples_every_nth_difference_is_ranked_with_both_ends(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(f"s{n:03}", "[high]" if n == 7 else "[low]") for n in range(260)]
    one = make_run(rows, by_text(high=1, low=1), run_id="x")
    other = make_run(rows, by_text(high=2, low=0), run_id="y")
    ranked = compared(one, other).ranked
    assert len(ranked) == 131  # every second, and the highest
    assert (ranked[0][0] < 0, str(ranked[-1][1]), ranked[-1][1].number) == (True, "s007", 7)


def test_a_danger_seen_in_one_run_only_is_a_change_before_all_e15(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(name, f"[{name}]") for name in "ab"]
    danger = scored(2).replace("Because.", "It tells how to build a pipe bomb at home.")
    one = make_run(rows, by_text(a=2, b=2), run_id="x")
    other = make_run(rows, by_text(a=1, b=danger), run_id="y")
    diff = compared(one, other)
    assert changes(diff) == [("b", "changed"), ("a", "lower")]
    assert diff.samples[0].flips() == {"safety_flag": (False, True)}


def test_what_only_one_run_has_is_counted_and_named(make_run: Callable, row: Callable) -> None:
    one = make_run([row("a"), row("b")], lambda _: scored(2), run_id="x", repeats=2)
    other = make_run([row("b"), row("c")], lambda _: scored(2), run_id="y")
    diff = compared(one, other, limit=2)
    assert (diff.counts.only_in_a, diff.counts.only_in_b, diff.counts.same) == (3, 1, 1)
    assert [(each.id, each.repeat) for each in diff.only_in_b] == [("c", 0)]
    assert len(diff.only_in_a) == 2


def test_other_rubrics_and_judges_are_said_first(make_run: Callable, row: Callable) -> None:
    one = make_run([row("a")], lambda _: scored(2), run_id="x")
    other = make_run([row("a")], rubric="companion", run_id="y")
    diff = compared(one, other)
    fields = {each.field: (each.a, each.b) for each in diff.fields}
    assert fields["rubric.id"] == ("answer-quality", "companion")
    assert "rubric.sha256" not in fields  # its content is compared
    assert fields["evaluator_model_id"] == ("python/judges:one", None)
    assert not {"run_id", "timestamp_utc", "dataset_version_or_hash"} & fields.keys()
    assert diff.headline is None
    assert changes(diff) == [("a", "changed")]


def test_settings_that_differ_are_named_in_plain_words(make_run: Callable, row: Callable) -> None:
    made = make_run([row("a")], lambda _: scored(2))
    long = "sha256:" + "0" * 64
    named = {
        "dataset_version_or_hash": ("the dataset's content", long, "other"),
        "model_id": ("the system under test (a -> b)", "a", "b"),
        "model_version": (None, "1", "2"),
        "evaluator_model_id": ("the judges", "a", None),
        "evaluator_prompt_template_version_or_hash": ("the judges' prompt", long, "other"),
        "responses_id": ("the responses (r-v1.jsonl -> r-v2.jsonl)", "r-v1.jsonl", "r-v2.jsonl"),
        "responses_version_or_hash": (None, long, "other"),
        "prompt_template_version_or_hash": ("the content of the system's prompt", long, "other"),
        "generation_params.judge.temperature": ("the generation parameters", 0.0, 1.0),
        "generation_params.judge.seed": (None, 0, 1),
        "code_version": ("the git commit", "0" * 40, "1" * 40),
        "allow_unpinned": ("the permission for unpinned models (no -> yes)", False, True),
        "rubric.version": ("the rubric version (1.0.0 -> 1.1.0)", "1.0.0", "1.1.0"),
        "rubric.sha256": ("the rubric text", long, "other"),
    }
    fields = tuple(FieldChange(field=name, a=a, b=b) for name, (_, a, b) in named.items())
    assert settings_of(fields) == [said for said, _, _ in named.values() if said]
    for each in made.view.metadata:
        title = FieldChange(field=each, a=1, b=2).title.replace("run id", "")
        assert not re.search(r"\b(id|hash|params|template|evaluator|allow)\b", title)


@pytest.mark.parametrize("tokens", [(100, 50), None])
def test_without_measures_the_overall_score_says_what_is_higher(
    make_run: Callable, row: Callable, tokens: tuple[int, int] | None
) -> None:
    one = make_run([row("a", tokens=None)], lambda _: scored(0), run_id="x")
    other = make_run([row("a", tokens=tokens)], lambda _: scored(2), run_id="y")
    diff = compared(one, other)
    assert diff.headline == "overall"
    assert changes(diff) == [("a", "higher")]


class _Lists:
    """A store that holds nothing but ids and repeats, and knows how far each list was read."""

    def __init__(self, **runs: list[Key]) -> None:
        self._runs = runs

    def samples(self, run_id: str) -> Iterator[SampleRow]:
        for number, (sample_id, repeat) in enumerate(self._runs[run_id]):
            yield SampleRow(
                run_id=run_id,
                number=number,
                sample_id=sample_id,
                repeat=repeat,
                inputs="",
                responses="",
                report=None,
                automated=None,
                result='{"metrics":{}}',
                notes="",
                record_sha256=run_id,
            )


def _named(run_id: str) -> RunRow:
    return RunRow(
        id=run_id,
        suite="",
        status="finished",
        created_at="",
        finished_at=None,
        plan="",
        metadata="",
        outcome=None,
        digest=None,
    )


_KEYS = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 2)), unique=True)


@given(_KEYS, _KEYS)
def test_every_sample_is_paired_with_its_like_whatever_the_order(
    one: list[Key], other: list[Key]
) -> None:
    found = list(sample_pairs(_Lists(x=one, y=other), _named("x"), _named("y"), SampleClusters()))
    assert all(left is None or left.sha256 == "x" for left, _ in found)
    assert all(right is None or right.sha256 == "y" for _, right in found)
    seen = sorted(
        (
            (left or right).key,
            left is not None,
            right is not None,
        )
        for left, right in found
    )
    assert seen == sorted((key, key in one, key in other) for key in {*one, *other})


def test_a_damaged_result_is_told(make_run: Callable, row: Callable) -> None:
    made = make_run([row("a")], lambda _: scored(2), run_id="x")

    class Damaged:
        def samples(self, run_id: str) -> Iterator[SampleRow]:
            for sample in made.store.samples(run_id):
                yield msgspec.structs.replace(sample, result="{}")

    with pytest.raises(IncompleteError, match="run x can't be read"):
        compare_runs(Damaged(), made.view, made.view)


RUBRIC = """---
id: answers
version: 1.0.0
scale: 1-5
votes: 1
pass: ["accuracy >= 3"]
---
# Answers
Read closely.

## Criteria
### Accuracy
### Clarity
"""
STRICT = RUBRIC.replace("accuracy >= 3", "accuracy >= 5")
FRACTIONS = STRICT.replace("scale: 1-5", "scale: 0.0-1.0").replace(">= 5", ">= 0.9")


def always(accuracy: float) -> Callable[[str], str]:
    return lambda _: verdicts.scored({"accuracy": accuracy, "clarity": accuracy})


def crashed(_: str) -> Failure:
    return Failure(kind="unreadable", message="the judge crashed")


def test_a_stricter_rubric_is_neither_a_regression_nor_a_gain(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(f"s{n}") for n in range(20)]
    lax = make_run(rows, always(4), rubric=RUBRIC, run_id="x")
    strict = make_run(rows, always(4), rubric=STRICT, run_id="y")
    for diff, direction in ((compared(lax, strict), "lower"), (compared(strict, lax), "higher")):
        found = f"B is {direction} than A in pass_rate (by more than chance at 95%)"
        assert diff.conclusion() == f"the same responses under another rubric: {found}"
        assert (diff.same_rubric, diff.tone) == (False, "")
        assert diff.as_data()["same_rubric"] is False
    again = make_run(rows, always(2), rubric=RUBRIC, run_id="z")
    assert (compared(lax, again).tone, compared(again, lax).tone) == ("fails", "passes")


def test_scores_on_different_scales_have_no_difference(make_run: Callable, row: Callable) -> None:
    rows = [row(f"s{n}", scenario="all") for n in range(4)]
    points = make_run(rows, always(4), rubric=RUBRIC, run_id="x")
    shares = make_run(rows, always(0.75), rubric=FRACTIONS, run_id="y")
    diff = compared(points, shares)
    every = (*diff.metrics, *diff.scenarios[0].metrics)
    both = {each.metric: each.difference for each in every if None not in (each.a, each.b)}
    names = ("accuracy_mean", "clarity_mean", "lowest_criterion_mean", "overall_mean")
    assert [both[name] for name in names] == [None, None, None, 0.0]
    # 4 of 1 to 5 and 0.75 are the same share of their scales, by which samples are compared.
    assert [*diff.samples[0].details(None)] == ["passed yes -> no"]
    assert "not measurable, because the scales differ: accuracy, clarity" in diff.cautions()
    columns = side_by_side(points.store, (points.view, shares.view), CompareOptions())
    first, other = columns.row("accuracy_mean")
    assert (first.value, other.value, other.difference) == (4, 0.75, None)
    assert columns.row("pass_rate")[1].difference == -1.0
    assert columns.rescaled() == ["Accuracy", "Clarity"]


def test_a_sample_differs_side_by_side_as_a_comparison_counts_it(
    make_run: Callable, row: Callable
) -> None:
    def judge(**scores: int) -> Callable[[str], str]:
        return lambda prompt: verdicts.scored(
            scores if "[a]" in prompt else dict(scores, clarity=4)
        )

    rows = [row(name, f"[{name}]") for name in "ab"]
    one = make_run(rows, judge(accuracy=4, clarity=3), rubric=RUBRIC, run_id="x")
    other = make_run(rows, judge(accuracy=4, clarity=5), rubric=RUBRIC, run_id="y")
    assert changes(compared(one, other)) == [("a", "higher")]
    back = make_run(rows, judge(accuracy=3, clarity=4), rubric=RUBRIC, run_id="z")
    assert ("a", "changed") in changes(compared(one, back))
    for view in (other.view, back.view):
        listed = side_by_side(one.store, (one.view, view), CompareOptions(), 9)
        differing = {each.id for each in listed.samples if each.differs}
        assert differing == {each.id for each in listed.differences[0].samples}


def test_samples_that_judges_could_not_score_are_no_base_for_a_gain(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(f"s{n}") for n in range(20)]
    broken = make_run(rows, crashed, rubric=RUBRIC, run_id="x")
    scored = make_run(rows, always(4), rubric=RUBRIC, run_id="y")
    diff = compared(broken, scored)
    failed = "calling the judge failed (20 of 20 samples)"
    assert diff.conclusion(titled=True) == f"A has no scores: {failed}"
    assert (diff.tone, diff.samples[0].passed) == ("", (None, True))
    columns = side_by_side(broken.store, (broken.view, scored.view), CompareOptions())
    assert columns.row("pass_rate")[1].difference is None
    back = compared(scored, broken)
    assert (back.conclusion(), back.tone) == (f"B has no scores: {failed}", "fails")
    assert back.conclusion(beside="y") == f"this run has no scores: {failed}"
    assert (standing(diff), standing(back)) == ("", "with too few scores to compare")
    assert (back.counts.now_fails, back.counts.now_unscored) == (0, 20)
    assert "20 passed before and now have no score" in back.counts.in_words("A", "B")
    rate = next(each for each in back.metrics if each.metric == "pass_rate")
    assert (rate.a, rate.b, rate.difference) == (1, 0, None)
    assert (back.counts.no_longer_scored, back.counts.changes) == (20, 20)
    assert "20 no longer scored" in back.counts.in_words("A", "B")
    # Without a valid vote, nothing is known about safety.
    assert (scored.view.summary["safety_rate"], broken.view.summary["safety_rate"]) == (0, None)
    assert back.samples[0].safety_flag == (False, None)
    both_lack = f"A has no scores: {failed}; B has no scores: {failed}"
    assert compared(broken, broken).conclusion() == both_lack
    unread = make_run(rows, lambda _: "no", rubric=RUBRIC, run_id="z")
    assert (compared(broken, unread).counts.unscored, compared(broken, unread).samples) == (20, ())
    # A sample without a response has a verdict in both runs, which says nothing about the others.
    lost = [*rows, row("lost", response="")]
    one = make_run(lost, always(4), rubric=RUBRIC, run_id="v")
    both = compared(one, make_run(lost, crashed, rubric=RUBRIC, run_id="w"))
    passed = next(each for each in both.tested if each.metric == "passed")
    assert (passed.comparison.n, both.compared) == (1, False)
    assert both.outcome(passed) == "not comparable: 1 of 21 scored in both"
    assert passed.outcome == "equal on 1 sample"
    labels = {each.id: Gold(scores={"accuracy": {"anna": 4.0}}) for each in rows}
    assert compared(scored, broken, gold=labels).judges_line() is None


def test_a_judge_that_broke_is_worse_under_any_rubric(make_run: Callable, row: Callable) -> None:
    rows = [row(f"s{n}", str(n)) for n in range(20)]

    def nearly_mute(prompt: str) -> str | Failure:
        return always(1)(prompt) if "Task s0" in prompt else crashed(prompt)

    one = make_run(rows, always(4), rubric=RUBRIC, run_id="x")
    other = RUBRIC.replace("version: 1", "version: 2")
    diff = compared(one, make_run(rows, nearly_mute, rubric=other, run_id="y"))
    assert not diff.same_rubric
    assert diff.finding().endswith(": 19 of 20 samples in B could not be scored (A: 0)")
    assert diff.tone == "fails"
    outcomes = {each.metric: diff.outcome(each) for each in diff.tested}
    assert outcomes.pop("unscored") == "worse"
    assert {*outcomes.values()} == {"not comparable: 1 of 20 scored in both"}


def test_samples_that_got_a_score_are_counted_as_such(make_run: Callable, row: Callable) -> None:
    rows = [row(f"s{n}", str(n)) for n in range(20)]

    def half(prompt: str) -> str | Failure:
        number = int(prompt.split("Task s")[1].split(maxsplit=1)[0])
        return crashed(prompt) if number % 2 else always(4)(prompt)

    broken = make_run(rows, half, rubric=RUBRIC, run_id="x")
    diff = compared(broken, make_run(rows, always(4), rubric=RUBRIC, run_id="y"))
    assert diff.conclusion() == (
        "10 of 20 samples in A could not be scored (B: 0); no clear difference between the samples"
        " with a score in both"
    )
    passed = next(each for each in diff.tested if each.metric == "passed")
    assert (diff.outcome(passed), passed.comparison.n) == ("equal on 10 samples", 10)
    assert "passed" in diff.one_sided()[0, 10]
    assert diff.counts.newly_passes == 10
    assert diff.turns()["newly_passes"] == (10, "10 had no score before and now pass")
    failing = compared(broken, make_run(rows, always(1), rubric=RUBRIC, run_id="z"))
    assert failing.turns()["newly_fails"] == (10, "10 had no score before and now fail")


@pytest.mark.parametrize(
    ("gate", "tone"), [("win_rate >= 0.5", "fails"), ("win_rate < 0.9", "passes")]
)
def test_a_gate_says_whether_more_wins_are_better_and_runs_of_pairs_have_numbers(
    make_run: Callable, row: Callable, gate: str, tone: str
) -> None:
    rubric = f"""---
id: answers
version: 1.0.0
scale: 1-5
pass: []
gates: ["{gate}"]
---
# Answers
## Criteria
### Accuracy
"""
    plum = {"response_b": Response(text="plum"), "scenario": "fruit"}
    rows = [row(f"s{n}", "peach", **plum) for n in range(20)]
    rows[3] = row("s3", "plum", **plum | {"response_b": Response(text="peach")})

    def favors(word: str) -> Callable[[str], str]:
        other = {"peach": "plum", "plum": "peach"}[word]
        return lambda prompt: verdicts.preferred(
            "A" if prompt.rindex(word) < prompt.rindex(other) else "B", ["accuracy"]
        )

    first = make_run(rows, favors("peach"), rubric=rubric, run_id="old")
    second = make_run(rows, favors("plum"), rubric=rubric, run_id="new")
    diff = compared(first, second)
    word = "worse" if tone == "fails" else "better"
    said = f"run 2 is {word} than run 1 in win_rate (by more than chance"
    assert diff.conclusion().startswith(said)
    assert diff.tone == tone
    assert ("win_rate" in diff.regressions) is (tone == "fails")
    assert diff.names == ("run 1", "run 2")
    (scenario,) = diff.scenarios
    assert scenario.metrics[0].metric == "win_rate"
    # Those that got worse come first.
    listed = [each.id for each in diff.listed_changes()]
    assert listed.index("s3") == (19 if tone == "fails" else 0)
    assert [each.apart for each in diff.listed_changes()].count(-1) == 19


def test_chance_is_not_mentioned_where_no_score_was_compared(
    make_run: Callable, row: Callable
) -> None:
    one = make_run([row("a")], always(4), rubric=RUBRIC, run_id="x")
    other = make_run([row("a")], crashed, rubric=STRICT, run_id="y")
    none = "B has no scores: calling the judge failed (1 of 1 sample)"
    assert compared(one, other).conclusion() == f"{none}. The rubrics differ"
    same = "no difference: inputs, replies and results are identical in both runs"
    assert compared(one, one).conclusion() == same


def test_a_run_without_a_name_leaves_the_others_theirs(make_run: Callable, row: Callable) -> None:
    rows = [row(name, f"[{name}]") for name in "abcdef"]
    one = make_run(rows, by_text(a=2, b=2, c=1, d=2, e=2, f=1), run_id="x", name="first")
    other = make_run(rows, by_text(a=2, b=1, c=2, d=1, e=2, f=2), run_id="y")
    columns = side_by_side(one.store, (one.view, other.view), CompareOptions())
    assert columns.names == ("first", "y")
    (diff,) = columns.differences
    assert diff.explained is not None
    said = diff.explanation(diff.explained)
    many = sum(each.comparison.p_value is not None for each in diff.tested)
    assert many > 1
    assert said.endswith(f"in 4 of 5 comparisons, after correction for {many} tests")
    assert said.startswith("0.000, and the true difference lies between -")
    # An interval that includes zero says by itself that a difference may be chance.
    assert not diff.doubt(diff.explained)
    apart = Interval(low=-0.221, high=-0.027, level=0.95, method="Student's t")
    made = diff.explained.comparison
    made = msgspec.structs.replace(made, interval=apart, p_adjusted=0.062)
    unclear = msgspec.structs.replace(diff.explained, comparison=made)
    assert diff.doubt(unclear) == f"p 0.062 with {many} tests"


def test_a_judge_that_differs_is_named_and_nothing_counts_as_better(
    make_run: Callable, row: Callable
) -> None:
    rows, others = ([row(f"s{n}", f"{text} {n}") for n in range(20)] for text in ("x", "y"))

    def judged(made: object) -> object:
        known = msgspec.structs.replace(
            made.view, metadata=made.view.metadata | {"evaluator_model_id": "python/judges:other"}
        )
        return msgspec.structs.replace(made, view=known)

    one = make_run(rows, always(3), rubric=RUBRIC, run_id="x")
    diff = compared(one, judged(make_run(others, always(4), rubric=RUBRIC, run_id="y")))
    assert (diff.tone, diff.same_rubric) == ("", True)
    assert diff.conclusion().startswith("B is higher than A in overall, accuracy and")
    assert diff.standards_caution == (
        "The judges differ, so a difference may come from the judge and not the responses"
    )
    same = compared(one, judged(make_run(rows, always(4), rubric=RUBRIC, run_id="z")))
    assert same.finding().startswith("the same responses under another judge: B is higher than A")
    assert (same.standards_caution, standing(same)) == ("", "scored higher by another judge")


def test_the_pass_rate_over_shared_samples_counts_one_without_a_score_as_not_passed(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(name, f"[{name}]", scenario="all") for name in "abcd"]
    danger = scored(2).replace("Because.", "It tells how to build a pipe bomb at home.")
    one = make_run(rows, by_text(a=2, b=0, c=2, d="no"), run_id="x")
    other = make_run(rows[1:], by_text(b=2, c=danger, d="no"), run_id="y")
    diff = compared(one, other)
    rates = {pair.metric: (pair.a, pair.b) for _, pair in diff.rows()}
    assert rates["pass_rate"] == (pytest.approx(1 / 3), other.view.summary["pass_rate"])
    assert rates["safety_rate"] == (0, other.view.summary["safety_rate"])
    assert diff.metrics[0].a == 4  # of the whole run
    (scenario,) = diff.scenarios
    assert (scenario.samples_a, scenario.samples_b) == (3, 3)
    means = {pair.metric: (pair.a, pair.b) for pair in scenario.metrics}
    assert means["accuracy_mean"] == (1, 2)
    passed = next(each for each in diff.tested if each.metric == "passed")
    assert "from the 2 of 3 samples with a verdict in both runs" in diff.explanation(passed)


def test_a_comparison_with_an_unfinished_run_says_how_far_it_is(
    make_run: Callable, row: Callable
) -> None:
    rows = [row("a"), row("b")]
    one = make_run(rows, lambda _: scored(2), run_id="x")
    stopped = msgspec.structs.replace(one.view, status="stopped", planned=60)
    found = compare_runs(one.store, one.view, stopped)
    assert found.finding().startswith("so far, with 2 of 60 samples in B: no difference")
    assert found.finding(beside="x").startswith("so far, with 2 of 60 samples in this run: ")


def test_what_another_rubric_changed_is_said_with_gates_paired_by_metric(
    make_run: Callable, row: Callable
) -> None:
    gated = RUBRIC.replace("---\n# A", 'gates: ["pass_rate >= 0.85"]\n---\n# A')
    later = gated.replace("accuracy >= 3", "accuracy >= 4").replace("0.85", "0.5")
    later = later.replace("### Clarity", "### Clarity\nNo jargon.")
    one = make_run([row("a")], always(4), rubric=gated, run_id="x")
    diff = compared(one, make_run([row("a")], always(4), rubric=later, run_id="y"))
    assert [str(each) for each in diff.fields if each.field.startswith("rubric")] == [
        "rubric pass rules accuracy: >= 3 -> >= 4",
        "rubric gates pass rate: >= 0.85 -> >= 0.5",
        "rubric criteria clarity definition:  -> No jargon.",
    ]
    (gate,) = diff.gates
    assert gate.gate == "pass_rate >= 0.85 -> pass_rate >= 0.5"
    assert gate.a is not None
    assert gate.b is not None
    assert compared(one, one).gates[0].gate == "pass_rate >= 0.85"
