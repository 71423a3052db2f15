"""The rules of pressing an endpoint, by hand and by simulation."""

import heapq
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.engine.limiter import Concurrency, Limits, delay

# ---- delays


def test_the_bound_of_a_delay_doubles_up_to_the_longest() -> None:
    limits = Limits(first_delay=0.5, longest_delay=5)
    assert [delay(n, limits, lambda: 1.0) for n in range(6)] == [0.5, 1, 2, 4, 5, 5]


@given(retries=st.integers(0, 10_000), draw=st.floats(0, 1))
def test_a_delay_is_anywhere_between_nothing_and_its_bound(retries: int, draw: float) -> None:
    assert 0 <= delay(retries, Limits(), lambda: draw) <= Limits().longest_delay


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
                    concurrency.finished(now, success=False, busy=True)
                    break
                else:
                    inside += 1
            now = max(now + 0.001, heapq.heappop(ends))
            concurrency.finished(now, success=True, busy=True)
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


def rounds(concurrency: Concurrency, *, share: float, per_second: float, count: int) -> float:
    """Finish calls, some of them in vain, as fast as so many at once do; return the time."""
    chance = random.Random(1)  # noqa: S311 - nothing secret
    now = 0.0
    for _ in range(count):
        now += 1 / (per_second * concurrency.limit)
        concurrency.finished(now, success=chance.random() >= share, busy=True)
    return now


@pytest.mark.parametrize("share", [0.02, 0.1, 0.28])
def test_errors_that_fewer_calls_do_not_avoid_cost_little_throughput(share: float) -> None:
    calm = rounds(Concurrency(Limits()), share=0, per_second=10, count=20_000)
    spoiled = rounds(Concurrency(Limits()), share=share, per_second=10, count=20_000)
    assert calm / spoiled >= 0.8


def test_in_an_outage_the_limit_falls_to_one_and_is_back_soon_after_it() -> None:
    concurrency = Concurrency(Limits(start=64))
    rounds(concurrency, share=0, per_second=10, count=1000)
    rounds(concurrency, share=1, per_second=10, count=300)
    assert concurrency.limit == 1
    rounds(concurrency, share=0, per_second=10, count=400)
    assert concurrency.limit == 64


@pytest.mark.parametrize(("start", "ceiling", "first"), [(8, 4, 4), (0, 4, 1), (8, 0, 1)])
def test_the_first_limit_keeps_to_its_bounds(start: int, ceiling: int, first: int) -> None:
    assert Concurrency(Limits(start=start, concurrency=ceiling)).limit == first


def test_a_limit_that_is_not_used_up_does_not_grow() -> None:
    concurrency = Concurrency(Limits(start=2, concurrency=64))
    for second in range(100):
        concurrency.finished(second, success=True, busy=False)
    assert concurrency.limit == 2


@given(
    st.lists(st.tuples(st.sampled_from(["good", "idle", "bad"]), st.floats(0, 10)), max_size=300),
    st.integers(1, 40),
)
def test_the_limit_is_always_between_one_and_the_ceiling(
    events: list[tuple[str, float]], ceiling: int
) -> None:
    concurrency = Concurrency(Limits(concurrency=ceiling))
    now = 0.0
    for event, elapsed in events:
        now += elapsed
        concurrency.finished(now, success=event != "bad", busy=event != "idle")
        assert 1 <= concurrency.limit <= ceiling
