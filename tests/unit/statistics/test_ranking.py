"""Strengths from verdicts on pairs (Bradley-Terry, Davidson)."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.statistics.davidson import PairVerdict
from jurybox.statistics.model_ranking import Ranking, rank
from lazily import Lazily

sm = Lazily("statsmodels.api")

SIDES = {">": "a", "<": "b", "=": "tie"}


def verdicts(text: str) -> list[PairVerdict]:
    """Read `A>B 3` as three verdicts."""
    made: list[PairVerdict] = []
    for part in text.split(", "):
        pair, _, times = part.partition(" ")
        row = PairVerdict(a=pair[0], b=pair[2], winner=SIDES[pair[1]])
        made += [row] * int(times or 1)
    return made


def strengths(ranking: Ranking) -> dict[str, float | None]:
    return {model.name: model.strength for model in ranking.models}


def has_nan(value: object) -> bool:
    """Look into all of a result; as JSON, NaN would pass for null."""
    if isinstance(value, dict):
        return any(map(has_nan, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_nan, value))
    return isinstance(value, float) and value != value  # noqa: PLR0124 - only NaN differs from itself


def drawn(
    rng: np.random.Generator, true: Sequence[float], n: int, log_tie: float | None = None
) -> list[PairVerdict]:
    """Draw verdicts from Davidson's model."""
    strengths = np.asarray(true)
    i = rng.integers(0, len(true), n)
    j = (i + rng.integers(1, len(true), n)) % len(true)
    half = np.exp((strengths[i] - strengths[j]) / 2)
    tie = 0.0 if log_tie is None else np.exp(log_tie)
    place = rng.random(n) * (half + 1 / half + tie)
    winners = np.where(place < half, "a", np.where(place < half + 1 / half, "b", "tie"))
    return [
        PairVerdict(a=f"m{one}", b=f"m{other}", winner=str(winner))
        for one, other, winner in zip(i, j, winners, strict=True)
    ]


def test_without_ties_it_is_a_logistic_regression() -> None:
    """statsmodels' logit on (1 for a, -1 for b), the first model as reference."""
    rows = drawn(np.random.default_rng(1), [0.8, 0.2, 0, -1.0], 300)
    design = np.zeros((300, 4))
    for line, row in enumerate(rows):
        design[line, int(row.a[1])] += 1
        design[line, int(row.b[1])] -= 1
    won = np.array([row.winner == "a" for row in rows], dtype=float)
    theirs = sm.Logit(won, design[:, 1:]).fit(disp=0, tol=1e-14, method="newton")
    expected = np.append(0, theirs.params)
    found = rank(rows)
    ours = strengths(found)
    for i, value in enumerate(expected - expected.mean()):
        assert ours[f"m{i}"] == pytest.approx(value, abs=1e-9)
    # The variance of a difference to the reference is theirs as it is.
    apart = next(each for each in found.differences if {each.a, each.b} == {"m0", "m3"})
    half = 1.959963984540054 * theirs.bse[2]
    assert (apart.interval.high - apart.interval.low) / 2 == pytest.approx(half, abs=1e-9)


def test_two_models_with_ties_by_hand() -> None:
    """6 wins, 3 losses, 9 ties: odds w = 6/3, and v = ties / sqrt(wins losses)."""
    found = rank(verdicts("A>B 6, A<B 3, A=B 9"))
    ours = strengths(found)
    assert ours["A"] - ours["B"] == pytest.approx(np.log(2), abs=1e-9)
    assert found.ties.parameter == pytest.approx(9 / np.sqrt(18), abs=1e-9)
    # Without knowledge lost to the tie parameter: the variance of log(6/3) is 1/6 + 1/3.
    interval = found.differences[0].interval
    half = 1.959963984540054 * np.sqrt(1 / 6 + 1 / 3)
    assert interval.high - np.log(2) == pytest.approx(half, abs=1e-9)
    assert not found.differences[0].significant


def test_the_matrix_counts_a_tie_as_half_a_win() -> None:
    found = rank(verdicts("A>B 2, A<B 1, A=B 1, B>C 1, B<C 1"))
    matrix = found.matrix()
    assert matrix["A"]["B"] == pytest.approx(2.5 / 4)
    assert matrix["B"]["A"] == pytest.approx(1.5 / 4)
    assert matrix["A"]["C"] is None
    model = next(model for model in found.models if model.name == "B")
    assert (model.wins, model.losses, model.ties) == (2, 3, 1)
    assert model.win_rate == pytest.approx(2.5 / 6)


def test_a_model_that_won_everything_has_no_strength() -> None:
    found = rank(verdicts("A>B 9, A>C 9, B>C 5, B<C 4"))
    first, *others = found.models
    assert first.name == "A"
    assert (first.strength, first.interval, first.rank) == (None, None, 1)
    assert first.reason
    assert all(model.strength is not None for model in others)
    assert any("`A` won every verdict" in warning for warning in found.warnings)


def test_wins_one_way_with_ties_have_no_finite_strength() -> None:
    """The more A is above B, the better three wins fit, if ties grow likelier at the same time."""
    found = rank(verdicts("A>B 7, A=B 2"))
    assert strengths(found) == {"A": None, "B": None}
    assert found.ties.parameter is None
    assert [model.rank for model in found.models] == [1, 2]
    assert any("no finite strengths" in warning for warning in found.warnings)


def test_only_ties_tell_no_order() -> None:
    found = rank(verdicts("A=B 5"))
    assert strengths(found) == {"A": None, "B": None}
    assert found.warnings == ("every verdict is a tie: there is no order",)


def test_a_cycle_of_majorities_is_named_once_and_is_the_shortest() -> None:
    found = rank(verdicts("A>B 2, B>C 2, C>D 2, D>A 2, A>C 1"))
    assert found.cycles == (("A", "C", "D"),)
    square = rank(verdicts("A>B 2, B>C 2, C>D 2, D>A 2"))
    assert square.cycles == (("A", "B", "C", "D"),)


def test_copies_of_a_verdict_on_one_item_add_no_knowledge() -> None:
    rows = drawn(np.random.default_rng(6), [0.5, 0, -0.5], 150, -1)
    single = [msgspec.structs.replace(row, item=i) for i, row in enumerate(rows)]
    copied = rank(single * 5)
    alone = rank(single + single[:1])
    assert copied.items == 150
    widths = [
        model.interval.high - model.interval.low
        for found in (copied, alone)
        for model in sorted(found.models, key=lambda each: each.name)
    ]
    assert widths[:3] == pytest.approx(widths[3:], rel=0.03)
    assert "clustered by 150 items" in copied.models[0].interval.method


def test_too_few_items_give_no_interval() -> None:
    rows = [
        msgspec.structs.replace(row, item=i % 3) for i, row in enumerate(verdicts("A>B 9, A<B 4"))
    ]
    found = rank(rows)
    assert found.models[0].strength is not None
    assert found.models[0].interval is None
    assert any("too few items" in warning for warning in found.warnings)


VERDICTS = st.lists(
    st.builds(
        lambda pair, winner: PairVerdict(a=pair[0], b=pair[1], winner=winner),
        st.sampled_from([(x, y) for x in "ABCD" for y in "ABCD" if x != y]),
        st.sampled_from(["a", "b", "tie"]),
    ),
    min_size=1,
    max_size=40,
)


@given(VERDICTS)
def test_new_names_for_models_change_nothing_else(rows: list[PairVerdict]) -> None:
    new = dict(zip("ABCD", "zxwy", strict=True))
    renamed = [msgspec.structs.replace(row, a=new[row.a], b=new[row.b]) for row in rows]
    plain, other = rank(rows), rank(renamed)
    theirs = {model.name: model for model in other.models}
    for model in plain.models:
        twin = theirs[new[model.name]]
        assert model.rank == twin.rank
        assert model.strength == pytest.approx(twin.strength, abs=1e-6)
    assert len(plain.cycles) == len(other.cycles)


@given(VERDICTS)
def test_swapping_sides_and_rows_changes_nothing(rows: list[PairVerdict]) -> None:
    turned = {"a": "b", "b": "a", "tie": "tie"}
    swapped = [PairVerdict(a=row.b, b=row.a, winner=turned[row.winner]) for row in reversed(rows)]
    assert msgspec.json.encode(rank(rows).as_data()) == msgspec.json.encode(rank(swapped).as_data())


@given(VERDICTS)
def test_a_fit_expects_as_many_wins_as_there_were_and_nothing_is_nan(
    rows: list[PairVerdict],
) -> None:
    """The likelihood's own equations (Davidson 1970): wins and half the ties, seen and expected."""
    found = rank(rows)
    assert not has_nan(msgspec.to_builtins(found.as_data()))
    ours = strengths(found)
    if None in ours.values() or len({model.scale for model in found.models}) > 1:
        return
    for model in found.models:
        expected = 0.0
        for row in rows:
            if model.name in {row.a, row.b}:
                other = row.b if row.a == model.name else row.a
                w, x = np.exp(ours[model.name]), np.exp(ours[other])
                tie = found.ties.parameter * np.sqrt(w * x)
                expected += (w + tie / 2) / (w + x + tie)
        assert expected == pytest.approx(model.wins + model.ties / 2, abs=1e-4)


def test_intervals_of_strengths_cover_at_their_level() -> None:
    rng = np.random.default_rng(22)
    true = np.array([0.6, 0.1, -0.2, -0.5])
    covered = np.zeros(4)
    for _ in range(300):
        for model in rank(drawn(rng, true, 150, -0.7)).models:
            i = int(model.name[1])
            covered[i] += model.interval.low <= true[i] <= model.interval.high
    assert 0.93 <= covered.sum() / 1200 <= 0.97


@pytest.mark.parametrize("items", [4, 12])
def test_items_that_all_say_the_same_are_no_certainty(items: int) -> None:
    rows = [
        PairVerdict(a="x", b="y", winner=w, item=i) for i in range(items) for w in ("a", "a", "b")
    ]
    (found,) = rank(rows).differences
    alone = rank([msgspec.structs.replace(row, item=None) for row in rows]).differences[0]
    assert found.difference == pytest.approx(np.log(2))
    assert found.interval.high - found.interval.low > alone.interval.high - alone.interval.low
    if items == 4:
        assert not found.significant


def test_few_items_are_never_surer_than_independent_verdicts() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        rows = drawn(rng, [0.3, 0, -0.3], 60, -1)
        rows = [msgspec.structs.replace(row, item=i % 8) for i, row in enumerate(rows)]
        grouped = rank(rows).differences
        alone = rank([msgspec.structs.replace(row, item=None) for row in rows]).differences
        for one, other in zip(grouped, alone, strict=True):
            assert one.interval.low < other.interval.low
            assert one.interval.high > other.interval.high


def test_a_row_without_an_item_leaves_the_others_clustered() -> None:
    rows = drawn(np.random.default_rng(3), [0.4, -0.4], 200, -1)
    rows = [msgspec.structs.replace(row, item=i // 10) for i, row in enumerate(rows)]
    rows[0] = msgspec.structs.replace(rows[0], item=None)
    found = rank(rows)
    assert found.items == 21
    assert "clustered by 21 items" in found.models[0].interval.method
    said = "1 row names no item: each counts as an item of its own"
    assert said in found.warnings
    bare = rank([msgspec.structs.replace(row, item=None) for row in rows])
    assert bare.items is None
    assert not bare.warnings
