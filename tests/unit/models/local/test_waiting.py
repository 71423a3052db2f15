"""Who is next: those who share a prefix with what was just read, within reason."""

from hypothesis import given
from hypothesis import strategies as st

from jurybox.models.local.engine import Job
from jurybox.models.local.waiting import PATIENCE, choose, shared_with
from jurybox.sample import Turn


def job(text: str, *shared: int, system: str = "Judge.") -> Job:
    messages = (Turn(role="system", content=system), Turn(role="user", content=text))
    return Job(messages=messages, shared=shared)


def test_what_is_shared_is_counted_up_to_a_cut_that_both_have() -> None:
    last = job("rubric sample question", 7, 14)
    assert shared_with(job("rubric sample other", 7, 14), last) == 14
    assert shared_with(job("rubric else", 7, 11), last) == 7
    assert shared_with(job("rubric sample other"), last) == 0
    assert shared_with(job("rubric sample other", 14), last) == 14
    assert shared_with(job("rubric sample other", 3, 7, 14), last) == 0
    assert shared_with(job("another sample other", 7, 14), last) == 0
    assert shared_with(job("rubric sample other", 7, 14, system="No."), last) == 0
    assert shared_with(job("rubric", 7), None) == 0


def test_who_shares_most_is_next_and_else_who_came_first() -> None:
    last = job("rubric one", 7)
    waiting = [job("else", 4), job("rubric two", 7), job("rubric three", 7)]
    assert choose(waiting, last, 0) == 1
    assert choose(waiting, None, 0) == 0
    assert choose([job("x"), job("y")], last, 0) == 0


def test_nobody_waits_for_ever() -> None:
    last = job("rubric one", 7)
    assert choose([job("else", 4), job("rubric two", 7)], last, PATIENCE) == 0


@given(st.lists(st.text(max_size=5), min_size=1, max_size=6), st.integers(0, 2 * PATIENCE))
def test_somebody_who_waits_is_next(texts: list[str], passed: int) -> None:
    waiting = [job(text, 1, 2) for text in texts]
    assert choose(waiting, waiting[-1], passed) in range(len(waiting))
