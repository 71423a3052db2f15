"""The human labels of a sample: its gold.

A row of a dataset may have ``gold`` (scores by criterion) and, for two responses, ``gold_winner``.
Each score and winner is one person's value, or the values of several people: a list, or an object
by name. Both keys are part of the row's metadata, which judges never see. In tables without
nesting, such as CSV, their cells contain JSON.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, cast

import msgspec

from jurybox.errors import InputError
from jurybox.judging.evaluation_report import EvaluationReport, Method
from jurybox.judging.formats.reply_format import SIDES, Side
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import UNIT_SCALE, Scale
from jurybox.sample import Row

GOLD: Final = "gold"
GOLD_WINNER: Final = "gold_winner"

_ONE: Final = "1"
_HALF_A_POINT: Final = 0.5

T = TypeVar("T")


class Gold(msgspec.Struct, frozen=True, kw_only=True):
    """The human labels of one sample; unnamed raters are numbered from 1."""

    scores: dict[str, dict[str, float]] = {}  # by criterion, then by person
    winners: dict[str, Side] = {}  # by person, which of two responses is better

    def score(self, criterion: str) -> float | None:
        """Return the mean human score; None if there are no scores."""
        given = self.scores.get(criterion)
        return math.fsum(given.values()) / len(given) if given else None

    @property
    def labels(self) -> dict[str, list[float | str]]:
        """Everyone's labels, by criterion or ``winner``."""
        named = {**self.scores, **({WINNER: self.winners} if self.winners else {})}
        return {name: [*given.values()] for name, given in named.items()}

    @property
    def winner(self) -> Side | None:
        """The majority's winner; a tie if there is no majority."""
        ranked = Counter(self.winners.values()).most_common(2)
        if not ranked:
            return None
        is_shared = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
        return "tie" if is_shared else ranked[0][0]


def gold_scales(rubric: Rubric) -> dict[str, Scale]:
    """Return the scale of each name that people can score: criteria, and the overall score."""
    return {rubric.overall_name: UNIT_SCALE} | {each.id: each.scale for each in rubric.criteria}


def read_gold(metadata: Mapping[str, object], scales: Mapping[str, Scale]) -> Gold | None:
    """Read the gold in a row's metadata; None if there is none.

    A number may be the mean of several people's scores, so it may lie between two points of the
    scale.
    """
    scores, winners = (unpacked(metadata.get(name)) for name in (GOLD, GOLD_WINNER))
    if scores is None and winners is None:
        return None
    return Gold(
        scores={} if scores is None else _read_scores(scores, scales),
        winners={} if winners is None else dict(_read_winners(winners)),
    )


def row_gold(row: Row, scales: Mapping[str, Scale]) -> Gold | None:
    """Read the gold of a stored row; None if there is none."""
    try:
        return read_gold(row.metadata, scales)
    except InputError as error:
        raise InputError(error.problem, error.hint, f"sample {row.id}") from None


def unpacked(value: object) -> object:
    """Return the value of a cell; tables contain objects and lists as JSON text."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value  # kept as it is for the error message


def _read_scores(value: object, scales: Mapping[str, Scale]) -> dict[str, dict[str, float]]:
    if not isinstance(value, Mapping):
        raise InputError(
            f"`{GOLD}` is {_shown(value)}", 'write scores by criterion: {"clarity": 4}'
        )
    found: dict[str, dict[str, float]] = {}
    for name, given in cast("Mapping[str, object]", value).items():
        scale = scales.get(name)
        if scale is None:
            names = ", ".join(scales)
            raise InputError(f"`{GOLD}` names `{name}`, which isn't judged", f"name one of {names}")
        people = {
            rater: _score(each, name, scale) for rater, each in _people(given) if each is not None
        }
        if people:
            found[name] = people
    return found


def _score(value: object, name: str, scale: Scale) -> float:
    is_bool = isinstance(value, bool)
    if isinstance(value, (int, float)) and not is_bool and scale.contains(value):
        return value
    span = f"a number from {scale.low:g} to {scale.high:g}"
    raise InputError(f"`{GOLD}` gives `{name}` {_shown(value)}", f"give {span}")


def _read_winners(value: object) -> Iterable[tuple[str, Side]]:
    for rater, each in _people(value):
        if each is None:
            continue
        if each not in SIDES:
            sides = ", ".join(f'"{side}"' for side in SIDES)
            raise InputError(f"`{GOLD_WINNER}` is {_shown(each)}", f"give one of {sides}")
        yield rater, each


def _people(value: object) -> Iterable[tuple[str, object]]:
    """Return labels by rater; a single value belongs to one unnamed rater."""
    match value:
        case Mapping():
            return cast("Mapping[str, object]", value).items()
        case list() | tuple():
            return (
                (str(place), each)
                for place, each in enumerate(cast("Iterable[object]", value), start=1)
            )
        case _:
            return ((_ONE, value),)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."  # noqa: PLR2004 - as much as fits in a line


GOLD_REASONING: Final = "gold_reasoning"
COMMENT: Final = "comment"
WHOLE: Final = ""
"""The name of a comment on a sample as a whole."""

WINNER: Final = "winner"
"""The name used for pairs instead of a criterion."""

SIDE_NAMES: Final[tuple[Side, ...]] = ("A", "tie", "B")
SIDE_SCALE: Final = Scale(low=0, high=len(SIDE_NAMES) - 1)
"""The winners of pairs as numbers: a tie is between A and B."""

WORST: Final = 1.0


class JudgeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The judges' values for one sample; None where they gave no valid value."""

    scores: dict[str, float | None] = {}
    reasoning: dict[str, str] = {}
    winner: Side | None = None
    stable: bool | None = None
    method: Method | None = None


class GoldCase(msgspec.Struct, frozen=True, kw_only=True):
    """A sample with its human labels (``gold``) and the judges' ``verdict``."""

    id: str
    gold: Gold
    verdict: JudgeVerdict
    task: str = ""
    response: str = ""
    response_b: str | None = None
    number: int | None = None  # the sample's number, if it is in a run
    comments: dict[str, str] = {}  # people's comments, by criterion or on the whole sample
    cluster: str | None = None  # the group of dependent samples it is in
    # The hash of what the judge read; None if no other sample can have the same texts.
    words: str | None = None

    def labels(self, name: str) -> dict[str, float]:
        """Return people's scores on a criterion, or the winners that they chose."""
        if name == WINNER:
            return {who: SIDE_NAMES.index(side) for who, side in self.gold.winners.items()}
        return self.gold.scores.get(name, {})

    def judged(self, name: str) -> float | None:
        """Return the judges' score on a criterion, or the winner that they chose."""
        if name == WINNER:
            return None if (side := self.verdict.winner) is None else SIDE_NAMES.index(side)
        return self.verdict.scores.get(name)

    def comment(self, criterion: str) -> str:
        """Return people's comment on a criterion, or on the sample overall."""
        return self.comments.get(criterion) or self.comments.get(WHOLE, "")


def read_comments(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return people's reasons, from ``gold_reasoning`` or ``comment`` in a row's metadata.

    A text is about the sample as a whole; an object has texts by criterion.
    """
    given: object = metadata.get(GOLD_REASONING) or metadata.get(COMMENT)
    if isinstance(given, str):
        return {WHOLE: given} if given.strip() else {}
    if not isinstance(given, Mapping):
        return {}
    texts = cast("Mapping[str, object]", given).items()
    return {name: text for name, text in texts if isinstance(text, str) and text.strip()}


def read_verdict(report: EvaluationReport | None, rubric: Rubric) -> JudgeVerdict:
    """Return the mean of a report's votes, by criterion and overall."""
    if report is None:
        return JudgeVerdict()
    overall = report.overall if report.overall_by_votes is None else report.overall_by_votes
    scores: dict[str, float | None] = {rubric.overall_name: overall}
    known = {criterion.id for criterion in rubric.criteria}
    scores |= {
        each.id: each.score if each.vote_mean is None else each.vote_mean
        for each in report.criteria
        if each.id in known
    }
    reasoning = {each.id: each.reasoning for each in report.criteria if each.reasoning}
    return JudgeVerdict(
        scores=scores,
        reasoning=reasoning,
        winner=report.winner,
        stable=report.stable,
        method=report.method,
    )


def share_right(
    gold: Gold, winner: Side | None, scores: Mapping[str, float | None], scales: Mapping[str, Scale]
) -> float | None:
    """Return the share of a sample's labels that a judge matches; None if it gave no scores.

    Each person's label counts on its own. A score is right within half a point of the label; on a
    continuous scale, within a tenth of the scale.
    """
    if gold.winners:
        every = list(gold.winners.values())
        return None if winner is None else every.count(winner) / len(every)
    met: list[bool] = []
    for name, scale in scales.items():
        score = scores.get(name)
        if score is not None:
            most = (scale.high - scale.low) / 10 if scale.continuous else _HALF_A_POINT
            labels = gold.scores.get(name, {}).values()
            met += [abs(score - label) < most for label in labels]
    return sum(met) / len(met) if met else None


def usable(row: Row, gold: Gold | None) -> Gold | None:
    """Return the labels that can be compared with a verdict on the row; None if there are none.

    For two responses only a winner is comparable; for a single response, only scores.
    """
    if gold is None:
        return None
    if row.response_b is not None:
        return Gold(winners=gold.winners) if gold.winners else None
    return Gold(scores=gold.scores) if gold.scores else None


def loss_of(case: GoldCase, scales: Mapping[str, Scale]) -> float:
    """Return the distance between the judges and people on one sample, from 0 to 1.

    It is the mean of ``|judge - people|``, as a share of the scale, over the criteria that people
    scored; for two responses, it is 0 if the winner is the same, else 1. A missing score counts as
    the largest distance, so that a change can't win by making a judge give no scores.
    """
    if case.gold.winners:
        return 0.0 if case.verdict.winner == case.gold.winner else WORST
    apart = [
        distance(case.gold.score(name), case.verdict.scores.get(name), scales[name])
        for name in case.gold.scores
    ]
    return sum(apart) / len(apart)


def distance(people: float | None, judge: float | None, scale: Scale) -> float:
    """Return how far two scores are apart, as a share of the scale."""
    if people is None or judge is None:
        return WORST
    return scale.distance(judge, people)


def losses(cases: Iterable[GoldCase], scales: Mapping[str, Scale]) -> dict[str, float]:
    """Return the loss of every sample by its id."""
    return {case.id: loss_of(case, scales) for case in cases}


Part = Literal["tune", "select", "report"]
PARTS: Final[tuple[Part, ...]] = ("tune", "select", "report")

FEWEST: Final = 30
"""With fewer rows, each part would be too small."""

# The parts of ten consecutive rows, mixed so that each part gets rows of every kind.
_DEAL: Final[tuple[Part, ...]] = (*PARTS, *PARTS, *PARTS, "tune")


class GoldRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row with its human labels; rows of one ``cluster`` belong together."""

    row: Row
    gold: Gold
    cluster: str | None = None


def split(rows: Sequence[GoldRow], rubric: Rubric, seed: int) -> dict[Part, tuple[GoldRow, ...]]:
    """Split rows 40/30/30, with similar labels in each part.

    Rows of one cluster stay in one part; rows without a cluster stay together if their texts are
    the same. These groups are sorted by their labels, then by a hash with the seed, and dealt to
    the parts in turn.
    """
    units: dict[str, list[GoldRow]] = {}
    for each in rows:
        units.setdefault(each.cluster or words_of(each.row), []).append(each)
    if len(units) < FEWEST:
        what = "rows with gold" if len(units) == len(rows) else "independent rows with gold"
        problem = f"{len(units)} {what} are too few to tune, select and report on"
        raise InputError(problem, f"give at least {FEWEST}, or leave --rounds out", "--gold")
    scales = gold_scales(rubric)
    order = sorted(units, key=lambda name: (_label(units[name], scales), _digest(f"{seed} {name}")))
    dealt: dict[Part, list[GoldRow]] = {part: [] for part in PARTS}
    for place, name in enumerate(order):
        dealt[_DEAL[place % len(_DEAL)]] += units[name]
    return {part: tuple(sorted(each, key=lambda each: each.row.id)) for part, each in dealt.items()}


def _label(unit: Iterable[GoldRow], scales: Mapping[str, Scale]) -> tuple[str, float]:
    """Return people's winner, or their mean score to a tenth of the scale."""
    gold = min(unit, key=lambda each: each.row.id).gold
    shares = [
        scale.normalize(score)
        for name, scale in scales.items()
        if (score := gold.score(name)) is not None
    ]
    return gold.winner or "", round(math.fsum(shares) / max(len(shares), 1), 1)


def words_of(row: Row) -> str:
    """Return a hash of the texts of a row that a judge reads, ignoring white space.

    The order of two responses is ignored too, because judges see both orders.
    """
    responses = sorted(
        _folded(each.text) for each in (row.response, row.response_b) if each is not None
    )
    turns = [(turn.role, _folded(turn.content)) for turn in row.messages]
    return _digest(repr((_folded(row.task), _folded(row.context or ""), responses, turns)))


def _digest(text: str) -> str:
    """Return the hash of a string."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _folded(text: str) -> str:
    return " ".join(text.split())
