"""E14: gold is divided once, by the seed and the ids, and nothing is in two parts."""

import random

from hypothesis import given
from hypothesis import strategies as st

from answers import rubric
from jurybox.calibration.gold import FEWEST, PARTS, Gold, GoldRow, Part, split
from jurybox.sample import Response, Row

RUBRIC = rubric()


def rows(scores: list[int], clusters: list[str | None] | None = None) -> list[GoldRow]:
    known = clusters or [None] * len(scores)
    return [
        GoldRow(
            row=Row(id=f"r{n}", task=f"task {n}", response=Response(text="x")),
            gold=Gold(scores={"correctness": {"1": score}}),
            cluster=cluster,
        )
        for n, (score, cluster) in enumerate(zip(scores, known, strict=True))
    ]


def ids(parts: dict[Part, tuple[GoldRow, ...]]) -> dict[Part, set[str]]:
    return {part: {each.row.id for each in members} for part, members in parts.items()}


@given(st.lists(st.integers(1, 5), min_size=FEWEST, max_size=120), st.integers(0, 5))
def test_the_parts_are_disjoint_complete_and_of_their_sizes(scores: list[int], seed: int) -> None:
    found = ids(split(rows(scores), RUBRIC, seed))
    assert sum(map(len, found.values())) == len(scores)
    assert set.union(*found.values()) == {f"r{n}" for n in range(len(scores))}
    for part, share in zip(PARTS, (0.4, 0.3, 0.3), strict=True):
        assert abs(len(found[part]) - share * len(scores)) <= 1.5


@given(st.lists(st.integers(1, 5), min_size=FEWEST, max_size=60), st.randoms())
def test_the_order_of_rows_changes_nothing(scores: list[int], chance: random.Random) -> None:
    before = rows(scores)
    after = list(before)
    chance.shuffle(after)
    assert split(before, RUBRIC, 3) == split(after, RUBRIC, 3)


@given(st.lists(st.integers(0, 39), max_size=60))
def test_clusters_stay_together(more: list[int]) -> None:
    names: list[str | None] = [str(number) for number in (*range(40), *more)]
    found = split(rows([1 + n % 5 for n in range(len(names))], names), RUBRIC, 0)
    parts_of: dict[str, set[str]] = {}
    for part, members in found.items():
        for each in members:
            parts_of.setdefault(str(each.cluster), set()).add(part)
    assert all(len(parts) == 1 for parts in parts_of.values())


def worded(number: int, task: str) -> GoldRow:
    return GoldRow(
        row=Row(id=f"r{number}", task=task, response=Response(text="x")),
        gold=Gold(scores={"correctness": {"1": 1 + number % 5}}),
    )


def test_rows_with_the_same_words_stay_together() -> None:
    made = [worded(n, f"task  {n % 40}\n" if n < 40 else f"task {n % 40}") for n in range(80)]
    for members in ids(split(made, RUBRIC, 0)).values():
        assert len(members) == 2 * len({int(name[1:]) % 40 for name in members})


def test_two_responses_in_the_other_order_are_the_same_words() -> None:
    sides = [Response(text="one"), Response(text="two")]
    made = [
        GoldRow(
            row=Row(
                id=f"r{n}",
                task=f"task {n // 2}",
                response=sides[n % 2],
                response_b=sides[1 - n % 2],
            ),
            gold=Gold(winners={"1": "A"}),
        )
        for n in range(80)
    ]
    for members in ids(split(made, RUBRIC, 0)).values():
        assert len(members) == 2 * len({int(name[1:]) // 2 for name in members})


def test_every_part_has_all_kinds_of_rows() -> None:
    found = split(rows([1] * 30 + [5] * 30), RUBRIC, 0)
    for members in found.values():
        low = sum(each.gold.score("correctness") == 1 for each in members)
        assert abs(low - len(members) / 2) <= 1


def test_pairs_are_alike_in_who_wins() -> None:
    pairs = [
        GoldRow(
            row=Row(id=f"r{n}", task=f"task {n}"), gold=Gold(winners={"1": "A" if n % 2 else "B"})
        )
        for n in range(40)
    ]
    for members in split(pairs, RUBRIC, 0).values():
        first = sum(each.gold.winner == "A" for each in members)
        assert abs(first - len(members) / 2) <= 1
