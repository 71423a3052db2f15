"""Whether somebody is at work on a run."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from jurybox.reporting import view
from jurybox.reporting.view import is_running, listed_run
from stored_runs import MakeRun, answered, make_run, store

__all__ = ["make_run", "store"]


@pytest.mark.parametrize("kept", [0.0, 1.0])
def test_those_who_look_dont_take_each_other_for_somebody_at_work(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, kept: float
) -> None:
    made = make_run([answered("a"), answered("b")], left_out=1)
    monkeypatch.setattr(view, "_KEPT", kept)
    lock = threading.Lock()
    claims = 0

    @contextmanager
    def claim(run_id: str) -> Iterator[bool]:
        nonlocal claims
        claims += run_id == "run-a"
        mine = lock.acquire(blocking=False)
        try:
            time.sleep(0.002)
            yield mine
        finally:
            if mine:
                lock.release()

    monkeypatch.setattr(made.store, "claim", claim)
    with ThreadPoolExecutor(4) as many:
        found = list(many.map(lambda _: is_running(made.row, made.store), range(40)))
        listed = list(many.map(lambda _: listed_run(made.row, made.store).status, range(20)))
    assert set(found) == {False}
    assert set(listed) == {"stopped"}
    # Whoever wants to go on with the run isn't kept from it by those who ask all the time.
    assert claims == 60 if kept == 0.0 else claims < 5


def test_somebody_at_work_is_seen_at_once_and_until_the_end(make_run: MakeRun) -> None:
    made = make_run([answered("a"), answered("b")], left_out=1)
    with made.store.claim("run-a"):
        assert is_running(made.row, made.store) is True
    assert is_running(made.row, made.store) is False
