"""What requests share is found, whatever they are, and nothing of a request is ever lost."""

from hypothesis import given
from hypothesis import strategies as st

from jurybox.running.records import ExchangeRow
from jurybox.storage.framing import (
    _MOST_CANDIDATES,
    _MOST_FRAMES,
    _MOST_RUNS,
    _PATIENCE,
    Framed,
    Framer,
)

RUBRIC, END = "The rubric says: é. " * 100, " Reply as JSON." * 60


def row(number: int, request: str, run_id: str = "run") -> ExchangeRow:
    return ExchangeRow(
        run_id=run_id,
        number=number,
        position=0,
        role="judge",
        key="",
        request=request,
        outcome="{}",
        notes="{}",
    )


def asked(number: int, vote: int = 0) -> ExchangeRow:
    return row(number, f"vote {vote}: {RUBRIC}sample <{number}>{END}")


def whole(framed: Framed) -> str:
    if framed.frame is None:
        return framed.rest
    return framed.frame.head + framed.rest + framed.frame.tail


def test_from_the_second_sample_on_only_what_is_its_own_is_left() -> None:
    rows = [asked(number) for number in range(7, 30)]
    first, *others = Framer()(rows)
    assert first == Framed(None, rows[0].request)
    assert [whole(each) for each in others] == [each.request for each in rows[1:]]
    # "7" to "9" share ">", then all share "<": a frame that is too large is trimmed.
    assert {len(each.rest) for each in others} <= {1, 2}
    assert len({each.frame for each in others}) <= 2


def test_votes_that_differ_at_their_beginning_have_frames_of_their_own() -> None:
    rows = [asked(number, vote) for number in range(10) for vote in range(5)]
    framed = Framer()(rows)
    assert all(each.frame is None for each in framed[:5])
    assert len({each.frame for each in framed[5:]}) == 5
    assert all(len(each.rest) == 1 for each in framed[5:])


def test_requests_about_one_sample_are_not_compared_with_each_other() -> None:
    framer = Framer()
    assert all(each.frame is None for each in framer([asked(1) for _ in range(5)]))
    assert framer([asked(2)])[0].frame is not None


def test_runs_share_no_frames() -> None:
    """Else one that was changed would spoil runs that were made long after."""
    framer = Framer()
    names: list[set[str]] = []
    for run in ("one", "other"):
        framed = framer([row(number, asked(number).request, run) for number in range(4)])
        names.append({each.frame.sha256 for each in framed if each.frame is not None})
    assert all(names)
    assert not names[0] & names[1]


def test_the_frames_of_few_runs_are_kept_in_memory() -> None:
    framer = Framer()
    for number in range(30):
        framer([row(1, asked(1).request, f"run {number}")])
    assert len(framer._runs) == _MOST_RUNS


def test_a_short_request_is_left_alone() -> None:
    framed = Framer()([row(number, f"{'x' * 1000} {number}") for number in range(9)])
    assert all(each.frame is None for each in framed)


def test_a_frame_is_not_trimmed_by_requests_of_another_kind() -> None:
    framer = Framer()
    long, short = RUBRIC * 8, RUBRIC
    framer([row(number, f"{long}<{number}>{END}") for number in range(3)])
    framer([row(number, f"{short}[{number}]{END}") for number in range(3, 6)])
    (kept,) = framer([row(9, f"{long}<9>{END}")])
    assert kept.rest == "9"


def test_who_shares_nothing_is_not_compared_for_ever() -> None:
    framer = Framer()
    for number in range(_PATIENCE + 10):
        framer([row(number, f"{number:04}" * 300 + f"{number * 7:04}")])
    assert len(framer._runs["run"]._candidates) == _MOST_CANDIDATES
    assert framer([asked(1), asked(2)])[1].frame is None


def test_memory_is_bounded() -> None:
    framer = Framer()
    for kind in range(40):
        framer([row(number, f"{kind:04}" * 300 + f"<{number}>") for number in range(2)])
    assert len(framer._runs["run"]._frames) == _MOST_FRAMES


def test_a_frame_has_the_same_name_wherever_it_is_learnt() -> None:
    one, other = (Framer()([asked(1), asked(2)])[1].frame for _ in range(2))
    assert one is not None
    assert one == other
    assert len(one.sha256) == 64


PARTS = st.sampled_from(["a" * 700, "b" * 700, "é" * 1100, "x", "yy", ""])
REQUESTS = st.lists(st.lists(PARTS, max_size=6).map("".join), max_size=30)


@given(REQUESTS)
def test_whatever_is_shared_the_request_comes_back_whole(requests: list[str]) -> None:
    framer = Framer()
    for number, request in enumerate(requests):
        (framed,) = framer([row(number, request)])
        assert whole(framed) == request
