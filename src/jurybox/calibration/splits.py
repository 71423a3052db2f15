"""Dividing gold rows: some to learn from, some to choose by, and some to report on, once.

Which part a row falls into depends on its id and the seed alone, never on the order of the file.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from jurybox.calibration.gold import Gold
from jurybox.errors import InputError
from jurybox.rubric.model import Rubric
from jurybox.sample import Row

Part = Literal["tune", "select", "report"]
PARTS: Final[tuple[Part, ...]] = ("tune", "select", "report")

FEWEST: Final = 30
"""With fewer, none of the parts would tell anything."""

# Of ten neighbours four, three and three; dealt in turn, so that each part gets of every kind.
_DEAL: Final[tuple[Part, ...]] = (
    "tune", "select", "report", "tune", "select", "report", "tune", "select", "report", "tune",
)  # fmt: skip
_BANDS: Final = 5


class GoldRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row with what people say of it; ``cluster`` is what it belongs together with."""

    row: Row
    gold: Gold
    cluster: str | None = None


def split(rows: Sequence[GoldRow], rubric: Rubric, seed: int) -> dict[Part, tuple[GoldRow, ...]]:
    """Divide rows 40/30/30, alike in what people say, with clusters kept together.

    Rows with the same words are kept together too: else what was learnt by heart would look like
    understanding. Rows of each kind (by the people's mean score, or their winner) are put in an
    order that the seed decides, and dealt out in turn.

    Raises:
        InputError: there are too few of them.

    """
    units: dict[str, list[GoldRow]] = {}
    for each in rows:
        units.setdefault(_unit(each), []).append(each)
    if len(units) < FEWEST:
        what = "rows with gold" if len(units) == len(rows) else "independent rows with gold"
        problem = f"{len(units)} {what} are too few to tune, select and report on"
        raise InputError(problem, f"give at least {FEWEST}, or leave --rounds out", "--gold")
    order = sorted(units, key=lambda name: (_stratum(units[name], rubric), _drawn(seed, name)))
    dealt: dict[Part, list[GoldRow]] = {part: [] for part in PARTS}
    for place, name in enumerate(order):
        dealt[_DEAL[place % len(_DEAL)]] += units[name]
    return {part: tuple(sorted(each, key=_id)) for part, each in dealt.items()}


def _id(each: GoldRow) -> str:
    return each.row.id


def _unit(each: GoldRow) -> str:
    if each.cluster is not None:
        return f"cluster {each.cluster}"
    row = each.row
    texts = (row.task, row.context, row.response and row.response.text)
    second = row.response_b and row.response_b.text
    turns = tuple((turn.role, turn.content) for turn in row.messages)
    return f"text {_digest(repr((*texts, second, turns)))}"


def _stratum(members: Iterable[GoldRow], rubric: Rubric) -> str:
    """Return the kind of a unit: the band of the people's mean, or who wins for them."""
    winners: list[str] = []
    shares: list[float] = []
    for each in members:
        if each.gold.winner is not None:
            winners.append(each.gold.winner)
        for criterion in rubric.criteria:
            score = each.gold.score(criterion.id)
            if score is not None:
                shares.append(criterion.scale.share(score))
        overall = each.gold.score(rubric.overall_name)
        if overall is not None and not shares:
            shares.append(overall)
    if winners:
        return f"winner {min(winners)}"
    mean = sum(shares) / len(shares) if shares else 0.0
    return f"band {min(int(mean * _BANDS), _BANDS - 1)}"


def _drawn(seed: int, name: str) -> str:
    return _digest(f"{seed} {name}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
