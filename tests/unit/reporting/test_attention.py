"""What a reader sees first (E15), gathered within bounds."""

from collections.abc import Callable

import msgspec
import pytest

from jurybox.engine.records import SampleRow
from jurybox.errors import IncompleteError
from jurybox.reporting.attention import Attention, gather, worst_samples


def scored(accuracy: int, faithfulness: int = 2, why: str = "Because.") -> str:
    scores = f'"accuracy_score": {accuracy}, "faithfulness_score": {faithfulness}'
    return f'{{{scores}, "rationale": "{why}"}}'


def gathered(made: object, **bounds: int) -> Attention:
    return gather(made.store, made.view, **bounds)


def by_kind(attention: Attention) -> dict[str, tuple[int, list[str]]]:
    return {
        concern.kind: (concern.count, [place.id for place in concern.samples])
        for concern in attention.concerns
    }


def test_many_samples_are_counted_and_the_first_are_named(
    make_run: Callable, row: Callable
) -> None:
    rows = [row(f"q{place}", "", late=True) for place in range(30)]
    attention = gathered(make_run(rows, lambda _: scored(2)))
    assert by_kind(attention) == {"target_error": (30, [f"q{place}" for place in range(20)])}
    few = gathered(make_run(rows, lambda _: scored(2), run_id="b"), listed=2)
    assert by_kind(few) == {"target_error": (30, ["q0", "q1"])}


def test_the_worst_come_in_order_and_ties_in_that_of_the_run(
    make_run: Callable, row: Callable
) -> None:
    accuracy = [2, 0, 1, 0, 2, 1]
    latency = [10.0, 40.0, 20.0, None, 30.0, 40.0]
    rows = [row(f"q{place}", f"<{place}>", ms=ms) for place, ms in enumerate(latency)]

    def judge(prompt: str) -> str:
        place = next(place for place in range(6) if f"<{place}>" in prompt)
        return scored(accuracy[place])

    attention = gathered(make_run(rows, judge), ranked=4)
    # q3 was never timed, so it has no sample_score at all, and comes first, as on the pages.
    assert [each.id for each in attention.worst] == ["q3", "q1", "q2", "q5"]
    assert [each.value for each in attention.worst] == [None, 0.55, 0.775, 0.775]
    assert attention.worst[0].metric == "sample_score"
    assert attention.worst[1].task == "Task q1"
    # One rationale for both criteria is told once.
    assert attention.worst[1].reasoning == "accuracy_score 0, faithfulness_score 2: Because."


def test_rules_that_fired_are_the_reason_where_no_judge_speaks(
    make_run: Callable, row: Callable
) -> None:
    words = "**one** two three four five six seven eight nine ten\n\n\n\n- eleven\n- twelve\n- all"
    rows = [row("a", "I hear you. How are you?"), row("b", words)]
    made = make_run(rows, rubric="companion")
    reasons = {card.id: card.reasoning for card in gathered(made).worst}
    assert "raised by Engages with a question" in reasons["a"]
    lowered = "Has formatting characters, which don't suit a voice; Has too many line breaks"
    assert f"conversational_quality 0.3: {lowered}" in reasons["b"]
    assert "Optimal length" not in reasons["b"]


def test_a_result_that_cannot_be_read_is_told(make_run: Callable, row: Callable) -> None:
    made = make_run([row("a")], lambda _: scored(2))

    class Damaged:
        find_samples, reviews_of = made.store.find_samples, made.store.reviews_of

        def sample(self, run_id: str, number: int) -> SampleRow:
            return msgspec.structs.replace(made.store.sample(run_id, number), result="{}")

    with pytest.raises(IncompleteError, match="run run-a can't be read"):
        worst_samples(Damaged(), made.view, 1)
