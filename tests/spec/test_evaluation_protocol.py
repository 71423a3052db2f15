"""E1 to E13 and E15: the protocol of a judge, flows driven by hand, without an event loop."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox import load_rubric, parse_rubric
from jurybox.errors import InputError
from jurybox.judging.evaluation_report import CONFIDENCES, EvaluationReport
from jurybox.judging.flow import Failure, Flow, ModelReply, ModelRequest, Outcome
from jurybox.judging.formats.reply_format import mirror
from jurybox.judging.jury import count_scores, count_sides, jury
from jurybox.judging.prompts import bias_checklist_prompt
from jurybox.judging.protocol import Judging
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Response, Sample, Turn, Usage

RUBRIC = parse_rubric("""---
id: two
version: 1.0.0
scale: 1-5
weights: {correctness: 3}
---
# Two criteria
## Criteria
### Correctness
Facts are right.
### Tone
Friendly.
""")
CHECKLIST = load_rubric("bias-awareness")
JUDGING = Judging(rubric=RUBRIC, checklist=CHECKLIST)
ONE = Sample(task="What is 2 + 2?", response=Response(text="It is 4."))
TWO = msgspec.structs.replace(ONE, response_b=Response(text="It is five."))

Answer = Callable[[ModelRequest], Outcome | str]


def judged(**changes: object) -> Judging:
    return Judging(rubric=msgspec.structs.replace(RUBRIC, **changes), checklist=CHECKLIST)


def remarks(**changes: object) -> dict[str, Any]:
    return {
        "reasoning": {"correctness": "The sum is right.", "tone": "Plain."},
        "bias_checklist": {item.id: f"Not at work: {item.id}." for item in CHECKLIST.criteria},
        "safety_concerns": [],
        **changes,
    }


def scores(correctness: object, tone: object = 4, **changes: object) -> str:
    return json.dumps({**remarks(**changes), "scores": {"correctness": correctness, "tone": tone}})


def prefers(winner: str, correctness: str | None = None, tone: str | None = None) -> str:
    preferences = {"correctness": correctness or winner, "tone": tone or winner}
    return json.dumps({**remarks(), "preferences": preferences, "winner": winner})


class Talk:
    """Drives a flow with the answers of a function and keeps what was asked, batch by batch."""

    def __init__(self, flow: Flow[EvaluationReport], answer: Answer) -> None:
        self.batches: list[tuple[ModelRequest, ...]] = []
        try:
            batch = next(flow)
            while True:
                self.batches.append(batch)
                batch = flow.send(tuple(_outcome(answer(request)) for request in batch))
        except StopIteration as done:
            self.report: EvaluationReport = done.value

    @property
    def requests(self) -> list[ModelRequest]:
        return [request for batch in self.batches for request in batch]


def _outcome(answer: Outcome | str) -> Outcome:
    if isinstance(answer, str):
        return ModelReply(text=answer, usage=Usage(input_tokens=100, output_tokens=10))
    return answer


def by_vote(*replies: Outcome | str) -> Answer:
    """Answer each vote with its own reply, every time it is asked."""
    return lambda request: replies[request.vote]


def in_turn(*replies: Outcome | str) -> Answer:
    left: Iterator[Outcome | str] = iter(replies)
    return lambda _: next(left)


def by_shown_first(text: str, then: str, otherwise: str) -> Answer:
    """Answer by which response the prompt shows first."""

    def answer(request: ModelRequest) -> str:
        prompt = request.messages[0].content
        first = prompt.index("<<<RESPONSE A")
        return (
            then if prompt[first : prompt.index("<<<END RESPONSE A")].find(text) > 0 else otherwise
        )

    return answer


def evaluate(
    sample: Sample,
    answer: Answer,
    votes: int = 3,
    judging: Judging = JUDGING,
    judges: Sequence[str] = ("test/judge",),
) -> Talk:
    return Talk(jury(judging, sample, judges, votes), answer)


class TestInputs:
    def test_e1_context_reference_and_history_reach_the_judge(self) -> None:
        sample = msgspec.structs.replace(
            ONE,
            reference="Four.",
            context="Arithmetic of whole numbers.",
            messages=(Turn(role="user", content="Earlier question"),),
        )
        prompt = evaluate(sample, by_vote(scores(5)), votes=1).requests[0].messages[0].content
        for text in ("Four.", "Arithmetic of whole numbers.", "Earlier question", "It is 4."):
            assert text in prompt

    def test_e2_one_response_without_a_reference_is_scored_by_the_rubric(self) -> None:
        talk = evaluate(ONE, lambda _: scores(5))
        assert talk.report.method == "rubric"
        assert "REFERENCE" not in talk.requests[0].messages[0].content

    def test_e2_a_reference_is_the_ground_truth(self) -> None:
        talk = evaluate(msgspec.structs.replace(ONE, reference="Four."), lambda _: scores(5))
        assert talk.report.method == "reference"

    @pytest.mark.parametrize(
        ("first", "second", "winner"), [(5, 2, "A"), (2, 5, "B"), (3, 3, "tie")]
    )
    def test_e2_two_responses_and_a_reference_need_no_comparison(
        self, first: int, second: int, winner: str
    ) -> None:
        sample = msgspec.structs.replace(TWO, reference="Four.")
        talk = evaluate(
            sample,
            lambda request: scores(first if "It is 4." in request.messages[0].content else second),
        )
        assert len(talk.requests) == 6
        assert not any("RESPONSE B" in request.messages[0].content for request in talk.requests)
        assert (talk.report.method, talk.report.winner, talk.report.stable) == (
            "reference",
            winner,
            None,
        )
        assert talk.report.responses is not None
        totals = [talk.report.responses[side].total_score for side in ("A", "B")]
        assert totals == [first + 4, second + 4]
        assert (talk.report.votes_valid, talk.report.votes_requested) == (3, 3)

    def test_e2_two_responses_without_a_reference_are_compared(self) -> None:
        assert evaluate(TWO, lambda _: prefers("tie")).report.method == "pairwise"

    def test_e3_the_checklist_ends_every_prompt(self) -> None:
        for sample, reply in ((ONE, scores(5)), (TWO, prefers("A"))):
            talk = evaluate(sample, lambda _, reply=reply: reply)
            for request in talk.requests:
                assert request.messages[0].content.endswith(bias_checklist_prompt(CHECKLIST))


class TestValidation:
    @pytest.mark.parametrize(
        "reply",
        [
            scores(5, reasoning={"correctness": "", "tone": "Plain."}),
            scores(5, reasoning={"tone": "Plain."}),
            scores(5, reasoning={"correctness": "...", "tone": "Plain."}),
            scores(5, reasoning={"correctness": "\u200b", "tone": "Plain."}),
            json.dumps({"scores": {"correctness": 5, "tone": 4}, **remarks()}),
            json.dumps({"scores": {"correctness": 5, "tone": 4}}),
        ],
    )
    def test_e4_scores_without_reasoning_before_them_are_asked_again(self, reply: str) -> None:
        talk = evaluate(ONE, in_turn(reply, scores(3)), votes=1)
        assert len(talk.requests) == 2
        assert talk.report.criteria[0].score == 3

    @pytest.mark.parametrize("score", [3.5, 3.0, "3", True, None, 0, 6, -1, [3], {"score": 3}])
    def test_e5_a_score_is_an_integer_on_the_scale_or_nothing(self, score: object) -> None:
        report = evaluate(ONE, lambda _: scores(score), votes=1).report
        assert report.criteria[0].score is None
        assert report.total_score is None
        assert report.overall is None

    def test_e5_missing_unknown_and_repeated_criteria_are_refused(self) -> None:
        whole = scores(5)
        for reply in (
            whole.replace(', "tone": 4', ""),
            whole.replace('"tone": 4', '"tone": 4, "style": 4'),
            whole.replace('"tone": 4', '"tone": 4, "tone": 4'),
            whole.replace('"tone": 4', '"tone": NaN'),
        ):
            assert reply != whole
            assert evaluate(ONE, lambda _, reply=reply: reply, votes=1).report.votes_valid == 0

    def test_e6_the_defect_is_said_and_asked_again_at_most_reasks_times(self) -> None:
        talk = evaluate(ONE, lambda _: scores(9), votes=1)
        assert len(talk.requests) == 3
        first, second, third = (request.messages for request in talk.requests)
        assert len(first) == 1
        assert second[0] == third[0] == first[0]
        assert second[1] == Turn(role="assistant", content=scores(9))
        assert 'the score of "correctness" is 9' in second[2].content

    def test_e6_a_vote_that_stays_invalid_is_unscored_with_its_reason(self) -> None:
        report = evaluate(ONE, by_vote(scores(5), "no idea", scores(5))).report
        assert (report.votes_valid, report.votes_requested) == (2, 3)
        assert report.lost_votes[0].vote == 1
        assert "no JSON object" in report.lost_votes[0].reason
        assert report.criteria[0].votes == (5, 5)

    def test_e6_reasks_and_their_words_are_the_rubrics(self) -> None:
        judging = judged(reasks=1, reask_with="same")
        talk = evaluate(ONE, lambda _: "nothing", votes=1, judging=judging)
        assert len(talk.requests) == 2
        assert talk.requests[0] == talk.requests[1]

    def test_e6_a_failure_costs_one_vote_and_is_not_asked_again(self) -> None:
        dead = Failure(kind="unreachable", message="nobody answers")
        talk = evaluate(ONE, by_vote(scores(5), dead, scores(5)))
        assert len(talk.requests) == 3
        assert talk.report.lost_votes[0].reason == "nobody answers"
        assert talk.report.criteria[0].score == 5

    def test_e6_an_invalid_reply_is_named_before_the_failure_to_correct_it(self) -> None:
        dead = Failure(kind="failed", message="IndexError")
        talk = evaluate(ONE, lambda request: dead if request.messages[1:] else "Sorry.", votes=1)
        (lost,) = talk.report.lost_votes
        problem = 'it contains no JSON object with "scores"'
        assert lost.reason == f"{problem}; asking again failed: IndexError"
        assert lost.cause == "defect"

    def test_e7_two_verdicts_that_differ_are_none(self) -> None:
        injected = f"The response says {scores(5)} but I say {scores(1)}"
        assert evaluate(ONE, lambda _: injected, votes=1).report.votes_valid == 0

    def test_e7_one_object_in_a_fence_or_in_prose_is_accepted(self) -> None:
        for reply in (f"```json\n{scores(2)}\n```", f"Here is my verdict: {scores(2)} Thank you."):
            assert evaluate(ONE, lambda _, r=reply: r, votes=1).report.criteria[0].score == 2


class TestPairs:
    def test_e8_each_vote_is_two_calls_in_both_orders(self) -> None:
        talk = evaluate(TWO, by_shown_first("It is 4.", prefers("A"), prefers("B")))
        assert len(talk.requests) == 6
        assert len(talk.batches) == 1
        assert (talk.report.winner, talk.report.stable) == ("A", True)
        assert [criterion.preference for criterion in talk.report.criteria] == ["A", "A"]

    def test_e8_a_judge_that_goes_by_position_is_unstable_a_tie_and_reviewed(self) -> None:
        report = evaluate(TWO, lambda _: prefers("A")).report
        assert (report.winner, report.stable) == ("tie", False)
        assert "unstable" in report.review_reasons
        assert report.needs_review

    def test_e8_the_rubric_may_leave_an_unstable_pair_to_people(self) -> None:
        report = evaluate(TWO, lambda _: prefers("A"), judging=judged(on_unstable="review")).report
        assert (report.winner, report.stable, report.needs_review) == (None, False, True)

    def test_e8_half_a_pair_is_no_vote(self) -> None:
        answer = by_shown_first("It is 4.", prefers("A"), "no verdict")
        report = evaluate(TWO, answer, votes=1).report
        assert (report.votes_valid, report.winner, report.stable) == (0, None, None)
        assert report.lost_votes[0].reason.startswith("B before A: ")

    @given(st.lists(st.sampled_from(["A", "B", "tie"]), min_size=6, max_size=6))
    def test_e8_swapping_the_responses_mirrors_the_report(self, sides: list[str]) -> None:
        swapped = msgspec.structs.replace(TWO, response=TWO.response_b, response_b=TWO.response)

        def answer(request: ModelRequest) -> str:
            first = by_shown_first("It is 4.", "0", "1")(request)
            return prefers(sides[2 * request.vote + int(str(first))])

        one, other = (evaluate(each, answer).report for each in (TWO, swapped))
        assert one.winner is not None
        assert other.winner == mirror(one.winner)
        assert (one.stable, one.confidence) == (other.stable, other.confidence)


class TestJury:
    @pytest.mark.parametrize(
        ("votes", "score", "confidence"),
        [
            ([4, 4, 4], 4, "high"),
            ([4, 4, 2], 4, "moderate"),
            ([1, 3, 5], 3, "low"),
            ([2, 5], 2, "low"),
            ([2, 2, 5, 5], 2, "low"),
            ([3], 3, "moderate"),
        ],
    )
    def test_e9_majority_confidence_and_median(
        self, votes: list[int], score: int, confidence: str
    ) -> None:
        report = evaluate(ONE, by_vote(*map(scores, votes)), votes=len(votes)).report
        assert report.criteria[0].score == score
        assert report.criteria[0].confidence == confidence
        assert report.criteria[0].votes == tuple(votes)
        assert report.confidence == confidence
        assert ("low_confidence" in report.review_reasons) == (confidence == "low")

    def test_e9_the_reports_confidence_is_the_lowest(self) -> None:
        report = evaluate(ONE, by_vote(scores(5, 4), scores(5, 4), scores(5, 2))).report
        assert [each.confidence for each in report.criteria] == ["high", "moderate"]
        assert report.confidence == "moderate"

    def test_e9_a_jury_that_lost_a_vote_is_not_high(self) -> None:
        assert evaluate(ONE, by_vote(scores(5), scores(5), "?")).report.confidence == "moderate"

    def test_e9_without_a_majority_the_winner_is_a_tie(self) -> None:
        report = evaluate(TWO, lambda r: _steady(r, ["A", "B", "tie"][r.vote])).report
        assert (report.winner, report.confidence) == ("tie", "low")

    @given(st.lists(st.integers(1, 5), min_size=1, max_size=7), st.randoms())
    def test_e9_the_order_of_votes_does_not_matter(self, votes: list[int], random: Random) -> None:
        shuffled = random.sample(votes, len(votes))
        assert count_scores(votes, len(votes)) == count_scores(shuffled, len(votes))

    @given(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=7))
    def test_e9_an_agreeing_vote_never_lowers_confidence(self, votes: list[int]) -> None:
        score, before = count_scores(votes, len(votes))
        assert score is not None
        _, after = count_scores([*votes, score], len(votes) + 1)
        assert CONFIDENCES.index(after) >= CONFIDENCES.index(before)

    def test_e9_no_votes_are_no_score(self) -> None:
        assert count_scores([], 3) == (None, "low")
        assert count_sides([], 3) == (None, "low")

    def test_e10_votes_have_their_own_seeds_and_the_votes_temperature(self) -> None:
        talk = evaluate(ONE, lambda _: scores(5))
        assert [request.generation.seed for request in talk.requests] == [42, 43, 44]
        assert {request.generation.temperature for request in talk.requests} == {0.7}
        assert talk.report.votes_independent
        assert talk.report.overrides == {"temperature": 0.7}

    def test_e10_a_single_vote_keeps_the_rubrics_temperature(self) -> None:
        talk = evaluate(ONE, lambda _: scores(5), votes=1)
        assert talk.requests[0].generation == Generation()
        assert talk.report.overrides == {}

    def test_a10_the_version_that_a_provider_reports_is_in_the_report(self) -> None:
        reply = ModelReply(text=scores(5), model="judge-2025-01-01", fingerprint="fp_1")
        assert evaluate(ONE, lambda _: reply).report.reported_models == ("judge-2025-01-01 fp_1",)

    def test_e10_a_mixed_jury_deals_the_votes_out_in_turns(self) -> None:
        talk = evaluate(ONE, lambda _: scores(5), judges=["a/x", "b/y"])
        asked = [(request.model, request.generation.temperature) for request in talk.requests]
        # Three votes would be two by one judge and one by the other (E9).
        assert asked == [("a/x", 0.7), ("b/y", 0.7), ("a/x", 0.7), ("b/y", 0.7)]
        assert talk.report.judges == ("a/x", "b/y")

    def test_e10_identical_parameters_are_one_vote_asked_three_times(self) -> None:
        sent = Generation(temperature=0.7, seed=1)
        without_seed = ModelReply(text=scores(5), sent=sent, seed_sent=False)
        assert not evaluate(ONE, lambda _: without_seed).report.votes_independent
        cold = ModelReply(text=scores(5), sent=Generation())
        report = evaluate(ONE, lambda _: cold).report
        assert not report.votes_independent
        # E9: one vote that was asked for three times is no agreement.
        assert {report.confidence, *(each.confidence for each in report.criteria)} == {"moderate"}


def _steady(request: ModelRequest, side: str) -> str:
    """Prefer the same response in either order."""
    mirrored = {"A": "B", "B": "A", "tie": "tie"}[side]
    return str(by_shown_first("It is 4.", prefers(side), prefers(mirrored))(request))


class TestSafety:
    def test_e11_a_danger_in_the_judges_words_flags_the_report(self) -> None:
        reasoning = {"correctness": "The response encourages self-harm.", "tone": "Plain."}
        report = evaluate(ONE, lambda _: scores(5, reasoning=reasoning)).report
        assert report.safety_flag
        assert report.safety_findings[0].category == "self-harm"
        assert report.criteria[0].score == 5
        assert "safety" in report.review_reasons

    def test_e11_the_judges_own_concern_flags_the_report(self) -> None:
        concern = ["The dose given is four times too high."]
        report = evaluate(ONE, lambda _: scores(5, safety_concerns=concern)).report
        assert [finding.category for finding in report.safety_findings] == ["judge-concern"]

    @pytest.mark.parametrize(
        "denial", ["No safety concerns.", "It does not encourage self-harm or violence."]
    )
    def test_e11_a_denial_is_no_finding(self, denial: str) -> None:
        reasoning = {"correctness": denial, "tone": "Plain."}
        assert not evaluate(ONE, lambda _: scores(5, reasoning=reasoning)).report.safety_flag

    def test_e11_the_responses_are_scanned_and_reported_apart(self) -> None:
        sample = msgspec.structs.replace(ONE, response=Response(text="You should kill yourself."))
        report = evaluate(sample, lambda _: scores(1)).report
        assert report.response_findings[0].category == "self-harm"
        assert not report.safety_flag


class TestReport:
    def test_e12_the_report_has_every_field_of_the_contract(self) -> None:
        talk = evaluate(ONE, by_vote(scores(5, 4), scores(5, 4), scores(4, 4)))
        data = talk.report.as_data()
        assert data["rubric"] == {"id": "two", "version": "1.0.0", "sha256": RUBRIC.sha256}
        assert data["criteria"][0] == {
            "id": "correctness",
            "score": 5,
            "scale": [1, 5],
            "weight": 3.0,
            "reasoning": "The sum is right.",
            "confidence": "moderate",
            "votes": [5, 5, 4],
            "vote_mean": 4.666667,
        }
        # Three times the whole scale and once three quarters of it, over four.
        assert (data["total_score"], data["max_score"], data["overall"]) == (9, 10, 0.9375)
        assert list(data["bias_checklist"]) == [item.id for item in CHECKLIST.criteria]
        usage = {"input_tokens": 300, "output_tokens": 30, "cached_tokens": None}
        assert data["usage"] == usage
        assert data["judges"] == ["test/judge"]
        assert json.loads(json.dumps(data)) == data

    def test_e12_the_reasoning_shown_is_of_a_vote_for_the_score_shown(self) -> None:
        why = {"correctness": "Too bold.", "tone": "Plain."}
        replies = (scores(2, reasoning=why), scores(5), scores(5))
        assert evaluate(ONE, by_vote(*replies)).report.criteria[0].reasoning == "The sum is right."

    def test_e12_the_checklist_keeps_what_each_judge_wrote(self) -> None:
        other = {item.id: "Another remark." for item in CHECKLIST.criteria}
        replies = (scores(5), scores(5, bias_checklist=other), scores(5))
        checklist = evaluate(ONE, by_vote(*replies)).report.bias_checklist
        assert checklist["position"] == "Not at work: position.\nAnother remark."

    def test_e13_every_checklist_item_must_be_completed(self) -> None:
        for item in CHECKLIST.criteria:
            partial = {each.id: "Fine." for each in CHECKLIST.criteria if each is not item}
            report = evaluate(ONE, lambda _, p=partial: scores(5, bias_checklist=p), votes=1).report
            assert report.votes_valid == 0
            assert item.id in report.lost_votes[0].reason

    @pytest.mark.parametrize("name", ["general", "code-review", "bias-awareness"])
    def test_e13_the_bundled_rubrics_can_be_judged_by(self, name: str) -> None:
        rubric = load_rubric(name)
        judging = Judging(rubric=rubric, checklist=CHECKLIST)
        reply = json.dumps(
            {
                **remarks(reasoning={each.id: "Seen." for each in rubric.criteria}),
                "scores": {each.id: each.scale.high for each in rubric.criteria},
            }
        )
        assert evaluate(ONE, lambda _: reply, judging=judging).report.overall == 1

    def test_e13_answer_quality_is_asked_and_read_its_own_way(self) -> None:
        judging = Judging(rubric=load_rubric("answer-quality"), checklist=CHECKLIST)
        reply = '{"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Fine."}'
        report = evaluate(ONE, lambda _: reply, votes=1, judging=judging).report
        assert [each.score for each in report.criteria] == [2, 1]

    def test_e13_companion_scores_the_response_as_a_whole(self) -> None:
        judging = Judging(rubric=load_rubric("companion"), checklist=CHECKLIST)
        reply = "Score: 0.8 | Reasoning: Warm and clear."
        report = evaluate(ONE, lambda _: reply, votes=1, judging=judging).report
        assert [(each.id, each.score) for each in report.criteria] == [("overall_quality", 0.8)]

    def test_a_format_that_does_not_fit_is_refused_before_any_call(self) -> None:
        judging = Judging(rubric=load_rubric("companion"), checklist=CHECKLIST)
        with pytest.raises(InputError, match="can't compare two responses"):
            next(jury(judging, TWO, ["m/x"], 3))

    def test_e15_every_reason_for_review_is_named_the_gravest_first(self) -> None:
        concern = ["It tells a child to drink bleach."]
        replies = [scores(each, safety_concerns=concern) for each in (1, 3, 5)]
        report = evaluate(ONE, by_vote(*replies)).report
        assert report.review_reasons == ("safety", "low_confidence")
        empty = evaluate(ONE, lambda _: "?").report
        assert empty.review_reasons == ("unscored",)
        assert (empty.total_score, empty.overall, empty.confidence) == (None, None, "low")


class TestAfterReview:
    """What an independent reader of the protocol tried."""

    @pytest.mark.parametrize(
        "danger",
        [
            "The response tells the user:\nkill yourself",
            "the user should kill\nyourself",
            "k\u200bill yourself, it says",
        ],
    )
    def test_e11_an_escape_hides_no_danger(self, danger: str) -> None:
        reasoning = {"correctness": "No issue", "tone": danger}
        assert evaluate(ONE, lambda _: scores(5, reasoning=reasoning)).report.safety_flag

    def test_e11_a_denial_with_an_escaped_apostrophe_is_a_denial(self) -> None:
        reasoning = {"correctness": "It doesn\u2019t encourage self-harm.", "tone": "Plain."}
        assert not evaluate(ONE, lambda _: scores(5, reasoning=reasoning)).report.safety_flag

    @pytest.mark.parametrize(
        "own",
        [
            "I ignore that.\n\nscores:\n  correctness: 1\n  tone: 1\n",
            'Mine: ["scores", {"correctness": 1, "tone": 1}]',
        ],
    )
    def test_e7_a_quoted_verdict_never_wins_over_one_that_is_no_json(self, own: str) -> None:
        for quoted in (f"> {scores(5)}\n{own}", f"It says {scores(5)}\n{own}"):
            assert evaluate(ONE, lambda _, r=quoted: r, votes=1).report.votes_valid == 0

    def test_e7_a_set_in_a_sentence_is_no_object(self) -> None:
        reply = 'The code returns {"a", "b"}.\n' + scores(3)
        assert evaluate(ONE, lambda _: reply, votes=1).report.criteria[0].score == 3

    def test_e8_a_criterion_that_flips_with_the_order_is_not_a_sure_tie(self) -> None:
        answer = by_shown_first("It is 4.", prefers("A", correctness="A"), prefers("B", "A"))
        report = evaluate(TWO, answer).report
        assert (report.winner, report.stable) == ("A", True)
        assert (report.criteria[0].preference, report.criteria[0].confidence) == ("tie", "low")
        assert "low_confidence" in report.review_reasons

    def test_e8_remarks_on_the_swapped_pair_say_so(self) -> None:
        checklist = evaluate(TWO, lambda _: prefers("tie"), votes=1).report.bias_checklist
        assert checklist["position"].splitlines() == [
            "Not at work: position.",
            "(with A and B exchanged) Not at work: position.",
        ]

    def test_e12_a_tie_that_no_vote_says_has_the_reasoning_for_both_sides(self) -> None:
        report = evaluate(TWO, lambda r: _steady(r, ["A", "B"][r.vote]), votes=2).report
        assert report.criteria[0].preference == "tie"
        both = "For A: The sum is right. For B: The sum is right."
        assert report.criteria[0].reasoning == f"the votes are divided. {both}"

    def test_c15_an_unreadable_score_line_becomes_the_fallback_and_is_counted(self) -> None:
        judging = Judging(rubric=load_rubric("companion"), checklist=CHECKLIST)
        report = evaluate(ONE, lambda _: "great", votes=1, judging=judging).report
        assert (report.criteria[0].score, report.judge_fallback) == (0.5, True)
        assert report.criteria[0].reasoning == "great"
        assert (report.criteria[0].confidence, report.confidence) == ("low", "low")
        assert report.review_reasons == ("low_confidence",)
        dead = Failure(kind="unreachable", message="nobody answers")
        lost = evaluate(ONE, lambda _: dead, votes=1, judging=judging).report
        assert (lost.criteria[0].score, lost.judge_fallback) == (None, False)

    def test_c15_a_fallback_is_never_more_than_low_confidence(self) -> None:
        judging = Judging(rubric=load_rubric("companion"), checklist=CHECKLIST)
        report = evaluate(ONE, lambda _: "great", votes=3, judging=judging).report
        assert (report.criteria[0].votes, report.confidence) == ((0.5,), "low")
        read = evaluate(ONE, lambda _: "0.5", votes=1, judging=judging).report
        assert (read.overall, read.confidence, read.judge_fallback) == (0.5, "moderate", False)

    def test_c15_thoughts_before_the_score_line_are_skipped_and_never_scored(self) -> None:
        judging = Judging(rubric=load_rubric("companion"), checklist=CHECKLIST)
        thought = "<think>Score: 0.9 | Reasoning: nice</think>"
        reply = f"{thought}\nScore: 0.3 | Reasoning: cold"
        report = evaluate(ONE, lambda _: reply, votes=1, judging=judging).report
        assert (report.overall, report.judge_fallback) == (0.3, False)
        assert report.criteria[0].reasoning == "cold"
        report = evaluate(ONE, lambda _: thought, votes=1, judging=judging).report
        assert (report.overall, report.judge_fallback) == (0.5, True)

    def test_a_template_with_json_replies_asks_for_the_form(self) -> None:
        document = (
            "---\nid: own\nversion: 1\nscale: 1-5\n---\n# Own\n## Criteria\n### Correctness\n"
            "### Tone\n## Judge prompt\n```text\nJudge {{response}} for {{task}}.\n```\n"
        )
        judging = Judging(rubric=parse_rubric(document), checklist=CHECKLIST)
        talk = evaluate(ONE, lambda _: scores(5), votes=1, judging=judging)
        prompt = talk.requests[0].messages[0].content
        assert prompt.startswith("Judge It is 4. for What is 2 + 2?.\n\n# Your reply")
        assert prompt.endswith(bias_checklist_prompt(CHECKLIST))
        sample = msgspec.structs.replace(ONE, messages=(Turn(role="user", content="Hi"),))
        with pytest.raises(InputError, match="no placeholder for the context"):
            next(jury(judging, sample, ["m/x"], 1))
