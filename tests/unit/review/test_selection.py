"""Chance that anybody can draw again."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from jurybox.review.selection import (
    FEWEST,
    RandomOrder,
    RandomSubset,
    needed_line,
    pair_order,
    random_subset,
)


@given(st.text(max_size=20), st.integers(1, 70))
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


def test_samples_that_are_added_leave_the_others_in_their_order() -> None:
    few, more = RandomOrder("run", 50), RandomOrder("run", 60)
    places = range(60)
    kept = [number for number in map(more.number, places) if number < 50]
    assert kept == [few.number(place) for place in range(50)]


def part(order: RandomOrder, places: set[int], last: int | None) -> RandomSubset:
    numbers = {order.number(place) for place in places}
    ends = None if last is None else order.number(last)
    return random_subset(order, numbers, ends, present=range(order.size), labeled=numbers)


def test_the_random_subset_ends_where_people_have_come_to() -> None:
    order = RandomOrder("run", 100)
    found = part(order, {0, 1, 2, 3, 50, 60}, 3)
    assert found.drawn == 4
    assert found.labeled == {order.number(place) for place in range(4)}
    assert (found.skipped, found.needed) == (0, FEWEST - 4)
    assert part(order, {0, 1, 2}, None) == RandomSubset(size=100)


def test_who_claims_to_have_come_further_doesnt_make_flagged_samples_random() -> None:
    order = RandomOrder("run", 1000)
    flagged = set(range(0, 1000, 7))
    found = part(order, flagged | {1, 2, 3}, 994)
    assert found.labeled == {order.number(place) for place in range(4)}


def test_once_none_is_left_to_draw_every_reviewed_sample_counts() -> None:
    order = RandomOrder("run", 20)
    every = set(range(20))
    assert [part(order, every - {15}, last).drawn for last in (11, None)] == [12, 0]
    assert [part(order, every, last).drawn for last in (11, None)] == [20, 20]


def test_what_waits_behind_too_many_that_were_passed_over_is_told() -> None:
    order = RandomOrder("run", 100)
    found = part(order, set(range(3, 25)), 24)
    assert (found.drawn, len(found.passed), len(found.waiting)) == (0, 3, 22)
    mended = part(order, set(range(25)), 24)
    assert (mended.drawn, mended.passed, mended.waiting) == (25, frozenset(), frozenset())


def test_a_sample_of_which_nobody_can_tell_anything_is_drawn_and_has_no_label() -> None:
    order = RandomOrder("run", 100)
    numbers = [order.number(place) for place in range(12)]
    found = random_subset(order, numbers, numbers[-1], present=range(100), labeled=numbers[:2])
    assert (found.drawn, found.skipped, found.unsure) == (12, 0, 10)
    assert (found.labeled, found.needed) == (frozenset(numbers[:2]), FEWEST - 2)


def test_who_is_needed_is_said_also_where_all_that_is_left_is_unclear() -> None:
    assert needed_line(9) == "9 more reviews from the random queue are needed"
    assert needed_line(9, others=True) == (
        "9 more reviews from the random queue are needed. Flagged samples that are already"
        " reviewed count once the queue reaches them, so fewer may be enough"
    )
    assert needed_line(1, 1) == (
        "1 more review from the random queue is needed; `--overlap 2` of `jurybox serve` assigns"
        " unclear samples to a second reviewer"
    )
