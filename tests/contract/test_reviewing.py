"""The desk at which people review samples; where it meets the database, on either."""

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

import reviewed
from jurybox.app.estimate_run import RunLabels, estimate, review_agreement
from jurybox.app.review_desk import ReviewDesk
from jurybox.engine.records import ReviewRow, sealed
from jurybox.errors import IncompleteError, InputError
from jurybox.review.reviews import Circumstances, HumanVerdict, by_number, gold_of
from jurybox.review.selection import RandomOrder
from jurybox.storage import open_store
from jurybox.storage.audit import audit
from jurybox.storage.store import Store
from reviewed import make_run, worth

SEEN = Circumstances()


def scores(clarity: int | None, depth: float | None = 0.5) -> dict[str, object]:
    return {"scores": {"clarity": clarity, "depth": depth}}


@pytest.fixture
def place(tmp_path: Path) -> str:
    """What the desk says is the same on both stores; tests that take an address try each."""
    return str(tmp_path / "store.db")


@pytest.fixture
def store(place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    make_run(monkeypatch, place)
    opened = open_store(place)
    yield opened
    opened.close()


@pytest.fixture
def desk(store: Store) -> ReviewDesk:
    return ReviewDesk(store, store.runs()[0], overlap=9)


@pytest.fixture
def pairs(place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReviewDesk]:
    make_run(monkeypatch, place, 12, pairs=True)
    opened = open_store(place)
    yield ReviewDesk(opened, opened.runs()[0], overlap=9)
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


def test_a_reviewer_who_changes_a_review_takes_no_other_reviewers_place(desk: ReviewDesk) -> None:
    two = ReviewDesk(desk.store, desk.run, overlap=2)
    for concern in (None, False):
        two.submit(3, "ben", {**scores(4), "safety_concern": concern}, shown=SEEN)
    assert two.next("anna").number == 3


@pytest.mark.parametrize("overlap", [1, 2])
def test_a_review_that_doesnt_count_takes_no_other_reviewers_place(
    desk: ReviewDesk, overlap: int
) -> None:
    shared = ReviewDesk(desk.store, desk.run, overlap=overlap)
    first = desk.order.number(0)
    picked = Circumstances(queue="picked", blind=False)
    shared.submit(first, "paul", scores(4), shown=picked)
    case = shared.next("anna", kind="random")
    shared.submit(first, "anna", scores(4), shown=case.shown)
    shared.undo("anna")
    shared.submit(first, "anna", scores(3), shown=case.shown)  # after the verdict was revealed
    met = [shared.next(name, kind="random").number for name in ("ben", "carla", "dora")]
    assert (met.count(first), met[0], shared.progress().labeled) == (overlap, first, 0)
    by_people(shared, "random", 1, "ben", "carla", "dora")
    labels = [each.reviewer for each in shared.reviews(blind=True) if each.number == first]
    assert (labels, shared.progress().waiting) == (["ben", "carla"][:overlap], 0)
    assert first in shared.enough("eve", "random")
    assert first not in shared.enough("carla" if overlap == 2 else "ben", "random")
    # A release counts every review that decides about a flag.
    for name in ("paul", "anna")[:overlap]:
        shared.submit(3, name, {**scores(4), "safety_concern": False}, shown=picked)
    assert 3 in shared.enough("eve", "flagged")


def test_what_is_passed_over_comes_back_at_the_end(desk: ReviewDesk) -> None:
    assert desk.next("anna", after=3).sample_id == "s13"
    assert desk.next("anna", after=23).sample_id == "s3"
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
        verdict = HumanVerdict(winner=side)
        pairs.submit(number, "anna", verdict, shown=case.shown)
        # It is shown again as it was said.
        assert pairs.case(number, "anna").mine == verdict
        found = pairs.revealed(number, "anna")
        assert found.mine.verdict == HumanVerdict(winner="A")
        assert (found.judged.winner, found.order) == ("A", case.order)
    assert orders == {"AB", "BA"}
    with pytest.raises(InputError, match="`scores` is an unknown key"):
        pairs.submit(0, "ben", scores(4), shown=SEEN)


def test_judges_are_held_against_people_on_pairs(pairs: ReviewDesk) -> None:
    for _ in range(12):
        case = pairs.next("anna", kind="random")
        pairs.submit(case.number, "anna", {"winner": "tie"}, shown=case.shown)
    found = review_agreement(pairs)
    (winner,) = found.random.agreement.criteria
    assert (winner.criterion, winner.n, winner.exact.value) == ("winner", 12, 0.0)
    (wins,) = found.estimates
    assert (wins.metric, wins.mean.human.value) == ("win_rate", 0.5)
    assert wins.mean.judge.value == 1  # the judge prefers A


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
    assert review_agreement(desk) is None
    by_people(desk, "flagged", 3)
    found = review_agreement(desk)
    assert (found.reviews, found.samples, found.reviewers) == (3, 3, ("anna",))
    assert (found.flagged.samples, found.random.samples) == (3, 0)
    assert (found.estimates, found.needed) == ((), 10)
    assert (
        "nothing is corrected yet: 10 more reviews from the random queue are needed. Flagged"
        " samples that are already reviewed count once the queue reaches them, so fewer may be"
        " enough" in found.lines
    )
    assert found.random.agreement is None
    clarity, depth = found.flagged.agreement.criteria
    assert (clarity.bias.value, clarity.exact.value) == (1.0, 0.0)
    # One score for everything: there is no kappa, and it says why.
    assert depth.kappa.value is None
    assert depth.kappa.reason


def test_the_random_subset_corrects_the_judge(desk: ReviewDesk) -> None:
    by_people(desk, "flagged", 3)
    by_people(desk, "random", 9)
    found = review_agreement(desk)
    # Those who come to a flagged sample that they know already don't review it twice.
    assert found.drawn == found.random.samples
    assert found.skipped == 0
    by_people(desk, "random", 4)
    found = review_agreement(desk)
    assert found.needed == 0
    mean = {each.metric: each.mean for each in found.estimates}["clarity"]
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
    found = review_agreement(desk)
    people = found.people["clarity"]
    assert (people.people, people.n) == (2, 7)
    assert people.exact == pytest.approx(6 / 7)
    # A flagged sample outside of the random subset doesn't count beside the judge's agreement.
    subset = desk.subset_of(desk.active_reviews()).reviewed
    outside = next(number for number in (3, 13, 23) if number not in subset)
    for name in ("anna", "ben"):
        desk.submit(outside, name, scores(2), shown=Circumstances(queue="flagged"))
    found = review_agreement(desk)
    assert found.people["clarity"] == people
    assert 0 < people.alpha.value < 1
    among = "people among themselves, random subset, clarity: "
    assert any(line.startswith(among) for line in found.lines)


def test_what_was_said_with_the_verdict_in_sight_counts_in_no_metric(desk: ReviewDesk) -> None:
    by_people(ReviewDesk(desk.store, desk.run, blind=False, overlap=9), "random", 12)
    found = review_agreement(desk)
    assert (found.reviews, found.open, found.random.samples, found.needed) == (12, 12, 0, 10)
    assert any("after seeing the judges' verdict" in line for line in found.lines)


def test_can_tell_nothing_is_no_label_of_the_random_subset(desk: ReviewDesk) -> None:
    for place in range(12):
        case = desk.next("anna", kind="random")
        given = scores(4) if place < 2 else scores(None, None)
        desk.submit(case.number, "anna", given, shown=case.shown)
    assert (desk.progress().labeled, desk.progress().needed, desk.progress().drawn) == (2, 8, 12)
    assert any("that no reviewer could judge" in line for line in review_agreement(desk).lines)


def test_samples_without_a_judges_score_are_no_labels_that_correct(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, even = reviewed.kind, re.compile(r"answer \d*[02468]\b")
    monkeypatch.setattr(reviewed, "kind", lambda text: "?" if even.search(text) else kind(text))
    make_run(monkeypatch, url, 30)
    store = open_store(url)
    desk = ReviewDesk(store, store.runs()[0])
    while (made := desk.progress()).drawn - made.unscored < 9:
        by_people(desk, "random", 1)
    assert made.unscored > 0
    assert (made.labeled, made.needed) == (9, 1)
    found = review_agreement(desk)
    assert (found.unscored, found.unsure, found.estimates) == (made.unscored, 0, ())
    assert any("1 more review from the random queue is needed" in line for line in found.lines)
    assert any("no score by the judge" in line for line in found.uncounted)
    by_people(desk, "random", 20)
    assert desk.progress().needed == 0
    assert {each.mean.judge.n for each in review_agreement(desk).estimates} == {15}
    store.close()


def test_a_criterion_that_many_drawn_samples_have_no_label_for_isnt_corrected(
    desk: ReviewDesk,
) -> None:
    # People withhold one score where the response is poor; the rest of it is no random choice.
    for _ in range(24):
        case = desk.next("anna", kind="random")
        said = worth(case.number)
        desk.submit(case.number, "anna", scores(said if said > 2 else None, 0.25), shown=case.shown)
    found = review_agreement(desk)
    assert (found.needed, found.skipped, found.unsure) == (0, 0, 0)
    made = {each.metric: each for each in found.estimates}
    assert made["depth"].mean.corrected.value is not None
    assert made["depth"].missing == 0
    for name in ("clarity", "overall"):
        assert made[name].mean.corrected.value is None
        assert made[name].missing > 2
        assert f"{made[name].missing} of the 24 samples drawn" in made[name].mean.sentence


def test_who_undoes_a_review_has_seen_the_verdict(desk: ReviewDesk) -> None:
    desk.submit(3, "anna", scores(1), shown=SEEN)
    desk.undo("anna")
    assert not desk.case(3, "anna").blind
    desk.submit(3, "anna", scores(2), shown=SEEN)
    assert desk.reviews(blind=True) == ()


def test_an_open_review_stays_open_though_it_is_undone(desk: ReviewDesk) -> None:
    ReviewDesk(desk.store, desk.run, blind=False).submit(3, "anna", scores(1), shown=SEEN)
    desk.undo("anna")
    assert not desk.case(3, "anna").blind


def test_after_the_only_review_is_undone_nothing_is_said(desk: ReviewDesk) -> None:
    desk.submit(3, "anna", scores(1), shown=SEEN)
    desk.undo("anna")
    assert review_agreement(desk) is None


def stored_verdict(desk: ReviewDesk, text: str) -> None:
    sample = desk.store.sample(desk.run.id, 3)
    row = ReviewRow(
        id="poison",
        run_id=desk.run.id,
        number=3,
        reviewer="mallory",
        created_at="2026-01-01T00:00:00Z",
        action="review",
        of=None,
        record_sha256=sample.record_sha256,
        verdict=text,
        comment="",
    )
    desk.store.add_review(sealed(row))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"scores": {"clarity": 1}, "queue": "zzz"}', "its verdict can't be read"),
        ('{"scores": {"clarity": 500}}', "the score of `clarity` is 500"),
        ('{"scores": {"nonsense": 3}}', "`nonsense` isn't judged"),
        ('{"winner": "A"}', "for a different number of responses"),
    ],
)
def test_a_verdict_that_cant_be_one_is_found_by_verify_and_can_be_taken_back(
    desk: ReviewDesk, text: str, says: str
) -> None:
    stored_verdict(desk, text)
    difference = audit(desk.store, desk.run).difference
    assert str(difference).startswith(f"run {desk.run.id}, review poison: ")
    assert says in str(difference)
    if "winner" not in text:
        with pytest.raises(IncompleteError, match="`jurybox verify` says where"):
            review_agreement(desk)
    assert desk.undo("mallory").of == "poison"
    assert review_agreement(desk) is None


def test_a_withdrawal_may_seem_older_than_what_it_withdraws(desk: ReviewDesk) -> None:
    desk.submit(3, "anna", scores(1), shown=SEEN)
    (row,) = desk.store.reviews(desk.run.id)
    # The clock was put back in between.
    older = {"id": "w", "created_at": "2020-01-01T00:00:00Z", "action": "withdrawal", "of": row.id}
    desk.store.add_review(sealed(msgspec.structs.replace(row, **older)))
    assert audit(desk.store, desk.run).difference is None
    assert desk.reviews() == ()


def test_few_labels_are_told_to_be_few_and_no_interval_is_wider_than_the_scale(
    desk: ReviewDesk,
) -> None:
    for place, score in enumerate((1, 5)):
        number = desk.order.number(place)
        shown = Circumstances(queue="random")
        desk.submit(number, "anna", scores(score), shown=shown)
    found = review_agreement(desk)
    clarity = found.random.agreement.criteria[0]
    assert -4 <= clarity.bias.interval.low <= clarity.bias.interval.high <= 4
    (line,) = (line for line in found.lines if "random subset, clarity" in line)
    assert "(n 2, too few to rely on)" in line


def test_how_an_interval_was_made_is_told_where_pairs_were_imagined(desk: ReviewDesk) -> None:
    by_people(desk, "random", 5)
    (line,) = (line for line in review_agreement(desk).lines if "random subset, clarity" in line)
    assert "two of them added" in line


def test_what_cant_be_told_of_a_continuous_scale_isnt_said(desk: ReviewDesk) -> None:
    by_people(desk, "random", 12, "anna", "ben")
    lines = review_agreement(desk).lines
    assert any("random subset, depth: kappa " in line for line in lines)
    assert not any("unknown share" in line for line in lines)


def test_a_run_of_which_every_sample_has_a_label_tells_peoples_own_metric(
    desk: ReviewDesk,
) -> None:
    by_people(desk, "random", 30)
    truth = sum(worth(number) for number in range(30)) / 30
    (line,) = (line for line in review_agreement(desk).lines if line.startswith("clarity: "))
    assert f"people's own value needs no correction, {truth:.3f} (" in line
    assert "the judge alone says 3.4" in line


def test_a_run_that_goes_on_isnt_said_to_have_a_label_for_every_sample(desk: ReviewDesk) -> None:
    by_people(desk, "random", 30)
    document = msgspec.json.decode(desk.run.plan)
    document["dataset"]["rows"] = 60
    begun = msgspec.structs.replace(
        desk.run, status="running", plan=msgspec.json.encode(document).decode()
    )
    reviewed = {number: gold_of(each) for number, each in by_number(desk.reviews()).items()}
    found = estimate(desk.store, begun, RunLabels(reviewed=reviewed))
    assert "every sample stored so far (30 of 60) has a label" in (found.estimates[0].mean.sentence)


def test_where_no_judge_was_asked_it_is_the_rules_that_people_are_held_against(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, url, 24)
    store = open_store(url)
    run = store.runs()[0]
    plan = {**msgspec.json.decode(run.plan), "judges": []}
    ruled = msgspec.structs.replace(run, plan=msgspec.json.encode(plan).decode())
    desk = ReviewDesk(store, ruled)
    by_people(desk, "random", 12)
    lines = "\n".join(review_agreement(desk).lines)
    assert "rules against people, random subset, clarity: " in lines
    assert "rules minus people" in lines
    assert "the rules alone say " in lines
    assert "judge" not in lines
    store.close()


def test_repeats_of_a_sample_are_reviewed_one_by_one_and_are_no_independent_evidence(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, url, 15, repeats=2)
    store = open_store(url)
    desk = ReviewDesk(store, store.runs()[0])
    assert (desk.case(20, "anna").sample_id, desk.case(20, "anna").repeat) == ("s5", 1)
    by_people(desk, "random", 28)
    found = review_agreement(desk)
    clarity = {each.metric: each.mean for each in found.estimates}["clarity"]
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
    assert (begun.random_subset().drawn, begun.random_subset().skipped) == (15, 0)
    with pytest.raises(InputError, match="has no sample"):
        begun.case(order.number(0), "anna")
    # What came in since is next, before the part goes on.
    assert desk.next("anna", kind="random").number == order.number(0)
    assert desk.random_subset().drawn == 0


def test_thousands_of_reviews_are_all_counted(
    desk: ReviewDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = desk.submit(3, "anna", scores(2), shown=Circumstances(queue="random"))
    large = ReviewDesk(desk.store, desk.run)
    large.order = RandomOrder(desk.run.id, 20_000)
    rows = [
        sealed(msgspec.structs.replace(row, id=f"r{place:05}", number=large.order.number(place)))
        for place in range(2300)
    ]
    monkeypatch.setattr(desk.store, "reviews", lambda _: rows)
    part = large.random_subset()
    assert (part.drawn, part.skipped) == (2300, 0)
    assert large.progress("anna").labeled == 2300


class _Early:
    """A store in which some samples are still to come."""

    def __init__(self, store: Store, missing: set[int]) -> None:
        self._store = store
        self._missing = missing

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def numbers(self, run_id: str) -> set[int]:
        return set(self._store.numbers(run_id)) - self._missing

    def sample(self, run_id: str, number: int) -> object:
        return None if number in self._missing else self._store.sample(run_id, number)


def reviewed_by(url: str, name: str, overlap: int) -> list[int]:
    """Review all that a queue has for one of several reviewers, each with a store of their own."""
    store = open_store(url)
    desk = ReviewDesk(store, store.runs()[0], overlap=overlap)
    met: list[int] = []
    while (case := desk.next(name, kind="random")) is not None:
        met.append(case.number)
        desk.submit(case.number, name, scores(4), shown=case.shown)
    store.close()
    return met


@pytest.mark.parametrize("overlap", [1, 2])
def test_reviewers_at_the_same_time_share_the_samples(
    url: str, monkeypatch: pytest.MonkeyPatch, overlap: int
) -> None:
    make_run(monkeypatch, url, 30)
    names = ("anna", "ben", "carla", "dora")
    with ThreadPoolExecutor() as pool:
        met = [*pool.map(lambda name: reviewed_by(url, name, overlap), names)]
    times = Counter(number for each in met for number in each)
    # One who finds that all that is left is with others is done; what these leave open is theirs.
    assert set(times) == set(range(30))
    assert max(times.values()) <= overlap
    assert sum(map(len, met)) >= 30 * overlap - len(names) * overlap


def test_a_sample_is_with_one_reviewer_until_they_take_another_or_an_hour_is_over(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, url, 30)
    store = open_store(url)
    desk = ReviewDesk(store, store.runs()[0])
    assert desk.next("anna").sample_id == desk.next("anna").sample_id == "s3"
    assert desk.next("ben").sample_id == "s13"
    assert desk.next("anna", after=3).sample_id == "s23"
    assert desk.next("carla").sample_id == "s3"
    assert desk.next("dora") is None
    monkeypatch.setattr("jurybox.app.review_desk._CLAIMED", timedelta(seconds=-1))
    assert desk.next("dora").sample_id == "s3"
    store.close()
