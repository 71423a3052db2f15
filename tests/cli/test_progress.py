"""How far a run is, in words: a line at most every ten seconds, and one at the end."""

from collections.abc import Callable, Iterator

import pytest

from jurybox.app.job import Progress
from jurybox.cli.progress import displayed


def progress(done: int, **changes: object) -> Progress:
    values: dict[str, object] = {
        "run_id": "r",
        "planned": 100,
        "done": done,
        "before": 0,
        "elapsed_s": 10.0,
        "unscored": 1,
        "flagged": 2,
        "failed": 3,
        "dollars": 0.25,
    }
    return Progress(**(values | changes))


@pytest.fixture
def line_of(capsys: pytest.CaptureFixture[str]) -> Callable[[Progress], str]:
    """Return the line that is printed after ten seconds, while the run goes on."""

    def printed(shown: Progress) -> str:
        times = ticking(0, 10, 20)
        with displayed(100, lambda: next(times)) as display:
            display.show(shown)
        return capsys.readouterr().err.splitlines()[0]

    return printed


def test_a_line_has_rate_time_left_cost_and_counts(line_of: Callable) -> None:
    assert line_of(progress(20)) == (
        "20 of 100 samples, 2.00/s, 0:00:40 left, $0.25, 1 unscored, 2 flagged, 3 failed"
    )


def test_a_cost_that_is_not_known_is_not_nothing(line_of: Callable) -> None:
    assert ", cost unknown, " in line_of(progress(20, dollars=None))


def test_a_batch_is_named_with_its_size_and_how_long_it_takes(line_of: Callable) -> None:
    batch = "batch-7: 120 of 300 requests for 0:02:05"
    line = line_of(progress(20, batches=(batch,)))
    assert line.endswith(f", 3 failed, {batch}")
    # The time of one batch doesn't predict the next one.
    assert "left" not in line


def ticking(*seconds: float) -> Iterator[float]:
    yield from seconds


def test_lines_come_at_most_every_ten_seconds_and_once_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Begun, and then the times at which something is shown.
    times = ticking(0, 5, 9.9, 10, 12, 19.9, 20.1, 21, 21)
    with displayed(100, lambda: next(times)) as display:
        for done in (1, 2, 3, 4, 5, 6, 100):
            display.show(progress(done))
    told = [line.split()[0] for line in capsys.readouterr().err.splitlines()]
    assert told == ["3", "6", "100"]


def test_a_short_run_has_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with displayed(100, lambda: 0.0) as display:
        display.show(progress(50))
        display.show(progress(100))
    assert capsys.readouterr().err.count("\n") == 1
