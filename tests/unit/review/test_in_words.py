"""What a person said, in the words of the rubric."""

from jurybox.review.reviews import HumanVerdict


def test_a_verdict_has_the_names_of_the_criteria_in_their_order() -> None:
    titles = {"tone": "Friendly tone", "accuracy": "Accuracy"}
    said = HumanVerdict(scores={"accuracy": 4, "tone": None, "other": 1}, safety_concern=False)
    expected = "Friendly tone unclear, Accuracy 4, other 1, no safety concern"
    assert said.in_words(titles) == expected
    assert HumanVerdict(winner="A").in_words(titles) == "winner A"
