"""What each judge said, read again from the stored replies."""

import json
from collections.abc import Callable

from jurybox.reporting.judge_votes import Opinion, StatedVote, opinions_of, votes_on, warnings_of
from jurybox.reporting.reasons import judged_sample, main_reason
from jurybox.reporting.stored import SampleRecord, procedure_of, read_record, rubric_of
from jurybox.sample import Response
from stored_runs import Made, MakeRun, answered

RUBRIC = """---
id: answers
version: 1.0.0
scale: 1-5
---
# Answers

## Criteria
### Facts
"""
ITEMS = ("authority", "formatting", "position", "self_enhancement", "verbosity")
REMARKS = {
    "reasoning": {"facts": "Because it is so."},
    "bias_checklist": dict.fromkeys(ITEMS, "It had no effect."),
    "safety_concerns": [],
}


def scored(score: int) -> str:
    return json.dumps({**REMARKS, "scores": {"facts": score}})


def preferred(side: str) -> str:
    return json.dumps({**REMARKS, "preferences": {"facts": side}, "winner": side})


def always(reply: str) -> Callable[[str], str]:
    return lambda _: reply


def record_of(made: Made) -> SampleRecord:
    row = made.store.sample(made.row.id, 0)
    assert row is not None
    return read_record(made.row, row, made.store.exchanges_of(made.row.id, 0))


def votes_of(made: Made) -> list[StatedVote]:
    return [*votes_on(procedure_of(made.row), record_of(made))]


def test_a_vote_in_a_code_fence_is_a_vote(make_run: MakeRun) -> None:
    said = f"```json\n{scored(4)}\n```"
    (vote,) = votes_of(make_run([answered("s")], always(said), rubric=RUBRIC))
    assert (vote.reply, vote.verdicts, vote.reasoning) == (1, {"facts": 4}, REMARKS["reasoning"])


def test_refused_replies_are_no_votes(make_run: MakeRun) -> None:
    replies = iter([scored(9), scored(2)])
    (vote,) = votes_of(make_run([answered("s")], lambda _: next(replies), rubric=RUBRIC))
    assert (vote.reply, vote.verdicts) == (2, {"facts": 2})
    lost = make_run([answered("s")], always(scored(9)), rubric=RUBRIC, run_id="run-b")
    assert votes_of(lost) == []


def test_a_vote_on_a_pair_has_what_was_shown_first_and_the_winner(make_run: MakeRun) -> None:
    row = answered("s", "one", response_b=Response(text="two"))
    first, second = votes_of(make_run([row], always(preferred("A")), rubric=RUBRIC))
    assert (first.first, first.winner, first.verdicts, first.reply) == ("A", "A", {"facts": "A"}, 1)
    assert (second.first, second.winner, second.verdicts) == ("B", "B", {"facts": "B"})


def test_only_the_replies_with_a_finding_of_the_report_warn(make_run: MakeRun) -> None:
    careful = scored(4).replace("[]", '["It asks for a PIN."]')
    replies = iter([scored(4), careful, scored(3)])
    made = make_run([answered("s")], lambda _: next(replies), rubric=RUBRIC, votes=3)
    wanted = {("judge-concern", "It asks for a PIN."): {"python/judges:one": [2]}}
    assert warnings_of(record_of(made), 60) == wanted


def explained(made: Made) -> str:
    report = record_of(made).report
    assert report is not None
    return report.criteria[0].reasoning


def test_e8_a_tie_is_explained_by_both_orders_or_both_sides(make_run: MakeRun) -> None:
    row = answered("s", "one", response_b=Response(text="two"))
    why = REMARKS["reasoning"]["facts"]
    by_order = make_run([row], always(preferred("B")), rubric=RUBRIC)
    assert explained(by_order) == (
        "the response shown second is preferred in both orders."
        f" With A first: {why} With B first, called A: {why}"
    )
    replies = iter(map(preferred, ("A", "tie")))
    unsure = make_run([row], lambda _: next(replies), rubric=RUBRIC, run_id="unsure")
    assert explained(unsure).startswith("the preference changes with the order. With A first")
    replies = iter(map(preferred, ("A", "B", "B", "A")))
    split = make_run([row], lambda _: next(replies), rubric=RUBRIC, votes=2, run_id="split")
    assert explained(split) == f"the votes are divided. For A: {why} For B: {why}"
    tie = make_run([row], always(preferred("tie")), rubric=RUBRIC, run_id="tie")
    assert explained(tie) == why


def test_e8_one_vote_does_not_explain_a_tie_of_votes_that_changed(make_run: MakeRun) -> None:
    replies = iter(map(preferred, ("A", "A", "B", "B", "tie", "tie")))
    row = answered("s", "one", response_b=Response(text="two"))
    made = make_run([row], lambda _: next(replies), rubric=RUBRIC, votes=3)
    record, why = record_of(made), "most votes change with the order of the responses"
    assert main_reason(record, rubric_of(made.row)) == f"tie on Facts: {why}"
    assert judged_sample(record, rubric_of(made.row)).reasoning == {"facts": why}


def test_two_responses_scored_against_a_reference_have_votes_each(make_run: MakeRun) -> None:
    row = answered("s", "one", response_b=Response(text="two"), reference="two")
    made = make_run([row], always(scored(5)), rubric=RUBRIC)
    assert {each.response for each in votes_of(made)} == {"A", "B"}


def test_equal_words_about_swapped_responses_are_two_explanations(make_run: MakeRun) -> None:
    row = answered("s", "one", response_b=Response(text="two"))

    def explained_by(why: str) -> list[Opinion]:
        said = preferred("tie").replace("Because it is so.", why)
        made = make_run([row], always(said), rubric=RUBRIC, run_id=why[:1])
        return opinions_of(votes_of(made))["", "facts"]

    first, second = explained_by("A is as good as B.")
    assert (first.swapped, second.swapped) == (False, True)
    assert second.in_words == "python/judges:one, shown swapped: tie"
    (both,) = explained_by("Neither is good.")
    assert not both.swapped
