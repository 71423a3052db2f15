"""The desk at which people review samples, on either database."""

from collections.abc import Iterator

import msgspec
import pytest

from jurybox.calibration.drawing import RandomOrder
from jurybox.calibration.reviews import Circumstances, Verdict
from jurybox.errors import IncompleteError, InputError
from jurybox.running.storing import Store
from jurybox.storage import open_store
from jurybox.wiring.reviewing import ReviewDesk
from reviewed import make_run, worth

SEEN = Circumstances()


def scores(clarity: int | None, depth: float | None = 0.5) -> dict[str, object]:
    return {"scores": {"clarity": clarity, "depth": depth}}


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    make_run(monkeypatch, url)
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def desk(store: Store) -> ReviewDesk:
    return ReviewDesk(store, store.runs()[0])


@pytest.fixture
def pairs(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReviewDesk]:
    make_run(monkeypatch, url, 12, pairs=True)
    opened = open_store(url)
    yield ReviewDesk(opened, opened.runs()[0])
    opened.close()


def test_the_queue_has_what_needs_a_person_until_the_reviewer_has_seen_it(
    desk: ReviewDesk,
) -> None:
    met: list[str] = []
    while (case := desk.next("anna")) is not None:
        assert case.queue == "flagged"
        met.append(case.sample_id)
        desk.submit(case.number, "anna", scores(4), shown=case.shown)
    assert met == ["s3", "s13", "s23"]
    assert desk.next("ben").sample_id == "s3"
    assert desk.progress("anna").mine == desk.progress("anna").queued == 3
    assert desk.progress("ben").mine == 0
    assert desk.progress("ben").anyone == 3
    assert desk.progress("ben").reviewers == ("anna",)


def test_what_is_passed_over_comes_back_at_the_end(desk: ReviewDesk) -> None:
    assert desk.next("anna", after=3).sample_id == "s13"
    assert desk.next("anna", after=23).sample_id == "s3"
    assert desk.next("anna", after=3, skip={13}).sample_id == "s23"
    assert desk.next("anna", after=3, skip={13, 23}).sample_id == "s3"
    assert desk.next("anna", skip={3, 13, 23}) is None
    assert desk.next("anna", after=10**9).sample_id == "s3"
    assert desk.next("anna", kind="random", after=10**9) == desk.next("anna", kind="random")


def test_the_random_queue_goes_through_all_samples_in_the_order_drawn(desk: ReviewDesk) -> None:
    order = RandomOrder(desk.run.id, 30)
    desk.submit(order.number(1), "anna", scores(4), shown=SEEN)
    met: list[int] = []
    while (case := desk.next("anna", kind="random")) is not None:
        met.append(case.number)
        desk.submit(case.number, "anna", scores(4), shown=case.shown)
    assert met == [order.number(place) for place in range(30) if place != 1]
    after = order.number(29)
    assert desk.next("ben", kind="random", after=after).number == order.number(0)


def test_a_blind_reviewer_sees_nothing_of_the_judges(desk: ReviewDesk) -> None:
    case = desk.case(3, "anna")
    told = msgspec.json.encode(case).decode()
    assert "judge's own words" not in told
    assert "secret" not in told
    assert (case.blind, case.reasons, case.mine) == (True, (), None)
    assert [each.id for each in case.criteria] == ["clarity", "depth"]
    assert case.criteria[0].levels[0].meaning == "Not at all"
    with pytest.raises(InputError, match="hidden until you have scored"):
        desk.revealed(3, "anna")


def test_after_scoring_the_judges_and_others_are_shown(desk: ReviewDesk) -> None:
    desk.submit(3, "ben", scores(1), "too short", shown=SEEN)
    desk.submit(3, "anna", scores(4), shown=SEEN)
    found = desk.revealed(3, "anna")
    assert found.judged.scores == {"clarity": 5, "depth": 0.5}
    assert found.judged.reasoning["clarity"] == "the judge's own words"
    assert found.judged.reasons[0] == "safety"
    assert found.mine.verdict.scores == {"clarity": 4, "depth": 0.5}
    assert [(each.reviewer, each.comment) for each in found.others] == [("ben", "too short")]
    case = desk.case(3, "anna")
    assert not case.blind
    assert case.reasons[0] == "safety"


def test_who_has_seen_the_verdict_is_blind_no_more(desk: ReviewDesk) -> None:
    desk.submit(3, "anna", scores(4), shown=SEEN)
    desk.submit(3, "anna", scores(5), shown=SEEN)
    (stands,) = desk.reviews()
    assert (stands.verdict.scores["clarity"], stands.shown.blind) == (5, False)
    (counts,) = desk.reviews(blind=True)
    assert counts.verdict.scores["clarity"] == 4
    open_desk = ReviewDesk(desk.store, desk.run, blind=False)
    assert open_desk.case(13, "ben").reasons[0] == "safety"
    assert open_desk.revealed(13, "ben").mine is None
    open_desk.submit(13, "ben", scores(4), shown=SEEN)
    assert [each.number for each in desk.reviews(blind=True)] == [3]


def test_undo_takes_back_the_newest_and_what_it_replaced_stands_again(desk: ReviewDesk) -> None:
    assert desk.undo("anna") is None
    for number, score in ((3, 1), (13, 2), (3, 3)):
        desk.submit(number, "anna", scores(score), shown=SEEN)
    desk.submit(23, "ben", scores(5), shown=SEEN)

    def clarity() -> dict[int, object]:
        mine = [each for each in desk.reviews() if each.reviewer == "anna"]
        return {each.number: each.verdict.scores["clarity"] for each in mine}

    assert clarity() == {13: 2, 3: 3}
    assert desk.undo("anna").number == 3
    assert clarity() == {3: 1, 13: 2}
    assert desk.undo("anna").number == 13
    assert desk.undo(" anna ").number == 3
    assert desk.undo("anna") is None
    assert [each.reviewer for each in desk.reviews()] == ["ben"]
    # Nothing is ever deleted.
    assert len(desk.store.reviews(desk.run.id)) == 7
    assert desk.next("anna").sample_id == "s3"


def test_a_pair_is_shown_in_an_order_of_the_reviewers_own_and_turned_back(
    pairs: ReviewDesk,
) -> None:
    orders = set()
    for number in range(12):
        case = pairs.case(number, "anna")
        assert case == pairs.case(number, "anna")
        orders.add(case.order)
        first = case.responses[0].text.startswith("a longer")
        assert first == (case.order == "AB")
        side = "A" if first else "B"
        verdict = Verdict(winner=side, preferences={"clarity": side})
        pairs.submit(number, "anna", verdict, shown=case.shown)
        # It is shown again as it was said.
        assert pairs.case(number, "anna").mine == verdict
        found = pairs.revealed(number, "anna")
        assert found.mine.verdict == Verdict(winner="A", preferences={"clarity": "A"})
        assert (found.judged.winner, found.order) == ("A", case.order)
    assert orders == {"AB", "BA"}
    with pytest.raises(InputError, match="`scores` is not known here"):
        pairs.submit(0, "ben", scores(4), shown=SEEN)


def test_judges_are_held_against_people_on_pairs(pairs: ReviewDesk) -> None:
    for _ in range(12):
        case = pairs.next("anna", kind="random")
        pairs.submit(case.number, "anna", {"winner": "tie"}, shown=case.shown)
    found = pairs.standing()
    (winner,) = found.random.agreement.criteria
    assert (winner.criterion, winner.n, winner.exact.value) == ("winner", 12, 0.0)
    assert [each.figure for each in found.estimates] == ["points_of_b"]


@pytest.mark.parametrize(
    ("number", "name", "verdict", "comment", "says"),
    [
        (3, "anna", scores(6), "", "clarity: the score is 6, which is outside the scale"),
        (3, "anna", {"scores": {"clarity": 4}}, "", "depth: the score is missing"),
        (3, "anna", {"winner": "A"}, "", "`winner` is not known here"),
        (3, " ", scores(4), "", "a review needs a name"),
        (3, "a\u202eb", scores(4), "", "can't be seen"),
        (3, "anna", scores(4), "x" * 10_001, "the comment is too long"),
        (30, "anna", scores(4), "", "has no sample 30; its samples are 0 to 29"),
        (-1, "anna", scores(4), "", "has no sample -1"),
        (2**70, "anna", scores(4), "", "has no sample"),
    ],
)
def test_what_cant_be_a_review_is_refused_and_nothing_is_stored(
    desk: ReviewDesk, number: int, name: str, verdict: dict, comment: str, says: str
) -> None:
    with pytest.raises(InputError) as error:
        desk.submit(number, name, verdict, comment, shown=SEEN)
    assert says in str(error.value)
    assert not desk.store.reviews(desk.run.id)


def test_two_windows_and_two_people_get_along(desk: ReviewDesk, url: str) -> None:
    other = open_store(url)
    second = ReviewDesk(other, other.runs()[0])
    mine, same = desk.next("anna"), second.next("anna")
    assert mine == same
    desk.submit(mine.number, "anna", scores(2), shown=mine.shown)
    second.submit(same.number, "anna", scores(3), shown=same.shown)
    second.submit(same.number, "ben", scores(5), shown=same.shown)
    assert [each.verdict.scores["clarity"] for each in desk.reviews()] == [3, 5]
    assert desk.reviews() == second.reviews()
    other.close()


def test_a_review_that_was_tampered_with_is_noticed(
    desk: ReviewDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = desk.submit(3, "anna", scores(2), shown=SEEN)
    changed = msgspec.structs.replace(row, verdict=row.verdict.replace("2", "5"))
    monkeypatch.setattr(desk.store, "reviews", lambda _: (changed,))
    with pytest.raises(IncompleteError, match="was changed after it was stored"):
        desk.reviews()


def test_a_damaged_run_is_no_place_to_review(desk: ReviewDesk) -> None:
    broken = msgspec.structs.replace(desk.run, plan="{")
    with pytest.raises(IncompleteError, match="can't be read"):
        ReviewDesk(desk.store, broken)


def by_people(desk: ReviewDesk, queue: str, count: int, *names: str) -> None:
    for name in names or ("anna",):
        for _ in range(count):
            case = desk.next(name, kind=queue)
            if case is not None:
                given = scores(worth(case.number))
                desk.submit(case.number, name, given, shown=case.shown)


def test_flagged_samples_correct_nothing(desk: ReviewDesk) -> None:
    assert desk.standing() is None
    by_people(desk, "flagged", 3)
    found = desk.standing()
    assert (found.reviews, found.samples, found.reviewers) == (3, 3, ("anna",))
    assert (found.flagged.samples, found.random.samples) == (3, 0)
    assert (found.estimates, found.needed) == ((), 10)
    assert "nothing is corrected yet: 10 more from the random queue are needed" in found.lines
    assert found.random.agreement is None
    clarity, depth = found.flagged.agreement.criteria
    assert (clarity.bias.value, clarity.exact.value) == (1.0, 0.0)
    # One score for everything: there is no kappa, and it says why.
    assert depth.kappa.value is None
    assert depth.kappa.reason


def test_the_random_part_corrects_the_judge(desk: ReviewDesk) -> None:
    by_people(desk, "flagged", 3)
    by_people(desk, "random", 9)
    found = desk.standing()
    # Those who come to a flagged sample that they know already don't review it twice.
    assert found.drawn == found.random.samples
    assert found.skipped == 0
    by_people(desk, "random", 4)
    found = desk.standing()
    assert found.needed == 0
    mean = {each.figure: each.mean for each in found.estimates}["clarity"]
    truth = sum(worth(number) for number in range(30)) / 30
    assert mean.judge.value == pytest.approx(truth + 1)
    assert mean.corrected.interval.low < truth < mean.corrected.interval.high
    assert mean.human.n == found.random.samples
    assert any("which the labels contradict" in line for line in found.lines)


def test_people_are_held_against_each_other(desk: ReviewDesk) -> None:
    by_people(desk, "random", 6, "anna", "ben")
    case = desk.next("ben", kind="random")
    for name, score in (("anna", 1), ("ben", 5)):
        desk.submit(case.number, name, scores(score), shown=case.shown)
    found = desk.standing()
    people = found.people["clarity"]
    assert (people.people, people.n) == (2, 7)
    assert people.exact == pytest.approx(6 / 7)
    assert 0 < people.alpha.value < 1
    assert any(line.startswith("people among themselves, clarity: ") for line in found.lines)


def test_what_was_said_with_the_verdict_in_sight_counts_in_no_figure(desk: ReviewDesk) -> None:
    by_people(ReviewDesk(desk.store, desk.run, blind=False), "random", 12)
    found = desk.standing()
    assert (found.reviews, found.open, found.random.samples, found.needed) == (12, 12, 0, 10)
    assert any("in sight" in line for line in found.lines)


def test_who_cant_tell_gives_no_label(desk: ReviewDesk) -> None:
    for _ in range(12):
        case = desk.next("anna", kind="random")
        desk.submit(case.number, "anna", scores(None, None), "no idea", shown=case.shown)
    found = desk.standing()
    assert (found.random.samples, found.random.agreement, found.estimates) == (12, None, ())


def test_repeats_of_a_sample_are_reviewed_one_by_one_and_are_no_independent_evidence(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, url, 15, repeats=2)
    store = open_store(url)
    desk = ReviewDesk(store, store.runs()[0])
    assert (desk.case(20, "anna").sample_id, desk.case(20, "anna").repeat) == ("s5", 1)
    by_people(desk, "random", 28)
    found = desk.standing()
    clarity = {each.figure: each.mean for each in found.estimates}["clarity"]
    assert (clarity.human.n, clarity.corrected.n) == (28, 30)
    assert clarity.clusters is not None
    assert clarity.clusters <= 15
    store.close()


def test_a_run_that_isnt_finished_is_reviewed_as_far_as_it_is(desk: ReviewDesk) -> None:
    order = RandomOrder(desk.run.id, 30)
    missing = {order.number(place) for place in range(0, 30, 2)}
    early = _Early(desk.store, missing)
    begun = ReviewDesk(early, msgspec.structs.replace(desk.run, status="running"))
    met = []
    while (case := begun.next("anna", kind="random")) is not None:
        met.append(case.number)
        begun.submit(case.number, "anna", scores(4), shown=case.shown)
    assert met == [order.number(place) for place in range(1, 30, 2)]
    assert (begun.random_part().drawn, begun.random_part().skipped) == (15, 0)
    with pytest.raises(InputError, match="has no sample"):
        begun.case(order.number(0), "anna")
    # What came in since is next, before the part goes on.
    assert desk.next("anna", kind="random").number == order.number(0)
    assert desk.random_part().drawn == 0


class _Early:
    """A store in which some samples are still to come."""

    def __init__(self, store: Store, missing: set[int]) -> None:
        self._store = store
        self._missing = missing

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def sample(self, run_id: str, number: int) -> object:
        return None if number in self._missing else self._store.sample(run_id, number)
