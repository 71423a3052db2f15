"""Chance that anybody can draw again."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.calibration.drawing import FEWEST, RandomOrder, RandomPart, pair_order, random_part
from jurybox.statistics.corrected.mean import FEWEST_LABELS


@given(st.text(max_size=20), st.integers(1, 300))
def test_an_order_has_every_number_once(run_id: str, size: int) -> None:
    order = RandomOrder(run_id, size)
    numbers = [order.number(place) for place in range(size)]
    assert sorted(numbers) == list(range(size))
    assert [order.place(number) for number in numbers] == list(range(size))


def test_an_order_has_nothing_to_do_with_the_numbers() -> None:
    firsts = Counter(RandomOrder(f"run-{n}", 10).number(0) for n in range(2000))
    assert all(130 < firsts[number] < 270 for number in range(10))
    first_hundred = [RandomOrder("run", 100_000).number(place) for place in range(100)]
    assert 40_000 < sum(first_hundred) / 100 < 60_000


def test_the_same_run_has_the_same_order_and_another_another() -> None:
    one, same, other = (RandomOrder(name, 50) for name in ("a", "a", "b"))
    places = range(50)
    assert [one.number(n) for n in places] == [same.number(n) for n in places]
    assert [one.number(n) for n in places] != [other.number(n) for n in places]


def test_pairs_are_shown_either_way_about_as_often_and_always_the_same_to_one_person() -> None:
    orders = [pair_order("run", number, "anna") for number in range(1000)]
    assert 430 < orders.count("BA") < 570
    assert orders == [pair_order("run", number, "anna") for number in range(1000)]
    assert orders != [pair_order("run", number, "ben") for number in range(1000)]
    assert pair_order("run", 11, "1") in {"AB", "BA"}


def part(order: RandomOrder, places: set[int], last: int | None) -> RandomPart:
    numbers = {order.number(place) for place in places}
    return random_part(order, numbers, None if last is None else order.number(last))


def test_the_random_part_ends_where_people_have_come_to() -> None:
    order = RandomOrder("run", 100)
    found = part(order, {0, 1, 2, 3, 50, 60}, 3)
    assert found.drawn == 4
    assert found.labelled == {order.number(place) for place in range(4)}
    assert (found.skipped, found.needed) == (0, FEWEST - 4)
    assert part(order, {0, 1, 2}, None) == RandomPart(size=100)


def test_a_small_run_needs_no_more_labels_than_it_has_samples() -> None:
    order = RandomOrder("run", 4)
    assert part(order, {0, 1, 2}, 2).needed == 1


def test_few_may_be_skipped_and_are_counted() -> None:
    found = part(RandomOrder("run", 100), set(range(20)) - {5}, 19)
    assert (found.drawn, len(found.labelled), found.skipped) == (20, 19, 1)


def test_who_claims_to_have_come_further_doesnt_make_flagged_samples_random() -> None:
    order = RandomOrder("run", 1000)
    flagged = set(range(0, 1000, 7))
    found = part(order, flagged | {1, 2, 3}, 994)
    assert found.labelled == {order.number(place) for place in range(4)}


def test_what_waits_behind_too_many_that_were_passed_over_is_told() -> None:
    order = RandomOrder("run", 100)
    found = part(order, set(range(3, 25)), 24)
    assert (found.drawn, found.passed, len(found.waiting)) == (0, 3, 22)
    mended = part(order, set(range(25)), 24)
    assert (mended.drawn, mended.passed, mended.waiting) == (25, 0, frozenset())


def test_a_sample_of_which_nobody_can_tell_anything_is_drawn_and_has_no_label() -> None:
    order = RandomOrder("run", 100)
    numbers = [order.number(place) for place in range(12)]
    found = random_part(order, numbers, numbers[-1], labelled=numbers[:2])
    assert (found.drawn, found.skipped, found.unsure) == (12, 0, 10)
    assert (found.labelled, found.needed) == (frozenset(numbers[:2]), FEWEST - 2)


def test_the_missed_are_named() -> None:
    order = RandomOrder("run", 100)
    for is_there in (None, lambda _: True):
        numbers = {order.number(place) for place in range(20) if place != 7}
        found = random_part(order, numbers, order.number(19), is_there)
        assert found.missed == {order.number(7)}


@given(st.sets(st.integers(0, 59)), st.integers(0, 59))
def test_it_is_the_same_part_whether_samples_are_looked_up_or_known_to_be_there(
    places: set[int], last: int
) -> None:
    order = RandomOrder("run", 60)
    numbers = {order.number(place) for place in places | {last}}
    known = random_part(order, numbers, order.number(last))
    looked_up = random_part(order, numbers, order.number(last), lambda _: True)
    assert known.reviewed == looked_up.reviewed
    assert known.missed == looked_up.missed
    assert known.skipped <= known.drawn / 10


def test_the_order_is_the_one_that_runs_were_reviewed_in_before() -> None:
    order = RandomOrder("20260301-0914-abcd", 1000)
    assert [order.number(place) for place in range(5)] == [38, 772, 227, 284, 727]


def test_samples_that_arent_there_yet_are_not_missed() -> None:
    order = RandomOrder("run", 100)
    here = {order.number(place) for place in range(0, 100, 2)}
    reviewed = {order.number(place) for place in range(0, 20, 2)}
    found = random_part(order, reviewed, order.number(18), here.__contains__)
    assert (found.drawn, found.skipped) == (10, 0)


@pytest.mark.parametrize("size", [1, 2, 3, 1_000_000])
def test_a_run_of_any_size_has_an_order(size: int) -> None:
    order = RandomOrder("run", size)
    assert order.place(order.number(size - 1)) == size - 1


def test_as_many_labels_are_asked_for_as_a_correction_needs() -> None:
    assert FEWEST == FEWEST_LABELS
