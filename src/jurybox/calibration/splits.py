"""Dividing gold rows: some to learn from, some to choose by, and some to report on, once.

Which part a row falls into depends on what it says and the seed, never on the order of the file.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from jurybox.calibration.gold import Gold
from jurybox.errors import InputError
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Row

Part = Literal["tune", "select", "report"]
PARTS: Final[tuple[Part, ...]] = ("tune", "select", "report")

FEWEST: Final = 30
"""With fewer rows, each part would be too small."""

# Of ten neighbors four, three and three; dealt in turn, so that each part gets of every kind.
_DEAL: Final[tuple[Part, ...]] = (
    "tune", "select", "report", "tune", "select", "report", "tune", "select", "report", "tune",
)  # fmt: skip
_BANDS: Final = 5


class GoldRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row with its human labels; rows of one ``cluster`` belong together."""

    row: Row
    gold: Gold
    cluster: str | None = None


def split(rows: Sequence[GoldRow], rubric: Rubric, seed: int) -> dict[Part, tuple[GoldRow, ...]]:
    """Split rows 40/30/30, with similar labels in each part and clusters kept together.

    Rows with the same words are kept together too, whatever their clusters: else what was learnt by
    heart would look like understanding. Rows of each kind (by the people's mean score, or their
    winner) are put in an order that the seed decides, and dealt out in turn.
    """
    units: dict[str, list[GoldRow]] = {}
    names = units_of([(each.cluster, words_of(each.row)) for each in rows])
    for name, each in zip(names, rows, strict=True):
        units.setdefault(name, []).append(each)
    if len(units) < FEWEST:
        what = "rows with gold" if len(units) == len(rows) else "independent rows with gold"
        problem = f"{len(units)} {what} are too few to tune, select and report on"
        raise InputError(problem, f"give at least {FEWEST}, or leave --rounds out", "--gold")
    order = sorted(
        units, key=lambda name: (_stratum(units[name], rubric), _digest(f"{seed} {name}"))
    )
    dealt: dict[Part, list[GoldRow]] = {part: [] for part in PARTS}
    for place, name in enumerate(order):
        dealt[_DEAL[place % len(_DEAL)]] += units[name]
    return {part: tuple(sorted(each, key=lambda each: each.row.id)) for part, each in dealt.items()}


def uneven(parts: Mapping[Part, Sequence[GoldRow]]) -> str | None:
    """Return a warning where a part has less than half of the rows that it should have."""
    total = sum(map(len, parts.values()))
    short = [
        f"{len(rows)} of {total} rows to {part}, which should have about {total * share:.0f}"
        for part, rows in parts.items()
        if len(rows) < (share := _DEAL.count(part) / len(_DEAL)) * total / 2
    ]
    if not short:
        return None
    why = "rows that share a cluster or their words stay in one part, and some are very many"
    return f"there are only {'; '.join(short)}: {why}"


def _stratum(members: Iterable[GoldRow], rubric: Rubric) -> str:
    """Return the stratum of a unit: the band of people's mean score, or their winner."""
    winners: list[str] = []
    shares: list[float] = []
    for each in members:
        if each.gold.winner is not None:
            winners.append(each.gold.winner)
        for criterion in rubric.criteria:
            score = each.gold.score(criterion.id)
            if score is not None:
                shares.append(criterion.scale.normalize(score))
        overall = each.gold.score(rubric.overall_name)
        if overall is not None and not shares:
            shares.append(overall)
    if winners:
        return f"winner {min(winners)}"
    mean = sum(shares) / len(shares) if shares else 0.0
    return f"band {min(int(mean * _BANDS), _BANDS - 1)}"


def words_of(row: Row) -> str:
    """Return a hash of what a judge reads of a row, ignoring white space.

    The order of two responses is ignored too, because judges see both orders.
    """
    responses = sorted(
        _folded(each.text) for each in (row.response, row.response_b) if each is not None
    )
    turns = [(turn.role, _folded(turn.content)) for turn in row.messages]
    return _digest(repr((_folded(row.task), _folded(row.context or ""), responses, turns)))


def units_of(members: Sequence[tuple[str | None, str]]) -> list[str]:
    """Group members that share a cluster or words; return the name of each member's group.

    Those that share either are in one unit, and so are those that a third one joins. The name
    depends on the members of the unit alone, never on their order.
    """
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = above[above[name]]
            name = above[name]
        return name

    named: list[str] = []
    for cluster, words in members:
        name = top(f"text {words}")
        if cluster is not None:
            # The least of the names is on top, so that it is the unit's.
            name, other = sorted((name, top(f"cluster {cluster}")))
            above[other] = name
        named.append(name)
    return [top(name) for name in named]


def _digest(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _folded(text: str) -> str:
    return " ".join(text.split())
