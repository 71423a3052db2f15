"""The three rules of pressing an endpoint, by hand and by simulation."""

import heapq
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.engine.caller import Concurrency, Limits, RetryBudget, delay

# ---- delays


def test_the_bound_of_a_delay_doubles_up_to_the_longest() -> None:
    limits = Limits(first_delay=0.5, longest_delay=5)
    assert [delay(n, limits, lambda: 1.0) for n in range(6)] == [0.5, 1, 2, 4, 5, 5]


@given(retries=st.integers(0, 10_000), draw=st.floats(0, 1))
def test_a_delay_is_anywhere_between_nothing_and_its_bound(retries: int, draw: float) -> None:
    assert 0 <= delay(retries, Limits(), lambda: draw) <= Limits().longest_delay


# ---- the retry budget


def spendable(budget: RetryBudget) -> int:
    count = 0
    while budget.spend():
        count += 1
    return count


def test_a_budget_starts_with_its_reserve() -> None:
    assert spendable(RetryBudget(Limits(retry_reserve=3))) == 3


def test_without_a_reserve_nothing_is_tried_again_at_first() -> None:
    assert not RetryBudget(Limits(retry_reserve=0)).spend()


def test_successes_earn_retries_by_their_share() -> None:
    budget = RetryBudget(Limits(retry_reserve=10, retry_share=0.1))
    spendable(budget)
    for _ in range(30):
        budget.earn()
    assert spendable(budget) == 3


@given(st.lists(st.booleans(), max_size=300), st.integers(0, 20), st.floats(0, 1))
def test_retries_are_at_most_a_share_of_successes_and_the_reserve(
    events: list[bool], reserve: int, share: float
) -> None:
    budget = RetryBudget(Limits(retry_reserve=reserve, retry_share=share))
    retries = successes = 0
    for success in events:
        if success:
            successes += 1
            budget.earn()
        else:
            retries += budget.spend()
    assert retries <= reserve + share * successes + 1e-6


# ---- how many at once


class Server:
    """So many calls at once, each of about a second; those beyond wait inside, or are sent away."""

    def __init__(self, capacity: int, *, refuses: bool) -> None:
        self.capacity = capacity
        self.refuses = refuses

    def run(self, concurrency: Concurrency, calls: int) -> list[int]:
        """Keep the endpoint as busy as is allowed, and return the limit after every call."""
        chance = random.Random(1)  # noqa: S311 - nothing secret
        now = 0.0
        inside = 0
        ends: list[float] = []
        limits: list[int] = []
        while len(limits) < calls:
            while len(ends) + inside < concurrency.limit or (inside and len(ends) < self.capacity):
                if len(ends) < self.capacity:
                    inside -= bool(inside)
                    heapq.heappush(ends, now + chance.uniform(0.5, 1.5))
                elif self.refuses:
                    concurrency.slow_down(now, now + 0.01)
                    break
                else:
                    inside += 1
            now = max(now + 0.001, heapq.heappop(ends))
            concurrency.succeeded(now, busy=True)
            limits.append(concurrency.limit)
        return limits


def test_the_limit_doubles_up_to_the_ceiling_while_it_helps() -> None:
    limits = Server(1000, refuses=False).run(Concurrency(Limits(start=8, concurrency=100)), 2000)
    assert sorted(set(limits)) == [8, 16, 32, 64, 100]
    assert limits[-1] == 100


def test_the_limit_stays_where_more_no_longer_helps() -> None:
    limits = Server(16, refuses=False).run(Concurrency(Limits(start=4, concurrency=512)), 20_000)
    assert max(limits) <= 64
    assert 12 <= sum(limits[1000:]) / len(limits[1000:]) <= 32


def test_the_limit_hovers_about_what_an_endpoint_grants() -> None:
    limits = Server(20, refuses=True).run(Concurrency(Limits(start=4, concurrency=512)), 4000)
    settled = limits[1000:]
    assert max(settled) <= 26
    assert sum(settled) / len(settled) >= 10


def test_being_told_to_slow_down_halves_the_limit() -> None:
    concurrency = Concurrency(Limits(start=16, concurrency=64))
    concurrency.slow_down(started=1.0, now=2.0)
    assert concurrency.limit == 8


def test_calls_that_were_under_way_together_halve_it_once() -> None:
    concurrency = Concurrency(Limits(start=16, concurrency=64))
    for now in (2.0, 2.1, 2.2):
        concurrency.slow_down(started=1.0, now=now)
    assert concurrency.limit == 8
    concurrency.slow_down(started=2.3, now=3.0)
    assert concurrency.limit == 4


def test_the_limit_never_falls_below_one() -> None:
    concurrency = Concurrency(Limits(start=3, concurrency=3))
    for second in range(10):
        concurrency.slow_down(started=second, now=second + 0.5)
    assert concurrency.limit == 1


@pytest.mark.parametrize(("start", "ceiling", "first"), [(8, 4, 4), (0, 4, 1), (8, 0, 1)])
def test_the_first_limit_keeps_to_its_bounds(start: int, ceiling: int, first: int) -> None:
    assert Concurrency(Limits(start=start, concurrency=ceiling)).limit == first


def test_a_limit_that_is_not_used_up_does_not_grow() -> None:
    concurrency = Concurrency(Limits(start=2, concurrency=64))
    for second in range(100):
        concurrency.succeeded(second, busy=False)
    assert concurrency.limit == 2


@given(
    st.lists(st.tuples(st.sampled_from(["good", "idle", "slow"]), st.floats(0, 10)), max_size=300),
    st.integers(1, 40),
)
def test_the_limit_is_always_between_one_and_the_ceiling(
    events: list[tuple[str, float]], ceiling: int
) -> None:
    concurrency = Concurrency(Limits(concurrency=ceiling))
    now = 0.0
    for event, elapsed in events:
        started, now = now, now + elapsed
        if event == "slow":
            concurrency.slow_down(started, now)
        else:
            concurrency.succeeded(now, busy=event == "good")
        assert 1 <= concurrency.limit <= ceiling
