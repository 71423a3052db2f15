"""One endpoint asked by several processes: the sum of their shares never exceeds the limit."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jurybox.engine.limiter import SharedBudget
from jurybox.suite.model_spec import ModelSpec


def renewed(budget: SharedBudget, holder: str, wanted: int, used: int, now: float) -> int:
    return budget.renew(holder, {"http://x": (wanted, used)}, now)["http://x"]


def test_one_holder_may_have_all() -> None:
    leases = SharedBudget(10)
    assert renewed(leases, "a", 99, 0, 0) == 10
    assert renewed(leases, "a", 3, 3, 1) == 3


def test_a_newcomer_gets_its_half_when_the_other_has_finished_its_calls() -> None:
    leases = SharedBudget(10)
    renewed(leases, "a", 99, 0, 0)
    assert renewed(leases, "b", 99, 0, 0) == 0
    assert renewed(leases, "a", 99, 10, 1) == 5
    assert renewed(leases, "b", 99, 0, 1) == 0
    assert renewed(leases, "a", 99, 6, 2) == 5
    assert renewed(leases, "b", 99, 0, 2) == 4
    assert renewed(leases, "a", 99, 5, 3) == 5
    assert renewed(leases, "b", 99, 4, 3) == 5


def test_what_one_does_not_want_is_for_the_others() -> None:
    leases = SharedBudget(10)
    renewed(leases, "a", 2, 0, 0)
    assert renewed(leases, "b", 99, 0, 0) == 8


def test_a_lost_holder_is_forgotten_and_one_that_leaves_at_once() -> None:
    leases = SharedBudget(10)
    renewed(leases, "a", 10, 0, 0)
    renewed(leases, "b", 10, 0, 9)
    assert renewed(leases, "b", 10, 0, 11) == 10
    leases.release("b")
    assert renewed(leases, "c", 10, 0, 12) == 10


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**32))
def test_the_sum_never_exceeds_the_limit(most: int, holders: int, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - which calls end is no secret
    leases = SharedBudget(most)
    granted = [0] * holders
    used = [0] * holders
    for step in range(200):
        each = draw.randrange(holders)
        # Calls end at any time; new ones begin only within what was granted.
        used = [draw.randint(0, one) for one in used]
        used[each] = max(used[each], draw.randint(0, granted[each]))
        wanted = draw.randint(0, most)
        granted[each] = renewed(leases, str(each), max(wanted, used[each]), used[each], step / 100)
        assert sum(map(max, used, granted)) <= most


def test_turns_are_spread_over_all_who_ask_and_given_a_moment_ahead() -> None:
    budget = SharedBudget(64)
    spec = ModelSpec(model="openai/m", max_requests_per_minute=600)
    starts: list[float] = []
    now = 0.0
    while now < 5:
        for waiting in (3, 20):
            given, pause = budget.turns("http://x", spec, [1.0] * waiting, now)
            assert all(start <= 0.25 for start in given)
            assert (len(given) < waiting) == (pause > 0)
            starts += [now + start for start in given]
        now += 0.05
    gaps = [later - sooner for sooner, later in pairwise(starts)]
    assert min(gaps) > 0.1
    assert len(starts) >= 5 * 9.5


def test_tokens_that_were_not_used_let_the_next_request_start_sooner() -> None:
    budget = SharedBudget(64)
    spec = ModelSpec(model="openai/m", max_tokens_per_minute=6000)
    assert budget.turns("http://x", spec, [180.0], 0.0) == ([0.0], 0.0)
    given, pause = budget.turns("http://x", spec, [180.0], 0.0)
    assert not given
    assert round(pause, 2) == 1.75
    assert budget.turns("http://x", spec, [180.0], 0.0, correction=-180.0) == ([0.0], 0.0)
