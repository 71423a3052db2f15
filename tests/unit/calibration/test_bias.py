"""From observations to metrics: which of them can be told, and why the others can't."""

from jurybox.calibration.bias_metrics import measure
from jurybox.calibration.bias_results import Bias, BiasMetric
from jurybox.calibration.observations import (
    Observations,
    ObservedVote,
    ScoredResponse,
)
from jurybox.judging.formats.reply_format import Side


def _metrics(biases: tuple[Bias, ...]) -> dict[str, BiasMetric]:
    return {metric.name: metric for bias in biases for metric in bias.metrics}


def _vote(at: int, winner: Side, **changes: object) -> ObservedVote:
    told: dict[str, object] = {
        "sample": f"s{at}",
        "straight": winner,
        "swapped": winner,
        "winner": winner,
        "kept": {"right": True},
        "words": (10, 20),
        "formatted": (False, False),
        "judge": "gpt",
    }
    return ObservedVote(**told | changes)


def test_names_of_metrics_are_unique_and_the_same_whatever_is_seen() -> None:
    scored = [
        ScoredResponse(sample=f"s{i}", score=i % 5 / 4, words=i, formatted=False) for i in range(20)
    ]
    empty, full = (
        Observations(criteria=("right",)),
        Observations(criteria=("right",), scored=scored, voted=[_vote(i, "A") for i in range(20)]),
    )
    names = [metric.name for bias in measure(empty) for metric in bias.metrics]
    assert len(names) == len(set(names))
    assert names == [metric.name for bias in measure(full) for metric in bias.metrics]


def test_one_family_cant_be_preferred_to_itself() -> None:
    voted = [_vote(i, "A", makers=("gpt", "gpt")) for i in range(20)]
    graded = [
        ScoredResponse(sample=f"s{i}", score=i % 5 / 4, judge="gpt", maker="gpt") for i in range(20)
    ]
    scored = [
        ScoredResponse(sample=f"s{i}", score=i % 5 / 4, words=i, formatted=False) for i in range(20)
    ]
    metrics = _metrics(measure(Observations(voted=voted, graded=graded, scored=scored)))
    for name in ("self_preference.score_difference", "self_preference.own_win_rate"):
        assert metrics[name].reason == "all responses come from one family (`gpt`)"
