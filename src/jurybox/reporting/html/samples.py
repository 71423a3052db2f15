"""Single samples on a page: what was asked, what was answered, and why it was judged so."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from jurybox.judging.report import CriterionReport, EvaluationReport
from jurybox.reporting.attention import Extreme
from jurybox.reporting.figures import shown
from jurybox.reporting.html.axes import UNITS
from jurybox.reporting.stored import damaged
from jurybox.running.deriving import StoredResponses
from jurybox.running.outcomes import read_result
from jurybox.running.records import RunRow, SampleRow
from jurybox.running.storing import Store
from jurybox.sample import Response, Row
from jurybox.scoring.automated import AutomatedReport

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
    if criterion.score is None:
        return 1.0
    low, high = criterion.scale
    return (criterion.score - low) / (high - low)


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
