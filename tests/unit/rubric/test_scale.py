import math

import pytest

from jurybox.rubric import Scale


@pytest.mark.parametrize("text", ["1-5", "1..5", "1\u20135", " 1 - 5 ", "01-05"])
def test_whole_ends_make_a_scale_of_whole_numbers(text: str) -> None:
    assert Scale.parse(text) == Scale(low=1, high=5, continuous=False)


@pytest.mark.parametrize("text", ["0.0-1.0", "0.0..1.0", "0.00 - 1.0"])
def test_decimal_points_make_a_continuous_scale(text: str) -> None:
    assert Scale.parse(text) == Scale(low=0.0, high=1.0, continuous=True)


def test_ends_may_lie_below_zero() -> None:
    assert Scale.parse("-2..2") == Scale(low=-2, high=2)
    assert Scale.parse("-1.5..-0.5") == Scale(low=-1.5, high=-0.5, continuous=True)


def test_a_scale_of_whole_numbers_accepts_its_points_only() -> None:
    scale = Scale(low=1, high=5)
    assert [score for score in (0, 1, 3.0, 3.5, 5, 6) if scale.accepts(score)] == [1, 3.0, 5]


def test_a_continuous_scale_accepts_what_lies_between_its_ends() -> None:
    scale = Scale(low=0.0, high=1.0, continuous=True)
    assert [score for score in (-0.1, 0, 0.333, 1, 1.01) if scale.accepts(score)] == [0, 0.333, 1]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("text", ["1-5", "0.0-1.0"])
def test_what_is_not_finite_is_no_point_of_any_scale(text: str, score: float) -> None:
    assert not Scale.parse(text).accepts(score)


def test_a_share_is_how_far_up_the_scale_a_score_is() -> None:
    scale = Scale(low=1, high=5)
    assert [scale.normalize(score) for score in (1, 2, 3, 5)] == [0, 0.25, 0.5, 1]
    assert Scale(low=-2, high=2).normalize(0) == 0.5


@pytest.mark.parametrize(
    ("scale", "labels", "places"),
    [
        (Scale(low=1, high=3), ("1", "2", "3"), [0, 1, 2, 2]),
        (Scale(low=0.0, high=1.0, continuous=True), ("0 to 0.5", "0.5 to 1"), [1, 1, 1, 1]),
        (Scale(low=0, high=100), ("0 to 50", "50 to 100"), [0, 0, 0, 0]),
    ],
)
def test_bins_are_the_points_of_a_short_scale_or_equal_parts(
    scale: Scale, labels: tuple[str, ...], places: list[int]
) -> None:
    bins = scale.bins(2)
    assert bins.labels() == labels
    assert [bins.place(score) for score in (1, 1.5, 2.5, 9)] == places


def test_a_score_goes_to_the_nearest_point_and_never_beyond_the_ends() -> None:
    scale = Scale(low=1, high=5)
    assert [scale.nearest(score) for score in (2.4, 2.5, 3)] == [2, 3, 3]
    assert [scale.clamp(score) for score in (0, 2.5, 9)] == [1, 2.5, 5]
    assert scale.distance(2, 4) == 0.5


def test_the_level_of_measurement_follows_from_the_scale() -> None:
    scales = (Scale.parse("0-1"), Scale.parse("1-5"), Scale.parse("0.0-1.0"))
    assert [scale.measurement for scale in scales] == ["nominal", "ordinal", "interval"]
