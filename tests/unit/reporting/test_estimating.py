"""A judge's metrics, corrected by people's labels (E14)."""

import json
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from jurybox.app.estimate_run import RunCorrections, RunLabels, estimate
from jurybox.app.gold_sets import row_labels
from jurybox.calibration.gold import Gold
from jurybox.engine.records import SampleRow
from jurybox.errors import InputError
from jurybox.sample import Response
from jurybox.statistics.corrected import CorrectedMean, CorrectedMetric
from verdicts import preferred

YES_OR_NO = """---
id: right
version: 1.0.0
scale: 0-1
votes: 1
reply_format: strict-json
---
# Right or not

## Criteria

### Right
It is right.

## Judge prompt

```text
{{task}} {{response}}
```
"""


def generous(prompt: str) -> str:
    """Give everything but every fifth full marks."""
    number = int(re.search(r"Task s(\d+)", prompt)[1])
    score = 1 if number % 5 == 0 else 2
    scores = {"accuracy_score": score, "faithfulness_score": 2}
    return json.dumps({**scores, "rationale": "Because."})


def people(number: int) -> float:
    """Be one point stricter on half of the samples."""
    return (1 if number % 5 == 0 else 2) - (number % 2)


def asked(made: object, **question: object) -> RunCorrections:
    how = {name: question.pop(name) for name in ("cluster", "level") if name in question}
    labels = question or {"gold": row_labels(made.store, made.row)}
    return estimate(made.store, made.row, RunLabels(**labels), **how)


def found(made: object, **question: object) -> dict[str, CorrectedMetric]:
    estimates = asked(made, **question).estimates
    return {each.metric: each for each in estimates}


@pytest.fixture
def run(make_run: Callable, row: Callable) -> object:
    rows = [
        row(f"s{number}", f"[s{number}]", metadata={"talk": number // 5}) for number in range(100)
    ]
    return make_run(rows, generous)


def labeled(*numbers: int) -> dict[str, Gold]:
    return {
        f"s{number}": Gold(scores={"accuracy_score": {"1": people(number)}}) for number in numbers
    }


def test_the_corrected_interval_covers_what_people_would_say_and_the_judges_does_not(
    run: object,
) -> None:
    truth = sum(people(number) for number in range(100)) / 100
    mean = found(run, gold=labeled(*range(0, 100, 3)))["accuracy_score"].mean
    assert mean.judge.value == pytest.approx(1.8)
    assert mean.judge.interval.low > truth
    assert mean.corrected.interval.low < truth < mean.corrected.interval.high
    assert mean.human.n == 34
    assert mean.corrected.n == 100
    assert "which the labels contradict" in mean.sentence


def test_the_overall_metric_follows_where_people_gave_all_criteria(run: object) -> None:
    whole = {
        f"s{number}": Gold(
            scores={
                "accuracy_score": {"anna": 1, "ben": 2},
                "faithfulness_score": {"anna": 1},
            }
        )
        for number in range(12)
    }
    assert found(run, gold=whole)["overall"].mean.human.value == pytest.approx(0.625)
    assert "overall" not in found(run, gold=labeled(*range(12)))


PASSING = YES_OR_NO.replace("votes: 1\n", "votes: 1\nscale: 1-5\npass: [right >= 3]\n", 1).replace(
    "scale: 0-1\n", "", 1
)


@pytest.fixture
def passing(make_run: Callable, row: Callable) -> Callable[..., object]:
    """Make a run whose judge lets every response pass, unless there is none."""
    good = json.dumps({"right": 4, "rationale": "Because."})

    def made(failed: int = 0) -> object:
        lost = Response(text="", error="no answer")
        rows = [row(f"s{number}", response=lost) for number in range(failed)]
        rows += [row(f"s{number}") for number in range(failed, 100)]
        return make_run(rows, lambda _: good, rubric=PASSING)

    return made


def test_the_pass_rate_is_corrected_by_whether_people_s_scores_pass(passing: Callable) -> None:
    gold = {
        f"s{number}": Gold(scores={"right": {"1": 2 + number % 4}}) for number in range(0, 100, 3)
    }
    made = found(passing(), gold=gold)["pass_rate"]
    assert made.mean.judge.value == 1
    assert made.mean.human.value == pytest.approx(25 / 34)
    interval = made.mean.corrected.interval
    assert interval.low < 0.75 < interval.high < 0.9
    assert made.rate is not None


def test_each_person_s_scores_pass_or_fail_on_their_own(run: object) -> None:
    # Two rules name a score each; who gave only one of them doesn't count.
    scores = {"anna": (1, 1), "ben": (0, 1), "chris": (2, None)}
    gold = Gold(
        scores={
            "accuracy_score": {who: each[0] for who, each in scores.items()},
            "faithfulness_score": {who: each[1] for who, each in scores.items() if each[1]},
        }
    )
    made = found(run, gold={f"s{number}": gold for number in range(12)})["pass_rate"]
    assert (made.mean.human.value, made.mean.human.n) == (0.5, 12)
    alone = Gold(scores={"accuracy_score": {"chris": 2}})
    assert "pass_rate" not in found(run, gold={f"s{number}": alone for number in range(12)})


def test_a_response_that_is_missing_passes_by_no_one_s_scores(passing: Callable) -> None:
    made = passing(failed=20)
    reviewed = {number: Gold(scores={"right": {"anna": 4}}) for number in range(20, 50)}
    known = found(made, reviewed=reviewed, drawn=range(10, 50))["pass_rate"].mean
    assert (known.human.n, known.human.value) == (40, 0.75)
    assert known.corrected.value == pytest.approx(0.8, abs=0.01)
    gold = {f"s{number}": each for number, each in reviewed.items()}
    mean = found(made, gold=gold)["pass_rate"].mean
    assert mean.corrected.value is None
    assert "counts samples without a response, and they have no label" in mean.sentence


def test_a_repeat_without_a_response_counts_as_much_as_one_that_several_people_scored(
    make_run: Callable, row: Callable
) -> None:
    good = json.dumps({"right": 4, "rationale": "Because."})
    rows = [row(f"s{number}") for number in range(12)]
    made = make_run(rows, lambda _: good, rubric=PASSING, repeats=2)

    def samples(run_id: str) -> Iterator[SampleRow]:
        for each in made.store.samples(run_id):
            result = {**json.loads(each.result), "target_error": "no answer", "passed": False}
            yield replace(each, result=json.dumps(result)) if each.repeat else each

    def rate(**by: int) -> CorrectedMean | None:
        gold = {f"s{number}": Gold(scores={"right": by}) for number in range(12)}
        asked = estimate(SimpleNamespace(samples=samples), made.row, RunLabels(gold=gold))
        return next((each.mean for each in asked.estimates if each.metric == "pass_rate"), None)

    two = rate(anna=4, ben=4)
    assert (two.human.value, two.human.n) == (0.5, 12)
    # Who scored nothing that the rules name says nothing about the other repeat.
    assert rate() is None


def test_a_pass_rate_that_too_few_reviews_settle_isnt_corrected(passing: Callable) -> None:
    reviewed = {number: Gold(scores={"right": {"anna": 4}}) for number in range(26)}
    mean = found(passing(), reviewed=reviewed, drawn=range(30))["pass_rate"].mean
    assert mean.corrected.value is None
    assert "4 of the 30 samples drawn at random have no label for every pass rule" in mean.sentence


def test_samples_of_one_conversation_are_not_independent(run: object) -> None:
    gold = labeled(*range(0, 100, 2))
    alone = found(run, gold=gold)["accuracy_score"].mean.corrected.interval
    clustered = found(run, gold=gold, cluster="talk")["accuracy_score"].mean.corrected.interval
    assert clustered.method.endswith("clustered")
    assert (clustered.low, clustered.high) != (alone.low, alone.high)


def test_two_responses_are_corrected_by_who_wins(make_run: Callable, row: Callable) -> None:
    def judge(prompt: str) -> str:
        side = "A" if prompt.index("[one]") < prompt.index("[two]") else "B"
        return preferred(side, ["right"])

    rubric = YES_OR_NO.replace("strict-json", "json").replace(
        "{{response}}", "{{response}} {{response_b}}"
    )
    rows = [
        row(f"s{number}", "[one]", response_b=Response(text="[two]"), metadata={"gold_winner": "B"})
        for number in range(12)
    ] + [row(f"s{number}", "[one]", response_b=Response(text="[two]")) for number in range(12, 40)]
    made = make_run(rows, judge, rubric=rubric)
    wins = found(made)["win_rate"]
    assert wins.mean.judge.value == 1
    assert wins.mean.human.value == 0
    assert wins.rate is not None
    assert "no label is yes" in wins.rate.reason


def test_labels_of_other_samples_are_counted(run: object) -> None:
    gold = {**labeled(*range(20)), "stranger": Gold(scores={"accuracy_score": {"1": 1}})}
    assert estimate(run.store, run.row, RunLabels(gold=gold)).strangers == 1


def test_labels_without_a_metric_of_the_judge_are_counted(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(f"s{number}") for number in range(30)]
    made = make_run(rows, lambda prompt: "no" if "Task s3" in prompt else generous(prompt))
    told = found(made, gold=labeled(*range(15)))["accuracy_score"]
    assert (told.unscored, told.mean.human.n) == (1, 14)


def test_where_every_sample_has_a_label_it_is_people_s_own_metric_of_all_of_them(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(f"s{number}") for number in range(30)]
    made = make_run(rows, lambda prompt: "no" if "Task s3" in prompt else generous(prompt))
    told = found(made, gold=labeled(*range(30)))["accuracy_score"]
    own = sum(people(number) for number in range(30)) / 30
    assert (told.mean.human.n, told.mean.human.value) == (30, pytest.approx(own))
    assert told.mean.corrected.value is None
    assert f"every sample has a label: people's own value needs no correction, {own:g}" in (
        told.mean.sentence
    )
    without = found(made, gold=labeled(*(n for n in range(30) if n != 3)))["accuracy_score"]
    assert "every sample that the judge scored has a label" in without.mean.sentence


def test_a_metric_that_more_than_one_in_ten_drawn_samples_lack_isnt_corrected(run: object) -> None:
    reviewed = {
        number: Gold(scores={"accuracy_score": {"anna": people(number)}}) for number in range(27)
    }
    enough = found(run, reviewed=reviewed, drawn=range(30))["accuracy_score"]
    assert enough.mean.corrected.value is not None
    assert enough.missing == 3
    few = found(run, reviewed=reviewed, drawn=range(31))["accuracy_score"]
    assert few.mean.corrected.value is None
    assert "4 of the 31 samples drawn at random have no label" in few.mean.sentence
    assert few.mean.human.n == 27


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"gold": {"stranger": Gold()}}, "no sample of the run has a label; check that the ids"),
        ({}, "no sample of the run has a label; give some with --gold"),
        ({"gold": labeled(1), "cluster": "chat"}, "no sample has a field `chat`"),
    ],
)
def test_what_cannot_be_corrected_is_refused(
    run: object, question: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        asked(run, **question)


def test_a_rows_own_label_that_cannot_be_one_is_told_with_its_sample(
    make_run: Callable, row: Callable
) -> None:
    made = make_run([row("s1", metadata={"gold": {"accuracy_score": 9}})], generous)
    with pytest.raises(InputError, match=r"sample s1: `gold` gives `accuracy_score` 9"):
        row_labels(made.store, made.row)
