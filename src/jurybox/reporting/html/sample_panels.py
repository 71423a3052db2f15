"""Single samples on a page: what was asked, what was answered, and why it was judged so."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow, SampleRow, in_order, read_result
from jurybox.engine.replay import StoredResponses
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.judging.verdict import Side
from jurybox.reporting.attention import Concern, Extreme
from jurybox.reporting.html.histograms import UNITS
from jurybox.reporting.judge_conduct import read_stored
from jurybox.reporting.metric_text import shown
from jurybox.reporting.pair_votes import both_orders, kept_preferences, pair_votes
from jurybox.reporting.stored import damaged, procedure_of
from jurybox.sample import Response, Row
from jurybox.scoring.rules import AutomatedReport
from jurybox.statistics.estimates import Interval

if TYPE_CHECKING:
    from jurybox.statistics.bias_metric import BiasMetric

_ROW: Final = msgspec.json.Decoder(Row)
_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)
_REPORT: Final = msgspec.json.Decoder(EvaluationReport)
_AUTOMATED: Final = msgspec.json.Decoder(AutomatedReport)
_NO_RULE: Final = "no rule changed the score that the criterion begins with"
# Rows of one dataset are asked about in the same way.
_LOOKED_AT: Final = 100


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What was said for a verdict, and about what: ``accuracy_score 1``, say."""

    about: str
    text: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A response; ``trouble`` says why there is none."""

    label: str
    text: str
    trouble: str | None = None


class SampleCard(msgspec.Struct, frozen=True, kw_only=True):
    """A sample that is shown for the ``value`` of a ``figure``, or for its flags alone.

    ``passed`` is None where the rubric has no rule by which samples pass.
    """

    number: int
    id: str
    repeat: int
    figure: str
    value: float | None
    passed: bool | None
    flags: tuple[str, ...]
    task: str
    answers: tuple[Answer, ...]
    grounds: tuple[Ground, ...]

    @property
    def measured(self) -> str:
        """The value with its unit; of milliseconds nobody wants four decimals."""
        unit = UNITS.get(self.figure)
        if self.value is None or unit is None:
            return "" if self.value is None else shown(self.value)
        return f"{shown(round(self.value, 1))} {unit}"


class Independence(msgspec.Struct, frozen=True, kw_only=True):
    """Of how many of the samples that were looked at the votes could only be the same (E10)."""

    looked_at: int
    dependent: int


def cards(store: Store, run: RunRow, extremes: Iterable[Extreme]) -> tuple[SampleCard, ...]:
    """Return the cards of some samples.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    return tuple(_looked_up(store, run, each) for each in extremes)


def _looked_up(store: Store, run: RunRow, extreme: Extreme) -> SampleCard:
    return card_of(store, run, extreme.number, extreme.figure, extreme.value)


def card_of(
    store: Store, run: RunRow, number: int, figure: str = "", value: float | None = None
) -> SampleCard:
    """Return the card of the sample with a number.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    sample = store.sample(run.id, number)
    if sample is None:
        raise damaged(run, f"sample number {number} is gone")
    try:
        return card(sample, figure, value)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None


def card(sample: SampleRow, figure: str, value: float | None) -> SampleCard:
    """Return a sample's card, with the figure for which it is shown.

    Raises:
        msgspec.DecodeError: something stored can't be read.

    """
    result = read_result(sample.result)
    responses = _RESPONSES.decode(sample.responses)
    told = ((responses.response, "response"), (responses.response_b, "response B"))
    answers = [_answer(response, label) for response, label in told if response is not None]
    if len(answers) > 1:
        answers[0] = msgspec.structs.replace(answers[0], label="response A")
    return SampleCard(
        number=sample.number,
        id=sample.sample_id,
        repeat=sample.repeat,
        figure=figure,
        value=value,
        # Without a rule nothing passes or fails, not even what has no score.
        passed=result.passed if result.rules else None,
        flags=result.review_reasons,
        task=_ROW.decode(sample.inputs).task,
        answers=tuple(answers),
        grounds=tuple(_grounds(sample)),
    )


def _answer(response: Response, label: str) -> Answer:
    trouble = response.error or ("timed out" if response.timing.timed_out else None)
    return Answer(label=label, text=response.text, trouble=trouble)


def _grounds(sample: SampleRow) -> Iterator[Ground]:
    """Yield why a sample was judged as it was, the lowest scores first."""
    if sample.report is not None:
        report = _REPORT.decode(sample.report)
        yield from _of_criteria(report.criteria, "")
        for side, scored in (report.responses or {}).items():
            yield from _of_criteria(scored.criteria, f"{side}: ")
        for lost in report.lost_votes:
            yield Ground(about=f"vote {lost.vote + 1} of {lost.judge} is lost", text=lost.reason)
    if sample.automated is not None:
        rules = _AUTOMATED.decode(sample.automated)
        for each in sorted(rules.criteria, key=lambda criterion: criterion.score):
            fired = "; ".join(rule.why or rule.rule for rule in each.trace)
            yield Ground(about=f"{each.id} {shown(each.score)}", text=fired or _NO_RULE)


def _of_criteria(criteria: Iterable[CriterionReport], side: str) -> Iterator[Ground]:
    """Tell each reasoning once: in some formats it is one for all criteria."""
    said: dict[str, list[str]] = {}
    for each in sorted(criteria, key=_share):
        score = each.preference or ("unscored" if each.score is None else shown(each.score))
        said.setdefault(each.reasoning.strip(), []).append(f"{each.id} {score}")
    for text, names in said.items():
        yield Ground(about=side + ", ".join(names), text=text)


def _share(criterion: CriterionReport) -> float:
    return 1.0 if criterion.score is None else criterion.normalize(criterion.score)


def independence(store: Store, run: RunRow) -> Independence | None:
    """Tell whether the votes on a run's first samples could differ; None without several votes.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    looked_at = dependent = 0
    try:
        for sample in islice(store.samples(run.id), _LOOKED_AT):
            report = None if sample.report is None else _REPORT.decode(sample.report)
            if report is not None and report.votes_valid > 1:
                looked_at += 1
                dependent += not report.votes_independent
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    return Independence(looked_at=looked_at, dependent=dependent) if looked_at else None


UNSTABLE: Final = "unstable"
MOST: Final = 5000
"""So many pairs are looked at: reading the votes on one takes a millisecond or two."""

_SHOWN: Final = 10
_FIRST: Final = "The first place wins, of the calls with a winner"
_STAYS: Final = "The winner stays when the responses change places"
_FLIPS: Final = "The preference flips with the places"


class OrderFigure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of what the order does.

    Attributes:
        label: what it is, in words.
        criterion: whose preference flips with the order; None for the winner.
        value: a share; None where it can't be told.
        n: how many votes or calls it is made from, on so many ``samples``.
        interval: where it probably lies.
        reason: why that or the value isn't known.
        most: how many of a run's samples are looked at.

    """

    label: str
    criterion: str | None
    value: float | None
    n: int
    samples: int
    interval: Interval | None
    reason: str | None
    most: int = MOST


def order_figures(store: Store, run: RunRow, most: int = MOST) -> tuple[OrderFigure, ...]:
    """Return what the order does to the votes on a run's first pairs; nothing without pairs.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    # Numpy is loaded for this only.
    from jurybox.statistics import position_bias

    try:
        votes = list(_votes(store, run, most))
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None
    if not votes:
        return ()
    straight, swapped = [each.straight for each in votes], [each.swapped for each in votes]
    samples = [each.sample for each in votes]
    names = dict.fromkeys(name for each in votes for name in each.kept)
    voted = {name: [each for each in votes if name in each.kept] for name in names}
    flips = [
        position_bias.flip_rate(
            name, [each.kept[name] for each in some], [each.sample for each in some]
        )
        for name, some in voted.items()
    ]
    return (
        _told(_FIRST, position_bias.first_place_win_rate(straight, swapped, samples)),
        _told(_STAYS, position_bias.swap_consistency(straight, swapped, samples)),
        *(_told(_FLIPS, each, name) for name, each in zip(names, flips, strict=True)),
    )


class _Vote(msgspec.Struct, frozen=True, kw_only=True):
    """Who won in either order, and which preferences stayed."""

    sample: str
    straight: Side
    swapped: Side
    kept: dict[str, bool]


def _votes(store: Store, run: RunRow, most: int) -> Iterator[_Vote]:
    """Yield the votes, read anew from their replies: the reports have only what came of them."""
    procedure = procedure_of(run)
    for sample in islice(store.samples(run.id), most):
        stored = read_stored(sample)
        if stored is None or stored.responses.response_b is None:
            continue
        row = msgspec.structs.replace(stored.row, response_b=stored.responses.response_b)
        exchanges = in_order(sample, store.exchanges_of(run.id, sample.number))
        for seat, vote in pair_votes(procedure, row.sample(stored.responses.response), exchanges):
            straight, swapped = both_orders(seat, vote)
            kept = kept_preferences(seat, vote)
            yield _Vote(sample=sample.sample_id, straight=straight, swapped=swapped, kept=kept)


def _told(label: str, figure: "BiasMetric", criterion: str | None = None) -> OrderFigure:
    return OrderFigure(
        label=label,
        criterion=criterion,
        value=figure.value,
        n=figure.n,
        samples=figure.samples,
        interval=figure.interval,
        reason=figure.reason,
    )


def unstable_pairs(
    store: Store, run: RunRow, concerns: Iterable[Concern]
) -> tuple[SampleCard, ...]:
    """Return the first pairs whose winner changes with the order.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    places = [each for found in concerns if found.kind == UNSTABLE for each in found.samples]
    numbers = [each.number for each in places if each.number is not None]
    return tuple(card_of(store, run, each) for each in numbers[:_SHOWN])
