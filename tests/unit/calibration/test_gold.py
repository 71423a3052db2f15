import pytest

from jurybox.calibration.gold import Gold, read_gold, share_right
from jurybox.errors import InputError
from jurybox.rubric.scale import Scale

SCALES = {"clarity": Scale(low=1, high=5), "tone": Scale(low=0.0, high=1.0, continuous=True)}


@pytest.mark.parametrize(
    ("given", "people"),
    [
        ([4, 5], {"1": 4, "2": 5}),
        ([4, None, 5], {"1": 4, "3": 5}),
        ({"anna": 4, "ben": 5}, {"anna": 4, "ben": 5}),
    ],
)
def test_e14_several_people_are_kept_apart_and_their_mean_counts(
    given: object, people: dict[str, float]
) -> None:
    gold = read_gold({"gold": {"clarity": given}}, SCALES)
    assert gold is not None
    assert gold.scores == {"clarity": people}
    assert gold.score("clarity") == 4.5


@pytest.mark.parametrize(
    ("given", "winner"),
    [
        ("A", "A"),
        (["A", "B", "A"], "A"),
        (["A", "B"], "tie"),
        ({"anna": "tie", "ben": "tie", "cleo": "B"}, "tie"),
        ([None, "B"], "B"),
    ],
)
def test_e14_a_winner_is_what_most_people_say(given: object, winner: str) -> None:
    gold = read_gold({"gold_winner": given}, SCALES)
    assert gold is not None
    assert gold.winner == winner


def test_a_judge_is_right_about_each_label_and_not_about_their_mean() -> None:
    gold = Gold(scores={"clarity": {"anna": 5, "ben": 1}, "tone": {"anna": 0.52}})
    assert share_right(gold, None, {"clarity": 3, "tone": None}, SCALES) == 0
    assert share_right(gold, None, {"clarity": 5, "tone": 0.5}, SCALES) == 2 / 3
    assert share_right(gold, None, {"clarity": None}, SCALES) is None
    pair = Gold(winners={"anna": "A", "ben": "B", "cleo": "A", "dan": "B"})
    assert share_right(pair, "tie", {}, SCALES) == 0
    assert share_right(pair, "A", {}, SCALES) == 0.5
    assert share_right(pair, None, {}, SCALES) is None


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"gold": "{clarity: 4}"}, "`gold` is '{clarity: 4}'"),
        ({"gold": 4}, "`gold` is 4; write scores by criterion"),
        ({"gold": {"clearness": 4}}, "names `clearness`, which isn't judged; name one of clarity"),
        ({"gold": {"clarity": 6}}, "gives `clarity` 6; give a number from 1 to 5"),
        ({"gold": {"clarity": True}}, "gives `clarity` True"),
        ({"gold": {"clarity": "4"}}, "gives `clarity` '4'"),
        ({"gold": {"clarity": [4, float("nan")]}}, "gives `clarity` nan"),
        ({"gold_winner": "a"}, "`gold_winner` is 'a'; give one of"),
        ({"gold_winner": ["A", 1]}, "`gold_winner` is 1"),
    ],
)
def test_what_cannot_be_gold_is_refused_with_what_could_be(
    metadata: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        read_gold(metadata, SCALES)
