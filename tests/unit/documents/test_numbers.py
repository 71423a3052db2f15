import pytest

from jurybox.documents.numbers import (
    decimals_of,
    dollars,
    metric_change,
    metric_value,
    read_number,
    round_half_up,
    show_number,
    written_value,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3", 3),
        ("-3", -3),
        ("+3", 3),
        ("007", 7),
        ("0.80", 0.8),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("2.5E-1", 0.25),
        ("9" * 15, int("9" * 15)),
        ("0.123456789012345", 0.123456789012345),
    ],
)
def test_a_plain_number_is_read(text: str, number: float) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 3",
        "3 ",
        ".",
        "5.",
        "0..5",
        "1,5",
        "1_000",
        "0x10",
        "nan",
        "inf",
        "1e999",
        "--1",
        "٣",
        "9" * 20,
        "9" * 21,
        "0.12345678901234567890",
        "1e-400",
        "0." + "1" * 31,
        "true",
    ],
)
def test_anything_else_is_no_number(text: str) -> None:
    assert read_number(text) is None


def test_a_number_without_a_fraction_stays_whole() -> None:
    assert isinstance(read_number("3"), int)
    assert isinstance(read_number("3.0"), float)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (3, "3"),
        (3.0, "3"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e-5, "0.00001"),
        (1e-9, "0.000000001"),
        (1e-10, "1e-10"),
        (1e300, "1e+300"),
    ],
)
def test_a_number_is_shown_as_short_as_can_be(number: float, text: str) -> None:
    assert show_number(number) == text


@pytest.mark.parametrize(
    ("text", "decimals"),
    [("1", 0), ("1.0", 1), ("0.50", 2), (".25", 2), ("-0.125", 3), ("100", 0), ("1.000", 3)],
)
def test_decimals_are_those_that_a_number_is_written_with(text: str, decimals: int) -> None:
    assert decimals_of(text) == decimals


@pytest.mark.parametrize(
    ("text", "decimals"), [("5e-1", 1), ("2.5E-1", 2), ("1e-05", 5), ("1e3", 0), ("1.25e1", 1)]
)
def test_an_exponent_moves_the_point(text: str, decimals: int) -> None:
    assert decimals_of(text) == decimals


@pytest.mark.parametrize(
    ("value", "decimals", "rounded"),
    [
        (0.85, 1, 0.9),
        (0.05, 1, 0.1),
        (0.25, 1, 0.3),
        (2.5, 0, 3),
        (-2.5, 0, -3),
        (0.8499999999999999, 1, 0.9),
        (0.849999, 1, 0.8),
        (0.125, 2, 0.13),
        (1, 3, 1),
    ],
)
def test_halves_are_rounded_up_as_people_do(value: float, decimals: int, rounded: float) -> None:
    assert round_half_up(value, decimals) == rounded


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("overall_mean", 0.6, "0.600"),
        ("overall_mean", 0.0625, "0.063"),
        ("overall_mean", 1e-5, "0.00001"),
        ("pass_rate", 0.65, "65.0%"),
        ("latency_e2e_ms", 14.135, "14.1"),
        ("latency_e2e_ms", 3010.4, "3010"),
        ("total_tokens_mean", 31.0, "31.0"),
        ("total_tokens_mean", 1234.0, "1,234"),
        ("samples", 12000, "12,000"),
        ("samples", 12, "12"),
        ("overall_mean", None, "-"),
    ],
)
def test_each_kind_of_number_has_its_decimals(name: str, value: float | None, text: str) -> None:
    assert metric_value(name, value) == text


def test_a_threshold_is_shown_as_the_rubric_writes_it() -> None:
    assert (written_value(0.7, "overall_mean"), written_value(0.85, "pass_rate")) == ("0.7", "85%")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "$0.00"), (0.8661, "$0.87"), (1234.5, "$1,234.50"), (0.00123, "$0.0012")],
)
def test_a_cost_has_two_decimals_and_is_not_rounded_to_nothing(value: float, text: str) -> None:
    assert dollars(value) == text


@pytest.mark.parametrize(
    ("name", "change", "text"),
    [
        ("pass_rate", 0.15, "+15.0 points"),
        ("pass_rate", -0.01, "-1.0 points"),
        ("pass_rate", None, "-"),
        ("overall_mean", 0.15, "+0.150"),
    ],
)
def test_a_change_of_a_rate_is_in_points_not_in_percent(
    name: str, change: float | None, text: str
) -> None:
    assert metric_change(name, change) == text
